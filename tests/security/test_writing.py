"""Files that zaudit writes: nobody else decides where they go, the old one stays whole, and nothing is left beside it."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pytest

from auditor import EXIT_BROKE, EXIT_USAGE, interrupt
from auditor.host import trust, user_files
from auditor.host.request import Capture
from auditor.host.trust import NoPlace, held
from auditor.host.user_files import CannotWrite, replace
from auditor.recording import archive, recording
from auditor.recording.recording import Recording
from tests.golden import CANONICAL, HOSTS

EVIL = 5000
OLD = Recording(1.0, 0, ("tank",), commands={("zpool", "status"): Capture(0, b"old")})
NEW = Recording(2.0, 0, ("tank",), commands={("zpool", "status"): Capture(0, b"new")})
ROOT = Path(__file__).parents[2]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user: needs root")


def listed(place: Path) -> set[str]:
    return {each.name for each in place.iterdir()}


def zaudit(*words: object, **how: object) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, "-m", "auditor", *map(str, words)]
    return subprocess.run(argv, capture_output=True, cwd=ROOT, timeout=60, check=False, **how)  # type: ignore[call-overload,no-any-return]


def check(*words: object) -> subprocess.CompletedProcess[bytes]:
    return zaudit("check", "--replay", HOSTS / CANONICAL, *words)


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A folder of somebody else, in one of ours that he can reach."""
    tmp_path.chmod(0o755)
    place = tmp_path / "evil"
    place.mkdir()
    os.chown(place, EVIL, EVIL)
    return place


# -- what is written ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_a_file_is_for_its_owner_alone(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        for content in (b"one", b"two"):
            replace(tmp_path / "report", content)
            recording.write(NEW, tmp_path / "rec.tar.gz")
            recording.write(NEW, tmp_path / "new" / "rec")
    finally:
        os.umask(before)
    assert (tmp_path / "report").read_bytes() == b"two"
    assert recording.load(tmp_path / "rec.tar.gz") == recording.load(tmp_path / "new" / "rec") == NEW
    modes = {each.relative_to(tmp_path): stat.S_IMODE(each.stat().st_mode) for each in tmp_path.rglob("*")}
    folders = {Path("new"), Path("new/rec")}
    assert set(modes) > folders
    assert modes == {name: 0o700 if name in folders else 0o600 for name in modes}


def test_another_name_of_the_old_file_keeps_the_old_content(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("old")
    os.link(tmp_path / "report", tmp_path / "other")
    replace(tmp_path / "report", b"new")
    assert ((tmp_path / "report").read_text(), (tmp_path / "other").read_text()) == ("new", "old")


@pytest.mark.parametrize("kind", ["link", "dangling link", "FIFO", "socket", "folder"])
def test_what_is_no_plain_file_is_refused(kind: str, tmp_path: Path) -> None:
    place, precious = tmp_path / "report", tmp_path / "precious"
    precious.write_text("precious")
    match kind:
        case "link":
            place.symlink_to(precious)
        case "dangling link":
            place.symlink_to(tmp_path / "nowhere")
        case "FIFO":
            os.mkfifo(place)
        case "socket":
            os.mknod(place, stat.S_IFSOCK | 0o600)
        case "folder":
            place.mkdir()
    with pytest.raises(NoPlace, match=f"{place} is a {kind.split()[-1]}: zaudit writes plain files only"):
        replace(place, b"x")
    assert listed(tmp_path) == {"report", "precious"}
    assert precious.read_text() == "precious"


@pytest.mark.slow
def test_a_fifo_does_not_keep_a_check_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "report")
    done = check("-o", tmp_path / "report")
    assert (done.returncode, done.stderr.decode()) == (
        EXIT_USAGE,
        f"zaudit: {tmp_path}/report is a FIFO: zaudit writes plain files only\n",
    )


