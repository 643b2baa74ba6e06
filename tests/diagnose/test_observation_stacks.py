"""Samples of stacks: who waits in zil_commit() is counted exactly once a look, nobody makes the reader wait for long, and what
follows is said with its error."""

from __future__ import annotations

import contextlib
import os
import pkgutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from auditor.diagnose import diagnose_page, tracing, watch
from auditor.diagnose.conclusion import diagnose
from auditor.diagnose.diagnosis import Diagnosis
from auditor.diagnose.observation import NamedProcess, Process, Stacks, WaitingThread, from_text, to_text
from auditor.facts import HOST, Fact, known
from auditor.host.children import stack_reader
from auditor.host.children.stack_reader import Looker
from auditor.host.live import LiveHost
from auditor.verify import trial
from tests.diagnose import worlds
from tests.security import hanging
from tests.security.hanging import MEMORY, PROGRAM

IN_ZIL = (
    "[<0>] cv_wait_common+0x10/0x20 [spl]\n[<0>] zil_commit_impl+0x1b0/0x2a0 [zfs]\n[<0>] zpl_fsync+0x9/0x20 [zfs]\n"
)
ELSEWHERE = "[<0>] txg_wait_synced+0x1/0x2 [zfs]\n"
hangs = pytest.mark.skipif(bool(hanging.missing()), reason=hanging.missing() or "nothing is missing")


