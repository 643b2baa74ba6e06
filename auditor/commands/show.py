"""``zaudit show``: a JSON report that was kept, in another format. It looks at nothing, judges nothing and needs no rights."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import click

from auditor.commands._formats import FormatChoice, code, emit, promised, report_formats, settled
from auditor.commands._options import Local, deadline, is_old
from auditor.commands._options import max_age as max_age_option
from auditor.errors import EXIT_NOTHING, Stop
from auditor.report import formats

DEFAULT = "markdown"


class TooOld(Stop):
    """A report from which nothing of today can be said."""

    exit_code = EXIT_NOTHING


@click.command(short_help="Show a JSON report in another format.")
@click.argument("report", type=Local(), metavar="REPORT")
@report_formats(formats.of_data(), DEFAULT)
@max_age_option("Treat an older report as missing: exit code 3 (monitors: UNKNOWN).")
@deadline("Give up on REPORT after this time.", ("report",))
def show(
    report: Path, wanted: tuple[FormatChoice, ...], output: Path | None, max_age: float | None, **_: Any
) -> NoReturn:
    """Convert REPORT, written by zaudit check --format json, to other formats, as it was judged then; reports of older
    releases, too. A monitor needs no rights on the host for it.

    Exit code: that of the report; with --format nagios on standard output 0 to 3.
    """
    from auditor.commands._auditing import read_report
    from auditor.report.report_reader import parse_report

    wanted = settled(wanted, output, DEFAULT)
    with promised(wanted):
        kept = parse_report(read_report(report))
        age = time.time() - kept.taken
        if max_age is not None and is_old(age, max_age):
            raise TooOld(f"{report}: {_age(age)}; --max-age allows {max_age / 3600:g} hours")
    emit(
        wanted,
        lambda each: formats.named(each.name).render(kept),
        f"{kept.headline} (exit code {kept.exit_code})",
    )
    sys.exit(code(wanted, kept.exit_code, lambda: kept))


def _age(seconds: float) -> str:
    return f"it is {seconds / 3600:.1f} hours old" if seconds >= 0 else "it is of the future"


COMMAND = show
