"""All properties of a dataset subtree in one transaction group, by a read-only ZFS channel program through libzfs_core.

``zfs get -r`` reads one dataset after the other: a ``zfs set`` or a rename in between shows half. A channel program
runs while nothing can change. It needs root and pyzfs (Debian: python3-pyzfs), which mostly belongs to the system's Python,
and it may hang in the kernel: so it runs as :func:`script` by ``python3 -I -c``, with this Python where it has pyzfs.
It is asked for by name, and so recorded without its text.

What it cannot say: ``mounted`` (refused by prop_valid_for_ds) and ``encryption`` (get_special_prop has no case for it,
so it would be looked up among the settings, where it is not kept, and come out as the default, "off").
(man 8 zfs-program; OpenZFS module/zfs/zcp_get.c)
"""

from __future__ import annotations

import importlib.util
from functools import cache

NAME = "lzc"  # argv: (NAME, pool, dataset, property...); no program of that name is started
CANNOT_SAY = frozenset({"mounted", "encryption"})

# argv[1]: the dataset at the top; argv[2..]: properties. Answers name -> the lines that ``zfs get -Hp`` would print. A
# number below 0 is one above 2^63 (Lua has int64 only); a property that does not apply gives nothing: both become "-". A value
# with a newline, which may look like the lines of another dataset, has no line. The setting dataset's name is the source;
# received values on the spot say "$recvd".
PROGRAM = r"""
local args = ...
local argv = args["argv"]
local answer = {}
local todo = {argv[1]}
while #todo > 0 do
  local name = table.remove(todo)
  local lines = {}
  for i = 2, #argv do
    local value, source = zfs.get_prop(name, argv[i])
    if value == nil or (type(value) == "number" and value < 0) then
      value, source = "-", "-"
    elseif source == nil then
      source = "-"
    elseif source == name then
      source = "local"
    elseif source == "$recvd" then
      source = "received"
    elseif source ~= "default" and source ~= "temporary" then
      source = "inherited from " .. source
    end
    value = tostring(value)
    if not string.find(value, "\n", 1, true) then
      lines[#lines + 1] = name .. "\t" .. argv[i] .. "\t" .. value .. "\t" .. source .. "\n"
    end
  end
  answer[name] = table.concat(lines)
  for child in zfs.list.children(name) do
    todo[#todo + 1] = child
  end
end
return answer
"""


def read(pool: str, root: str, properties: list[str]) -> str:
    """The text of ``zfs get -Hp -r -o name,property,value,source`` for root and all below it, in order of name.

    Raises what libzfs_core raises (no such pool, not root, out of memory: the program may use 64 MiB and the most
    instructions that the kernel grants) and ValueError for a pool whose name the answer could not be told from.
    """
    import libzfs_core

    if pool in ("default", "temporary", "$recvd"):
        raise ValueError("the pool is named like a source of properties: " + pool)
    answer = libzfs_core.lzc_channel_program_nosync(
        pool.encode(),
        PROGRAM.encode(),
        instrlimit=100 * 1000 * 1000,
        memlimit=64 << 20,
        params=[word.encode("utf-8", "surrogateescape") for word in [root, *properties]],
    )
    return b"".join(answer[name] for name in sorted(answer)).decode("utf-8", "surrogateescape")


def importable() -> bool:
    """Whether this Python has pyzfs."""
    return importlib.util.find_spec("libzfs_core") is not None


@cache
def script() -> str:
    """For ``python3 -I -c SCRIPT POOL ROOT PROPERTY...``."""
    import inspect

    return f"""from __future__ import annotations
import sys
PROGRAM = {PROGRAM!r}
{inspect.getsource(read)}
try:
    text = read(sys.argv[1], sys.argv[2], sys.argv[3:])
except Exception as error:
    sys.exit(type(error).__name__ + ": " + str(error))
sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
"""