class Tree:
    """A folder that looks as /proc does."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def thread(
        self, process: int, number: int = 0, *, name: str = "postgres", state: str = "D", ran: int = 1, stack: str = IN_ZIL,
        parent: int = 1, user: int = 26,
    ) -> None:  # fmt: skip
        number = number or process
        status = (
            f"Name:\t{name}\nUmask:\t0077\nState:\t{state} (x)\nTgid:\t{process}\nNgid:\t0\nPid:\t{number}\nPPid:\t{parent}\n"
            f"TracerPid:\t0\nUid:\t{user}\t{user}\t{user}\t{user}\nGid:\t0\t0\t0\t0\n"
        )
        for folder in (self.root / str(process), self.root / str(process) / "task" / str(number)):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "status").write_text(status)
            (folder / "schedstat").write_text(f"{ran}0 3 {ran}\n" if ran else "0 0 0\n")
            (folder / "stack").write_text(stack)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setattr(stack_reader, "PROC", str(tmp_path))
    monkeypatch.setattr(stack_reader, "say", lambda data: None)
    return Tree(tmp_path)


def seen(looker: Looker) -> list[tuple[int, int, int, str]]:
    """(thread, process, kernel, name) of one look."""
    lines = [each.split() for each in looker.look()]
    return [(int(a), int(b), int(c), bytes.fromhex(d.decode()).decode()) for _, a, b, c, d in lines]


def test_who_waits_in_zil_commit_is_seen_and_nobody_else(tree: Tree) -> None:
    tree.thread(100)
    tree.thread(100, 101, name="a) D (zil_commit")
    tree.thread(200, stack=ELSEWHERE)
    tree.thread(300, state="S")
    tree.thread(301, state="R")  # its log block is there, and no CPU yet
    tree.thread(302, state="R", stack="")  # it runs
    tree.thread(50, name="zvol_tq-0", parent=2)
    tree.thread(51, name="txg_sync", parent=2)
    tree.thread(400, name="nfsd", parent=2)
    (tree.root / "self").mkdir()
    looker = Looker(set())
    looker.rescan()
    found = [
        (100, 100, 0, "postgres"),
        (101, 100, 0, "a) D (zil_commit"),
        (50, 50, 1, "zvol_tq-0"),
        (301, 301, 0, "postgres"),
        (400, 400, 1, "nfsd"),
    ]
    assert sorted(seen(looker)) == sorted(found)
    assert 51 not in looker.threads
    assert sorted(seen(looker)) == sorted(found)  # who still sleeps is counted again


def test_who_slept_and_was_on_no_cpu_since_still_sleeps(tree: Tree) -> None:
    tree.thread(100, state="S", ran=1)
    tree.thread(200, state="S", ran=0)  # of a kernel that does not count: asked each time
    looker = Looker(set())
    looker.rescan()
    assert seen(looker) == []
    tree.thread(100, state="D", ran=1)  # which cannot be: nobody asks
    tree.thread(200, state="D", ran=0)
    assert [each[0] for each in seen(looker)] == [200]
    tree.thread(100, state="D", ran=2)
    assert sorted(each[0] for each in seen(looker)) == [100, 200]
    tree.thread(100, state="S", ran=2)
    assert [each[0] for each in seen(looker)] == [200]


def test_threads_come_and_go(tree: Tree) -> None:
    tree.thread(100)
    looker = Looker(set())
    looker.rescan()
    tree.thread(100, 101)
    tree.thread(102)
    looker.rescan()
    assert {each[0] for each in seen(looker)} == {100, 101, 102}
    (tree.root / "102" / "task" / "102" / "status").write_text("")  # as of one that has ended
    assert {each[0] for each in seen(looker)} == {100, 101}
    looker.rescan()
    assert set(looker.threads) == {100, 101, 102}


def test_there_are_bounds_and_they_are_told(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    for process in range(100, 110):
        tree.thread(process)
    looker = Looker(set(), most=4)
    looker.rescan()
    assert (len(looker.threads), looker.cut) == (4, True)
    monkeypatch.setattr(stack_reader, "STACKS", 3)
    looker = Looker(set())
    looker.rescan()
    assert (len(seen(looker)), looker.cut) == (3, True)
    looker.rescan()
    assert not looker.cut


def test_who_let_the_reader_wait_is_passed_over(tree: Tree) -> None:
    tree.thread(100)
    tree.thread(200, user=5000)
    tree.thread(300, user=5000)
    looker = Looker({"p100", "u5000"})
    looker.rescan()
    assert seen(looker) == []
    assert 100 not in looker.threads


# -- the process that looks ---------------------------------------------------------------------------------------


def instead(monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]) -> None:
    """Another text of it."""
    text = pkgutil.get_data("auditor.host.children", "stack_reader.py")
    assert text
    monkeypatch.setattr(pkgutil, "get_data", lambda package, name: change(text.decode()).encode())


def until(sampler: tracing.Sampler, over: Callable[[Stacks], bool]) -> Stacks:
    """Hear it until that is so; for a minute at most."""
    end = time.monotonic() + 60
    while not over(sampler.stacks()) and time.monotonic() < end:
        time.sleep(0.02)
        sampler.hear()
    return sampler.stacks()


def alive(number: int) -> bool:
    with contextlib.suppress(OSError):
        return not Path(f"/proc/{number}/stat").read_text().rpartition(") ")[2].startswith("Z")
    return False


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to read stacks")
def test_this_machine_waits_for_no_zil() -> None:
    with tracing.sampling() as sampler:
        found = until(sampler, lambda each: each.passes >= 3)
        child = sampler._child
        assert child
        assert alive(child.pid)
    assert (found.waits, found.faults) == ((), ())
    assert found.threads >= 2
    assert not alive(child.pid)


def test_who_may_not_read_stacks_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    instead(monkeypatch, lambda text: text.replace('f"{PROC}/self/stack"', '"/nowhere/stack"'))
    with tracing.sampling() as sampler:
        found = until(sampler, lambda each: bool(each.faults))
    assert found == Stacks(0, 0, (), ("/proc/pid/stack: no such file or directory",))


@pytest.mark.parametrize("text", ["print('H 1 2')", "pass", "import sys; sys.exit(3)", "print('P 1 1 1' * 9)"])
def test_nonsense_is_no_sample(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    instead(monkeypatch, lambda _: f"def run():\n    {text}\n")
    with tracing.sampling() as sampler:
        found = until(sampler, lambda each: bool(each.faults))
    assert (found.passes, found.waits) == (0, ())
    assert "who looks at stacks" in found.faults[0]


def test_a_pass_that_is_not_done_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    said = r"H 7 7 0 6161\nP 10 40 0\nH 7 7 0 6161\nH 8 7 1 0a\nP 9 50 0\nH 7 7 0 6161\n"
    instead(
        monkeypatch, lambda _: f"def run():\n    print('{said}', end='', flush=True)\n    time.sleep(9)\nimport time\n"
    )
    with tracing.sampling() as sampler:
        found = until(sampler, lambda each: each.passes == 2)
    assert found == Stacks(2, 50, (WaitingThread(7, 7, "aa", False, 2), WaitingThread(8, 7, "\n", True, 1)), ())


@pytest.mark.slow
def test_one_that_is_silent_is_replaced_and_what_it_read_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "SILENT_S", 0.2)
    said = "print('P 1 ' + str(len(sys.argv)) + ' 0\\nT 9 5000', flush=True)\n    time.sleep(99)\n"
    instead(monkeypatch, lambda _: f"import sys, time\ndef run():\n    {said}")
    with tracing.sampling() as sampler:
        found = until(sampler, lambda each: len(each.faults) == 2)
        assert sampler._child is None
    assert found.faults == (
        "the processes of user 5000 let the reader of their stacks wait", "the stacks of too many processes could not be read",
    )  # fmt: skip
    assert found.passes == tracing.ATTEMPTS
    assert found.threads > 2  # it was told whom to pass over


def test_one_that_rests_long_after_much_work_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody can have thousands of threads: a pass takes long then, and the rest after it ten times as long."""
    monkeypatch.setattr(tracing, "SILENT_S", 0.1)
    said = r"T 9 5000\nP 100000 7 0\n"
    instead(
        monkeypatch,
        lambda _: (
            f"import time\ndef run():\n    for _ in '12':\n        print('{said}', end='', flush=True)\n        time.sleep(1)\n"
        ),
    )
    with tracing.sampling() as sampler:
        found = until(sampler, lambda each: each.passes == 2)
    assert found == Stacks(2, 7, (), ())


