"""TOML as :mod:`tomllib` reads it, with one kind of error for all that may be wrong with a file from anywhere."""

from __future__ import annotations

import tomllib
from typing import Any


class TomlError(ValueError):
    """Not TOML that can be read, and why; with the line where tomllib says it."""


def loads(text: str) -> dict[str, Any]:
    """The table. Raises TomlError, also for what is nested too deep and for a number that Python does not convert."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(str(error)) from None
    except RecursionError:
        raise TomlError("nested too deep") from None
    except ValueError:
        raise TomlError("a number with too many digits") from None
