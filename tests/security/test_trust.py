"""The one judge of "nobody but root can have put it there": what he trusts, the kernel lets nobody else exchange or change."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from auditor.fleet.inputs import Journal
from auditor.host import process, trust, user_files
from auditor.verify import ledger
from auditor.verify.ledger import ROOT
from tests.fake import CommandLine
from tests.golden import CANONICAL, HOSTS

EVIL, FRIENDS = 5000, 5001  # a user, and a group of his that root let in by a list
AT_FDCWD, RENAME_EXCHANGE = -100, 2
LIBC = ctypes.CDLL(None, use_errno=True)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user: needs root")
with_lists = pytest.mark.skipif(not shutil.which("setfacl"), reason="needs setfacl (package acl)")
PROGRAM = "#!/bin/sh\nexit 0\n"


def by(user: int, group: int, groups: Sequence[int], act: Callable[[], object]) -> bool:
    """Whether another user, without a capability, could do something."""
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            os.umask(0)
            os.setgroups(groups)
            os.setresgid(group, group, group)
            os.setresuid(user, user, user)
            act()
            os._exit(0)
        os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def exchange(one: Path, other: Path) -> None:
    if LIBC.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE):
        raise OSError(ctypes.get_errno(), "renameat2")


def listed(path: Path, *entries: str) -> None:
    """Give a path an access list. Skips where its file system has none."""
    words = [word for entry in entries for word in ("-m", entry)]
    done = subprocess.run(["setfacl", *words, str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no access lists here: {done.stderr.strip()}")


def program(path: Path) -> Path:
    path.write_text(PROGRAM)
    path.chmod(0o755)
    return path


@pytest.fixture
def ground() -> Iterator[Path]:
    """A folder of root's that everybody reaches, and one of uid 5000 in it."""
    place = Path(tempfile.mkdtemp(prefix="zaudit-test-"))
    place.chmod(0o755)
    (place / "his").mkdir(mode=0o755)
    with suppress(PermissionError):
        os.chown(place / "his", EVIL, EVIL)
    before = os.umask(0o022)
    yield place
    os.umask(before)
    shutil.rmtree(place)


# -- the kernel as the witness -------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A folder, what lies in it, and who tries. moved: whether he moves something of root's there from his own folder."""

    mode: int
    owner: int
    entries: tuple[str, ...]
    kind: str
    own_mode: int
    groups: tuple[int, ...]
    moved: bool


LISTS = ((), (f"u:{EVIL}:rwx",), (f"g:{FRIENDS}:rwx",), (f"u:{EVIL}:rwx", "m::rx"), (f"u:{EVIL}:rx",))
CASES = [
    *map(Case._make, product((0o755, 0o775, 0o757, 0o1775, 0o1777), (0, EVIL), ((),), ("file", "folder", "link"),
                             (0o755, 0o775, 0o777), ((), (0,)), (False, True))),
    *map(Case._make, product((0o755, 0o1755), (0,), LISTS, ("file", "folder", "link"), (0o755,), ((), (0, FRIENDS)),
                             (False, True))),
]  # fmt: skip


def lay_out(case: Case, place: Path) -> Path:
    """What is asked about; where it is to be moved there, it lies in his own folder yet."""
    place.mkdir(parents=True)
    target, his = program(place.with_name("target")), place.with_name("his")
    his.mkdir()
    os.chown(his, EVIL, EVIL)
    at = (his if case.moved else place) / "entry"
    match case.kind:
        case "file":
            program(at).chmod(case.own_mode)
        case "folder":
            at.mkdir()
            at.chmod(case.own_mode)
        case _:
            at.symlink_to(target)
    os.chown(place, case.owner, 0 if case.owner == 0 else EVIL)
    place.chmod(case.mode)
    if case.entries:
        listed(place, *case.entries)
    return at


