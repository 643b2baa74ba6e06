"""What runs beside each other: nothing holds up anything else, time counts only where somebody listens, nothing is left
behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from auditor import interrupt
from auditor.facts import HOST, Facts, Subject
from auditor.gather import answer, gatherer
from auditor.gather.gatherer import Gatherer
from auditor.host import process
from auditor.host.live import ENVIRONMENT, LiveHost
from auditor.host.process import Time, Workers, slices, within
from auditor.host.request import Capture, Files, Read, Run
from auditor.registry import sources
from tests.fake import FakeHost

SHELL = "/bin/sh"
PROGRAM = """
import sys
from auditor import __main__, cli
from auditor.host import process
from auditor.host.live import ENVIRONMENT, LiveHost
from auditor.host.process import Time
def run(script, seconds=30):
    return process.run(("/bin/sh", "-c", script), Time.of(seconds), ENVIRONMENT)
def main(does):
    LiveHost(30)
    cli.main.main = lambda standalone_mode: does()
    sys.argv[1:] = []
    __main__.main()
"""


def shell(script: str, seconds: float = 20) -> Capture:
    return process.run((SHELL, "-c", script), Time.of(seconds), ENVIRONMENT)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def heeding() -> None:
    """In a child, before it begins: the signals that end a program end it, also where those who run the tests ignore them, as
    under nohup."""
    for number in interrupt.ENDING:
        signal.signal(number, signal.SIG_DFL)


def started(program: str, stderr: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    return subprocess.Popen(
        (sys.executable, "-c", PROGRAM + program),
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        preexec_fn=heeding,
    )


def waited_for(path: Path) -> str:
    deadline = time.monotonic() + 20
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return path.read_text()


def telling(path: Path) -> str:
    """A script that writes its own number, and that of the last that it started in the background."""
    return f"echo $! $$ >{path}.new; mv {path}.new {path}"


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


# -- commands ---------------------------------------------------------------------------------------------------------


def test_commands_run_beside_each_other() -> None:
    before = descriptors()
    workers: Workers[str, Capture] = Workers(4)
    for name, script in {
        "hangs": "echo half; sleep 60",
        "slow": "sleep 0.6; echo slow",
        "large": "head -c 3000000 /dev/zero",
        "fails": "echo why >&2; exit 3",
    }.items():
        workers.start(name, partial(shell, script, 1.2))
    found = [workers.ended() for _ in range(4)]
    assert [name for name, _ in found[2:]] == ["slow", "hangs"]
    answers = dict(found)
    assert answers["slow"].stdout == b"slow\n"
    assert answers["large"].stdout == bytes(3000000)
    assert (answers["fails"].exit, answers["fails"].stderr) == (3, b"why\n")
    assert (answers["hangs"].exit, answers["hangs"].fault) == (None, "no answer within 1.2 s")
    assert answers["hangs"].stdout == b"half\n"
    assert descriptors() == before


def test_a_wait_counts_no_longer_than_it_was_meant_to_take() -> None:
    """Ten times as long as it had passed for somebody else, who was stopped meanwhile: it waits as often as ever."""
    waits = []
    for wait in slices(4 * process.SLICE_S):
        waits.append(wait)
        if len(waits) <= 2:
            time.sleep(5 * process.SLICE_S)
        else:
            time.sleep(wait)
    assert len(waits) == 4
    assert set(waits) == {process.SLICE_S}


@pytest.mark.slow
def test_who_was_stopped_for_longer_than_a_command_may_take_still_hears_it() -> None:
    """Ctrl-Z, or a virtual machine that was frozen."""
    program = (
        "print('begun', flush=True)\n"
        "said = run('sleep 0.5; echo here; exit 3', 1)\n"
        "print(said.exit, said.stdout, said.fault)\n"
    )
    with started(program) as zaudit:
        assert zaudit.stdout is not None
        assert zaudit.stdout.readline() == "begun\n"
        time.sleep(0.2)
        zaudit.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        zaudit.send_signal(signal.SIGCONT)
        assert zaudit.stdout.read() == "3 b'here\\n' \n"


def test_what_cannot_be_read_now_is_waited_for_where_it_can_be_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool on a file system that does not answer: its exec() would stop all threads with it."""
    answers = threading.Event()

    def slow(path: str, mode: str) -> BinaryIO:
        if path.endswith("/zfs"):
            answers.wait()
        return cast(BinaryIO, Path(path).open(mode))

    monkeypatch.setattr("auditor.host.live.open", slow, raising=False)
    monkeypatch.setattr("auditor.host.live.PATH", (str(tmp_path),))
    for name in ("zfs", "dmidecode"):
        (tmp_path / name).symlink_to("/bin/echo")
    host, workers = LiveHost(0.5), Workers[str, Capture](2)
    workers.start("hangs", partial(host.run, Run(("zfs", "version"))))
    workers.start("answers", partial(host.run, Run(("dmidecode", "-t", "memory"))))
    found = [workers.ended() for _ in range(2)]
    assert [(name, capture.stdout, capture.fault) for name, capture in found] == [
        ("answers", b"-t memory\n", ""),
        ("hangs", b"", "no answer within 0.5 s"),
    ]
    answers.set()  # lets the thread go


