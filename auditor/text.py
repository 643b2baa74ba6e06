"""Text that came from devices, pools and commands, made harmless; and figures for people."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

TYPE_CHECKING = False  # as typing has it, which is slow to import
if TYPE_CHECKING:
    from typing import Literal

# what str.isprintable() lets through, and yet nobody sees, by its name in Unicode: fillers, blanks, and what Unicode calls
# default-ignorable (DerivedCoreProperties.txt)
_INVISIBLE = re.compile(
    "FILLER|BLANK|JOINER|VARIATION SELECTOR|VOWEL INHERENT|NULL NOTEHEAD|OBJECT REPLACEMENT CHARACTER"
)
_RIGHT_TO_LEFT = frozenset(("R", "AL", "AN"))  # classes that reorder what is next to them (UAX #9)
# more on one letter cover the lines above and below (UTS #39, 5.4); the vowels and ends of Korean syllables stack as well
_STACKED = 4
_SYLLABLE_PARTS = ("HANGUL JUNGSEONG ", "HANGUL JONGSEONG ")
# of what may not be seen as itself: all but printable ASCII, and the second # of a command that CI agents take from anywhere
# in a line of a log: ##vso[ (Azure Pipelines), ##[ (GitHub), ##teamcity[
_ODD = re.compile(r"[^ -~]+|#(?<=##)(?=[A-Za-z]*\[)")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+._:-]*://")
_HEX = re.compile(r"\\x([0-9a-fA-F]{2})")


NEAR = 3  # names that are offered


def near(word: str, there: Iterable[str]) -> str:
    """ "; similar: sync-disabled" for a word that is misspelt, or an empty string. A name that holds the word
    counts before one that is merely spelt alike."""
    import difflib

    word, names = word[:100], list(dict.fromkeys(there))
    holding = sorted((each for each in names if len(word) > 2 and word in each), key=len)
    found = dict.fromkeys((*holding, *difflib.get_close_matches(word, names, n=NEAR, cutoff=0.5)))
    return f"; similar: {', '.join(map(harmless, list(found)[:NEAR]))}" if found else ""


def few(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def shortened(lines: Iterable[str], most: int, more: str = "and {} more") -> list[str]:
    """The first lines, and how many more there are in place of the others."""
    shown = list(lines)
    return shown if len(shown) <= most else [*shown[:most], more.format(f"{len(shown) - most:,}")]


def often(count: int | str) -> str:
    """ "once", "3 times"."""
    return "once" if str(count) == "1" else f"{count} times"


def counted(count: int, word: str) -> str:
    """ "1 failure", "3 failures"."""
    return f"{count:,} {word}{'s' * (count != 1)}"


def is_url(word: str) -> bool:
    """Whether a word of the command line is a URL, and no path on this machine: a protocol, or a chain of them, comes first."""
    return _URL.match(word) is not None


VALUES = 5_000_000
UNKNOWN = "Unknown: "  # the headline of a finding that is unknown begins so
NAMES = ("Redis", "Samba", "Linux")  # headlines that begin with these keep the capital inside a sentence
_PARTS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[^"]++', re.DOTALL)


def crowded(document: str) -> bool:
    """Whether JSON has more values than zaudit takes in, whatever their size: an empty list is three characters, and ninety
    bytes of memory. Without parsing it."""
    return values(document) > VALUES


def values(document: str, before: int = 0) -> int:
    """How many values JSON has, and documents before it had, at most; where zaudit does not take so many in, no fewer than
    that. Without parsing it."""
    most = before + sum(map(document.count, ",[{"))
    if most <= VALUES:
        return most
    found = before
    for part in _PARTS.finditer(document):
        if part[0][0] != '"':
            found += sum(map(part[0].count, ",[{"))
            if found > VALUES:
                break
    return found


def harmless(text: str) -> str:
    """The same text with every character spelt out (``\\x1b``) that is not seen as itself, for a terminal, a log or a page.

    By the properties of Unicode: controls, formats (bidirectional, zero-width, soft hyphen, tags), surrogates, private use,
    what is not assigned, every separator but the space (str.isprintable()), and what looks like nothing; what is written from
    right to left, which would reorder the text around it; marks without a letter below them, and more than four on one. And
    commands to the agent of a CI.
    """
    hidden = _hidden(text)
    return "".join(_escape(char) if at in hidden else char for at, char in enumerate(text)) if hidden else text


def _hidden(text: str) -> set[int]:
    if text.isascii() and text.isprintable() and "##" not in text:
        return set()
    return {
        at for run in _ODD.finditer(text) for at in _hidden_of(run[0], run.start(), text[run.start() - 1 : run.start()])
    }


def _hidden_of(run: str, start: int, before: str) -> Iterator[int]:
    """Those of some characters that follow each other. before: the one before them, if there is one."""
    on_letter, stacked = before.isalnum(), 0
    for at, char in enumerate(run, start):
        match _kind(char):
            case "letter":
                on_letter, stacked = True, 0
            case "mark" if on_letter:
                pass
            case "stacked" if on_letter and stacked < _STACKED:
                stacked += 1
            case "sign":
                on_letter = False
            case kind:
                on_letter = on_letter and kind != "hidden"
                yield at


@lru_cache(maxsize=4096)
def _kind(char: str) -> Literal["letter", "mark", "stacked", "sign", "hidden"]:
    """stacked: a mark that takes no room of its own."""
    name, category = unicodedata.name(char, ""), unicodedata.category(char)
    if (
        char == "#"
        or not char.isprintable()
        or unicodedata.bidirectional(char) in _RIGHT_TO_LEFT
        or _INVISIBLE.search(name)
    ):
        return "hidden"
    if category in ("Mn", "Me") or name.startswith(_SYLLABLE_PARTS):
        return "stacked"
    if category == "Mc":
        return "mark"
    return "letter" if category[0] in "LN" else "sign"


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code >= 0x10000:
        return f"\\U{code:08x}"
    # printable ASCII as JSON spells it, for it may be in a string there
    return f"\\u{code:04x}" if code >= 0x100 or (char.isprintable() and char.isascii()) else f"\\x{code:02x}"


def quoted(word: str) -> str:
    """A word for a POSIX shell, harmless to print and to paste: what is not seen as itself as ``$'\\x1b'``."""
    hidden = _hidden(word)
    if not hidden:
        return shlex.quote(word)
    plain = {"\\": "\\\\", "'": "\\'"}
    return (
        "$'" + "".join(_as_bytes(char) if at in hidden else plain.get(char, char) for at, char in enumerate(word)) + "'"
    )


def argument(word: str) -> str:
    """The same for a command in which ``{subject}`` is going to be a name: none is set into the word."""
    inside = quoted(word)
    return inside.replace("{subject}", r"{\x73ubject}" if inside.startswith("$") else "{'subject'}")


def unescaped(text: str) -> str:
    """The text with each ``\\xHH`` as the character that it stands for. (man 1 systemd-escape, man 7 udev)"""
    return _HEX.sub(lambda found: chr(int(found[1], 16)), text)


_UNIT = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:_.")


def unit_escaped(name: str) -> str:
    """As systemd-escape spells it: a dash for each slash, everything else that is not plain as \\xNN of its bytes."""
    return "".join(
        "-"
        if char == "/"
        else char
        if char in _UNIT and not (i == 0 and char == ".")
        else "".join(f"\\x{byte:02x}" for byte in octets(char))
        for i, char in enumerate(name)
    )


def starred(path: str) -> str:
    """The same for a path whose stars are to be stars."""
    return "*".join(argument(each) if each else "" for each in path.split("*"))


def _as_bytes(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in octets(char))


def octets(text: str) -> bytes:
    """The bytes of a name: UTF-8, and as it was what was not UTF-8. Any text has some, also one of which no name is made
    (half a surrogate pair, which JSON can spell)."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def valid_unicode(text: str) -> str:
    """The same text as valid Unicode: bytes that were not UTF-8 are spelt out, everything else stays (for JSON)."""
    return (
        "".join(_escape(char) if "\ud800" <= char <= "\udfff" else char for char in text)
        if has_surrogates(text)
        else text
    )


