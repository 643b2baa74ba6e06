"""``--policy FILE``: which policy is followed, and reading it.

A policy can silence rules. One that was named is followed, whoever owns it; what is read without being named, zaudit.toml and
conf.d in /etc/zaudit, must be such that only root (or the caller) can have written it.
"""

from __future__ import annotations

from pathlib import Path

from auditor.host import user_files
from auditor.judge import policy_file
from auditor.judge.policy import NONE, Policy, PolicyError
from auditor.judge.policy_file import LIMIT, PATH

MOST = 100  # files


def read(path: Path | None) -> Policy:
    """The policy of a file, or of /etc/zaudit where there is one. Raises PolicyError."""
    if path:
        return policy_file.parse(_text(path, trusted=False), str(path))
    main, folder = Path(PATH), Path(policy_file.FOLDER)
    hint = f" (--policy {main} follows that file alone, --policy /dev/null goes without one)"
    try:
        beside = user_files.list_trusted(folder, ".toml", MOST)
    except OSError as error:
        raise PolicyError(f"{folder}: {error.strerror or error}{hint}") from None
    there = [*([main] if _is_there(main) else []), *beside]
    if not there:
        return NONE
    texts = [(str(each), _text(each, trusted=True, hint=hint)) for each in there]
    if sum(len(text) for _, text in texts) > LIMIT:
        raise PolicyError(f"{folder}: more than {LIMIT >> 10} KiB in all files together")
    if not beside:
        return policy_file.parse(texts[0][1], str(main))
    return policy_file.parse(policy_file.joined(texts), policy_file.HOME)


def _is_there(path: Path) -> bool:
    """What cannot be looked at is taken to be there: reading it says why it cannot be read."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _text(path: Path, *, trusted: bool, hint: str = "") -> str:
    try:
        data = user_files.read(path, LIMIT, trusted=trusted)
    except (OSError, ValueError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise PolicyError(f"{path}: {said}{hint}") from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PolicyError(f"{path}, line {line}: not UTF-8") from None
