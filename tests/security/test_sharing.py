"""What a user has his processes say takes no room from what the processes of others say."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from auditor.host import owner, request
from auditor.host.live import LiveHost
from auditor.host.owner import BLOCK, ENDED, INSIDE, Accounts
from auditor.host.request import Read
from tests.security.fakes import Refused, server

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: processes of several users")
HIS, ANOTHERS = 5000, 5001
INSIDE_ONE = """
reads, writes = os.pipe()
if os.fork() == 0:
    os.read(reads, 1)
    for each in ("uid", "gid"):
        with open(f"/proc/{os.getppid()}/{each}_map", "w") as file:
            file.write("0 0 1000000")
    os._exit(0)
must(libc.unshare(0x10000000))
os.write(writes, b"x")
os.wait()
"""
LONG = ("x" * 100_000,) * 8


@pytest.mark.slow
def test_long_command_lines_hide_no_guest_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is shorter than what may be read of one."""
    monkeypatch.setattr(request, "MACHINE_BYTES", 4 * request.MIB)
    monkeypatch.setattr(owner, "SHARE", request.MIB)
    with contextlib.ExitStack() as all_:
        his = [all_.enter_context(server(*LONG, name="sleep", user=HIS)) for _ in range(7)]
        other = all_.enter_context(server("-name", "db1", name="qemu-system-x86_64", user=ANOTHERS))
        found = LiveHost(30).read(Read(("/proc/*/cmdline",)))
    assert found.text[f"/proc/{other}/cmdline"].startswith("guest db1\n")
    said = [found.errors.get(f"/proc/{each}/cmdline", "") for each in his]
    # Two have room, whichever: processes are read in the order of their names, and 100000 is before 99999.
    assert sorted(said) == ["", "", *["more than 1 MiB for one user"] * 5]


@pytest.fixture
def ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(owner, "SUBORDINATE", str(tmp_path / "subuid"))
    return tmp_path / "subuid"


def account(user: int, before: str = "") -> int:
    with server(name="sleep", user=user, before=before) as number:
        return Accounts().of(str(number))


def test_a_range_of_uids_is_one_user_and_a_container_another(ranges: Path) -> None:
    ranges.write_text(f"mallory:200000:65536\nroot:1000000:{10 * BLOCK}\n# no:range\nroot:x:1\n")
    assert account(0) == 0
    assert account(HIS) == HIS
    assert {account(200000), account(200007), account(265535)} == {200000}
    assert account(265536) == 265536
    assert account(1000000 + BLOCK - 1) == 1000000
    assert account(1000000 + BLOCK) == 1000000 + BLOCK
    assert Accounts().of("4194305") == ENDED  # more than there can be (man 5 proc_sys_kernel, pid_max)


def test_without_such_ranges_the_user_namespace_decides(ranges: Path) -> None:
    """Of those who may be many users in it."""
    try:
        found = [account(user, INSIDE_ONE) for user in (HIS, 600000, 600001, 0)]
    except Refused as refused:
        pytest.skip(f"no user namespaces here: {refused}")
    assert found == [HIS, INSIDE + 589824, INSIDE + 589824, INSIDE]
    assert account(600000) == 600000
    assert not ranges.exists()
