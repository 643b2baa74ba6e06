"""A source: one thing that is asked of a host, with all that zaudit knows of it.

The parser of an answer is a function; its decorator says the rest. A module has as many as belong together::

    @source("block_scheduler", "host", ask=Read(("/sys/block/*/queue/scheduler",)), facts={...})
    def scheduler(reply: Files, host: Subject) -> Iterator[Fact]:
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from auditor.facts import Fact, Facts, Kind, Known, Spec, Subject
from auditor.host.request import NOTHING, Command, Read, Request, Run, Skip

Per = Literal["host", "pool", "dataset", "disk", "database", "target"]
Ask = Callable[[Subject, Facts], Request]
Keep = Callable[[str], str]
Parse = Callable[[Any, Subject], Iterable[Fact]]
Form = Literal["text", "json", "line"]


@dataclass(frozen=True, eq=False)
class Source:
    """name: under which its answers and their pairs (``fixtures/commands``) are found. per: the kind of subject that one
    question is about; a target is a dataset with all below it. subject: the kind that its facts are about, where their
    names do not say it (``leaf.path``). facts: name -> what it is, of every fact that it can yield.

    ask: the question, or what makes it for a subject from the facts that are known by then; a :class:`Skip` says why not.
    runs: every command line that ``ask`` may come to; nothing else is ever started. keeps: glob pattern (``*`` also for
    slashes) of files that are kept in part -> what makes that part of their content, and of a part the same. Only what
    these and ``ask`` name is read.

    parse: pure; yields facts, or returns a store of hundreds of thousands. It raises ValueError, and nothing else, on an
    answer that it does not understand. It never yields "unknown": ``gather`` makes that of what it leaves out, with a
    reason that names the command.

    after: sources whose word counts first where both know a fact. form: "json" or "line" where one line of JSON or other
    text may be long; else no line is longer than 64 KiB (``gather/answer.py``). part: of an answer that is cut off, what
    came is parsed. adds: False where only facts of subjects that others found are taken. words: word of the question ->
    fact, where they differ. title: what it asks for, to who waits; else the command or file is shown."""

    name: str
    per: Per
    subject: Kind
    facts: Mapping[str, Spec]
    ask: Request | Ask
    runs: tuple[Command, ...]
    keeps: Mapping[str, Keep]
    parse: Parse
    after: tuple[str, ...]
    form: Form
    part: bool
    adds: bool
    words: Mapping[str, str]
    title: str

    def request(self, subject: Subject, facts: Facts) -> Request:
        return self.ask(subject, facts) if callable(self.ask) else self.ask


def keep_nothing(text: str) -> str:
    """Of a file that counts because it is there."""
    return ""


def source(
    name: str,
    per: Per,
    *,
    ask: Run | Read | Ask,
    facts: Mapping[str, Spec],
    runs: tuple[Command, ...] = (),
    keeps: Mapping[str, Keep] = MappingProxyType({}),
    subject: Kind | None = None,
    after: tuple[str, ...] = (),
    form: Form = "text",
    part: bool = False,
    adds: bool = True,
    words: Mapping[str, str] = NOTHING,
    title: str = "",
) -> Callable[[Parse], Source]:
    """Makes a source of its parser. subject: that of the question where left out, of a target datasets. runs: that one
    command, where it is always the same."""
    if isinstance(ask, Run) and not runs:
        runs = (Command(ask.argv),)
    about: Kind = subject or ("dataset" if per == "target" else per)
    return lambda parse: Source(name, per, about, facts, ask, runs, keeps, parse, after, form, part, adds, words, title)


# Answers that are JSON, numbers or ``key : value`` lines: what is not as expected is a ValueError that names the key.
#
# nvme-cli prints 128-bit counters as JSON numbers or as strings, depending on its release and on json-c's; it prints
# ``{"error": ...}`` when it could not ask, and its usage around JSON after an option that it does not know.

LARGEST, LEAST = (1 << 64) - 1, -(1 << 63)  # no kernel and no tool counts further


def is_integer(text: str) -> bool:
    """Whether it is a decimal number of 64 bits, with or without a sign."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 20 and LEAST <= int(text) <= LARGEST


