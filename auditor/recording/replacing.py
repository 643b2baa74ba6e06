"""Where a recording may be written, and putting it there whole: what was there stays until the new one is complete.

Only a recording is ever replaced, and of its folder only what its manifest names. Symbolic links are not followed: who may
write the folder decides where they lead.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from auditor.recording import archive
from auditor.recording.archive import MANIFEST, NAME, TRIAL, RecordingError

SUFFIXES = (".tar.gz", ".tgz")


def possible(path: Path) -> None:
    """Whether a recording can be written there, before it is taken. Raises RecordingError or OSError."""
    _replaced(path)
    place = Path(os.path.abspath(path)).parent
    while not _is_archive(path) and not place.exists():  # folders on the way to a folder are made
        place = place.parent
    os.rmdir(_scratch(place))


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives another path, where nothing is yet; what is written there takes the place of the old recording at the end.

    Raises RecordingError or OSError, and leaves everything as it was then.
    """
    import shutil

    old = _replaced(path)
    whole = Path(os.path.abspath(path))
    if not _is_archive(path):
        whole.parent.mkdir(parents=True, exist_ok=True)
    scratch = _scratch(whole.parent)
    try:
        new = scratch / whole.name
        yield new
        if new.is_dir() and whole.exists():
            _move(new, whole, old)
        else:
            os.replace(new, whole)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _is_archive(path: Path) -> bool:
    return path.name.endswith(SUFFIXES)


def _scratch(place: Path) -> Path:
    """A new folder on the same file system. Raises OSError that names the place."""
    import tempfile  # slow to import, as shutil is, and needed by those who write only

    try:
        return Path(tempfile.mkdtemp(prefix=".zaudit-", dir=place))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(place)) from None


def _replaced(path: Path) -> set[str]:
    """The names of the members of the recording that is there; none where nothing is. Raises RecordingError."""
    refusal = RecordingError(f"{path} exists and is not a recording; zaudit does not overwrite it")
    if path.is_symlink():
        raise refusal
    if not path.exists():
        return set()
    kind = path.is_file if _is_archive(path) else path.is_dir
    if not kind():
        raise refusal
    empty = not path.stat().st_size if _is_archive(path) else not any(path.iterdir())
    try:
        return set() if empty else set(_named(_manifest(path)))
    except (OSError, RecordingError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise refusal from None


def _manifest(path: Path) -> bytes:
    if _is_archive(path):
        return archive.read(path)[MANIFEST]
    file = path / MANIFEST
    if file.is_symlink() or not file.is_file():
        raise ValueError("no plain file")
    return file.read_bytes()


def _named(manifest: bytes) -> Iterator[str]:
    """The members that a manifest names. Raises ValueError, KeyError, TypeError, AttributeError or RecursionError."""
    found = json.loads(manifest)
    if not found["schema"].startswith("zaudit-recording/"):
        raise ValueError("another schema")
    yield from (MANIFEST, TRIAL)
    for capture in found["captures"]:
        yield from (capture[part] for part in ("stdout", "stderr", "files") if NAME.fullmatch(capture.get(part, "")))


def _move(new: Path, path: Path, old: set[str]) -> None:
    """The members of a folder into another, in place of these old ones; without a manifest meanwhile, so that a mixture of
    both is no recording."""
    names = sorted(each.name for each in new.iterdir())
    for name in names:
        if name not in old and os.path.lexists(path / name):
            raise RecordingError(f"{path / name} is not of the recording there; zaudit does not overwrite it")
    for name in (MANIFEST, *sorted(old - {MANIFEST})):
        if not (path / name).is_dir():
            (path / name).unlink(missing_ok=True)
    for name in (*(each for each in names if each != MANIFEST), MANIFEST):
        os.replace(new / name, path / name)
