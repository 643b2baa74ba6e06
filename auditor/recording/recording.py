"""Recordings: everything that was asked of a host and everything that it answered, as a folder, one .tar.gz
or one text archive.

``recording.json`` holds schema, time, user, targets, options and the list of captures; output of commands and groups of
files are members of their own, so that a folder is diffable. Whatever is wrong with
one is a :class:`RecordingError` in one sentence; ``archive`` reads its members.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

from auditor import text
from auditor.databases.configuration import allowed
from auditor.host.live import Host
from auditor.host.request import Capture, Files, Read, Run
from auditor.recording import archive, first_edition, replacing, text_archive
from auditor.recording.archive import MANIFEST as MANIFEST
from auditor.recording.archive import TRIAL
from auditor.recording.archive import RecordingError as RecordingError
from auditor.recording.layout import SCHEMA as SCHEMA
from auditor.recording.layout import fitted
from auditor.recording.layout import members as members
from auditor.recording.questions import Answers

LAST = 253370764799  # 9998-12-31 23:59:59 UTC: a year from then is a date, too, in any time zone
REPEATED = 200  # characters of a recording in an error about it


@dataclass(frozen=True, slots=True)
class Recording:
    """One look at one host.

    taken: seconds since the epoch. euid: user that asked. targets: as given on the command line. options: what
    changes the questions (consistent, db). commands, files and paths: the answers by what was asked. trial: what a
    verification saw (auditor/verify/trial.py), empty without one. kept: the words of the allow-lists for files that may hold
    passwords: what they mean is in it. rules: digest of those of the release that made it. edited: what somebody has changed in
    it, in a sentence, or empty: no host has answered so.
    """

    taken: float
    euid: int
    targets: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    zaudit: str = ""
    commands: Mapping[tuple[str, ...], Capture] = field(default_factory=dict)
    files: Mapping[tuple[str, ...], Files] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    trial: bytes = b""
    kept: frozenset[str] = field(default_factory=allowed)
    rules: str = ""
    edited: str = ""


STEADY = "steady "  # before a path, where it was asked for one that others have not moved


class ReplayHost:
    """A host that answers from a recording, also questions that were put in other words; what was not asked then is a fault."""

    at_once = 1

    def __init__(self, recording: Recording) -> None:
        self.now = recording.taken
        self.euid = recording.euid
        self.recorder, self.edited = recording.zaudit, recording.edited
        self._paths = recording.paths
        answers = Answers(recording.commands, recording.files, recording.kept)
        self.run, self.read = answers.run, answers.read

    def realpath(self, path: str) -> str:
        real = self._paths.get(path)
        if not real:
            raise FileNotFoundError(path)
        return real

    def steady(self, path: str) -> str:
        return self._paths.get(STEADY + path, "")


class RecordingHost:
    """Passes every question on and keeps the answer."""

    def __init__(self, host: Host) -> None:
        self.now = host.now
        self.euid = host.euid
        self.at_once = host.at_once
        self._host = host
        self.commands: dict[tuple[str, ...], Capture] = {}
        self.files: dict[tuple[str, ...], Files] = {}
        self.paths: dict[str, str] = {}

    def run(self, request: Run) -> Capture:
        self.commands[request.argv] = answer = self._host.run(request)._replace(keep=request.keep)
        return answer

    def read(self, request: Read) -> Files:
        self.files[request.patterns] = answer = self._host.read(request)
        return answer

    def realpath(self, path: str) -> str:
        try:
            self.paths[path] = self._host.realpath(path)
        except FileNotFoundError:
            self.paths[path] = ""
            raise
        return self.paths[path]

    def steady(self, path: str) -> str:
        self.paths[STEADY + path] = ""
        self.paths[STEADY + path] = found = self._host.steady(path)
        return found

    def recording(
        self, targets: tuple[str, ...], options: Mapping[str, str], zaudit: str, rules: str = ""
    ) -> Recording:
        """What was seen so far."""
        return Recording(
            self.now, self.euid, targets, options, zaudit, self.commands, self.files, self.paths, rules=rules
        )


# -- writing ------------------------------------------------------------------------------------------------------


def write(recording: Recording, path: Path) -> list[str]:
    """Write a folder, or a .tar.gz or text archive (.zaudit) when the name ends so. Refuses to overwrite what is not a
    recording, and leaves the one that was there until the new one is whole.

    A recording that was written can be read back, always: an answer for which there is no room is not kept, and a replay
    knows that. Returns what was not kept, a sentence each. Raises RecordingError, NoPlace or CannotWrite.
    """
    kept, left_out = fitted(recording)
    if replacing.is_archive(path):
        replacing.put_archive(path, partial(_write_text if path.name.endswith(text_archive.ENDING) else _pack, kept))
    else:
        replacing.put_folder(path, members(kept))
    return left_out


def _write_text(recording: Recording, file: BinaryIO) -> None:
    text_archive.write(members(recording), file)


def _pack(recording: Recording, file: BinaryIO) -> None:
    """Without the name of the file, which gzip would keep, and with the same bytes for the same recording."""
    import gzip
    import tarfile

    with (
        gzip.GzipFile(
            filename="", mode="wb", compresslevel=6, fileobj=file, mtime=int(recording.taken) % 2**32
        ) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, data in members(recording):
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(data), int(recording.taken), 0o600
            archive.addfile(info, io.BytesIO(data))


# -- reading ------------------------------------------------------------------------------------------------------


def load(path: Path) -> Recording:
    """Read a folder, a .tar.gz or a text archive; raises RecordingError."""
    content = archive.read(path)
    if MANIFEST not in content:
        raise RecordingError(f"{path}: not a zaudit recording (it has no {MANIFEST})")
    return parse(str(path), content)


def parse(path: str, content: Mapping[str, bytes]) -> Recording:
    """A recording from its members by name; raises RecordingError. path: what to call it in an error."""
    try:
        answers = _Members(content)
        manifest = answers.document(MANIFEST)
        schema = manifest["schema"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RecordingError(f"{path}: {MANIFEST} is not a zaudit recording, or it is cut off") from None
    if schema != SCHEMA:
        raise RecordingError(f"{path}: not a zaudit recording, or one of a newer release: this zaudit reads {SCHEMA}")
    try:
        commands: dict[tuple[str, ...], Capture] = {}
        files: dict[tuple[str, ...], Files] = {}
        for entry in manifest["captures"]:
            if "run" in entry:
                commands[_strings(entry["run"])] = _capture(entry, answers)
            else:
                files[_strings(entry["read"])] = _files(answers.document(entry["files"]))
        return Recording(
            taken=_time(manifest["taken"]),
            euid=int(manifest["euid"]),
            targets=_strings(manifest["targets"]),
            options={str(key): str(value) for key, value in manifest["options"].items()},
            zaudit=str(manifest["zaudit"]),
            commands=commands,
            files=files,
            paths={str(key): str(value) for key, value in manifest["paths"].items()},
            trial=content.get(TRIAL, b""),
            rules=str(manifest.get("rules", "")),
            edited=str(manifest.get("edited", "")),
            kept=frozenset(_strings(manifest["kept"])) if "kept" in manifest else first_edition.KEPT,
        )
    except KeyError as error:
        raise RecordingError(f"{path}: incomplete, {str(error.args[0])[:REPEATED]!r} is missing") from None
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise RecordingError(f"{path}: {MANIFEST} is malformed ({str(error)[:REPEATED]})") from None


class _Members:
    """The manifest, and the answers, each to one question: a small archive could have one taken apart for 100,000. The values
    of all together are bounded."""

    def __init__(self, content: Mapping[str, bytes]) -> None:
        self._left = dict(content)
        self._content = content
        self._values = 0

    def answer(self, name: Any) -> bytes:
        """Raises KeyError or ValueError."""
        if name in self._content and name not in self._left:
            raise ValueError("a member is named twice")
        return self._left.pop(name)

    def document(self, name: Any) -> Any:
        """Raises KeyError or ValueError."""
        document = self.answer(name).decode("utf-8", "surrogatepass")
        self._values = text.values(document, self._values)
        if self._values > text.VALUES:
            raise ValueError(f"more than {text.VALUES:,} values")
        return json.loads(document)


def _time(value: Any) -> float:
    """Seconds since the epoch that are a date, and leave room for what is added to one."""
    seconds = float(value)
    if not 0 <= seconds <= LAST:
        raise ValueError("taken is no time")
    return seconds


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError("expected a list of strings")
    return tuple(value)


def _capture(entry: Mapping[str, Any], answers: _Members) -> Capture:
    exit_code = entry["exit"]
    return Capture(
        exit=None if exit_code is None else int(exit_code),
        stdout=answers.answer(entry["stdout"]) if "stdout" in entry else b"",
        stderr=answers.answer(entry["stderr"]) if "stderr" in entry else b"",
        seconds=float(entry.get("seconds", 0)),
        fault=str(entry.get("fault", "")),
        keep=str(entry.get("keep", "")),
    )


def _files(whole: Any) -> Files:
    return Files(
        text={
            path: "\n".join(value) if isinstance(value, list) else str(value) for path, value in whole["text"].items()
        },
        links={str(path): str(target) for path, target in whole["links"].items()},
        errors={str(path): str(error) for path, error in whole["errors"].items()},
        devices={str(path): str(device) for path, device in whole.get("devices", {}).items()},
        changed={str(path): _seconds(after) for path, after in whole.get("changed", {}).items()},
    )


def _seconds(value: Any) -> float:
    """A number that can be compared. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError("changed is no number of seconds")
    return float(value)
