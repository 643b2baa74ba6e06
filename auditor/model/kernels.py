"""The zfs module of the kernels that may start next, and the kernels that a release supports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from auditor.data import releases
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, is_true, unknown
from auditor.model.derivation import Missing, catch_missing, derivation, evidence, gaps, numbers
from auditor.model.release import OWN, Changelog

_PART = re.compile(r"\d{1,9}|[A-Za-z][A-Za-z-]{0,99}")


@derivation(
    "host",
    zfs_by_dkms=Spec.flag("dkms has built the zfs module of the running kernel"),
    zfs_by_depmod=Spec.flag("depmod has listed a zfs module of the running kernel"),
    zfs_of_removed_kernel=Spec.flag("the running kernel was removed, all but its zfs module, which is loaded"),
    zfs_file_gone=Spec.flag(
        "zfs is loaded as a module, and neither the running kernel nor a newer one has a file of it"
    ),
    kernels_without_zfs=Spec.words(
        "kernels that have no zfs module: newer than the running one, or all where that of the running one is gone"
    ),
)
def kernels_without_zfs(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Which installed kernels have no zfs module although the kernel that runs has one of a package, an image or dkms.

    A module that dkms could not build is told once, in the middle of an upgrade, and one that an image lacks not at all; the
    host then starts without its pools. Only of kernels newer than the one that runs is it told: one of them starts next, unless
    somebody chooses another. Where the running kernel has its module from neither, as where it is built in, nothing is said of
    others."""
    by_dkms, by_depmod = _by_dkms(facts), _by_depmod(facts)
    yield Fact(HOST, "zfs_by_dkms", by_dkms)
    yield Fact(HOST, "zfs_by_depmod", by_depmod)
    removed = _removed(facts)
    yield Fact(HOST, "zfs_of_removed_kernel", removed)
    gone = _gone(facts)
    yield Fact(HOST, "zfs_file_gone", gone)
    if isinstance(gone, Known) and gone.value:
        running, listed = facts.get(HOST, "kernel_release").word(), facts.get(HOST, "kernels_listed").words()
        yield Fact(HOST, "kernels_without_zfs", Known(_ahead(listed, running), gone.evidence))
    else:
        yield Fact(HOST, "kernels_without_zfs", _of_others(facts, removed) or _without(facts, by_dkms, by_depmod))


@catch_missing
def _by_dkms(facts: Facts) -> Judged:
    running, built = facts.values(HOST, "kernel_release", "dkms_zfs_kernels")
    return Known(any(_is_for(each, str(running.value)) for each in built.words()), evidence(running, built))


@catch_missing
def _by_depmod(facts: Facts) -> Judged:
    running, listed, with_zfs = facts.values(HOST, "kernel_release", "kernels_listed", "kernels_with_zfs")
    if listed.words() and running.value not in listed.words():  # an upgrade has taken its folder away
        return unknown(f"the modules of {running.value}, which runs, are not among those listed")
    return Known(running.value in with_zfs.words(), evidence(running, listed, with_zfs))


@catch_missing
def _removed(facts: Facts) -> Judged:
    """As pacman removes a kernel at its upgrade, while it runs: what no package owns stays, and depmod's list with it."""
    running, removed, loaded = facts.values(HOST, "kernel_release", "kernels_removed_with_zfs", "zfs_loaded")
    return Known(bool(loaded.value) and running.value in removed.words(), evidence(running, removed, loaded))


@catch_missing
def _gone(facts: Facts) -> Judged:
    """Where dkms or a package took it away, or whoever built it by hand loaded it from elsewhere."""
    running, listed, with_zfs, loaded = facts.values(
        HOST, "kernel_release", "kernels_listed", "kernels_with_zfs", "zfs_is_module"
    )
    there, ahead = running.value in listed.words(), _ahead(listed.words(), str(running.value))
    gone = bool(loaded.value) and there and not {*ahead} & {*with_zfs.words()}
    return Known(gone, evidence(running, listed, with_zfs, loaded))


def _ahead(listed: tuple[str, ...], running: str) -> tuple[str, ...]:
    """The kernels one of which starts next: the running one, and those newer than it."""
    return tuple(each for each in listed if each == running or newer(each, running))