IGNORING = (  # a shell may not hand it on (dash does not)
    sys.executable,
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
    " os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])",
)


def test_a_parent_that_ignores_its_children_does_not_hide_their_exit_codes() -> None:
    """Where SIGCHLD is ignored, wait() finds no child, and Popen takes that for exit code 0."""
    argv = (*IGNORING, f"{PROGRAM}LiveHost(5)\nprint(run('exit 7').exit)")
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "7\n"


def test_a_command_that_asks_no_host_hears_exit_codes_as_well() -> None:
    """``zaudit clean`` would forget what zfs destroy did not remove."""
    script = (
        "import os\nfrom auditor import interrupt\nfrom auditor.verify import ledger\ninterrupt.install(os._exit)\n"
        "print(ledger.call(('false',)))"
    )
    argv = (*IGNORING, script)
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "(1, '')\n"


# -- nothing is left behind ---------------------------------------------------------------------------------------------


AWAY = {
    "another session": "setsid sleep 60 >/dev/null 2>&1 & echo $!",
    "a daemon": "(setsid sleep 60 >/dev/null 2>&1 & echo $!) & wait",
    "the child of a daemon": "setsid sh -c 'setsid sleep 60 & echo $!; wait' 2>/dev/null &",
}


@pytest.mark.parametrize("name", AWAY)
def test_what_left_the_group_of_a_command_ends_with_it(name: str) -> None:
    """It has no parent and no session in common with its command any more."""
    LiveHost(5)
    beside = subprocess.Popen(("sleep", "60"))
    try:
        capture = shell(f"{AWAY[name]}\nsleep 60", 0.7)
        pid = int(capture.stdout)
        assert capture.fault == "no answer within 0.7 s"
        assert gone(pid)
        assert beside.poll() is None  # what somebody else started goes on
    finally:
        beside.kill()
        beside.wait()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("how", ["run({})", "w.start(0, lambda: run({})), w.ended()"])
def test_who_is_interrupted_leaves_nothing_running(number: int, code: int, how: str, tmp_path: Path) -> None:
    """Whether the main thread waits for the command itself or for a thread that does."""
    script = f"setsid sleep 60 & {telling(tmp_path / 'pids')}; wait"
    program = f"from auditor.host.process import Workers\nw = Workers(2)\nmain(lambda: ({how.format(repr(script))}))\n"
    with started(program) as zaudit:
        pids = [int(pid) for pid in waited_for(tmp_path / "pids").split()]
        zaudit.send_signal(number)
    assert len(pids) == 2
    assert all(map(gone, pids))
    assert zaudit.returncode == code


@pytest.mark.slow
def test_a_command_that_begins_while_the_program_ends_does_not_outlive_it(tmp_path: Path) -> None:
    """A thread was about to start it, or had just done so, when the signal came."""
    script = f"{telling(tmp_path / 'pid')}; sleep 60"
    program = (
        "import os, signal, subprocess, threading, time\n"
        "start = subprocess.Popen\n"
        "class Slow(start):\n"
        "    def __init__(self, *words, **options):\n"
        "        super().__init__(*words, **options)\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        time.sleep(0.5)\n"
        "subprocess.Popen = Slow\n"
        "def does():\n"
        f"    threading.Thread(target=run, args=({script!r},), daemon=True).start()\n"
        "    time.sleep(30)\n"
        "main(does)\n"
    )
    with started(program) as zaudit:
        pid = int(waited_for(tmp_path / "pid").split()[-1])
    assert zaudit.returncode == 143
    assert gone(pid)


