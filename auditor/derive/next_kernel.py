"""Which installed kernels have no zfs module although the kernel that runs has one of a package, an image or dkms.

A module that dkms could not build is told once, in the middle of an upgrade, and one that an image lacks not at all; the host
then starts without its pools. Only of kernels newer than the one that runs is it told: one of them starts next, unless
somebody chooses another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

from auditor.derive.combine import evidence, values
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, flag, unknown, word_of, words, words_of

SUBJECT = "host"
FACTS = {
    "zfs_by_dkms": flag("dkms has built the zfs module of the running kernel"),
    "zfs_by_depmod": flag("depmod has listed a zfs module of the running kernel"),
    "zfs_of_removed_kernel": flag("the running kernel was removed, all but its zfs module, which is loaded"),
    "zfs_file_gone": flag("zfs is loaded as a module, and neither the running kernel nor a newer one has a file of it"),
    "kernels_without_zfs": words(
        "kernels that have no zfs module: newer than the running one, or all where that of the running one is gone"
    ),
}
_PART = re.compile(r"\d{1,9}|[A-Za-z][A-Za-z-]{0,99}")


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Where the running kernel has its module from neither, as where it is built in, nothing is said of others."""
    by_dkms, by_depmod = _by_dkms(facts), _by_depmod(facts)
    yield Fact(HOST, "zfs_by_dkms", by_dkms)
    yield Fact(HOST, "zfs_by_depmod", by_depmod)
    removed = _removed(facts)
    yield Fact(HOST, "zfs_of_removed_kernel", removed)
    gone = _gone(facts)
    yield Fact(HOST, "zfs_file_gone", gone)
    if isinstance(gone, Known) and gone.value:
        running = word_of(facts.get(HOST, "kernel_release"))
        yield Fact(
            HOST,
            "kernels_without_zfs",
            Known(_ahead(words_of(facts.get(HOST, "kernels_listed")), running), gone.evidence),
        )
    else:
        yield Fact(HOST, "kernels_without_zfs", _of_others(facts, removed) or _without(facts, by_dkms, by_depmod))


def _by_dkms(facts: Facts) -> Judged:
    found = values(facts, HOST, "kernel_release", "dkms_zfs_kernels")
    if isinstance(found, Unknown):
        return found
    running, built = found
    return Known(any(_is_for(each, str(running.value)) for each in words_of(built)), evidence(running, built))


def _by_depmod(facts: Facts) -> Judged:
    found = values(facts, HOST, "kernel_release", "kernels_listed", "kernels_with_zfs")
    if isinstance(found, Unknown):
        return found
    running, listed, with_zfs = found
    if words_of(listed) and running.value not in words_of(listed):  # an upgrade has taken its folder away
        return unknown(f"the modules of {running.value}, which runs, are not among those listed")
    return Known(running.value in words_of(with_zfs), evidence(running, listed, with_zfs))


def _removed(facts: Facts) -> Judged:
    """As pacman removes a kernel at its upgrade, while it runs: what no package owns stays, and depmod's list with it."""
    found = values(facts, HOST, "kernel_release", "kernels_removed_with_zfs", "zfs_loaded")
    if isinstance(found, Unknown):
        return found
    running, removed, loaded = found
    return Known(bool(loaded.value) and running.value in words_of(removed), evidence(running, removed, loaded))


def _gone(facts: Facts) -> Judged:
    """Where dkms or a package took it away, or whoever built it by hand loaded it from elsewhere."""
    found = values(facts, HOST, "kernel_release", "kernels_listed", "kernels_with_zfs", "zfs_is_module")
    if isinstance(found, Unknown):
        return found
    running, listed, with_zfs, loaded = found
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
    listed = values(facts, HOST, "kernels_listed", "kernels_with_zfs")
    if isinstance(listed, Unknown) or not (isinstance(removed, Known) and removed.value):
        return None
    if not words_of(listed[0]) or words_of(listed[1]):
        return None
    return Known(words_of(listed[0]), (*removed.evidence, *evidence(*listed)))


def _without(facts: Facts, by_dkms: Judged, by_depmod: Judged) -> Judged:
    """As depmod has listed them; where it has not listed the running kernel's, as dkms has built them."""
    listed = values(facts, HOST, "kernel_release", "kernels_listed", "kernels_with_zfs")
    if isinstance(by_depmod, Known) and by_depmod.value and not isinstance(listed, Unknown):
        here, lists, with_zfs = str(listed[0].value), words_of(listed[1]), words_of(listed[2])
        return Known(tuple(each for each in lists if newer(each, here) and each not in with_zfs), by_depmod.evidence)
    if isinstance(by_dkms, Known) and not by_dkms.value:
        return by_depmod if isinstance(by_depmod, Unknown) else Known((), evidence(by_dkms, by_depmod))
    return _not_built(facts)


def _not_built(facts: Facts) -> Judged:
    found = values(facts, HOST, "kernel_release", "dkms_zfs_kernels", "kernels_with_headers")
    if isinstance(found, Unknown):
        return found
    running, built, installed = found
    if str(running.value) not in words_of(installed):  # they are elsewhere (/lib/modules), or in another form
        return unknown(
            f"the headers of {running.value}, which runs, are not among those seen: others may be missing, too"
        )
    without = tuple(
        kernel
        for kernel in words_of(installed)
        if newer(kernel, str(running.value)) and not any(_is_for(each, kernel) for each in words_of(built))
    )
    return Known(without, evidence(running, built, installed))


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