def has_surrogates(text: str) -> bool:
    """Whether there are bytes in it that were not UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def unknown_headline(title: str) -> str:
    """The headline of a finding that is unknown, in every format. Of one that says so already, the same."""
    return title if title.startswith(UNKNOWN) else f"{UNKNOWN}{title}"


def lower_headline(title: str) -> str:
    """A headline inside a sentence, unless it starts with a name (SLOG, OpenZFS, NVMe)."""
    first = title.split()[0]
    named = first in NAMES or any(char.isupper() for char in first[1:])
    return title if named else title[0].lower() + title[1:]


def utc(seconds: float, form: str = "%Y-%m-%d %H:%M UTC") -> str:
    """A moment, in seconds since the epoch; where no calendar reaches, that number."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(seconds, UTC).strftime(form)
    except (OverflowError, ValueError, OSError):
        return f"{seconds:.0f} s since 1970"


# -- figures for people: three of them, in the unit that suits ---------------------------------------------------------

BYTES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
TIMES = (("ns", 1), ("µs", 10**3), ("ms", 10**6), ("s", 10**9))


def size(count: float) -> str:
    """Bytes: 64 KiB, 1.53 MiB."""
    unit = 0
    while abs(count) >= 1024 and unit < len(BYTES) - 1:
        count, unit = count / 1024, unit + 1
    return f"{_figures(count)} {BYTES[unit]}"


def duration(ns: float) -> str:
    """Nanoseconds: 812 µs, 1.11 ms, 38 s. What is less than half of one is none."""
    ns = 0.0 if abs(ns) < 0.5 else ns
    unit, divisor = next(((unit, each) for unit, each in reversed(TIMES) if abs(ns) >= each), TIMES[0])
    return f"{_figures(ns / divisor)} {unit}"


def _figures(number: float) -> str:
    return f"{number:.3g}" if abs(number) < 999.5 else f"{number:,.0f}"
