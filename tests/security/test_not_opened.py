"""No device node, FIFO or socket is ever opened, whatever somebody puts under a name that zaudit reads or writes."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from auditor import Stop, cli
from auditor.fleet.inputs import Journal
from auditor.host import user_files
from auditor.host.trust import held
from auditor.recording import recording
from auditor.verify import ledger
from auditor.verify.ledger import PlaceError
from tests import shared
from tests.commands.test_golive_verify import TRACED
from tests.fake import CommandLine, FakeHost
from tests.golden import CANONICAL, HOSTS
from tests.security.test_trust import EVIL, as_root, served

REC = str(HOSTS / CANONICAL)
IN_OPEN, IN_NONBLOCK = 0x20, os.O_NONBLOCK
LIBC = ctypes.CDLL(None, use_errno=True)
# every parameter that is a path: a command line in which NODE stands for it
LINES = {
    "check.replay": "check --replay NODE",
    "check.record": "check tank --record NODE",
    "record.replay": "record --replay NODE -o NEW",
    "check.output": "check --replay REC -o NODE",
    "check.folders": "check --replay REC --rules NODE",
    "check.policy_file": "check --replay REC --policy NODE",
    **{
        f"baseline {verb}.{name}": f"baseline {verb} {words}"
        for verb in ("accept", "update")
        for name, words in {
            "file": "NODE --replay REC",
            "replay": "KNOWN --replay NODE",
            "output": "KNOWN --replay REC -o NODE",
            "policy_file": "KNOWN --replay REC --policy NODE",
            "folders": "KNOWN --replay REC --rules NODE",
        }.items()
    },
    "baseline show.file": "baseline show NODE",
    "baseline remove.file": "baseline remove NODE sync-disabled",
    "verify.compare": "verify --replay RUN --compare NODE",
    "verify.replay": "verify --replay NODE",
    "verify.record": "verify tank/db --record NODE",
    "verify.output": "verify --replay RUN -o NODE",
    "verify.policy_file": "verify --replay RUN --policy NODE",
    "diagnose.replay": "diagnose --replay NODE",
    "diagnose.record": "diagnose tank/db --record NODE",
    "diagnose.output": "diagnose --replay NODE -o NODE",
    "diagnose.policy_file": "diagnose tank/db --policy NODE",
    "plan.replay": "plan --replay NODE",
    "plan.output": "plan --replay REC -o NODE",
    "plan.policy_file": "plan --replay REC --policy NODE",
    "plan.folders": "plan --replay REC --rules NODE",
    "checklist.replays": "checklist --replay NODE",
    "checklist.output": "checklist tank/db --replay REC -o NODE",
    "checklist.policy_file": "checklist tank/db --replay REC --policy NODE",
    "record.path": "record tank -o NODE",
    "record.redact_key": "record tank -o NEW --redact-key NODE",
    "record.policy_file": "record tank -o NEW --policy NODE",
    "rules.folders": "rules --rules NODE",
    "explain.folders": "explain sync-disabled --rules NODE",
    "diff.old": "diff NODE REC",
    "diff.new": "diff REC NODE",
    "diff.folders": "diff REC REC --rules NODE",
    "show.report": "show NODE",
    "show.output": "show REPORT -o NODE",
    "alert.report": "alert NODE --hook /bin/false",
    "alert.hook": "alert REPORT --hook NODE",
    "selftest.folders": "selftest --rules NODE",
    "advise db.replay": "advise db postgres tank/db --replay NODE",
    "advise log.since": "advise log tank --replay REC --since NODE",
    "advise log.replay": "advise log tank --replay NODE",
    "policy init.replay": "policy init --replay NODE",
    "policy init.output": "policy init --replay REC -o NODE",
    "policy check.file": "policy check NODE",
    "policy check.folders": "policy check /dev/null --rules NODE",
    "fleet judge.place": "fleet judge REC -o NODE",
    "fleet judge.inventory": "fleet judge REC -o NEW --inventory NODE",
    "fleet judge.folders": "fleet judge REC -o NEW --rules NODE",
    "fleet judge.policy_file": "fleet judge REC -o NEW --policy NODE",
    "fleet check.recordings": "fleet check --cluster postgres NODE",
    "fleet check.folders": "fleet check --cluster postgres REC --rules NODE",
    "fleet check.output": "fleet check --cluster postgres --copies 2 MEMBER OTHER -o NODE",
    "fleet report.rows": "fleet report NODE",
    "fleet report.since": "fleet report ROWS --since NODE",
    "fleet report.output": "fleet report ROWS -o NODE",
    "powercut witness.store": "powercut witness --store NODE --key KEY",
    "powercut witness.key": "powercut witness --store NEW --key NODE",
    "powercut witness.cut": "powercut witness --store NEW --key KEY --cut NODE",
    "powercut start.key": "powercut start NEW --witness localhost --key NODE",
    "powercut check.key": "powercut check --key NODE",
    "powercut resume.key": "powercut resume --key NODE",
    "powercut report.stores": "powercut report NODE",
    "powercut report.output": "powercut report -o NODE",
}
MORE = ("fleet judge NODE -o NEW", "verify tank/db --profile NODE --dry-run")  # parameters that may be something else


def key(folder: Path) -> Path:
    """One that a witness takes."""
    path = folder / "key"
    path.write_bytes(b"0123456789abcdef")
    path.chmod(0o600)
    return path


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    """Where a watchdog or a tape might be; reading it would go on for ever."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("device nodes are for root to make")


