"""Every parser on what commands really printed, and what it must make of it (tests/pairs.py)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from auditor.facts import KINDS, Known, Subject
from auditor.host.live import allowed_part
from auditor.host.request import Files
from auditor.recording import archive
from auditor.registry import registry, sources, specs
from tests import pairs
from tests.folded import for_each
from tests.pairs import Pair

CASES = pairs.everything()


def plain(value: Any) -> Any:
    if isinstance(value, Subject):
        return f"{value.kind} {value}"
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return value


@for_each("pair", CASES)
def test_pair(pair: Pair) -> None:
    module, expected, reply = sources()[pair.collector], pair.expected, pair.reply
    assert expected["source"]
    kind, name, within = expected["subject"]
    assert kind in KINDS
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


@for_each("pair", [pair for pair in CASES if isinstance(pair.reply, Files)])
def test_what_is_kept_of_files_says_the_same(pair: Pair) -> None:
    """A live host keeps less of a file than stands in it; the parser must not be able to tell the difference."""
    reply = pair.reply
    assert isinstance(reply, Files)
    kept = {path: less for path, text in reply.text.items() if (less := allowed_part(path, text)) is not None}
    again = {path: less for path, text in kept.items() if (less := allowed_part(path, text)) is not None}
    assert again == kept
    module, subject = sources()[pair.collector], Subject(*pair.expected["subject"])
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
    assert [name for name in sources() if not pairs.of(name)] == []


def test_no_stray_fixture() -> None:
    assert {path.name for path in pairs.COMMANDS.iterdir()} == {f"{name}{pairs.ENDING}" for name in sources()}
    for name in sources():
        cases = {pair.case for pair in pairs.of(name)}
        members = {re.sub(r"(?:\.in)?\.json$|\.out$", "", each) for each in pairs.members(name)}
        assert members == cases, name


def test_a_pair_is_added_to_its_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "COMMANDS", tmp_path)
    for text in ("one\n", "two"):
        (tmp_path / "usual.out").write_text(text)
        pairs.add("zed", [tmp_path / "usual.out"])
    assert archive.read(tmp_path / "zed.pairs") == {"usual.out": b"two"}
