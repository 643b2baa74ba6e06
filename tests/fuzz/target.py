"""What is fuzzed, and how one case of it is tried: the same case gives the same outcome wherever it runs."""

from __future__ import annotations

import signal
import traceback
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Protocol

from auditor import Stop
from auditor.facts import Facts, Unknown
from auditor.gather.answer import DEFECT
from tests.fuzz import mutate

ROOT = Path(__file__).parent.parent.parent
HANG_S = 30  # of CPU time; only to end what would never end: nothing is measured
Case = dict[str, Any]  # as it stands in JSON


class Flaw(AssertionError):
    """A reader gave something that it may not give; the text is the same for all cases of the same kind."""


class Hang(BaseException):
    """The case did not end. Not an Exception: zaudit itself must not catch it."""


class Target(Protocol):
    """One reader, or a whole audit. make: a case by chance. check: tries it; "read" or "refused", or raises what is wrong.

    smaller: cases with less in them, to find the smallest that still shows the same.
    """

    @property
    def name(self) -> str: ...
    def make(self, chance: Random) -> Case: ...
    def check(self, case: Case) -> str: ...
    def smaller(self, case: Case) -> Iterator[Case]: ...


@dataclass(frozen=True)
class Texts:
    """A reader of one or several texts. seeds: cases that it reads, and the texts of which others are made: {"parts": by
    name, and what else ``read`` needs}; read: raises ValueError or Stop for what it refuses, and nothing else."""

    name: str
    find: Callable[[], list[Case]]
    read: Callable[[Case], None]
    strangers: Callable[[], list[str]] = lambda: [""]

    @cached_property
    def seeds(self) -> list[Case]:
        found = self.find()
        if not found:
            raise ValueError(f"{self.name} has no seed")
        return found

    def make(self, chance: Random) -> Case:
        seed = chance.choice(self.seeds)
        other = chance.choice(self.strangers()) if chance.random() < 0.5 else self._told(chance)
        return {**seed, "parts": mutate.parts(chance, seed["parts"], other)}

    def _told(self, chance: Random) -> str:
        parts: dict[str, str] = chance.choice(self.seeds)["parts"]
        return chance.choice([*parts.values(), ""])

    def check(self, case: Case) -> str:
        try:
            self.read(case)
        except (ValueError, Stop):
            return "refused"
        return "read"

    def smaller(self, case: Case) -> Iterator[Case]:
        parts = case["parts"]
        for name in parts:
            yield {**case, "parts": {each: text for each, text in parts.items() if each != name}}
        for name, told in parts.items():
            for less in mutate.smaller(told):
                yield {**case, "parts": {**parts, name: less}}


class Outcome(NamedTuple):
    """What came of one case. kind: read, refused, crash, hang, or the word of a Flaw; sign: the same for all cases that
    show the same mistake."""

    kind: str
    sign: str = ""

    @property
    def found(self) -> bool:
        return self.kind not in ("read", "refused")


def tried(target: Target, case: Case) -> Outcome:
    """One case, ended when it hangs."""

    def end(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, HANG_S)
    try:
        return Outcome(target.check(case))
    except Hang as error:
        return Outcome("hang", f"{target.name}: hang in {_place(error)[0]}")
    except Flaw as error:
        return Outcome(str(error).partition(":")[0], f"{target.name}: {error}")
    except Exception as error:
        return Outcome("crash", f"{target.name}: {type(error).__name__} in {':'.join(_place(error))}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _place(error: BaseException) -> tuple[str, str]:
    """(module, function) of zaudit in which it happened: line numbers change too often."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [each for each in frames if "/auditor/" in each.filename] or frames
    return Path(ours[-1].filename).name, ours[-1].name


def sound(facts: Facts) -> None:
    """No collector failed on its answer: zaudit goes on without it, and says to whom to report it."""
    failed = (
        reason.text.partition(DEFECT)[2]
        for fact in facts
        if isinstance(fact.value, Unknown)
        for reason in fact.value.reasons
        if DEFECT in reason.text
    )
    if defect := min(failed, default=""):
        raise Flaw(f"a defect of zaudit: {defect.partition(chr(39))[0]}")


def printable(text: str) -> None:
    """No character that moves the cursor, hides itself or others, or is none."""
    strange = {each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n"}
    if strange:
        raise Flaw(f"printed: U+{ord(min(strange)):04X}")


def smallest(target: Target, case: Case, sign: str, tries: int = 400) -> Case:
    """The smallest case found that shows the same."""
    while tries > 0:
        for less in target.smaller(case):
            tries -= 1
            if tries < 0 or tried(target, less).sign == sign:
                break
        else:
            break
        if tries >= 0:
            case = less
    return case
