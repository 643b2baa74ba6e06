"""Command lines: the options that are known, with their values; of all else only that there is a word."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from auditor.databases.engine import DOUBT, REST, WITHHELD, Line, Shape, kept

Short = Callable[[str, str], Line | None]
"""Reads a short option and its value; None: it sets nothing that is asked for."""
Long = Callable[[str, str | None], Line | None]
"""Reads an option that begins with two dashes and the word behind it, None at first; None: it needs that word."""


def getopt(words: Sequence[str], letters: str, short: Short, long: Long) -> list[Line]:
    """As getopt(3) reads them. letters: all short options, with a colon after those that have a value."""
    found: list[Line] = []
    rest = list(words)
    while rest:
        each = rest.pop(0)
        if each == WITHHELD:
            found.append(DOUBT)
        elif each == "--":
            return found + [REST] * (len(rest) + 1)
        elif each.startswith("--"):
            line = long(each[2:], None)
            if line is None and rest and (value := long(each[2:], rest.pop(0))):
                found += [Line(f"--{value.name}"), value]
            else:
                found.append(line or DOUBT)
        elif each.startswith("-") and len(each) > 1:
            found += _cluster(each[1:], rest, letters, short)
        else:
            found.append(REST)
    return found


def _cluster(letters_given: str, rest: list[str], letters: str, short: Short) -> list[Line]:
    """Short options in one word; the last of them may have a value, in this word or the next."""
    flags: list[Line] = []
    for i, letter in enumerate(letters_given):
        place = letters.find(letter)
        if letter == ":" or place < 0:
            return [DOUBT]
        if letters[place + 1 : place + 2] != ":":
            if line := short(letter, ""):
                flags.append(line)
            continue
        inside = letters_given[i + 1 :]
        if not inside and not rest:
            return [DOUBT]
        line = short(letter, inside or rest.pop(0))
        if flags and line:  # two settings in one word
            return [DOUBT] if inside else [DOUBT, REST]
        if inside:
            return [line._replace(text=f"-{letter}{line.text}") if line else (flags or [REST])[0]]
        return [Line(f"-{letter}"), line] if line else [(flags or [REST])[0], REST]
    return flags[:1] if len(flags) == 1 else [DOUBT] if flags else [REST]


def dashed(words: Sequence[str], values: Mapping[str, tuple[str, Shape]], flags: Mapping[str, Shape]) -> list[Line]:
    """Options with one or two dashes whose value is behind ``=`` or the next word. values: option -> (name, shape);
    flags: those that may stand alone, which means true."""
    found: list[Line] = []
    rest = list(words)
    while rest:
        each = rest.pop(0)
        option, equals, value = each.partition("=")
        name = option.lstrip("-") if option.startswith("-") and len(option) - len(option.lstrip("-")) <= 2 else ""
        if each in (WITHHELD, "-") or (name not in values and not each.startswith("--") and name[:1] in values):
            found.append(DOUBT)  # settings from standard input; a short option with its value
        elif name in flags:
            value = kept(value, flags[name]) if equals else ""
            found.append(Line(f"{option}={value}" if equals else option, "setting", name, value or "true"))
        elif name in values and equals:
            name, shape = values[name]
            value = kept(value, shape)
            found.append(Line(f"{option}={value}", "setting", name, value))
        elif name in values and rest:
            name, shape = values[name]
            value = kept(rest.pop(0), shape)
            found += [Line(option), Line(value, "setting", name, value)]
        else:
            found.append(DOUBT if name in values else Line("") if not each else REST)
    return found
