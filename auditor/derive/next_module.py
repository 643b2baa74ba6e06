"""Whether the zfs module of a kernel that may start next is of an older release than the loaded one.

Where dkms could not build the release that runs, the one that comes with a kernel is loaded instead, whatever that is.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import releases
from auditor.derive.combine import evidence, values
from auditor.derive.next_kernel import newer
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, unknown, word, words, words_of

SUBJECT = "host"
FACTS = {
    "kernels_with_older_zfs": words("KERNEL (VERSION) of newer kernels whose zfs module is of an older release"),
    "older_zfs_ahead": word("how much older the oldest of them is", "none", "patch", "line"),
}


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Both; of kernels that are older than the one that runs nothing is said."""
    older, gap = _older(facts, _modules(facts))
    yield Fact(HOST, "kernels_with_older_zfs", older)
    yield Fact(HOST, "older_zfs_ahead", gap)


def _modules(facts: Facts) -> tuple[list[tuple[str, str]], list[Known]] | Unknown:
    """(kernel, release of its zfs module) of newer kernels than the one that runs."""
    found = values(facts, HOST, "kernel_release", "zfs_modules", "zfs_module_versions")
    if isinstance(found, Unknown):
        return found
    said = {path: version for path, version, _ in (row.split(" ") for row in words_of(found[2]))}
    modules = []
    for kernel, path in (each.split(" ", 1) for each in words_of(found[1])):
        if not newer(kernel, str(found[0].value)):
            continue
        if path not in said:
            return unknown(f"{path}, the module of {kernel}, was not looked at")
        modules.append((kernel, said[path]))
    return modules, found


def _older(facts: Facts, found: tuple[list[tuple[str, str]], list[Known]] | Unknown) -> tuple[Judged, Judged]:
    loaded = facts.get(HOST, "zfs_version")
    if isinstance(loaded, Unknown):
        return loaded, loaded
    if isinstance(found, Unknown):
        return found, found
    modules, seen = found
    version = loaded.value if isinstance(loaded.value, tuple) else ()
    here = tuple(each for each in version if isinstance(each, int))
    older: dict[str, releases.Release] = {}
    for kernel, version_text in modules:
        release = releases.of(version_text)
        if not here or not release:
            why = unknown(f"{version_text} of {kernel} beside {here}: a release without numbers cannot be compared")
            return why, why
        theirs = releases.version(version_text, releases.spelt(release))
        if theirs != version and (strange := releases.untold(theirs, version)):
            why = unknown(f"{version_text} of {kernel} beside {here}: {strange}", releases.REMEDY)
            return why, why
        if release < here:
            older[f"{kernel} ({version_text})"] = release
    line = any(release[:2] < here[:2] for release in older.values())
    because = evidence(loaded, *seen)
    return Known(tuple(older), because), Known("line" if line else "patch" if older else "none", because)
