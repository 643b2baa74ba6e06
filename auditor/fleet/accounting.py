"""That every recording comes out again, once: what was judged, what was not and why, what was given twice, who is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from auditor.errors import EXIT_USAGE, Stop
from auditor.fleet.inputs import Input
from auditor.fleet.judging import Row, common, lines, missing
from auditor.judge.finding import EXIT_UNDECIDED
from auditor.report.fleet.looks import ahead, named, place
from auditor.report.fleet.words import names
from auditor.text import harmless

HOSTS = 1_000_000
HOST = re.compile(r"[^\W_][\w.-]{0,252}")
ERRORS_SHOWN = 10
ERROR = 200  # characters


class InventoryError(Stop):
    """A list of hosts that is none."""


def inventory(text: str) -> tuple[str, ...]:
    """The hosts that are expected: one a line, # begins a comment. Raises InventoryError, which repeats nothing of a file that
    may be any."""
    hosts: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if name := line.partition("#")[0].strip():
            if not HOST.fullmatch(name):
                raise InventoryError(f"line {number}: an inventory has one host per line: letters, digits and . _ -")
            hosts[name] = None
    if not hosts or len(hosts) > HOSTS:
        raise InventoryError(f"an inventory names 1 to {HOSTS:,} hosts, one per line; this one has {len(hosts):,}")
    return tuple(hosts)


@dataclass
class Account:
    """expected: the hosts of the inventory. The names of the others are of hosts that nobody expected. now: seconds since the
    epoch. ahead, claimed: hosts, as of Looks. own: expected hosts of which a recording lies where it is called so; another
    one that says that it is of one of them (posing) is called as its file."""

    expected: frozenset[str]
    now: float
    judged: int = 0
    rows: int = 0
    twice: int = 0
    errors: list[str] = field(default_factory=list)
    unjudged: int = 0
    seen: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    ahead: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)
    own: frozenset[str] = frozenset()
    posing: set[str] = field(default_factory=set)
    _places: dict[str, str] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)

    def in_order(self, recordings: Iterable[Input]) -> tuple[Input, ...]:
        """Those first that lie where an expected host is called so: of two that are the same, it is the other that is there
        twice."""
        every = tuple(recordings)
        placed = {each: name for each in every if (name := self._placed(each.name))}
        self.own = frozenset(placed.values())
        return tuple(sorted(every, key=lambda each: each not in placed))

    def counted(self, text: str) -> str:
        """The same lines of one recording, with the ``name`` of its host; of one that was there before, a line that says so."""
        row = json.loads(text.partition("\n")[0])
        if row["kind"] == "unjudged":
            self.unjudged += 1
            self.errors += [f"{row['recording']}: {row['error']}"[:ERROR]][: ERRORS_SHOWN - len(self.errors)]
            self.rows += 1
            name = self.name(row["recording"], "")
            if name in self.expected:  # it came, and cannot be read
                self.seen.add(name)
                return lines([{"name": name, **row}])
            return text
        before = self._digests.setdefault(row["digest"], row["recording"])
        if before != row["recording"]:
            self.twice += 1
            self.rows += 1
            return lines([{**common("duplicate"), "recording": row["recording"], "of": before}])
        name = self.name(row["recording"], row["host"])
        (self.seen if name in self.expected else self.others).add(name)
        self._doubt(name, row)
        self.judged += 1
        self.rows += text.count("\n")
        begins = json.dumps({"name": name})[:-1]
        return "".join(f"{begins}, {line[1:]}\n" for line in text.splitlines())

    def name(self, recording: str, host: str) -> str:
        """What a host is called: as the inventory has it, by where the recording lies; else as it calls itself, unless that is
        the name of another one."""
        if (name := self._placed(recording)) or host not in self.own:
            return name or host
        self.posing.add(host)
        return recording

    def _placed(self, recording: str) -> str:
        return next((name for name in named(recording) if name in self.expected), "")

    def _doubt(self, name: str, row: Row) -> None:
        if ahead(datetime.fromisoformat(row["taken"]).timestamp(), self.now):
            self.ahead.add(name)
        if (at := place(row["recording"], name)) != self._places.setdefault(name, at):
            self.claimed.add(name)

    def absent(self) -> Iterator[str]:
        """A line for each host that was expected and did not come."""
        for host in sorted(self.expected - self.seen):
            self.rows += 1
            yield lines([missing(host)])

    @property
    def exit_code(self) -> int:
        """0 where everything was judged and everybody is there. What was found does not count: that is the report's to say."""
        return EXIT_USAGE if self.unjudged else EXIT_UNDECIDED if self.expected - self.seen else 0

    def told(self, asked: int, beside: int, too_deep: Iterable[str]) -> Iterator[str]:
        """The sum, in sentences. asked: how many recordings there were."""
        yield (
            f"{asked:,} recordings: {self.judged:,} judged, {self.unjudged:,} could not be judged, "
            f"{self.twice:,} given twice; {self.rows:,} rows"
        )
        yield from (f"not judged: {error}" for error in self.errors)
        if self.unjudged > len(self.errors):
            yield f"not judged: {self.unjudged - len(self.errors):,} more (kind unjudged in the rows)"
        if self.expected:
            gone, more = len(self.expected) - len(self.seen), len(self.others)
            yield f"{len(self.expected):,} hosts expected: {gone:,} missing; {more:,} came that were not expected"
        if self.ahead:
            yield f"taken in the future, as the recordings say, of {names(self.ahead)}: is a clock wrong?"
        if self.claimed:
            which = "the newest counts" if self.expected else "--inventory tells them apart"
            yield f"recordings of several places say that they are of {names(self.claimed)}: {which}"
        if self.posing:
            yield f"recordings that lie elsewhere say that they are of {names(self.posing)}: each is called as its file"
        if beside:
            yield f"{beside:,} other files in these folders are no recordings and were left alone"
        for folder in too_deep:
            yield f"not looked into, too deep: {harmless(folder)}"
