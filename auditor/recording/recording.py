"""A recording: a manifest with the questions, and a member for each answer. Answers larger than a recording may be are left
out (``archive``: what is written is read with the same limits)."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from auditor import text
from auditor.databases.configuration import allow_list
from auditor.host.live import Host
from auditor.host.request import Capture, Files, Read, Run
from auditor.recording import archive, lookup
from auditor.recording.archive import COUNT_LIMIT, MEMBER_LIMIT, TOTAL_LIMIT, TRIAL
from auditor.recording.archive import MANIFEST as MANIFEST
from auditor.recording.archive import RecordingError as RecordingError
from auditor.recording.lookup import Answers

SCHEMA = "zaudit-recording/1"
PARTED = 1_000_000  # lines of all files
SLUG, DIGEST = 50, 8  # characters of the name of a member that tell what was asked, and which question it is
SHOWN = 100  # characters of a question, in the sentence that says that its answer is not kept


class Question(NamedTuple):
    """What was asked: the arguments of a command, or patterns of files."""

    command: bool
    words: tuple[str, ...]


class Member(NamedTuple):
    """of: the question that it is an answer to."""

    name: str
    data: bytes
    of: Question | None = None


def members(recording: Recording) -> Iterator[tuple[str, bytes]]:
    """(name, content) of every member, the manifest last. Order and names depend on the content alone."""
    yield from ((name, data) for name, data, _ in _laid(recording))


def fit(recording: Recording) -> tuple[Recording, list[str]]:
    """The recording without the answers that are too large for one, the largest first, and a sentence for each of them. A
    note replaces them: what depends on them is unknown in a replay. Raises RecordingError where that does not help."""
    left_out: dict[Question, int] = {}
    while True:
        sizes: dict[Question, int] = {}
        total, count, largest = 0, 0, 0
        for _, data, of in _laid(recording):
            total, count, largest = total + len(data), count + 1, max(largest, len(data))
            if of and of not in left_out:
                sizes[of] = sizes.get(of, 0) + len(data)
        if total <= TOTAL_LIMIT and largest <= MEMBER_LIMIT and count <= COUNT_LIMIT:
            return recording, [
                f"not kept in the recording, {_mib(size)} MiB: {' '.join(question.words)[:SHOWN]}"
                for question, size in left_out.items()
            ]
        too_large = dict(_too_large(sizes, total - TOTAL_LIMIT))
        if count > COUNT_LIMIT or not too_large:
            raise RecordingError(
                f"not recorded: larger than a recording may be ({COUNT_LIMIT:,} answers, {MEMBER_LIMIT >> 20} MiB each, "
                f"{TOTAL_LIMIT >> 20} MiB together)"
            )
        left_out |= too_large
        recording = _without(recording, too_large)


def _too_large(sizes: dict[Question, int], over: int) -> Iterator[tuple[Question, int]]:
    """What must go: what is larger than a member may be, and the largest until so many bytes are saved."""
    for question, size in sorted(sizes.items(), key=lambda each: (-each[1], each[0])):
        if size <= MEMBER_LIMIT and over <= 0:
            return
        over -= size
        yield question, size


def _without(recording: Recording, left_out: dict[Question, int]) -> Recording:
    why = {question: f"{_mib(size)} MiB, more than is kept in a recording" for question, size in left_out.items()}
    commands = {each.words: Capture(None, fault=text) for each, text in why.items() if each.command}
    files = {
        each.words: Files({}, errors=dict.fromkeys(each.words, text)) for each, text in why.items() if not each.command
    }
    return replace(recording, commands={**recording.commands, **commands}, files={**recording.files, **files})


def _mib(size: int) -> int:
    return -(-size >> 20)


def _laid(recording: Recording) -> Iterator[Member]:
    captures: list[dict[str, Any]] = []
    lines = sum(content.count("\n") for files in recording.files.values() for content in files.text.values())
    taken: set[str] = set()
    for argv in sorted(recording.commands):
        name = _name("run", argv, argv, taken)
        capture = recording.commands[argv]
        entry: dict[str, Any] = {"run": list(argv), "exit": capture.exit, "seconds": round(capture.seconds, 3)}
        if capture.fault:
            entry["fault"] = capture.fault
        if capture.keep:
            entry["keep"] = capture.keep
        for stream, data in (("stdout", capture.stdout), ("stderr", capture.stderr)):
            if data:
                entry[stream] = f"{name}.{stream[3:]}"
                yield Member(entry[stream], data, Question(True, argv))
        captures.append(entry)
    for patterns in sorted(recording.files):
        name = f"{_name('read', patterns, patterns[:1], taken)}.json"
        captures.append({"read": list(patterns), "files": name})
        yield Member(name, _files_to_json(recording.files[patterns], lines <= PARTED), Question(False, patterns))
    if recording.trial:
        yield Member(TRIAL, recording.trial)
    manifest = {
        "schema": SCHEMA,
        "zaudit": recording.zaudit,
        "taken": recording.taken,
        "euid": recording.euid,
        "targets": list(recording.targets),
        "options": dict(sorted(recording.options.items())),
        "paths": dict(sorted(recording.paths.items())),
        "kept": sorted(recording.kept),
        **{name: said for name, said in (("rules", recording.rules), ("edited", recording.edited)) if said},
        "captures": captures,
    }
    yield Member(MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())


def _name(kind: str, words: tuple[str, ...], shown: tuple[str, ...], taken: set[str]) -> str:
    """Of the answer to a question, by that question alone: other questions change no name. Of the few that would have the
    name of another, which a user may cause, the whole digest is in it."""
    import hashlib

    digest = hashlib.sha256(json.dumps([kind, *words]).encode()).hexdigest()
    slug = re.sub(r"[^A-Za-z0-9.-]+", "_", " ".join(shown[:6]))[:SLUG].strip("_.-") or "capture"
    short = f"{slug}-{digest[:DIGEST]}"
    name = short if short not in taken else f"{slug}-{digest}"
    taken.add(name)
    return name


def _files_to_json(files: Files, parted: bool) -> bytes:
    """One line of a file as a string, several as a list: a diff then shows the line that changed. parted: False for very
    many lines, which would be more values than are read back."""
    text = {
        path: content.split("\n") if parted and "\n" in content[:-1] else content
        for path, content in sorted(files.text.items())
    }
    whole = {"text": text, "links": dict(sorted(files.links.items())), "errors": dict(sorted(files.errors.items()))}
    if files.devices:
        whole["devices"] = dict(sorted(files.devices.items()))
    if files.changed:
        whole["changed"] = dict(sorted(files.changed.items()))
    return (json.dumps(whole, indent=1) + "\n").encode()


# Recordings: all questions to a host and its answers, as a folder, one .tar.gz or one text archive. ``recording.json`` has
# schema, time, user, targets, options and the list of captures; output of commands and groups of files are separate
# members, so that a folder is diffable. Whatever is wrong is a :class:`RecordingError` in one sentence.

LAST = 253370764799  # 9998-12-31 23:59:59 UTC: a year from then is a date, too, in any time zone
REPEATED = 200  # characters of a recording in an error about it


@dataclass(frozen=True, slots=True)
class Recording:
    """One look at one host. taken: seconds since the epoch. euid: who asked. targets: as given on the command line.
    options: what changes the questions (consistent, db). commands, files and paths: the answers by question. trial: of a
    verification (auditor/verify/trial.py), or empty. kept: words of the allow-lists for files that may hold passwords.
    rules: digest of those of the release that made it. edited: what a user has changed in it, in a sentence, or empty."""

    taken: float
    euid: int
    targets: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    zaudit: str = ""
    commands: Mapping[tuple[str, ...], Capture] = field(default_factory=dict)
    files: Mapping[tuple[str, ...], Files] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    trial: bytes = b""
    kept: frozenset[str] = field(default_factory=allow_list)
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
        return Recording(
            self.now, self.euid, targets, options, zaudit, self.commands, self.files, self.paths, rules=rules
        )


# -- writing ------------------------------------------------------------------------------------------------------


def write(recording: Recording, path: Path) -> list[str]:
    """Write a folder, or a .tar.gz or text archive (.zaudit) when the name ends so. Overwrites nothing but a recording, and
    keeps the old one until the new one is whole. What was written can always be read back: an answer without room is left
    out, and a replay knows that. Returns what was left out, a sentence each. Raises RecordingError, NoPlace or
    CannotWrite."""
    kept, left_out = fit(recording)
    if archive.is_archive(path):
        text = path.name.endswith(archive.ENDING)
        archive.put_archive(path, partial(archive.write_text, list(members(kept))) if text else partial(_pack, kept))
    else:
        archive.put_folder(path, members(kept))
    return left_out


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
            kept=frozenset(_strings(manifest["kept"])) if "kept" in manifest else lookup.KEPT,
        )
    except KeyError as error:
        raise RecordingError(f"{path}: incomplete, {str(error.args[0])[:REPEATED]!r} is missing") from None
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise RecordingError(f"{path}: {MANIFEST} is malformed ({str(error)[:REPEATED]})") from None


class _Members:
    """The manifest, and the answers, each to one question: else a small archive could be parsed 100,000 times."""

    def __init__(self, content: Mapping[str, bytes]) -> None:
        self._left = dict(content)
        self._content = content
        self._values = 0

    def answer(self, name: Any) -> bytes:
        if name in self._content and name not in self._left:
            raise ValueError("a member is named twice")
        return self._left.pop(name)

    def document(self, name: Any) -> Any:
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
