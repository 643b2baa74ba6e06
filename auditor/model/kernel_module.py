"""The zfs module of the kernels that may start next, and the kernels that a release supports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

from auditor.data import releases
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    flag,
    is_true,
    unknown,
    word,
    word_of,
    words,
    words_of,
)
from auditor.model.derivation import Missing, catch_missing, derivation, evidence, need, numbers, values
from auditor.model.release import Changelog

_PART = re.compile(r"\d{1,9}|[A-Za-z][A-Za-z-]{0,99}")


@derivation(
    "host",
    zfs_by_dkms=flag("dkms has built the zfs module of the running kernel"),
    zfs_by_depmod=flag("depmod has listed a zfs module of the running kernel"),
    zfs_of_removed_kernel=flag("the running kernel was removed, all but its zfs module, which is loaded"),
    zfs_file_gone=flag("zfs is loaded as a module, and neither the running kernel nor a newer one has a file of it"),
    kernels_without_zfs=words(
        "kernels that have no zfs module: newer than the running one, or all where that of the running one is gone"
    ),
)
def kernels_without_zfs(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Which installed kernels have no zfs module although the kernel that runs has one of a package, an image or dkms.

    A module that dkms could not build is told once, in the middle of an upgrade, and one that an image lacks not at
    all; the host then starts without its pools. Only of kernels newer than the one that runs is it told: one of
    them starts next, unless somebody chooses another.

    Where the running kernel has its module from neither, as where it is built in, nothing is said of others.
    """
    by_dkms, by_depmod = _by_dkms(facts), _by_depmod(facts)
    yield Fact(HOST, "zfs_by_dkms", by_dkms)
    yield Fact(HOST, "zfs_by_depmod", by_depmod)
    removed = _removed(facts)
    yield Fact(HOST, "zfs_of_removed_kernel", removed)
    gone = _gone(facts)
    yield Fact(HOST, "zfs_file_gone", gone)
    if isinstance(gone, Known) and gone.value:
        running, listed = word_of(facts.get(HOST, "kernel_release")), words_of(facts.get(HOST, "kernels_listed"))
        yield Fact(HOST, "kernels_without_zfs", Known(_ahead(listed, running), gone.evidence))
    else:
        yield Fact(HOST, "kernels_without_zfs", _of_others(facts, removed) or _without(facts, by_dkms, by_depmod))


@catch_missing
def _by_dkms(facts: Facts) -> Judged:
    running, built = values(facts, HOST, "kernel_release", "dkms_zfs_kernels")
    return Known(any(_is_for(each, str(running.value)) for each in words_of(built)), evidence(running, built))


@catch_missing
def _by_depmod(facts: Facts) -> Judged:
    running, listed, with_zfs = values(facts, HOST, "kernel_release", "kernels_listed", "kernels_with_zfs")
    if words_of(listed) and running.value not in words_of(listed):  # an upgrade has taken its folder away
        return unknown(f"the modules of {running.value}, which runs, are not among those listed")
    return Known(running.value in words_of(with_zfs), evidence(running, listed, with_zfs))


@catch_missing
def _removed(facts: Facts) -> Judged:
    """As pacman removes a kernel at its upgrade, while it runs: what no package owns stays, and depmod's list with it."""
    running, removed, loaded = values(facts, HOST, "kernel_release", "kernels_removed_with_zfs", "zfs_loaded")
    return Known(bool(loaded.value) and running.value in words_of(removed), evidence(running, removed, loaded))


@catch_missing
def _gone(facts: Facts) -> Judged:
    """Where dkms or a package took it away, or whoever built it by hand loaded it from elsewhere."""
    running, listed, with_zfs, loaded = values(
        facts, HOST, "kernel_release", "kernels_listed", "kernels_with_zfs", "zfs_is_module"
    )
    there, ahead = running.value in words_of(listed), _ahead(words_of(listed), str(running.value))
    gone = bool(loaded.value) and there and not {*ahead} & {*words_of(with_zfs)}
    return Known(gone, evidence(running, listed, with_zfs, loaded))


def _ahead(listed: tuple[str, ...], running: str) -> tuple[str, ...]:
    """The kernels one of which starts next: the running one, and those newer than it."""
    return tuple(each for each in listed if each == running or newer(each, running))


