"""``zaudit check`` and ``zaudit record`` change nothing: every system call of a whole run as root is judged by lists of what
is allowed (``make prove-read-only`` prints it). And the judge itself is shown what it must not let pass."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from auditor.host import builtin
from auditor.host.live import PATH, permitted
from auditor.host.process import Output, Total
from tests.security import namespaces, prove, strace
from tests.security.strace import Devices, Permitted

here = pytest.mark.skipif(bool(prove.missing()), reason=prove.missing() or "-")


@pytest.mark.slow
@here
@pytest.mark.parametrize(
    ("words", "name", "codes"),
    [
        (("check",), "report.txt", range(10, 15)),
        (("check", "tank", "--format", "json"), "report.json", range(10, 15)),
        (("record",), "recording.tar.gz", [0]),
        (("record", "--redact"), "folder", [0]),
    ],
)
def test_nothing_is_changed(tmp_path: Path, words: tuple[str, ...], name: str, codes: range) -> None:
    host = namespaces.lay_out(prove.RECORDED, tmp_path / "host")
    code, seen = prove.run(host, words, tmp_path / "run", name)
    assert seen.problems == []
    assert code in codes
    assert seen.executed["/usr/sbin/zpool"] > 3
    assert seen.executed["/usr/sbin/nvme"] > 3
    assert {path for _, path in seen.opened_for_writing} - {"/dev/null"} != set()  # the output was seen
    assert not seen.sockets
    readable = builtin.kmsg_answer(Output("", "", Total())).exit == 0
    assert seen.nodes["/dev/kmsg"] == (5 if readable else 0)
    output = tmp_path / "run" / "output" / name
    assert output.exists()
    if name.startswith("report"):
        assert "pg-fsync-off" in output.read_text()  # the files of somebody else were read


@pytest.mark.slow
@here
def test_nothing_is_changed_where_a_library_answers(tmp_path: Path) -> None:
    host = namespaces.lay_out(prove.RECORDED, tmp_path / "host")
    code, seen = prove.run(host, ("check",), tmp_path / "run", "report.txt", libudev=True)
    assert seen.problems == []
    assert code in range(10, 15)
    assert seen.executed["/usr/sbin/zpool"] > 3


PYTHON = (sys.executable, "-I", "-m", "auditor")
START = f'execve("{sys.executable}", ["{sys.executable}", "-I", "-m", "auditor", "check"], 0x7ff /* 3 vars */) = 0'
READER = f'execve("{sys.executable}", ["{sys.executable}", "-I", "-S", "-c", "..."], 0x7ff /* 3 vars */) = 0'
ZPOOL = 'execve("/usr/sbin/zpool", ["/usr/sbin/zpool", "list", "-Hp", "-o", "name"], 0x7ff /* 3 vars */) = 0'
FORK = "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD) = 12"


def judged(folder: Path, *lines: str, child: tuple[str, ...] = (), **more: object) -> list[str]:
    """The problems of a run of two processes, 11 and 12."""
    traced = folder / "traced"
    traced.mkdir(exist_ok=True)
    (traced / "calls.11").write_text("\n".join((START, *lines, "+++ exited with 0 +++")) + "\n")
    (traced / "calls.12").unlink(missing_ok=True)
    if child:
        (traced / "calls.12").write_text("\n".join(child) + "\n")
    return strace.read(strace.files(traced), Permitted(PYTHON, permitted, PATH, "/out", **more)).problems  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line",
    [
        'openat(AT_FDCWD</>, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3</etc/passwd>',
        'openat(AT_FDCWD</>, "/nowhere", O_RDONLY) = -1 ENOENT (No such file or directory)',
        'openat(AT_FDCWD</>, "/dev/null", O_RDWR|O_CLOEXEC) = 3</dev/null>',
        'openat(AT_FDCWD</>, "/dev/sda", O_RDONLY|O_NOFOLLOW|O_CLOEXEC|O_PATH) = 3</dev/sda>',
        'openat(AT_FDCWD</>, "/dev/disk/by-id", O_RDONLY|O_DIRECTORY) = 3</dev/disk/by-id>',
        'openat(AT_FDCWD</>, "/proc/self/fd/3", O_RDONLY|O_NOCTTY|O_NONBLOCK|O_CLOEXEC) = 4</dev/kmsg>',
        'openat(4</out>, ".report.zaudit-x", O_WRONLY|O_CREAT|O_EXCL|O_NOFOLLOW, 0600) = 3</out/.report.zaudit-x>',
        'renameat(4</out>, ".report.zaudit-x", 4</out>, "report") = 0',
        'unlink("/out/x") = 0',
        "ftruncate(3</out/x>, 0) = 0",
        "ioctl(1</dev/pts/0>, TCGETS, 0x7ffe) = -1 ENOTTY (Inappropriate ioctl for device)",
        "prctl(PR_SET_NAME, \"zaudit\") = 0",
        "--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=12, si_uid=0} ---",
        "pause( <unfinished ...>",
    ],
)  # fmt: skip
def test_what_is_allowed(tmp_path: Path, line: str) -> None:
    assert judged(tmp_path, line) == []
    assert judged(tmp_path, line, "exit(0 <detached ...>") == []


@pytest.mark.parametrize(
    "line",
    [
        'openat(AT_FDCWD</>, "/etc/passwd", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3</etc/passwd>',
        'openat(AT_FDCWD</>, "/etc/passwd", O_RDWR) = -1 EROFS (Read-only file system)',
        'openat(4</out>, "../etc/x", O_WRONLY|O_CREAT, 0644) = -1 ENOENT (No such file or directory)',
        'openat(AT_FDCWD</>, "/out/link", O_WRONLY) = 3</etc/passwd>',
        'openat2(4</out>, "x", {flags=O_RDWR|O_CREAT, mode=0600, resolve=RESOLVE_IN_ROOT}, 24) = 3</srv/x>',
        'open("/dev/sda", O_RDONLY|O_APPEND) = 3</dev/sda>',
        'openat(AT_FDCWD</>, "/dev/sda", O_RDONLY|O_CLOEXEC) = 3</dev/sda>',
        'openat(AT_FDCWD</>, "/proc/self/fd/3", O_RDONLY|O_CLOEXEC) = 4</dev/watchdog>',
        'openat(AT_FDCWD</>, "/dev/kmsg", O_WRONLY) = 3</dev/kmsg>',
        'creat("/tmp/x", 0600) = 3</tmp/x>',
        'openat(AT_FDCWD</>, "/tmp", O_RDONLY|O_TMPFILE, 0600) = 3</tmp/#1 (deleted)>',
        'rename("/out/x", "/etc/x") = 0',
        'renameat(4</out>, "x", AT_FDCWD</srv>, "x") = 0',
        'unlink("/etc/passwd") = 0',
        'unlink("x") = 0',
        "ftruncate(3</srv/x>, 0) = 0",
        'mkdir("/run/x", 0700) = 0',
        'symlink("/etc/shadow", "/out/x") = 0',
        'mknod("/out/x", S_IFIFO|0600) = 0',
        'chown("/out/x", 0, 0) = 0',
        'mount("a", "/b", "tmpfs", 0, NULL) = 0',
        "socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 3<UNIX:[1]>",
        "ioctl(3</dev/zfs>, _IOC(_IOC_NONE, 0x5a, 0x4, 0), 0x7ffe) = 0",
        "ioctl(3</dev/sda>, BLKDISCARD, [0, 4096]) = 0",
        "ioctl(0</dev/pts/0>, TIOCSTI, \"x\") = 0",
        "kill(1, SIGTERM) = 0",
        "kill(-1, SIGKILL) = 0",
        "setresuid(65534, 65534, 65534) = 0",
        "chroot(\".\") = 0",
        'init_module(0x7f, 12, "") = 0',
        "sync() = 0",
        'execve("/usr/sbin/zfs", ["zfs", "destroy", "tank"], 0x7ff /* 3 vars */) = 0',
        'execve("/srv/traps/zfs", ["zfs", "version"], 0x7ff /* 3 vars */) = -1 ENOENT (No such file or directory)',
        'execve("zfs", ["zfs", "version"], 0x7ff /* 3 vars */) = 0',
        'execve("/sbin/ldconfig", ["/sbin/ldconfig", "-p"], 0x7ff /* 3 vars */) = 0',
        'execve("/bin/sh", ["sh", "-c", "zfs list"], 0x7ff /* 3 vars */) = 0',
        "nobody_knows_this_call(1) = 0",
    ],
)  # fmt: skip
def test_what_is_not_allowed(tmp_path: Path, line: str) -> None:
    assert len(judged(tmp_path, line)) == 1


def test_the_reader_may_give_up_its_rights_and_start_nothing(tmp_path: Path) -> None:
    down = ("setns(3</proc/9/ns/mnt>, CLONE_NEWNS) = 0", "setresuid(5000, 5000, 5000) = 0", 'chroot(".") = 0')
    assert judged(tmp_path, FORK, child=(READER, *down)) == []
    assert len(judged(tmp_path, FORK, child=(READER, ZPOOL))) == 1
    assert len(judged(tmp_path, FORK, child=(READER, 'unlink("/srv/x") = 0'))) == 1


def test_what_a_tool_does_is_judged_as_well(tmp_path: Path) -> None:
    get, destroy = (f"ioctl(3</dev/zfs>, _IOC(_IOC_NONE, 0x5a, {number}, 0), 0x7ffe) = 0" for number in ("0x4", "0x17"))
    opened = 'openat(AT_FDCWD</>, "/dev/zfs", O_RDWR|O_EXCL|O_CLOEXEC) = 3</dev/zfs>'
    log = "ioctl(3</dev/zfs>, ZFS_IOC_LOG_HISTORY, 0x7ffe) = "
    node, request = re.compile("/dev/zfs"), re.compile(r"_IOC\(_IOC_NONE, 0x5a, 0x4, 0\)")
    devices = Devices(node, node, request, re.compile("ZFS_IOC_LOG_HISTORY"))
    refused = f"{log}-1 EPERM (Operation not permitted)"
    assert judged(tmp_path, FORK, child=(ZPOOL, opened, refused), devices=devices) == []
    assert len(judged(tmp_path, FORK, child=(ZPOOL, opened, f"{log}0"), devices=devices)) == 1
    assert judged(tmp_path, FORK, child=(ZPOOL, opened, get), devices=devices) == []
    assert len(judged(tmp_path, FORK, child=(ZPOOL, opened, destroy), devices=devices)) == 1
    assert len(judged(tmp_path, FORK, child=(ZPOOL, opened))) == 1
    assert len(judged(tmp_path, opened, devices=devices)) == 1  # zaudit itself has no business there
    assert len(judged(tmp_path, FORK, child=(ZPOOL, 'execve("/bin/sh", ["sh"], 0x7ff /* 3 vars */) = 0'))) == 1


def test_children_may_be_ended_and_nobody_else(tmp_path: Path) -> None:
    assert judged(tmp_path, FORK, "kill(-12, SIGKILL) = 0", child=(ZPOOL,)) == []
    assert len(judged(tmp_path, FORK, "kill(13, SIGKILL) = 0", child=(ZPOOL,))) == 1


def test_a_line_that_is_not_understood_and_a_trace_of_nothing_are_no_proof(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="what is this"):
        judged(tmp_path, "what is this")
    with pytest.raises(ValueError, match="traced nothing"):
        strace.read(strace.files(tmp_path / "empty"), Permitted(PYTHON, permitted, PATH))


def test_a_thread_killed_before_a_call_made_none(tmp_path: Path) -> None:
    killed = "???()                                   = ?"
    for line in (killed, f"{killed} <unavailable>"):
        assert judged(tmp_path, FORK, child=(ZPOOL, line, "+++ killed by SIGKILL +++")) == []
        assert judged(tmp_path, FORK, child=(ZPOOL, line)) == []
        with pytest.raises(ValueError, match=r"\?\?\?"):  # it went on: then nobody knows what it did
            judged(tmp_path, FORK, child=(ZPOOL, line, "getpid() = 12"))
    with pytest.raises(ValueError, match=r"\?\?\?"):
        judged(tmp_path, FORK, child=(ZPOOL, "???() = 0"))


def test_every_way_to_write_is_traced() -> None:
    quiet = set(strace.QUIET)
    judged_calls = strace.OPENS | strace.EXECS | strace.FORKS | strace.KILLS | strace.SOCKETS | strace.IN_THE_OUTPUT
    assert not quiet & (judged_calls | strace.STEPPING_DOWN | strace.HARMLESS | {"ioctl"})
    assert not strace.HARMLESS & (judged_calls | strace.STEPPING_DOWN)
