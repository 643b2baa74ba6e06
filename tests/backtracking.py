"""How many steps a regular expression takes: the backtracking of :mod:`re`, done again so that it can be counted, and the
strings on which it has to try the most ways. A clock would say another thing on every machine.

Every pattern is judged on strings made of its own parts: what leads up to one of its repeats, many times what the repeat (or
another part) takes, and an end that does not fit. Twice as many may take twice the steps; four times is a square.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, islice
from typing import NamedTuple

from tests import pattern_syntax
from tests.pattern_syntax import Again, Atomic, Branches, Character, Group, Look, Node, Place, Repeat

SHORT, LIMIT = 48, 3.0  # pumps; steps of twice as many, by steps of as many: 2 is linear, 4 a square
MOST = 200_000
PLAIN = "".join(sorted(map(chr, range(256)), key=lambda each: (not each.isalnum(), not each.isprintable(), each)))
ENDS = ("\0", "\n\0")
Match = Callable[[str, int], Iterator[int]]  # text, where it begins -> every end, in the order in which re tries them


class TooMany(Exception):
    """More than MOST steps."""


class Machine:
    """One pattern. steps: how often it looked at a character, or went on to the next round of a repeat."""

    def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
        self.tree = pattern_syntax.parse(pattern, flags)
        self.steps, self._groups = 0, dict[int, str]()
        self._match = self._branches(self.tree)

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MOST:
            raise TooMany

    def ends(self, text: str, at: int) -> int | None:
        """Where the match that begins here ends."""
        self._groups.clear()
        return next(self._match(text, at), None)

    def count(self, text: str, how: str) -> int:
        """Steps of match, fullmatch, search, or of all the matches one after the other (finditer, sub, split)."""
        self.steps, at = 0, 0
        if how == "fullmatch":
            next((end for end in self._match(text, 0) if end == len(text)), None)
            return self.steps
        while at <= len(text):
            self._step()
            end = self.ends(text, at)
            if how == "match" or (how == "search" and end is not None):
                break
            at = max(end or 0, at + 1)
        return self.steps

    def _branches(self, tree: Branches) -> Match:
        ways = [self._sequence(each) for each in tree.ways]
        return ways[0] if len(ways) == 1 else lambda text, at: chain.from_iterable(way(text, at) for way in ways)

    def _sequence(self, nodes: Iterable[Node]) -> Match:
        parts = [self._node(each) for each in nodes]
        if not parts:
            return lambda text, at: iter((at,))
        if len(parts) == 1:
            return parts[0]

        def match(text: str, at: int) -> Iterator[int]:
            open_ = [parts[0](text, at)]
            while open_:
                end = next(open_[-1], None)
                if end is None:
                    open_.pop()
                elif len(open_) == len(parts):
                    yield end
                else:
                    open_.append(parts[len(open_)](text, end))

        return match

    def _node(self, node: Node) -> Match:
        match node:
            case Character():
                return self._character(accepts(node))
            case Group(number, body):
                return self._group(number, self._branches(body))
            case Repeat(least, most, how, body):
                repeated = self._repeat(least, most, self._node(body), how == "?")
                return _first(repeated) if how == "+" else repeated
            case Atomic(body):
                return _first(self._branches(body))
            case Look(behind, wanted, body):
                return self._look(pattern_syntax.width(body) if behind else None, self._branches(body), wanted)
            case Place(text, flags):
                place = re.compile(text, flags & (re.MULTILINE | re.ASCII))
                return lambda text, at: iter((at,) if place.match(text, at) else ())
            case Again(number):
                return self._again(number)

    def _character(self, fits: Callable[[str], bool]) -> Match:
        def match(text: str, at: int) -> Iterator[int]:
            self._step()
            if at < len(text) and fits(text[at]):
                yield at + 1

        return match

    def _group(self, group: int | None, inner: Match) -> Match:
        def match(text: str, at: int) -> Iterator[int]:
            for end in inner(text, at):
                if group is not None:
                    self._groups[group] = text[at:end]
                yield end

        return match

    def _again(self, group: int) -> Match:
        def match(text: str, at: int) -> Iterator[int]:
            said = self._groups.get(group)
            self.steps += 1 + len(said or "")
            if said is not None and text.startswith(said, at):
                yield at + len(said)

        return match

    def _look(self, behind: int | None, inner: Match, wanted: bool) -> Match:
        """behind: so many characters, of a lookbehind."""
        back = behind or 0

        def match(text: str, at: int) -> Iterator[int]:
            ends = inner(text, at - back) if at >= back else iter(())
            if any(behind is None or end == at for end in ends) == wanted:
                yield at

        return match

    def _repeat(self, least: int, most: int, body: Match, lazy: bool) -> Match:
        def match(text: str, at: int) -> Iterator[int]:
            rounds, ends = [body(text, at)], [at]
            if lazy and not least:
                yield at
            while rounds:
                self._step()
                end = next(rounds[-1], None) if len(rounds) <= most else None
                if end is None:
                    rounds.pop()
                    back = ends.pop()
                    if not lazy and len(rounds) >= least:
                        yield back
                elif end != ends[-1] or len(rounds) <= least:
                    rounds.append(body(text, end))
                    ends.append(end)
                    if lazy and len(rounds) > least:
                        yield end

        return match


def _first(match: Match) -> Match:
    """Of an atomic group or a possessive repeat: no other way is tried."""
    return lambda text, at: islice(match(text, at), 1)


@cache
def accepts(character: Character) -> Callable[[str], bool]:
    """What it takes: re itself is asked, once for each, and once for all patterns that have it."""
    asked = re.compile(character.text, character.flags & (re.IGNORECASE | re.DOTALL | re.ASCII))
    return cache(lambda each: asked.fullmatch(each) is not None)


# -- hostile strings ------------------------------------------------------------------------------------------------------


class Loop(NamedTuple):
    """A repeat that may take many. before: what leads up to it; body: what it repeats; after: the character that ends it."""

    before: str
    body: Node
    after: str


def loops(tree: Branches, before: str = "", after: str = "") -> Iterator[Loop]:
    """All of them, at any depth."""
    for way in tree.ways:
        so_far = before
        for i, node in enumerate(way):
            following = example(way[i + 1 :])[:1] or after
            yield from _loops(node, so_far, following)
            so_far += example((node,))


def _loops(node: Node, before: str, after: str) -> Iterator[Loop]:
    match node:
        case Repeat(_, most, _, body):
            if most >= SHORT:
                yield Loop(before, body, after)
            yield from _loops(body, before, after)
        case Group(_, body) | Atomic(body) | Look(_, _, body):
            yield from loops(body, before, after)


def example(nodes: Iterable[Node]) -> str:
    """A short text that it takes, as far as that can be told from left to right."""
    said = ""
    for node in nodes:
        match node:
            case Character():
                fits = accepts(node)
                said += next((each for each in PLAIN if fits(each)), "")
            case Group(_, body) | Atomic(body):
                said += example(body.ways[0])
            case Repeat(least, _, _, body):
                said += example((body,)) * max(least, 1)
    return said


def characters(node: Node | Branches) -> Iterator[Character]:
    """Everything in it that takes one."""
    match node:
        case Character():
            yield node
        case Branches(ways):
            yield from (found for way in ways for each in way for found in characters(each))
        case Group(_, body) | Atomic(body) | Look(_, _, body):
            yield from characters(body)
        case Repeat(_, _, _, body):
            yield from characters(body)


def hostile(machine: Machine) -> Iterator[tuple[str, str, str]]:
    """(beginning, what comes many times, end). Of all characters that no repeat tells apart one is enough."""
    found = list(loops(machine.tree))
    taken = [accepts(character) for each in found for character in characters(each.body)]
    kinds = [*taken, *({each.after}.__contains__ for each in found), str.isalnum, {"\n"}.__contains__]
    told: dict[tuple[bool, ...], str] = {}
    for character in PLAIN:
        if any(fits(character) for fits in taken):
            told.setdefault(tuple(bool(fits(character)) for fits in kinds), character)
    starts = dict.fromkeys(("", *(each.before for each in found)))
    bodies = (example((each.body,)) for each in found)
    for pump in dict.fromkeys((*told.values(), *bodies)):
        yield from ((start, pump, end) for start in starts for end in ENDS if pump)
    for pump in dict.fromkeys((*starts, example(machine.tree.ways[0]))):
        yield from (("", pump, end) for end in ENDS if pump)


class Worse(NamedTuple):
    """A string of which twice as many take more than LIMIT times the steps, or one that takes more than MOST."""

    times: float
    string: tuple[str, str, str]


def worse(pattern: str | bytes, flags: int = 0, how: str = "search") -> Worse | None:
    """The first such string, if there is one."""
    machine = Machine(pattern, flags)
    for start, pump, end in hostile(machine):
        before, times = 0, 0.0
        for many in (SHORT // 2, SHORT, SHORT * 2):
            try:
                steps = machine.count(start + pump * many + end, how)
            except TooMany:
                return Worse(float("inf"), (start, pump, end))
            times = steps / max(before, many)
            if before and times < LIMIT * 0.85:  # on the way to a square, it would be more by now
                break
            before = steps
        else:
            if times > LIMIT:
                return Worse(times, (start, pump, end))
    return None
