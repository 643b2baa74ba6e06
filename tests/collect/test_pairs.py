"""Every parser on what commands really printed: ``fixtures/commands/<collector>/<case>``, and what it must make of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor.facts import KINDS, Known, Subject
from auditor.host.allowed import allowed_part
from auditor.host.request import Files, Output
from auditor.registry import collectors, registry, specs
from tests.folded import for_each

COMMANDS = Path(__file__).parent.parent.parent / "fixtures" / "commands"
CASES = sorted(path for path in COMMANDS.glob("*/*.json") if not path.name.endswith(".in.json"))


def reply_of(case: Path, expected: dict[str, Any]) -> Output | Files:
    files = case.with_name(case.stem + ".in.json")
    if files.exists():
        raw = json.loads(files.read_text())
        keys = ("links", "errors", "devices", "changed")
        return Files(raw["text"], *(raw.get(key, {}) for key in keys))
    text = case.with_name(case.stem + ".out").read_bytes().decode("utf-8", "surrogateescape")
    return Output(text, expected["command"], expected.get("exit", 0), expected.get("stderr", ""))


def plain(value: Any) -> Any:
    if isinstance(value, Subject):
        return f"{value.kind} {value}"
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return value


@for_each("case", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_pair(case: Any) -> None:
    module = collectors()[case.parent.name]
    expected = json.loads(case.read_text())
    assert expected["source"]
    kind, name, within = expected["subject"]
    assert kind in KINDS
    reply = reply_of(case, expected)
    subject = Subject(kind, name, within)
    if "error" in expected:
        with pytest.raises(ValueError) as error:  # noqa: PT011 (the text is compared below)
            list(module.parse(reply, subject))
        assert expected["error"] in str(error.value)
        return
    declared = {key for key, _ in specs(module)}
    found: dict[str, dict[str, Any]] = {}
    for fact in module.parse(reply, subject):
        assert isinstance(fact.value, Known), f"a parser never says unknown: {fact}"
        assert (fact.subject.kind, fact.name) in declared, f"{fact.name} is not in FACTS"
        assert fact.value.evidence, f"{fact.name} has no evidence"
        check_type(fact)
        found.setdefault(f"{fact.subject.kind} {fact.subject}", {})[fact.name] = plain(fact.value.value)
    assert found == expected["facts"]


READ = [case for case in CASES if case.with_name(case.stem + ".in.json").exists()]


@for_each("case", READ, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_what_is_kept_of_files_says_the_same(case: Path) -> None:
    """A live host keeps less of a file than stands in it; the parser must not be able to tell the difference."""
    expected = json.loads(case.read_text())
    reply = reply_of(case, expected)
    assert isinstance(reply, Files)
    kept = {path: less for path, text in reply.text.items() if (less := allowed_part(path, text)) is not None}
    again = {path: less for path, text in kept.items() if (less := allowed_part(path, text)) is not None}
    assert again == kept
    module, subject = collectors()[case.parent.name], Subject(*expected["subject"])
    answers: list[list[Any] | None] = []
    for text in (reply.text, kept):
        try:
            answers.append(list(module.parse(reply._replace(text=text), subject)))
        except ValueError:
            answers.append(None)
    assert answers[0] == answers[1]


def check_type(fact: Any) -> Any:
    spec = registry()[fact.subject.kind, fact.name]
    value = fact.value.value
    if spec.type is Subject:
        linked = value if spec.many else (value,)
        assert all(isinstance(each, Subject) and each.kind == spec.kind for each in linked)
    else:
        assert type(value) is spec.type, f"{fact.name} = {value!r} is not {spec.type}"
        assert not spec.values or value in spec.values
        assert not spec.row or (isinstance(value, tuple) and all(type(each) is spec.row for each in value))


def test_every_collector_has_a_pair() -> None:
    missing = sorted(name for name in collectors() if not list((COMMANDS / name).glob("*.json")))
    assert missing == []


def test_no_stray_fixture() -> None:
    known = {"_".join(path.name.split(".")[:-1]) for path in CASES}
    assert known
    for path in COMMANDS.glob("*/*"):
        assert path.parent.name in collectors(), path
        case = path.name.removesuffix(".in.json").removesuffix(".json").removesuffix(".out")
        assert (path.parent / f"{case}.json").exists(), path
