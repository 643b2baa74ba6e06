"""Ways in which answers go wrong: pure functions from what a host answered to what it might have answered instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.facts import Facts, Subject
from auditor.host.live import Host
from auditor.host.request import Capture, Files, Read, Run
from auditor.judge import verdict
from auditor.judge.rule import Rule

DENIED = "permission denied"
GARBAGE = bytes((i * 197 + 61) % 256 for i in range(700)) + b"\n"
LATER = b"quantum"  # a word that no release says


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
    """A host that answers with a fault. to: the questions (argv, or patterns) that it answers so; None: all."""

    host: Host
    fault: Fault
    to: Container[tuple[str, ...]] | None = None
    now: float = 0.0
    euid: int = 0
    at_once: int = 1

    def __post_init__(self) -> None:
        self.now, self.euid = self.host.now, self.host.euid

    def run(self, request: Run) -> Capture:
        answered = self.host.run(request)
        return self.fault.capture(answered) if self.to is None or request.argv in self.to else answered

    def read(self, request: Read) -> Files:
        answered = self.host.read(request)
        if self.to is not None and request.patterns not in self.to:
            return answered
        files = self.fault.files(answered)
        patterns = dict.fromkeys(request.patterns, DENIED) if self.fault is NOT_PERMITTED else {}
        return files._replace(errors={**patterns, **files.errors})

    def realpath(self, path: str) -> str:
        return self.host.realpath(path)

    def steady(self, path: str) -> str:
        return self.host.steady(path)


def of_text(name: str, change: Callable[[bytes], bytes], *, partial: bool = True) -> Fault:
    """A fault of the text alone: of standard output, and of each file."""

    def files(answered: Files) -> Files:
        changed = {path: change(as_bytes(text)) for path, text in answered.text.items()}
        text = {path: data.decode("utf-8", "surrogateescape") for path, data in changed.items()}
        return answered._replace(text=text)

    return Fault(name, lambda answered: answered._replace(stdout=change(answered.stdout)), files, partial=partial)


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _silent(why: str) -> Callable[[Files], Files]:
    """No file could be read, no link followed."""
    return lambda answered: Files({}, {}, dict.fromkeys((*answered.text, *answered.links, *answered.errors), why))


def cut_in(text: bytes, at: int) -> bytes:
    """The first lines, and half of the next."""
    lines = text.splitlines(True)
    return b"".join(lines[:at]) + (lines[at][: len(lines[at]) // 2] if at < len(lines) else b"")


NONE = Fault("none", lambda answered: answered, lambda answered: answered)
NOT_INSTALLED = Fault("not installed", lambda _: Capture(None, fault="not installed"), _silent("no such file"), True)
NOT_PERMITTED = Fault("not permitted", lambda _: Capture(1, b"", b"permission denied\n"), _silent(DENIED), True)
TIME_OUT = Fault(
    "time-out",
    lambda answered: Capture(None, answered.stdout[:99], b"", 30.0, "no answer within 30 s"),
    _silent("no answer within 30 s"),
    True,
)
EMPTY = of_text("empty", lambda _: b"")
NOTHING_SAID = Fault("nothing said", lambda answered: answered._replace(stdout=b""), lambda _: Files({}))
BINARY = of_text("garbage", lambda _: GARBAGE, partial=False)
CUT = of_text("cut off", lambda text: cut_in(text, 0))
HALVED = of_text("cut in half", lambda text: text[: len(text) // 2])
UNKNOWN_RELEASE = Fault(
    "unknown release",  # it spells every word otherwise, and calls every file otherwise
    lambda answered: answered._replace(stdout=re.sub(rb"[A-Za-z_][A-Za-z_]+", LATER, answered.stdout)),
    _silent("no such file"),
    partial=False,
)
OF_ONE = (NOT_PERMITTED, EMPTY, NOTHING_SAID, BINARY, CUT, HALVED, UNKNOWN_RELEASE)
"""Of one question among many: no verdict may get better by it."""


Outcomes = dict[tuple[str, Subject], str]


def outcomes(rules: Sequence[Rule], facts: Facts) -> Outcomes:
    """(rule, subject) -> pass, fail, unknown or not applicable."""
    return {(each.rule.id, each.subject): each.outcome for each in verdict.judge(rules, facts)}


# Answers that lost something and look whole: a line, a key, the rest after a line; or that are for another subject.
#
# Deterministic: of many lines and keys some are taken, evenly spread.

# One look only, and no end mark: of a line that is lost from these nothing else tells. The kernel forgets its log; the others
# are files that people write, which end where they end.
ONE_LOOK = frozenset(
    {
        *("kernel_log", "modprobe", "samba_conf", "nfs_exports", "trim_timers"),
        *("database_process", "database_includes", "database_settings", "database_sql"),
    }
)
TEMPORARY = of_text(
    "temporary readonly", lambda text: text.replace(b"\treadonly\toff\tdefault\n", b"\treadonly\ton\ttemporary\n")
)


def of_answers(answers: Sequence[Capture | Files], most: int) -> Iterator[Fault]:
    """Losses of one collector's answers: at most so many lines gone, cuts after a line, and keys gone."""
    texts = [answer.stdout for answer in answers if isinstance(answer, Capture)]
    texts += [as_bytes(text) for answer in answers if isinstance(answer, Files) for text in answer.text.values()]
    lines = max((text.count(b"\n") for text in texts), default=0)
    for at in _spread(lines, most):
        yield of_text(f"line {at + 1} lost", lambda text, at=at: _without_line(text, at))  # type: ignore[misc]
        yield of_text(f"cut after line {at}", lambda text, at=at: b"".join(text.splitlines(True)[:at]))  # type: ignore[misc]
    keys = max((len(list(_places(_document(text)))) for text in texts), default=0)
    for at in _spread(keys, most):
        yield of_text(f"key {at + 1} lost", lambda text, at=at: _without_key(text, at))  # type: ignore[misc]


def of_another(answer: Capture) -> Fault:
    return Fault("an answer for another", lambda _: answer, lambda files: files)


def _spread(count: int, most: int) -> list[int]:
    return sorted({(2 * i + 1) * count // (2 * most) for i in range(most)}) if count > most else list(range(count))


def _without_line(text: bytes, at: int) -> bytes:
    lines = text.splitlines(True)
    return b"".join(lines[:at] + lines[at + 1 :])


def _document(text: bytes) -> Any:
    if text.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """(what holds it, its key) of everything in a document, those that are lists or objects first: rows and sections."""
    inner = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    for key, value in inner:
        if isinstance(value, dict | list):
            yield node, key
            yield from _places(value)


def _without_key(text: bytes, at: int) -> bytes:
    document = _document(text)
    for i, (holder, key) in enumerate(_places(document)):
        if i == at:
            del holder[key]
            return json.dumps(document).encode() + b"\n"
    return text
