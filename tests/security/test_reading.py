"""What a process names is read with its own rights: nobody reads a file of the host through zaudit that he could not read.

Each attack is made by a process of a user without rights, and looked for in what is kept of its files.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.databases import servers, settings
from auditor.facts import Facts, Subject
from auditor.host import owner, request
from auditor.host.children import others
from auditor.host.children import reader as children_reader
from auditor.host.children.reader import BARRED
from auditor.host.live import LiveHost, read_files
from auditor.host.request import Files, Read
from tests.security.fakes import USER, Refused, folder, server, started

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of two users")
SECRET = "SECRET-of-root"
TEXT = f"storage:\n  words:\n    {SECRET}\n"


@pytest.fixture
def his() -> Iterator[Path]:
    """A folder of the hostile user."""
    with folder() as place:
        yield place


@pytest.fixture
def secret(his: Path) -> Path:
    """A file that only root may read, in a folder of root that nobody else may enter."""
    shut = his.parent / "root"
    shut.mkdir(mode=0o700)
    path = shut / "secret.yml"
    path.write_text(TEXT)
    path.chmod(0o600)
    return path


def read(*patterns: str, owner: str = "") -> Files:
    return LiveHost(20).read(Read(patterns, owner))


def asked(number: int) -> Files:
    """All that is kept of a process called mongod, as the collectors ask for it."""
    host, facts, subject = LiveHost(20), Facts(), Subject("database", f"mongodb {number}")
    question = servers.database_process.request(subject, facts)
    assert isinstance(question, Read)
    facts.put_all(list(servers.database_process.parse(host.read(question), subject)))
    question = settings.database_settings.request(subject, facts)
    assert isinstance(question, Read)
    assert any("/root/" in pattern for pattern in question.patterns)
    return host.read(question)


def nothing_of_the_secret(found: Files) -> None:
    assert SECRET not in repr(found)
    assert not any("/root/" in path for path in found.text), found
    assert any("/root/" in path for path in (*found.errors, *found.links)), found


# -- whose file it is -----------------------------------------------------------------------------------------------------


def test_a_process_names_its_own_file(his: Path) -> None:
    own = his / "mongod.conf"
    own.write_text("storage:\n  dbPath: /srv\n")
    own.chmod(0o600)
    os.chown(own, USER, USER)
    with server("--config", str(own)) as number:
        assert asked(number).text[f"/proc/{number}/root{own}"] == "#\nstorage.dbPath: /srv\n"


def test_a_process_names_a_file_of_root(secret: Path) -> None:
    with server("--config", str(secret)) as number:
        found = asked(number)
    nothing_of_the_secret(found)
    assert found.errors[f"/proc/{number}/root{secret}"] == f"permission denied for user {USER}"


def test_a_link_to_a_folder_of_root(his: Path, secret: Path) -> None:
    (secret.parent / "a.conf").write_text(f"[{SECRET}]\n")
    (his / "conf.d").symlink_to(secret.parent)
    with server(name="postgres") as number:
        found = read(f"/proc/{number}/root{his}/conf.d/*.conf")
    nothing_of_the_secret(found)
    assert not found.absent(f"/proc/{number}/root{his}/conf.d/*.conf")


@pytest.mark.parametrize("place", [".", ".."])  # a folder of his, and one of root as /tmp is
def test_a_link_to_a_file_of_root(his: Path, secret: Path, place: str) -> None:
    link = Path(os.path.normpath(his / place / "mongod.conf"))
    link.symlink_to(secret)
    os.chown(link, USER, USER, follow_symlinks=False)
    with server("--config", str(link)) as number:
        found = asked(number)
    nothing_of_the_secret(found)
    assert found.links[f"/proc/{number}/root{link}"] == str(secret)


CONTAINER = """
must(libc.unshare(0x20000))
must(libc.mount(None, b"/", None, (1 << 18) | (1 << 14), None))
os.chroot({root!r})
os.chdir("/")
"""
POWERLESS = "libc.prctl(38, 1, 0, 0, 0); libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())"


def test_an_absolute_link_in_a_container_leads_nowhere_else(his: Path, secret: Path) -> None:
    """Its root owns /etc there; the same path on the host is a secret."""
    top = his.parent / "container"
    (top / "etc").mkdir(parents=True)
    (top / "etc" / "mongod.conf").symlink_to(secret)
    with server(
        "--config", "/etc/mongod.conf", user=0, before=CONTAINER.format(root=str(top)), after=POWERLESS
    ) as number:
        nothing_of_the_secret(asked(number))
        inside = Path(f"{top}{secret}")
        inside.parent.mkdir(parents=True)
        inside.write_text("storage:\n  dbPath: /inside\n")
        assert "/inside" in asked(number).text[f"/proc/{number}/root/etc/mongod.conf"]
        inside.chmod(0)  # what its root could read with a capability
        nothing_of_the_secret(asked(number))


def test_a_way_up_from_a_container_leads_nowhere(his: Path, secret: Path) -> None:
    top = his.parent / "container"
    (top / "etc").mkdir(parents=True)
    (top / "etc" / "mongod.conf").symlink_to(f"{'../' * 20}{str(secret)[1:]}")
    with server(
        "--config", "/etc/mongod.conf", user=0, before=CONTAINER.format(root=str(top)), after=POWERLESS
    ) as number:
        nothing_of_the_secret(asked(number))


SYMLINK_MOUNTED = """
must(libc.unshare(0x10000000 | 0x20000))
open("/proc/self/uid_map", "w").write("{user} {user} 1")
must(libc.mount(None, b"/", None, (1 << 18) | (1 << 14), None))
tree = must(libc.syscall(428, -100, {link!r}, 1 | 0x80000 | 0x100))
must(libc.syscall(429, tree, b"", -100, {target!r}, 4))
"""


def test_a_link_mounted_over_a_file_of_root(his: Path, secret: Path) -> None:
    """In a user namespace of his own, which needs no right at all."""
    target = his.parent / "app.yml"
    target.write_text("a: b\n")
    (his / "link").symlink_to(secret)
    after = SYMLINK_MOUNTED.format(user=USER, link=str(his / "link").encode(), target=str(target).encode())
    try:
        with server("--config", str(target), after=after) as number:
            found = asked(number)
    except Refused as why:
        pytest.skip(f"a link cannot be mounted by a user here: {why}")
    nothing_of_the_secret(found)
    assert found.links == {**found.links, f"/proc/{number}/root{target}": str(secret)}


SWAP = """
libc.prctl(15, b"mongod", 0, 0, 0)
print("ready", flush=True)
while True:
    for _ in range(2000):
        libc.renameat2(-100, {first!r}, -100, {second!r}, 2)