def _of_others(facts: Facts, removed: Judged) -> Known | None:
    """Where the running kernel was removed and none of those that may start next has the module. That dkms has its source is no
    help: where its service builds at the start, that is after the units that import and mount (dkms.service: of
    multi-user.target, with the default dependencies)."""
    listed, with_zfs = facts.get(HOST, "kernels_listed"), facts.get(HOST, "kernels_with_zfs")
    none_left = words_of(listed) and isinstance(with_zfs, Known) and not with_zfs.value
    if not none_left or not is_true(removed):
        return None
    return Known(words_of(listed), (*removed.evidence, *evidence(listed, with_zfs)))


@catch_missing
def _without(facts: Facts, by_dkms: Judged, by_depmod: Judged) -> Judged:
    """As depmod has listed them; where it has not listed the running kernel's, as dkms has built them."""
    if is_true(by_depmod):
        running, listed, with_zfs = values(facts, HOST, "kernel_release", "kernels_listed", "kernels_with_zfs")
        without = (each for each in words_of(listed) if newer(each, str(running.value)))
        return Known(tuple(each for each in without if each not in words_of(with_zfs)), by_depmod.evidence)
    if isinstance(by_dkms, Known) and not by_dkms.value:
        return Known((), evidence(by_dkms, need(by_depmod)))
    running, built, installed = values(facts, HOST, "kernel_release", "dkms_zfs_kernels", "kernels_with_headers")
    if str(running.value) not in words_of(installed):  # they are elsewhere (/lib/modules), or in another form
        why = f"the headers of {running.value}, which runs, are not among those seen: others may be missing, too"
        return unknown(why)
    ahead = (kernel for kernel in words_of(installed) if newer(kernel, str(running.value)))
    not_built = tuple(kernel for kernel in ahead if not any(_is_for(each, kernel) for each in words_of(built)))
    return Known(not_built, evidence(running, built, installed))


def _is_for(name: str, kernel: str) -> bool:
    """name: KERNEL-ARCHITECTURE, where the architecture has no dash."""
    return name.rpartition("-")[0] == kernel


def newer(kernel: str, than: str) -> bool:
    """6.1.0-130 is newer than 6.1.0-13, and 80.1.2.el8_0 than 80.el8: numbers come after words, as in rpmvercmp(). Where the
    first difference is a word, it is another kind of kernel of the same release (+rt, -rpi-v8), which is no newer one."""
    for ours, theirs in zip_longest(_parts(kernel), _parts(than), fillvalue=""):
        if ours != theirs:
            both = ours.isdecimal() and theirs.isdecimal()
            return int(ours) > int(theirs) if both else ours.isdecimal()
    return False


def _parts(kernel: str) -> list[str]:
    """Numbers without zeros in front, and words."""
    return [each.lstrip("0") or "0" if each.isdecimal() else each for each in _PART.findall(kernel)[:12]]


