"""``--policy FILE``: which policy is followed, and reading it.

A policy can silence rules. One that was named is followed, whoever owns it; the one that is read without being named must
be such that only root (or the caller) can have written it.
"""

from __future__ import annotations

from pathlib import Path

from auditor.host import named
from auditor.judge.policy import NONE, Policy, PolicyError
from auditor.judge.policy_file import LIMIT, PATH, parse


def read(path: Path | None) -> Policy:
    """The policy of a file, or of /etc/zaudit/zaudit.toml where that exists. Raises PolicyError."""
    default = Path(PATH)
    try:
        data = named.read(path or default, LIMIT, trusted=path is None)
    except (OSError, ValueError) as error:
        if path is None and isinstance(error, FileNotFoundError | NotADirectoryError):
            return NONE
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        hint = f" (--policy {default} follows it, --policy /dev/null goes without one)" if path is None else ""
        raise PolicyError(f"{path or default}: {said}{hint}") from None
    try:
        return parse(data.decode("utf-8"), str(path or default))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PolicyError(f"{path or default}, line {line}: not UTF-8") from None