"""


def swapping(first: Path, second: Path) -> str:
    """Python that exchanges two names without end."""
    return SWAP.format(first=str(first).encode(), second=str(second).encode())


@pytest.mark.slow
def test_a_folder_that_changes_while_it_is_looked_at(his: Path, secret: Path) -> None:
    mine, link = his / "d", his / "e"
    mine.mkdir()
    (mine / "secret.yml").symlink_to(secret)
    link.symlink_to(secret.parent)
    with server(after=swapping(mine, link)) as number:
        path = f"/proc/{number}/root{mine}/secret.yml"
        for _ in range(10):
            nothing_of_the_secret(read(*[path] * 500))


def privileged(tmp: Path) -> list[str]:
    """This Python, in a file that gives its caller the rights of root, as sudo and su are."""
    tool = tmp / "mongod"
    shutil.copy(os.path.realpath(sys.executable), tool)
    tool.chmod(0o4755)
    return [str(tool), "-c", "import os, time; os.setresuid(0, 0, 0); print('ready', flush=True); time.sleep(60)"]


def test_a_program_with_more_rights_than_its_user(his: Path, secret: Path) -> None:
    """sudo through a link called mongod: all its users are root, its arguments are not."""
    how = {"user": USER, "group": USER, "extra_groups": [], "stderr": subprocess.DEVNULL}
    try:
        with started(
            [*privileged(his.parent), "--config", str(secret)], env={"PYTHONHOME": sys.base_prefix}, **how
        ) as number:
            if not others.pairs(Path(f"/proc/{number}/auxv").read_bytes())[others.AT_SECURE]:
                pytest.skip("a file in /tmp gives no rights here (nosuid)")
            found = asked(number)
    except Refused as why:
        pytest.skip(f"this Python does not start from a copy: {why}")
    nothing_of_the_secret(found)
    assert "was started with more rights than its user has" in found.errors[f"/proc/{number}/root{secret}"]


@pytest.mark.parametrize("after", ["os.setresuid(0, {0}, 0)", "os.setresgid(0, {0}, 0)"])
def test_a_process_with_the_rights_of_two_users(secret: Path, after: str) -> None:
    with server("--config", str(secret), user=0, after=after.format(USER)) as number:
        found = asked(number)
    nothing_of_the_secret(found)
    assert "the rights of more than one user" in found.errors[f"/proc/{number}/root{secret}"]


def test_a_process_that_has_ended_is_not_another_one(his: Path) -> None:
    host = LiveHost(20)
    with server() as number:
        path = f"/proc/{number}/root{his}/my.cnf"
        assert host.read(Read((f"/proc/{number}/cmdline", path))).errors[path] == "no such file or directory"
    assert not host.read(Read((path,))).absent(path)
    assert not LiveHost(20).read(Read((path,))).absent(path)


# -- what it is -------------------------------------------------------------------------------------------------------------


def test_only_regular_files_are_opened(his: Path) -> None:
    own = his / "own.conf"
    own.write_text("fsync = off\n")
    os.mkfifo(his / "fifo.conf", 0o666)
    os.mknod(his / "device.conf", 0o666 | 0o020000, os.makedev(1, 5))  # /dev/zero
    (his / "zero.conf").symlink_to("/dev/zero")
    (his / "folder.conf").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(his / "socket.conf"))
    (his / "name of.conf").write_text("fsync = off\n")
    with server(name="postgres") as number:
        found = read(f"/proc/{number}/root{his}/*.conf")
    said = {Path(path).name: why for path, why in found.errors.items()}
    assert [Path(path).name for path in found.text] == ["own.conf"]
    assert said == {
        **dict.fromkeys(("fifo.conf", "device.conf", "zero.conf", "socket.conf"), "not a regular file"),
        "name of.conf": "its name is none that zaudit reads",
    }


@pytest.mark.slow
def test_a_fifo_that_takes_the_place_of_a_file_is_not_opened(his: Path) -> None:
    """Who opens it to write waits until somebody opens it to read."""
    plain, fifo = his / "mongod.conf", his / "fifo"
    plain.write_text("a: b\n")
    os.mkfifo(fifo, 0o666)
    held = os.open(fifo, os.O_PATH)
    opened = threading.Event()

    def write() -> None:
        os.close(os.open(f"/proc/self/fd/{held}", os.O_WRONLY))
        opened.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        with server(after=swapping(plain, fifo)) as number:
            found = [read(*[f"/proc/{number}/root{plain}"] * 500) for _ in range(10)]
        assert any(each.text for each in found)
        assert not opened.is_set()
    finally:
        os.close(os.open(f"/proc/self/fd/{held}", os.O_RDONLY | os.O_NONBLOCK))
        thread.join()
        os.close(held)


@pytest.mark.parametrize("target", ["/proc/1/root/etc/passwd", "/proc/self/fd/0", "/proc/self/exe", "/proc/version"])
def test_links_of_the_kernel_lead_nowhere(his: Path, target: str) -> None:
    (his / "mongod.conf").symlink_to(target)
    with server() as number:
        found = read(f"/proc/{number}/root{his}/mongod.conf")
    assert found.text == {}
    assert list(found.links.values()) == [target]


def test_below_a_root_directory_only_configuration_is_read(his: Path) -> None:
    for name in ("postgresql.conf", "my.cnf", "id_rsa", "shadow"):
        (his / name).write_text("fsync = off\n")
    (his / "pg_wal").symlink_to("/wal")
    with server(name="postgres") as number:
        here = f"/proc/{number}/root{his}"
        found = read(*(f"{here}/{name}" for name in ("postgresql.conf", "my.cnf", "id_rsa", "shadow", "pg_wal", "*")))
    assert sorted(found.text) == [f"{here}/my.cnf", f"{here}/postgresql.conf"]
    assert found.links == {f"{here}/pg_wal": "/wal"}
    assert found.errors == {f"{here}/pg_wal": "no such file or directory"}


@pytest.mark.parametrize("name", ["cmdline", "environ", "maps", "mountinfo"])
def test_the_kernel_says_of_a_process_what_root_may_know(name: str) -> None:
    with server() as number:
        found = read(*(f"/proc/{number}/{each}" for each in (name, "exe", "cwd")))
        assert found.links[f"/proc/{number}/exe"] == os.readlink(f"/proc/{number}/exe")
    assert list(found.text) == [f"/proc/{number}/{name}"]  # the program itself is not read
    assert found.errors == {}


# -- a server that does not run -----------------------------------------------------------------------------------------


def test_a_folder_says_on_which_device_it_is(his: Path, secret: Path) -> None:
    """Of a link the folder that it leads to, where that user may go there; of nothing else, and no file is opened for it."""
    (his / "log").symlink_to("/proc")
    (his / "shut").symlink_to(secret.parent / "data")
    (his / "file").write_text("")
    device = os.stat(his).st_dev
    with server() as number:
        root = f"/proc/{number}/root{his}"
        found = read(*(f"{root}{name}" for name in ("", "/log", "/shut", "/file")))
    kernel = os.stat("/proc").st_dev
    top = os.stat("/").st_dev
    assert found.devices == {
        f"/proc/{number}/root/": f"{os.major(top)}:{os.minor(top)}{BARRED}",  # which is told with any answer
        root: f"{os.major(device)}:{os.minor(device)}",
        f"{root}/log": f"{os.major(kernel)}:{os.minor(kernel)}{BARRED}",
    }
    assert found.links == {f"{root}/log": "/proc", f"{root}/shut": str(secret.parent / "data")}
    assert found.text == {}
    assert found.errors == {f"{root}/shut": f"permission denied for user {USER}"}


def test_a_folder_says_whether_a_process_may_write_there(his: Path) -> None:
    for name, mode, user in (
        ("own", 0o700, USER),
        ("roots", 0o755, 0),
        ("shared", 0o775, 0),
        ("everybodys", 0o777, 0),
    ):
        (his / name).mkdir()
        os.chown(his / name, user, USER)
        (his / name).chmod(mode)
    (his / "link").symlink_to(his / "roots")
    names = ("own", "roots", "shared", "everybodys", "link")
    with server() as number:
        found = read(*(f"/proc/{number}/root{his}/{name}" for name in names))
    told = {path.rpartition("/")[2]: said.endswith(BARRED) for path, said in found.devices.items()}
    assert told.pop("") is True  # the root directory
    assert sorted(told) == sorted(names)
    assert {name for name, barred in told.items() if barred} == {"roots", "link"}


def test_data_that_root_names_are_read_as_their_owner(his: Path, secret: Path) -> None:
    here = f"/proc/self/root{his}"
    (his / "postgresql.auto.conf").symlink_to(secret)
    own = his / "postgresql.conf"
    own.write_text("fsync = off\n")
    own.chmod(0o600)
    os.chown(own, USER, USER)
    found = read(f"{here}/postgresql.conf", f"{here}/postgresql.auto.conf", owner=str(his))
    assert found.text == {f"{here}/postgresql.conf": "fsync = off\n"}
    assert found.errors == {f"{here}/postgresql.auto.conf": f"permission denied for user {USER}"}


def test_a_hidden_file_of_an_included_folder_is_read(his: Path) -> None:
    (his / ".x.cnf").write_text("[mysqld]\nsync_binlog=0\n")
    place = f"/proc/self/root{his}"
    found = read(f"{place}/*.cnf", owner=str(his))
    assert found.text == {f"{place}/.x.cnf": "[mysqld]\nsync_binlog=0\n"}


def test_data_in_a_folder_of_root_is_read_as_nobody(his: Path, secret: Path) -> None:
    """Who may write above the folder that was named could put one of root in its place, with links in it."""
    (his / "data").symlink_to("/tmp")
    found = read(f"/proc/self/root{secret}", owner=str(his / "data"))
    nothing_of_the_secret(found)
    nothing_of_the_secret(read(f"/proc/self/root{secret}"))


def test_a_group_that_a_folder_was_given_by_the_one_above_is_not_taken(his: Path) -> None:
    os.chown(his, USER, 0)
    shared = his.parent / "shared.conf"
    shared.write_text(f"[{SECRET}]\n")
    shared.chmod(0o640)
    nothing_of_the_secret(read(f"/proc/self/root{shared}", owner=str(his)))


def test_data_that_is_not_there_is_no_empty_configuration(his: Path) -> None:
    path = "/proc/self/root/etc/my.cnf"
    found = read(path, owner=f"{his}/gone")
    assert not found.text
    assert not found.absent(path)


# -- without root -----------------------------------------------------------------------------------------------------------

AS_NOBODY = """
import json, os, sys
from auditor.host.live import read_files
from auditor.host.owner import script
script()
sys.executable = sys.argv[2]
os.setgroups([])
os.setresgid(*[int(sys.argv[1])] * 3)
os.setresuid(*[int(sys.argv[1])] * 3)
print(json.dumps(read_files(tuple(sys.argv[3:]))))
"""


def interpreter() -> str:
    """A Python that any user may start."""
    for path in (sys.executable, "/usr/bin/python3"):
        words = [path, "-I", "-S", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            if subprocess.run(words, user=USER, check=False, capture_output=True).returncode == 0:
                return path
        except OSError:
            continue
    pytest.skip("other users may start no Python here")


def test_when_a_file_was_changed_is_told_against_the_start_of_the_process(his: Path) -> None:
    """A time that its owner sets counts for nothing; a file that is taken away changes its folder."""
    (his / "d").mkdir()
    for name in ("old.cnf", "new.cnf", "d/gone.cnf"):
        (his / name).write_text("[mysqld]\n")
    (his / "link.cnf").symlink_to("new.cnf")
    time.sleep(0.1)
    with server() as number:
        time.sleep(0.1)
        (his / "new.cnf").write_text("[mysqld]\nsync_binlog = 1\n")
        os.utime(his / "new.cnf", (0, 0))
        (his / "d" / "gone.cnf").unlink()
        root = f"/proc/{number}/root{his}"
        found = read(*(f"{root}/{name}" for name in ("old.cnf", "new.cnf", "link.cnf", "d/*.cnf"))).changed
    late = {path.removeprefix(f"{root}/"): after > 0 for path, after in found.items()}
    assert late == {"old.cnf": False, "new.cnf": True, "link.cnf": True, "d": True}
    assert all(abs(after) < 60 for after in found.values())
    assert read(f"/proc/self/root{his}/*.cnf", owner=str(his)).changed == {}


def test_without_root_it_has_the_rights_of_who_asks(his: Path, secret: Path) -> None:
    (his / "my.cnf").write_text("[mysqld]\n")
    (his / "b.cnf").symlink_to(secret)
    with server() as number:
        mine, his_own = f"/proc/self/root{his}/*.cnf", f"/proc/{number}/root{his}/my.cnf"
        words = [
            sys.executable,
            "-c",
            AS_NOBODY,
            str(USER),
            interpreter(),
            mine,
            his_own,
            f"/proc/{os.getpid()}/root{his}/my.cnf",
        ]
        said = subprocess.run(words, capture_output=True, check=True, cwd=Path(__file__).parent.parent.parent)
    text, links, errors, devices, *_ = json.loads(said.stdout)
    assert devices == {}
    assert text == {f"/proc/self/root{his}/my.cnf": "[mysqld]\n", his_own: "[mysqld]\n"}
    assert links == {f"/proc/self/root{his}/b.cnf": str(secret)}
    assert errors == {
        f"/proc/self/root{his}/b.cnf": "permission denied",
        f"/proc/{os.getpid()}/root{his}/my.cnf": "not read: permission denied",
    }


# -- how much -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_linked_many_times_is_bounded(his: Path) -> None:
    """150 names of one file."""
    (his / "0.conf").write_bytes(b"fsync = off  # but for a comment that is long\n" * 20_000)
    for number in range(1, 150):
        os.link(his / "0.conf", his / f"{number}.conf")
    with server(name="postgres") as process:
        host, pattern = LiveHost(60), f"/proc/{process}/root{his}/*.conf"
        first, second, third = (host.read(Read((pattern,))) for _ in range(3))
        other = host.read(Read((f"/proc/{os.getpid()}/root{his}/1.conf",)))
    size = (his / "0.conf").stat().st_size
    assert len(first.text) == request.QUESTION_BYTES // size
    assert len(first.text) + len(second.text) + len(third.text) == request.USER_BYTES // size
    assert [len(each.errors) + len(each.text) for each in (first, second, third)] == [150] * 3
    assert set(first.errors.values()) == {"more than 4 MiB for one question"}
    assert set(third.errors.values()) == {"more than 8 MiB for one user"}
    assert len(other.text) == 1  # nobody uses up what another may have


@pytest.mark.slow
def test_folders_files_and_sizes_are_bounded(his: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many, few = his / "many", his / "few"
    for place, number in ((many, request.FOLDER_ENTRIES + 1), (few, request.QUESTION_FILES + 1)):
        place.mkdir()
        for each in range(number):
            (place / f"{each}.conf").touch()
    (his / "large.conf").write_bytes(bytes(request.OTHERS_FILE_BYTES + 1))
    with server(name="postgres") as process:
        here = f"/proc/{process}/root{his}"
        found = read(f"{here}/many/*.conf", f"{here}/large.conf", f"{here}/few/*.conf")
    assert found.errors[f"{here}/many/*.conf"] == "more than 10,000 entries in a folder"
    assert found.errors[f"{here}/large.conf"] == "more than 1 MiB"
    assert len(found.text) == request.QUESTION_FILES - 1
    assert [why for path, why in found.errors.items() if "/few/" in path] == ["more than 1,000 files"] * 2


def test_what_is_read_for_one_user_is_bounded_beside_each_other(his: Path) -> None:
    """Many questions are open at once, and each begins before another has said how much it read."""
    for number in range(3):
        (his / f"{number}.cnf").write_bytes(b"#\n" * (request.OTHERS_FILE_BYTES // 2))
    answers: list[list[owner.Answer] | str] = []
    with server(name="mysqld") as process:
        others = owner.Others()

        def ask() -> None:
            answers.append(others.read(str(process), [f"+{his}/*.cnf"], "", 30))

        threads = [threading.Thread(target=ask) for _ in range(5)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    size = sum(len(each.data) for said in answers if isinstance(said, list) for each in said if each.kind == "text")
    assert request.USER_BYTES // 2 <= size <= request.USER_BYTES
    assert all("more than 8 MiB for one user" in str(said) for said in answers if len(str(said)) < 10_000)


def test_a_reader_that_is_stopped_is_given_up(his: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its user may send it signals, as to all that is his."""
    script = owner.script()
    monkeypatch.setattr(owner, "script", lambda: f"import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n{script}")
    with server() as number:
        path = f"/proc/{number}/root{his}/my.cnf"
        assert read_files((path,), timeout_s=0.5).errors == {path: "no answer within 0.5 s"}


