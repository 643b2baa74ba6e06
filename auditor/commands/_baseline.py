"""``--baseline FILE``: reading it, and writing the one of tomorrow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from auditor.commands._options import Local
from auditor.commands._terminal import written

if TYPE_CHECKING:
    from auditor.facts import Facts
    from auditor.judge.baseline import Baseline
    from auditor.report.model import Report

OPTIONS = (
    ("--baseline", {"type": Local(dir_okay=False), "metavar": "FILE"},
     "What FILE knows does not count unless it got worse; what could not be checked this time counts as unknown."),
    ("--write-baseline", {"is_flag": True}, "Enter all failures of this run into the baseline as known."),
    ("--accept-undecided", {"is_flag": True}, "With --write-baseline: enter unknown rules, too."),
    ("--update", {"is_flag": True}, "Drop what is gone from the baseline and note when the rest was seen; accept nothing new."),
)  # fmt: skip


class Wish(NamedTuple):
    """path: of the baseline, or None. accept: the outcomes of which all is known from now on. write: write the file anew."""

    path: Path | None
    accept: frozenset[str]
    write: bool


def baseline_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The four options."""
    for name, kind, words in reversed(OPTIONS):
        command = click.option(name, help=words, **kind)(command)
    return command


def wish(path: Path | None, write: bool, undecided: bool, update: bool) -> Wish:
    """From the options. Raises UsageError."""
    if (write or update) and not path:
        raise click.UsageError("--write-baseline and --update need --baseline FILE")
    if undecided and not write:
        raise click.UsageError("--accept-undecided needs --write-baseline")
    accept = frozenset(("fail", *(["unknown"] if undecided else []))) if write else frozenset[str]()
    return Wish(path, accept, write or update)


def read(wish: Wish, facts: Facts, targets: tuple[str, ...], *, trusted: bool) -> Baseline | None:
    """The baseline that is to be followed, an empty one where it is yet to be made. Raises BaselineError and OSError.

    trusted: refuse one that another user could have written. A baseline silences findings, and the nightly job of root must not
    be silenced by whoever may write its folder.
    """
    if not wish.path:
        return None
    from auditor.host import user_files
    from auditor.judge import baseline, baseline_file

    try:
        data = user_files.read(wish.path, baseline_file.LIMIT, trusted=trusted)
    except FileNotFoundError:
        if wish.accept:
            return baseline.empty(facts, targets)
        raise click.UsageError(f"{wish.path}: there is no baseline yet; --write-baseline creates it") from None
    found = baseline_file.parse(data, str(wish.path))
    baseline_file.must_fit(found, baseline.host(facts), targets, str(wish.path))
    return found


def retired_names(wish: Wish, report: Report) -> list[str]:
    """A line for each retired rule of which the baseline knows a finding: what took its place knows nothing of it."""
    from auditor.data import retired

    rules = {entry.rule for entry in report.night.kept} if report.night else set[str]()
    return [f"{wish.path}: no effect, {sentence}" for id, sentence in retired.load().items() if id in rules]


def write(wish: Wish, report: Report, facts: Facts) -> None:
    """Where it is wished; what a retired rule knew is forgotten. Raises writing.CannotWrite."""
    if not wish.path or not report.night or not wish.write:
        return
    from auditor.host import user_files
    from auditor.judge import baseline, baseline_file

    new = baseline.updated(report.night, report.verdicts, facts, wish.accept)
    user_files.replace(wish.path, baseline_file.text(new).encode())
    failed = sum(each.outcome == "fail" for each in new.entries.values())
    written(wish.path, f"{failed} failures and {len(new.entries) - failed} undecided are known")