def test_nothing_begins_once_the_program_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_ended", True)
    assert shell("echo here") == Capture(None, fault="cannot be started: zaudit is about to end")


def test_what_a_command_left_running_ends_with_the_program(tmp_path: Path) -> None:
    script = f"setsid sleep 60 >/dev/null 2>&1 & {telling(tmp_path / 'pid')}"
    with started(f"main(lambda: run({script!r}))\n") as zaudit:
        pid = int(waited_for(tmp_path / "pid").split()[0])
    assert zaudit.returncode == 0
    assert gone(pid)


def test_a_signal_ends_a_program_whose_main_thread_hangs() -> None:
    """In a call that no signal interrupts; here it waits for a lock that it holds itself."""
    program = (
        "import ctypes\n"
        "lock = ctypes.CDLL(None).pthread_mutex_lock\n"
        "held = ctypes.create_string_buffer(64)\n"
        "from auditor import interrupt\n"
        "interrupt.HEARD_S = 0.2\n"
        "def does():\n"
        "    lock(held)\n"
        "    print('held', flush=True)\n"
        "    lock(held)\n"
        "main(does)\n"
    )
    with started(program) as zaudit:
        assert zaudit.stdout is not None
        assert zaudit.stdout.readline() == "held\n"
        time.sleep(0.2)
        zaudit.send_signal(signal.SIGTERM)
    assert zaudit.returncode == 143


def test_the_end_of_its_time_ends_a_program_whose_main_thread_hangs() -> None:
    program = (
        "import ctypes\n"
        "lock = ctypes.CDLL(None).pthread_mutex_lock\n"
        "held = ctypes.create_string_buffer(64)\n"
        "from auditor import interrupt\n"
        "interrupt.HEARD_S = 0.2\n"
        "def does():\n"
        "    with interrupt.within(0.2, 'it took too long', 2):\n"
        "        lock(held)\n"
        "        lock(held)\n"
        "main(does)\n"
    )
    with started(program, subprocess.PIPE) as zaudit:
        _, err = zaudit.communicate(timeout=60)
    assert (zaudit.returncode, err) == (2, "zaudit: it took too long\n")


def test_a_signal_that_no_thread_takes_ends_the_program() -> None:
    """As in a file system that does not answer: it stays pending, and no handler runs. Here every thread blocks it."""
    program = (
        "import signal, time\n"
        "from auditor import interrupt\n"
        "interrupt.HEARD_S = 0.2\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, interrupt.ENDING)\n"
        "def does():\n"
        "    print('blocked', flush=True)\n"
        "    time.sleep(60)\n"
        "main(does)\n"
    )
    with started(program) as zaudit:
        assert zaudit.stdout is not None
        assert zaudit.stdout.readline() == "blocked\n"
        zaudit.send_signal(signal.SIGTERM)
        zaudit.communicate(timeout=30)
    assert zaudit.returncode == 143


@pytest.mark.parametrize("raised", ["", "with interrupt.raising(Stopped):"], ids=["exit", "error"])
@pytest.mark.parametrize("where", ["__del__", "callback"])
def test_a_signal_whose_error_python_discards_ends_the_program(where: str, raised: str) -> None:
    """One that a __del__ raises, or the callback of a weak reference, as each import has one."""
    program = (
        "import signal, time, weakref\n"
        "from auditor import Stop, interrupt\n"
        "class Stopped(Stop):\n"
        "    exit_code = 143\n"
        "def send(*_):\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "class Object:\n"
        f"    {where} = send\n"
        "def does():\n"
        f"    {raised or 'if True:'}\n"
        "        thing = Object()\n"
        f"        reference = weakref.ref(thing, {'None' if where == '__del__' else 'send'})\n"
        "        try:\n"
        "            del thing\n"
        "            time.sleep(60)\n"
        "        finally:\n"
        "            print('cleaned up', flush=True)\n"
        "main(does)\n"
    )
    with started(program, subprocess.PIPE) as zaudit:
        out, err = zaudit.communicate(timeout=50)
    assert (zaudit.returncode, out) == (143, "cleaned up\n")
    assert "Exception ignored" not in err


# -- calls ------------------------------------------------------------------------------------------------------------


def test_calls_that_hang_hold_up_no_other() -> None:
    workers: Workers[str, str] = Workers(4)
    release = threading.Event()
    for name in ("first", "second", "third"):
        workers.start(name, lambda: within(Time.of(1.0), lambda: str(release.wait(30)), str))
    workers.start("quick", lambda: within(Time.of(1.0), lambda: "here", str))
    assert workers.ended() == ("quick", "here")
    found = dict(workers.ended() for _ in range(3))
    release.set()
    assert found == dict.fromkeys(("first", "second", "third"), "no answer within 1 s")


