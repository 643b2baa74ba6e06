"""``--watch``: each second is told from two looks, Ctrl-C ends it with the report, and nothing is left in tracefs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from auditor import audit
from auditor.diagnose import tracing, watch
from auditor.diagnose.commits import Histograms, ProcessLoad
from auditor.diagnose.conclusion import Moment, Scope, second
from auditor.diagnose.diagnosis import Second
from auditor.diagnose.observation import Observation
from auditor.diagnose.watch import WatchOptions
from auditor.facts import HOST, Fact, Facts, Subject, known
from auditor.host.live import LiveHost
from auditor.recording import recording
from auditor.verify import trial
from auditor.verify.execution import Interrupted
from auditor.verify.trial import Reading
from tests.diagnose import worlds
from tests.diagnose.test_commits import log2
from tests.diagnose.test_tracing import Tracefs, tracefs
from tests.fake import CommandLine
from tests.golden import VERIFICATIONS

__all__ = ["tracefs"]  # a fixture

DB, WEB = (100, "postgres", 1), (200, "nginx", 2)
TXGS = "txg birth state ndirty nread nwritten reads writes otime qtime wtime stime\n" + "".join(
    f"{number} {number}000000000 {state} {dirty} 0 4096 0 9 5000000000 1000 2000 {synced}\n"
    for number, state, dirty, synced in ((7, "C", 1 << 20, 400_000_000), (8, "S", 3 << 20, 0), (9, "O", 0, 0))
)


def moments(first: Histograms, then: Histograms, **load: object) -> tuple[Moment, Moment]:
    before, after = worlds.load(**load)  # type: ignore[arg-type]
    after[trial.txgs_path("tank")] = TXGS
    return Moment(worlds.moment(1000, before), first), Moment(worlds.moment(1010, after), then)


def everybody() -> Facts:
    facts = worlds.facts()
    facts.put(Fact(HOST, "all_processes", known(True, "")))
    return facts


def looked(rows: dict[tuple[int, str, int], tuple[int, int]], bins: dict[int, int]) -> Histograms:
    return Histograms(log2(bins), worlds.threads(rows))


def test_a_second_is_what_grew() -> None:
    before = looked({DB: (50, 50 * 9000), WEB: (10, 10 * 100)}, {13: 60})
    after = looked({DB: (1650, 50 * 9000 + 1600 * 5000), WEB: (10, 10 * 100)}, {13: 1640, 15: 20})
    one, two = moments(before, after, commits={"tank/db": 1600}, dmu_tx={"dmu_tx_dirty_delay": 30})
    told = second(one, one, two, Scope("tank", "", everybody()), None)
    assert told == Second(
        at=1010, seconds=10, commits=1600, mean_ns=5e6, p99_ns=32_768_000, most_ns=32_768_000, device="sdc", write_ns=1e6,
        flush_ns=4e6, held=30, dirty=3 << 20, states="SO", sync_s=0.4,
    )  # fmt: skip


def test_a_process_has_its_own_columns() -> None:
    before, after = looked({DB: (0, 0)}, {}), looked({DB: (300, 300 * 5000), WEB: (100, 100 * 1000)}, {13: 400})
    one, two = moments(before, after)
    told = second(one, one, two, Scope("tank", "", everybody()), {200, 201})
    assert (told.commits, told.own, told.own_mean_ns) == (400, 100, 1e6)
    told = second(one, one, two, Scope("tank", "", everybody()), {300})
    assert (told.own, told.own_mean_ns) == (0, None)
    told = second(one, one, two, Scope("tank", "", worlds.facts()), {200})  # in a container it has other numbers
    assert (told.commits, told.own) == (400, None)


def test_a_dataset_has_its_own_columns() -> None:
    after = looked({DB: (360, 360 * 5000), WEB: (40, 40 * 1000)}, {13: 400})
    one, two = moments(Histograms(), after, commits={"tank/db": 360, "tank/web": 40})
    told = second(one, one, two, Scope("tank", "tank/web", everybody()), None)
    assert (told.commits, told.own, told.own_mean_ns) == (400, 40, 1e6)
    one, two = moments(Histograms(), Histograms(), commits={"tank/db": 360, "tank/web": 40})
    told = second(one, one, two, Scope("tank", "tank/web", everybody()), None)
    assert (told.commits, told.own, told.own_mean_ns, told.mean_ns) == (400, 40, None, None)


def test_what_was_not_seen_is_no_number() -> None:
    after = looked({DB: (300, 300 * 5000)}, {13: 300})
    one, two = moments(Histograms(), after)
    earlier = one._replace(reading=one.reading._replace(at=990.0))
    told = second(earlier, one, two, Scope("tank", "", everybody()), None)  # the look between them is missing
    assert (told.commits, told.mean_ns, told.p99_ns, told.most_ns) == (400, None, None, None)
    told = second(one, one, two._replace(looked=Histograms("x", "x")), Scope("tank", "", everybody()), None)
    assert told.mean_ns is None
    dropped = after._replace(threads=after.threads.replace("Dropped: 0", "Dropped: 4"))
    told = second(one, one, two._replace(looked=dropped), Scope("tank", "", everybody()), {100})
    assert (told.own, told.mean_ns, told.most_ns) == (None, None, 8_192_000)
    fell = looked({DB: (200, 200 * 5000)}, {13: 200})
    told = second(one, two, two._replace(looked=fell), Scope("tank", "", everybody()), None)
    assert (told.commits, told.mean_ns) == (None, None)  # the clock stood still, too
    nothing = Moment(Reading(1020.0, 100.0, {}, {}), Histograms())
    told = second(one, two, nothing, Scope("tank", "", everybody()), None)
    assert told == Second(at=1020.0, seconds=10.0)


# -- lines --------------------------------------------------------------------------------------------------------

FULL = Second(1010.0, 1.0, 1234, 27.1e6, 33_600_000, 67_100_000, 12, 9e5, "sdc", 1.5e6, 24e6, 0, 12 << 20, "SO", 0.4)


@pytest.mark.parametrize("narrowed", [True, False])
def test_columns_stand_below_each_other(narrowed: bool) -> None:
    told = watch.columns(narrowed=narrowed, width=None)
    lines = [watch.header(told), watch.row(FULL, told), watch.row(Second(1.0, 0.0), told)]
    assert {len(each) for each in lines} == {len(lines[0])}
    assert len(lines[0]) <= 120
    assert ("own/s" in lines[0]) is narrowed
    assert lines[2].split()[1:] == ["-"] * (12 if narrowed else 10)
    assert ("27.1 ms" in lines[1], "12 MiB" in lines[1], "900 µs" in lines[1]) == (True, True, narrowed)


@pytest.mark.parametrize("narrowed", [True, False])
@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_a_narrow_terminal_lacks_columns_and_breaks_no_line(narrowed: bool, width: int) -> None:
    told = watch.columns(narrowed=narrowed, width=width)
    assert len(watch.row(FULL, told)) <= width
    assert ("own/s" in told) is narrowed
    assert {"commits/s", "mean", "flush"} < {*told}
    assert ("synced in" in told) is (width >= (120 if narrowed else 100))


@pytest.mark.parametrize(("terminal", "names"), [(True, 3), (False, 1)])
def test_names_come_again_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool, names: int
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("COLUMNS", "80")
    lines = watch.Lines("process 7 (\x1b[31m)", beside=False)
    lines.begin("only root may trace")
    for _ in range(2 * watch.HEADER_EVERY + 1):
        lines.line(FULL)
    out = capsys.readouterr().out
    assert out.count("commits/s") == names
    assert out.count("How long commits take is not seen (-): only root may trace.") == 1
    assert "\x1b" not in out


def test_beside_a_report_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    lines = watch.Lines("", beside=True)
    lines.begin("")
    lines.line(FULL)
    said = capsys.readouterr()
    assert (said.out, "27.1 ms" in said.err, "own" in said.err) == ("", True, False)


# -- ends ---------------------------------------------------------------------------------------------------------


def watched(
    tracefs: Tracefs, line: Callable[[Second], object], begin: Callable[[str], object] = lambda why: None
) -> Observation:
    """A watching of this machine, with a folder as its tracefs, for an hour at most."""

    def histograms(why: str) -> None:
        begin(why)
        name = tracing.own_name()
        hist = tracefs.root / "instances" / name / "events" / "synthetic" / name / "hist"
        both = (log2({13: 8}).replace("vals=hitcount", "vals=x"), worlds.threads({DB: (8, 8 * 5000)}))
        keys = both[1].replace("# event histogram\n#\n", f"# event histogram\n# hist:keys={tracing.BY_THREAD}:\n")
        hist.write_text(both[0] + keys)

    def told(each: Second) -> None:
        line(each)

    watching = WatchOptions(histograms, told, lambda: LiveHost(5.0), "")
    return watch.observe(LiveHost(5.0), "tank", worlds.POOL, worlds.facts(), 3600, None, traced=True, watch=watching)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_everything_that_was_seen(tracefs: Tracefs, number: int) -> None:
    before, handlers, seen = tracefs.state(), [*map(signal.getsignal, (signal.SIGINT, signal.SIGTERM))], []

    def line(told: Second) -> None:
        seen.append(told)
        assert tracefs.state() != before
        os.kill(os.getpid(), number)

    found = watched(tracefs, line)
    assert (len(seen), seen[0].mean_ns) == (1, 5e6)
    assert found.traced
    assert [each.commits[:1] for each in found.traced.ticks] == ["\n"]
    assert tracefs.state() == before
    assert [*map(signal.getsignal, (signal.SIGINT, signal.SIGTERM))] == handlers


@pytest.mark.slow
def test_a_second_signal_does_not_wait_for_the_report(tracefs: Tracefs) -> None:
    before = tracefs.state()

    def twice(_: Second) -> None:
        for _time in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        watched(tracefs, twice)
    assert tracefs.state() == before


@pytest.mark.slow
def test_a_terminal_that_is_gone_ends_it_at_once(tracefs: Tracefs) -> None:
    before = tracefs.state()
    with pytest.raises(Interrupted):
        watched(tracefs, lambda told: os.kill(os.getpid(), signal.SIGHUP))
    assert tracefs.state() == before


@pytest.mark.slow
@pytest.mark.parametrize("when", ["begin", "line"])
def test_a_reader_that_closed_the_pipe_leaves_nothing(tracefs: Tracefs, when: str) -> None:
    def gone(_: object) -> None:
        raise BrokenPipeError

    before = tracefs.state()
    with pytest.raises(BrokenPipeError):
        watched(tracefs, **{"line": lambda told: None, when: gone})
    assert tracefs.state() == before


@pytest.mark.slow
def test_on_the_command_line(zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    past = recording.load(VERIFICATIONS / "2.3-mirrored-slog.tar.gz")
    monkeypatch.setattr(watch, "LiveHost", lambda *limits: recording.ReplayHost(past))
    done = zaudit("diagnose", "tank/db", "--watch", "--seconds", "2", "--no-trace")
    lines = done.out.splitlines()
    assert lines[0] == "How long commits take is not seen (-): --no-trace."
    assert lines[1].startswith("own: of tank/db; ")
    assert lines[4].split()[:4] == ["time", "commits/s", "own/s", "own"]
    assert [len(each) for each in lines[5:7]] == [len(lines[4])] * 2
    assert lines[7] == ""
    assert lines[8].startswith("zaudit ")
    assert lines[9] == "NOBODY COMMITS"  # a recording stands still
    assert done.code == 0
    done = zaudit("diagnose", "tank/db", "--watch", "--seconds", "1", "--no-trace", "--format", "json")
    assert json.loads(done.out)["schema"] == "zaudit-diagnosis/1"
    assert "commits/s" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_whole_program_ends_with_its_report(number: int) -> None:
    """Whoever watches over signals for the program does not send it once more while the report is made."""
    script = (
        "import sys, time\nfrom auditor.diagnose import diagnose_page, watch\nfrom auditor.recording import recording\n"
        "past = recording.load(sys.argv[1])\nwatch.LiveHost = lambda *limits: recording.ReplayHost(past)\n"
        "write = diagnose_page.write\n"
        "diagnose_page.write = lambda *each, **all_: (time.sleep(1), write(*each, **all_))[1]\n"
        "sys.argv[1:] = ['diagnose', 'tank/db', '--watch', '--no-trace']\n"
        "from auditor.__main__ import main\nmain()\n"
    )
    words = [sys.executable, "-c", script, str(VERIFICATIONS / "2.3-mirrored-slog.tar.gz")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as one:
        assert one.stdout
        while "commits/s" not in one.stdout.readline():
            assert one.poll() is None
        one.send_signal(number)
        out, err = one.communicate(timeout=60)
    assert (one.returncode, err) == (0, "")
    assert "NOBODY COMMITS" in out


def test_a_recording_is_not_watched(zaudit: CommandLine, tmp_path: Path) -> None:
    done = zaudit("diagnose", "--replay", tmp_path / "x", "--watch")
    assert done.code == 2
    assert "--watch looks at this host" in done.err


@pytest.mark.parametrize(
    ("root", "kind", "named", "narrowed"),
    [
        ("tank", "filesystem", False, ""),
        ("tank/db", "filesystem", False, "tank/db"),
        ("tank/db", "filesystem", True, ""),
        ("tank/db", "volume", True, "tank/db"),  # threads of the kernel commit for it
    ],
)
def test_to_what_the_lines_are_narrowed(root: str, kind: str, named: bool, narrowed: str) -> None:
    facts = worlds.facts()
    facts.put(Fact(Subject("dataset", root), "type", known(kind, "")))
    wanted = watch.DiagnoseOptions(root, 9.0, True, True, True, None, audit.Options(), 9.0, 9.0)
    found = ProcessLoad(100, "qemu", 7, (root,), 0, "") if named else None
    assert watch._watching(wanted, root, worlds.POOL, found, facts).dataset == narrowed
