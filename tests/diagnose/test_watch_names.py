"""Who commits: from control groups, titles of processes and what the scheduler counts. Only what names nobody is kept."""

from __future__ import annotations

import pytest

from auditor.databases import configuration, postgres
from auditor.diagnose import watch
from auditor.diagnose.commits import by_thread
from auditor.diagnose.observation import TraceTexts
from auditor.host.live import allowed_part
from auditor.host.request import Capture, Files, Read, Run
from tests.diagnose.test_commits import THREADS

KERNELS = "PPid:\t2\nUid:\t0\t0\t0\t0\n"
CONTAINER = "0123456789abcdef" * 4
OF_ALICE = "/user.slice/user-1000.slice/user@1000.service"


@pytest.mark.parametrize(
    ("group", "says"),
    [
        (f"0::/system.slice/docker-{CONTAINER}.scope\n", "container 0123456789ab"),
        (f"0::/machine.slice/libpod-{CONTAINER}.scope/container\n", "container 0123456789ab"),
        (f"12:cpu:/docker/{CONTAINER}\n", "container 0123456789ab"),
        ("0::/lxc/104/ns/system.slice\n", "container 104"),
        ("0::/lxc.payload.db1/init.scope\n", "container db1"),
        ("0::/qemu.slice/104.scope\n", "guest 104"),
        ("0::/machine.slice/machine-qemu\\x2d3\\x2ddb1.scope/libvirt/emulator\n", "guest db1"),
        ("0::/system.slice/system-postgresql.slice/postgresql@17-main.service\n", ""),
        ("0::/system.slice/postgresql@17-main.service\n", "postgresql@17-main.service"),
        ("0::/user.slice/user-1000.slice\n", ""),
        # what somebody calls the groups inside of his own
        (f"0::{OF_ALICE}/system.slice/postgresql@17-main.service\n", ""),
        (f"0::{OF_ALICE}/x\u20280::/system.slice/postgresql@17-main.service\n", ""),
        (f"0::{OF_ALICE}/user.slice/libpod-{CONTAINER}.scope\n", "container 0123456789ab of user 1000"),
        (f"0::{OF_ALICE}/qemu.slice/104.scope\n", "guest 104 of user 1000"),
        (f"0::/lxc.payload.web/docker-{CONTAINER}.scope\n", "container web"),
        (f"0::/system.slice/web.service/docker-{CONTAINER}.scope\n", "web.service"),
        (f"0::/system.slice/docker-{CONTAINER}.scope/system.slice/sshd.service\n", "container 0123456789ab"),
        (f"2:cpu:/\n1:name=systemd:/docker/{CONTAINER}\n", "container 0123456789ab"),
        ("", ""),
    ],
)
def test_a_control_group_tells_the_container(group: str, says: str) -> None:
    assert watch.within(group) == says


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("postgres: walwriter \0\0\0", "walwriter"),
        ("postgres: 17/main: checkpointer \0", "checkpointer"),
        ("postgres: 17/main: startup recovering 0000\0", ""),
        ("postgres: alice payroll [local] COMMIT\0", ""),
        ("postgres: walwriter payroll 10.0.0.7(5432) idle\0", ""),
        ("/usr/lib/postgresql/17/bin/postgres\0-D\0/srv/pg\0", ""),
        ("backup --password=secret\0", ""),
    ],
)
def test_a_title_is_kept_where_it_names_nobody(line: str, says: str) -> None:
    told = configuration.command_line(line)
    assert postgres.task(told) == says
    assert configuration.command_line(told) == told
    assert not {"alice", "payroll", "secret"} & set(told.replace("=", " ").split())


class Answering:
    """A host with a few files."""

    now, euid, at_once = 0.0, 0, 1

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def run(self, request: Run) -> Capture:
        raise AssertionError(request)

    def read(self, request: Read) -> Files:
        from fnmatch import fnmatchcase

        plain = {each: self.files[each] for each in request.patterns if each in self.files}
        wide = [each for each in request.patterns if "*" in each]
        return Files(
            plain | {path: text for path, text in self.files.items() for each in wide if fnmatchcase(path, each)}
        )

    def realpath(self, path: str) -> str:
        raise AssertionError(path)

    def steady(self, path: str) -> str:
        raise AssertionError(path)


def test_what_the_scheduler_counted_of_threads_and_of_openzfs() -> None:
    names = {
        7: "z_wr_iss_h",
        8: "z_wr_int_h_0",
        9: "z_wr_iss",
        10: "z_null_int",
        11: "z_flush_iss",
        12: "z_wr_iss_hack x",
    }
    files = {f"/proc/{pid}/comm": f"{name}\n" for pid, name in names.items()}
    files |= {f"/proc/{pid}/status": KERNELS for pid in names}
    files |= {f"/proc/{pid}/cgroup": "0::/\n" if pid > 8 else "" for pid in names}  # empty: no hierarchy is mounted
    users = {
        13: ("Uid:\t26\t26\t26\t26\n", "0::/\n"),
        14: (KERNELS, "0::/lxc/104\n"),
        15: ("", ""),
        16: ("Uid:\t0\t0\t0\t0\n", "0::/\n"),
        **dict.fromkeys(range(1000, 1600), ("Uid:\t26\t26\t26\t26\n", "0::/user.slice\n")),
    }
    for pid, (whose, group) in users.items():  # processes that only have such a name
        files |= {f"/proc/{pid}/comm": "z_wr_iss_h\n", f"/proc/{pid}/status": whose, f"/proc/{pid}/cgroup": group}
    files = dict(sorted(files.items(), reverse=True))
    files |= {f"/proc/{pid}/task/{pid}/schedstat": "100 10 5\n" for pid in (*names, *users, 340)}
    began = watch._times(Answering(files))
    assert began[340] == (100, 10)
    files |= {f"/proc/{pid}/task/{pid}/schedstat": f"{100 + pid} 12 9\n" for pid in (*names, *users, 340)}
    ended = watch._times(Answering(files))
    assert watch._pipeline(Answering(files), began, ended) == sum(pid + 2 for pid in (7, 8, 10, 11))
    assert watch._pipeline(Answering({}), began, ended) is None
    assert watch._pipeline(Answering(files), ended, began) is None  # a thread that fell is another one now
    names_of = {each.pid: each.name for each in by_thread(THREADS).rows}
    files["/proc/340/cmdline"] = "postgres: walwriter"
    found = {each.pid: each for each in watch._processes(Answering(files), names_of, began, ended)}
    assert found[340] == (340, "python3", "walwriter", "", 2)
    assert found[236].waited is None  # it was not seen at both ends


def test_what_is_kept_of_a_thread_of_the_kernel() -> None:
    said = "Name:\tz_wr_iss_h\nPid:\t31\nPPid:\t{}\nUid:\t0\t0\t0\t0\nVmSize:\t1\n"
    assert (allowed_part("/proc/31/status", said.format(2)) or "").splitlines() == watch.OF_KTHREADD
    for other in ("1", "22", "2\x0b"):
        assert allowed_part("/proc/31/status", said.format(other)) == "Uid:\t0\t0\t0\t0\n"


def test_a_trace_that_cannot_be_read_leaves_the_counters() -> None:
    def gone(_ticks: object) -> TraceTexts:
        raise FileNotFoundError(2, "No such file or directory")

    assert watch._ended(gone, [], "") == (
        None,
        "the histograms of the kernel could not be read: no such file or directory",
    )
    assert watch._ended(None, [], "only root may trace") == (None, "only root may trace")