def _of_others(facts: Facts, removed: Judged) -> Known | None:
    """Where the running kernel was removed and none of those that may start next has the module. That dkms has its source is no
    help: where its service builds at the start, that is after the units that import and mount (dkms.service: of
    multi-user.target, with the default dependencies)."""
    listed, with_zfs = facts.get(HOST, "kernels_listed"), facts.get(HOST, "kernels_with_zfs")
    none_left = listed.words() and isinstance(with_zfs, Known) and not with_zfs.value
    if not none_left or not is_true(removed):
        return None
    return Known(listed.words(), (*removed.evidence, *evidence(listed, with_zfs)))


@catch_missing
def _without(facts: Facts, by_dkms: Judged, by_depmod: Judged) -> Judged:
    """As depmod has listed them; where it has not listed the running kernel's, as dkms has built them."""
    if is_true(by_depmod):
        running, listed, with_zfs = facts.values(HOST, "kernel_release", "kernels_listed", "kernels_with_zfs")
        without = (each for each in listed.words() if newer(each, str(running.value)))
        return Known(tuple(each for each in without if each not in with_zfs.words()), by_depmod.evidence)
    if isinstance(by_dkms, Known) and not by_dkms.value:
        return Known((), evidence(by_dkms, by_depmod.need()))
    running, built, installed = facts.values(HOST, "kernel_release", "dkms_zfs_kernels", "kernels_with_headers")
    if str(running.value) not in installed.words():  # they are elsewhere (/lib/modules), or in another form
        why = f"the headers of {running.value}, which runs, are not among those seen: others may be missing, too"
        return unknown(why)
    ahead = (kernel for kernel in installed.words() if newer(kernel, str(running.value)))
    not_built = tuple(kernel for kernel in ahead if not any(_is_for(each, kernel) for each in built.words()))
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
    return [each.lstrip("0") or "0" if each.isdecimal() else each for each in _PART.findall(kernel)[:12]]


