"""A trial: everything that a verification saw, as text. It is a member of a recording and is judged anew from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from auditor.verify import codec

SCHEMA = "zaudit-trial/1"
UNSEEN = "unseen"  # scan: zpool status did not answer


class Reading(NamedTuple):
    """Counter files as they were at one time. at: seconds since the epoch; up: seconds since boot (kstats count from there).
    text: path -> content; errors: path -> why it could not be read."""

    at: float
    up: float
    text: Mapping[str, str]
    errors: Mapping[str, str]


class Logged(NamedTuple):
    """Lines of the kernel's log that came during a run, of those that concern disks and pools. missing: why there may have
    been others, empty where these are all."""

    lines: tuple[str, ...]
    missing: str


UNLOGGED = Logged((), "what the kernel logged meanwhile is not in the recording")


class Ran(NamedTuple):
    """One run of fio. began, ended: seconds since the epoch. exit: None when it never ended by itself, with a fault.

    strace: what it wrote, None where it did not run; txgs: the list of transaction groups as it was from time to time;
    limited: zaudit ended it because it had written as much as it may; logged: what the kernel logged from before to after.
    """

    name: str
    purpose: str
    sections: tuple[str, ...]
    argv: tuple[str, ...]
    idle: Reading
    before: Reading
    after: Reading
    began: float
    ended: float
    exit: int | None
    stdout: str
    stderr: str
    fault: str = ""
    strace: str | None = None
    txgs: tuple[str, ...] = ()
    iostat: str = ""
    limited: bool = False
    logged: Logged = UNLOGGED


class Trial(NamedTuple):
    """One verification. target: the dataset that was asked for; dataset: that was written to, which is another one for a
    zvol (a scratch zvol beside it); landed: the file system on which the files came to lie, empty where nobody could tell.
    without: the same with --ab slog, on a dataset whose commits go past the SLOG as far as OpenZFS lets them. preload: what
    is preloaded into every program. job_file: text of the profile. scan: a scrub or resilver ran meanwhile, or UNSEEN.

    objectives: "p99=5ms,p99.9=25ms"; size: bytes that ${ZAUDIT_SIZE} stood for.
    """

    target: str
    dataset: str
    landed: str
    place: str
    profile: str
    job_file: str
    length: str
    objectives: str
    size: int
    fio: str
    preload: str
    runs: tuple[Ran, ...]
    scan: str = ""
    notes: tuple[str, ...] = ()
    without: Trial | None = None


def to_text(trial: Trial) -> str:
    """As JSON."""
    return codec.to_member(SCHEMA, trial)


def from_text(text: str) -> Trial:
    """Raises codec.CodecError for anything that is not a trial of this schema. One that was recorded before the kernel's log
    was read says nothing of it."""
    return codec.from_member(Trial, SCHEMA, text, "verification", _with_log)


def _with_log(document: Any) -> Any:
    """The same with a member for what the kernel logged in each run, also of the trial that it was compared with."""
    if isinstance(document, dict):
        if isinstance(runs := document.get("runs"), list):
            logged = {"logged": codec.plain(UNLOGGED)}
            document["runs"] = [{**logged, **each} if isinstance(each, dict) else each for each in runs]
        document["without"] = _with_log(document.get("without"))
    return document
