"""What drives count of their own errors, by protocol, and what is no counter at all."""

from __future__ import annotations

import json

import pytest

from auditor import registry
from auditor.facts import Fact, Facts, Known, Subject, Unknown, Value, known
from auditor.host.request import Output
from auditor.model import derivation
from auditor.sources import smartctl

DISK = Subject("disk", "sda")
NVME: dict[str, Value] = {"nvme_critical_warning": 0, "nvme_media_errors": 0}


def derived(given: dict[str, Value]) -> Facts:
    facts = Facts()
    facts.put_all(Fact(DISK, name, known(each, f"{name} {each}")) for name, each in given.items())
    derivation.run(registry.derivations(), facts)
    return facts


def value(facts: Facts, name: str) -> Value | None:
    found = facts.get(DISK, name)
    return found.value if isinstance(found, Known) else None


@pytest.mark.parametrize(
    ("given", "unreadable"),
    [
        ({"smart_attributes_named": True, "smart_pending_sectors": 0, "smart_offline_uncorrectable": 0}, 0),
        ({"smart_attributes_named": True, "smart_pending_sectors": 8, "smart_offline_uncorrectable": 3}, 8),
        ({"smart_attributes_named": True, "smart_offline_uncorrectable": 3}, 3),
        ({"smart_attributes_named": False, "smart_offline_uncorrectable": 48000}, None),
        ({"smart_offline_uncorrectable": 48000}, None),
        ({"smart_uncorrected_errors": 536, "smart_grown_defects": 260}, 536),
        (NVME, 0),
        ({**NVME, "smart_nvme_critical_warning": 0, "smart_media_errors": 7}, 7),
        ({}, None),
    ],
)
def test_what_could_not_be_read(given: dict[str, Value], unreadable: int | None) -> None:
    facts = derived(given)
    assert value(facts, "unreadable") == unreadable
    assert value(facts, "counts_unreadable") is (None if unreadable is None else True)


def test_a_drive_without_such_a_counter_is_not_asked() -> None:
    assert value(derived({"smart_attributes_named": True}), "counts_unreadable") is False


def test_a_model_that_smartctl_does_not_know_is_not_judged_by_the_numbers_of_its_attributes() -> None:
    given: dict[str, Value] = {"smart_attributes_named": False, "smart_pending_sectors": 123456}
    why = derived(given).get(DISK, "counts_unreadable")
    assert isinstance(why, Unknown)
    assert (why.reasons[0].text, why.reasons[0].remedy) == (
        "smartctl does not know the model of sda: what its attributes count is not known",
        "update-smart-drivedb",
    )


@pytest.mark.parametrize(
    ("listed", "rpm", "named"), [(True, 0, True), (False, 0, False), (False, 7200, True), (None, 7200, None)]
)
def test_whose_attributes_have_a_meaning(listed: bool | None, rpm: int, named: bool | None) -> None:
    table = [{"name": "Offline_Uncorrectable", "raw": {"string": "48000"}}]
    answer = {"smartctl": {"exit_status": 0}, "rotation_rate": rpm, "ata_smart_attributes": {"table": table}}
    if listed is not None:
        answer["in_smartctl_database"] = listed
    found = {
        fact.name: fact.value for fact in smartctl.health.parse(Output(json.dumps(answer), "smartctl", 0, ""), DISK)
    }.get("smart_attributes_named")
    assert (found.value if isinstance(found, Known) else None) is named


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        ({"smart_percent_used": 3, "smart_attributes_named": True}, True),
        ({"smart_attributes_named": True}, False),
        ({"smart_attributes_named": False}, False),
        ({"nvme_percent_used": 3}, True),
        ({}, None),
    ],
)
def test_who_reports_wear_at_all(given: dict[str, Value], counts: bool | None) -> None:
    assert value(derived(given), "counts_wear") is counts
