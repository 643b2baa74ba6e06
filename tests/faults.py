"""Every way in which the answers of one collector can go wrong, made from what they were."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from auditor.collect import _pool_tree, _status_json, _status_text, device_reply, kstat, zfs_properties
from auditor.host import lzc
from auditor.host.request import Capture, Files
from auditor.selftest.faults import (
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

HELPERS: tuple[ModuleType, ...] = (_pool_tree, _status_json, _status_text, device_reply, kstat, lzc, zfs_properties)
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


def all_faults(module: ModuleType, answers: Sequence[Capture | Files], names: frozenset[str]) -> Iterator[Fault]:
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
    for word in sorted(_words(module, texts) - names):
        yield of_text(
            f"a later release: not {word}",
            lambda text, old=word: re.sub(rb"(?<![\w-])%s(?![\w-])" % old.encode(), LATER.encode(), text),  # type: ignore[misc]
            partial=False,
        )
    if module.parse.__module__.endswith(".zfs_version"):
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
def _vocabulary(module: ModuleType) -> frozenset[str]:
    """The words in the source of a parser and of the modules that it is made of."""
    own = inspect.getmodule(module.parse)
    assert own
    parts = [own, *(each for each in HELPERS if each.__name__.rpartition(".")[2] in inspect.getsource(own))]
    if _status_json in parts or _status_text in parts:
        parts.append(_pool_tree)
    return frozenset(word for part in parts for word in re.findall(r"[A-Za-z_][\w-]+", inspect.getsource(part)))


def _words(module: ModuleType, texts: Sequence[bytes]) -> set[str]:
    """The words of the output that the parser knows: keys, states, values of a closed set."""
    there = {word.decode() for text in texts for word in re.findall(rb"(?<![\w-])[A-Za-z_][\w-]+", text)}
    return there & _vocabulary(module)
