"""Direct I/O: who commits with it, by the counters of pool and dataset."""

from __future__ import annotations

import pytest

from auditor.facts import Fact, Facts, Known, Subject, known, unknown
from auditor.model.intent_log import commits_directly

TANK, DB = Subject("pool", "tank"), Subject("dataset", "tank/db")


@pytest.mark.parametrize(
    ("direct", "writes", "pointers", "bias", "zil_class", "expected"),
    [
        (0, 500, 0, "latency", "log", False),  # nobody has asked for it
        (376, 0, 0, "latency", "log", False),  # not of this dataset
        (376, 500, 368, "latency", "log", True),  # nothing else makes pointers here
        (376, 500, 368, "throughput", "log", None),  # each commit is one
        (376, 500, 368, "latency", "normal", None),  # large writes are, too
        (376, 500, 12, "latency", "log", None),  # maybe of a setting of before
        (None, 500, 368, "latency", "log", None),
        (376, None, None, "latency", "log", None),
    ],
)
def test_by_what_was_counted(
    direct: int | None, writes: int | None, pointers: int | None, bias: str, zil_class: str, expected: bool | None
) -> None:
    facts = Facts()
    counted = {(TANK, "direct_write_count"): direct, (DB, "writes"): writes, (DB, "zil_itx_indirect_count"): pointers}
    for (subject, name), value in counted.items():
        facts.put(Fact(subject, name, unknown("not read") if value is None else known(value, f"{name} {value}")))
    facts.put(Fact(DB, "logbias", known(bias, bias)))
    facts.put(Fact(TANK, "zil_class", known(zil_class, zil_class)))
    (found,) = commits_directly.derive(DB, facts)
    assert (found.value.value if isinstance(found.value, Known) else None) is expected
