"""A process in the place of a dataset: what it writes to is found by the numbers of mounts, and nothing of it is opened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from auditor import audit
from auditor.diagnose import commits, diagnose_page, watch
from auditor.diagnose.commits import traced
from auditor.diagnose.conclusion import diagnose
from auditor.diagnose.diagnosis import ProcessPart
from auditor.diagnose.observation import KERNEL, NamedProcess, Process, from_text, to_text
from auditor.facts import HOST, Fact, Subject, known
from auditor.host import owner
from auditor.host.live import LiveHost
from auditor.host.request import Capture, Files, Read, Run
from auditor.recording import recording
from tests.diagnose import worlds
from tests.fake import CommandLine
from tests.golden import VERIFICATIONS

ROOT = "30 1 0:28 / / rw - ext4 /dev/vda1 rw\n"
DB, WAL = "40 30 0:40 / /srv/db rw - zfs tank/db rw,xattr\n", "41 30 0:41 / /srv/wal rw - zfs fast/wal rw\n"
SNAPSHOT = "42 30 0:42 / /srv/old rw - zfs tank/db@old ro\n"
DEV, XFS = "43 30 0:5 / /dev rw - devtmpfs devtmpfs rw\n", "44 30 230:17 / /srv/x rw - xfs /dev/zd16p1 rw\n"
FUSE = "45 30 0:50 / /home/m/x rw - fuse.zfs tank/secret rw\n"
READ, WRITE, BOTH, PATH = "0100000", "0100001", "0102002", "012000002"


class Proc:
    """A host of processes. open_: (process, descriptor) -> (flags, mount, path)."""

    now, euid, at_once = 0.0, 0, 1

    def __init__(self, open_: dict[tuple[int, int], tuple[str, int, str]], table: str = ROOT + DB) -> None:
        self.files = {f"/proc/{pid}/mountinfo": table for pid in {pid for pid, _ in open_}} | {
            "/proc/1/mountinfo": ROOT + DB + WAL,
            "/proc/self/mountinfo": ROOT,
        }
        self.links: dict[str, str] = {}
        self.errors: dict[str, str] = {}
        for (pid, number), (flags, mount, path) in open_.items():
            self.links[f"/proc/{pid}/fd/{number}"] = path
            self.files[f"/proc/{pid}/fdinfo/{number}"] = f"pos:\t0\nflags:\t{flags}\nmnt_id:\t{mount}\nino:\t9\n"
        self.process(100, "postgres")

    def process(self, pid: int, name: str, *children: int, threads: tuple[int, ...] = ()) -> None:
        self.files[f"/proc/{pid}/comm"] = f"{name}\n"
        for tid in (pid, *threads):
            self.files[f"/proc/{pid}/task/{tid}/children"] = ""
        self.files[f"/proc/{pid}/task/{pid}/children"] = "".join(f"{each} " for each in children)

    def run(self, request: Run) -> Capture:
        raise AssertionError(request)

    def read(self, request: Read) -> Files:
        def of(what: dict[str, str]) -> dict[str, str]:
            return {path: text for path, text in what.items() for each in request.patterns if fnmatchcase(path, each)}

        return Files(of(self.files), of(self.links), of(self.errors))

    def realpath(self, path: str) -> str:
        raise AssertionError(path)

    def steady(self, path: str) -> str:
        raise AssertionError(path)


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """When the process started, each time that somebody asks; the last one for ever."""
    said = [7]
    monkeypatch.setattr(owner, "started", lambda pid: said.pop(0) if len(said) > 1 else said[0])
    return said


@pytest.mark.parametrize("target", ["1234", "0", "7"])
def test_digits_alone_are_a_process(target: str) -> None:
    assert commits.meant(target)


@pytest.mark.parametrize("target", ["tank", "tank/1234", "/1234", "1234tank", "-1", "+1", "1 ", "²", "١"])
def test_a_pool_or_path_is_none(target: str) -> None:
    assert not commits.meant(target)


@pytest.mark.usefixtures("ticks")
@pytest.mark.parametrize(
    ("flags", "mount", "path", "finds"),
    [
        (WRITE, 40, "/srv/db/1", ("tank/db",)),
        (BOTH, 40, "/elsewhere/as/seen/there", ("tank/db",)),
        (READ, 40, "/srv/db/1", ()),
        (PATH, 40, "/srv/db/1", ()),
        (BOTH, 42, "/srv/old/1", ()),
        (BOTH, 45, "/home/m/x/1", ()),
        (BOTH, 41, "/unmounted/1", ("fast/wal",)),  # not below the root of the process: found among those of the host
        (BOTH, 99, "/nowhere/1", ()),
        (BOTH, 43, "/dev/zd16", ("/dev/zd16",)),
        (BOTH, 30, "/dev/zd16", ()),  # a file that is called so
        (BOTH, 43, "/dev/vda", ()),
        (BOTH, 44, "/srv/x/1", ("/dev/zd16p1",)),
    ],
)
def test_what_it_has_open_for_writing(flags: str, mount: int, path: str, finds: tuple[str, ...]) -> None:
    host = Proc({(100, 3): (flags, mount, path)}, ROOT + DB + SNAPSHOT + DEV + XFS + FUSE)
    if finds:
        assert commits.find(host, "100").targets == finds
    else:
        with pytest.raises(commits.NoSuchLoad, match="it has no file on ZFS open for writing"):
            commits.find(host, "100")


@pytest.mark.usefixtures("ticks")
def test_what_its_children_write_to_counts() -> None:
    host = Proc({(100, 3): (READ, 40, "/srv/db/1"), (102, 5): (BOTH, 40, "/srv/db/2")})
    host.process(100, "postgres", 101, 102, threads=(120,))
    host.process(101, "postgres", 103)
    host.process(102, "postgres", threads=(130,))
    host.process(103, "sh")
    host.process(104, "somebody else")
    found = commits.find(host, "100")
    assert (found.name, found.targets, found.unseen) == ("postgres", ("tank/db",), "")
    assert commits.members(host, 100) == {100: 100, 120: 100, 101: 101, 102: 102, 130: 102, 103: 103}


@pytest.mark.usefixtures("ticks")
def test_a_child_that_ended_meanwhile_is_no_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Proc({(100, 3): (BOTH, 40, "/srv/db/1"), (101, 5): (BOTH, 41, "/srv/wal/1")}, ROOT + DB + WAL)
    families = [{100: 100, 101: 101}, {100: 100}]
    monkeypatch.setattr(commits, "members", lambda host, pid: families.pop(0))
    assert commits.find(host, "100").targets == ("tank/db",)


@pytest.mark.usefixtures("ticks")
def test_a_family_that_is_its_own_ancestor_or_endless_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Proc({(100, 3): (BOTH, 40, "/srv/db/1")})
    host.process(100, "postgres", 101)
    host.process(101, "postgres", 100)
    assert commits.members(host, 100) == {100: 100, 101: 101}
    monkeypatch.setattr(commits, "PROCESSES", 3)
    for pid in range(100, 110):
        host.process(pid, "fork", pid + 1)
    assert len(commits.members(host, 100)) == 3
    family = commits.Family(host, commits.find(host, "100"))
    assert any("not all are counted" in each for each in family.named((), ()).faults)


@pytest.mark.usefixtures("ticks")
def test_of_several_pools_one_has_to_be_named() -> None:
    host = Proc({(100, 3): (BOTH, 40, "/srv/db/1"), (100, 4): (BOTH, 41, "/srv/wal/1")}, ROOT + DB + WAL)
    with pytest.raises(commits.NoSuchLoad, match=r"writes to 2 pools \(fast/wal, tank/db\): name one"):
        commits.find(host, "100")


@pytest.mark.usefixtures("ticks")
def test_who_may_not_look_is_told_so() -> None:
    host = Proc({})
    host.errors = {"/proc/100/fd/*": "permission denied"}
    with pytest.raises(commits.NoSuchLoad, match=r"process 100 \(postgres\): which files it has open is not known"):
        commits.find(host, "100")


def test_a_process_that_is_hidden_or_gone(ticks: list[int]) -> None:
    host = Proc({})
    ticks[:] = [0]
    with pytest.raises(commits.NoSuchLoad, match=r"no process 100 is seen here$"):
        commits.find(host, "100")
    host.files["/proc/self/mountinfo"] = ROOT + "31 30 0:5 / /proc rw - proc proc rw,hidepid=invisible\n"
    with pytest.raises(commits.NoSuchLoad, match="hidepid"):
        commits.find(host, "100")
    ticks[:] = [owner.UNTOLD]
    with pytest.raises(commits.NoSuchLoad, match="lets its reader wait"):
        commits.find(host, "100")
    for number in ("0", "4194304", "9" * 20):
        with pytest.raises(commits.NoSuchLoad, match="no process has the number"):
            commits.find(host, number)


def test_a_number_that_goes_to_another_process(ticks: list[int]) -> None:
    host = Proc({(100, 3): (BOTH, 40, "/srv/db/1")})
    ticks[:] = [7, 8]
    with pytest.raises(commits.NoSuchLoad, match="ended while it was looked at"):
        commits.find(host, "100")
    ticks[:] = [7]
    family = commits.Family(host, commits.find(host, "100"))
    ticks[:] = [0]
    assert family.named((), ()).faults == ("it ended while it was watched",)
    ticks[:] = [8]
    assert "its number went to another process" in family.named((), ()).faults[0]


def test_a_real_process_and_its_child(tmp_path: Path) -> None:
    """Of this machine, which has no ZFS: its files are told to be elsewhere, and its threads and child are found."""
    script = (
        "import subprocess, sys, threading\nfile = open(sys.argv[1], 'w')\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()'], stdin=subprocess.PIPE)\n"
        "threading.Thread(target=sys.stdin.read).start()\nprint(child.pid, flush=True)\n"
    )
    one = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path / "x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with one:
        assert one.stdout
        child = int(one.stdout.readline())
        host = LiveHost(10.0)
        there = commits.members(host, one.pid)
        assert set(there.values()) == {one.pid, child}
        assert len(there) == 3
        with pytest.raises(commits.NoSuchLoad, match=r"has no file on ZFS open for writing \(its files are on .*\w"):
            commits.find(host, str(one.pid))
        one.communicate("")
    with pytest.raises(commits.NoSuchLoad, match="is seen here"):
        commits.find(LiveHost(10.0), str(one.pid))


# -- what is said of it -------------------------------------------------------------------------------------------

NAMED = NamedProcess(100, "postgres", ("tank/db",), 3, (100, 101, 102), (), 0, ())
ROWS = {(101, "postgres", 1): (300, 300 * 5300), (200, "nginx", 1): (100, 100 * 5300)}


def narrowed(
    named: NamedProcess = NAMED, rows: dict[tuple[int, str, int], tuple[int, int]] = ROWS, whole: bool = True
) -> ProcessPart:
    seen = worlds.observation(worlds.load(), worlds.traced(rows))._replace(named=named)
    assert from_text(to_text(seen)) == seen
    facts = worlds.facts()
    facts.put(Fact(HOST, "all_processes", known(whole, "pid:[4026531836]")))
    assert seen.traced
    found, _ = commits.attribute_to_process(seen, traced(seen.traced, 1000), facts, {})
    assert found == diagnose(seen, facts).own
    assert found
    return found


def test_what_is_its_own_is_counted_and_marked() -> None:
    found = narrowed()
    assert (found.commits, found.mean_ns, found.part) == (300, 5.3e6, 0.75)
    assert found.text == (
        "process 100 (postgres) and 2 processes that it started made 300 of 400 commits, 75% of the time of all of them, "
        "5.3 ms each; log blocks, devices and causes are of the whole pool tank"
    )
    seen = worlds.observation(worlds.load(), worlds.traced(ROWS))._replace(named=NAMED._replace(parent=99))
    facts = worlds.facts()
    facts.put(Fact(HOST, "all_processes", known(True, "")))
    said = diagnose(seen, facts)
    assert [each.own for each in said.committers] == [True, False]
    text = diagnose_page.write("terminal", said, width=200)
    assert "* postgres 101" in text
    assert "\n  nginx 200" in text
    assert "zaudit diagnose 99 looks at all of it" in text
    assert "zaudit diagnose 100\n" in text
    assert "* postgres 101" in diagnose_page.write("html", said)


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("told", [True, False])
def test_what_the_kernel_commits_to_its_volume_is_its_own(kernel: bool, told: bool) -> None:
    """A guest writes to a zvol; its own threads commit nothing. Where two ZILs count alike nobody knows which is which."""
    rows = {
        (50, "zvol_tq-0", 1): (300 if told else 200, 300 * 5300),
        (200, "nginx", 2): (100 if told else 200, 100 * 5300),
    }
    files = worlds.load(commits={"tank/db": 300 if told else 200, "tank/web": 100 if told else 200})
    who = (Process(50, "zvol_tq-0", KERNEL if kernel else "", "", None),)
    named = NAMED._replace(name="qemu", processes=1)
    facts = worlds.facts()
    facts.put(Fact(HOST, "all_processes", known(True, "")))
    facts.put(Fact(Subject("dataset", "tank/db"), "type", known("volume", "")))
    found = diagnose(worlds.observation(files, worlds.traced(rows), who)._replace(named=named), facts)
    assert found.own
    if kernel and told:
        assert (found.own.commits, found.own.faults) == (300, ())
        assert "5.3 ms each, with what threads of the kernel commit to tank/db; " in found.own.text
    else:
        assert found.own.commits == 0
        faults = ("200 commits are to some volume, and to which is not known",) if kernel else ()
        assert found.own.faults == faults
    assert [each.own for each in found.committers if each.pid == 50] == [kernel and told]


def test_a_process_that_commits_nothing() -> None:
    found = narrowed(NAMED._replace(threads=(300,), processes=1))
    assert (found.commits, found.mean_ns, found.part) == (0, None, 0.0)
    assert found.text.startswith("process 100 (postgres) made none of the 400 commits;")


def test_what_may_be_its_own_is_told() -> None:
    found = narrowed(NAMED._replace(lost=(200,), faults=("it ended while it was watched",)))
    assert found.faults == (
        "it ended while it was watched",
        "100 commits are of threads that ended before anybody saw whose they were",
    )


@pytest.mark.parametrize("lacks", ["trace", "room", "numbers"])
def test_where_it_is_not_known_which_are_its_own(lacks: str) -> None:
    """Without a trace, with a histogram that had no room, and in a container whose numbers the kernel does not use."""
    trace = None if lacks == "trace" else worlds.traced(ROWS)
    if trace and lacks == "room":
        trace = trace._replace(commits=trace.commits.replace("Dropped: 0", "Dropped: 1"))
    facts = worlds.facts()
    facts.put(Fact(HOST, "all_processes", known(lacks != "numbers", "pid:[9]")))
    said = diagnose(worlds.observation(worlds.load(), trace)._replace(named=NAMED), facts)
    found = said.own
    assert found
    assert (found.commits, found.part) == (None, None)
    assert not any(each.own for each in said.committers)
    assert "which commits are its own" in found.text


def test_a_process_that_is_not_there_on_the_command_line(zaudit: CommandLine) -> None:
    done = zaudit("diagnose", "4194303")
    assert (done.code, done.out) == (3, "")
    assert "no process 4194303 is seen here" in done.err
    # not this process: among its children are readers of zaudit, which nobody but root may look into
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        done = zaudit("diagnose", str(other.pid))
        other.communicate(b"\n")
    assert done.code == 3
    assert "has no file on ZFS open for writing" in done.err


@pytest.mark.slow
def test_a_process_on_the_command_line_and_again_from_its_recording(
    zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    past = recording.load(VERIFICATIONS / "2.3-mirrored-slog.tar.gz")
    found = commits.ProcessLoad(os.getpid(), "postgres", owner.started(os.getpid()), ("tank/db",), 99, "")
    monkeypatch.setattr(watch, "LiveHost", lambda *limits: recording.ReplayHost(past))
    monkeypatch.setattr(commits, "find", lambda host, target: found)
    kept = tmp_path / "x.tar.gz"
    done = zaudit("diagnose", os.getpid(), "--seconds", "1", "--no-trace", "--record", kept)
    assert (
        f"Process {os.getpid()} (postgres): which commits are its own was not seen: --no-trace; log blocks," in done.out
    )
    assert "zaudit diagnose 99 looks at all of it" in done.out
    again = zaudit("diagnose", "--replay", kept)
    assert (again.code, again.out) == (done.code, done.out)
    document = json.loads(zaudit("diagnose", "--replay", kept, "--format", "json").out)
    assert document["diagnosis"]["own"]["datasets"] == ["tank/db"]


def test_volumes_of_several_pools_are_told_once_they_are_known(
    zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = (Subject("dataset", "fast/wal"), Subject("dataset", "tank/db"))
    found = commits.ProcessLoad(100, "qemu", 7, ("/dev/zd0", "/dev/zd16"), 0, "")
    monkeypatch.setattr(commits, "find", lambda host, target: found)
    monkeypatch.setattr(audit, "look", lambda *words: audit.Look(worlds.facts(), roots))
    done = zaudit("diagnose", "100")
    assert done.code == 3
    assert "process 100 (qemu) writes to 2 pools (fast/wal, tank/db): name one of these datasets" in done.err
