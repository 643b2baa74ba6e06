"""Stand-ins for identities, and one pass that sets them in for thousands of identities at once."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection, Iterable, Mapping

ATTEMPTS = 50  # until a stand-in is found that is no other's; of names of one character there may be none left
# a WWN of 64 bits, with what stands before it in udev, smartctl and names of links
_NAA = re.compile(rb"(0x|3|naa\.|t10\.)?([0-9A-Fa-f]{16})")


class StandIns:
    """value -> stand-in: always the same for the same value, whatever its case, and another one for another value.

    key: secret of this recording. avoid: what no stand-in may be, because it is something else already.
    """

    def __init__(self, key: bytes, avoid: Collection[bytes]) -> None:
        self._key = key
        self._avoid = {each.lower() for each in avoid}
        self._attempts: dict[bytes, int] = {}
        self._used: set[bytes] = set()

    def of(self, value: bytes) -> bytes:
        """Of the same length: digits stay digits, letters stay letters of their case, everything else stays."""
        if naa := _NAA.fullmatch(value):  # with and without its prefix it is the same device
            return (naa[1] or b"") + self._of(naa[2])
        return self._of(value)

    def name(self, value: bytes) -> bytes:
        """Of a host: each label for itself, so that a host and its full name still belong together."""
        return b".".join(map(self.of, value.split(b"."))) if re.search(rb"[A-Za-z]", value) else self.of(value)

    def _of(self, value: bytes) -> bytes:
        seed = value.lower()
        if seed not in self._attempts:
            tried = ((attempt, _made(seed, self._key, attempt)) for attempt in range(ATTEMPTS))
            free = (i for i, made in tried if made != seed and made not in self._used and made not in self._avoid)
            self._attempts[seed] = next(free, 0)
            self._used.add(_made(seed, self._key, self._attempts[seed]))
        return _made(value, self._key, self._attempts[seed])


def _made(value: bytes, key: bytes, attempt: int) -> bytes:
    """A decimal number keeps its first digit, so that a 64-bit GUID stays one, and so does a WWN, where it says the kind.

    A letter that may be a hexadecimal digit becomes another, so that what is a number stays one.
    """
    import hashlib

    stream = hashlib.shake_256(key + value.lower() + bytes([attempt])).digest(len(value))
    keep = 1 if (value.isdigit() and len(value) > 3) or (len(value) in (16, 32) and value[:1] in b"56") else 0
    made = bytearray(value)
    for i, (byte, random) in enumerate(zip(value, stream, strict=True)):
        char = chr(byte)
        if i < keep:
            continue
        if char in string.digits:
            # of 20 digits, 18446744073709551615 is the largest that fits
            made[i] = ord(string.digits[random % (8 if i == 1 and len(value) == 20 and value.isdigit() else 10)])
        elif char in string.ascii_lowercase:
            made[i] = ord("abcdef"[random % 6] if char in "abcdef" else string.ascii_lowercase[random % 26])
        elif char in string.ascii_uppercase:
            made[i] = ord("ABCDEF"[random % 6] if char in "ABCDEF" else string.ascii_uppercase[random % 26])
    return bytes(made)


def replacer(words: Mapping[bytes, bytes], parts: Mapping[bytes, bytes]) -> Callable[[bytes], bytes]:
    """Sets in what the mappings say, the longest first. words: only where no letter or digit touches them. parts: wherever
    they stand, but a number is no part of a longer number."""
    numbers = {each for each in parts if each.isdigit()}
    kinds = (
        (rb"%s", parts.keys() - numbers),
        (rb"(?<!\d)%s(?!\d)", numbers),
        (rb"(?<![0-9A-Za-z])%s(?![0-9A-Za-z])", words.keys()),
    )
    passes = [re.compile(frame % any_of(each)) for frame, each in kinds if each]
    if not passes:
        return lambda data: data
    stand_ins = {**words, **parts}
    # one pattern, because what one pass has set in must not be found by the next
    pattern = re.compile(b"|".join(each.pattern for each in passes))
    return lambda data: pattern.sub(lambda found: stand_ins[found[0]], data)


def any_of(words: Iterable[bytes]) -> bytes:
    """A regular expression for any of the words, the longest first: a tree of their beginnings, so that its speed does not
    depend on how many they are."""
    root: _Tree = {}
    for word in words:
        here = root
        for byte in word:
            here = here.setdefault(byte, {})
        here[END] = {}
    return _pattern(root)


END = -1
_Tree = dict[int, "_Tree"]


def _pattern(tree: _Tree) -> bytes:
    made = b""
    while len(tree) == 1 and END not in tree:  # no fork: no group, which would nest too deep
        ((byte, tree),) = tree.items()
        made += re.escape(bytes([byte]))
    forks = [re.escape(bytes([byte])) + _pattern(rest) for byte, rest in sorted(tree.items()) if byte != END]
    if forks:
        made += b"(?:%s)%s" % (b"|".join(forks), b"?" if END in tree else b"")
    return made
