"""``zaudit verify`` of root on a place of somebody who is hostile: what he puts there and when decides nothing of root's.

The owner of the place is uid 5000 without any privilege. The places are folders of this machine that a table of mounts calls
a dataset; all that is not ZFS is what a run is made of: the real fio, setpriv, strace, mkdir, rm.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from auditor.verify import chain, execution, fio, ledger, place, profile
from auditor.verify.fio import Step
from auditor.verify.ledger import ROOT, Actor, Place, PlaceError
from auditor.verify.trial import FioRun, Trial
from tests.shared import briefly
from tests.verify.fake_zfs import FakeZfs
from tests.verify.test_execution import HEAD, Bench
from tests.verify.worlds import MIRRORED, facts

EVIL = 5000
NEEDED = [name for name in ("fio", "setpriv", "strace") if shutil.which(name) is None]
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be attacked by another user: run the tests as root"),
    pytest.mark.skipif(bool(NEEDED), reason=f"{', '.join(NEEDED)}: not installed"),
]
JOB = "[log]\nrw=write\nbs=4k\nsize=64k\nfsync=1\nfilename_format=zaudit.$jobname.$jobnum.$filenum\n"
PRECIOUS = "precious" * 10_000  # fio removes what is shorter than its file is to be, and makes it anew
EXECUTES = f"[log]\nexec_prerun=touch PWNED\n{JOB[6:]}"


class Ground(Bench):
    """A dataset that belongs to uid 5000, the tools of this machine, and what root holds dear."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        folder.chmod(0o755)
        self.folder = folder
        os.chown(self.tank, EVIL, EVIL)
        self.precious = folder / "precious"
        self.precious.mkdir(mode=0o700)
        self.file = self.precious / "zaudit.log.0.0"
        self.file.write_text(PRECIOUS)
        self.file.chmod(0o600)
        (self.bin / "fio").symlink_to(str(shutil.which("fio")))
        (self.bin / "strace").symlink_to(str(shutil.which("strace")))

    def intact(self) -> bool:
        folder, file = self.precious.stat(), self.file.stat()
        rights = (folder.st_uid, folder.st_mode & 0o777, file.st_uid, file.st_mode & 0o777)
        return rights == (0, 0o700, 0, 0o600) and self.file.read_text() == PRECIOUS and not self.executed()

    def executed(self) -> bool:
        return any(path.name.startswith("PWNED") for path in self.folder.rglob("*"))

    def plan(self, *names: str, seconds: int = 1, limit: int = 1 << 30) -> fio.Plan:
        small = profile.parse(JOB, "small.fio")
        return super().plan(*names, seconds=seconds, limit=limit)._replace(profile=small)

    def fio(self, script: str, head: str = HEAD) -> None:
        (self.bin / "fio").unlink()
        super().fio(script, head)

    def made(self) -> Place:
        return place.directory(str(self.tank), "tank/db")

    def step(self, made: Place, purpose: str = "log") -> FioRun:
        """One run in a place, as a trial does it."""
        with place.hold(made) as here:
            what = Step(purpose, purpose, ("log",), 1, 1 << 30)
            return execution.step(self.host, self.plan(), what, here, JOB, [], None)


