"""How many steps a regular expression takes: the backtracking of :mod:`re`, done again so that it can be counted, and the
strings on which it has to try the most ways. A clock would say another thing on every machine.

Every pattern is judged on strings made of its own parts: what leads up to one of its repeats, many times what the repeat (or
another part) takes, and an end that does not fit. Twice as many may take twice the steps; four times is a square.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, islice
from re import _compiler, _parser  # type: ignore[attr-defined]
from re import _constants as c  # type: ignore[attr-defined]
from typing import Any, NamedTuple

SHORT, LIMIT = 48, 3.0  # pumps; steps of twice as many, by steps of as many: 2 is linear, 4 a square
MOST = 200_000
PLAIN = "".join(sorted(map(chr, range(256)), key=lambda each: (not each.isalnum(), not each.isprintable(), each)))
ENDS = ("\0", "\n\0")
REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)
Match = Callable[[str, int], Iterator[int]]  # text, where it begins -> every end, in the order in which re tries them


class TooMany(Exception):
    """More than MOST steps."""


class Machine:
    """One pattern. steps: how often it looked at a character, or went on to the next round of a repeat."""

    def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
        self.tree = _parser.parse(pattern, flags)
        ascii_only = isinstance(pattern, bytes) or bool(self.tree.state.flags & re.ASCII)
        self.flags = int(self.tree.state.flags) | (re.ASCII if ascii_only else 0)
        self.steps, self._groups = 0, dict[int, str]()
        self._match = self._sequence(self.tree, self.flags)

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

    def _sequence(self, nodes: Any, flags: int) -> Match:
        parts = [self._node(op, value, flags) for op, value in nodes]
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

    def _node(self, op: Any, value: Any, flags: int) -> Match:
        if op in (c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN):
            return self._character(accepts(op, value, flags))
        if op is c.BRANCH:
            ways = [self._sequence(each, flags) for each in value[1]]
            return lambda text, at: chain.from_iterable(way(text, at) for way in ways)
        if op is c.SUBPATTERN:
            group, added, removed, inner = value
            return self._group(group, self._sequence(inner, (flags | added) & ~removed))
        if op in (c.MAX_REPEAT, c.MIN_REPEAT):
            return self._repeat(value[0], value[1], self._sequence(value[2], flags), op is c.MIN_REPEAT)
        if op is c.POSSESSIVE_REPEAT:
            return _first(self._repeat(value[0], value[1], self._sequence(value[2], flags), False))
        if op is c.ATOMIC_GROUP:
            return _first(self._sequence(value, flags))
        if op in (c.ASSERT, c.ASSERT_NOT):
            return self._look(value[0], value[1], self._sequence(value[1], flags), op is c.ASSERT)
        if op is c.AT:
            place = _place(value, flags)
            return lambda text, at: iter((at,) if place.match(text, at) else ())
        if op is c.GROUPREF:
            return self._again(value)
        raise NotImplementedError(f"{op} is not counted")

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

    def _look(self, direction: int, nodes: Any, inner: Match, wanted: bool) -> Match:
        back = nodes.getwidth()[0] if direction < 0 else 0

        def match(text: str, at: int) -> Iterator[int]:
            ends = inner(text, at - back) if at >= back else iter(())
            if any(direction > 0 or end == at for end in ends) == wanted:
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


def accepts(op: Any, value: Any, flags: int) -> Callable[[str], bool]:
    """Which characters an atom takes: re itself is asked, once for each, and once for all patterns that have this atom."""
    flags &= int(re.IGNORECASE | re.DOTALL | re.ASCII)
    if (key := (f"{op} {value}", flags)) not in _ACCEPTS:
        asked = _compiler.compile(_parser.SubPattern(_parser.State(), [(op, value)]), flags)
        _ACCEPTS[key] = cache(lambda character: asked.match(character) is not None)
    return _ACCEPTS[key]


_ACCEPTS: dict[tuple[str, int], Callable[[str], bool]] = {}


def _place(where: Any, flags: int) -> re.Pattern[str]:
    """What matches at the beginning, at the end, or at the edge of a word."""
    pattern = {c.AT_BEGINNING: "^", c.AT_BEGINNING_STRING: r"\A", c.AT_END: "$", c.AT_END_STRING: r"\Z"}.get(where)
    pattern = pattern or {c.AT_BOUNDARY: r"\b", c.AT_NON_BOUNDARY: r"\B"}[where]
    return re.compile(pattern, flags & (re.MULTILINE | re.ASCII))


# -- hostile strings ------------------------------------------------------------------------------------------------------


class Repeat(NamedTuple):
    """A repeat that may take many. before: what leads up to it; body: what it repeats; after: the character that ends it."""

    before: str
    body: Any
    after: str


def repeats(nodes: Any, flags: int, before: str = "", after: str = "") -> Iterator[Repeat]:
    """All of them, at any depth."""
    nodes = list(nodes)
    for i, (op, value) in enumerate(nodes):
        following = example(nodes[i + 1 :], flags)[:1] or after
        if op in REPEATS and value[1] >= SHORT:
            yield Repeat(before, value[2], following)
        for inner in _within(op, value):
            yield from repeats(inner, flags, before, following)
        before += example([(op, value)], flags)


def _within(op: Any, value: Any) -> list[Any]:
    """The sequences that stand in a node."""
    if op in REPEATS:
        return [value[2]]
    match op:
        case c.BRANCH:
            return list(value[1])
        case c.SUBPATTERN:
            return [value[3]]
        case c.ATOMIC_GROUP:
            return [value]
        case c.ASSERT | c.ASSERT_NOT:
            return [value[1]]
    return []


def example(nodes: Any, flags: int) -> str:
    """A short text that it takes, as far as that can be told from left to right."""
    said = ""
    for op, value in nodes:
        match op:
            case c.LITERAL | c.NOT_LITERAL | c.ANY | c.IN:
                fits = accepts(op, value, flags)
                said += next((each for each in PLAIN if fits(each)), "")
            case c.BRANCH:
                said += example(value[1][0], flags)
            case c.SUBPATTERN:
                said += example(value[3], flags)
            case c.ATOMIC_GROUP:
                said += example(value, flags)
            case c.MAX_REPEAT | c.MIN_REPEAT | c.POSSESSIVE_REPEAT:
                said += example(value[2], flags) * max(value[0], 1)
    return said


def atoms(nodes: Any, flags: int) -> list[Callable[[str], bool]]:
    """Everything that takes one character."""
    found = []
    for op, value in nodes:
        if op in (c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN):
            found.append(accepts(op, value, flags))
        found += [each for inner in _within(op, value) for each in atoms(inner, flags)]
    return found


def hostile(machine: Machine) -> Iterator[tuple[str, str, str]]:
    """(beginning, what comes many times, end). Of all characters that no repeat tells apart one is enough."""
    flags = machine.flags
    found = list(repeats(machine.tree, flags))
    taken = [fits for each in found for fits in atoms(each.body, flags)]
    kinds = [*taken, *({each.after}.__contains__ for each in found), str.isalnum, {"\n"}.__contains__]
    told: dict[tuple[bool, ...], str] = {}
    for character in PLAIN:
        if any(fits(character) for fits in taken):
            told.setdefault(tuple(bool(fits(character)) for fits in kinds), character)
    starts = dict.fromkeys(("", *(each.before for each in found)))
    bodies = (example(each.body, flags) for each in found)
    for pump in dict.fromkeys((*told.values(), *bodies)):
        yield from ((start, pump, end) for start in starts for end in ENDS if pump)
    for pump in dict.fromkeys((*starts, example(machine.tree, flags))):
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
