"""A user who lets wait whoever looks into his processes keeps zaudit from nothing but them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from auditor.databases import servers
from auditor.facts import HOST, Facts, Known
from auditor.host import owner
from auditor.host.live import LiveHost
from auditor.host.request import UNANSWERED, Files, Read
from auditor.sources import guests
from auditor.verify import execution
from tests import question
from tests.security import hanging
from tests.security.fakes import server
from tests.security.hanging import MEMORY, PROGRAM
from tests.security.test_reading import status, wait_for

pytestmark = pytest.mark.skipif(bool(hanging.missing()), reason=hanging.missing() or "nothing is missing")
HIS, ANOTHERS = 5000, 5001
TIMEOUT_S = 8.0


def read(*patterns: str) -> Files:
    return LiveHost(TIMEOUT_S).read(Read(patterns))


def guest() -> contextlib.AbstractContextManager[int]:
    """A virtual machine of another user, which began after the process that hangs."""
    words = ("-name", "db1", "-drive", "file=/dev/zd0,cache=unsafe")
    return server(*words, name="qemu-system-x86_64", user=ANOTHERS)


def facts_of(collector: object, found: Files) -> Facts:
    facts = Facts()
    facts.put_all(collector.parse(found, HOST))  # type: ignore[attr-defined]
    return facts


def test_who_holds_his_memory_hides_no_guest_of_another() -> None:
    with hanging.hanging(MEMORY, "sleep", HIS) as number, guest() as other:
        found = read(*question.patterns(guests.running))
        assert found.errors[f"/proc/{number}/cmdline"].startswith(UNANSWERED)
        assert [path for path in found.errors if "*" in path] == []
    lines = guests.command_lines(found)
    assert {(f"{number}", "(unread)"), (f"{other}", "db1")} <= {*lines.guests}
    assert {(f"{number}", "unsure", ""), (f"{other}", "drops", "/dev/zd0")} <= {*lines.disks}


@pytest.mark.parametrize("how", [MEMORY, PROGRAM], ids=["memory", "program"])
def test_who_lets_wait_hides_no_server_and_not_that_he_has_one(how: str) -> None:
    with hanging.hanging(how, "mongod", HIS) as number, server(name="postgres", user=ANOTHERS) as other:
        facts = facts_of(servers.database_processes, read("/proc/*/stat"))
        mine = read(*(f"/proc/{number}/{each}" for each in ("cmdline", "cwd", "environ", "exe", "maps")))
        theirs = read(*(f"/proc/{other}/{each}" for each in ("cmdline", "cwd", "environ", "exe", "maps")))
    found = facts.get(HOST, "database_processes")
    assert isinstance(found, Known)
    assert {f"mongodb {number}", f"postgres {other}"} <= {each.name for each in facts.subjects("database")}
    assert any(each.startswith(UNANSWERED) for each in mine.errors.values())
    assert not theirs.errors
    assert "cwd" in str(theirs.links)


def test_many_that_hang_have_the_time_of_one_user() -> None:
    """The rest of his is not asked any more; what others have is."""
    with contextlib.ExitStack() as all_:
        numbers = [all_.enter_context(hanging.hanging(MEMORY, "sleep", HIS)) for _ in range(5)]
        other = all_.enter_context(guest())
        found = read("/proc/*/cmdline")
    said = [found.errors[f"/proc/{each}/cmdline"] for each in numbers]
    assert sum(each.startswith("no answer within ") for each in said) == owner.USER / owner.FILE
    assert sum(each == f"not read: other processes of user {HIS} did not answer" for each in said) == 3
    assert found.text[f"/proc/{other}/cmdline"].startswith("guest db1\n")


def many(stack: contextlib.ExitStack, users: range) -> list[int]:
    """A process that hangs of each of these."""
    return [stack.enter_context(hanging.hanging(MEMORY, "sleep", user)) for user in users]


@pytest.mark.parametrize("told", [True, False], ids=["subuid", "namespace"])
def test_who_can_be_many_users_has_the_time_of_one(told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a range of uids of his own, and as root of a container."""
    ranges = tmp_path / "subuid"
    ranges.write_text(f"mallory:200000:{'65536' if told else '1'}\n")
    monkeypatch.setattr(owner, "SUBORDINATE", str(ranges))
    with contextlib.ExitStack() as all_:
        numbers = many(all_, range(200001, 200006))
        other = all_.enter_context(guest())
        found = read("/proc/*/cmdline")
    said = [found.errors[f"/proc/{each}/cmdline"] for each in numbers]
    assert sum(each.startswith("no answer within ") for each in said) == owner.USER / owner.FILE
    assert found.text[f"/proc/{other}/cmdline"].startswith("guest db1\n")