@derivation(
    "host",
    kernels_with_older_zfs=Spec.words("KERNEL (VERSION) of newer kernels whose zfs module is of an older release"),
    older_zfs_ahead=Spec.word("how much older the oldest of them is", "none", "patch", "line"),
)
def older_modules(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether the zfs module of a newer kernel is of an older release than the loaded one: where dkms could not build the
    release that runs, the module that comes with the kernel is loaded instead."""
    loaded = facts.need(HOST, "zfs_version")
    running, at, versions = facts.values(HOST, "kernel_release", "zfs_modules", "zfs_module_versions")
    version_of = {path: version for path, version, _ in (row.split(" ") for row in versions.words())}
    ahead = [pair for each in at.words() if newer((pair := each.split(" ", 1))[0], str(running.value))]
    if unseen := [pair for pair in ahead if pair[1] not in version_of]:
        raise Missing(unknown(f"{unseen[0][1]}, the module of {unseen[0][0]}, was not looked at"))
    here, older = numbers(loaded), dict[str, releases.Release]()
    for kernel, path in ahead:
        text = version_of[path]
        release = releases.of(text)
        if not here or not release:
            why = f"{text} of {kernel} next to {here}: a release without numbers cannot be compared"
            raise Missing(unknown(why))
        theirs = releases.version(text, releases.spelt(release))
        assert isinstance(loaded.value, tuple)
        if theirs != loaded.value and (strange := releases.untold(theirs, loaded.value)):
            raise Missing(unknown(f"{text} of {kernel} next to {here}: {strange}", releases.REMEDY))
        if release < here:
            older[f"{kernel} ({text})"] = release
    line = any(release[:2] < here[:2] for release in older.values())
    seen = evidence(loaded, running, at, versions)
    yield Fact(HOST, "kernels_with_older_zfs", Known(tuple(older), seen))
    yield Fact(HOST, "older_zfs_ahead", Known("line" if line else "patch" if older else "none", seen))


# Linux-Maximum of META at the tags zfs-0.8.0 to zfs-2.4.4. Of each line: from its release N on, kernels up to this one
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
OLDEST = {(0, 8, 0): (2, 6), (2, 0, 0): (3, 10), (2, 2, 7): (4, 18)}  # Linux-Minimum: from this release on
LAST = {(0, 8): 6, (2, 0): 7, (2, 1): 16, (2, 2): 11, (2, 3): 9, (2, 4): 4}  # the newest that was looked at
_KERNEL = re.compile(r"(\d{1,3})\.(\d{1,3})\b")
_ADDED = re.compile(r"/(?:updates|extra|weak-updates)/")  # where dkms, a package of modules alone, or a person puts one
_REALTIME = re.compile(r"\bPREEMPT[_ ]RT\b")
GAPS = ("none", "patch", "upgrade", "untested")  # how far a combination is from one that is tested


class _Untested(NamedTuple):
    """gap: of GAPS, "none" where nothing is wrong. text: what nobody tests, and what to run."""

    gap: str = "none"
    text: str = ""
    seen: tuple[Evidence, ...] = ()


KINDS = ("release", "kernel", "realtime", "file", "commands")  # in the order of the checks
Check = Callable[[Facts], "_Untested | Unknown"]


@derivation(
    "host",
    untested=Spec.words("which combination of module, commands and kernel is untested, and what to run"),
    untested_gap=Spec.word("how far the furthest of that is from what is tested", *GAPS),
    untested_kind=Spec.word("what the furthest of that is about", *KINDS, "none"),
)
def untested(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Combinations that nothing tests: a module of no release, a kernel outside of META's range, PREEMPT_RT, a module that
    is not that of its file on disk, commands of another line.

    Relies on the distribution where it built the module as a part of the kernel, or is a system of one piece (NixOS,
    TrueNAS). Known as soon as one is found."""
    found = [check(facts) for check in (_no_release, _of_kernel, _realtime, _on_disk, _commands)]
    named = [(each, kind) for each, kind in zip(found, KINDS, strict=True) if isinstance(each, _Untested) and each.text]
    bad = [each for each, _ in named]
    seen = tuple(piece for each in found if isinstance(each, _Untested) for piece in each.seen)
    if not bad and (unseen := gaps(found)):
        raise Missing(Unknown.join(unseen))
    worst, kind = max(((each.gap, kind) for each, kind in named), key=lambda pair: GAPS.index(pair[0]),
                      default=("none", "none"))  # fmt: skip
    yield Fact(HOST, "untested", Known(tuple(each.text for each in bad), seen))
    yield Fact(HOST, "untested_gap", Known(worst, seen))
    yield Fact(HOST, "untested_kind", Known(kind, seen))


@catch_missing
def _no_release(facts: Facts) -> _Untested:
    version, text = facts.values(HOST, "zfs_version", "zfs_version_text")
    release = version.value if isinstance(version.value, tuple) else ()
    if not releases.nature(release):
        return _Untested(seen=version.evidence)
    what = "a candidate" if releases.candidate(release) else "built from the branch of development"
    return _of_pair(f"OpenZFS {text.value} is {what}: run a release", text.evidence, facts)


@catch_missing
def _of_kernel(facts: Facts) -> _Untested:
    """Linux-Minimum and Linux-Maximum of META at each tag; from 2.3.0 on configure refuses newer ones without
    --enable-linux-experimental. A distribution patches older releases for its newer kernels, which its version does
    not tell."""
    version, text, kernel = facts.values(HOST, "zfs_version", "zfs_version_text", "kernel_release")
    running, release = _KERNEL.match(str(kernel.value)), numbers(version)
    if isinstance(version.value, tuple) and releases.nature(version.value):
        return _Untested(seen=version.evidence)  # which is what is wrong with it
    if running is None or len(release) != 3:
        raise Missing(unknown(f"{text.value} on {kernel.value}: no release, or no kernel, that zaudit knows"))
    here, line = (int(running[1]), int(running[2])), release[:2]
    if not (steps := NEWEST.get((line[0], line[1]))):
        raise Missing(unknown(f"for which kernels OpenZFS {text.value} was made is not known"))
    newest = next(steps[at] for at in sorted(steps, reverse=True) if at <= release[2])
    oldest = next(OLDEST[since] for since in sorted(OLDEST, reverse=True) if since <= release)
    made_for = f"OpenZFS {text.value} is made for Linux {oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}"
    seen = (Evidence(f"Linux {kernel.value}; {made_for}", "uname -r"),)
    if oldest <= here <= newest:
        return _Untested(seen=seen)
    if release[2] > LAST[(line[0], line[1])]:
        raise Missing(unknown(f"OpenZFS {text.value} is newer than what zaudit knows of its kernels"))
    lines = {line: steps for line, steps in NEWEST.items() if line >= release[:2] and line not in releases.ENDED}
    first = {line: min((at for at in steps if steps[at] >= here), default=None) for line, steps in lines.items()}
    fits = [f"{line[0]}.{line[1]}.{at} or later of {line[0]}.{line[1]}" for line, at in first.items() if at is not None]
    instead = f", or OpenZFS {fits[0]}" if fits and here > newest else ""
    found = _of_pair(f"Linux {kernel.value}: {made_for}; run one of these{instead}", seen, facts)
    if found.text and not releases.as_tagged(str(text.value)):
        if carries := Changelog.of(text, facts).supports(f"{running[1]}.{running[2]}"):
            return _Untested(seen=(*seen, carries))
        why = f"OpenZFS {text.value} is the build of a distribution, which may have made it fit Linux {kernel.value}"
        raise Missing(unknown(why, "look into its changelog"))
    return found


@catch_missing
def _realtime(facts: Facts) -> _Untested:
    version = facts.need(HOST, "kernel_build")
    if not _REALTIME.search(str(version.value)):
        return _Untested(seen=version.evidence)
    return _of_pair("a kernel with PREEMPT_RT: run one without", version.evidence, facts)


@catch_missing
def _on_disk(facts: Facts) -> _Untested:
    """The file that modprobe takes for the running kernel; where there is none, rules about the next kernel tell it."""
    loaded, text, is_module = facts.values(HOST, "zfs_version", "zfs_version_text", "zfs_is_module")
    running, at = facts.values(HOST, "kernel_release", "zfs_modules")
    pairs = (each.split(" ", 1) for each in at.words())
    path = next((path for kernel, path in pairs if kernel == running.value), "")
    if not is_module.value or not path:
        return _Untested(seen=evidence(is_module, at))
    rows = facts.need(HOST, "zfs_module_versions")
    on_disk = next((row.split(" ")[1] for row in rows.words() if row.split(" ")[0] == path), "")
    if not on_disk or on_disk == text.value:
        return _Untested(seen=rows.evidence)
    file = releases.of(on_disk)
    gap = _gap(numbers(loaded), file) if file else "unrelated"
    what = f"the file of the loaded module {text.value} is now of {on_disk}: restart when that is the one you want"
    return _Untested({"patch": "patch", "module older": "upgrade"}.get(gap, "untested"), what, evidence(text, rows))


@catch_missing
def _commands(facts: Facts) -> _Untested:
    """A patch release changes nothing between commands and module, and what a minor release adds to the interface is backwards
    compatible: older commands speak to a newer module as before, newer commands may ask an older module for what it
    does not have. Of a .99 nothing is promised. (openzfs/zfs RELEASES.md)"""
    module, commands = facts.values(HOST, "zfs_version", "zfs_userland_version")
    if module.value == commands.value:
        return _Untested(seen=evidence(module, commands))
    if not numbers(module) or not numbers(commands):
        raise Missing(unknown("a release without numbers cannot be compared"))
    gap = {"patch": "patch", "module newer": "patch", "module older": "upgrade"}.get(
        _gap(numbers(module), numbers(commands)), "untested"
    )
    texts = (facts.get(HOST, name).word() for name in ("zfs_version_text", "zfs_userland_version_text"))
    what = "kernel module {}, commands {}: run both of one release".format(*texts)
    return _Untested(gap, what, evidence(module, commands))


def _gap(module: tuple[int, ...], other: tuple[int, ...]) -> str:
    if module[:1] != other[:1] or releases.DEVELOPMENT in (module[-1], other[-1]):
        return "unrelated"
    if module[:2] == other[:2]:
        return "patch"
    return "module newer" if module > other else "module older"


def _of_pair(text: str, seen: tuple[Evidence, ...], facts: Facts) -> _Untested:
    """What is untested, unless a distribution built module and kernel as a pair."""
    platform = facts.need(HOST, "platform")
    if platform.value in OWN:
        return _Untested(seen=(*seen, *platform.evidence, Evidence(f"{platform.value} tests the two together")))
    running, at = facts.values(HOST, "kernel_release", "zfs_modules")
    pairs = (each.split(" ", 1) for each in at.words())
    own = [path for kernel, path in pairs if kernel == running.value and not _ADDED.search(path)]
    if own:
        return _Untested(seen=(*seen, Evidence(f"{own[0]} is a part of the kernel: its distribution tests the two")))
    return _Untested("untested", text, (*seen, *at.evidence))
