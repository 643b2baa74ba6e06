"""Runs on a folder of this machine with an fio that does as it is told: whatever happens to it, nothing is left."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from auditor.host.request import Capture
from auditor.verify import execution, fio, ledger, place, profile, trial
from auditor.verify.execution import CannotVerify
from auditor.verify.fio import Plan, Step
from auditor.verify.ledger import Command, Place, PlaceError
from auditor.verify.place import OpenPlace
from auditor.verify.trial import Trial
from tests.fake import FakeHost
from tests.golden import FIO, fio_output
from tests.shared import briefly
from tests.verify.worlds import MIRRORED, facts

LIMIT = 1 << 30
SAYS = FIO / "postgres" / "log.out.gz"
HEAD = '[ "$1" = --version ] && { echo fio-3.33; exit 0; }\n'
GOOD = f"echo x >zaudit.log.0.0; gzip -dc '{SAYS}'"
SCAN = "  pool: tank\n state: ONLINE\n  scan: scrub repaired 0B\nconfig:\n"
pytestmark = pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed: nothing can be run")


class Bench:
    """A folder that is "the dataset", the tools that are "installed", and the ledger."""

    def __init__(self, folder: Path) -> None:
        self.tank, self.bin, self.state = (folder / name for name in ("tank", "bin", "state"))
        for each in (self.tank, self.bin):
            each.mkdir(exist_ok=True)
        device = os.stat(self.tank).st_dev
        mount = f"30 1 {os.major(device)}:{os.minor(device)} / {self.tank} rw - zfs tank/db rw\n"
        status: dict[tuple[str, ...], Capture] = {("zpool", "status", "tank"): Capture(0, SCAN.encode())}
        self.host = FakeHost(status, {execution.MOUNTS: mount}, euid=1000)
        for tool, _ in execution.NEEDED[1:]:
            if not (self.bin / tool).exists():
                (self.bin / tool).symlink_to(str(shutil.which(tool)))

    def fio(self, script: str, head: str = HEAD) -> None:
        (self.bin / "fio").write_text(f"#!/bin/sh\n{head}{script}\n")
        (self.bin / "fio").chmod(0o755)

    def plan(self, *names: str, seconds: int = 1, limit: int = LIMIT) -> Plan:
        asked = profile.load("postgres")
        steps = tuple(Step(name, name, ("log",), seconds, limit) for name in names or ("warm", "log"))
        return Plan("tank/db", "directory", asked, "quick", 1 << 20, steps, 1 << 20, limit)

    def trial(self, planned: Plan | None = None) -> Trial:
        seen = facts(MIRRORED, "log", "standard", {})
        return execution.run_trial(self.host, planned or self.plan(), seen, "", None)

    def left(self) -> list[str]:
        return [path.name for folder in (self.tank, self.state) if folder.exists() for path in folder.iterdir()]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path)
    monkeypatch.setattr(ledger, "name", lambda: made.state)
    monkeypatch.setattr(ledger, "PATH", (str(made.bin),))
    monkeypatch.setattr(execution, "IDLE_S", 0.0)
    monkeypatch.setattr(execution, "POLL_S", 0.02)
    return made


def faults(done: Trial) -> str:
    seen = facts(MIRRORED, "log", "standard", {})
    last = fio.run(done.runs[-1], done, profile.load("postgres"), seen)
    return "; ".join(last.faults)


def test_a_run(bench: Bench) -> None:
    bench.fio(GOOD)
    done = bench.trial()
    assert [(ran.name, ran.exit, ran.fault, ran.limited) for ran in done.runs] == [
        ("warm", 0, "", False),
        ("log", 0, "", False),
    ]
    assert done.landed == done.dataset == done.target == "tank/db"
    assert done.scan == ""
    assert done.fio == "fio-3.33"
    assert faults(done) == ""
    assert bench.left() == []
    assert trial.from_text(trial.to_text(done)) == done


def test_it_runs_in_its_own_new_directory_with_its_own_environment(bench: Bench) -> None:
    bench.fio("pwd; ls -A; env; echo '{}'")
    said = bench.trial(bench.plan("warm")).runs[0].stdout.splitlines()
    assert Path(said[0]).parent == bench.tank
    assert said[1].startswith("ZAUDIT_DIRECTORY="), "there is nothing in it"
    assert "ZAUDIT_SIZE=1048576" in said
    assert "ZAUDIT_SIZE=1048576" in bench.trial(bench.plan("warm")).runs[0].argv, "what a report shows can be repeated"
    assert "LC_ALL=C" in said


def test_the_job_file_is_its_standard_input_and_cannot_be_changed(bench: Bench) -> None:
    bench.fio("echo '[log]' >/proc/self/fd/0; cat; exit 1")
    (ran,) = bench.trial().runs
    assert ran.stdout == profile.load("postgres").text
    assert ran.argv[-1] == "-"
    assert "Operation not permitted" in ran.stderr or "Permission denied" in ran.stderr


def test_what_is_preloaded_is_preloaded_into_fio_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nonexistent/lib")
    bench.fio("env; echo '{}'")
    assert "LD_LIBRARY_PATH=/nonexistent/lib" in bench.trial(bench.plan("warm")).runs[0].stdout


def test_a_failure_of_fio_ends_it(bench: Bench) -> None:
    bench.fio("echo x >zaudit.log.0.0; echo 'fio: pid=7, err=28/file:x.c: No space left on device' >&2; exit 1")
    done = bench.trial()
    assert [(ran.name, ran.exit) for ran in done.runs] == [("warm", 1)]
    assert "exit code 1: fio: pid=7, err=28/file:x.c: No space left on device" in faults(done)
    assert bench.left() == []


def test_an_fio_that_hangs_is_killed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "SLACK_S", 0.3)
    bench.fio("echo $$ >zaudit.pid; cp zaudit.pid ../pid; trap '' INT TERM; while :; do sleep 0.1; done")
    done = bench.trial(bench.plan("warm", "log", seconds=0))
    assert [(ran.name, ran.exit) for ran in done.runs] == [("warm", -signal.SIGKILL)]
    assert "fio did not end within 0 s" in faults(done)
    assert not alive(int((bench.tank / "pid").read_text()))
    (bench.tank / "pid").unlink()
    assert bench.left() == []


def test_at_the_limit_fio_is_told_to_end(bench: Bench) -> None:
    bench.fio(
        f"trap \"gzip -dc '{SAYS}' >&3; exit 128\" INT; exec 3>&1 >zaudit.log.0.0\n"
        "while :; do printf %8192d 0; sleep 0.01; done"
    )
    done = bench.trial(bench.plan("log", "data", seconds=30, limit=100_000))
    assert [(ran.name, ran.limited, ran.exit) for ran in done.runs] == [("log", True, 128)]
    assert faults(done) == "the run was ended early: it had written as many bytes as it may (--limit)"
    assert bench.left() == []


def test_the_limit_is_that_of_all_runs_together(bench: Bench) -> None:
    bench.fio(GOOD)
    each = 163_840  # bytes that the output says
    assert f'"io_bytes" : {each}' in fio_output(SAYS)
    assert len(bench.trial(bench.plan("warm", "log", "data", limit=each)).runs) == 1
    assert len(bench.trial(bench.plan("warm", "log", "data", limit=each + 1)).runs) == 2


def test_each_trial_of_a_sweep_has_its_job_file_and_begins_with_a_fresh_file(bench: Bench) -> None:
    bench.fio(f"[ -e {fio.FILE} ] && exit 3; echo x >{fio.FILE}; gzip -dc '{SAYS}'; cat >&2")
    once = Step("sweep-0", "sweep", ("sweep-0",), 1, LIMIT)
    done = bench.trial(bench.plan()._replace(sweep=fio.LEAST, steps=(once, once)))
    assert [(ran.exit, ran.stderr) for ran in done.runs] == [(0, fio.sweep_job_file(fio.LEAST))] * 2
    assert bench.left() == []


def test_where_the_files_do_not_lie_on_the_dataset_fio_is_not_run(bench: Bench) -> None:
    bench.fio(GOOD)
    mount = bench.host.files[execution.MOUNTS]
    other = mount.replace("30 1", "31 30").replace("tank/db", "tank/other")
    bench.host.files = {execution.MOUNTS: mount.replace(mount.split()[2], "0:999") + other}
    done = bench.trial()
    assert (done.landed, done.runs) == ("tank/other", ())
    assert bench.left() == []


def scratch(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, driver: Callable[..., None], *, renamed: bool = False
) -> Trial:
    """A run on a scratch zvol whose node answers as it is told. renamed: another dataset has its name by then."""
    monkeypatch.setattr("auditor.verify.ledger.there", lambda made, zfs: not renamed)
    bench.fio(GOOD)
    monkeypatch.setattr(fcntl, "ioctl", driver)

    @contextlib.contextmanager
    def device(here: OpenPlace) -> Iterator[int]:
        yield here.folder

    def zvol(target: str, size: int, properties: object, zfs: object) -> Place:
        made = place.directory(str(bench.tank), "tank/db")
        return made._replace(kind="zvol", dataset=f"tank/zaudit-{made.id}")

    def remove(made: Place, zfs: Command) -> None:
        place_remove(made._replace(kind="directory"), zfs)

    place_remove = place.remove
    monkeypatch.setattr(place, "zvol", zvol)
    monkeypatch.setattr(place, "remove", remove)
    monkeypatch.setattr(place, "_device", device)
    return bench.trial(bench.plan()._replace(kind="zvol"))


@pytest.mark.parametrize("renamed", [False, True])
def test_the_zvol_that_is_written_to_is_the_one_that_its_driver_names(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, renamed: bool
) -> None:
    def names(node: int, request: int, buffer: bytearray) -> None:
        assert request == 0x8100127D  # _IOR(0x12, 125, char[256]) on x86 and ARM
        name = next(each.name.removeprefix(".zaudit-") for each in bench.tank.iterdir())
        buffer[: len(name) + 12] = f"tank/zaudit-{name}".encode()

    done = scratch(bench, monkeypatch, names, renamed=renamed)
    assert done.dataset != done.target
    assert (done.landed == done.dataset) == (not renamed)
    assert len(done.runs) == (0 if renamed else 2)


def test_a_node_that_is_another_zvol_or_none_is_not_written_to(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(node: int, request: int, buffer: bytearray) -> None:
        buffer[:10] = b"tank/other"

    def none(node: int, request: int, buffer: bytearray) -> None:
        raise OSError(25, "Inappropriate ioctl for device")

    for driver, landed in ((other, "tank/other"), (none, "")):
        done = scratch(bench, monkeypatch, driver)
        assert (done.landed, done.runs) == (landed, ())
        assert bench.left() == []


def test_a_scrub_that_came_and_went_is_seen(bench: Bench) -> None:
    bench.fio(GOOD)
    said = iter([SCAN, SCAN.replace("repaired 0B", "repaired 1B")])
    asked = ("zpool", "status", "tank")
    bench.host.run = lambda request: Capture(0, (next(said) if request.argv == asked else SCAN).encode())  # type: ignore[method-assign]
    assert bench.trial().scan == "scrub"


def test_a_scrub_that_nobody_could_see_is_not_none(bench: Bench) -> None:
    bench.fio(GOOD)
    for answer in (Capture(1, b""), Capture(None, fault="no answer within 30 s"), Capture(0, b"  pool: tank\n")):
        bench.host.commands = {("zpool", "status", "tank"): answer}
        assert bench.trial().scan == trial.UNSEEN


# -- nothing is run -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ("echo fio-3.19; exit 0", "fio-3.19 is too old: postgres needs fio 3.20 or newer"),
        ("echo fio-2.16; exit 0", "fio-2.16 is too old"),
        ("echo something; exit 0", "fio --version printed 'something'"),
        ("echo fio-3.33; exit 1", "is too old"),
    ],
)
def test_an_fio_that_will_not_do(bench: Bench, head: str, says: str) -> None:
    bench.fio("", f"{head}\n")
    with pytest.raises(CannotVerify, match=says):
        bench.trial()
    assert bench.left() == []


def test_no_fio_and_no_setpriv(bench: Bench) -> None:
    with pytest.raises(CannotVerify, match="install fio"):
        bench.trial()
    bench.fio(GOOD)
    for tool, package in reversed(execution.NEEDED[1:]):
        (bench.bin / tool).unlink()
        with pytest.raises(CannotVerify, match=rf"{tool} is not installed \(install {package}\)") as raised:
            bench.trial()
        assert raised.value.exit_code == 3
    assert bench.left() == []


def test_what_is_not_mounted(bench: Bench) -> None:
    bench.fio(GOOD)
    bench.host.files = {execution.MOUNTS: ""}
    with pytest.raises(CannotVerify, match="tank/db is not mounted here"):
        bench.trial()
    assert bench.left() == []


def test_no_permission(bench: Bench) -> None:
    bench.fio(GOOD)

    (bench.bin / "mkdir").unlink()
    (bench.bin / "mkdir").write_text(
        "#!/bin/sh\necho \"mkdir: cannot create directory '$4': Permission denied\" >&2; exit 1"
    )
    (bench.bin / "mkdir").chmod(0o755)
    with pytest.raises(PlaceError, match="no directory can be created there: Permission denied"):
        bench.trial()
    assert bench.left() == []


def test_a_full_dataset(bench: Bench) -> None:
    (bench.bin / "mkdir").unlink()
    (bench.bin / "mkdir").write_text(
        "#!/bin/sh\necho \"mkdir: cannot create directory '$4': Disk quota exceeded\" >&2; exit 1"
    )
    (bench.bin / "mkdir").chmod(0o755)
    bench.fio(GOOD)
    with pytest.raises(PlaceError, match="Disk quota exceeded"):
        bench.trial()
    assert bench.left() == []


# -- signals ------------------------------------------------------------------------------------------------------


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def interrupted(bench: Bench, number: int) -> tuple[int, str, int]:
    """(exit code, what was said, process number of fio) of a zaudit that gets a signal while fio runs."""
    bench.fio("echo x >zaudit.log.0.0; echo $$ >../pid.new; mv ../pid.new ../pid; exec sleep 60")
    script = (
        "import sys; from pathlib import Path; from tests.verify import test_execution\n"
        "from auditor.verify import ledger, execution\n"
        "bench = test_execution.Bench(Path(sys.argv[1])); ledger.PATH = (str(bench.bin),); execution.IDLE_S = 0.0\n"
        "ledger.name = lambda: bench.state\n"
        "try: bench.trial(bench.plan('warm', seconds=60))\n"
        "except execution.Interrupted as error: print(error); sys.exit(error.exit_code)\n"
    )
    argv = (sys.executable, "-c", script, str(bench.tank.parent))
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=root)
    until = time.monotonic() + 60
    while not (bench.tank / "pid").exists() and time.monotonic() < until:
        assert process.poll() is None
        time.sleep(0.05)
    fio = int((bench.tank / "pid").read_text())
    (bench.tank / "pid").unlink()
    assert alive(fio)
    process.send_signal(number)
    said = process.communicate(timeout=60)[0].decode()
    until = time.monotonic() + 10
    while alive(fio) and time.monotonic() < until:
        time.sleep(0.05)
    return process.returncode, said, fio


@pytest.mark.slow
@pytest.mark.parametrize("number", briefly([(signal.SIGTERM,), (signal.SIGINT,), (signal.SIGHUP,)], quick=1))
def test_a_signal_leaves_nothing(bench: Bench, number: signal.Signals) -> None:
    code, said, fio = interrupted(bench, number)
    assert code == 130
    assert said == f"interrupted by {number.name}; what was made is removed\n"
    assert not alive(fio)
    assert bench.left() == []


@pytest.mark.slow
def test_what_a_killed_zaudit_left_is_found_and_removed(bench: Bench) -> None:
    code, _, fio = interrupted(bench, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not alive(fio), "fio does not outlive zaudit"
    (left,) = ledger.places()
    assert (Path(left.path) / "zaudit.log.0.0").exists()
    assert [(each, wrong) for each, wrong in place.clean(ledger.call)] == [(left, "")]
    assert bench.left() == []
