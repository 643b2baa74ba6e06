"""C libraries by their sonames, which the dynamic linker looks up.

``ctypes.util.find_library`` would start /sbin/ldconfig, and gcc and ld of whatever PATH zaudit was started with; pyudev calls
it, psycopg does, and pyzfs through cffi. From here on it starts nothing and knows these libraries alone.
"""

from __future__ import annotations

import inspect


def by_soname() -> None:
    """Replace ``ctypes.util.find_library`` in this process. Uses nothing of this module: it runs in a script, too."""
    import ctypes
    import ctypes.util

    known = {
        "c": ("libc.so.6",),
        "nvpair": ("libnvpair.so.3", "libnvpair.so.1"),  # of OpenZFS 2.0 and later, and of 0.8
        "pq": ("libpq.so.5",),
        "udev": ("libudev.so.1",),
        "zfs_core": ("libzfs_core.so.3", "libzfs_core.so.1"),
    }

    def find_library(name: str) -> str | None:
        for soname in known.get(name, ()):
            try:
                ctypes.CDLL(soname)
            except OSError:
                continue
            return soname
        return None

    ctypes.util.find_library = find_library


def script(text: str) -> str:
    """A script for ``python3 -I -c`` in which it is replaced; its first line is that of ``__future__``."""
    first, _, rest = text.partition("\n")
    return f"{first}\n{inspect.getsource(by_soname)}by_soname()\n{rest}"
