"""Scrubs that are scheduled, and memory that is corrected: what decides, and what stays unknown."""

from __future__ import annotations

import pytest

from auditor.derive import memory_ecc, scrub_schedule
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Value, known, unknown
from auditor.text import unit_escaped

TANK = Subject("pool", "tank")


def scheduled(
    timers: tuple[str, ...] | None,
    cron: tuple[str, ...] | None,
    pool: Subject = TANK,
    kernel: str | None = "6.12.57+deb13-amd64",
) -> object:
    facts = Facts()
    for name, value in (("scrub_timers", timers), ("scrub_cron", cron), ("kernel_release", kernel)):
        facts.put(Fact(HOST, name, unknown("not seen") if value is None else known(value, "seen")))
    ((_, _, found),) = scrub_schedule.derive(pool, facts)
    return found.value if isinstance(found, Known) else None


def test_a_scrub_that_is_scheduled() -> None:
    assert scheduled(("zfs-scrub-weekly@tank.timer",), None) is True
    assert scheduled(("zfs-scrub.timer",), None) is True
    assert scheduled(None, ("/etc/cron.d/zfsutils-linux",)) is True
    assert scheduled((), ()) is False
    assert scheduled(("zfs-scrub-weekly@other.timer", "btrfs-scrub.timer"), ()) is False
    assert scheduled((), None) is None
    assert scheduled(None, ()) is None
    assert scheduled((), (), kernel=None) is None  # it may be TrueNAS, whose jobs were not looked at


def test_a_pool_whose_name_systemd_spells_otherwise() -> None:
    assert unit_escaped("my-pool 1") == "my\\x2dpool\\x201"
    assert scheduled(("zfs-scrub-monthly@my\\x2dpool\\x201.timer",), (), Subject("pool", "my-pool 1")) is True


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
