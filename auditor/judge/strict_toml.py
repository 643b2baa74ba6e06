"""TOML as :mod:`tomllib` reads it, with one kind of error for all that may be wrong with a file from anywhere.

tomllib takes time with the square of the parts of a dotted key, and a key has as many parts as its line has dots.
"""

from __future__ import annotations

import re
from typing import Any

LIMIT = 256 << 10  # characters
DOTS = 100  # in a line
KEY = re.compile(r"""\(?(['"]).{2,}\1[^ ]*""")  # as tomllib repeats one of the file
SHOWN = 600  # characters of an error, which may repeat what stands in the file


class TomlError(ValueError):
    """Not TOML that can be read, and why; with the line where tomllib says it."""


def brief(error: object) -> str:
    """What an error says, without the middle where it is long."""
    text = str(error)
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} ... {text[-SHOWN // 2 :]}"


def loads(text: str) -> dict[str, Any]:
    """The table. Raises TomlError, also for what is too large, nested too deep or a number that Python does not convert."""
    if len(text) > LIMIT:
        raise TomlError(f"longer than {LIMIT >> 10} KiB")
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > DOTS:
            raise TomlError(f"more than {DOTS} dots in a line (at line {number})")
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(KEY.sub("...", str(error))) from None
    except RecursionError:
        raise TomlError("nested too deeply") from None
    except ValueError:
        raise TomlError("a number with too many digits") from None
