"""What the cache of a controller says of itself decides, not only whether a volume may use it."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Known
from auditor.host.request import Output
from auditor.sources import raid

TEXT = """
Smart Array P410i in Slot 0 (Embedded)
   Slot: 0
   {said}
   No-Battery Write Cache: Disabled

      Logical Drive: 1
         Caching:  Enabled
         Disk Name: {name}
"""


@pytest.mark.parametrize(
    ("said", "name", "policy"),
    [
        ("Cache Ratio: 100% Read / 0% Write", "/dev/sda", {"sda": "write through"}),
        ("Cache Ratio: 25% Read / 75% Write", "/dev/sda", {"sda": "write back"}),
        ("Cache Status: Temporarily Disabled", "/dev/sda", {}),
        ("Cache Status: OK", "/dev/sda", {"sda": "write back"}),
        ("Cache Status: OK", "/dev/cciss/c0d0", {}),
    ],
)
def test_policy_of_writes(said: str, name: str, policy: dict[str, str]) -> None:
    facts = list(raid.ssacli.parse(Output(TEXT.format(said=said, name=name), raid.COMMAND), HOST))
    found = {
        each.subject.name: each.value.value
        for each in facts
        if each.name == "raid_write_policy" and isinstance(each.value, Known)
    }
    assert found == policy