def test_who_could_choose_among_uids_comes_behind_who_could_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """What all that hang take of the time is not missing to those with a uid of their own."""
    monkeypatch.setattr(owner, "BLOCK", 1)
    monkeypatch.setattr(owner, "ALL", 2.5 * owner.FILE)
    with contextlib.ExitStack() as all_:
        numbers = many(all_, range(200001, 200005))
        other = all_.enter_context(guest())
        found = read("/proc/*/cmdline")
    assert all(f"/proc/{each}/cmdline" in found.errors for each in numbers)
    assert found.text[f"/proc/{other}/cmdline"].startswith("guest db1\n")


def test_zaudit_ends_beside_a_process_that_hangs() -> None:
    """Its reader is killed with it; no thread keeps it."""
    code = """
import os, sys, threading
from auditor.host.live import LiveHost
from auditor.host.request import Read
threading.Thread(target=LiveHost(60).read, args=(Read((sys.argv[1],)),), daemon=True).start()
sys.stdin.read(1)
os._exit(7)
"""
    with hanging.hanging(MEMORY, "sleep", HIS) as number:
        words = [sys.executable, "-c", code, f"/proc/{number}/environ"]
        with subprocess.Popen(words, stdin=subprocess.PIPE) as asking, contextlib.ExitStack() as last:
            last.callback(asking.kill)
            reader = wait_for(lambda: _started_by(asking.pid), "a reader")
            asking.communicate(b"x", timeout=20)
        assert asking.returncode == 7
        wait_for(lambda: status(reader, "State")[:1] in ("", "Z", "X"), "its end")


def _started_by(process: int) -> str:
    """A child of one of its threads."""
    return "".join(each.read_text() for each in Path(f"/proc/{process}/task").glob("*/children")).strip()


def test_who_has_the_number_of_an_earlier_run_may_be_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its leftovers stay then; nothing waits for it."""
    monkeypatch.setattr(owner, "STARTED_S", 0.3)
    with hanging.hanging(PROGRAM, "sleep", HIS) as number, server(user=ANOTHERS) as other:
        assert owner.started(number) != 0
        assert owner.started(other) > 0
    assert owner.started(number) == 0


def test_what_fio_wrote_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner owns the place, too: where he does not let it be counted, the limit counts as reached."""
    monkeypatch.setattr(execution, "WRITTEN_S", 0.3)
    with hanging.hanging(PROGRAM, "sleep", HIS) as number, server(user=ANOTHERS) as other:
        assert execution.within_limit(number, 1 << 40) is False
        assert execution.within_limit(other, 1 << 40) is True


def descriptors(count: int, user: int) -> contextlib.AbstractContextManager[int]:
    """A process of a user that has so many open."""
    return server(user=user, after=f"[os.dup(0) for _ in range({count})]")


def test_who_has_many_descriptors_hides_only_his_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "ENTRIES", 100)
    with descriptors(200, HIS) as number, descriptors(20, ANOTHERS) as other:
        found = read(f"/proc/{number}/fd/*", f"/proc/{other}/fd/*")
    assert found.errors == {f"/proc/{number}/fd/*": "more than 100 entries in a folder"}
    assert len([path for path in found.links if path.startswith(f"/proc/{other}/")]) > 20


@pytest.mark.slow
def test_many_processes_with_descriptors_have_the_share_of_one_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "USER_ENTRIES", 600)  # each is two: where it leads, and how it is open
    with contextlib.ExitStack() as all_:
        numbers = [all_.enter_context(descriptors(90, HIS)) for _ in range(6)]
        other = all_.enter_context(descriptors(20, ANOTHERS))
        found = read(*(f"/proc/{each}/fd/*" for each in (*numbers, other)))
    said = [found.errors.get(f"/proc/{each}/fd/*", "") for each in numbers]
    assert said == ["", "", "", "", *["more than 600 entries for one user"] * 2]
    assert any(path.startswith(f"/proc/{other}/") for path in found.links)
