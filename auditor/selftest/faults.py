"""Ways in which answers go wrong: pure functions from what a host answered to what it might have answered instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from dataclasses import dataclass, field

from auditor.host.live import Host
from auditor.host.request import Capture, Files, Read, Run

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


class Everything:
    """Contains every question."""

    def __contains__(self, question: object) -> bool:
        return True


@dataclass(slots=True)
class FaultyHost:
    """A host that answers with a fault. to: the questions (argv, or patterns) that it answers so."""

    host: Host
    fault: Fault
    to: Container[tuple[str, ...]] = field(default_factory=Everything)
    now: float = 0.0
    euid: int = 0
    at_once: int = 1

    def __post_init__(self) -> None:
        self.now, self.euid = self.host.now, self.host.euid

    def run(self, request: Run) -> Capture:
        answered = self.host.run(request)
        return self.fault.capture(answered) if request.argv in self.to else answered

    def read(self, request: Read) -> Files:
        answered = self.host.read(request)
        if request.patterns not in self.to:
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
        text = {path: as_text(change(as_bytes(text))) for path, text in answered.text.items()}
        return answered._replace(text=text)

    return Fault(name, lambda answered: answered._replace(stdout=change(answered.stdout)), files, partial=partial)


def as_bytes(text: str) -> bytes:
    """A file as it was read."""
    return text.encode("utf-8", "surrogateescape")


def as_text(data: bytes) -> str:
    """A file as a parser sees it."""
    return data.decode("utf-8", "surrogateescape")


def _silent(why: str) -> Callable[[Files], Files]:
    """No file could be read, no link followed."""
    return lambda answered: Files({}, {}, dict.fromkeys((*answered.text, *answered.links, *answered.errors), why))


def cut_in(text: bytes, at: int) -> bytes:
    """The first lines, and half of the next."""
    lines = text.splitlines(True)
    return b"".join(lines[:at]) + (lines[at][: len(lines[at]) // 2] if at < len(lines) else b"")


def _other_words(text: bytes) -> bytes:
    return re.sub(rb"[A-Za-z_][A-Za-z_]+", LATER, text)


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
    lambda answered: answered._replace(stdout=_other_words(answered.stdout)),
    _silent("no such file"),
    partial=False,
)
OF_ONE = (NOT_PERMITTED, EMPTY, NOTHING_SAID, BINARY, CUT, HALVED, UNKNOWN_RELEASE)
"""Of one question among many: no verdict may get better by it."""
