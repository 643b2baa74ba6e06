"""Kernels that a release was made for."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Known, known
from auditor.model.kernel_module import LAST, NEWEST, kernel_unsupported


@pytest.mark.parametrize(
    ("text", "kernel", "expected"),
    [
        ("2.2.2-1", "6.6.11-1-lts", False),
        ("2.2.2-1", "6.7.0", True),
        ("2.2.2", "6.8.0-31", True),
        ("2.2.2-pve1", "6.8.4-2-pve", None),
        ("2.2.2-pve1", "6.5.13-5-pve", False),
        ("2.1.5-1ubuntu6~22.04.4", "6.8.0-40-generic", None),
        ("2.1.5-1ubuntu6~22.04.4", "5.15.0-25-generic", False),
        ("0.8.3-1", "5.5.0", True),
        ("2.1.16-1", "6.12.1", True),
        ("2.1.17-1", "6.12.1", None),
        ("2.4.4-1", "7.2.0", False),
        ("2.4.5-1", "7.3.0", None),
        ("2.3.99-1", "6.11.0", None),
        ("0.7.13-1", "4.9.0", None),
        ("2.2.9-1", "no number", None),
    ],
)
def test_newer_than_supported(text: str, kernel: str, expected: bool | None) -> None:
    facts = Facts()
    numbers = tuple(int(each) for each in text.partition("-")[0].split("."))
    for name, value in (("zfs_version", numbers), ("zfs_version_text", text), ("kernel_release", kernel)):
        facts.put(Fact(HOST, name, known(value, str(value))))
    (found,) = kernel_unsupported.derive(HOST, facts)
    assert (found.value.value if isinstance(found.value, Known) else None) is expected


def test_each_line_begins_with_its_first_release_and_goes_up() -> None:
    for line, steps in NEWEST.items():
        assert 0 in steps
        assert max(steps) <= LAST[line]
        assert list(steps.values()) == sorted(steps.values())