@derivation(
    "host",
    kernels_with_older_zfs=words("KERNEL (VERSION) of newer kernels whose zfs module is of an older release"),
    older_zfs_ahead=word("how much older the oldest of them is", "none", "patch", "line"),
)
def older_modules(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether the zfs module of a kernel that may start next is of an older release than the loaded one.

    Where dkms could not build the release that runs, the one that comes with a kernel is loaded instead, whatever
    that is.

    Of kernels that are older than the one that runs nothing is said.
    """
    loaded = need(facts.get(HOST, "zfs_version"))
    running, at, versions = values(facts, HOST, "kernel_release", "zfs_modules", "zfs_module_versions")
    version_of = {path: version for path, version, _ in (row.split(" ") for row in words_of(versions))}
    ahead = [pair for each in words_of(at) if newer((pair := each.split(" ", 1))[0], str(running.value))]
    if unseen := [pair for pair in ahead if pair[1] not in version_of]:
        raise Missing(unknown(f"{unseen[0][1]}, the module of {unseen[0][0]}, was not looked at"))
    here, older = numbers(loaded), dict[str, releases.Release]()
    for kernel, path in ahead:
        text = version_of[path]
        release = releases.of(text)
        if not here or not release:
            why = f"{text} of {kernel} beside {here}: a release without numbers cannot be compared"
            raise Missing(unknown(why))
        theirs = releases.version(text, releases.spelt(release))
        assert isinstance(loaded.value, tuple)
        if theirs != loaded.value and (strange := releases.untold(theirs, loaded.value)):
            raise Missing(unknown(f"{text} of {kernel} beside {here}: {strange}", releases.REMEDY))
        if release < here:
            older[f"{kernel} ({text})"] = release
    line = any(release[:2] < here[:2] for release in older.values())
    seen = evidence(loaded, running, at, versions)
    yield Fact(HOST, "kernels_with_older_zfs", Known(tuple(older), seen))
    yield Fact(HOST, "older_zfs_ahead", Known("line" if line else "patch" if older else "none", seen))


# of each line: from its release N on, kernels up to this one
# fmt: off
NEWEST: dict[tuple[int, int], dict[int, tuple[int, int]]] = {
    (0, 8): {0: (5, 1), 2: (5, 3), 3: (5, 4), 4: (5, 6), 6: (5, 9)},
    (2, 0): {0: (5, 9), 1: (5, 10), 4: (5, 11), 5: (5, 12), 6: (5, 14), 7: (5, 15)},
    (2, 1): {0: (5, 13), 1: (5, 14), 2: (5, 15), 3: (5, 16), 4: (5, 17), 5: (5, 18), 6: (5, 19), 7: (6, 0), 8: (6, 1),
             10: (6, 2), 12: (6, 3), 13: (6, 5), 15: (6, 7)},
    (2, 2): {0: (6, 5), 1: (6, 6), 3: (6, 7), 4: (6, 8), 5: (6, 9), 6: (6, 10), 7: (6, 12), 8: (6, 15), 9: (6, 17)},
    (2, 3): {0: (6, 12), 1: (6, 13), 2: (6, 14), 3: (6, 15), 4: (6, 16), 5: (6, 17), 6: (6, 19), 7: (7, 0), 9: (7, 2)},
    (2, 4): {0: (6, 18), 1: (6, 19), 2: (7, 0), 4: (7, 2)},
}
# fmt: on
LAST = {(0, 8): 6, (2, 0): 7, (2, 1): 16, (2, 2): 11, (2, 3): 9, (2, 4): 4}  # the newest that was looked at
_KERNEL = re.compile(r"(\d{1,3})\.(\d{1,3})\b")


@derivation(
    "host", kernel_unsupported=flag("the running kernel is newer than any that this release of OpenZFS supports")
)
def kernel_unsupported(host: Subject, facts: Facts) -> Judged:
    """Whether the running kernel is newer than the newest one that this release of OpenZFS was made for.

    Linux-Maximum of META at each tag; from 2.3.0 on configure refuses newer ones without
    --enable-linux-experimental. A distribution patches older releases for its newer kernels, which its version does
    not tell: its changelog may, else it is not known.
    """
    version, text, kernel = values(facts, HOST, "zfs_version", "zfs_version_text", "kernel_release")
    running, release = _KERNEL.match(str(kernel.value)), numbers(version)
    if running is None or len(release) != 3:
        return unknown(f"{text.value} on {kernel.value}: no release, or no kernel, that zaudit knows")
    if isinstance(version.value, tuple) and (why := releases.untold(version.value, release)):
        return unknown(why, releases.REMEDY)
    line, patch = (release[0], release[1]), release[2]
    steps = NEWEST.get(line, {})
    if not steps:
        return unknown(f"for which kernels OpenZFS {text.value} was made is not known")
    newest = next(steps[at] for at in sorted(steps, reverse=True) if at <= patch)
    seen = (Evidence(f"Linux {kernel.value}; OpenZFS {text.value} supports up to {newest[0]}.{newest[1]}", "uname -r"),)
    if (int(running[1]), int(running[2])) <= newest:
        return Known(False, seen)
    if patch > LAST[line]:
        return unknown(f"OpenZFS {text.value} is newer than what zaudit knows of its kernels")
    if not releases.as_tagged(str(text.value)):
        if fits := Changelog.of(text, facts).supports(f"{running[1]}.{running[2]}"):
            return Known(False, (*seen, fits))
        why = f"OpenZFS {text.value} is the build of a distribution, which may have made it fit Linux {kernel.value}"
        return unknown(why, "look into its changelog")
    return Known(True, seen)
