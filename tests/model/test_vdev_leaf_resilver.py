"""A resilver that has read nothing, and for how long."""

from __future__ import annotations

import pytest

from auditor.facts import Known, Subject, Unknown, unknown
from auditor.host.request import Output
from auditor.sources import zpool_status
from tests.model.test_model_pools import MIRROR, POOL, World

NOT_SAID = unknown("zpool status: does not report it")


@pytest.mark.parametrize(
    ("moved", "pass_start", "start", "imported_ns", "still"),
    [
        (True, 1000, 1000, 0, 0.0),
        (False, 9000, 1000, 0, 1000.0),
        (False, NOT_SAID, 1000, 0, 9000.0),
        (False, NOT_SAID, 1000, 8999_000_000_000, 1.0),
        (False, NOT_SAID, 1000, NOT_SAID, None),
        (False, 11000, 1000, 0, 0.0),
        (NOT_SAID, 9000, 1000, 0, None),
    ],
)
def test_still(
    moved: bool | Unknown, pass_start: int | Unknown, start: int, imported_ns: int | Unknown, still: float | None
) -> None:
    world = World(MIRROR, now=10000.0)
    world.put(POOL, scan_moved=moved, scan_pass_start_s=pass_start, scan_start_s=start)
    world.put(POOL, kstat_clock_ns=9000_000_000_000, kstat_created_ns=imported_ns)
    assert world.get(POOL, "resilver_still_s") == still


STATUS = "".join(
    f"{line}\n"
    for line in (
        "  pool: tank",
        " state: DEGRADED",
        "  scan: resilver in progress since Mon Mar  4 11:12:13 2024",
        "PROGRESS",
        "config:",
        "",
        "\tNAME        STATE     READ WRITE CKSUM",
        "\ttank        ONLINE       0     0     0",
        "\t  sda       ONLINE       0     0     0",
        "",
        "errors: No known data errors",
    )
)


@pytest.mark.parametrize(
    ("progress", "moved"),
    [
        ("\t3.51T scanned at 13.4G/s, 1.59T issued at 6.07G/s, 6.13T total", True),
        ("\t3.51T / 6.13T scanned at 13.4G/s, 0B / 6.13T issued", True),
        ("\t0B scanned at 0B/s, 0B issued at 0B/s, 6.13T total", False),
        ("\t0B / 6.13T scanned, 0B / 6.13T issued", False),
        ("\t1.1M scanned at 0B/s, 2M issued 3K/s, 6.13T total", True),
        ("\tin a way that nobody knows", None),
    ],
)
def test_rates_say_whether_it_moves(progress: str, moved: bool | None) -> None:
    text = STATUS.replace("PROGRESS", progress)
    assert zpool_status.pools_of_text(text)[0].complete
    found = {
        fact.name: fact.value
        for fact in zpool_status.status.parse(Output(text, "zpool status tank"), Subject("pool", "tank"))
    }
    seen = found.get("scan_moved")
    assert (seen.value if isinstance(seen, Known) else None) is moved
