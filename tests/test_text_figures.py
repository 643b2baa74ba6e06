"""Figures for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.text import duration, size


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 bytes"),
        (512, "512 bytes"),
        (1023, "1,023 bytes"),
        (16384, "16 KiB"),
        (1_600_000, "1.53 MiB"),
        (2**30, "1 GiB"),
        (2**63, "8,192 PiB"),
    ],
)
def test_sizes(count: int, words: str) -> None:
    assert size(count) == words


@pytest.mark.parametrize(
    ("ns", "words"),
    [
        (0, "0 ns"),
        (5.3e-9, "0 ns"),
        (999, "999 ns"),
        (1000, "1 µs"),
        (811_900, "812 µs"),
        (1_114_111, "1.11 ms"),
        (999_800_000, "1,000 ms"),
        (38e9, "38 s"),
        (4e12, "4,000 s"),
    ],
)
def test_durations(ns: float, words: str) -> None:
    assert duration(ns) == words


@given(st.floats(-1e19, 1e19))
def test_nothing_is_spelt_with_an_exponent(number: float) -> None:
    assert abs(number) < 1e-3 or "e+" not in size(number).replace("bytes", "") + duration(number)
