"""Ways in which an answer goes wrong: pure functions from what a host answered to what it might have answered instead."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from typing import Any

from auditor.collect import _pool_tree, _status_json, _status_text, device_reply, kstat, lzc, zfs_properties
from auditor.collect.host import Capture, Host
from auditor.collect.request import Files, Read, Run

HELPERS: tuple[ModuleType, ...] = (_pool_tree, _status_json, _status_text, device_reply, kstat, lzc, zfs_properties)
DENIED = "permission denied"
GARBAGE = bytes((i * 197 + 61) % 256 for i in range(700)) + b"\n"
LATER = "quantum"  # a word that no release says


@dataclass(frozen=True, slots=True)
class Fault:
    """gone: no answer at all. partial: what is left of the answer is as it was (a later release may mean other things)."""

    name: str
    capture: Callable[[Capture], Capture]
    files: Callable[[Files], Files]
    gone: bool = False
    partial: bool = True


@dataclass(slots=True)
class FaultyHost:
    """A host that answers everything with a fault."""

    host: Host
    fault: Fault
    now: float = 0.0
    euid: int = 0

    def __post_init__(self) -> None:
        self.now, self.euid = self.host.now, self.host.euid

    def run(self, request: Run) -> Capture:
        return self.fault.capture(self.host.run(request))

    def read(self, request: Read) -> Files:
        files = self.fault.files(self.host.read(request))
        patterns = dict.fromkeys(request.patterns, DENIED) if self.fault.name == "not permitted" else {}
        return Files(files.text, files.links, {**patterns, **files.errors})

    def realpath(self, path: str) -> str:
        return self.host.realpath(path)


def _text(name: str, change: Callable[[bytes], bytes], *, partial: bool = True) -> Fault:
    """A fault of the text alone: of standard output, and of each file."""

    def files(answered: Files) -> Files:
        return replace(answered, text={path: _str(change(_bytes(text))) for path, text in answered.text.items()})

    return Fault(name, lambda answered: replace(answered, stdout=change(answered.stdout)), files, partial=partial)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _str(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _silent(why: str) -> Callable[[Files], Files]:
    """No file could be read, no link followed."""
    return lambda answered: Files({}, {}, dict.fromkeys((*answered.text, *answered.links, *answered.errors), why))


NONE = Fault("none", lambda answered: answered, lambda answered: answered)
NOT_INSTALLED = Fault("not installed", lambda _: Capture(None, fault="not installed"), _silent("no such file"), True)
NOT_PERMITTED = Fault("not permitted", lambda _: Capture(1, b"", b"permission denied\n"), _silent(DENIED), True)
TIME_OUT = Fault(
    "time-out",
    lambda answered: Capture(None, answered.stdout[:99], b"", 30.0, "no answer within 30 s"),
    _silent("no answer within 30 s"),
    True,
)
EMPTY = _text("empty", lambda _: b"")
BINARY = _text("garbage", lambda _: GARBAGE, partial=False)


def all_faults(module: ModuleType, answers: Sequence[Capture | Files], names: frozenset[str]) -> Iterator[Fault]:
    """Every fault of one collector. answers: what it was told; names: words that are names of things, not of the format."""
    yield from (NOT_INSTALLED, NOT_PERMITTED, TIME_OUT, EMPTY, BINARY)
    texts = [text for answer in answers for text in _texts(answer)]
    longest = max((text.count(b"\n") + 1 for text in texts), default=0)
    for line in _sampled(longest, 25):
        yield _text(f"cut after {line} lines", lambda text, at=line: b"".join(text.splitlines(True)[:at]))  # type: ignore[misc]
        yield _text(f"cut in line {line + 1}", lambda text, at=line: _cut_in(text, at))  # type: ignore[misc]
    for share in (0.1, 0.5, 0.9):
        yield _text(f"not UTF-8 at {share:.0%}", lambda text, at=share: _spoilt(text, at), partial=False)  # type: ignore[misc]
    paths = {path for answer in answers if isinstance(answer, Files) for path in (*answer.text, *answer.links)}
    for path in sorted(paths)[:: max(len(paths) // 25, 1)]:
        yield _lost(path)
    yield _text("a later release: more keys", _more_keys)
    for word in sorted(_words(module, texts) - names):
        yield _text(
            f"a later release: not {word}",
            lambda text, old=word: re.sub(rb"(?<![\w-])%s(?![\w-])" % old.encode(), LATER.encode(), text),  # type: ignore[misc]
            partial=False,
        )
    if module.__name__.endswith(".zfs_version"):
        yield _text("a later release", lambda _: b"2.9.0-1\n", partial=False)


def _texts(answer: Capture | Files) -> list[bytes]:
    return [answer.stdout] if isinstance(answer, Capture) else list(map(_bytes, answer.text.values()))


def _sampled(count: int, most: int) -> list[int]:
    """All up to a number of them, then ever fewer."""
    return sorted(
        {*range(min(count, most)), *(int(most * 1.4**i) for i in range(30) if most * 1.4**i < count), max(count - 2, 0)}
    )


def _cut_in(text: bytes, at: int) -> bytes:
    lines = text.splitlines(True)
    return b"".join(lines[:at]) + (lines[at][: len(lines[at]) // 2] if at < len(lines) else b"")


def _spoilt(text: bytes, share: float) -> bytes:
    at = int(len(text) * share)
    return text[:at] + b"\xff\xfe\xc3" + text[at:]


def _lost(path: str) -> Fault:
    """One file or link of many."""

    def files(answered: Files) -> Files:
        return Files(
            {each: text for each, text in answered.text.items() if each != path},
            {each: target for each, target in answered.links.items() if each != path},
            {**answered.errors, path: DENIED},
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
def _vocabulary(module: ModuleType) -> frozenset[str]:
    """The words in the source of a parser and of the modules that it is made of."""
    parts = [module, *(each for each in HELPERS if each.__name__.rpartition(".")[2] in inspect.getsource(module))]
    if _status_json in parts or _status_text in parts:
        parts.append(_pool_tree)
    return frozenset(word for part in parts for word in re.findall(r"[A-Za-z_][\w-]+", inspect.getsource(part)))


def _words(module: ModuleType, texts: Sequence[bytes]) -> set[str]:
    """The words of the output that the parser knows: keys, states, values of a closed set."""
    there = {word.decode() for text in texts for word in re.findall(rb"(?<![\w-])[A-Za-z_][\w-]+", text)}
    return there & _vocabulary(module)
