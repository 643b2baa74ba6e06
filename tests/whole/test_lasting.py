"""A recording outlives the release that made it: a later zaudit, which asks for more, decides what could be decided."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor import audit
from auditor.facts import Subject
from auditor.host import builtin
from auditor.judge import verdict
from auditor.judge.rule import digest
from auditor.recording import lookup, recording
from auditor.recording.recording import Recording, ReplayHost
from auditor.report import audit_page, changes, phrases
from auditor.report import report_json as json_report
from auditor.report.model import Report
from auditor.verify import verify_page
from tests import shared
from tests.fake import CommandLine
from tests.golden import HOSTS, OLDER, cases, report_of
from tests.shared import name_of
from tests.verify import samples

CASES = cases()
TANK = Subject("pool", "tank")


class Later(ReplayHost):
    """The same recording, asked by a zaudit that wants another property, column, argument and file from every collector."""

    def __init__(self, past: Recording) -> None:
        super().__init__(past)
        answers = lookup.Answers(past.commands, past.files, past.kept)
        self.run = lambda request: answers.run(request._replace(argv=more(request.argv)))
        self.read = lambda request: answers.read(
            request._replace(patterns=(*request.patterns, "/sys/later/*", "/proc/later"))
        )


def more(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command with another word in each list, in the middle of it where it has one, and another argument."""
    if argv[0] in ("sql", builtin.KMSG):  # what is asked of a server, or of the log, has no list in its words
        return argv
    if argv[0] == builtin.LZC_NAME:
        return (*argv, "later")
    longer = list(argv)
    if "-o" in argv and argv[0] != "nvme":
        at = argv.index("-o")
        lists = (at + 1, at + 2) if argv[1] == "get" else (at + 1,)
        for each in lists:
            first, comma, others = argv[each].partition(",")
            longer[each] = f"{first},later{comma}{others}"
    longer = [f"{word},later" if word.startswith("--property=") else word for word in longer]
    return (*longer, "--later")


def outcomes(past: Recording, host: Any) -> dict[tuple[str, Subject], str]:
    facts = audit.look(host, past.targets, audit.Options.from_words(past.options)).facts
    return {(each.rule.id, each.subject): each.outcome for each in verdict.judge(shared.audited(), facts)}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[name_of(case) for case in CASES])
def test_a_later_zaudit_decides_what_could_be_decided(case: Path) -> None:
    past = recording.load(case)
    assert outcomes(past, Later(past)) == outcomes(past, ReplayHost(past))


# -- what an older zaudit did not ask is said once ------------------------------------------------------------------

OLD, NEW = OLDER / "2.3-healthy-mirrored-slog", HOSTS / "2.3-healthy-target-path"


def without(past: Recording, *tools: str) -> Recording:
    """The same recording by a zaudit that did not know these commands."""
    return replace(
        past, commands={argv: each for argv, each in past.commands.items() if argv[0] not in tools}, zaudit="0.0.9"
    )


def judged(past: Recording) -> Report:
    seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    return audit.judge(seen, shared.audited(), past.targets, "low")


def test_a_dozen_rules_are_one_sentence() -> None:
    report = report_of(OLD)
    hidden = {each.rule.id for each in report.findings if phrases.unasked(each)}
    hidden -= {each.rule.id for each in report.findings if not phrases.unasked(each)}
    assert len(hidden) > 20
    text = audit_page.write_text(report, width=100, verbose=2)
    assert text.count("not in the recording") == 1
    sentence = f"Recorded by zaudit 0.1.0, and lacks {len(report.unasked)} inputs of today. Record again."
    assert text.count(sentence) == 1
    heads = {
        line.split()[1]
        for line in text.splitlines()
        if line.startswith(("UNKNOWN", "HIGH", "CRITICAL", "MEDIUM", "LOW"))
    }
    assert not heads & hidden
    page = verify_page.write("html", samples.traced(), report)
    assert page.count(sentence) == 1
    assert not [each for each in hidden if f"</span> {each}</h3>" in page]


