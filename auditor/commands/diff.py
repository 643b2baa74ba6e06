"""``zaudit diff``: what changed between two recordings or reports; an exit code for a ratchet."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from auditor import __version__
from auditor.commands._options import SEVERITIES, Local, deadline, fail_on, folders, formats
from auditor.screen import say, width

if TYPE_CHECKING:
    from auditor.report.changes import Comparison, Difference

EVIDENCE_SHOWN = 3
RULES_SHOWN, FAILED_SHOWN = 3, 8
CAUSE = 3  # rules that cannot tell for the same reasons are told together
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
    from auditor.report import changes

    before, after = (_document(path, folders) for path in (old, new))
    try:
        if side_by_side:
            _side_by_side(before, after, format_, fail_on, failed_only)
        found = changes.compare(before, after)
    except changes.CompareError as error:
        raise click.UsageError(f"not a report of zaudit: {error}") from None
    code = found.exit_code(fail_on, failed_only=failed_only)
    if format_ == "json":
        say(json.dumps(as_json(found, before, after, code), indent=1))
    else:
        say("\n".join(_page(found, before, after, code, min(width(), 120))))
    sys.exit(code)


def _side_by_side(
    primary: dict[str, Any], standby: dict[str, Any], format_: str, fail_on: Any, failed_only: bool
) -> NoReturn:
    """Two hosts, and not one host twice. Raises CompareError."""
    from auditor.commands import _diff_sides
    from auditor.report import sides

    found = sides.compare(primary, standby)
    code = found.exit_code(fail_on, failed_only=failed_only)
    say(_diff_sides.as_json(found, code) if format_ == "json" else _diff_sides.page(found, code, min(width(), 120)))
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


def as_json(found: Comparison, before: dict[str, Any], after: dict[str, Any], code: int) -> dict[str, Any]:
    """``zaudit-diff/1``."""
    heads = [
        {key: each.get(key) for key in ("host", "openzfs", "taken", "targets", "zaudit", "rules", "recording")}
        for each in (before, after)
    ]
    changes = [
        {
            "change": each.change,
            "rule": each.shown.rule,
            "subject": each.shown.subject,
            "title": each.shown.title,
            **{
                when: {
                    "outcome": seen.outcome,
                    "severity": seen.severity,
                    "evidence": list(seen.evidence),
                    **({"known": True} if seen.known else {}),
                }
                for when, seen in (("before", each.before), ("after", each.after))
                if seen
            },
        }
        for each in found.differences
    ]
    return {
        "schema": "zaudit-diff/1",
        "zaudit": __version__,
        "before": heads[0],
        "after": heads[1],
        "notes": list(found.notes),
        "changes": changes,
        "same": found.same,
        "decided": found.decided,
        "exit_code": code,
    }


def _page(found: Comparison, before: dict[str, Any], after: dict[str, Any], code: int, columns: int) -> Iterator[str]:
    from auditor.report import changes
    from auditor.text import harmless

    yield harmless(" to ".join(f"{each.get('host')} {each.get('taken')}" for each in (before, after)))
    for note in found.notes:
        yield from textwrap.wrap(harmless(f"Mind: {note}"), columns, subsequent_indent="      ", break_on_hyphens=False)
    then = [each.shown.rule for each in found.differences if _quiet_then(each)]
    alone, causes = _causes([each for each in found.differences if not _quiet_then(each)])
    for cause in causes:
        yield ""
        for text, margin in _one_cause(cause):
            yield from textwrap.wrap(
                harmless(text), columns, initial_indent=" " * margin, subsequent_indent=" " * 10, break_on_hyphens=False
            )
    for (head, lines), alike in groupby(alone, _words):
        where = ", ".join(each.shown.subject for each in alike)
        yield ""
        for text, margin in ((head.replace("{}", where, 1), 0), *((line, 10) for line in lines)):
            yield from textwrap.wrap(
                harmless(text),
                columns,
                initial_indent=" " * margin,
                subsequent_indent=" " * max(margin + 2, 10 - margin),
                break_on_hyphens=False,
            )
    yield ""
    if then:
        yield from textwrap.wrap(
            f"Only OLD could decide, and found nothing: {', '.join(dict.fromkeys(then))}.",
            columns,
            break_on_hyphens=False,
        )
    if found.decided:
        yield f"Only NEW could decide, and found nothing: {found.decided} that OLD was not asked."
    worse = sum(each.counts and each.change in changes.WORSE for each in found.differences)
    untold = sum(each.counts for each in found.differences) - worse  # may be as bad as the exit code says
    others = len(found.differences) - worse - untold
    told = ", ".join(
        (f"{worse} new or worse", *([f"{untold} that NEW cannot tell"] if untold else []), f"{others} other changes")
    )
    yield f"{told}, {found.same} as before   (exit code {code})"


def _quiet_then(each: Difference) -> bool:
    """What was as it should be, and cannot be told from the second recording."""
    return each.change == "only then" and each.before is None


def _causes(found: list[Difference]) -> tuple[list[Difference], list[list[Difference]]]:
    """Those that stand alone, and those that have one cause: what several rules cannot tell any more, or can tell again, for
    the same reasons."""
    groups: dict[tuple[bool, tuple[str, ...]], list[Difference]] = {}
    for each in found:
        if each.after and each.after.outcome == "unknown":
            groups.setdefault((True, each.after.reasons), []).append(each)
        elif each.before and each.before.outcome == "unknown" and not each.after:
            groups.setdefault((False, each.before.reasons), []).append(each)
    causes = [group for group in groups.values() if len({each.shown.rule for each in group}) >= CAUSE]
    told = {id(each) for group in causes for each in group}
    return [each for each in found if id(each) not in told], causes


def _one_cause(group: list[Difference]) -> Iterator[tuple[str, int]]:
    """(line, its margin): how many rules, the gravest of them, why, and what had failed before."""
    first = group[0]
    rules = list(dict.fromkeys(each.shown.rule for each in group))
    worst = max((each.shown.severity for each in group), key=SEVERITIES.index)
    more = f" and {len(rules) - RULES_SHOWN} more" if len(rules) > RULES_SHOWN else ""
    lost = first.after is not None
    word = "NOT SEEN" if lost else "SEEN"
    grave = f"may be {worst}" if lost else f"would have been {worst}"
    yield f"{word:<10}{len(rules)} rules on {len(group)} subjects, {grave}: {', '.join(rules[:RULES_SHOWN])}{more}", 0
    yield from ((f"{'because' if lost else 'it was'} {text}", 10) for text in first.shown.reasons[:EVIDENCE_SHOWN])
    failed = [each for each in group if each.before and each.before.outcome == "fail"]
    for each in failed[:FAILED_SHOWN]:
        yield f"{each.shown.rule} {each.shown.subject} had failed: that does not mean that it is fixed.", 10
    if len(failed) > FAILED_SHOWN:
        yield f"and {len(failed) - FAILED_SHOWN} more had failed (--format json names all)", 10


def _words(each: Difference) -> tuple[str, tuple[str, ...]]:
    """What a change says but for its subject ("{}"): subjects for which it is the same are shown together."""
    return f"{each.change.upper():<10}{each.shown.rule}  {{}}   {_states(each)}", tuple(_lines(each))


def _states(each: Difference) -> str:
    """ "high, failed" or "undecided, high if it fails", before and after."""
    words = [
        (f"{seen.severity}, failed" if seen.outcome == "fail" else f"undecided, {seen.severity} if it fails")
        + (", known to the baseline" if seen.known else "")
        for seen in (each.before, each.after)
        if seen
    ]
    return " -> ".join(dict.fromkeys(words))


def _lines(each: Difference) -> Iterator[str]:
    """The title, and the evidence that came, went or changed."""
    yield each.shown.title
    if each.change == "not judged":
        yield "Its rule was left out this time: that does not mean that it is fixed."
    if each.change == "only now":
        yield "It may have been so before: the first recording does not know the question."
    if each.change == "only then":
        yield "The second recording does not know the question: that does not mean that it is fixed."
    if each.change == "not seen":
        yield "It was not seen this time: that does not mean that it is fixed."
    if each.after and each.after.outcome == "unknown":
        yield from (f"because {text}" for text in each.after.reasons[:EVIDENCE_SHOWN])
    old = each.before.evidence if each.before else ()
    new = each.after.evidence if each.after else ()
    changed = [(f"was {text}") for text in old if text not in new] + [f"now {text}" for text in new if text not in old]
    yield from changed[:EVIDENCE_SHOWN]
    if len(changed) > EVIDENCE_SHOWN:
        yield f"and {len(changed) - EVIDENCE_SHOWN} more (--format json has all)"


COMMAND = diff
