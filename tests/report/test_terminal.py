"""What the reports for a terminal have in common."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len
from rich.text import Text

from auditor.report import audit_page
from auditor.report.terminal import Whole, printed
from tests import shared
from tests.golden import HOSTS, report_of


def lines(parts: list[str], width: int) -> list[str]:
    whole = Whole(Text(each) for each in parts)
    return printed([whole], width=width, color=False, ascii_only=False).splitlines()


def test_a_part_is_not_divided_where_it_fits_a_line() -> None:
    parts = ["zaudit 0.2.0", " · tank on db1", " · 2 high", " · 22 undecided"]
    assert lines(parts, 60) == ["".join(parts)]
    assert lines(parts, 40) == ["zaudit 0.2.0 · tank on db1 · 2 high", "22 undecided"]
    assert lines(["x" * 50, "   2 high", " · 3 low"], 40) == ["x" * 40, "x" * 10, "2 high · 3 low"]


def test_the_first_lines_of_a_report_keep_numbers_with_their_words() -> None:
    report = report_of(HOSTS / "2.3-drives-that-warn")
    for width in shared.some(range(40, 140), 7):
        for verbose in (False, True):
            said = audit_page.write_text(report, width=width, verbose=verbose)
            assert not re.search(r" \d+$\n(?:high|medium|low|undecided)", said, re.MULTILINE), (width, verbose)


SHOWN = shared.briefly([(name,) for name in shared.HOSTS.names()], quick=12)


@pytest.mark.parametrize("name", SHOWN)
def test_nothing_is_cut_at_any_width(name: str) -> None:
    """Each letter of a wide page is on a narrow one, and no line is longer than the screen."""
    report = report_of(HOSTS / name)
    wide = letters(audit_page.write_text(report, width=2000))
    for width in (40, 60, 80, 120):
        page = audit_page.write_text(report, width=width)
        assert letters(page) == wide
        assert max(map(cell_len, page.splitlines())) <= width


def letters(page: str) -> str:
    """Without blanks, and the dots that join parts of the first line."""
    return re.sub(r"[\s·]", "", page)
