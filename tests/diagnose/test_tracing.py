"""Events of our own in tracefs: added to what others have, gone afterwards whatever happens, refused where they must be."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from auditor.diagnose import tracing
from auditor.diagnose.observation import Tick
from auditor.host.owner import started
from tests.diagnose.test_commits import THREADS, log2

OTHERS = "p:somebody/else vfs_fsync_range\n"
MOUNTED = "26 25 0:12 / {root} rw,nosuid - tracefs tracefs rw\n"
DEAD = "zaudit_999999999_1"


class Tracefs:
    """A folder that answers as tracefs does, and keeps what was written."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.refuses: tuple[str, ...] = ()
        self.written: list[tuple[str, str]] = []
        (root / "instances").mkdir(parents=True)
        (root / "kprobe_events").write_text(OTHERS)
        (root / "synthetic_events").write_text("wakeup\tu64 lat\n")
        (root / "kprobe_profile").write_text("  else    3    0\n  commit    9    0\n  done    9    2\n")

    def append(self, file: str, line: str) -> None:
        if any(each in line for each in self.refuses):
            raise OSError(errno.EINVAL, "Invalid argument", str(self.root / file))
        self.written.append((file, line))
        if file.endswith("/trigger"):
            self._trigger(self.root / file, line)
        elif file == "kprobe_events":
            self._lines(file, line.startswith("-:"), lambda each: f":{line[2:]} " in each, line)
        else:
            name, _, rest = line.removeprefix("!").partition(" ")
            self._lines(file, line.startswith("!"), lambda each: each.startswith(f"{name}\t"), f"{name}\t{rest}")

    def _lines(self, file: str, gone: bool, which: object, line: str) -> None:
        path = self.root / file
        lines = path.read_text().splitlines()
        assert callable(which)
        kept = [each for each in lines if not which(each)] if gone else [*lines, line]
        if gone and len(kept) == len(lines):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        path.write_text("".join(f"{each}\n" for each in kept))

    def _trigger(self, path: Path, line: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.read_text().splitlines() if path.exists() else []
        if line.startswith("!"):
            there = [each for each in there if each.partition(" [")[0] != line[1:]]
        else:
            there.insert(0, f"{line} [active]")
        path.write_text("".join(f"{each}\n" for each in there))
        if not any(each.read_text() for each in path.parents[3].rglob("trigger")):
            for each in sorted(
                path.parents[2].rglob("*"), reverse=True
            ):  # rmdir() of an instance takes all that is in it
                each.unlink() if each.is_file() else each.rmdir()
            path.parents[2].rmdir()

    def state(self) -> tuple[str, str, list[str]]:
        files = ((self.root / each).read_text() for each in ("kprobe_events", "synthetic_events"))
        return (*files, sorted(os.listdir(self.root / "instances")))  # type: ignore[return-value]


@pytest.fixture
def tracefs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tracefs:
    fake = Tracefs(tmp_path / "tracing")
    mounts, lockdown = tmp_path / "mountinfo", tmp_path / "lockdown"
    mounts.write_text(MOUNTED.format(root=fake.root))
    lockdown.write_text("[none] integrity confidentiality\n")
    monkeypatch.setattr(tracing, "ROOT", fake.root)
    monkeypatch.setattr(tracing, "MOUNTS", mounts)
    monkeypatch.setattr(tracing, "LOCKDOWN", lockdown)
    monkeypatch.setattr(tracing, "_append", fake.append)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return fake


def test_what_was_there_before_is_there_afterwards_and_nothing_else(tracefs: Tracefs) -> None:
    before = tracefs.state()
    with tracing.tracing():
        name = tracing.own_name()
        assert tracing.left() == {name: True}
        probes, made, instances = tracefs.state()
        assert probes.startswith(OTHERS)
        assert f"r4096:{name}/done zil_commit\n" in probes
        assert f"{name}\tu64 us; u64 zil\n" in made
        assert instances == [name]
    assert tracefs.state() == before
    assert [line for file, line in tracefs.written if file == "kprobe_events" and line.startswith("-:")] == [
        f"-:{name}/{event}" for event in ("commit", "done", "issue")
    ]


@pytest.mark.parametrize("refused", ["r4096", "u64 zil", "onmatch", "us.log2", "t0=common_timestamp"])
def test_a_kernel_that_refuses_a_part_is_left_as_it_was(tracefs: Tracefs, refused: str) -> None:
    before = tracefs.state()
    tracefs.refuses = (refused,)
    with pytest.raises(tracing.CannotTrace), tracing.tracing():
        raise AssertionError("it was traced")
    assert tracefs.state() == before


def test_a_kernel_without_the_function_of_log_blocks_is_traced_without_the_queue(tracefs: Tracefs) -> None:
    before = tracefs.state()
    tracefs.refuses = ("zil_lwb_write_issue",)
    with tracing.tracing() as (_, end), _histograms(tracefs):
        found = end([])
        assert found.queue == ""
    assert tracefs.state() == before


@contextmanager
def _histograms(tracefs: Tracefs) -> Iterator[None]:
    name = tracing.own_name()
    file = tracefs.root / "instances" / name / "events" / "synthetic" / name / "hist"
    file.write_text(THREADS)
    yield
    file.unlink()


def test_an_interruption_leaves_nothing(tracefs: Tracefs) -> None:
    before = tracefs.state()
    with pytest.raises(KeyboardInterrupt), tracing.tracing():
        raise KeyboardInterrupt
    assert tracefs.state() == before


def test_what_a_killed_one_left_is_cleaned_and_what_lives_is_not(
    tracefs: Tracefs, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tracefs.state()
    monkeypatch.setattr(tracing, "own_name", lambda: DEAD)
    monkeypatch.setattr(tracing, "remove", lambda name: None)
    with tracing.tracing():
        pass
    monkeypatch.undo()
    for name, value in (("ROOT", tracefs.root), ("_append", tracefs.append)):
        monkeypatch.setattr(tracing, name, value)
    alive = f"zaudit_{os.getpid()}_{started(os.getpid())}"
    tracefs.append("kprobe_events", f"p:{alive}/commit zil_commit")
    assert tracing.left() == {DEAD: False, alive: True}
    assert list(tracing.clean()) == [(DEAD, "")]
    assert tracing.left() == {alive: True}
    tracefs.append("kprobe_events", f"-:{alive}/commit")
    assert tracefs.state() == before


def test_where_it_must_not_be_done_it_is_refused_with_the_reason(
    tracefs: Tracefs, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracing.LOCKDOWN.write_text("none integrity [confidentiality]\n")
    with pytest.raises(tracing.CannotTrace, match="confidentiality"):
        tracing.refuse()
    tracing.LOCKDOWN.write_text("none [integrity] confidentiality\n")
    tracing.refuse()
    (tracefs.root / "synthetic_events").unlink()
    with pytest.raises(tracing.CannotTrace, match="this kernel has no such events"):
        tracing.refuse()
    tracing.MOUNTS.write_text(MOUNTED.format(root="/elsewhere"))
    with pytest.raises(tracing.CannotTrace, match="no tracefs is mounted"):
        tracing.refuse()
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    with pytest.raises(tracing.CannotTrace, match="only root may trace"):
        tracing.refuse()
    assert tracefs.written == []


def test_addresses_of_the_kernel_are_not_kept(tracefs: Tracefs) -> None:
    with tracing.tracing() as (look, end):
        hist = tracefs.root / "instances" / tracing.own_name() / "events" / "synthetic" / tracing.own_name() / "hist"
        by_thread = THREADS.replace("zil:          1", "zil: 18446620582391115776")
        hist.write_text(log2({5: 338}).replace("vals=hitcount", "vals=x") + "\n\n" + by_thread)
        assert "~ 2^5" in look().latencies
        assert "python3" not in look().latencies
        assert "[       340], zil: 1 }" in look().threads
        found = end([Tick(1.0, look().latencies)])
        hist.unlink()
    assert "1844" not in found.commits
    assert "[       340], zil: 1 }" in found.commits
    assert found.missed == 2
    assert (
        found.ticks[0].commits == log2({5: 338}).replace("vals=hitcount", "vals=x")[len("# event histogram") :] + "\n\n"
    )


def test_a_line_is_added_and_nothing_is_truncated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "ROOT", tmp_path)
    (tmp_path / "kprobe_events").write_text(OTHERS)
    tracing._append("kprobe_events", "p:zaudit_1_1/commit zil_commit")
    assert (tmp_path / "kprobe_events").read_text() == OTHERS + "p:zaudit_1_1/commit zil_commit\n"
    with pytest.raises(FileNotFoundError):
        tracing._append("instances/x/trigger", "hist:keys=common_pid")
    assert sorted(os.listdir(tmp_path)) == ["kprobe_events"]


def test_nothing_but_a_diagnosis_touches_tracefs() -> None:
    auditor = Path(tracing.__file__).parent.parent
    named = {
        str(path.relative_to(auditor)) for path in auditor.rglob("*.py") if "/sys/kernel/tracing" in path.read_text()
    }
    assert named == {"diagnose/tracing.py"}
