"""Whoever judges a recording of somebody else has no more to wait than --deadline, whatever is in it and wherever zaudit is."""

from __future__ import annotations

import io
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import click
import pytest

from auditor import audit, cli, interrupt
from auditor.commands._options import RECORDED
from auditor.host import live as seam
from auditor.model import derivation
from auditor.recording import archive, recording
from auditor.report import audit_page
from tests.fake import CommandLine, FakeHost
from tests.folded import for_each
from tests.golden import CANONICAL, verifications
from tests.shared import HOSTS

REC = HOSTS / CANONICAL
LATE = "not read and judged within 1e-06 s (see --deadline)"
READERS = [
    ("check", "--replay", REC),
    ("check", "--verify", "--replay", verifications()[0]),
    ("verify", "--replay", verifications()[0]),
    ("diagnose", "--replay", REC),
    ("checklist", "--replay", REC),
    ("policy", "init", "--replay", REC),
    ("record", "--replay", REC, "-o", "never-written.zaudit"),
    ("advise", "db", "postgres", "tank/db", "--replay", REC),
    ("advise", "log", "tank", "--replay", REC),
    ("advise", "log", "tank", "--since", REC),
    ("diff", REC, REC),
    ("show", REC),
    ("alert", REC),
]


@for_each("words", READERS)
def test_a_recording_that_takes_longer_is_an_error(words: tuple[object, ...], zaudit: CommandLine) -> None:
    done = zaudit(*words, "--deadline", "1e-6")
    path = REC if words[0] == "record" else words[-1]  # of diff the first is too late already
    assert (done.code, done.out, done.err) == (2, "", f"zaudit: {path}: {LATE}\n")
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def test_every_command_that_reads_a_recording_has_a_deadline() -> None:
    reads = set()
    for name, command in commands(cli.main):
        options = {each.name for each in command.params}
        if options & {*RECORDED, "old", "report"} and not name.startswith("fleet "):
            reads.add(name)
            assert "deadline" in options, name
    assert reads == {
        "advise db",
        "advise log",
        "alert",
        "baseline accept",
        "baseline update",
        "check",
        "checklist",
        "diagnose",
        "diff",
        "plan",
        "policy init",
        "record",
        "show",
        "verify",
    }


def busy(*_: Any, **__: Any) -> NoReturn:
    """A parser that takes whatever goes wrong for a fault of what it reads, and never ends; its time is over as it begins."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        try:
            signal.raise_signal(signal.SIGALRM)
        except Exception:
            continue
    raise AssertionError("nothing ended it")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (archive, "read"),
        (recording, "parse"),
        (audit, "gather"),
        (derivation, "run"),
        (audit, "judge"),
        (audit_page, "write_text"),
    ],
    ids=str,
)
def test_it_ends_at_any_moment(module: Any, name: str, zaudit: CommandLine) -> None:
    zaudit.patch.setattr(module, name, busy)
    done = zaudit("check", "--replay", REC, "--deadline", "600")
    assert (done.code, done.out) == (2, "")
    assert "not read and judged within 600 s" in done.err


def test_who_polls_a_file_reads_there_that_there_is_no_report(zaudit: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "zaudit.prom"
    assert zaudit("check", "--replay", REC, "--format", f"prometheus={path}").code == 14
    before = path.read_text()
    zaudit.patch.setattr(audit, "judge", busy)
    assert zaudit("check", "--replay", REC, "--format", f"prometheus={path}").code == 2
    assert path.read_text() != before
    assert zaudit("check", "--replay", REC, "--format", "nagios", "--deadline", "1e-6").code == 3


def test_without_a_recording_nothing_ends_it(zaudit: CommandLine) -> None:
    """A host is asked no more, and what it said is judged."""
    zaudit.patch.setattr(seam, "LiveHost", lambda *_: FakeHost())
    assert zaudit("check", "--deadline", "1e-6").code == 3
    assert zaudit("check", "--replay", REC, "--deadline", "0").code == 14


def test_what_waits_for_others_does_not_count() -> None:
    with interrupt.within(600, "late", 2):
        with interrupt.waiting():
            assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
        left, again = signal.getitimer(signal.ITIMER_REAL)
        assert (0 < left <= 600, again) == (True, interrupt.AGAIN_S)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_pager_is_waited_for(zaudit: CommandLine) -> None:
    timers = []

    def written(text: str) -> int:
        timers.append(signal.getitimer(signal.ITIMER_REAL))
        return len(text)

    with zaudit.patch.context() as patch:
        patch.setattr(sys, "stdout", io.StringIO())
        patch.setattr(sys.stdout, "write", written)
        assert zaudit("check", "--replay", REC).code == 14
    assert set(timers) == {(0, 0)}


def test_what_belongs_together_is_not_parted() -> None:
    done = []

    def does() -> None:
        with interrupt.within(600, "late", 2):
            with interrupt.deferred:
                signal.raise_signal(signal.SIGALRM)
                done.append("both")
            done.append("more")

    with pytest.raises(interrupt.TooLate, match="late"):
        does()
    assert done == ["both"]


def test_an_end_that_is_lost_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that comes while a __del__ runs goes to sys.unraisablehook, and no further."""
    lost = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: lost.append(error.exc_type))

    class Left:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGALRM)

    def does() -> None:
        with interrupt.within(2, "late", 2):
            Left()
            while True:
                time.sleep(0.01)

    with pytest.raises(interrupt.TooLate):
        does()
    assert lost == [interrupt.TooLate]


def test_an_ignored_signal_stays_ignored() -> None:
    """As nohup has it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupt.raising(RuntimeError):
            signal.raise_signal(signal.SIGHUP)
            with pytest.raises(RuntimeError):
                signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