def test_who_was_read_before_the_last_pass_ended_is_not_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "SILENT_S", 0.1)
    instead(
        monkeypatch,
        lambda _: "import time\ndef run():\n    print('T 9 5000\\nP 1 7 0', flush=True)\n    time.sleep(99)\n",
    )
    with tracing.sampling() as sampler:
        assert until(sampler, lambda each: each.passes == 2).faults == ()
        assert sampler._passed_over == []


@pytest.mark.slow
def test_it_dies_with_zaudit() -> None:
    script = (
        "import sys, time\nfrom auditor.diagnose import tracing\nwith tracing.sampling() as sampler:\n"
        "    print(sampler._child.pid, flush=True)\n    time.sleep(99)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout
        child = int(one.stdout.readline())
        time.sleep(0.5)  # it has asked to die with its parent
        one.kill()
    end = time.monotonic() + 30
    while alive(child) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(child)


@hangs
def test_who_sleeps_uninterruptibly_is_seen_by_his_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that waits for its own memory stands for one that waits for its log block."""
    instead(monkeypatch, lambda text: text.replace('b" zil_commit"', 'b" vm_mmap_pgoff"'))
    with hanging.hanging(MEMORY, "sleep", 5000) as number, tracing.sampling() as sampler:
        found = until(sampler, lambda each: bool(each.waits) and each.waits[0].hits >= 3)
        assert [(each.process, each.name, each.kernel) for each in found.waits] == [(number, "sleep", False)]
        assert found.waits[0].hits <= found.passes


@pytest.mark.slow
@hangs
def test_who_lets_the_reader_wait_hides_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """One becomes another program, which his own file system does not let him; of all others is said what there is."""
    monkeypatch.setattr(tracing, "SILENT_S", 1.0)
    instead(monkeypatch, lambda text: text.replace('b" zil_commit"', 'b" vm_mmap_pgoff"'))
    with hanging.hanging(PROGRAM, "sleep", 5000) as bad, hanging.hanging(MEMORY, "sleep", 5001) as other:
        os.kill(bad, signal.SIGTERM)  # from now on it is not to be interrupted
        with tracing.sampling() as sampler:
            found = until(sampler, lambda each: bool(each.faults) and bool(each.waits))
    assert found.faults == ("the processes of user 5000 let the reader of their stacks wait",)
    assert {each.process for each in found.waits} == {other}


@pytest.mark.slow
@pytest.mark.parametrize("euid", [0, 65534])
def test_stacks_are_looked_at_by_root_where_nothing_is_traced(euid: int) -> None:
    host = LiveHost(5.0)
    host.euid = euid
    found = watch.observe(host, "tank", worlds.POOL, worlds.facts(), 1.0, None, traced=False)
    assert (found.stacks is not None) == (euid == 0)
    assert found.untraced == watch.NOT_ASKED


# -- what follows -------------------------------------------------------------------------------------------------

WAITS = (
    WaitingThread(101, 100, "postgres", False, 300),
    WaitingThread(102, 100, "postgres", False, 20),
    WaitingThread(50, 50, "zvol_tq-0", True, 92),
)


def told(
    passes: int = 200, waits: tuple[WaitingThread, ...] = WAITS, faults: tuple[str, ...] = (), *, everybody: bool = True,
    global_: int | None = 1000, suspended: int = 0, named: NamedProcess | None = None, **load: object,
) -> Diagnosis:  # fmt: skip
    """10 s in which that was seen, and the ZILs of all pools counted so many commits."""
    files = worlds.load(**load)  # type: ignore[arg-type]
    if global_ is not None:
        files[0][trial.ZIL_PATH] = worlds.table({"zil_commit_count": 5, "zil_commit_suspend_count": 0})
        files[1][trial.ZIL_PATH] = worlds.table(
            {"zil_commit_count": 5 + global_ - suspended, "zil_commit_suspend_count": suspended}
        )
    who = (Process(101, "postgres", "walwriter", "container 0123", None),)
    observed = worlds.observation(files, None, who)._replace(stacks=Stacks(passes, 60, waits, faults), named=named)
    assert from_text(to_text(observed)) == observed
    facts = worlds.facts()
    facts.put(Fact(HOST, "all_processes", known(everybody, "")))
    return diagnose(observed, facts)


def test_littles_law_with_its_error() -> None:
    """412 samples in 200 looks: 2.06 wait at a time, and 100 commits/s of all pools: 20.6 ms."""
    found = told()
    assert found.stacked
    assert (found.stacked.samples, found.stacked.waiting) == (412, 2.06)
    assert found.stacked.mean_ns == pytest.approx(20.6e6)
    assert found.outcome == "INCONCLUSIVE"
    assert found.answer == (
        "40 commits/s, about 20.6 ms each by 412 samples of stacks, which say up to 30% too little, 73% of the waiting by "
        "postgres (walwriter); nothing that is counted stands out"
    )
    assert found.reasons == (
        "how long a commit takes was not measured (only root may trace): about 20.6 ms each by 412 samples of stacks, which "
        "say up to 30% too little",
    )
    assert (found.mean_ns, found.shares, found.latency.samples) == (None, (), 0)
    text = diagnose_page.write("terminal", found, width=120)
    assert "Who waits for commits (412 samples of stacks, 2.1 at a time)" in text
    assert "postgres 101 (walwriter)" in text
    assert "412 samples of stacks" in diagnose_page.write("html", found)


def test_commits_that_found_the_zil_suspended_are_commits() -> None:
    found = told(suspended=400)
    assert found.stacked
    assert found.stacked.mean_ns == pytest.approx(20.6e6)


def test_a_cause_says_on_what_it_rests() -> None:
    found = told(block_ms={"sdd": (1, 24)})
    assert (found.outcome, found.causes[0].id) == ("CAUSE", "slow-log-leg")
    assert "by 412 samples of stacks" in found.reasons[0]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {"faults": ("/proc/pid/stack: permission denied",), "passes": 0, "waits": ()},
            "/proc/pid/stack: permission denied",
        ),
        ({"faults": ("not every thread was looked at each time",)}, "not every thread was looked at each time"),
        ({"everybody": False}, "only the processes of this container are seen"),
        ({"global_": None}, "/proc/spl/kstat/zfs/zil does not count commits here"),
        ({"global_": 19}, "412 samples of 19 commits are too few for a mean"),
        ({"waits": WAITS[1:2]}, None),
        ({"waits": (WAITS[1]._replace(hits=19),)}, "19 samples of 1000 commits are too few for a mean"),
        ({"waits": (WAITS[0], WAITS[1]._replace(hits=0), WAITS[2]._replace(hits=-(2**62)))}, None),
        ({"waits": (WAITS[1]._replace(hits=0),)}, "0 samples of 1000 commits are too few for a mean"),
        ({"passes": 2}, "2 looks are too few for a mean"),
        ({"waits": ()}, "0 samples of 1000 commits are too few for a mean"),
    ],
)
def test_where_no_mean_is_told(given: dict[str, object], why: str | None) -> None:
    found = told(**given)  # type: ignore[arg-type]
    assert found.stacked
    assert (found.stacked.mean_ns is None) == (why is not None)
    if why is not None:
        assert found.reasons == (
            "how long a commit takes was not seen: only root may trace",
            f"how long a commit takes is not told by samples of stacks: {why}",
        )
        assert found.answer == "40 commits/s; nothing that is counted stands out, and how long one takes was not seen"


def test_a_process_has_its_share_of_the_waiting() -> None:
    named = NamedProcess(100, "postgres", ("tank/db",), 1, (100, 101, 102), (), 0, ())
    found = told(named=named)
    assert found.own
    assert found.own.text.startswith(
        "process 100 (postgres) does 78% of the waiting for commits by 412 samples of stacks; "
    )
    assert found.own.faults == ("which commits are its own was not seen: only root may trace",)
    assert "* postgres 101" in diagnose_page.write("terminal", found)
    for part in (told(named=named, everybody=False), told(named=named, faults=("not every thread was looked at",))):
        assert part.own
        assert "of the waiting" not in part.own.text