def attack(place: Path, at: Path, moved: bool) -> None:
    """Everything that a user can do to a name."""
    entry, mine = place / "entry", place.with_name("his") / "mine"
    moves: list[Callable[[], object]] = [lambda: at.rename(entry), lambda: os.link(at, entry, follow_symlinks=False)]
    steps: list[Callable[[], object]] = [
        *(moves if moved else ()),
        lambda: program(mine),
        lambda: exchange(mine, entry),
        lambda: mine.rename(entry),
        lambda: entry.rename(place / "away"),
        entry.unlink,
        entry.rmdir,
        lambda: entry.symlink_to("/etc/passwd"),
        lambda: (entry / "more").touch(),
        lambda: entry.chmod(0o777),
        lambda: entry.open("a").write("evil") if entry.is_file() else None,
    ]
    for step in steps:
        with suppress(OSError):
            step()


def state(path: Path) -> tuple[object, ...] | None:
    """What is under a name, as far as a judge may rely on it."""
    try:
        found = path.lstat()
        content = sorted(os.listdir(path)) if path.is_dir() else path.read_bytes()
        return found.st_ino, found.st_mode, found.st_uid, content
    except OSError:
        return None


def trusted(path: Path) -> bool:
    try:
        os.close(trust.locate(str(path))[0])
    except OSError:
        return False
    return True


def steady(path: Path) -> bool:
    """Whether it lies where it was put; what is in it may be anybody's."""
    with suppress(OSError):
        return bool(trust.resolve(str(path)))
    return False


@as_root
@with_lists
def test_what_is_trusted_nobody_else_can_put_there_exchange_or_change(ground: Path) -> None:
    """Each case has a ground, and who attacks with the same groups is one process: to copy this one takes long."""
    places = [ground / str(number) / "place" for number in range(len(CASES))]
    here = list(
        zip(CASES, places, [lay_out(case, place) for case, place in zip(CASES, places, strict=True)], strict=True)
    )
    before = [(trusted(place / "entry"), steady(place / "entry"), state(place / "entry")) for place in places]
    for groups in {case.groups for case in CASES}:
        mine = [(place, at, case.moved) for case, place, at in here if case.groups == groups]
        assert by(EVIL, EVIL, groups, lambda mine=mine: [attack(*each) for each in mine])  # type: ignore[misc,func-returns-value]
    wrong, yes, changes = [], 0, 0
    for case, place, (believed, stays, was) in zip(CASES, places, before, strict=True):
        entry, after = place / "entry", state(place / "entry")
        changed, moved = after != was, (after or (0,))[0] != (was or (0,))[0]
        # what he has put there is judged as it lies there now
        if (changed and (believed or trusted(entry))) or (moved and (stays or steady(entry))):
            wrong.append(case)
        yes, changes = yes + believed, changes + changed
    assert not wrong, f"{len(wrong)} of {len(CASES)}: {wrong[:5]}"
    assert yes > 20, "who trusts nothing proves nothing"
    assert changes > 100, "who changes nothing neither"


@as_root
@with_lists
@pytest.mark.parametrize(
    ("mode", "entry", "trusts"),
    [(0o755, "", True), (0o755, f"u:{EVIL}:rwx", False), (0o755, f"g:{FRIENDS}:rwx", False), (0o755, f"u:{EVIL}:rx", True),
     (0o775, "", False), (0o1775, "", False)],
)  # fmt: skip
def test_a_list_or_group_0_in_a_folder(mode: int, entry: str, trusts: bool, ground: Path) -> None:
    """As `setfacl -m g:dba:rwx /etc/zaudit` makes it, and as images of containers give folders to group 0."""
    place = ground / "place"
    place.mkdir()
    hook = program(place / "alert")
    place.chmod(mode)
    if entry:
        listed(place, entry)
    assert trusted(hook) is trusts
    assert (process.refusal(str(hook)) == "") is trusts
    assert (process.find_program(("alert",), (str(place),))[1] == "") is trusts
    if mode == 0o1775:  # a folder of root's stays where it is, as in the store of Nix
        (place / "within").mkdir()
        program(place / "within" / "alert")
        assert trusted(place / "within" / "alert")


