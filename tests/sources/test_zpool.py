"""What is asked of commands from before OpenZFS 2: an option or property that they do not know makes them refuse all."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Known, Subject, unknown
from auditor.host.request import Run
from auditor.sources import zfs, zpool, zpool_status

POOL, ROOT = Subject("pool", "tank"), Subject("dataset", "tank")
NEW = {
    "special_small_blocks",
    "encryption",
    "keystatus",
    "keylocation",
    "multihost",
    "autotrim",
    "checkpoint",
    "-p",
    "-s",
    "-Hp",
}


def asked(module: tuple[int, ...], commands: tuple[int, ...] | None) -> set[str]:
    """Those words of the questions that not all releases know."""
    facts = Facts()
    facts.put(Fact(HOST, "zfs_version", Known(module, ())))
    say = unknown("zfs version: unrecognized command") if commands is None else Known(commands, ())
    facts.put(Fact(HOST, "zfs_userland_version", say))
    requests = [
        zpool.pools.request(HOST, facts), zpool_status.status.request(POOL, facts), zpool.properties.request(POOL, facts),
        zfs.properties.request(ROOT, facts), zfs.free_text.request(ROOT, facts),
    ]  # fmt: skip
    words = {part for each in requests if isinstance(each, Run) for word in each.argv for part in word.split(",")}
    exact = {"-Hp"} if isinstance(requests[0], Run) and "-Hp" in requests[0].argv else set()
    return (words & NEW) - {"-Hp"} | exact


@pytest.mark.parametrize(
    ("module", "commands", "not_asked"),
    [
        ((2, 1, 11), (2, 1, 11), set()),
        ((2, 1, 11), None, set()),
        ((0, 8, 4), (0, 8, 3), set()),
        ((0, 7, 13), None, NEW - {"multihost", "-Hp"}),
        ((0, 6, 5), None, NEW),
        ((2, 1, 11), (0, 7, 13), NEW - {"multihost", "-Hp"}),
    ],
)
def test_what_they_do_not_know_is_not_asked(
    module: tuple[int, ...], commands: tuple[int, ...] | None, not_asked: set[str]
) -> None:
    assert NEW - asked(module, commands) == not_asked