def test_what_is_given_up_writes_nowhere(tmp_path: Path) -> None:
    """Its thread goes on, and may end when another file has the descriptors that it once had."""
    release, ended = threading.Event(), threading.Event()

    def call() -> str:
        release.wait(30)
        ended.set()
        return "late"

    assert within(Time.of(0.1), call, str) == "no answer within 0.1 s"
    taken = [(tmp_path / str(number)).open("wb") for number in range(20)]
    release.set()
    assert ended.wait(5)
    time.sleep(0.1)
    for file in taken:
        file.close()
    assert [(tmp_path / str(number)).read_bytes() for number in range(20)] == [b""] * 20


def test_not_more_threads_than_calls_or_than_allowed() -> None:
    workers: Workers[int, int] = Workers(3)
    barrier = threading.Barrier(3)
    workers.start(0, threading.get_ident)
    first = workers.ended()[1]
    for number in range(9):
        workers.start(number, lambda: (barrier.wait(20), threading.get_ident())[1])
    threads = {workers.ended()[1] for _ in range(9)}
    assert len(threads) == 3
    assert first in threads
    assert threading.get_ident() not in threads
    assert len(workers) == 0


def test_what_a_call_raises_is_a_reason() -> None:
    assert within(Time.of(5), lambda: str(1 / 0), str) == "ZeroDivisionError: division by zero"


def test_what_a_worker_raises_is_raised_where_its_answer_is_taken() -> None:
    workers: Workers[int, float] = Workers(2)
    workers.start(0, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        workers.ended()
    assert len(workers) == 0


def test_without_time_nothing_is_called() -> None:
    called = threading.Event()
    assert within(Time(0.0, "too late"), lambda: str(called.set()), str) == "too late"  # type: ignore[func-returns-value]
    assert not called.is_set()


def test_without_a_thread_there_is_a_reason_or_the_main_thread_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    before = descriptors()
    workers: Workers[int, Capture] = Workers(4)
    with monkeypatch.context() as patch:
        patch.setattr(process, "start_new_thread", none)
        assert within(Time.of(5), lambda: "here", str) == "cannot be started: can't start new thread"
        for number in range(3):
            workers.start(number, partial(shell, f"echo {number}"))
        assert [workers.ended()[1].stdout for _ in range(3)] == [b"0\n", b"1\n", b"2\n"]
    assert within(Time.of(5), lambda: "here", str) == "here"
    assert descriptors() == before


def test_calls_whose_threads_ended_before_they_began_are_made_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "start_new_thread", lambda *_: None)
    monkeypatch.setattr(process, "PATIENCE", 1)
    workers: Workers[int, str] = Workers(4)
    for number in range(3):
        workers.start(number, partial(str, number))
    assert sorted(workers.ended() for _ in range(3)) == [(0, "0"), (1, "1"), (2, "2")]
    workers.start(3, partial(str, 3))
    workers.abandon()
    workers._open = 1  # what a thread took that ended in the middle of it
    with pytest.raises(MemoryError):
        workers.ended()


# -- the walk over them -----------------------------------------------------------------------------------------------


class Slow(FakeHost):
    """Its commands take their time; most: of them at once."""

    def __init__(self, at_once: int = 8) -> None:
        super().__init__(at_once=at_once)
        self.lock = threading.Lock()
        self.open = self.most = 0
        self.full = threading.Event()

    def run(self, request: Run) -> Capture:
        with self.lock:
            self.open += 1
            self.most = max(self.most, self.open)
            if self.open == self.at_once:
                self.full.set()
        self.full.wait(20)
        with self.lock:
            self.open -= 1
        return super().run(request)


def test_as_many_at_once_as_the_host_allows_and_no_more() -> None:
    host, facts = Slow(), Facts()
    gatherer = Gatherer(host, sources())
    pools = [Subject("pool", f"p{number}") for number in range(3 * host.at_once)]
    gatherer.ask("zdb_config", pools, facts)
    gatherer.settle(facts)
    assert len(gatherer.answers) == len(pools)
    assert host.most == host.at_once
    assert host.open == 0


