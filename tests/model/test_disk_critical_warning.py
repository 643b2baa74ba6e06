"""The critical warning of an NVMe drive by two witnesses."""

from __future__ import annotations

import pytest

from auditor import registry
from auditor.facts import Fact, Facts, Known, Subject, Value, known
from auditor.model import derivation


@pytest.mark.parametrize(
    ("given", "spare_low"),
    [
        ({}, None),
        ({"nvme_spare_low": False}, False),
        ({"smart_nvme_critical_warning": 1}, True),
        ({"smart_nvme_critical_warning": 4}, False),
        ({"nvme_spare_low": False, "smart_nvme_critical_warning": 1}, True),
        ({"nvme_spare_low": True, "smart_nvme_critical_warning": 0}, True),
    ],
)
def test_a_critical_warning_counts_whoever_read_it(given: dict[str, Value], spare_low: bool | None) -> None:
    facts, disk = Facts(), Subject("disk", "nvme0n1")
    facts.put_all(Fact(disk, name, known(each, "seen")) for name, each in given.items())
    derivation.run(registry.derivations(), facts)
    found = facts.get(disk, "warns_spare_low")
    assert (found.value if isinstance(found, Known) else None) is spare_low
