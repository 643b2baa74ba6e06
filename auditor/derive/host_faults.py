"""Threads of OpenZFS that stopped or hung, and faults of memory and processors, each from several questions to the kernel.

Machine checks and counters of memory errors count on bare metal alone, the counters where the memory has ECC.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.kernel_log import together
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, is_true, tally, value_of

SUBJECT = "host"
FACTS = {
    "zfs_threads_stopped": tally(
        "HOW AND WHERE=TIMES of threads of OpenZFS that panicked or faulted, and of tasks that hung in it, since boot"
    ),
    "hardware_faults": tally("WHAT=TIMES of errors of memory and processors since boot"),
}
THREADS = {
    "zfs_panics": "panic at",
    "zfs_oopses": "fault in",
    "zfs_faults_beside": "fault in",
    "hung_tasks": "hung task",
    "hung_in_zfs": "hung task",
}
HARDWARE = {"machine_checks": "machine checks:", "hardware_errors": "reported:"}
UNCORRECTED, CORRECTED = "memory_uncorrected_errors", "memory_corrected_errors"
ONE_MODULE = (2, 2)  # from which on zcommon, icp and the others are part of zfs.ko (commit ad9e767657)
USUAL = 100  # corrected errors of memory; a few a year are nothing


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    threads = {name: facts.get(HOST, name) for name in THREADS}
    version = value_of(facts.get(HOST, "zfs_version"))
    if isinstance(version, tuple) and version >= ONE_MODULE and isinstance(threads["zfs_faults_beside"], Unknown):
        del threads["zfs_faults_beside"]  # what an older question did not look for is not there
    yield Fact(HOST, "zfs_threads_stopped", together((THREADS[name], each) for name, each in threads.items()))
    yield Fact(HOST, "hardware_faults", _hardware(facts))


def _hardware(facts: Facts) -> Judged:
    virtual, ecc = facts.get(HOST, "virtualization"), facts.get(HOST, "memory_ecc")
    if isinstance(virtual, Unknown):
        return virtual
    if virtual.value != "none":
        return Known((), virtual.evidence)
    found = [(what, facts.get(HOST, name)) for name, what in HARDWARE.items()]
    if isinstance(ecc, Unknown):
        found.append(("", ecc))
    elif is_true(ecc):
        corrected = facts.get(HOST, CORRECTED)
        if isinstance(corrected, Known) and isinstance(corrected.value, int) and corrected.value < USUAL:
            corrected = corrected._replace(value=0)
        found += [("memory errors not corrected", facts.get(HOST, UNCORRECTED)), ("corrected memory errors", corrected)]
    return together(found)