def test_a_host_that_need_not_be_waited_for_is_asked_in_this_thread() -> None:
    class Here(FakeHost):
        def read(self, request: Read) -> Files:
            assert threading.current_thread() is threading.main_thread()
            return super().read(request)

    gatherer = Gatherer(Here(), sources())
    before = threading.active_count()
    gatherer.ask("zfs_version", [Subject("host", "host")], Facts())
    gatherer.settle(Facts())
    assert threading.active_count() == before


def test_who_gives_up_asks_nothing_more() -> None:
    host = Slow(at_once=2)
    gatherer = Gatherer(host, sources())
    host.at_once = 100  # it never gets so many, and so nobody is answered
    gatherer.ask("zdb_config", [Subject("pool", f"p{number}") for number in range(10)], Facts())
    deadline = time.monotonic() + 10
    while host.open < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    gatherer.close()
    host.full.set()
    while host.open and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(host.ran) == 2


class Listing(FakeHost):
    """A host that lists the datasets of tank at once; the other answer comes when somebody lets it."""

    def __init__(self) -> None:
        super().__init__(commands={("zfs", "list"): Capture(0, b"tank\n")}, at_once=2)
        self.free = threading.Event()

    def run(self, request: Run) -> Capture:
        if request.argv[1] == "get":
            assert self.free.wait(20)
        return super().run(request)


def test_progress_says_what_is_waited_for() -> None:
    host, said = Listing(), list[tuple[int, int, str]]()

    def progress(done: int, asked: int, what: str, seconds: float) -> None:
        said.append((done, asked, what))
        host.free.set()

    gatherer, facts, tank = Gatherer(host, sources(), progress), Facts(), Subject("dataset", "tank")
    gatherer.ask("zfs_get", [tank], facts)
    gatherer.ask("zfs_list", [tank], facts)
    gatherer.settle(facts)
    assert said == [(1, 2, "properties of the datasets of tank (zfs get)"), (2, 2, "")]


def test_progress_goes_on_while_nothing_is_answered() -> None:
    """It names how many datasets there are as soon as they are listed, and counts the seconds."""
    host, said = Listing(), list[tuple[str, float]]()

    def progress(done: int, asked: int, what: str, seconds: float) -> None:
        said.append((what, seconds))
        if len(said) == 4:
            host.free.set()

    host.commands = {("zfs", "list"): Capture(0, b"tank\ntank/db\n")}
    gatherer, facts, tank = Gatherer(host, sources(), progress), Facts(), Subject("dataset", "tank")
    gatherer.ask("zfs_get", [tank], facts)
    gatherer.ask("zfs_list", [tank], facts)
    gatherer.settle(facts)
    assert {what for what, _ in said[:-1]} <= {
        "properties of the datasets of tank (zfs get)", "properties of 2 datasets of tank (zfs get)"}  # fmt: skip
    assert said[-2][0] == "properties of 2 datasets of tank (zfs get)"
    assert said[-2][1] > said[0][1]


def test_every_question_is_said_in_words() -> None:
    tank, sda = Subject("dataset", "tank"), Subject("disk", "sda")
    smart = Run(("smartctl", "-j", "-x", "/dev/sda"))
    assert gatherer.question_text("health of", smart, sda, 0, None) == "health of sda (smartctl)"
    assert gatherer.question_text("", Run(("hdparm", "-W", "/dev/sda")), sda, 0, None) == "hdparm -W /dev/sda"
    assert gatherer.question_text("", Read(("/proc/meminfo",)), HOST, 0, None) == "/proc/meminfo"
    get = Run(("zfs", "get", "-Hp", "-r", "sync", "tank"), halved=True)
    again = answer.ByName(get, Capture(None))
    again.put, again.of = 480, 2000
    assert (
        gatherer.question_text(sources()["zfs_get"].title, get, tank, 0, again)
        == "properties of 480 of 2,000 datasets of tank (zfs get)"
    )


@pytest.mark.slow
def test_of_a_slow_answer_more_is_kept_where_a_part_of_it_tells() -> None:
    script = "i=0; while [ $i -lt 20000 ]; do echo $i 0123456789; i=$((i+1)); done; sleep 60"
    for part, most in ((False, 1 << 16), (True, 20000 * 17)):
        found = process.run((SHELL, "-c", script), Time.of(3), ENVIRONMENT, part=part)
        assert found.fault == "no answer within 3 s"
        assert (1 << 15) < len(found.stdout) <= most
        assert (len(found.stdout) > 1 << 16) == part
