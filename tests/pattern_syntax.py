"""The syntax of regular expressions, as far as the patterns of zaudit use it: ``parse(pattern, flags)`` gives the tree that
:mod:`tests.backtracking` counts in. What it does not know is an error, so that a new construct is not counted as another one.

Of a character (``a``, ``\\d``, ``[^"\\\\]``, ``.``) it keeps the text: what it takes re itself is asked. (Python, library
reference, re: Regular Expression Syntax)
"""

from __future__ import annotations

import re
from typing import NamedTuple

UNBOUNDED = 1 << 31
_FLAGS = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
_REPEAT = re.compile(r"([*+?]|\{([0-9]+)\}|\{([0-9]*),([0-9]*)\})([?+]?)")
_SET = re.compile(r"\[\^?+\]?+(?:[^\\\]]|\\.)*+\]", re.DOTALL)
# of one character: a class, a control, a number, or punctuation as itself
_ESCAPE = re.compile(
    r"\\(?:[dDsSwW]|[nrtfva]|0(?![0-7])|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[^a-zA-Z0-9])", re.DOTALL
)
_AGAIN = re.compile(r"\\([1-9])(?![0-9])")
_PLACES = (r"\A", r"\Z", r"\b", r"\B", "^", "$")
_GROUP = re.compile(r"\?(?:P<(\w+)>|P=(\w+)\)|(<?[=!])|(:)|(>)|([aims]+)(-[ims]+)?([:)]))")


class UnknownSyntax(Exception):
    """Something in a pattern that this does not know."""


class Character(NamedTuple):
    """What takes one character: its text, and the flags that hold there."""

    text: str
    flags: int


class Place(NamedTuple):
    """What takes none: ``^ $ \\A \\Z \\b \\B``, and the flags that hold there."""

    text: str
    flags: int


class Group(NamedTuple):
    """number: of one that is kept, or None."""

    number: int | None
    body: Branches


class Repeat(NamedTuple):
    """how: "" (as many as possible), "?" (as few), "+" (possessive)."""

    least: int
    most: int
    how: str
    body: Node


class Atomic(NamedTuple):
    """``(?>...)``"""

    body: Branches


class Look(NamedTuple):
    """``(?= (?! (?<= (?<!``"""

    behind: bool
    wanted: bool
    body: Branches


class Again(NamedTuple):
    """What a group took: ``(?P=name)``, ``\\1``."""

    number: int


class Branches(NamedTuple):
    """``a|b``; one without a ``|``."""

    ways: tuple[tuple[Node, ...], ...]


Node = Character | Place | Group | Repeat | Atomic | Look | Again


def parse(pattern: str | bytes, flags: int = 0) -> Branches:
    """The tree of a pattern; one of bytes as text of the same characters, and ASCII alone. Raises UnknownSyntax."""
    text, ascii_only = (pattern.decode("latin-1"), True) if isinstance(pattern, bytes) else (pattern, False)
    known = re.ASCII | re.IGNORECASE | re.MULTILINE | re.DOTALL
    if unknown := flags & ~int(known | re.UNICODE):
        raise UnknownSyntax(f"flags {unknown:#x}")
    parser = _Parser(text)
    found = parser.branches(flags & int(known) | (int(re.ASCII) if ascii_only else 0))
    if parser.at < len(text):
        raise parser.unknown()
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self._count = 0
        self._names: dict[str, int] = {}

    def unknown(self) -> UnknownSyntax:
        return UnknownSyntax(f"{self.text!r} at {self.at}: {self.text[self.at : self.at + 12]!r}")

    def _sees(self, *words: str) -> str:
        """Which of these comes next; it is passed."""
        for word in words:
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return word
        return ""

    def _takes(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        if found := pattern.match(self.text, self.at):
            self.at = found.end()
        return found

    def branches(self, flags: int) -> Branches:
        """Up to a ``)`` or the end. Flags at the very beginning are of the whole."""
        if self.at == 0 and (found := re.match(r"\(\?([aims]+)\)", self.text)):
            self.at = found.end()
            for letter in found[1]:
                flags |= int(_FLAGS[letter])
        ways = [self._sequence(flags)]
        while self._sees("|"):
            ways.append(self._sequence(flags))
        return Branches(tuple(ways))

    def _sequence(self, flags: int) -> tuple[Node, ...]:
        nodes: list[Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            node = self._node(flags)
            if found := self._takes(_REPEAT):
                node = self._repeat(node, found)
                if _REPEAT.match(self.text, self.at):
                    raise self.unknown()
            nodes.append(node)
        return tuple(nodes)

    def _repeat(self, node: Node, found: re.Match[str]) -> Repeat:
        if isinstance(node, Place | Look):
            raise self.unknown()
        sign, exact, least, most, how = found.groups()
        if exact:
            return Repeat(int(exact), int(exact), how, node)
        if sign in ("*", "+", "?"):
            return Repeat(int(sign == "+"), 1 if sign == "?" else UNBOUNDED, how, node)
        return Repeat(int(least or 0), int(most or UNBOUNDED), how, node)

    def _node(self, flags: int) -> Node:
        start = self.at
        if self.text[start] == "(":
            return self._group(flags)
        if place := self._sees(*_PLACES):
            return Place(place, flags)
        if found := self._takes(_AGAIN):
            return Again(int(found[1]))
        if found := self._takes(_SET):
            return Character(found[0], flags)
        if found := self._takes(_ESCAPE):
            return Character(found[0], flags)
        if self.text[start] in r"\[*+?":
            raise self.unknown()
        self.at += 1
        character = self.text[start]
        return Character(character if character == "." else re.escape(character), flags)

    def _group(self, flags: int) -> Node:
        self.at += 1
        found = self._takes(_GROUP)
        if not found and self.text.startswith("?", self.at):
            raise self.unknown()
        if found and found[2]:
            return Again(self._names[found[2]])
        if found and found[6] and found[8] == ")":
            raise self.unknown()  # flags of the whole that stand elsewhere
        number = None
        if not found or found[1]:
            self._count += 1
            number = self._count
            if found:
                self._names[found[1]] = number
        if found and found[6]:
            for letter in found[6]:
                flags |= int(_FLAGS[letter])
            for letter in (found[7] or "-")[1:]:
                flags &= ~int(_FLAGS[letter])
        body = self.branches(flags)
        if not self._sees(")"):
            raise self.unknown()
        if found and found[3]:
            return Look(found[3].startswith("<"), found[3].endswith("="), body)
        return Atomic(body) if found and found[5] else Group(number, body)


def width(node: Node | Branches) -> int:
    """How many characters it takes, of what stands in a lookbehind. Raises UnknownSyntax where that is not one number."""
    match node:
        case Character():
            return 1
        case Place() | Look():
            return 0
        case Group(_, body) | Atomic(body):
            return width(body)
        case Repeat(least, most, _, body) if least == most:
            return least * width(body)
        case Branches(ways):
            found = {sum(map(width, way)) for way in ways}
            if len(found) == 1:
                return found.pop()
    raise UnknownSyntax(f"a lookbehind of {node}")
