"""What runs beside each other: one thread watches over it, nothing holds up anything else, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from auditor import interrupt
from auditor.facts import Facts, Subject
from auditor.gather.gather import AT_ONCE, Gatherer
from auditor.host import process, running
from auditor.host.live import spawn
from auditor.host.request import Capture, Run
from auditor.host.running import HELD_UP_S, Lane, Running, Then, Watch, result
from auditor.registry import collectors
from tests.fake import FakeHost

T = TypeVar("T")

SHELL = "/bin/sh"


def shell(script: str, timeout_s: float = 20) -> Running[Capture]:
    started = spawn((SHELL, "-c", script), timeout_s)
    assert isinstance(started, Running)
    return started


def everything(watch: Watch[str, Capture]) -> list[tuple[str, Capture]]:
    """In the order in which they ended."""
    found: list[tuple[str, Capture]] = []
    while watch:
        found += watch.ended().items()
    return found


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def waited_for(path: Path) -> str:
    deadline = time.monotonic() + 5
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return path.read_text()


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


# -- commands ---------------------------------------------------------------------------------------------------------


def test_each_answer_comes_when_it_is_there() -> None:
    watch: Watch[str, Capture] = Watch()
    before = descriptors()
    for name, script in {
        "slow": "sleep 0.6; echo slow",
        "hangs": "echo half; sleep 60",
        "large": "head -c 3000000 /dev/zero",
        "fails": "echo why >&2; exit 3",
    }.items():
        watch.add(name, shell(script, 1.2))
    started = time.monotonic()
    found = everything(watch)
    assert time.monotonic() - started < 3
    assert [name for name, _ in found[2:]] == ["slow", "hangs"]
    answers = dict(found)
    assert answers["slow"].stdout == b"slow\n"
    assert answers["large"].stdout == bytes(3000000)
    assert (answers["fails"].exit, answers["fails"].stderr) == (3, b"why\n")
    assert (answers["hangs"].exit, answers["hangs"].fault) == (None, "no answer within 1.2 s")
    assert answers["hangs"].seconds < 2.5
    assert descriptors() <= before + 1  # the poll object of the watch


def test_who_is_busy_for_longer_than_a_command_may_take_still_hears_it() -> None:
    """Parsing the properties of many datasets takes a while; nobody listens then."""
    watch: Watch[str, Capture] = Watch()
    watch.add("large", shell("head -c 200000 /dev/zero", 0.4))  # more than a pipe holds
    watch.add("small", shell("echo here; exit 3", 0.4))
    watch.add("hangs", shell("echo here; sleep 60", 0.4))
    time.sleep(0.6)
    answers = dict(everything(watch))
    assert (answers["small"].exit, answers["small"].stdout) == (3, b"here\n")
    assert (answers["large"].exit, len(answers["large"].stdout)) == (0, 200000)
    assert answers["hangs"].fault == "no answer within 0.4 s"


def test_who_was_stopped_for_longer_than_a_command_may_take_still_hears_it() -> None:
    """Ctrl-Z, or a virtual machine that was frozen."""
    program = (
        "from auditor.host.live import spawn\n"
        "from auditor.host.running import result\n"
        "print('begun', flush=True)\n"
        "said = result(spawn(('/bin/sh', '-c', 'sleep 0.5; echo here; exit 3'), 1))\n"
        "print(said.exit, said.stdout, said.fault)\n"
    )
    with subprocess.Popen((sys.executable, "-c", program), stdout=subprocess.PIPE, text=True) as zaudit:
        assert zaudit.stdout is not None
        assert zaudit.stdout.readline() == "begun\n"
        time.sleep(0.2)
        zaudit.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        zaudit.send_signal(signal.SIGCONT)
        assert zaudit.stdout.read() == "3 b'here\\n' \n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_who_is_interrupted_leaves_nothing_running(number: int, code: int, tmp_path: Path) -> None:
    program = (
        "import click, sys\n"
        "from auditor import cli\n"
        "from auditor.host.live import spawn\n"
        "from auditor.host.running import result\n"
        f"script = 'echo $$ >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; sleep 60'\n"
        "cli.main = click.command()(lambda: result(spawn(('/bin/sh', '-c', script), 30)))\n"
        "sys.argv[1:] = []\n"
        "cli.run()\n"
    )
    with subprocess.Popen((sys.executable, "-c", program), stderr=subprocess.DEVNULL) as zaudit:
        pid = int(waited_for(tmp_path / "pid"))
        zaudit.send_signal(number)
    assert gone(pid)
    assert zaudit.returncode == code


def test_a_signal_between_start_and_watch_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    original = subprocess.Popen

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(original(*arguments, **options))
        os.kill(os.getpid(), signal.SIGINT)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", start)
    before = {number: signal.getsignal(number) for number in interrupt.ENDING}
    try:
        interrupt.install()
        with pytest.raises(KeyboardInterrupt):
            spawn((SHELL, "-c", "sleep 60"), 30)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    process.kill_all()
    assert gone(started[0].pid)


def test_nothing_runs_nothing_ends() -> None:
    assert Watch[str, Capture]().ended() == {}


def test_what_nobody_waits_for_is_killed_with_its_children(tmp_path: Path) -> None:
    watch: Watch[str, Capture] = Watch()
    watch.add("goes on", shell(f"sleep 60 & echo $! $$ >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pids; wait"))
    pids = [int(pid) for pid in waited_for(tmp_path / "pids").split()]
    watch.abandon()
    assert len(watch) == 0
    assert len(pids) == 2
    assert all(map(gone, pids))


def test_an_answer_can_be_changed_before_it_is_told() -> None:
    before: Capture | Running[Capture] = Then(shell("echo a"), lambda capture: capture._replace(stdout=b"b"))
    assert result(before).stdout == b"b"


def test_a_parent_that_ignores_its_children_does_not_hide_their_exit_codes() -> None:
    """Where SIGCHLD is ignored, wait() finds no child, and Popen takes that for exit code 0."""
    program = (
        "from auditor.host import live\n"
        "live.LiveHost(5)\n"
        "from auditor.host.running import result\n"
        "print(result(live.spawn(('/bin/sh', '-c', 'exit 7'), 5)).exit)\n"
    )
    argv = (SHELL, "-c", 'trap \'\' CHLD; exec "$0" -c "$1"', sys.executable, program)
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "7\n"


# -- calls ------------------------------------------------------------------------------------------------------------


def call(lane: Lane, function: Callable[[], T], timeout_s: float, failed: Callable[[str], T]) -> Running[T]:
    started = lane.call(function, timeout_s, failed)
    assert isinstance(started, Running)
    return started


def waited(answer: str | Running[str]) -> str:
    return result(answer)


def test_calls_that_return_soon_share_one_thread() -> None:
    lane, watch = Lane(), Watch[int, int]()
    for number in range(50):
        watch.add(number, call(lane, threading.get_ident, 5, lambda why: 0))
    threads = set()
    while watch:
        threads |= set(watch.ended().values())
    assert len(threads) <= 2  # a second one where the machine was busy for longer than a lane may be held up
    assert threads.isdisjoint({0, threading.get_ident()})


def test_calls_that_hang_hold_up_no_other() -> None:
    lane, watch = Lane(), Watch[str, str]()
    release = threading.Event()
    for name in ("first", "second", "third"):
        watch.add(name, call(lane, lambda: str(release.wait(30)), 1.0, str))
    watch.add("quick", call(lane, lambda: "here", 1.0, str))
    started = time.monotonic()
    assert watch.ended() == {"quick": "here"}
    assert time.monotonic() - started < 1.0 - HELD_UP_S
    found: dict[str, str] = {}
    while watch:
        found |= watch.ended()
    assert found == dict.fromkeys(("first", "second", "third"), "no answer within 1 s")
    assert time.monotonic() - started < 2.0  # each for as long as it had, and not one after the other
    release.set()


def test_many_calls_that_are_held_up_do_not_each_open_a_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[float] = []

    def start(function: Callable[[], None], arguments: tuple[()]) -> int:
        started.append(time.monotonic())
        return start_new_thread(function, arguments)

    monkeypatch.setattr(running, "start_new_thread", start)
    lane, watch = Lane(), Watch[int, str]()
    release = threading.Event()
    watch.add(0, call(lane, lambda: str(release.wait(30)), 5, str))
    for number in range(1, 40):
        watch.add(number, call(lane, lambda: "here", 5, str))
    while len(watch) > 1:
        watch.ended()
    release.set()
    assert len(started) == 2
    assert watch.ended() == {0: "True"}


def test_a_lane_that_was_left_is_opened_again() -> None:
    lane = Lane()
    for number in range(20):
        assert result(lane.call(partial(str, number), 5, str)) == str(number)
        if number % 5 == 0:
            time.sleep(0.01)


def test_what_a_call_raises_is_a_reason() -> None:
    assert result(Lane().call(lambda: str(1 / 0), 5, str)) == "ZeroDivisionError: division by zero"


def test_without_a_thread_or_a_descriptor_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    before = descriptors()

    def no_thread(function: object, arguments: object) -> int:
        raise RuntimeError("can't start new thread")

    def no_descriptor(value: int) -> int:
        raise OSError(24, "Too many open files")

    lane = Lane()
    with monkeypatch.context() as patch:
        patch.setattr(running, "start_new_thread", no_thread)
        assert result(lane.call(lambda: "here", 5, str)) == "cannot be started: can't start new thread"
    with monkeypatch.context() as patch:
        patch.setattr(os, "eventfd", no_descriptor)
        assert result(lane.call(lambda: "here", 5, str)) == "cannot be started: Too many open files"
    assert result(lane.call(lambda: "here", 5, str)) == "here"
    assert descriptors() == before


def test_a_call_that_never_gets_a_thread_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    lane, release = Lane(), threading.Event()
    first = call(lane, lambda: str(release.wait(30)), 5, str)
    second = call(lane, lambda: "here", 0.4, str)

    def no_thread(function: object, arguments: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(running, "start_new_thread", no_thread)
    started = time.monotonic()
    assert waited(second) == "no answer within 0.4 s"
    assert time.monotonic() - started < 2
    release.set()
    assert waited(first) == "True"


def test_calls_leave_no_descriptors() -> None:
    lane, before = Lane(), descriptors()
    for _ in range(20):
        assert result(lane.call(lambda: 1, 5, len)) == 1
    assert descriptors() == before


# -- the walk over them -----------------------------------------------------------------------------------------------


class Slow(FakeHost):
    """Its commands take their time; most: of them at once."""

    def __init__(self) -> None:
        super().__init__()
        self.open = self.most = 0

    def run(self, request: Run) -> Capture | Running[Capture]:  # type: ignore[override]
        self.open += 1
        self.most = max(self.most, self.open)
        return Then(shell("sleep 0.02; echo"), self.ended)

    def ended(self, capture: Capture) -> Capture:
        self.open -= 1
        return capture


def test_not_too_many_at_once() -> None:
    host, facts = Slow(), Facts()
    gatherer = Gatherer(host, collectors())
    pools = [Subject("pool", f"p{number}") for number in range(3 * AT_ONCE)]
    gatherer.ask("zdb_config", pools, facts)
    gatherer.settle(facts)
    assert len(gatherer.answers) == len(pools)
    assert host.most == AT_ONCE
    assert host.open == 0


def test_who_gives_up_leaves_nothing_running(tmp_path: Path) -> None:
    class Hanging(FakeHost):
        def run(self, request: Run) -> Capture | Running[Capture]:  # type: ignore[override]
            return shell(f"echo $$ >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; sleep 60")

    gatherer = Gatherer(Hanging(), collectors())
    gatherer.ask("zdb_config", [Subject("pool", "tank")], Facts())
    pid = int(waited_for(tmp_path / "pid"))
    gatherer.close()
    assert gone(pid)