class Watch:
    """Tells of opens of a node, by anybody and under any name. (man 7 inotify)"""

    def __init__(self, node: Path) -> None:
        self._number = LIBC.inotify_init1(IN_NONBLOCK)
        if LIBC.inotify_add_watch(self._number, os.fsencode(node), IN_OPEN) < 0:
            pytest.skip(f"no inotify here: {os.strerror(ctypes.get_errno())}")

    def opened(self) -> bool:
        with suppress(BlockingIOError):
            return bool(os.read(self._number, 4096))
        return False

    def close(self) -> None:
        os.close(self._number)


@pytest.fixture(params=[fifo, device], ids=lambda make: str(make.__name__))
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Watch]]:
    """One that is watched: what opens it is seen, and what only holds it is not."""
    path = tmp_path / "node"
    request.param(path)
    watch = Watch(path)
    os.close(os.open(path, os.O_PATH))
    if watch.opened():
        pytest.skip("this kernel tells of O_PATH as of an open")
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    assert watch.opened()
    yield path, watch
    watch.close()


def of(group: click.Command, before: str = "") -> Iterator[str]:
    """The parameters that are paths."""
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            assert found
            yield from of(found, f"{before} {name}".strip())
    else:
        yield from (f"{before}.{each.name}" for each in group.params if isinstance(each.type, click.Path))


def test_every_parameter_that_is_a_path_has_a_line() -> None:
    assert set(of(cli.main)) == LINES.keys()


@as_root
def test_no_command_line_asks_a_file_system_of_another_user(zaudit: CommandLine, tmp_path: Path) -> None:
    """He could let it wait for an answer, where not even SIGKILL ends it. What he serves lies at the end of the name, on the
    way to it, behind a link of his, and where a pattern leads."""
    rows, report = tmp_path / "rows.jsonl", tmp_path / "report.json"
    zaudit("check", "--replay", REC, "--format", "json", "-o", report)
    zaudit("check", "--replay", REC, "--format", "jsonl", "-o", rows)
    zaudit.host = FakeHost()
    places = {
        "REC": REC,
        "MEMBER": str(shared.HOSTS / "2.3-db-postgres-healthy"),
        "OTHER": str(shared.HOSTS / "2.3-db-postgres-fsync-off"),
        "RUN": TRACED,
        "NEW": tmp_path / "new",
        "KNOWN": tmp_path / "known",
        "REPORT": report,
        "ROWS": rows,
        "KEY": key(tmp_path),
    }
    (tmp_path / "some" / "host").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "some" / "host" / "file")
    os.lchown(tmp_path / "link", EVIL, EVIL)
    answered, asked = [], list[int]()
    for node in (tmp_path / "some" / "host", tmp_path / "some" / "host" / "file", tmp_path / "link"):
        with served(tmp_path / "some" / "host", EVIL, asked):
            for line in (*LINES.values(), *MORE):
                words = [str(node if word == "NODE" else places.get(word, word)) for word in line.split()]
                if zaudit(*words).code == 0:
                    answered.append(line)
    with served(tmp_path / "some" / "host", EVIL, asked):
        for pattern in ("some", "*/*", "*/host/f*", "so*/h*/file", "some/host/*"):
            found = zaudit("fleet", "judge", str(tmp_path / pattern)).out
            assert f"{tmp_path}/some/host is in a file system (FUSE) of uid {EVIL}" in found
    assert (asked, answered) == ([], [])