@pytest.fixture
def ground(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    folder = Path(tempfile.mkdtemp(prefix="zaudit-test-"))  # everybody can get there; not so below pytest's own
    ground = Ground(folder)
    monkeypatch.setattr(ledger, "name", lambda: ground.state)
    monkeypatch.setattr(ledger, "PATH", (str(ground.bin),))
    monkeypatch.setattr(execution, "IDLE_S", 0.0)
    monkeypatch.setattr(execution, "POLL_S", 0.02)
    yield ground
    shutil.rmtree(folder)


def evil(what: Callable[[], None]) -> int:
    """Another process of uid 5000, without a group or a right more, that does something."""
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.setgroups([])
            os.setresgid(EVIL, EVIL, EVIL)
            os.setresuid(EVIL, EVIL, EVIL)
            what()
            os._exit(0)
        os._exit(1)
    return pid


def done(pid: int) -> bool:
    """Whether it could do what it wanted to."""
    return os.waitpid(pid, 0)[1] == 0


def scratch(ground: Ground, holding: str = "") -> Path:
    """The scratch directory, as soon as there is one (with a file in it)."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        for each in ground.tank.glob(".zaudit-*"):
            if not holding or (each / holding).exists():
                return each
        time.sleep(0.002)
    raise TimeoutError


# -- the place, while fio runs ------------------------------------------------------------------------------------


def swap(ground: Ground) -> None:
    """Take the scratch directory away and put another in its place, with a job file that executes and a link."""
    there = scratch(ground, "zaudit.log.0.0")
    there.rename(ground.tank / "stolen")
    there.mkdir(mode=0o777)
    for name in ("zaudit.job.fio", "-"):
        (there / name).write_text(EXECUTES)
    (there / "zaudit.log.0.0").symlink_to(ground.file)


def test_the_place_is_swapped_while_fio_runs(ground: Ground) -> None:
    attacker = evil(lambda: swap(ground))
    trial = ground.trial(ground.plan("warm", "calls", "log"))
    assert done(attacker)
    assert ground.intact()
    ran = trial.runs[-1]
    assert ran.fault == f"{execution.CHANGED}: something else lies where it was made"
    assert (ran.stdout, ran.strace) == ("", None)
    assert inconclusive(trial, execution.CHANGED)
    stolen = ground.tank / "stolen"
    assert list(stolen.iterdir()) == [], "what fio made is removed wherever it lies by now"
    assert any("is not the directory that zaudit made: it is left alone" in note for note in trial.notes)
    there = next(ground.tank.glob(".zaudit-*"))
    assert (there / "zaudit.job.fio").exists(), "what is his is left to him"


def inconclusive(trial: Trial, why: str) -> bool:
    asked = profile.parse(JOB, "small.fio")
    seen = facts(MIRRORED, "log", "standard", {})
    log = asked.of("log")
    assert log
    found = chain.follow(trial, tuple(fio.runs(trial, asked, seen)), log, seen)
    return found.outcome == "INCONCLUSIVE" and any(why in reason for reason in found.reasons)


@pytest.mark.slow
@pytest.mark.parametrize("purpose", briefly([("warm",), ("calls",), ("log",)], quick=1))
def test_whatever_was_run_in_a_place_that_changed_the_verdict_says_so(ground: Ground, purpose: str) -> None:
    fio = str(shutil.which("fio"))
    ground.fio(f'[ -e ../go ] && ln -s {ground.file} zaudit.x; exec {fio} "$@"')
    steps: tuple[str, ...] = ("warm", "calls", "log")
    told = ground.trial(ground.plan(*steps))
    assert [ran.fault for ran in told.runs] == ["", "", ""]
    steps = steps[steps.index(purpose) :]
    (ground.tank / "go").touch()
    trial = ground.trial(ground.plan(*steps))
    assert [ran.name for ran in trial.runs] == [purpose]
    assert "it holds what fio did not make there (zaudit.x)" in trial.runs[0].fault
    assert inconclusive(trial, execution.CHANGED)
    assert ground.intact()


# -- what lies in the way of fio ----------------------------------------------------------------------------------


def links(ground: Ground) -> dict[str, Callable[[Path], None]]:
    ours, group = ground.file, ground.folder / "group"
    group.write_text(PRECIOUS)
    group.chmod(0o660)  # root's, and of root's group
    return {
        "a link to a file": lambda there: (there / "zaudit.log.0.0").symlink_to(ours),
        "a link to a file of the group of the place": lambda there: (there / "zaudit.log.0.0").symlink_to(group),
        "a link to a file that is to be made": lambda there: (there / "zaudit.log.0.0").symlink_to(
            ground.precious / "new"
        ),
        "a folder": lambda there: (there / "zaudit.log.0.0").mkdir(),
    }


@pytest.mark.parametrize("purpose", ["warm", "calls"])
@pytest.mark.parametrize("kind", briefly(((kind,) for kind in range(4)), quick=1))
def test_links_in_the_way_of_fio(ground: Ground, kind: int, purpose: str) -> None:
    os.chown(ground.tank, EVIL, 0)  # the group of the folder is no group of its owner
    plant = list(links(ground).values())[kind]
    made = ground.made()
    assert done(evil(lambda: plant(Path(made.path))))
    ran = ground.step(made, purpose)
    assert ran.exit != 0
    assert execution.CHANGED in ran.fault
    assert ground.intact()
    assert (ground.folder / "group").read_text() == PRECIOUS
    assert [path.name for path in ground.precious.iterdir()] == ["zaudit.log.0.0"]


def test_a_hard_link_in_the_way_of_fio(ground: Ground) -> None:
    made = ground.made()
    os.link(ground.file, Path(made.path) / "zaudit.log.0.0")  # as a user can where fs.protected_hardlinks=0
    ran = ground.step(made)
    assert ran.exit != 0
    assert execution.CHANGED in ran.fault
    place.remove(made, ledger.call)
    assert ground.intact()
    assert list(ground.tank.iterdir()) == []


def test_who_fio_is(ground: Ground) -> None:
    ground.fio("id -u; id -G; cat /proc/self/status; ls -l /proc/self/fd")
    os.chown(ground.tank, EVIL, 0)
    for owner, groups in ((EVIL, str(place.NOGROUP)), (0, "0")):
        os.chown(ground.tank, owner, 0)
        said = ground.trial(ground.plan("warm")).runs[0].stdout
        assert said.splitlines()[:2] == [str(owner), groups]
        for line in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert f"{line}:\t0000000000000000\n" in said
        assert "NoNewPrivs:\t1\n" in said
        inherited = [line for line in said.splitlines() if " -> " in line and "/proc/" not in line]
        assert len(inherited) == 3, "its input and its output, and nothing else of root's"


def test_strace_is_the_owner_too_and_sees_the_calls(ground: Ground) -> None:
    ran = ground.step(ground.made(), "calls")
    assert (ran.exit, ran.fault) == (0, "")
    assert ran.strace is not None
    assert ran.strace.count("fsync(") >= 15
    assert "TRACE" in ran.argv
    watcher = fio.command(ground.plan(), Step("calls", "calls", ("log",), 1, 1), Actor("5000", "5000"))
    assert watcher.index("--reuid") < watcher.index("strace") < watcher.index("fio")


def cleaned() -> list[tuple[Place, str]]:
    """``zaudit clean`` when the process that made the places is gone."""
    for each in list(ledger.places()):
        ledger.record(each._replace(pid=2**22 - 1, started=1))
    return list(place.clean(ledger.call))


def test_fio_of_another_user_does_not_outlive_a_killed_zaudit(ground: Ground) -> None:
    ground.fio("echo $$ >../pid.new; mv ../pid.new ../pid; exec sleep 60")
    ground.tank.chmod(0o777)
    zaudit = os.fork()
    if zaudit == 0:
        with contextlib.suppress(BaseException):
            ground.trial(ground.plan("warm", seconds=60))
        os._exit(0)
    until = time.monotonic() + 30
    while not (ground.tank / "pid").exists() and time.monotonic() < until:
        time.sleep(0.02)
    fio = int((ground.tank / "pid").read_text())
    assert Path(f"/proc/{fio}").stat().st_uid == EVIL
    os.kill(zaudit, signal.SIGKILL)
    os.waitpid(zaudit, 0)
    while running(fio) and time.monotonic() < until:
        time.sleep(0.02)
    assert not running(fio)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# -- the making ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("instead", ["link", "folder of root", "folder with files", "file", "nothing"])
def test_the_directory_is_replaced_as_soon_as_it_is_made(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, instead: str
) -> None:
    of_root = ground.tank / "of-root"
    of_root.mkdir(mode=0o700)

    def replace() -> None:
        there = scratch(ground)
        there.rename(ground.tank / "stolen")
        match instead:
            case "link":
                there.symlink_to(ground.precious)
            case "folder of root":
                of_root.rename(there)
            case "folder with files":
                there.mkdir(mode=0o700)
                (there / "zaudit.log.0.0").symlink_to(ground.file)
            case "file":
                there.touch()

    act = ledger.act

    def acted(actor: Actor, folder: int, argv: tuple[str, ...]) -> tuple[int, str]:
        answer = act(actor, folder, argv)
        if argv[0] == "mkdir":
            assert done(evil(replace))
        return answer

    monkeypatch.setattr(ledger, "act", acted)
    with pytest.raises(PlaceError, match=r"left alone|removed as soon"):
        ground.trial()
    assert ground.intact()
    left = of_root if instead != "folder of root" else next(ground.tank.glob(".zaudit-*"))
    assert (left.stat().st_uid, left.stat().st_mode & 0o777) == (0, 0o700)


@pytest.mark.slow
def test_a_race_of_many_swaps(ground: Ground) -> None:
    """He swaps as fast as he can; whatever comes out, it is nothing of root's."""

    def swaps() -> None:
        number, late = 0, time.monotonic() + 90
        while not (ground.folder / "end").exists() and time.monotonic() < late:
            for each in ground.tank.glob(".zaudit-*"):
                if not each.is_symlink():
                    with contextlib.suppress(OSError):
                        each.rename(ground.tank / f"stolen-{number}")
                        each.symlink_to(ground.precious)
                    number += 1

    attacker = evil(swaps)
    outcomes: set[str] = set()
    until = time.monotonic() + 60
    rounds = 0
    try:
        while (rounds < 15 or outcomes == {""}) and time.monotonic() < until:
            rounds += 1
            try:
                made = ground.made()
                outcomes.add(ground.step(made, "warm").fault[:20])
                place.remove(made, ledger.call)
            except PlaceError as error:
                outcomes.add(type(error).__name__)
    finally:
        (ground.folder / "end").touch()
        assert done(attacker)
    assert ground.intact()
    assert [path.name for path in ground.precious.iterdir()] == ["zaudit.log.0.0"]
    assert outcomes <= {"", "the place was change", "PlaceError", "ReplacedPlace"}
    assert outcomes != {""}, "he came in between at least once"


@pytest.mark.parametrize(("mode", "refused"), [(0o777, True), (0o775, True), (0o755, False), (0o1777, False)])
def test_a_place_of_root_that_others_may_write(ground: Ground, mode: int, refused: bool) -> None:
    os.chown(ground.tank, 0, 0)
    ground.tank.chmod(mode)
    if refused:
        with pytest.raises(
            PlaceError, match=r"can be written by others \(mode 77[57]\) and belongs to root: give it to"
        ):
            ground.trial()
    else:
        assert ground.trial(ground.plan("warm")).runs[0].exit == 0
    assert list(ground.tank.iterdir()) == []


def test_a_link_on_the_way_to_the_place_is_not_followed(ground: Ground) -> None:
    (ground.folder / "way").symlink_to(ground.tank)
    with pytest.raises(PlaceError, match="no directory can be created there"):
        place.directory(str(ground.folder / "way"), "tank/db")


def test_a_user_whose_name_is_the_number_of_the_owner(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    class User:
        pw_uid, pw_gid = 0, 0

    def named(name: str) -> User:
        assert name == str(EVIL)
        return User()

    monkeypatch.setattr("auditor.verify.place.pwd.getpwnam", named)
    with pytest.raises(PlaceError, match="a user is named 5000"):
        ground.trial()


# -- the removal --------------------------------------------------------------------------------------------------


def test_what_he_put_into_the_place_stays_and_leads_nowhere(ground: Ground) -> None:
    made = ground.made()
    there = Path(made.path)

    def fill() -> None:
        (there / "zaudit.link").symlink_to(ground.precious)
        (there / "zaudit.folder").mkdir()
        (there / "zaudit.folder" / "zaudit.his").touch()
        (there / "zaudit.-rf").touch()
        (there / "his").touch()
        (there / "-rf").touch()

    assert done(evil(fill))
    with pytest.raises(PlaceError, match="holds what zaudit did not create"):
        place.remove(made, ledger.call)
    assert sorted(path.name for path in there.iterdir()) == ["-rf", "his", "zaudit.folder"]
    assert (there / "zaudit.folder" / "zaudit.his").exists()
    assert ground.intact()


@pytest.mark.parametrize("instead", ["link", "folder of root", "his folder"])
def test_clean_removes_nothing_that_lies_in_the_place_of_a_place(ground: Ground, instead: str) -> None:
    made = ground.made()
    there = Path(made.path)
    there.rename(ground.tank / "stolen")
    match instead:
        case "link":
            there.symlink_to(ground.precious)
        case "folder of root":
            ground.precious.rename(there)
            ground.precious, ground.file = there, there / "zaudit.log.0.0"
        case _:
            there.mkdir()
            os.chown(there, EVIL, EVIL)
            (there / "zaudit.his").touch()
    ((_, wrong),) = cleaned()
    assert "it is left alone" in wrong
    assert ground.intact()
    if instead == "his folder":
        assert (there / "zaudit.his").exists()


def test_the_place_is_swapped_between_the_look_and_the_rmdir(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """At worst an empty directory of his is removed."""
    of_root = ground.tank / "of-root"
    of_root.mkdir(mode=0o700)
    made = ground.made()
    act = ledger.act

    def replace() -> None:
        Path(made.path).rename(ground.tank / "stolen")
        of_root.rename(made.path)

    def acted(actor: Actor, folder: int, argv: tuple[str, ...]) -> tuple[int, str]:
        if argv[0] == "rmdir":
            assert done(evil(replace))
        return act(actor, folder, argv)

    monkeypatch.setattr(ledger, "act", acted)
    place.remove(made, ledger.call)  # in a folder of his he may remove what is empty, whoever made it
    assert ground.intact()


# -- the ledger ---------------------------------------------------------------------------------------------------


def hostile(ground: Ground, how: str) -> None:
    state = ground.state
    match how:
        case "a link":
            (ground.folder / "his").mkdir()
            os.chown(ground.folder / "his", EVIL, EVIL)
            state.symlink_to(ground.folder / "his")
        case "his":
            state.mkdir(mode=0o700)
            os.chown(state, EVIL, EVIL)
        case "writable":
            state.mkdir()
            state.chmod(0o777)
        case "of a group":
            state.mkdir()
            state.chmod(0o770)
        case "a folder above is his":
            state.mkdir(mode=0o700)
            os.chown(ground.folder, EVIL, EVIL)
        case _:
            state.mkdir(mode=0o700)
            ground.folder.chmod(0o777)


@pytest.mark.parametrize("how", ["a link", "his", "writable", "of a group", "a folder above is his", "and writable"])
def test_a_ledger_that_others_could_change(ground: Ground, how: str) -> None:
    ground.made()
    (record,) = ground.state.glob("place-*")
    text = record.read_text().replace(str(ground.tank), str(ground.precious))
    shutil.rmtree(ground.state)
    hostile(ground, how)
    (ground.state / record.name).write_text(text)
    for act in (ground.made, lambda: list(place.clean(ledger.call)), lambda: list(ledger.places())):
        with pytest.raises(PlaceError, match="cannot be recorded there"):
            act()
    assert ground.intact()


def test_a_record_that_is_a_link_or_has_no_end(ground: Ground) -> None:
    made = ground.made()
    record = ground.state / f"place-{made.id}.json"
    record.rename(ground.folder / "his.json")
    (ground.state / "place-1.json").symlink_to(ground.folder / "his.json")
    os.mkfifo(ground.state / "place-2.json")
    (ground.state / "place-3.json").write_text("[" * (ledger.LONGEST + 1))
    assert [each.kind for each in ledger.places()] == ["", "", ""]
    assert all("the record is damaged" in wrong for _, wrong in place.clean(ledger.call))


# -- programs and environment -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_found_through_the_path_of_the_caller(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """And setpriv, which is root still when it starts, gets no word of the caller's environment."""
    fakes = ground.folder / "fakes"
    fakes.mkdir()
    for name in ("fio", "setpriv", "env", "strace", "mkdir", "rm", "rmdir", "zfs", "zpool"):
        (fakes / name).write_text(f"#!/bin/sh\ntouch {ground.folder}/PWNED-{name}\n")
        (fakes / name).chmod(0o755)
    (ground.bin / "setpriv").unlink()
    said = ground.folder / "said"
    (ground.bin / "setpriv").write_text(f'#!/bin/sh\n/usr/bin/env >>{said}\nexec {shutil.which("setpriv")} "$@"\n')
    (ground.bin / "setpriv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{fakes}:{os.environ['PATH']}")
    monkeypatch.setenv(
        "LD_LIBRARY_PATH", ":/nonexistent"
    )  # an empty entry is the folder in which a program starts: his
    monkeypatch.setenv("TMPDIR", str(ground.folder))
    trial = ground.trial(ground.plan("warm", "calls", "log"))
    assert [(ran.exit, ran.fault) for ran in trial.runs] == [(0, "")] * 3
    assert "LD_LIBRARY_PATH=:/nonexistent" in trial.runs[0].argv
    assert not ground.executed()
    started = said.read_text()
    assert started.count("LC_ALL=C") >= 5
    assert "LD_" not in started.replace("OLDPWD", "")
    assert str(fakes) not in started


# -- zvols and scratch datasets -----------------------------------------------------------------------------------


@pytest.fixture
def loop(ground: Ground) -> Iterator[str]:
    """A block device that is a file."""
    disk = ground.folder / "disk"
    with disk.open("wb") as file:
        file.truncate(8 << 20)
    made = subprocess.run(("losetup", "-f", "--show", str(disk)), capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no loop device can be made here: {made.stderr.strip()}")
    node = made.stdout.strip()
    yield node
    subprocess.run(("losetup", "-d", node), check=True)


@pytest.mark.slow
def test_a_zvol_is_written_to_through_the_descriptor_that_was_checked(
    ground: Ground, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "node", lambda made: loop)
    made = place.zvol("tank/vm", 1 << 20, (), FakeZfs())
    monkeypatch.setattr(place, "node", lambda made: "/dev/null" if made.id == "" else loop)
    with place.hold(made) as here:
        assert here.actor == ROOT
        assert os.readlink(Path(made.path) / place.LOG_FILE) == f"/proc/self/fd/{here.device}"
        for purpose in ("warm", "calls"):
            ran = execution.step(
                ground.host, ground.plan(), Step(purpose, purpose, ("log",), 1, 1 << 30), here, JOB, [], None
            )
            assert (ran.exit, ran.fault) == (0, "")
        assert ran.strace is not None
        assert f"<{loop}" in ran.strace
    subprocess.run(("sync", loop), check=True)
    assert any((ground.folder / "disk").read_bytes()[: 64 << 10])


@pytest.mark.parametrize("node", ["/dev/null", "FILE"])
def test_a_node_that_is_no_block_device_is_refused(ground: Ground, monkeypatch: pytest.MonkeyPatch, node: str) -> None:
    monkeypatch.setattr(place, "node", lambda made: str(ground.file) if node == "FILE" else node)
    made = place.zvol("tank/vm", 1 << 20, (), FakeZfs())
    with pytest.raises(PlaceError, match="not a block device"), place.hold(made):
        pass
    assert ground.intact()


def test_the_owner_of_a_zvol_and_of_a_directory(ground: Ground) -> None:
    assert execution.actor_for(ground.host, ground.plan()._replace(kind="zvol")) == ROOT
    assert execution.actor_for(ground.host, ground.plan()).uid == str(EVIL)
