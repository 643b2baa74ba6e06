"""The names of the pools in ``/etc/zfs/zpool.cache``: all that is kept of it, as the rest names devices and serial numbers.

It is a packed list of name-value pairs, each pool a list in it, in the machine's own form; before ZFS on Linux 0.7 it was in
XDR. (OpenZFS module/zfs/spa_config.c spa_config_write; module/nvpair/fnvpair.c fnvlist_pack; module/nvpair/nvpair.c
nvs_native_nvpair; include/sys/nvpair.h nvpair_t)
"""

from __future__ import annotations

import re
import struct

PATH = "/etc/zfs/zpool.cache"
DAMAGED = "?\n"  # which no pool is called
_ORDER = {"\0\0": ">", "\0\1": "<"}  # of the first two bytes: NV_ENCODE_NATIVE, and the byte order
_HEAD = 12  # they and two spare ones; version; flags
_WORD = 4
_PAIR = (
    16  # of native ones: size of the whole, of the name, spare, number of elements, type; then the name, ended by a NUL
)
_LIST, _LISTS = 19, 20
_POOL = re.compile(r"[A-Za-z][A-Za-z0-9_.: -]{0,255}")  # module/zcommon/zfs_namecheck.c pool_namecheck


def names(text: str) -> str:
    """A line for each pool; of what ends before it should, or is nothing of the kind, :data:`DAMAGED`. What was kept is kept
    again."""
    order = _ORDER.get(text[:2])
    found = _packed(text.encode("utf-8", "surrogateescape"), order) if order else text.splitlines()
    whole = found is not None and all(map(_POOL.fullmatch, found))
    return "".join(f"{each}\n" for each in found or ()) if whole else DAMAGED


def _packed(data: bytes, order: str) -> list[str] | None:
    """The pairs of a list within stand behind the pair that holds it, and four zeroes end each list."""
    found, at, lists = [], _HEAD, 1
    while lists and at + _WORD <= len(data):
        (size,) = struct.unpack_from(f"{order}I", data, at)
        if size == 0:
            at, lists = at + _WORD, lists - 1
            continue
        if size < _PAIR or at + size > len(data):
            return None
        length, _, elements, kind = struct.unpack_from(f"{order}HHII", data, at + _WORD)
        name, nul = data[at + _PAIR : at + _PAIR + length][:-1], data[at + _PAIR + length - 1 : at + _PAIR + length]
        if nul != b"\0" or _PAIR + length > size:
            return None
        if lists == 1:
            found.append(name.decode("ascii", "replace"))
        lists += {_LIST: 1, _LISTS: elements}.get(kind, 0)
        at += size
    return found if not lists and at == len(data) else None
