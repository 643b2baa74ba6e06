"""What a recording is made of: a manifest, which holds the questions, and a member for each answer; and what is left out where
the answers are larger than a recording may be (``archive``: what is written is read with the same limits)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from auditor.host.request import Capture, Files
from auditor.recording.archive import COUNT_LIMIT, MANIFEST, MEMBER_LIMIT, TOTAL_LIMIT, TRIAL, RecordingError

if TYPE_CHECKING:
    from auditor.recording.recording import Recording

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


def fitted(recording: Recording) -> tuple[Recording, list[str]]:
    """The recording without the answers that are too large for one, the largest first, and a sentence for each of them.

    They are replaced by a note that they were not kept: what depends on them is unknown in a replay. Raises RecordingError
    where that does not help.
    """
    left_out: dict[Question, int] = {}
    while True:
        sizes: dict[Question, int] = {}
        total, count, largest = 0, 0, 0
        for _, data, of in _laid(recording):
            total, count, largest = total + len(data), count + 1, max(largest, len(data))
            if of and of not in left_out:
                sizes[of] = sizes.get(of, 0) + len(data)
        if total <= TOTAL_LIMIT and largest <= MEMBER_LIMIT and count <= COUNT_LIMIT:
            return recording, [_said(question, size) for question, size in left_out.items()]
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


def _said(question: Question, size: int) -> str:
    return f"not kept in the recording, {_mib(size)} MiB: {' '.join(question.words)[:SHOWN]}"


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
    """Of the answer to a question, by that question alone: what else was asked changes no name. Of the few that would have the
    name of another, which somebody may bring about, the whole digest is in it."""
    digest = hashlib.sha256(json.dumps([kind, *words]).encode()).hexdigest()
    slug = re.sub(r"[^A-Za-z0-9.-]+", "_", " ".join(shown[:6]))[:SLUG].strip("_.-") or "capture"
    short = f"{slug}-{digest[:DIGEST]}"
    name = short if short not in taken else f"{slug}-{digest}"
    taken.add(name)
    return name


def _files_to_json(files: Files, parted: bool) -> bytes:
    """One line of a file as a string, several as a list: a diff then shows the line that changed. parted: not of very many
    lines, which would be more values than are read back."""
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
