"""``zaudit alert``: what is new in the latest report is passed to a program of the site, once.

The program runs with the rights of the caller, so it must be one that nobody else could have put there
(:mod:`auditor.host.trust`), and so must be the report and what was reported last. It is started without a shell, with one
argument, nothing of the caller's environment, and a time-out.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from auditor import interrupt
from auditor.commands import _options
from auditor.commands._options import SEVERITIES, Local, deadline, is_old
from auditor.errors import EXIT_BROKE, Stop
from auditor.screen import note, say

HOOK = Path("/etc/zaudit/alert")


class NotTold(Stop):
    """Why nobody was told; it is tried again with the next report."""

    exit_code = EXIT_BROKE


@click.command(short_help="Pass what is new in a report to a program of yours.")
@click.argument("report", type=Local(), metavar="REPORT")
@click.option("--hook", type=Local(), default=HOOK, show_default=True, metavar="FILE",
              help="The program; it gets the name of a JSON file. If it does not exist, nothing is done.")  # fmt: skip
@click.option("--fail-on", type=click.Choice(SEVERITIES), default="low", show_default=True,
              help="Do not report what is new below this.")  # fmt: skip
@_options.max_age("Treat an older report as missing, which is reported, too.")
@_options.timeout("Give up on the program after this time.", 60.0)
@deadline("Give up on REPORT after this time.", ("report",))
def alert(report: Path, hook: Path, fail_on: Any, max_age: float | None, timeout: float, **_: Any) -> None:
    """Compare REPORT (zaudit check --format json) with the last one that was reported, and run FILE when something is new or
    worse, or when there is no report. Next to REPORT it keeps told.json, what was reported, and alert.json, which FILE is
    given: the answer in one line ("summary") and what changed ("difference", as in zaudit diff; null the first time).

    Exit code: 0 when there was nothing to report, or it was reported; 1 when FILE cannot be run or failed; 2 when REPORT could
    not be read within --deadline.
    """
    from auditor.host import process, trust

    program = hook.absolute()
    try:
        program.lstat()
    except (FileNotFoundError, NotADirectoryError):
        note(f"zaudit alert: there is no {hook}")
        return
    if why := process.refusal(str(program)):
        raise NotTold(f"{hook}: not run: {why}")
    try:
        folder = Path(trust.locate_folder(str(report.parent)))
    except OSError as error:
        raise NotTold(f"{report.parent}: nothing is reported from there: {error.strerror}") from None
    told = folder / "told.json"
    document, trouble = _document(report, max_age)
    news = _news(document, told, fail_on) if document else {"summary": f"no report: {trouble}", "difference": None}
    if news:
        _tell(str(program), folder / "alert.json", {"schema": "zaudit-alert/1", "report": str(report), **news}, timeout)
        say(f"told: {news['summary']}")
    if document:
        from auditor.host import user_files

        user_files.replace(told, json.dumps(document).encode())


def _document(report: Path, max_age: float | None) -> tuple[dict[str, Any] | None, str]:
    """(the report, why there is none)."""
    from auditor.commands._auditing import read_report
    from auditor.report.report_reader import parse_report

    try:
        document = read_report(report, trusted=True)
        age = time.time() - parse_report(document).taken
    except click.ClickException as error:
        return None, error.format_message()
    except OSError as error:
        return None, f"{report}: {error.strerror or error}"
    except Stop as error:
        return None, str(error)
    if is_old(age, max_age):
        return None, f"{report} is {age / 3600:.1f} hours old"
    return document, ""


def _news(document: dict[str, Any], told: Path, fail_on: Any) -> dict[str, Any]:
    """What there is to tell; empty when nothing is."""
    from auditor.commands._auditing import read_report
    from auditor.report import changes
    from auditor.report.formats.monitors import summary as summarize
    from auditor.report.report_reader import parse_report

    summary = summarize(parse_report(document)).strip()
    try:
        before = read_report(told, trusted=True)
        found = changes.compare(before, document)
    except (OSError, click.UsageError, changes.CompareError):
        return {"summary": summary, "difference": None} if document["exit_code"] else {}
    code = found.exit_code(fail_on)
    return {"summary": summary, "difference": changes.as_json(found, before, document, code)} if code else {}


def _tell(program: str, file: Path, news: dict[str, Any], timeout: float) -> None:
    """Raises NotTold."""
    from auditor.host import process, user_files
    from auditor.host.live import ENVIRONMENT
    from auditor.host.process import Time

    user_files.replace(file, json.dumps(news, indent=1).encode())
    with interrupt.waiting():  # it has a time-out of its own
        done = process.run((program, str(file)), Time.of(timeout), ENVIRONMENT)
    if done.fault or done.exit:
        said = done.stderr.decode(errors="replace").strip()[-300:]
        raise NotTold(f"{program}: {done.fault or f'exit code {done.exit}'}{f': {said}' if said else ''}")


COMMAND = alert
