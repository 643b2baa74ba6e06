"""The lists themselves: nothing is named that does not exist, and nothing is missing that people tick off elsewhere."""

from __future__ import annotations

import pytest

from auditor.checklist import lists, responses
from auditor.host import sql
from auditor.registry import registry
from auditor.verify.result import KERNEL_LOG
from tests.checklist import worlds

LINES = {line.id: line for each in lists.load() for line in each.lines}
# what administrators tick off, list by list -> the lines that ask it
ASKED: dict[str, dict[str, tuple[str, ...]]] = {
    "log": {
        "power-loss protection, or a risk that somebody accepts in writing": ("log-protected",),
        "mirrored, so that one device less loses nothing": ("log-mirrored",),
        "chosen for even latency, not for the highest throughput": ("log-steady",),
        "its latency is watched while many commit": ("log-keeps-up", "log-watched"),
        "simple: one good device instead of several doubtful ones": ("log-simple",),
    },
    "figures": {
        "too fast, while nothing is written to the log devices": ("figures-possible",),
        "good for a minute, bad for an hour": ("figures-last",),
        "a good mean, and a database that times out": ("figures-tail",),
        "sync or the database's flushing relaxed for speed, and no power cut tried": (
            "figures-settings",
            "figures-power-cut",
        ),
        "nobody knows which system calls are made": ("figures-explained",),
    },
    "benchmark": {
        "how the database commits": ("benchmark-commits",),
        "properties, and whence they are inherited": ("benchmark-properties",),
        "the log device and of what kind it is": ("benchmark-log",),
        "one profile for the log, one for the data": ("benchmark-parts",),
        "the system calls, by strace": ("benchmark-calls",),
        "long enough": ("benchmark-long",),
        "devices, transaction groups, the processor and percentiles, while it runs": ("benchmark-witnesses",),
        "a decision from p99 and p99.9": ("benchmark-decided",),
    },
}


def test_every_line_that_people_tick_off_is_there_in_their_order() -> None:
    asked = {id: [line for lines in asked.values() for line in lines] for id, asked in ASKED.items()}
    assert {each.id: [line.id for line in each.lines] for each in lists.load()} == asked


def test_every_rule_fact_link_and_part_that_is_named_exists() -> None:
    facts = {f"{kind}.{name}" for kind, name in registry()}
    assert set(sql.DRIVERS) == lists.BY_SESSION
    for line in LINES.values():
        assert {*line.rules, *line.against} <= worlds.by_id().keys(), line.id
        assert {*line.facts} <= facts, line.id
        assert {each.partition(".")[0] for each in line.facts} - {"database"} <= {"dataset", "pool", "host"}, line.id
        assert {each for each in line.facts if each.startswith("database.")} <= {"database.live"}
        assert {*line.links} <= {"devices", KERNEL_LOG, *responses.UPPER}, line.id
        assert {*line.verify} <= responses.VERIFY_PARTS.keys(), line.id
        assert {*line.diagnose} <= responses.DIAGNOSE_PARTS.keys(), line.id
        assert not {*line.rules} & {*line.against}, line.id


def test_every_part_is_asked_for() -> None:
    assert {part for line in LINES.values() for part in line.verify} == responses.VERIFY_PARTS.keys()
    assert {part for line in LINES.values() for part in line.diagnose} == responses.DIAGNOSE_PARTS.keys()
    assert {*responses.VERIFY_PARTS} >= responses.LONG | responses.STANDARD


@pytest.mark.parametrize("id", LINES)
def test_a_line_fits_on_a_line_of_a_terminal(id: str) -> None:
    assert len(LINES[id].text) <= 73
    assert not LINES[id].text.endswith(".")
