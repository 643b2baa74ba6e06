"""``zaudit advise db``: the table is sound, and what is set is compared with it; nothing is ever set."""

from __future__ import annotations

import pytest

from auditor.commands.advise import share
from auditor.data import TableError, advice
from auditor.databases import ENGINES
from tests.fake import CommandLine
from tests.golden import HOSTS

ENTRY = """[[advice]]
engines = []
parts = ["data"]
type = "any"
property = "recordsize"
value = "16K"
also = []
reason = "a"
cost = "b"
source = "c"
dispute = ""
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", advice.PARTS)
@pytest.mark.parametrize("kind", ["filesystem", "volume"])
def test_each_engine_is_told_what_decides(engine: str, part: str, kind: str) -> None:
    found = {each.property: each for each in advice.of(engine, part, kind)}
    size = found["recordsize" if kind == "filesystem" else "volblocksize"]
    assert isinstance(size.value, int)
    assert {"sync", "logbias", "primarycache", "checksum"} <= set(found)
    assert found["sync"].value == "standard"
    assert "disabled" not in found["sync"].also


def test_engines_of_the_table_are_engines() -> None:
    assert {name for each in advice.load() for name in each.engines} <= set(ENGINES)


def test_what_differs_is_told_with_its_command(zaudit: CommandLine) -> None:
    done = zaudit(
        "advise", "db", "mysql", "tank/db", "--part", "data", "--replay", str(HOSTS / "2.3-sync-disabled-local")
    )
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("MySQL InnoDB on tank/db: its data. Nothing is changed by this.")
    assert (
        "sync: sync=disabled, inherited from tank; advised: standard\n  do       zfs set sync=standard tank/db\n"
        in done.out
    )
    assert "logbias: logbias=latency (default): as advised" in done.out
    assert "  do       zfs set recordsize=16K tank/db" in done.out


def test_a_dataset_that_is_not_there(zaudit: CommandLine) -> None:
    done = zaudit("advise", "db", "mysql", "tank/dbx", "--replay", str(HOSTS / "2.3-sync-disabled-local"))
    assert done.code == 3


def test_the_share_of_a_raidz_is_told(zaudit: CommandLine) -> None:
    done = zaudit("advise", "db", "postgres", "tank/db", "--replay", str(HOSTS / "2.4-healthy-raidz1"))
    assert "of the raw space blocks hold 8K" in done.out


@pytest.mark.parametrize(
    ("block", "disks", "parity", "ashift", "part"),
    [(8192, 3, 1, 12, 1 / 2), (16384, 6, 2, 12, 2 / 3), (8192, 6, 2, 12, 1 / 3), (131072, 6, 2, 12, 32 / 48)],
)
def test_share(block: int, disks: int, parity: int, ashift: int, part: float) -> None:
    """By hand, after vdev_raidz_psize_to_asize(): parity for each row, and rounded up to parity + 1 sectors."""
    assert share(block, disks, parity, ashift) == pytest.approx(part)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('value = "16K"', 'value = "16X"'), "invalid literal"),
        (('type = "any"', 'type = "pool"'), "type is one of"),
        (('reason = "a"', 'reason = ""'), "not empty"),
        (("also = []", "also = 1"), "lists of words"),
        (('cost = "b"\n', ""), "missing or unknown cost"),
    ],
)
def test_a_wrong_table_is_an_error(change: tuple[str, str], says: str) -> None:
    assert advice.parse(ENTRY)
    with pytest.raises(TableError, match=says):
        advice.parse(ENTRY.replace(*change))