@pytest.mark.slow
def test_streams_are_written_to_as_they_are(tmp_path: Path) -> None:
    text = check().stdout
    for name in ("-", "/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"):
        done = check("-o", name)
        assert (done.returncode, done.stdout) == (14, text), name
    done = check("-o", "/dev/stderr")
    check("-o", tmp_path / "report")
    assert (done.stdout, done.stderr.startswith((tmp_path / "report").read_bytes())) == (b"", True)
    assert (check("-o", "/dev/null").returncode, check("-o", "/dev/null").stdout) == (14, b"")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    done = check("-o", "/dev/full")
    assert (done.returncode, b"/dev/full is a device" in done.stderr) == (EXIT_USAGE, True)
    assert b"Bad file descriptor" in check("-o", "/dev/fd/99").stderr
    assert zaudit("record", "-o", "-").returncode == EXIT_USAGE


# -- a disk that is full -------------------------------------------------------------------------------------------------


@contextmanager
def small(size: int) -> Iterator[None]:
    """No file may become larger, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_the_old_report_stays_when_the_disk_is_full(tmp_path: Path) -> None:
    replace(tmp_path / "report", b"old")
    with small(4096), pytest.raises(CannotWrite) as raised:
        replace(tmp_path / "report", b"x" * 100_000)
    assert str(raised.value) == f"{tmp_path}/report: File too large; the old one is unchanged"
    assert raised.value.exit_code == EXIT_BROKE
    assert listed(tmp_path) == {"report"}
    assert (tmp_path / "report").read_bytes() == b"old"


@pytest.mark.slow
@as_root
@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare (util-linux)")
def test_reports_and_recordings_on_a_full_disk(tmp_path: Path) -> None:
    """A tmpfs of 16 KiB in a mount namespace of its own, with yesterday's report and recordings on it."""
    script = f"""
        mount -t tmpfs -o size=16k none {tmp_path} || exit 77
        cd {tmp_path}; echo yesterday >report; mkdir rec
        echo '{{"schema":"zaudit-recording/1","captures":[]}}' >rec/recording.json
        for each in report rec; do cp -r $each /dev/shm/$$-$each; done
        zaudit() {{ (cd {ROOT} && {sys.executable} -m auditor "$@"); echo "code $?"; }}
        zaudit check --replay {HOSTS / CANONICAL} --format json -o {tmp_path}/report
        {sys.executable} -c '
import sys; sys.path.insert(0, "{ROOT}")
from pathlib import Path
from auditor.recording import recording
past = recording.load(Path("{HOSTS / CANONICAL}"))
for name in ("rec", "new", "new.tar.gz"):
    try: recording.write(past, Path("{tmp_path}") / name)
    except Exception as error: print(type(error).__name__, error)
'
        for each in report rec; do diff -r $each /dev/shm/$$-$each && echo same; rm -r /dev/shm/$$-$each; done
        ls -A
    """
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip("no mount namespace of its own here")
    why = "No space left on device"
    assert done.stderr == f"zaudit: {tmp_path}/report: {why}; the old one is unchanged\n"
    assert done.stdout.splitlines() == [
        f"code {EXIT_BROKE}",
        f"CannotWrite {tmp_path}/rec: {why}; the old one is unchanged",
        f"CannotWrite {tmp_path}/new: {why}",
        f"CannotWrite {tmp_path}/new.tar.gz: {why}",
        *("same", "same", "rec", "report"),
    ]


# -- folders of others ---------------------------------------------------------------------------------------------------


@as_root
def test_a_folder_of_another_is_written_into_and_nowhere_else(evil: Path, tmp_path: Path) -> None:
    for name in ("report", "rec.tar.gz", "rec"):
        replace(evil / name, b"x") if name == "report" else recording.write(NEW, evil / name)
        assert (evil / name).stat().st_uid == 0
        assert not (evil / name).stat().st_mode & 0o077
    assert listed(evil) == {"report", "rec.tar.gz", "rec"}