@pytest.mark.parametrize("when", ["", "reader.read"])
def test_a_reader_that_is_killed_has_read_nothing(his: Path, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (his / "my.cnf").write_text("[mysqld]\n")
    script = owner.script()
    kill = "import os\nos.kill(os.getpid(), 9)\n"
    changed = script.replace("frame(END", "os.kill(os.getpid(), 9); frame(END") if when else kill + script
    assert changed != script
    monkeypatch.setattr(owner, "script", lambda: changed)
    with server() as number:
        path = f"/proc/{number}/root{his}/my.cnf"
        found = read_files((path,))
    assert found.text == {}
    assert found.errors == {path: f"its reader ended early (signal {int(signal.SIGKILL)})"}


def wait_for(seen: Callable[[], Any], what: str) -> Any:
    """What is seen as soon as there is something; fails after ten seconds."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if found := seen():
            return found
        time.sleep(0.01)
    pytest.fail(f"{what} was not seen")


def child_of(process: int) -> str:
    return Path(f"/proc/{process}/task/{process}/children").read_text().strip()


def status(process: str, name: str) -> str:
    """One line of a process's status; empty where it has ended."""
    try:
        return Path(f"/proc/{process}/status").read_text().partition(f"{name}:\t")[2].partition("\n")[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def sizes(folder: Path) -> Files:
    """What is told of the files below two folders of a database's own."""
    with server(name="postgres") as number:
        found = LiveHost(20).read(Read((f"/proc/{number}/root{folder}/base/*/*",), blocks=True))
        parts = (found.text, found.links, found.errors)
        text, links, errors = (
            {path.replace(str(number), "PID"): said for path, said in each.items()} for each in parts
        )
        return Files(text, links, errors)


@pytest.fixture
def tables(his: Path) -> str:
    """Two of more than one block, one of less, in two folders; the pattern that names them."""
    for name, blocks in (("1/customers", 3), ("1/few", 0), ("2/orders", 2)):
        path = his / "base" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(100 + blocks * his.stat().st_blksize))
        path.chmod(0)
    return f"/proc/PID/root{his}/base/*/*"


def test_sizes_of_blocks_are_counted_and_nothing_else_is_told(his: Path, tables: str) -> None:
    (his / "base/PG_VERSION").touch()
    (his / "base/1/deeper").mkdir()
    os.mkfifo(his / "base/2/fifo")
    assert sizes(his) == Files({tables: f"0 1\n{his.stat().st_blksize} 2\n"}, {}, {})


@pytest.mark.slow
def test_of_a_large_database_all_sizes_are_told(his: Path, tables: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in range(request.FOLDER_ENTRIES):
        (his / f"base/1/{each}").touch()
    assert sizes(his) == Files({tables: f"0 {request.FOLDER_ENTRIES + 1}\n{his.stat().st_blksize} 2\n"}, {}, {})
    monkeypatch.setattr(request, "DATA_ENTRIES", request.FOLDER_ENTRIES)
    assert sizes(his) == Files({}, {}, {tables: "more than 10,000 entries in a folder"})


def test_where_files_may_be_that_are_not_seen_no_sizes_are_told(his: Path, tables: str) -> None:
    (his / "base/3").mkdir(mode=0o700)
    assert sizes(his) == Files({}, {}, {tables: "permission denied"})
    (his / "base/3").rmdir()
    (his / "base/2/moved").symlink_to("/etc/shadow")
    assert sizes(his) == Files({}, {}, {tables: "one of them is a symbolic link"})
    shutil.rmtree(his / "base")
    assert sizes(his) == Files({}, {}, {tables: "no such file"})


# -- the reader itself ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", [0, USER])
def test_the_reader_keeps_no_right(his: Path, user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says itself what it may do, where it would read the first file."""
    script = owner.script()
    before = script.replace("    identity = None", '    mine = os.open("/proc/self/status", 0)\\n    identity = None')
    changed = before.replace(
        "    for pattern in patterns",
        '    frame("text", "/my.cnf", os.pread(mine, 1 << 16, 0))\\n    for pattern in patterns',
    )
    assert script != before != changed
    monkeypatch.setattr(owner, "script", lambda: changed)
    monkeypatch.setattr("auditor.host.live.allowed_part", lambda path, text, wide: text)
    with server(user=user) as number:
        found = read_files((f"/proc/{number}/root{his}/my.cnf",))
    (said,) = found.text.values()
    status = dict(line.split(":\t", 1) for line in said.splitlines() if ":\t" in line)
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    assert status["Groups"].split() == []
    assert status["Uid"].split() == status["Gid"].split() == [str(user)] * 4


def test_a_reader_does_not_outlive_who_started_it(his: Path) -> None:
    code = """
import sys
from auditor.host import owner
from auditor.host.live import read_files
loop = "    for pattern in patterns"
script = owner.script().replace(loop, '    frame("text", "/x", b""), libc.pause()\\\\n' + loop)
owner.script = lambda: script
print("ready", flush=True)
read_files((sys.argv[1],))
"""
    with server() as number, started([sys.executable, "-c", code, f"/proc/{number}/root{his}/my.cnf"]) as asking:
        reader = wait_for(lambda: child_of(asking), "a child")
        wait_for(lambda: status(reader, "NoNewPrivs") == "1", "its start")
        os.kill(asking, signal.SIGKILL)
        wait_for(lambda: status(reader, "State")[:1] in ("", "Z", "X"), "its end")


def test_a_kernel_without_openat2_is_told(his: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = owner.script()
    changed = script.replace("OPENAT2 = 437", "OPENAT2 = 9999")
    assert changed != script
    monkeypatch.setattr(owner, "script", lambda: changed)
    with server() as number:
        path = f"/proc/{number}/root{his}/my.cnf"
        assert "no openat2 (Linux 5.6)" in read_files((path,)).errors[path]


@pytest.mark.parametrize("size", [8, 4])
@pytest.mark.parametrize(
    ("secure", "started", "as_started"),
    [
        (0, (5, 5, 6, 6), True),
        (0, (0, 0, 0, 0), True),  # a service that gave up the rights of root
        (1, (5, 5, 6, 6), True),  # capabilities of its file; or what SELinux does at the start of a service
        (1, (0, 0, 0, 0), True),
        (1, (7, 5, 6, 6), False),  # the file gave it the user
        (1, (5, 5, 7, 6), False),  # or the group
        (1, (7, 7, 7, 7), False),  # capabilities of its file, with which it took the user
    ],
)
def test_who_started_a_program(size: int, secure: int, started: tuple[int, ...], as_started: bool) -> None:
    pairs = [(33, 0x7FFC0000), (6, 4096), (3, 64), *zip((11, 12, 13, 14), started, strict=True), (23, secure), (0, 0)]
    vector = b"".join(word.to_bytes(size, sys.byteorder) for pair in pairs for word in pair)
    assert others.as_started(vector, 5, 6) is as_started
    with pytest.raises(others.Refused):
        others.pairs(vector[size:])


@pytest.mark.parametrize("error", [PermissionError(13, "denied"), OSError(5, "Input/output error")])
def test_a_folder_on_the_way_that_cannot_be_listed_is_told(tmp_path: Path, error: OSError) -> None:
    """What is read of the folders beside it is not all there is."""
    for name in ("one", "two"):
        (tmp_path / name / "in").mkdir(parents=True)
        (tmp_path / name / "in" / "list").write_text("kept\n")
    barred = str(tmp_path / "two")

    def opened(path: str, flags: int) -> int:
        if path == barred:
            raise error
        return os.open(path, os.O_PATH | os.O_CLOEXEC | flags)

    said: list[tuple[str, str]] = []
    reader = children_reader.Reader(
        opened, lambda kind, path, _: said.append((kind, path)),
        file_bytes=100, total_bytes=100, files=100, entries=100, over="",
    )  # fmt: skip
    reader.read(f"{tmp_path}/*/*/list", content=True)
    reader.close()
    assert sorted(said) == [
        (children_reader.ERROR, f"{barred}/*/list"),
        (children_reader.TEXT, f"{tmp_path}/one/in/list"),
    ]
    text, errors = (
        {path: "" for kind, path in said if kind == which} for which in (children_reader.TEXT, children_reader.ERROR)
    )
    assert not Files(text, errors=errors).complete(f"{tmp_path}/*/*/list")
