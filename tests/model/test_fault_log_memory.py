"""Memory that is corrected: what decides, and what stays unknown."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Judged, Known, Value, known, unknown
from auditor.model.fault_log import memory_ecc


@pytest.mark.parametrize(
    ("machine", "edac", "dmi", "is_ecc"),
    [
        ("none", True, None, True),
        ("none", False, True, False),
        ("none", None, True, True),
        ("none", None, False, False),
        ("none", None, None, None),
        ("kvm", None, True, None),
        ("kvm", True, True, None),
        (None, True, True, None),
    ],
)
def test_memory(machine: str | None, edac: bool | None, dmi: bool | None, is_ecc: bool | None) -> None:
    def judged(value: Value | None) -> Judged:
        return unknown("not seen") if value is None else known(value, "seen")

    facts = Facts()
    for name, value in (("virtualization", machine), ("edac_corrects", edac), ("dmi_memory_ecc", dmi)):
        facts.put(Fact(HOST, name, judged(value)))
    ((_, _, found),) = memory_ecc.derive(HOST, facts)
    assert (found.value if isinstance(found, Known) else None) == is_ecc