@as_root
@pytest.mark.parametrize("name", ["report", "rec.tar.gz", "rec"])
def test_a_link_of_another_on_the_way_is_not_followed(name: str, evil: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (evil / "way").symlink_to(precious)
    os.lchown(evil / "way", EVIL, EVIL)
    (evil / "deep").mkdir()
    for place in (evil / "way" / name, evil / "deep" / ".." / "way" / name, evil / "way" / ".." / "way" / name):
        for attempt in (lambda path: replace(path, b"x"), lambda path: recording.write(NEW, path), archive.possible):
            with pytest.raises(NoPlace, match="'way' is a link that another user could exchange; name where it leads"):
                attempt(place)
    assert listed(precious) == set()
    os.lchown(evil / "way", 0, 0)  # a link of root in a folder of another: he may rename it
    with pytest.raises(NoPlace, match="is a link that another user could exchange"):
        replace(evil / "way" / "report", b"x")


@as_root
@pytest.mark.parametrize(
    ("mode", "owner", "follows"),
    [(0o755, 0, True), (0o775, 0, False), (0o777, 0, False), (0o1777, 0, False), (0o1777, EVIL, False),
     (0o755, EVIL, False)],
)  # fmt: skip
def test_a_link_is_followed_where_only_root_put_it(mode: int, owner: int, follows: bool, tmp_path: Path) -> None:
    """Not in a folder like /tmp: a link of root's that lies in his own folder anybody can move there."""
    place, target = tmp_path / "place", tmp_path / "target"
    place.mkdir()
    target.mkdir()
    (place / "absolute").symlink_to(target)
    (place / "relative").symlink_to("../target/../target")
    os.chown(place, owner, owner)
    place.chmod(mode)
    for link in ("absolute", "relative"):
        if follows:
            replace(place / link / "report", link.encode())
            assert (target / "report").read_text() == link
        else:
            with pytest.raises(NoPlace):
                replace(place / link / "report", b"x")
    os.lchown(place / "absolute", EVIL, EVIL)
    with pytest.raises(NoPlace):
        replace(place / "absolute" / "report", b"x")


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(NoPlace, match="Too many levels of symbolic links"):
        replace(tmp_path / "a" / "report", b"x")


@as_root
def test_the_file_of_a_third_is_refused(evil: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    for name in ("report", "rec.tar.gz"):
        (shared / name).touch()
        os.chown(shared / name, EVIL, EVIL)
        with pytest.raises(NoPlace, match="belongs to another user than its folder; zaudit does not replace it"):
            replace(shared / name, b"x") if name == "report" else recording.write(NEW, shared / name)
        assert (shared / name).stat().st_size == 0
    (evil / "report").write_text("of the owner of the folder")
    os.chown(evil / "report", EVIL, EVIL)
    replace(evil / "report", b"x")
    assert (evil / "report").read_bytes() == b"x"


SWAP = """
import os, sys
os.chdir(sys.argv[1]); os.setgroups([]); os.setresgid(5000, 5000, 5000); os.setresuid(5000, 5000, 5000)
number = 0
print(flush=True)
while True:
    for name in os.listdir("."):
        if name.startswith(".") and not name.startswith(".taken"):
            try:
                os.rename(name, f".taken{number}")
                number += 1
                os.mkdir(name, 0o777)
                for each in ("out.tar.gz", "recording.json", "zpool_status.out"):
                    os.symlink(sys.argv[2], f"{name}/{each}")
            except OSError:
                pass
"""


@as_root
@pytest.mark.parametrize("name", ["report", "out.tar.gz", "out"])
def test_who_swaps_the_scratch_file_gains_nothing(name: str, evil: Path, tmp_path: Path) -> None:
    """The owner of the folder renames whatever appears there, and puts folders full of links in its place."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    precious.chmod(0o600)
    swapping = subprocess.Popen([sys.executable, "-c", SWAP, evil, precious], stdout=subprocess.PIPE)
    try:
        assert swapping.stdout
        swapping.stdout.readline()
        for _ in range(40):
            with suppress(NoPlace, CannotWrite, recording.RecordingError):
                replace(evil / name, b"x" * 100_000) if name == "report" else recording.write(NEW, evil / name)
            assert precious.read_text() == "precious"
            assert (precious.stat().st_uid, precious.stat().st_mode & 0o777) == (0, 0o600)
    finally:
        swapping.kill()
        swapping.communicate()
    for each in evil.rglob("*"):  # whatever is his now: what was written he cannot read
        found = each.lstat()
        assert found.st_uid == EVIL or not found.st_mode & 0o077 or stat.S_ISLNK(found.st_mode)


@as_root
@pytest.mark.parametrize("name", ["out.tar.gz", "out"])
def test_who_swaps_the_scratch_folder_between_two_members_gains_nothing(
    name: str, evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    real = recording.members
    swapped: list[str] = []

    def swapping(past: Recording) -> Iterator[tuple[str, bytes]]:
        for member, data in real(past):
            for scratch in [each for each in listed(evil) if each.startswith(".") and "taken" not in each]:
                (evil / scratch).rename(evil / f".taken{len(swapped)}")
                for place in (evil / scratch, evil / scratch / name):
                    place.mkdir()
                    (place / member).symlink_to(precious)
                swapped.append(scratch)
            yield member, data

    monkeypatch.setattr(recording, "members", swapping)
    with pytest.raises(CannotWrite, match="another process replaced it while it was written"):
        recording.write(NEW, evil / name)
    assert swapped
    assert precious.read_text() == "precious"


@as_root
def test_what_is_left_is_not_removed_where_another_may_have_named_it(evil: Path, tmp_path: Path) -> None:
    recording.write(OLD, evil / "rec")
    (evil / "rec").rename(evil / ".rec.zaudit-0123456789abcdef")  # which he may do with the folder of root
    recording.write(NEW, evil / "rec")
    assert recording.load(evil / ".rec.zaudit-0123456789abcdef") == OLD


# -- signals -------------------------------------------------------------------------------------------------------------

HOLD = """
import os, signal, sys, threading, time
from pathlib import Path
sys.path.insert(0, {root!r})
from auditor import interrupt
from auditor.host import user_files
from auditor.host.request import Capture
from auditor.recording import recording
from auditor.recording.recording import Recording
interrupt.install(os._exit)
place = Path({place!r})
def slow(name, data):
    print("writing", flush=True)
    time.sleep({seconds})
    yield name, data
real = recording.members
recording.members = lambda past: (each for name, data in real(past) for each in slow(name, data))
def fill(file):
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    if {taken}:
        other = lambda: signal.pthread_kill(threading.get_ident(), {taken})
        threading.Timer(0.5, other).start()
    time.sleep({seconds})
new = Recording(2.0, 0, ("tank",), commands={{("zpool", "status"): Capture(0, b"new")}})
user_files.replace(place, fill) if place.name == "report" else recording.write(new, place)
"""


def writer(place: Path, seconds: float = 30, taken: str = "0") -> subprocess.Popen[bytes]:
    """A process that has begun to write there. taken: a signal that a thread of its own takes soon after."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(root=str(ROOT), place=str(place), seconds=seconds, taken=taken)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout
    assert process.stdout.readline() == b"writing\n"
    return process


def put(place: Path) -> Callable[[], object]:
    """Something old, and what it looks like."""
    if place.name == "report":
        replace(place, b"old")
        return place.read_bytes
    recording.write(OLD, place)
    return lambda: recording.load(place)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("name", ["report", "rec.tar.gz", "rec"])
def test_a_signal_leaves_the_old_one_and_nothing_else(name: str, number: int, tmp_path: Path) -> None:
    place = tmp_path / name
    seen = put(place)
    before = seen()
    process = writer(place)
    assert len(listed(tmp_path)) == 2
    process.send_signal(number)
    process.wait(20)
    process.communicate()
    assert process.returncode
    assert listed(tmp_path) == {name}
    assert seen() == before


def test_a_signal_that_ends_no_system_call_is_heard(tmp_path: Path) -> None:
    """One that comes in the moment before a call begins is noted and ends nothing, as one that another thread takes."""
    place = tmp_path / "report"
    replace(place, b"old")
    process = writer(place, taken="signal.SIGTERM")
    assert process.wait(20) == 128 + signal.SIGTERM
    process.communicate()
    assert listed(tmp_path) == {"report"}
    assert place.read_bytes() == b"old"


def test_a_signal_just_before_the_end_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(type(interrupt.deferred)):  # type: ignore[misc]
        def __enter__(self) -> None:
            if listed(tmp_path):
                raise KeyboardInterrupt
            super().__enter__()

    monkeypatch.setattr(interrupt, "deferred", Late())
    with pytest.raises(KeyboardInterrupt):
        replace(tmp_path / "report", b"new")
    assert listed(tmp_path) == set()


@pytest.mark.parametrize("name", ["report", "rec.tar.gz", "rec"])
def test_what_a_killed_run_leaves_the_next_one_removes(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    seen = put(place)
    before = seen()
    process = writer(place)
    process.kill()
    process.communicate()
    (left,) = listed(tmp_path) - {name}
    assert left.startswith(f".{name}.zaudit-")
    assert seen() == before
    alive = writer(place)
    try:
        assert left not in listed(tmp_path)
        (mine,) = listed(tmp_path) - {name}
        put(place)
        assert listed(tmp_path) == {name, mine}  # somebody is still at it
    finally:
        alive.kill()
        alive.communicate()


@pytest.mark.slow
def test_a_check_that_is_ended_leaves_the_old_report_or_the_whole_new_one(tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-m",
        "auditor",
        "check",
        "--replay",
        str(HOSTS / CANONICAL),
        "-o",
        str(tmp_path / "report"),
    ]
    assert subprocess.run(argv, cwd=ROOT, stderr=subprocess.DEVNULL, check=False).returncode == 14
    new = (tmp_path / "report").read_bytes()
    replace(tmp_path / "report", b"old")
    ended = 0
    for i in range(8):
        process = subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.DEVNULL)
        time.sleep(0.05 + 0.07 * i)
        process.send_signal((signal.SIGTERM, signal.SIGINT, signal.SIGHUP)[i % 3])
        code = process.wait(20)
        ended += code != 14
        assert listed(tmp_path) == {"report"}
        assert (tmp_path / "report").read_bytes() in ((new,) if code == 14 else (b"old", new))
        replace(tmp_path / "report", b"old")
    assert ended


# -- what is read --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_fifo_is_no_recording(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rec.tar.gz")
    for words in (
        ("check", "--replay", tmp_path / "rec.tar.gz"),
        ("diff", tmp_path / "rec.tar.gz", tmp_path / "rec.tar.gz"),
        ("verify", "--replay", tmp_path / "rec.tar.gz"),
    ):
        done = zaudit(*words)
        assert (done.returncode, b"not a regular file or a folder" in done.stderr) == (EXIT_USAGE, True), done.stderr


def test_of_a_folder_plain_files_alone_are_read(tmp_path: Path) -> None:
    place = tmp_path / "rec"
    recording.write(NEW, place)
    os.mkfifo(place / "pipe")
    (place / "link").symlink_to("/etc/hostname")
    (place / "sub").mkdir()
    assert recording.load(place) == NEW
    with user_files.open_input(place) as descriptor:
        assert isinstance(descriptor, int)
        assert [user_files.open_member(name, descriptor) for name in ("pipe", "link", "sub")] == [None] * 3


def test_the_limit_of_a_plain_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    assert user_files.read(tmp_path / "file", 100) == b"x" * 100
    with pytest.raises(OSError, match="more than 0 KiB"):
        user_files.read(tmp_path / "file", 99)


def test_what_is_written_to_a_folder_goes_through_its_descriptor(tmp_path: Path) -> None:
    """The folder is exchanged while its descriptor is held: what follows lands in the one that was found."""
    (tmp_path / "place").mkdir()
    with held(str(tmp_path / "place")) as descriptor:
        (tmp_path / "place").rename(tmp_path / "moved")
        (tmp_path / "place").mkdir()
        with user_files.scratch("x", descriptor, user_files.create) as (name, _):
            assert listed(tmp_path / "moved") == {name}
    assert listed(tmp_path / "moved") == listed(tmp_path / "place") == set()
    assert trust.LINKS == 40


def test_an_error_of_what_writes_is_told_with_the_name(tmp_path: Path) -> None:
    def fails(file: BinaryIO) -> None:
        file.write(b"half")
        raise OSError(5, "Input/output error")

    with pytest.raises(CannotWrite, match=f"^{tmp_path}/report: Input/output error$"):
        replace(tmp_path / "report", fails)
    assert listed(tmp_path) == set()
