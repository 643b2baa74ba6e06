"""The bench starts: a row of each kind, once. How fast it is, the bench itself says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.recording import recording
from tests.bench import measure, short, tools
from tests.bench.__main__ import NATIVE, RECORDING, zaudit


@pytest.mark.slow
def test_a_live_check_and_a_command_are_measured(tmp_path: Path) -> None:
    small = recording.load(RECORDING)
    tools.lay_out(small, tmp_path / "host", NATIVE)
    live = short.row("live", lambda: measure.host(tmp_path / "host", small.taken), pairs=1)
    rules = short.row("rules", lambda: measure.run((zaudit(), "rules")), pairs=1)
    assert min(live.units, rules.units) > 0


def test_what_ends_in_an_error_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match="exit code 2"):
        short.row("wrong", lambda: measure.run((zaudit(), "rules", "--no-such-option")), pairs=1)


@pytest.mark.parametrize(("units", "base", "miss"), [(1.2, 1.0, False), (1.3, 1.0, True), (1.0, None, True)])
def test_a_quarter_more_than_the_base_is_a_miss(units: float, base: float | None, miss: bool) -> None:
    row = short.Row("x", units, 1.0, 1.0)
    assert short.missed(row, base) is miss
    assert ("MISSED" in short.told(row, base)) is miss


def test_every_row_that_is_frozen_is_a_number() -> None:
    assert all(isinstance(each, float) and each > 0 for each in json.loads(short.BASE.read_text()).values())
