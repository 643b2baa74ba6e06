"""Text that came from devices, pools and commands, made harmless."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

# what str.isprintable() lets through, and yet nobody sees: fillers, the blank braille pattern, and what Unicode calls
# default-ignorable (DerivedCoreProperties.txt): the grapheme joiner, inherent vowels of Khmer, variation selectors
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+._:-]*://")
_HEX = re.compile(r"\\x([0-9a-fA-F]{2})")


def near(word: str, there: Iterable[str]) -> str:
    """ "; similar: sync-disabled" for a word that is misspelt, or an empty string."""
    import difflib

    found = difflib.get_close_matches(word[:100], list(there), n=3, cutoff=0.5)
    return f"; similar: {', '.join(map(harmless, found))}" if found else ""


def often(count: int | str) -> str:
    """ "once", "3 times"."""
    return "once" if str(count) == "1" else f"{count} times"


def is_url(word: str) -> bool:
    """Whether a word of the command line is a URL, and no path on this machine: a protocol, or a chain of them, comes first."""
    return _URL.match(word) is not None


VALUES = 5_000_000
_PARTS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[^"]++', re.DOTALL)


def crowded(document: str) -> bool:
    """Whether JSON has more values than zaudit takes in, whatever their size: an empty list is three characters, and ninety
    bytes of memory. Without parsing it."""
    if sum(map(document.count, ",[{")) <= VALUES:
        return False
    values = 0
    for part in _PARTS.finditer(document):
        if part[0][0] != '"':
            values += sum(map(part[0].count, ",[{"))
            if values > VALUES:
                return True
    return False


def harmless(text: str) -> str:
    """The same text with every character spelt out (``\\x1b``) that is not seen as itself, for a terminal, a log or a page.

    By category, not by a list: controls, formats (bidirectional, zero-width, soft hyphen, tags), surrogates, private use,
    what Unicode has not assigned, and every separator but the space (str.isprintable()); and what looks like nothing.
    """
    return text if _plain(text) else "".join(char if _plain(char) else _escape(char) for char in text)


def _plain(text: str) -> bool:
    return text.isprintable() and (text.isascii() or not _BLANK.search(text))


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quoted(word: str) -> str:
    """A word for a POSIX shell, harmless to print and to paste: what is not seen as itself as ``$'\\x1b'``."""
    if _plain(word):
        return shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(char if _plain(char) else _as_bytes(char) for char in escaped) + "'"


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
    """``\\xe2\\x80\\x8b``: the bytes that stand in the name, whatever the locale of the shell is."""
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
