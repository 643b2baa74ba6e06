"""``--format NAME[=FILE]``: which formats go where, several at once; and what monitors are told when there is no report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from auditor.commands._options import Output
from auditor.errors import EXIT_NOTHING
from auditor.interrupt import TooLate, waiting
from auditor.report import formats
from auditor.screen import look, note, write
from auditor.text import harmless

if TYPE_CHECKING:
    from auditor.judge.event import Severity
    from auditor.report.model import Report
    from auditor.report.report_reader import ReportDocument


class FormatChoice(NamedTuple):
    """A format, and the file that it goes to; None: standard output."""

    name: str
    file: Path | None


def report_formats(names: Sequence[str], default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--format`` and ``--output``."""

    def parsed(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[FormatChoice, ...]:
        return tuple(_wanted(value, names, ctx, param) for value in values)

    def offered(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if "=" in incomplete:
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]

    def options(command: Callable[..., Any]) -> Callable[..., Any]:
        words = "Write the report to a file: the one format that names none."
        command = click.option("-o", "--output", type=Output(), metavar="FILE", help=words)(command)
        words = f"{', '.join(names)}; several, of which all but one name a FILE.  [default: {default}]"
        name = "NAME[=FILE]"
        return click.option(
            "--format", "wanted", multiple=True, callback=parsed, metavar=name, help=words, shell_complete=offered
        )(command)

    return options


def _wanted(value: str, names: Sequence[str], ctx: click.Context, param: click.Parameter) -> FormatChoice:
    name, equals, file = value.partition("=")
    name = click.Choice(names).convert(name, param, ctx)
    if equals and not file:
        raise click.BadParameter(f"{name}=: the name of a file is missing.", ctx, param)
    return FormatChoice(name, Output().convert(file, param, ctx) if equals else None)


def settled(wanted: Sequence[FormatChoice], output: Path | None, default: str) -> tuple[FormatChoice, ...]:
    """All that is to be written. Raises UsageError where two would go to the same place, and for a file without a format."""
    chosen = tuple(wanted) or (FormatChoice(default, None),)
    if output:
        if all(each.file for each in chosen):
            raise click.UsageError("--output: every --format names a file already")
        chosen = tuple(each if each.file else each._replace(file=output) for each in chosen)
    places = [each.file for each in chosen]
    if twice := [place for place in places if places.count(place) > 1]:
        where = twice[0] or "standard output: let all but one name a file (--format json=FILE)"
        raise click.UsageError(f"two formats go to {where}")
    return chosen


def emit(wanted: Sequence[FormatChoice], text_of: Callable[[FormatChoice], str], summary: str) -> None:
    """Write them all, what goes to standard output last. One that cannot be written does not keep the others back. text_of: the
    text of one; summary: what stands in a file, in one line. Raises the first error."""
    trouble: list[Exception] = []
    for each in sorted(wanted, key=lambda one: one.file is None):
        format_ = formats.named(each.name)
        try:
            encoded = format_.page is None
            write(text_of(each), each.file, summary, encoded=encoded, mode=format_.mode)
        except BrokenPipeError:
            raise
        except Exception as error:
            trouble.append(error)
    for more in trouble[1:]:
        note(f"zaudit: {more}")
    if trouble:
        raise trouble[0]


def code(wanted: Sequence[FormatChoice], own: int, data: Callable[[], ReportDocument]) -> int:
    """The exit code: that of the report, or what the protocol of a format on standard output wants."""
    for each in wanted:
        if each.file is None and (status := formats.named(each.name).status):
            return status(data())
    return own


@contextmanager
def promised(wanted: Sequence[FormatChoice]) -> Iterator[None]:
    """Where the block ends without a report, the files that others poll say so: the old ones must not go on saying what they
    said. What goes to standard output instead is said where errors are (auditor/cli.py)."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (Exception, TooLate) as error:
        for each in wanted:
            format_ = formats.named(each.name)
            if each.file and format_.failed:
                from auditor.host import user_files

                with suppress(Exception), waiting():  # the first error is the one to tell
                    text = format_.failed(harmless(str(error)), time.time())
                    user_files.replace(each.file, text.encode(), format_.mode)
        raise


def polled(words: Sequence[str]) -> str:
    """The format on standard output that a monitor reads, or empty. words: of a command line that may not be understood."""
    values = [word.removeprefix("--format=") for word in words if word.startswith("--format=")]
    values += [after for word, after in pairwise(words) if word == "--format"]
    names = (value.removesuffix("=-") for value in values)
    return next((name for name in names if name in formats.names() and formats.named(name).failed), "")


def unanswered(words: Sequence[str], text: str, own: int) -> tuple[str, int]:
    """(what such a monitor is told in place of a report, or empty; the exit code: its own, or UNKNOWN to a plugin)."""
    name = polled(words)
    if not name or not (failed := formats.named(name).failed):
        return "", own
    return failed(harmless(text), time.time()), EXIT_NOTHING if formats.named(name).status else own


# A report that is made, and what it looks like in each format that is wanted of it.


class Done:
    """A report, and what it looks like in each format. The data of it is made once, and only where a format wants it."""

    def __init__(self, report: Report, verbose: int, least: Severity) -> None:
        self._report, self._verbose, self._shown = report, verbose, report.above(least)
        self._data: ReportDocument | None = None

    def text(self, wanted: FormatChoice) -> str:
        """In one format; a file is no terminal."""
        format_ = formats.named(wanted.name)
        if format_.page:
            report = self._report if wanted.name == "json" else self._shown
            return format_.page(report, self._verbose, look(wanted.file))
        return format_.render(self.data())

    def data(self) -> ReportDocument:
        from auditor.report import report_json
        from auditor.report.report_reader import parse_report

        self._data = self._data or parse_report(report_json.document(self._report))
        return self._data
