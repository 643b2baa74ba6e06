"""Which installed kernels have no zfs module although dkms has built one for the kernel that runs.

A module that dkms could not build is told once, in the middle of an upgrade; the host then starts without its pools. Only of
kernels newer than the one that runs is it told: one of them starts next, unless somebody chooses another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.derive.combine import values
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, flag, unknown, words, words_of

SUBJECT = "host"
FACTS = {
    "zfs_by_dkms": flag("dkms has built the zfs module of the running kernel"),
    "kernels_without_zfs": words("kernels with headers, newer than the running one, that dkms has built no zfs for"),
}
NEEDS = ("host.kernel_release", "host.dkms_zfs_kernels", "host.kernels_with_headers")
Key = tuple[tuple[bool, int], ...]


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Where dkms did not build the module of the running kernel nothing is said of others: their packages bring it."""
    yield Fact(HOST, "zfs_by_dkms", _by_dkms(facts))
    yield Fact(HOST, "kernels_without_zfs", _without(facts))


def _by_dkms(facts: Facts) -> Judged:
    found = values(facts, HOST, "kernel_release", "dkms_zfs_kernels")
    if isinstance(found, Unknown):
        return found
    running, built = found
    return Known(
        any(_is_for(each, str(running.value)) for each in words_of(built)), (*running.evidence, *built.evidence)
    )


def _without(facts: Facts) -> Judged:
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
        if _key(kernel) > _key(str(running.value)) and not any(_is_for(each, kernel) for each in words_of(built))
    )
    return Known(without, (*running.evidence, *built.evidence, *installed.evidence))


def _is_for(name: str, kernel: str) -> bool:
    """name: KERNEL-ARCHITECTURE, where the architecture has no dash."""
    return name.rpartition("-")[0] == kernel


def _key(kernel: str) -> Key:
    """6.1.0-13 comes before 6.1.0-130 and 6.10.0-2; numbers after words, as in rpmvercmp(): 80.el8 before 80.1.2.el8_0."""
    parts = re.findall(r"\d{1,9}|[A-Za-z][A-Za-z-]{0,99}", kernel)[:12]
    return tuple((each.isdecimal(), int(each) if each.isdecimal() else 0) for each in parts)
