"""The host id, as /etc/hostid and the kernel's command line give it: 8 hexadecimal digits.

spl_hostid= is for the initramfs: that of dracut makes an /etc/hostid of it, with zgenhostid, to which zero means a random id.
spl.spl_hostid= is the parameter of the module, which counts before any /etc/hostid; there zero means none. (OpenZFS 2.4.4
contrib/dracut/90zfs/parse-zfs.sh.in, cmd/zgenhostid.c, module/os/linux/spl/spl-generic.c zone_get_hostid)
"""

from __future__ import annotations

import re

PARAMETER = "spl.spl_hostid"
MALFORMED, ZERO = "malformed", "zero"
# as the kernel's kstrtoul reads a number with base 0
_NUMBERS = (
    (16, re.compile(r"0[xX]([0-9A-Fa-f]{1,16})")),
    (8, re.compile(r"0([0-7]{0,21})")),
    (10, re.compile(r"([1-9][0-9]{0,18})")),
)
_BYTES = 4
_MASK = 0xFFFFFFFF


def of_file(text: str) -> tuple[str, ...]:
    """Its first four bytes as little- and big-endian hosts read them; nothing where they are fewer. (hostid_read)"""
    data = text.encode("utf-8", "surrogateescape")[:_BYTES]
    return (data[::-1].hex(), data.hex()) if len(data) == _BYTES else ()


def of_option(name: str, value: str) -> str:
    """Its id, ZERO of the first option, MALFORMED, or empty where it leaves /etc/hostid in force."""
    if name == "spl_hostid":
        digits = re.fullmatch(r"(?:0[xX])?([0-9A-Fa-f]{1,8})", value)
        if not digits:
            return MALFORMED
        return f"{int(digits[1], 16):08x}" if digits[1].strip("0") else ZERO
    for base, pattern in _NUMBERS:
        digits = pattern.fullmatch(value)
        if digits:
            number = int(digits[1] or "0", base)
            return f"{number & _MASK:08x}" if number else ""
    return MALFORMED
