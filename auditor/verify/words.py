"""Words that rules and results share, in a module that costs nothing to import."""

from typing import Literal

Purpose = Literal[
    "log", "binlog", "group", "fresh", "recycled", "variant", "data", "together", "calls", "warm", "ab", "sweep"
]
