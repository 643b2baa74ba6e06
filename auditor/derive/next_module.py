"""What the zfs modules of the kernels that may start next are: of an older release than the loaded one, or built for a kernel
of another minor release of Enterprise Linux.

Where dkms could not build the release that runs, the one that comes with a kernel is loaded instead, whatever that is. And
packages for Enterprise Linux are built once for the kernels of a minor release: "When updating to a new EL minor release the
existing kmod packages may not work" (OpenZFS documentation, RHEL-based distro, kABI-tracking kmod). The number behind the dash
of such a kernel is that of its minor release: 4.18.0-372 of 8.6, 4.18.0-425 of 8.7; those of Stream have one of their own each,
for which these packages are not verified.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from auditor.data import releases
from auditor.derive.combine import evidence, values
from auditor.derive.next_kernel import newer
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, unknown, word, words, words_of

SUBJECT = "host"
FACTS = {
    "kernels_with_older_zfs": words("KERNEL (VERSION) of newer kernels whose zfs module is of an older release"),
    "older_zfs_ahead": word("how much older the oldest of them is", "none", "patch", "line"),
    "kernels_with_foreign_zfs": words("KERNEL (for KERNEL) where the module is of another minor release of its system"),
}
NEEDS = ("host.kernel_release", "host.zfs_modules", "host.zfs_module_versions", "host.zfs_version")
_ENTERPRISE = re.compile(r"(\d[\d.]{0,20}-\d{1,5})(?:\.\d{1,5}){0,5}\.el\d", re.ASCII)


class Module(NamedTuple):
    """Of one kernel: the release of its zfs module, and the kernel that was built for."""

    kernel: str
    version: str
    built_for: str


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """All three; of kernels that are older than the one that runs nothing is said."""
    found = _modules(facts)
    older, gap = _older(facts, found)
    yield Fact(HOST, "kernels_with_older_zfs", older)
    yield Fact(HOST, "older_zfs_ahead", gap)
    if isinstance(found, Unknown):
        yield Fact(HOST, "kernels_with_foreign_zfs", found)
        return
    modules, seen = found
    foreign = tuple(f"{each.kernel} (for {each.built_for})" for each in modules if _foreign(each))
    yield Fact(HOST, "kernels_with_foreign_zfs", Known(foreign, evidence(*seen)))


def _modules(facts: Facts) -> tuple[list[Module], list[Known]] | Unknown:
    """Of the kernel that runs and of newer ones."""
    found = values(facts, HOST, "kernel_release", "zfs_modules", "zfs_module_versions")
    if isinstance(found, Unknown):
        return found
    said = {path: rest for path, *rest in (row.split(" ") for row in words_of(found[2]))}
    modules = []
    for kernel, path in (each.split(" ", 1) for each in words_of(found[1])):
        if kernel != found[0].value and not newer(kernel, str(found[0].value)):
            continue
        if path not in said:
            return unknown(f"{path}, the module of {kernel}, was not looked at")
        modules.append(Module(kernel, *said[path]))
    return modules, found


def _older(facts: Facts, found: tuple[list[Module], list[Known]] | Unknown) -> tuple[Judged, Judged]:
    loaded = facts.get(HOST, "zfs_version")
    if isinstance(loaded, Unknown):
        return loaded, loaded
    if isinstance(found, Unknown):
        return found, found
    modules, seen = found
    version = loaded.value if isinstance(loaded.value, tuple) else ()
    here = tuple(each for each in version if isinstance(each, int))
    older: dict[str, releases.Release] = {}
    for each in modules:
        release = releases.of(each.version)
        if not here or not release:
            why = unknown(
                f"{each.version} of {each.kernel} beside {here}: a release without numbers cannot be compared"
            )
            return why, why
        if not newer(each.kernel, str(seen[0].value)):
            continue
        theirs = releases.version(each.version, releases.spelt(release))
        if theirs != version and (strange := releases.untold(theirs, version)):
            why = unknown(f"{each.version} of {each.kernel} beside {here}: {strange}", releases.REMEDY)
            return why, why
        if release < here:
            older[f"{each.kernel} ({each.version})"] = release
    line = any(release[:2] < here[:2] for release in older.values())
    because = evidence(loaded, *seen)
    return Known(tuple(older), because), Known("line" if line else "patch" if older else "none", because)


def _foreign(module: Module) -> bool:
    ours, theirs = (_ENTERPRISE.match(each) for each in (module.kernel, module.built_for))
    return bool(ours and theirs and ours[1] != theirs[1])
