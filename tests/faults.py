"""Every way in which the answers of one collector can go wrong, made from what they were."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from auditor.host.request import Capture, Files
from auditor.selftest import (
    BINARY,
    DENIED,
    EMPTY,
    NONE,
    NOT_INSTALLED,
    NOT_PERMITTED,
    NOTHING_SAID,
    TIME_OUT,
    Fault,
    FaultyHost,
    as_bytes,
    cut_in,
    of_text,
)
from auditor.sources.source import Source

__all__ = [
    "BINARY",
    "EMPTY",
    "NONE",
    "NOTHING_SAID",
    "NOT_INSTALLED",
    "NOT_PERMITTED",
    "TIME_OUT",
    "Fault",
    "FaultyHost",
    "all_faults",
]
LATER = "quantum"  # a word that no release says


def all_faults(source: Source, answers: Sequence[Capture | Files], names: frozenset[str]) -> Iterator[Fault]:
    """Every fault of one collector. answers: what it was told; names: words that are names of things, not of the format."""
    yield from (NOT_INSTALLED, NOT_PERMITTED, TIME_OUT, EMPTY, NOTHING_SAID, BINARY)
    texts = [text for answer in answers for text in _texts(answer)]
    longest = max((text.count(b"\n") + 1 for text in texts), default=0)
    for line in _sampled(longest, 25):
        yield of_text(f"cut after {line} lines", lambda text, at=line: b"".join(text.splitlines(True)[:at]))  # type: ignore[misc]
        yield of_text(f"cut in line {line + 1}", lambda text, at=line: cut_in(text, at))  # type: ignore[misc]
    for share in (0.1, 0.5, 0.9):
        yield of_text(f"not UTF-8 at {share:.0%}", lambda text, at=share: _spoilt(text, at), partial=False)  # type: ignore[misc]
    paths = {path for answer in answers if isinstance(answer, Files) for path in (*answer.text, *answer.links)}
    for path in sorted(paths)[:: max(len(paths) // 25, 1)]:
        yield _lost(path)
    yield of_text("a later release: more keys", _more_keys)
    for word in sorted(_words(source, texts) - names):
        yield of_text(
            f"a later release: not {word}",
            lambda text, old=word: re.sub(rb"(?<![\w-])%s(?![\w-])" % old.encode(), LATER.encode(), text),  # type: ignore[misc]
            partial=False,
        )
    if source.name == "zfs_version":
        yield of_text("a later release", lambda _: b"2.9.0-1\n", partial=False)


def _texts(answer: Capture | Files) -> list[bytes]:
    return [answer.stdout] if isinstance(answer, Capture) else list(map(as_bytes, answer.text.values()))


def _sampled(count: int, most: int) -> list[int]:
    """All up to a number of them, then ever fewer."""
    return sorted(
        {*range(min(count, most)), *(int(most * 1.4**i) for i in range(30) if most * 1.4**i < count), max(count - 2, 0)}
    )


def _spoilt(text: bytes, share: float) -> bytes:
    at = int(len(text) * share)
    return text[:at] + b"\xff\xfe\xc3" + text[at:]


def _lost(path: str) -> Fault:
    """One file or link of many."""

    def files(answered: Files) -> Files:
        return answered._replace(
            text={each: text for each, text in answered.text.items() if each != path},
            links={each: target for each, target in answered.links.items() if each != path},
            errors={**answered.errors, path: DENIED},
        )

    return Fault(f"{path} denied", lambda answered: answered, files)


def _more_keys(text: bytes) -> bytes:
    try:
        document = json.loads(text)
    except ValueError:
        return text
    return json.dumps(_more(document)).encode() if isinstance(document, dict) else text


def _more(value: Any) -> Any:
    if isinstance(value, dict):
        return {**{key: _more(each) for key, each in value.items()}, "zz_later": 7}
    return [_more(each) for each in value] if isinstance(value, list) else value


@cache
def _vocabulary(source: Source) -> frozenset[str]:
    """The words in what a parser is made of: its own texts, and those of all functions and tables of ours that it uses."""
    found = set[str]()
    todo, done = [source.parse], set[int]()
    while todo:
        if id(each := todo.pop()) not in done:
            done.add(id(each))
            if isinstance(each, FunctionType):
                names = {**each.__globals__, **dict(zip(each.__code__.co_freevars, _enclosed(each), strict=True))}
                todo += _of_code(each.__code__, names)
            elif isinstance(each, type):
                todo += [value for value in vars(each).values() if isinstance(value, FunctionType)]
            elif wrapped := getattr(each, "__wrapped__", None) or getattr(each, "func", None):
                todo.append(wrapped)
            elif isinstance(each, Source):
                todo += [each.parse, each.facts]
            elif isinstance(each, re.Pattern):
                todo.append(each.pattern)
            elif isinstance(each, Mapping):
                todo += [*each, *each.values()]
            elif isinstance(each, tuple | list | set | frozenset):
                todo += each
            elif isinstance(each, str):
                found |= set(re.findall(r"[A-Za-z_][\w-]+", each))
    return frozenset(found)


def _enclosed(function: FunctionType) -> list[Any]:
    return [cell.cell_contents for cell in function.__closure__ or ()]


def _of_code(code: CodeType, names: Mapping[str, Any]) -> Iterator[Any]:
    """Constants, and what of ours it names; of a module what it may take from there."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _of_code(each, names)
        else:
            yield each
    for each in (names.get(name) for name in code.co_names):
        if isinstance(each, ModuleType) and each.__name__.startswith("auditor."):
            yield from (vars(each)[name] for name in code.co_names if name in vars(each))
        elif not isinstance(each, ModuleType) and getattr(each, "__module__", "auditor.").startswith("auditor."):
            yield each


def _words(source: Source, texts: Sequence[bytes]) -> set[str]:
    """The words of the output that the parser knows: keys, states, values of a closed set."""
    there = {word.decode() for text in texts for word in re.findall(rb"(?<![\w-])[A-Za-z_][\w-]+", text)}
    return there & _vocabulary(source)