@as_root
@pytest.mark.parametrize("name", trust.NFS4_LISTS)
def test_a_list_that_the_mode_does_not_show(name: str, ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An NFSv4 list, as TrueNAS has it; one that cannot be asked for may be there."""
    hook = program(ground / "alert")
    assert trusted(hook)

    def answer(code: int) -> Callable[..., bytes]:
        def asked(path: str, of: str, **how: object) -> bytes:
            if (path, of) != (str(ground), name):
                raise OSError(errno.EOPNOTSUPP, "not supported")
            if code:
                raise OSError(code, os.strerror(code))
            return b"\0" * 8

        return asked

    for code, trusts in ((0, False), (errno.EACCES, False), (errno.ENODATA, True), (errno.EOPNOTSUPP, True)):
        monkeypatch.setattr(os, "getxattr", answer(code))
        assert trusted(hook) is trusts, errno.errorcode.get(code, "has one")
    monkeypatch.setattr(os, "getxattr", answer(0))
    assert f"{ground} has an NFSv4 access list" in process.refusal(str(hook))


# -- a file system that a user serves --------------------------------------------------------------------------------------


def mounted(node: int, kind: str, options: str) -> str:
    """mountinfo, as if what a descriptor holds were in a file system of another kind; of none: as if it were not mounted."""
    lines = Path("/proc/self/fdinfo", str(node)).read_text(encoding="ascii").splitlines()
    number = next(line.split()[1] for line in lines if line.startswith("mnt_id:"))
    others = [
        line for line in Path(trust.MOUNTS).read_text(encoding="utf-8").splitlines(True) if line.split()[0] != number
    ]
    own = f"{number} 1 0:99 / /x rw,nosuid,nodev shared:7 - {kind} any\\040-\\040source {options}\n"
    return "".join([*others, own if kind else ""])


@pytest.fixture
def apart() -> Iterator[Path]:
    """A program in a file system that is not that of /."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        if os.stat(place).st_dev == os.stat("/").st_dev:
            pytest.skip("/dev/shm is no file system of its own here")
        yield program(Path(place, "alert"))


@pytest.mark.parametrize(
    ("kind", "options", "trusts"),
    [
        ("tmpfs", "rw,user_id=5000", True),
        ("virtiofs", "rw", True),
        ("fuse", "rw,user_id=5000,group_id=5000,allow_other", False),
        ("fuse.sshfs", "rw,user_id=5000,group_id=0,allow_other", False),
        ("fuseblk", "rw,user_id=5000,group_id=0,allow_other,blksize=4096", False),
        ("fuse", "rw,xuser_id=0,user_id=5000,group_id=0", False),
        ("fuse", "rw,group_id=0", False),
        ("fuse.s3fs", "rw,user_id=0,group_id=0,allow_other", True),
        ("fuse", f"rw,user_id={os.geteuid()},group_id=0", True),
        ("", "", False),  # it was unmounted meanwhile
    ],
)
def test_what_a_file_system_of_another_user_claims_is_not_believed(
    kind: str, options: str, trusts: bool, apart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As his process serves it, it says of a file what he likes: that it is root's, too."""
    apart.chmod(0o700)
    node = os.open(apart, os.O_PATH)
    try:
        table = tmp_path / "mountinfo"
        table.write_text(mounted(node, kind, options), encoding="utf-8")
        assert trusted(apart)
        monkeypatch.setattr(trust, "MOUNTS", str(table))
        assert trusted(apart) is trusts
        assert (process.refusal(str(apart)) == "") is trusts
        assert trust.private(node) is trusts
        assert (trust.fault(node, str(apart)) == "") is trusts
        (apart.parent / "link").symlink_to(tmp_path)
        if trusts:
            user_files.replace(apart.parent / "link" / "report", b"x")
        else:
            with pytest.raises(trust.NoPlace, match=r"is in (a file system \(FUSE\) of uid|no file system)"):
                user_files.replace(apart.parent / "link" / "report", b"x")
    finally:
        os.close(node)


SERVE = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
device = os.open("/dev/fuse", os.O_RDWR)
how = f"fd={device},rootmode=40000,user_id={sys.argv[2]},group_id=0,allow_other"
if libc.mount(b"fuse", sys.argv[1].encode(), b"fuse", 6, how.encode()):
    sys.exit(os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
while True:
    try:
        asked = os.read(device, 1 << 20)
    except OSError:
        break
    _, what, number, node = struct.unpack("<IIQQ", asked[:24])
    if what not in (26, 38):  # INIT and DESTROY ask nothing of the user
        print(what, flush=True)
    kind = 0o40755 if node == 1 and what == 3 else 0o100755
    inode = 1 if kind == 0o40755 else 2
    attributes = struct.pack("<6Q10I", inode, 17, 0, 0, 0, 0, 0, 0, 0, kind, 2, 0, 0, 0, 4096, 0)  # of root
    answers = {
        26: struct.pack("<6I", 7, 31, 0, 0, 0, 4096),  # INIT
        3: struct.pack("<QII", 0, 0, 0) + attributes,  # GETATTR
        1: struct.pack("<4QII", 2, 0, 0, 0, 0, 0) + attributes,  # LOOKUP
    }
    if what in (2, 42):  # FORGET
        continue
    answer = answers.get(what)
    os.write(device, struct.pack("<IiQ", 16 + len(answer or b""), 0 if answer else -38, number) + (answer or b""))
"""


@contextmanager
def served(place: Path, user: int, asked: list[int]) -> Iterator[None]:
    """A file system of FUSE there, which root may enter. asked: gets what the kernel asked of the user, by the numbers of
    linux/fuse.h. Skips where there is none."""
    words = [sys.executable, "-c", SERVE, str(place), str(user)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout
        assert server.stderr
        if not server.stdout.readline():
            pytest.skip(f"no FUSE here: {server.stderr.read().strip()[-200:]}")
        try:
            yield
        finally:
            LIBC.umount2(os.fsencode(place), 2)  # MNT_DETACH
            server.kill()
            asked += map(int, server.stdout.read().split())


@as_root
@pytest.mark.parametrize(("user", "trusts"), [(EVIL, False), (0, True)])
def test_the_program_of_a_file_system_of_another_user_is_not_run(user: int, trusts: bool, ground: Path) -> None:
    place = ground / "mount"
    place.mkdir(mode=0o755)
    asked: list[int] = []
    with served(place, user, asked):
        assert (process.refusal(str(place / "alert")) == "") is trusts
        assert trusted(place) is trusts
        if not trusts:
            assert f"(FUSE) of uid {user}" in process.refusal(str(place / "alert"))
    assert bool(asked) is trusts


# -- an ordinary user ----------------------------------------------------------------------------------------------------


def test_what_the_own_group_of_a_user_may_write_is_his(tmp_path: Path) -> None:
    """As umask 0002 makes it where each user has a group of his own. Root has no such group."""
    home = tmp_path / "home"
    home.mkdir()
    hook = program(home / "alert")
    for path, mode in ((home, 0o775), (hook, 0o775)):
        os.chown(path, -1, os.getegid())
        path.chmod(mode)
    assert trusted(hook) is (os.geteuid() != 0)
    hook.chmod(0o777)
    assert not trusted(hook)


@as_root
@pytest.mark.parametrize(
    ("group", "mode", "trusts"), [(EVIL, 0o775, True), (FRIENDS, 0o775, False), (0, 0o775, False), (EVIL, 0o777, False)]
)
def test_another_group_is_not(group: int, mode: int, trusts: bool, ground: Path) -> None:
    hook = program(ground / "his" / "alert")
    os.chown(hook, EVIL, EVIL)
    os.chown(ground / "his", EVIL, group)
    (ground / "his").chmod(mode)

    def ask() -> None:
        assert trusted(hook)

    assert by(EVIL, EVIL, (), ask) is trusts


# -- who asks ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def through_another(ground: Path) -> Path:
    """A link of root's that leads through a folder of somebody else to a program of root's."""
    (ground / "his" / "mid").symlink_to("/usr/bin/true")
    (ground / "name").symlink_to(ground / "his" / "mid")
    return ground / "name"


@as_root
def test_nothing_behind_a_link_of_another_is_run_or_read(through_another: Path, ground: Path) -> None:
    assert "another user could have put it there" in process.refusal(str(through_another))
    assert "another user could have put it there" in process.find_program(("name",), (str(ground),))[1]
    with pytest.raises(trust.Exchangeable, match="belongs to uid 5000"):
        user_files.read(through_another, 1 << 20, trusted=True)
    with pytest.raises(trust.Exchangeable, match="belongs to uid 5000"):
        user_files.list_trusted(ground / "his", ".toml", 9)
    (ground / "own").symlink_to("/usr/bin/true")
    assert process.refusal(str(ground / "own")) == ""
    assert process.find_program(("own",), (str(ground),)) == (f"{ground}/own", "")  # by its own name: it may look at it


@as_root
def test_a_link_below_a_folder_of_another_is_not_followed_though_it_is_roots(ground: Path) -> None:
    """He chooses which folder of root's has the name."""
    (ground / "his" / "of-root").mkdir()
    (ground / "precious").mkdir()
    (ground / "his" / "of-root" / "link").symlink_to(ground / "precious")
    for place in ("his/of-root/link", "his/of-root/../of-root/link"):
        with pytest.raises(trust.NoPlace, match="'link' is a link that another user could exchange"):
            user_files.replace(ground / place / "report", b"x")
    here = os.getcwd()
    os.chdir(ground / "his" / "of-root")
    try:
        with pytest.raises(trust.NoPlace, match="'link' is a link that another user could exchange"):
            user_files.replace(Path("link/report"), b"x")
        user_files.replace(Path("report"), b"x")
        os.chdir(ground)
        (ground / "way").symlink_to("precious")
        user_files.replace(Path("way/report"), b"x")
    finally:
        os.chdir(here)
    assert [each.name for each in (ground / "precious").iterdir()] == ["report"]


@as_root
@with_lists
def test_no_ledger_and_no_place_of_root_where_a_list_lets_others_in(
    ground: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = ground / "state"
    monkeypatch.setattr(ledger, "name", lambda: state)
    assert ledger.folder() == state
    listed(state, f"u:{EVIL}:rwx")
    with pytest.raises(Exception, match=r"another user could have put it there: .*/state can be written by others"):
        ledger.folder()


@as_root
def test_no_program_that_others_could_change_is_found_by_whoever_starts_it(
    ground: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """setpriv would look for a bare name in PATH."""
    (ground / "bin").mkdir()
    (ground / "bin" / "setpriv").symlink_to(str(shutil.which("setpriv")))
    (ground / "bin" / "rm").write_text(f"#!/bin/sh\ntouch {ground}/ran\n")
    (ground / "bin" / "rm").chmod(0o757)
    monkeypatch.setattr(ledger, "PATH", (str(ground / "bin"),))
    monkeypatch.setattr(ledger, "ENVIRONMENT", {"PATH": str(ground / "bin")})
    descriptor = os.open(ground, os.O_RDONLY)
    try:
        code, said = ledger.act(ROOT, descriptor, ("rm", "x"))
    finally:
        os.close(descriptor)
    assert (code, "another user could have put it there" in said) == (127, True)
    assert not (ground / "ran").exists()


FLIP = """
import ctypes, os, sys
place, libc = sys.argv[1], ctypes.CDLL(None)
os.setgroups([]); os.setresgid(5000, 5000, 5000); os.setresuid(5000, 5000, 5000)
with open(f"{place}/mine", "w") as file:
    file.write(f"#!/bin/sh\\necho $(id -u) >>{place}/ran\\n")
os.chmod(f"{place}/mine", 0o755)
print(flush=True)
while True:
    libc.renameat2(-100, f"{place}/mine".encode(), -100, f"{place}/alert".encode(), 2)
"""


@pytest.mark.slow
@as_root
@with_lists
def test_who_flips_two_names_gains_nothing(zaudit: CommandLine, ground: Path) -> None:
    """`zaudit alert --hook` of root, while uid 5000 exchanges the hook, which a list lets him, as fast as he can."""
    (ground / "reports").mkdir()
    report = ground / "reports" / "report.json"
    zaudit("check", "--replay", HOSTS / CANONICAL, "--format", "json", "-o", report)
    place = ground / "etc"
    place.mkdir()
    program(place / "alert")
    listed(place, f"u:{EVIL}:rwx")
    flipping = subprocess.Popen([sys.executable, "-c", FLIP, str(place)], stdout=subprocess.PIPE)
    try:
        assert flipping.stdout
        flipping.stdout.readline()
        seen = set()
        for _ in range(30):
            seen.add(os.lstat(place / "alert").st_uid)
            done = zaudit("alert", report, "--hook", place / "alert")
            assert (done.code, "another user could have put it there" in done.err) == (1, True)
            time.sleep(0.001)
    finally:
        flipping.kill()
        flipping.communicate()
    assert seen == {0, EVIL}, "he did exchange it"
    assert not (place / "ran").exists()


@as_root
def test_a_report_or_what_was_reported_of_another_is_not_believed(zaudit: CommandLine, ground: Path) -> None:
    place = ground / "reports"
    place.mkdir()
    hook = program(ground / "alert")
    hook.write_text('#!/bin/sh\ncp "$1" "$0.got"\n')
    report = place / "report.json"
    zaudit("check", "--replay", HOSTS / CANONICAL, "--format", "json", "-o", report)
    (place / "told.json").write_bytes(report.read_bytes())
    assert zaudit("alert", report, "--hook", hook).out == ""
    (place / "told.json").chmod(0o666)
    assert "told: " in zaudit("alert", report, "--hook", hook).out
    os.chown(report, EVIL, EVIL)
    assert "no report: " in zaudit("alert", report, "--hook", hook).out


# -- what zaudit makes in a folder with a default list -------------------------------------------------------------------


@as_root
@with_lists
def test_a_default_list_opens_nothing_that_zaudit_makes(ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a folder has one, no umask applies; the mode that a file is made with bounds what the list gives. (man 5 acl)"""
    place = ground / "place"
    place.mkdir()
    listed(place, f"u:{EVIL}:rwx", f"d:u:{EVIL}:rwx", "d:o::rwx")
    os.umask(0)
    monkeypatch.setattr(ledger, "name", lambda: ground / "state")
    (ground / "state").mkdir(mode=0o700)
    listed(ground / "state", f"d:u:{EVIL}:rwx", "d:o::rwx")
    user_files.replace(place / "report", b"x")
    Journal(place / "rows.part", "").__exit__(None, None, None)
    with trust.held(str(place / "new" / "folder"), make=True):
        pass
    ledger.record(ledger.new("directory", "/nowhere", "tank/db", "0" * 16, ledger.ROOT))
    (ground / "state").chmod(0o755)
    made = [place / "report", place / "rows.part", place / "new", ground / "state" / f"place-{'0' * 16}.json"]
    plain = place / "by-another-program"
    plain.touch(mode=0o666)
    for path in made:
        flags = os.O_RDONLY | (os.O_DIRECTORY if path.is_dir() else 0)
        assert not by(EVIL, EVIL, (), lambda: os.close(os.open(path, flags))), path  # noqa: B023
        assert not by(EVIL, EVIL, (), lambda: os.close(os.open(path, os.O_WRONLY))), path  # noqa: B023
    assert by(EVIL, EVIL, (), lambda: os.close(os.open(plain, os.O_WRONLY))), "the list is there"
