"""``zaudit selftest``: it passes, and it would not if zaudit broke its law."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor import audit, registry
from auditor import selftest as law
from auditor.facts import HOST, Fact, Known, known
from auditor.gather import answer
from auditor.judge import verdict
from auditor.recording import recording
from tests import shared
from tests.fake import CommandLine
from tests.parsed import Parsed
from tests.whole.test_rules import MINIMAL


@pytest.fixture(scope="module")
def rows() -> list[law.Row]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer, "answer_of", Parsed(answer.answer_of))
        return law.run(shared.rules())


@pytest.mark.slow
def test_no_rule_passes(rows: list[law.Row]) -> None:
    assert [(row.rule, name, cell.wrong) for row in rows for name, cell in row.cells.items() if cell.wrong] == []
    assert law.passed(rows)


@pytest.mark.slow
def test_every_rule_meets_every_fault(rows: list[law.Row]) -> None:
    assert [row.rule for row in rows] == [rule.id for rule in shared.rules()]
    assert list(rows[0].cells) == [*law.LABELS.values(), "one loss", "one answer", "two answers", "facts hidden"]
    for row in rows:
        assert all(row.cells[label].cases == 1 for label in law.LABELS.values())
        assert row.cells["one answer"].cases >= 100
        assert row.cells["one loss"].cases >= 100
        assert row.cells["two answers"].cases >= 90
        assert row.cells["facts hidden"].cases >= 2


@pytest.mark.slow
def test_the_recorded_host_is_worth_it(rows: list[law.Row]) -> None:
    """Most rules that apply are decided on it as it is: a fault has something to spoil. PostgreSQL and MariaDB run there, one
    of them asked itself; no policy is followed, and fio did not run."""
    absent = {rule.id for rule in shared.rules() if rule.subject in ("waiver", "run")}
    there = [row for row in rows if row.rule not in absent and row.healthy != "not applicable"]
    decided = [row for row in there if set(row.healthy.split(", ")) & {"pass", "fail"}]
    assert len(decided) >= len(there) * 0.85
    about = {rule.id for rule in shared.rules() if rule.subject == "database"}
    assert len([row for row in decided if row.rule in about]) >= 12
    asked = law.host()
    assert len(asked.commands) + len(asked.files) >= 50


def test_what_is_asked_about_its_databases_is_in_the_recording() -> None:
    """Else a fault would make an answer of none, and what was undecided would pass."""
    past = law.host()
    seen = audit.look(recording.ReplayHost(past), past.targets, audit.Options.from_words(past.options)).facts
    for database in seen.subjects("database"):
        assert isinstance(seen.get(database, "datasets"), Known), database


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the questions, those for module parameters and the release: a self-test in seconds."""
    original = law.questions
    kept = ("module_params", "zfs_version")
    monkeypatch.setattr(law, "questions", lambda facts: {name: original(facts)[name] for name in kept})


@pytest.mark.usefixtures("few")
def test_the_command(zaudit: CommandLine) -> None:
    done = zaudit("selftest")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1].endswith("none passed")
    verify = sum(rule.of_verify for rule in shared.rules())
    assert f"{len(shared.rules()) - verify} rules of check, {verify} of verify, " in done.out


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_default_in_place_of_a_missing_file_is_noticed(zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistake that it is there for: absent is taken for 0."""
    original = registry.sources()["module_params"]

    def parse(reply: Any, host: Any) -> Iterator[Fact]:
        yield from original.parse(reply, host)
        if "/sys/module/zfs/parameters/zfs_nocacheflush" not in reply.text:
            yield Fact(HOST, "zfs_nocacheflush", known(0, "assumed"))

    faulty = {**registry.sources(), original.name: replace(original, parse=parse)}
    monkeypatch.setattr(registry, "sources", lambda: faulty)
    done = zaudit("selftest", "--format", "json")
    assert done.code == 1
    wrong = {
        row["rule"]: [name for name, cell in row["faults"].items() if cell["wrong"]] for row in json.loads(done.out)
    }
    assert {"missing", "denied", "hung", "release"} <= set(wrong["zfs-nocacheflush"])
    assert wrong["sync-disabled"] == []


def test_an_engine_that_takes_unknown_for_true_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    original = verdict.judge_one

    def judge_one(rule: Any, subject: Any, facts: Any) -> verdict.Verdict:
        judged = original(rule, subject, facts)
        return judged._replace(outcome="pass") if judged.outcome == "unknown" else judged

    monkeypatch.setattr("auditor.selftest.judge_one", judge_one)
    for rule in shared.rules():
        assert law.hidden(rule).wrong[0] == "nothing known, and not unknown"


@pytest.mark.usefixtures("few")
def test_a_rule_of_the_user_that_always_passes_is_noticed(zaudit: CommandLine, tmp_path: Path) -> None:
    text = MINIMAL.replace("pool.capacity_percent < 80", "pool.capacity_percent < 80 or 1 == 1")
    (tmp_path / "my-rule.toml").write_text(text)
    done = zaudit("selftest", "--rules", tmp_path)
    assert done.code == 1
    assert "WRONG  my-rule, missing" in done.out
