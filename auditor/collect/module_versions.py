"""``modinfo``: of which release the zfs module of each installed kernel is, and for which kernel it was built.

The last line, ``vermagic``, begins with the release of that kernel. A module that tracks a stable interface of kernels is built
once and linked to from the folders of others. (man 8 modinfo; kmod tools/modinfo.c)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.collect import module_lists
from auditor.facts import HOST, Fact, Facts, Known, Subject, known, words
from auditor.host.request import Output, Run, Skip

PER = "host"
SUBJECT = "host"
FACTS = {"zfs_module_versions": words("PATH VERSION KERNEL of each zfs module, as it says of itself")}
KEEP = r"^(?:filename|version|vermagic):"
MOST = 50  # modules that are asked for
_LINE = re.compile(r"(filename|version|vermagic): +([!-~]{1,300})(?: .*)?", re.ASCII)


def request(host: Subject, facts: Facts) -> Run | Skip:
    if not isinstance(facts.get(HOST, "zfs_modules"), Known):
        return Skip("which zfs modules are installed is not known")
    found = module_lists.paths(facts)
    if isinstance(found, Skip):
        return found
    paths = tuple(dict.fromkeys(path for _, path in found))
    if not paths:
        return Skip("depmod has listed no zfs module", applies=False)
    if len(paths) > MOST:
        return Skip(f"{len(paths)} zfs modules are installed")
    return Run(("modinfo", *paths), package="kmod", keep=KEEP)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where a module says one of the three twice or not at all, and where it is cut off."""
    modules: list[dict[str, str]] = []
    if not reply.text.endswith("\n"):
        raise ValueError("cut off")
    for line in reply.text.splitlines():
        found = _LINE.fullmatch(line)
        if not found:
            raise ValueError(f"no line of modinfo: {line[:80]!r}")
        if found[1] == "filename":
            modules.append({})
        if not modules or found[1] in modules[-1]:
            raise ValueError(f"{found[1]} where none should be")
        modules[-1][found[1]] = found[2]
    if not modules or any(len(each) < 3 for each in modules):
        raise ValueError("a module without filename, version and vermagic")
    rows = tuple(f"{each['filename']} {each['version']} {each['vermagic']}" for each in modules)
    text = ", ".join(f"{each['filename']}: {each['version']}" for each in modules)
    yield Fact(HOST, "zfs_module_versions", known(rows, text, "modinfo PATHS | grep -E '^(filename|version|vermagic)'"))
