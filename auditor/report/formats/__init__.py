"""What a report may look like. A format is one of the FORMATS of a module of this folder, and a name in MODULES, which is the
list that the commands offer without loading any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from auditor.report.model import Report
    from auditor.report.report_reader import ReportDocument

MODULES = {
    **dict.fromkeys(("terminal", "html", "json", "markdown"), "pages"),
    **dict.fromkeys(
        ("checkmk", "jsonl", "junit", "nagios", "npd", "prometheus", "sarif", "sarif-github", "summary"), "exchange"
    ),
}


class Format(NamedTuple):
    """A format.

    text: of a report as data, so that it can be made of a report that was kept.
    page: its text of the report itself (report, verbose, look), if it is more than data.
    failed: of one that a monitor reads, what is said when there is no report (why, when).
    status: where its protocol has exit codes of its own.
    mode: who may read the file, if not its owner alone.
    """

    text: Callable[[ReportDocument], str] | None = None
    page: Callable[[Report, int, Mapping[str, Any]], str] | None = None
    failed: Callable[[str, float], str] | None = None
    status: Callable[[ReportDocument], int] | None = None
    mode: int = 0o600

    def render(self, report: ReportDocument) -> str:
        assert self.text
        return self.text(report)


def names() -> tuple[str, ...]:
    return tuple(sorted(MODULES))


def named(name: str) -> Format:
    found: Format = import_module(f"{__name__}.{MODULES[name]}").FORMATS[name]
    return found


def of_data() -> tuple[str, ...]:
    """Those that can be made of a report that was kept."""
    return tuple(name for name in names() if named(name).text)
