"""tests/ mirrors auditor/: the path of a test says what it tests.

tests/ROOM/test_MODULE.py, or test_MODULE_ASPECT.py, tests auditor/ROOM/MODULE.py; test_ROOM.py tests all modules of a room.
"""

from __future__ import annotations

from pathlib import Path

from tests.shared import ROOT
from tests.whole.test_layers import AUDITOR, imports, modules

TESTS = ROOT / "tests"
APART = {  # folders of tests that are named by what they hold
    "whole": "what holds for all of zaudit, its documents and these tests",
    "security": "one file for each attack",
    "contrib": "what is shipped next to the program",
    "corpus": "outputs of other people's hosts",
    **dict.fromkeys(("bench", "fuzz", "lab"), "the programs of this folder themselves"),
}
LONG = 250  # lines; a module that is longer has a test of its own, or is imported by one of its room
ELSEWHERE = {
    "commands/_auditing.py": "test_cli.py",
    "verify/device_flushes.py": "verify/test_chain.py",
}


def subject(test: Path) -> Path | None:
    """The module or the room that a file of tests is named after; the longest name counts."""
    room = AUDITOR / test.parent.relative_to(TESTS)
    name = test.stem.removeprefix("test_")
    subjects = {module.stem.strip("_"): module for module in room.glob("*.py")} if room.is_dir() else {}
    subjects.setdefault(room.name, room)
    named = [each for each in subjects if f"{name}_".startswith(f"{each}_")]
    return subjects[max(named, key=len)] if named else None


def files() -> list[Path]:
    """Of tests in folders that mirror."""
    return [path for path in sorted(TESTS.rglob("test_*.py")) if path.relative_to(TESTS).parts[0] not in APART]


def test_each_file_of_tests_is_named_after_a_module() -> None:
    assert [str(path.relative_to(ROOT)) for path in files() if subject(path) is None] == []


def test_the_room_of_each_long_module_tests_it() -> None:
    named = {subject(path) for path in files()}
    lacking = []
    for module in modules():
        if module in named or len(module.read_text().splitlines()) <= LONG:
            continue
        room, dotted = module.parent.relative_to(AUDITOR), ".".join(module.relative_to(ROOT).with_suffix("").parts)
        here = [path for folder in (room, "whole", "security") for path in (TESTS / folder).glob("*.py")]
        by_pairs = room.name == "sources"  # tests/sources/test_sources.py holds them all to fixtures/commands
        if not by_pairs and not any(dotted in imports(path) for path in here):
            lacking.append(str(module.relative_to(AUDITOR)))
    assert lacking == sorted(ELSEWHERE)
    assert [each for each in ELSEWHERE.values() if not (TESTS / each).is_file()] == []


def test_a_name_that_nothing_has_is_noticed() -> None:
    assert subject(TESTS / "judge" / "test_nothing.py") is None
    assert subject(TESTS / "no_such_room" / "test_text.py") is None
    assert subject(TESTS / "test_text_figures.py") == AUDITOR / "text.py"
