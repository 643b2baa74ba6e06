"""Forms that several engines share. Command lines: the options that are known, with their values; of all else only that there
is a word.

YAML as MongoDB and etcd are configured with: plain mappings, line by line. Of the keys that are known the values are kept, each
with its whole name on its line; of all others neither key nor value. What YAML has beyond that (anchors, tags, quotes and
braces over several lines, documents) leaves the rest of the file in doubt, where it could hold a setting; below a key that is
not known it is skipped with its value. (YAML 1.2, 6 to 8)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from auditor.databases.engine import BLANK, DOUBT, LINE, LINES, OTHER, REST, WITHHELD, Line, Shape, kept, plain

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


BEFORE = 8  # at most so many dashes, anchors and tags before a value


def yaml(text: str, known: Mapping[str, Shape]) -> list[Line]:
    """One :class:`Line` a line of the text, settings by their dotted names."""
    if text.count("\n") > LINES:
        return [DOUBT]
    rows = text.split("\n")
    reader = _Reader(known)
    for i, row in enumerate(rows):
        line = row.rstrip(" \t\r")
        if len(row) > LINE or not reader.line(line.lstrip(" "), len(line) - len(line.lstrip(" "))):
            return [*reader.found, DOUBT, *(OTHER if each.strip() else BLANK for each in rows[i + 1 :])]
    return reader.found


class _Reader:
    """found: what was made of the lines so far."""

    def __init__(self, known: Mapping[str, Shape]) -> None:
        self.found: list[Line] = []
        self._known = known
        self._open: list[tuple[int, str]] = []  # (indent, name) of the keys around, of known settings alone
        self._passed: int | None = None  # what is indented more belongs to the value of a key that is passed over
        self._listed = False  # ... and the items of a list that are indented as much
        self._block: int | None = None  # what is indented more is text between | or > and the next key
        self._leaf: tuple[int, int] | None = None  # where the last line was a setting: its indent and number
        self._begun = False

    def line(self, body: str, indent: int) -> bool:
        """Take one more line; False where the rest of the file cannot be told."""
        if not body:
            return self._keep(BLANK)
        if self._passed is not None:
            item = body == "-" or body.startswith("- ")
            if indent > self._passed or (self._listed and item and indent == self._passed):
                return self._pass(body, indent)
        if body.startswith("#") or (body == "---" and not self._begun):
            self._begun = self._begun or body == "---"
            return self._keep(OTHER)
        self._begun = True
        if self._leaf and indent > self._leaf[0]:
            return self._keep_back(*self._leaf)
        self._passed = self._leaf = None
        pair = _pair(body)
        return pair is not None and self._entry(indent, *pair)

    def _entry(self, indent: int, key: str, value: str) -> bool:
        while self._open and self._open[-1][0] >= indent:
            self._open.pop()
        name = f"{self._open[-1][1]}.{key}" if self._open else key
        if name in self._known:
            return self._setting(indent, name, value)
        below = f"{name}.".lower()
        if any(each.lower().startswith(below) for each in self._known):
            self._open.append((indent, name))
            return not value and any(each.startswith(f"{name}.") for each in self._known) and self._keep(OTHER)
        if name.lower() in map(str.lower, self._known) or key.startswith("__"):
            return False
        self._block = None
        self._passed, self._listed = indent, not value
        return self._pass(body=value, indent=indent)

    def _pass(self, body: str, indent: int) -> bool:
        """Over a line of a value that nobody asks for; what is open at its end would hide what comes after it."""
        if self._block is None or indent <= self._block:
            value = _bare(body)
            self._block = indent if value[:1] in ("|", ">") else None
            if not _whole(value):
                return False
        return self._keep(OTHER)

    def _setting(self, indent: int, name: str, value: str) -> bool:
        text = _scalar(value)
        text = WITHHELD if text is None else kept(text, self._known[name])
        self._leaf = indent, len(self.found)
        shown = text if plain(text) or text == WITHHELD else f'"{text}"'
        line = Line(f"{name}: {shown}", "setting", name, text)
        if text != WITHHELD:
            return self._keep(line)
        self._leaf, self._passed, self._listed, self._block = None, indent, not value, None
        if told := self._pass(value, indent):
            self.found[-1] = line
        return told

    def _keep(self, line: Line) -> bool:
        self.found.append(line)
        return True

    def _keep_back(self, indent: int, number: int) -> bool:
        """The value of the last setting goes on below it."""
        name = self.found[number].name
        self.found[number] = Line(f"{name}: {WITHHELD}", "setting", name, WITHHELD)
        self._passed, self._listed, self._leaf, self._block = indent, False, None, None
        return self._keep(OTHER)


def _pair(body: str) -> tuple[str, str] | None:
    """Key and value of a line, None where it is more than that."""
    quote = body[0] if body[0] in "'\"" else ""
    key, colon, value = body[1:].partition(quote) if quote else (body, ":", "")
    if quote:
        colon, value = value.lstrip(" ")[:1], value.lstrip(" ")[1:]
    else:
        place = body.find(": ")
        place = len(body) - 1 if place < 0 and body.endswith(":") else place
        key, value = body[: max(place, 0)].rstrip(" "), body[place + 1 :]
    if colon != ":" or not key or (value and value[0] != " "):
        return None
    return (key, value.strip(" ")) if key.isascii() and all(each.isalnum() or each in "_.-" for each in key) else None


def _bare(body: str) -> str:
    """The value of a line that is passed over, whatever stands before it: a key, a dash, an anchor, a tag."""
    pair = _pair(body) if body else None
    value = pair[1] if pair else body
    for _ in range(BEFORE):
        if value[:1] not in ("-", "?", "&", "!", "*") or " " not in value:
            break
        value = value.partition(" ")[2].lstrip(" ")
    if value[:1] in ("'", '"', "[", "{", "|", ">") or pair:
        return value
    return value.partition(": ")[2].lstrip(" ") or value


def _uncommented(value: str) -> str:
    return (
        "" if value.startswith("#") else value.partition(" #")[0].replace("\t#", " #").partition(" #")[0].rstrip(" \t")
    )


def _whole(value: str) -> bool:
    """Whether the value of a line ends with it, or with what is indented more: quotes and braces that are open need not."""
    if not value or value[0] not in "'\"[{":
        return True
    quote, depth = "", 0
    for i, each in enumerate(value):
        if quote:
            quote = "" if each == quote else quote
            if each == "\\":
                return False
        elif each in "'\"":
            quote = each
        elif each in "[{":
            depth += 1
        elif each in "]}":
            depth -= 1
        if not quote and depth == 0 and value[i + 1 : i + 2] != each:  # else two quotes, which stand for one
            rest = value[i + 1 :].lstrip(" \t")
            return not rest or rest.startswith("#")
    return False


def _scalar(value: str) -> str | None:
    """The value as it is meant; None where that is more than a plain or a quoted word."""
    if value[:1] in ("'", '"'):
        inside = value[1:].partition(value[0])[0]
        rest = value[len(inside) + 2 :].strip(" \t")
        return inside if not rest or rest.startswith("#") else None
    value = _uncommented(value)
    return value if value and value[0] not in "|>&*!{[%@`?-" else None