def test_no_command_line_opens_it(zaudit: CommandLine, node: tuple[Path, Watch], tmp_path: Path) -> None:
    path, watch = node
    rows, report = tmp_path / "rows.jsonl", tmp_path / "report.json"
    zaudit("check", "--replay", REC, "--format", "json", "-o", report)
    zaudit("check", "--replay", REC, "--format", "jsonl", "-o", rows)
    zaudit.host = FakeHost()
    places = {
        "NODE": path,
        "REC": REC,
        "MEMBER": str(shared.HOSTS / "2.3-db-postgres-healthy"),
        "OTHER": str(shared.HOSTS / "2.3-db-postgres-fsync-off"),
        "RUN": TRACED,
        "NEW": tmp_path / "new",
        "KNOWN": tmp_path / "known",
        "REPORT": report,
        "ROWS": rows,
        "KEY": key(tmp_path),
    }
    wrong = []
    for line in (*LINES.values(), *MORE):
        done = zaudit(*(places.get(word, word) for word in line.split()))
        if watch.opened():
            wrong.append(f"{line}: opened it")
        elif done.code == 0 or not (str(path) in done.out + done.err or line.startswith("alert NODE")):
            wrong.append(f"{line}: did not refuse it ({done.out[:100]}{done.err[:100]})")
    assert wrong == []


@pytest.mark.parametrize("name", ["recording.json", "001-zpool_status.out"])
def test_no_member_of_a_recording_is_opened(name: str, node: tuple[Path, Watch], tmp_path: Path) -> None:
    place = tmp_path / "rec"
    recording.write(recording.load(Path(REC)), place)
    path, watch = node
    (place / name).unlink(missing_ok=True)
    path.rename(place / name)
    with suppress(Stop):
        recording.load(place)
    with suppress(Stop):
        recording.write(recording.load(Path(REC)), place)
    assert not watch.opened()


def test_no_other_file_that_zaudit_finds_is_opened(
    node: tuple[Path, Watch], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal, which is opened for writing, and a record of the ledger."""
    path, watch = node
    (tmp_path / "link").symlink_to(path)
    for name in ("node", "link"):
        with pytest.raises(Stop, match="not a file for this user alone"):
            Journal(tmp_path / name, "")
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    path.rename(state / "place-0123456789abcdef.json")
    monkeypatch.setattr(ledger, "name", lambda: state)
    with suppress(PlaceError):
        assert [each.kind for each in ledger.places()] == [""]
    assert not watch.opened()


def test_nothing_is_opened_by_its_name_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was judged is exchanged for a FIFO in the moment before it is opened: the file that was judged is read."""
    path = tmp_path / "file"
    path.write_text("judged")
    real = os.fstat
    swapped: list[int] = []

    def fstat(number: int) -> os.stat_result:
        found = real(number)
        if not swapped and stat.S_ISREG(found.st_mode):
            swapped.append(number)
            path.unlink()
            os.mkfifo(path)
        return found

    def opened() -> bytes:
        number = user_files.open_as(path, user_files.FILE)
        try:
            return os.read(number, 100)
        finally:
            os.close(number)

    reads: list[Callable[[], bytes]] = [lambda: user_files.read(path, 100), opened]
    for read in reads:
        monkeypatch.setattr(os, "fstat", fstat)
        assert read() == b"judged"
        monkeypatch.undo()
        path.unlink()
        path.write_text("judged")
        swapped.clear()
    with held(str(tmp_path)) as folder:
        member = user_files.open_member("file", folder)
        assert member
        with member:
            assert member.read() == b"judged"
