"""Keys that cannot be reached without themselves."""

from __future__ import annotations

import pytest

from auditor.facts import Subject, Unknown, Value, unknown
from tests.model.test_model_pools import MIRROR, World

AES = "aes-256-gcm"


def dataset(name: str) -> Subject:
    return Subject("dataset", name)


DB = dataset("tank/db")


def world(**holders: str | Unknown) -> World:
    """tank is not encrypted; tank/db and tank/keys are encryption roots, and what is below them has their keys."""
    found = World(MIRROR)
    for name, cipher, location in (
        ("tank", "off", "none"),
        ("tank/db", AES, "file:///key"),
        ("tank/db/pg", AES, "none"),
        ("tank/keys", AES, "file:///other"),
        ("tank/keys/a", AES, "none"),
        ("tank/typed", AES, "prompt"),
    ):
        on = holders.get(name.rpartition("/")[2], ())
        lies_on: Value | Unknown = on if isinstance(on, Unknown) else (dataset(on),) if on else ()
        found.put(dataset(name), encryption=cipher, keylocation=location, key_lies_on=lies_on)
    return found


@pytest.mark.parametrize(
    ("holders", "inside"),
    [
        ({}, False),
        ({"db": "tank"}, False),
        ({"db": "tank/db"}, True),
        ({"db": "tank/db/pg"}, True),
        ({"db": "tank/typed"}, False),
        ({"db": "tank/keys/a"}, False),
        ({"db": "tank/keys/a", "keys": "tank/db/pg"}, True),
        ({"db": "tank/keys", "keys": "tank/keys"}, False),
        ({"db": "other/safe"}, False),
        ({"db": "tank/unseen"}, None),
        ({"db": unknown("it is not there")}, None),
        ({"db": "tank/keys/a", "keys": unknown("it is not there")}, None),
    ],
)
def test_key_inside(holders: dict[str, str | Unknown], inside: bool | None) -> None:
    assert world(**holders).get(DB, "key_inside") is inside


def test_below_a_dataset_that_is_not_encrypted_a_key_has_no_clear_owner() -> None:
    found = world(db="tank/db/pg")
    found.put(DB, encryption="off")
    assert "is not clear" in found.why(DB, "key_inside")
