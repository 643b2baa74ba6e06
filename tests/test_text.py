"""What is printed is what was seen: no character that nobody sees, and ordinary text of all languages as it is."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor import screen
from auditor.host.request import Capture, Files
from auditor.recording import recording
from auditor.report import formats
from auditor.text import harmless, octets, quoted, unit_escaped, utc, valid_unicode
from tests import shared
from tests.fake import CommandLine
from tests.golden import CANONICAL, HOSTS

ROOT = Path(__file__).parents[1]
UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
BLANK = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\ufe00\ufe0f\uffa0\U000e0100\U000e01ef\U0001d159"
)
COMMAND = re.compile(r"(?m)^\s*::|##[A-Za-z]*\[")  # of GitHub, Azure Pipelines and TeamCity to their agents
HOSTILE = (
    "\x1b[31mRED\x1b]0;title\x07\u202egnp.exe\u2066\x9b31m\x85\u200b\ufeff",
    "X\nCRITICAL  all-fine  tank\rY\u2028",
    "\U000e0041\U000e007f\u00ad\u061c\u180e\u2800\u115f\ufff9\ufffb\u3164\uffa0\ufe0f\ue000\u0378a\u00a0b",
    "\udcff\udc80",
    "\ud800",
    "[bold red]B[/] [link=http://x]L[/link] :smile: <script>",
    "\u05d0\u05d1\u05d2 15 s \u0627\u0661\U0001d159" + "a" + "\u0300" * 200,
    "::stop-commands::x",
    "##vso[task.complete]x",
    "::warning file=x::y ##[add-mask]z",
)


def visible(text: str) -> bool:
    """No character that nobody sees or that reorders others, no mark on nothing, and no stack of marks."""
    before = above = 0
    for char in text:
        category = unicodedata.category(char)
        if (
            (category in UNSEEN and char != " ")
            or char in BLANK
            or unicodedata.bidirectional(char) in ("R", "AL", "AN")
        ):
            return False
        above = above + 1 if category in ("Mn", "Me") else above if category == "Mc" else 0
        if above > 4 or (category[0] == "M" and not before):
            return False
        before = category[0] in "LNM"
    return not COMMAND.search(text.replace("::", ""))


@given(st.text(st.characters(), max_size=30))
def test_nothing_unseen_is_left(text: str) -> None:
    assert visible(harmless(text))
    assert harmless(text) == text or not visible(text)
    assert harmless(harmless(text)) == harmless(text)


@pytest.mark.parametrize(
    "text",
    [
        "tank/db-1.wal",
        "Überwachung",
        "база данных",
        "βάση δεδομένων",
        "データベース",
        "テ\u3099ータヘ\u3099ース",
        "数据库",
        "डेटाबेस",
        "ฐานข้อมูลที่นี่",
        "လျှို့ဝှက်",
        "བསྒྲུབས",
        "데이터",
        unicodedata.normalize("NFD", "데이터"),
        unicodedata.normalize("NFD", "cơ sở dữ liệu"),
        "e\u0301",
        "# 1 ## 2 [x] fe80::1",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert harmless(text) == text
    assert quoted(text) in (text, f"'{text}'")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\U000e0041", "\\U000e0041"),
        ("a\u00adb", "a\\xadb"),
        ("\u061c\u180e\u2800\u115f", "\\u061c\\u180e\\u2800\\u115f"),
        ("\u3000", "\\u3000"),
        ("\udcff", "\\xff"),
        ("\ud800", "\\ud800"),
        ("\ue000", "\\ue000"),
        ("/tank/\u05d0\u05d1 15 s", "/tank/\\u05d0\\u05d1 15 s"),
        ("\u0627\u0661", "\\u0627\\u0661"),
        ("a\U0001d159b", "a\\U0001d159b"),
        ("\u0338x/\u0301", "\\u0338x/\\u0301"),
        ("o" + "\u0300" * 6 + "x", "o" + "\u0300" * 4 + "\\u0300\\u0300x"),
        ("\u1100" + "\u1161" * 5, "\u1100" + "\u1161" * 4 + "\\u1161"),
        ("x##vso[a]", "x#\\u0023vso[a]"),
        ("###[a]", "##\\u0023[a]"),
    ],
)
def test_how_it_is_spelt(text: str, shown: str) -> None:
    assert harmless(text) == shown


@given(st.text(st.characters(), max_size=20))
def test_every_text_has_octets(text: str) -> None:
    found = octets(text)
    assert isinstance(found, bytes)
    assert valid_unicode(text).encode().decode() == valid_unicode(text)
    assert unit_escaped(text).isascii()
    assert visible(quoted(text))
    if not re.search("[\ud800-\udfff]", text):
        assert found.decode() == text


@pytest.mark.parametrize(
    ("columns", "width"),
    [
        ("80", 80),
        ("40", 40),
        ("1", 40),
        ("0", 100),
        ("", 100),
        ("²", 100),
        ("٤٢", 100),
        ("-5", 100),
        ("1e3", 100),
        (" 80", 100),
        ("99999999999999999999", 140),
        ("9" * 5000, 140),
        ("0" * 5000 + "80", 80),
    ],
)
def test_columns(columns: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert screen.width() == width


@pytest.mark.parametrize("words", ["x ##vso[a b]c", "'##[add-mask]\\", "o\u0300\u0300\u0300\u0300\u0300'\u05d0"])
def test_a_shell_gets_the_name_that_it_was(words: str) -> None:
    said = subprocess.run(["bash", "-c", f"printf %s {quoted(words)}"], capture_output=True, check=True)
    assert said.stdout.decode() == words


@given(st.text(st.sampled_from(" :#[avso\n-\u0301\u05d0"), max_size=40), st.booleans())
def test_no_line_commands_the_agent_of_a_ci(text: str, styled: bool) -> None:
    shown = screen._shown(text, styled=styled)
    assert not COMMAND.search(shown)
    assert visible(shown.replace("\n", " "))
    if text.isascii():
        assert json.loads(screen._shown(json.dumps(text))) == text


def zaudit(*words: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, "-m", "auditor", *map(str, words)]
    names = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    return subprocess.run(argv, capture_output=True, cwd=ROOT, env={**names, **environment}, check=False, timeout=60)


@pytest.mark.slow
def test_a_size_that_is_no_number_is_none() -> None:
    plain, odd = (
        zaudit("check", "--replay", HOSTS / CANONICAL, **size) for size in ({}, {"COLUMNS": "²", "LINES": "²"})
    )
    assert (odd.returncode, odd.stdout, odd.stderr) == (14, plain.stdout, plain.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("words", [("check", "--replay", HOSTS / CANONICAL), ("explain", "sync-disabled")])
def test_a_terminal_of_forty_columns(words: tuple[object, ...]) -> None:
    done = zaudit(*words, COLUMNS="40")
    long = [line for line in done.stdout.decode().splitlines() if len(line) > 40]
    assert [
        line for line in long if not line.startswith(" " * 12) and len(line.split()) > 1
    ] == []  # commands are whole
    assert done.returncode in (0, 14)
    assert len(done.stdout.splitlines()) > 20


def hostile(name: str) -> recording.Recording:
    """A host whose host name, models and, where it can be one of a pool, pool are called so, in every answer."""
    past = shared.host(CANONICAL)
    pool = "tank" if {"/", "#"} & {*name} else f"ta{name}"

    def words(text: str) -> str:
        return text.replace("tank", pool).replace("QEMU NVMe Ctrl", name).replace("zlab", name)

    def said(data: bytes) -> bytes:
        text = data.decode("utf-8", "surrogateescape")
        try:
            return json.dumps(each(json.loads(text))).encode()
        except ValueError:
            return octets(words(text))

    def each(value: object) -> object:
        match value:
            case str():
                return words(value)
            case list():
                return [each(one) for one in value]
            case dict():
                return {words(key): each(one) for key, one in value.items()}
        return value

    def texts(found: Mapping[str, str]) -> dict[str, str]:
        return {words(path): words(text) for path, text in found.items()}

    return replace(
        past,
        targets=tuple(map(words, past.targets)),
        commands={
            tuple(map(words, argv)): Capture(found.exit, said(found.stdout), said(found.stderr), 0.0, found.fault)
            for argv, found in past.commands.items()
        },
        files={
            tuple(map(words, patterns)): Files(texts(found.text), texts(found.links), texts(found.errors))
            for patterns, found in past.files.items()
        },
    )


@pytest.mark.parametrize("name", shared.briefly(((name,) for name in HOSTILE), quick=0))
def test_hostile_names_in_a_recording(name: str, tmp_path: Path) -> None:
    recording.write(hostile(name), tmp_path / "rec")
    replay = ("check", "--replay", tmp_path / "rec", "--verbose")
    for words, environment in (
        (replay, {}),
        (replay, {"FORCE_COLOR": "1", "COLUMNS": "40"}),
        ((*replay, "--format", "json"), {}),
        (replay, {"LC_ALL": "C"}),
        (("diff", HOSTS / CANONICAL, tmp_path / "rec"), {}),
        (("diff", HOSTS / CANONICAL, tmp_path / "rec", "--format", "json"), {}),
        (("policy", "init", "--replay", tmp_path / "rec"), {}),
    ):
        done = zaudit(*words, **environment)
        assert done.returncode != 1, done.stderr
        out, err = done.stdout.decode(), done.stderr.decode()
        if "FORCE_COLOR" in environment:
            out = re.sub(r"\x1b\[[0-9;]*m", "", out)
        for text in (out, err):
            assert all(map(visible, text.split("\n"))), (words, environment)
            assert not COMMAND.search(text), (words, environment)
        assert "\nCRITICAL  all-fine" not in out
        if out and "json" in words:
            json.loads(out)


@pytest.mark.parametrize("name", shared.briefly(((name,) for name in HOSTILE), quick=0))
def test_hostile_names_in_every_format(name: str, zaudit: CommandLine, tmp_path: Path) -> None:
    recording.write(hostile(name), tmp_path / "rec")
    wanted = [word for each in formats.names() for word in ("--format", f"{each}={tmp_path / each}")]
    done = zaudit("check", "--replay", tmp_path / "rec", *wanted)
    assert done.code == 14
    for each in formats.names():
        text = (tmp_path / each).read_text()
        assert all(map(visible, text.split("\n"))), each
        assert not COMMAND.search(text), each
        if each in ("json", "jsonl", "sarif", "sarif-github"):
            assert all(map(json.loads, text.splitlines() if each == "jsonl" else [text]))


@pytest.mark.slow
def test_hostile_words_on_the_command_line(tmp_path: Path) -> None:
    for words in (
        ("check", "\x1b[31m\u202e", "--nope\x1b"),
        ("explain", "\U000e0041\x1b[1m"),
        ("drives", "\u202e\x1b[31mX"),
    ):
        done = zaudit(*words)
        assert visible((done.stdout + done.stderr).decode().replace("\n", ""))


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "1970-01-01 00:00 UTC"),
        (999_999_999_999, "999999999999 s since 1970"),
        (-1e18, "-1000000000000000000 s since 1970"),
    ],
)
def test_a_moment_that_no_calendar_has_is_a_number(seconds: float, expected: str) -> None:
    assert utc(seconds) == expected
