"""``zaudit diff``: what changed between two recordings or reports; an exit code for a ratchet."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from auditor.commands._options import Local, deadline, fail_on, folders, formats
from auditor.screen import ascii_only, say, width

if TYPE_CHECKING:
    from auditor.report.changes import Comparison
    from auditor.report.sides import Sides

KIND = Local()


@click.command(short_help="Compare two recordings or JSON reports.")
@click.argument("old", type=KIND, metavar="OLD")
@click.argument("new", type=KIND, metavar="NEW")
@click.option("--side-by-side", is_flag=True,
              help="OLD is a primary, NEW its standby: where it is worse, and what a failover would change.")  # fmt: skip
@formats
@fail_on
@folders
@deadline("Give up on OLD and NEW after this time.", ("old", "new"))
def diff(
    old: Path,
    new: Path,
    side_by_side: bool,
    format_: str,
    fail_on: Any,
    failed_only: bool,
    folders: tuple[Path, ...],
    **_: Any,
) -> NoReturn:
    """What is new, worse, changed, better and gone from OLD to NEW: recordings (folder, .tar.gz or .zaudit), which are
    judged by today's rules, or reports of zaudit check --format json; one of each is fine.

    Exit code: 0 when nothing at or above --fail-on is new or worse, else 11 to 14 for the worst that is or may be; with
    --failed-only for the worst new failure, and 10 when some could not be decided. With --side-by-side: for what is or may be
    worse on the standby.
    """
    from auditor.report import changes, sides, terminal
    from auditor.report.document import Block

    before, after = (_document(path, folders) for path in (old, new))
    found: Comparison | Sides
    try:
        found = sides.compare(before, after) if side_by_side else changes.compare(before, after)
    except changes.CompareError as error:
        raise click.UsageError(f"not a report of zaudit: {error}") from None
    code = found.exit_code(fail_on, failed_only=failed_only)
    document: dict[str, Any]
    blocks: Iterator[Block]
    if isinstance(found, sides.Sides):
        document, blocks = sides.as_json(found, code), sides.page(found, code)
    else:
        document, blocks = changes.as_json(found, before, after, code), changes.page(found, before, after, code)
    if format_ == "json":
        say(json.dumps(document, indent=1))
    else:
        say(terminal.fragment(blocks, width=min(width(), 120), ascii_only=ascii_only()))
    sys.exit(code)


def _document(path: Path, folders: tuple[Path, ...]) -> dict[str, Any]:
    """The report of a recording, or one that was written to a file."""
    from auditor.commands._auditing import read_report
    from auditor.recording import replacing

    if path.is_file() and not replacing.is_archive(path):
        return read_report(path)
    from auditor import audit, rulebook
    from auditor.recording import recording
    from auditor.report import report_json as report

    past = recording.load(path)
    seen = audit.replay(past)
    return report.document(audit.judge(seen, rulebook.select(folders, (), (), seen.policy), past.targets, "low"))


COMMAND = diff