def test_what_was_not_asked_counts_as_undecided() -> None:
    """That it is said once makes nothing better."""
    past = recording.load(NEW)
    whole, older = judged(past), judged(without(past, "zfs"))
    assert older.coverage.undecided > whole.coverage.undecided
    assert older.exit_code >= whole.exit_code
    assert older.standing == "cannot tell"


def test_a_diff_compares_what_both_could_see() -> None:
    past = shared.earlier("2.3-sync-disabled-local")
    new, old = (json_report.document(judged(each)) for each in (past, without(past, "zdb", "nvme", "zfs")))
    found = changes.compare(old, new)
    seen = {(each.change, each.shown.rule) for each in found.differences}
    assert {change for change, _ in seen} <= {
        "only now",
        "changed",
        "better",
    }  # what is undecided counts as the worst it may be
    assert found.decided > 5
    assert any("was recorded by zaudit 0.0.9" in note for note in found.notes)
    back = changes.compare(new, old)
    assert {each.change for each in back.differences} <= {"only then", "changed", "not seen"}
    assert back.exit_code("low") >= 10


def test_a_failure_that_only_the_second_could_see_counts_for_a_ratchet() -> None:
    past = shared.earlier("2.3-sync-disabled-local")
    found = changes.compare(*(json_report.document(judged(each)) for each in (without(past, "zfs"), past)))
    only = {each.shown.rule for each in found.differences if each.change == "only now" and each.shown.outcome == "fail"}
    assert "sync-disabled" in only
    assert found.exit_code("low", failed_only=True) == 14


def test_diff_says_it_in_a_sentence(zaudit: CommandLine, tmp_path: Path) -> None:
    past = recording.load(NEW)
    recording.write(without(past, "zpool"), tmp_path / "older")
    recording.write(past, tmp_path / "newer")
    done = zaudit("diff", tmp_path / "older", tmp_path / "newer")
    assert "OLD was recorded by zaudit 0.0.9" in " ".join(done.out.split())
    assert "No finding in NEW, unknown in OLD:" in done.out
    assert "NEW  " not in done.out
    back = zaudit("diff", tmp_path / "newer", tmp_path / "older")
    assert "No finding in OLD, unknown in NEW:" in back.out
    assert back.code >= 10


def test_a_diff_says_once_what_neither_recording_knows(zaudit: CommandLine, tmp_path: Path) -> None:
    recording.write(without(recording.load(NEW), "zpool"), tmp_path / "older")
    done = zaudit("diff", tmp_path / "older", tmp_path / "older")
    said = " ".join(done.out.split())
    assert said.count("inputs of today") == 1
    assert "OLD and NEW were recorded by zaudit 0.0.9 and zaudit 0.0.9, lacking" in said
    assert "rules that need them are unknown in both. Record again" in said


# -- who judged -----------------------------------------------------------------------------------------------------


def test_a_digest_is_that_of_conditions_and_severities() -> None:
    one, two, *_ = shared.audited()
    assert digest([one, two]) == digest([two, one])
    assert digest([one]) != digest([two])
    assert digest([one._replace(severity="low" if one.severity != "low" else "high")]) != digest([one])
    assert digest([one._replace(expect=two.expect)]) != digest([one])
    assert digest([one._replace(title="Other words")]) == digest([one])


def test_diff_says_when_the_rules_differ() -> None:
    past = recording.load(NEW)
    seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    one, other = (
        json_report.document(audit.judge(seen, each, past.targets, "low"))
        for each in (shared.audited(), shared.audited()[1:])
    )
    notes = changes.compare(one, other).notes
    assert [note for note in notes if one["rules"] in note and other["rules"] in note and note.startswith("judged by")]
    assert not [note for note in changes.compare(one, one).notes if note.startswith("judged by")]
