"""Bugs of ended lines: which release has which, and that a release of today has none of them."""

from __future__ import annotations

import pytest

from auditor.data import TableError, ended
from auditor.derive import ended_line
from auditor.facts import HOST, Fact, Facts, Known, Unknown, known, unknown, words_of

MSYNC, CRAWL, VANISH, RAW = "msync", "one after the other", "files vanish", "raw stream"


def judged(version: Known | Unknown) -> Known | Unknown:
    facts = Facts()
    facts.add(HOST)
    facts.put(Fact(HOST, "zfs_version_text", version))
    (fact,) = ended_line.derive(HOST, facts)
    return fact.value


def bugs(text: str) -> str:
    found = judged(known(text, text))
    assert isinstance(found, Known)
    return "; ".join(words_of(found))


@pytest.mark.parametrize(
    ("text", "bug", "there"),
    [
        ("0.6.2-1", MSYNC, True),
        ("0.6.3-1", MSYNC, False),
        ("0.6.5.1-1", CRAWL, True),
        ("0.6.5.2-1", CRAWL, False),
        ("0.7.6-1", VANISH, False),
        ("0.7.7-1", VANISH, True),
        ("0.7.8-1", VANISH, False),
        ("0.8.3-1ubuntu12.14", RAW, True),
        ("2.0.7-1", RAW, True),
    ],
)
def test_which_release_has_it(text: str, bug: str, there: bool) -> None:
    assert (bug in bugs(text)) is there


@pytest.mark.parametrize("text", ["2.1.0-1", "2.1.5-1ubuntu6", "2.4.4"])
def test_of_a_line_that_has_advisories_they_speak(text: str) -> None:
    assert bugs(text) == ""


@pytest.mark.parametrize("text", ["0.6.0", "0.6.5.11-1", "0.7.13-1", "0.8.6-1", "2.0.7-1"])
def test_every_ended_release_has_one(text: str) -> None:
    assert bugs(text)


@pytest.mark.parametrize("version", [unknown("not loaded"), known("v2", "v2")])
def test_of_what_is_no_release_nothing_is_told(version: Known | Unknown) -> None:
    assert isinstance(judged(version), Unknown)


@pytest.mark.parametrize(("since", "mended"), [("0.8", "0.9.0"), ("0.8.2", "0.8.2"), ("0.8.0", "soon")])
def test_a_table_that_cannot_be_used_is_refused(since: str, mended: str) -> None:
    with pytest.raises(TableError, match="since and mended"):
        ended.parse(f'[[ended]]\nbug = "b"\nsince = "{since}"\nmended = "{mended}"\nsource = "s"\n')