def integer(text: str) -> int:
    """A decimal number of 64 bits; ValueError for anything else."""
    if not is_integer(text):
        raise ValueError(f"{text[:40]!r} is not a number of 64 bits")
    return int(text)


def document(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    return _of_type(found, dict, "the document")  # type: ignore[no-any-return]


def text_of(value: dict[str, Any], key: str) -> str:
    found: str = _of_type(value.get(key), str, key)
    return found


def rows(value: dict[str, Any], key: str, width: int) -> list[list[Any]]:
    """A list of lists, each of this many values."""
    found: list[list[Any]] = _of_type(value.get(key), list, key)
    for row in found:
        if not isinstance(row, list) or len(row) != width:
            raise ValueError(f"{key}: {str(row)[:60]} is not a row of {width}")
    return found


def texts(value: dict[str, Any], key: str, width: int) -> list[list[str]]:
    """A list of lists, each of this many texts; null is an empty one."""
    found = [["" if each is None else each for each in row] for row in rows(value, key, width)]
    return [[_of_type(each, str, key) for each in row] for row in found]


def _of_type(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{where} is {str(value)[:60]}, not {kind.__name__}")
    return value


Document = Mapping[str, object]


_START = re.compile(r"^[^\S\n]*+\{", re.MULTILINE)
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[0-9]+|[0-9]{1,3}(,[0-9]{3})+")


def first_object(text: str) -> Document | None:
    """The first JSON object of the text, or None when no line opens one; ValueError when it is cut off or an error."""
    start = _START.search(text)
    if not start:
        return None
    try:
        found, _ = json.JSONDecoder(strict=False).raw_decode(text, start.end() - 1)
    except (ValueError, RecursionError):
        raise ValueError("the JSON is cut off or malformed") from None
    assert isinstance(found, dict)
    if isinstance(error := found.get("error"), str) and error.strip():
        raise ValueError(error.strip())
    for key, value in found.items():
        if key.startswith("Error:"):
            said = [str(part) for part in value.values()] if isinstance(value, dict) else []
            raise ValueError(" ".join([key, *said]))
    return found


def key_values(text: str) -> Iterator[tuple[str, str]]:
    """(key in lower case with single underscores, value) of every whole ``key : value`` line, first of each key only.

    The last line counts only when it ends: "vwc : 0" may be the beginning of "vwc : 0x7"."""
    seen: set[str] = set()
    for line in text.split("\n")[:-1]:
        key, colon, value = line.partition(":")
        key = "_".join(key.lower().split())
        if colon and key and key not in seen:
            seen.add(key)
            yield key, value.strip()


def non_negative(value: object) -> int | None:
    """A number that is not negative: 7, 7.0, "7", "0x7", "1,243", "100%"; anything else is None."""
    match value:
        case bool():
            return None
        case int():
            return value if value >= 0 else None
        case float():
            return int(value) if value.is_integer() and 0 <= value < 1 << 53 else None
        case str():
            bare = value.strip().removesuffix("%").strip()
            return int(bare.replace(",", ""), 0 if bare.startswith("0x") else 10) if _NUMBER.fullmatch(bare) else None
        case _:
            return None


def counter(value: object) -> int | None:
    """A count; one that is all ones or nearly (underflow, "not reported") is None."""
    number = non_negative(value)
    return number if number is not None and number < 1 << 63 else None


def only_nvme(disk: Subject, facts: Facts) -> Skip | None:
    """Why a disk is not asked for what only NVMe has, or None when it is to be asked."""
    match facts.get(disk, "transport"):
        case Known(str() as bus) if not bus.startswith("nvme") and not disk.name.startswith("nvme"):
            return Skip(f"{disk.name} is not an NVMe device ({bus})", applies=False)
        case _:
            return None
