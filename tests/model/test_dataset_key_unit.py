"""A key that is loaded, and the unit that systemd goes by."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Subject, Unknown, unknown
from tests.model.test_model_pools import World

ENC = Subject("dataset", "tank/enc")
UNSEEN = unknown("systemctl: not installed")


@pytest.mark.parametrize(
    ("bound", "active", "unit"),
    [
        ((), UNSEEN, "none"),
        (("tank/other",), (), "none"),
        (("tank/enc",), (), "not started"),
        (("tank/enc",), ("tank/other", "tank"), "not started"),
        (("tank/enc",), ("tank/enc",), "started"),
        (("tank/enc",), UNSEEN, None),
        (UNSEEN, ("tank/enc",), None),
    ],
)
def test_the_unit_of_its_key(
    bound: tuple[str, ...] | Unknown, active: tuple[str, ...] | Unknown, unit: str | None
) -> None:
    world = World()
    world.put(HOST, keys_bound=bound, key_units_active=active)
    world.put(ENC, encryption="aes-256-gcm")
    assert world.get(ENC, "key_unit") == unit
