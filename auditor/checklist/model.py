"""What a checklist says, before anybody decides how it looks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from auditor.judge.event import Severity
from auditor.judge.finding import RANK

Answer = Literal["no", "open", "accepted", "yes", "does not apply"]
Source = Literal["check", "verify", "diagnose", "person"]
ANSWERS: tuple[Answer, ...] = ("no", "open", "accepted", "yes", "does not apply")  # as they are told
UNMEASURED, UNWATCHED = "nothing was measured", "the load was not watched"
PASSES = "passes"  # said of a rule that could only have spoken against a line


class Said(NamedTuple):
    """What one thing that was seen, or is missing, says of a line. by: where it is from. text: a sentence without its full
    stop. rule: that judged it, or empty. do: a command, or a deed: of a no what mends it, of an open line what would answer
    it, else what shows it again; or empty. severity: of a no."""

    answer: Answer
    by: Source
    text: str
    do: str = ""
    rule: str = ""
    severity: Severity | None = None


class Answered(NamedTuple):
    """One line. list, id, text, source: of checklists.toml. said: what decided it, the rest of what was seen after it."""

    list: str
    id: str
    text: str
    source: str
    answer: Answer
    said: tuple[Said, ...]

    @property
    def deciding(self) -> tuple[Said, ...]:
        """What made the answer what it is."""
        return tuple(each for each in self.said if each.answer == self.answer)

    @property
    def person(self) -> bool:
        """Whether only a person can answer what is open."""
        return self.answer == "open" and all(each.by == "person" for each in self.deciding)


def wrong(lines: Iterable[Answered]) -> list[Said]:
    """What makes lines a no, each once, the gravest first."""
    found = {each for line in lines if line.answer == "no" for each in line.deciding}
    return sorted(found, key=lambda each: (-RANK[each.severity or "low"], each.by, each.text))


class Evidence(NamedTuple):
    """One look that the answers rest on. taken: seconds since the epoch; text: what it was, in a few words. changed: what is
    different in the audit, so that it answers nothing any more."""

    by: Source
    taken: float
    text: str
    changed: tuple[str, ...] = ()


class Checklist(NamedTuple):
    """The lists of one target. made: when it was drawn up, in seconds since the epoch. titles: of the lists, by id. next: a
    command. exit_code: of the command."""

    target: str
    hostname: str
    release: str
    made: float
    evidence: tuple[Evidence, ...]
    titles: tuple[tuple[str, str], ...]
    lines: tuple[Answered, ...]
    next: str
    exit_code: int

    def of(self, answer: Answer) -> tuple[Answered, ...]:
        """The lines with an answer, in the order of the lists."""
        return tuple(each for each in self.lines if each.answer == answer)
