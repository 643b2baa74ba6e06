"""How lines of the kernel's log begin, and which one is its first."""

from __future__ import annotations

import re

# a time and, with CONFIG_PRINTK_CALLER, a thread or CPU
HEAD = r"^(?:\[ *\d+\.\d+\])?(?:\[ *[TC]\d+\])? ?"
BOOT = r"Linux version \S+ .*"
# the kernel's own has no time yet: any user may run a program called "Linux version 6" that ends by a fault, which is logged
_FIRST = re.compile(r"\[ *0\.000000\]")


def begins(line: str) -> bool:
    """Whether a line that reads like BOOT is the kernel's own."""
    return bool(_FIRST.match(line))
