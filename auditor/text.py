"""Text that came from devices, pools and commands, made harmless."""

from __future__ import annotations

import re
import shlex

# C0, C1, DEL; bidirectional controls and zero-width characters that hide or reorder what follows; lone surrogates
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def harmless(text: str) -> str:
    """The same text with every control character spelt out (``\\x1b``), for a terminal, a log or a page."""
    return _UNSAFE.sub(lambda found: _escape(found[0]), text)


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def quoted(word: str) -> str:
    """A word for a POSIX shell, harmless to print and to paste: control characters as ``$'\\x1b'``."""
    if _UNSAFE.search(word):
        escaped = word.replace("\\", "\\\\").replace("'", "\\'")
        return f"$'{_UNSAFE.sub(lambda found: _as_bytes(found[0]), escaped)}'"
    return shlex.quote(word)


def _as_bytes(char: str) -> str:
    """``\\xe2\\x80\\x8b``: the bytes that stand in the name, whatever the locale of the shell is."""
    how = "surrogateescape" if "\udc80" <= char <= "\udcff" else "surrogatepass"
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", how))


def whole(text: str) -> str:
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
