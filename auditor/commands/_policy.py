"""``--policy FILE``: which policy is followed, and reading it."""

from __future__ import annotations

from pathlib import Path

from auditor.judge.policy import NONE, Policy, PolicyError
from auditor.judge.policy_file import LIMIT, PATH, parse


def read(path: Path | None) -> Policy:
    """The policy of a file, or of /etc/zaudit/zaudit.toml where that exists. Raises PolicyError."""
    default = Path(PATH)
    try:
        if path is None and not default.exists():
            return NONE
        with (path or default).open("rb") as file:
            data = file.read(LIMIT + 1)
    except OSError as error:
        hint = " (--policy /dev/null goes without one)" if path is None else ""
        raise PolicyError(f"{path or default}: {error.strerror or error}{hint}") from None
    if len(data) > LIMIT:
        raise PolicyError(f"{path or default}: more than {LIMIT >> 20} MiB")
    try:
        return parse(data.decode("utf-8"), str(path or default))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PolicyError(f"{path or default}, line {line}: not UTF-8") from None
