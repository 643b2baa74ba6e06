"""Which installed kernels have no zfs module although dkms has built one for the kernel that runs.

A module that dkms could not build is told once, in the middle of an upgrade; the host then starts without its pools. Only of
kernels newer than the one that runs is it told: one of them starts next, unless somebody chooses another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.derive.combine import values
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, known, words, words_of

SUBJECT = "host"
FACTS = {"kernels_without_zfs": words("installed kernels, newer than the running one, that dkms has built no zfs for")}
NEEDS = ("host.kernel_release", "host.dkms_zfs_kernels", "host.kernels_with_headers")
Key = tuple[int, ...]


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """None where the running kernel's module is not of dkms: a distribution that ships it has it for each kernel."""
    yield Fact(HOST, "kernels_without_zfs", _without(facts))


def _without(facts: Facts) -> Judged:
    found = values(facts, HOST, "kernel_release", "dkms_zfs_kernels", "kernels_with_headers")
    if isinstance(found, Unknown):
        return found
    running, built, installed = found
    this, names = str(running.value), words_of(built)
    if not any(_is_for(each, this) for each in names):
        return known((), "dkms has built no zfs module for the running kernel", "dkms status zfs")
    without = tuple(
        kernel
        for kernel in words_of(installed)
        if _key(kernel) > _key(this) and not any(_is_for(each, kernel) for each in names)
    )
    return Known(without, (*running.evidence, *built.evidence, *installed.evidence))


def _is_for(name: str, kernel: str) -> bool:
    """name: KERNEL-ARCHITECTURE, where the architecture has no dash."""
    return name.rpartition("-")[0] == kernel


def _key(kernel: str) -> Key:
    """6.1.0-13 comes before 6.1.0-130 and 6.10.0-2."""
    return tuple(int(each) for each in re.findall(r"\d{1,9}", kernel)[:8])
