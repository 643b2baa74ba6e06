"""The names of the pools in ``/etc/zfs/zpool.cache``: all that is kept of it, as the rest names devices and serial numbers.

It is a list of name-value pairs in XDR, each pool one of them. (OpenZFS module/zfs/spa_config.c spa_write_cachefile;
module/nvpair/nvpair.c nvs_xdr_nvpair: sizes encoded and decoded, then the name with its length; two zeroes end the list)
"""

from __future__ import annotations

import re

PATH = "/etc/zfs/zpool.cache"
DAMAGED = "?\n"  # which no pool is called
_XDR = 1
_WORD = 4
_HEAD = 3 * _WORD  # encoding, byte order and two spare bytes; version; flags
_POOL = re.compile(r"[A-Za-z][A-Za-z0-9_.: -]{0,255}")  # module/zcommon/zfs_namecheck.c pool_namecheck


def names(text: str) -> str:
    """A line for each pool; of what ends before it should, or is nothing of the kind, :data:`DAMAGED`. What was kept is kept
    again."""
    data = text.encode("utf-8", "surrogateescape")
    found = _packed(data) if data[:1] == bytes([_XDR]) else text.splitlines()
    whole = found is not None and all(map(_POOL.fullmatch, found))
    return "".join(f"{each}\n" for each in found or ()) if whole else DAMAGED


def _packed(data: bytes) -> list[str] | None:
    found, at = [], _HEAD
    while size := int.from_bytes(data[at : at + _WORD], "big"):
        length = int.from_bytes(data[at + 2 * _WORD : at + 3 * _WORD], "big")
        name = data[at + 3 * _WORD : at + 3 * _WORD + length]
        if not name or size < 3 * _WORD + length:
            return None
        found.append(name.decode("ascii", "replace"))
        at += size
    return found if data[at:] == bytes(2 * _WORD) else None
