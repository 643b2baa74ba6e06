"""The one seam to the machine: what it refuses, what it bounds, and that every failure is a value."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor import audit, registry
from auditor.databases.paths import MountedFrom, SymbolicLink
from auditor.facts import HOST, Fact, Facts, Kind, Reason, Subject, Value, known
from auditor.gather.answer import fault_of, unread_reasons
from auditor.host import builtin, process, request
from auditor.host import live as seam
from auditor.host.children.reader import matches
from auditor.host.live import ENVIRONMENT, LiveHost, permitted, read_files, readable
from auditor.host.process import Time, within
from auditor.host.request import Capture, Files, Read, Run
from auditor.recording import recording
from auditor.recording.recording import Recording, ReplayHost
from auditor.sources import zpool_history
from auditor.sources.block_devices import DeviceName
from auditor.sources.shares import TargetUnit
from tests import question

T = TypeVar("T")

REFUSED = """
hdparm -W0 /dev/sda
hdparm -W 1 /dev/sda
hdparm -W=0 /dev/sda
hdparm --security-erase x /dev/sda
hdparm -W /dev/sda -f
nvme set-feature /dev/nvme0n1 -f 6 -v 0
nvme get-feature /dev/nvme0n1 -f 6 -s 1
nvme format /dev/nvme0n1
nvme sanitize /dev/nvme0
nvme id-ctrl /dev/nvme0n1 -b
nvme smart-log /dev/../etc/x --raw-binary
zfs set sync=standard tank
zfs destroy tank/db
zfs list -H -o name -r tank -F
zfs get -Hp -o all all tank --force
zfs rollback tank@x
zfs program tank x.lua
zfs allow tank
zpool destroy tank
zpool clear tank
zpool export tank
zpool import tank
zpool scrub tank
zpool set failmode=wait tank
zpool status -v -x -i tank
zpool status -c upgrade tank
zpool list -v -T d 1
zpool online tank sda
smartctl -s off /dev/sda
smartctl -t long /dev/sda
smartctl -j -x -s wcache,off /dev/sda
smartctl -x -j /dev/sda -t short
zdb -C -e tank
zdb -R tank 0:0:0
zdb -X tank
zdb -C -U /tmp/x tank
zdb tank
udevadm trigger
udevadm info --export-db --cleanup-db
udevadm info --cleanup-db
systemd-detect-virt --help
systemctl show --property=Id -H db2 etcd.service
systemctl stop etcd.service
systemctl show -Mdb etcd.service
systemctl show *.service
busctl get-property org.freedesktop.systemd1 --host=db2 /org/freedesktop/systemd1/unit/a org.freedesktop.systemd1.Unit Asserts
busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager Docked
busctl get-property org.freedesktop.systemd1 /org/freedesktop/systemd1/unit/../a org.freedesktop.systemd1.Unit Asserts
busctl set-property org.freedesktop.systemd1 /org/freedesktop/systemd1/unit/a org.freedesktop.systemd1.Unit Markers as 0
busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager Reload
sh -c true
bash
env zfs list
sudo zfs list
python3 -c print()
python3 -I -c print()
/usr/sbin/zfs get all
zfs
zpool
""".strip().splitlines()


@pytest.mark.parametrize("line", REFUSED)
def test_refused(line: str) -> None:
    assert not permitted(tuple(line.split()))
    with pytest.raises(PermissionError, match="does not run this"):
        LiveHost(1).run(Run(tuple(line.split())))


def test_nothing_is_not_permitted() -> None:
    assert not permitted(())


@pytest.mark.parametrize(
    "argv",
    [
        ("hdparm", "-W", "/dev/sda"),
        ("smartctl", "-j", "-x", "/dev/sda"),
        ("zpool", "status", "-j", "--json-int", "my pool"),
        ("zdb", "-C", "tank"),
        (builtin.LZC_NAME, "tank", "tank/db", "sync"),
    ],
)
def test_permitted(argv: tuple[str, ...]) -> None:
    assert permitted(argv)


def states() -> Iterator[Facts]:
    """What may be known of a host when the questions are put: nothing, and each release with each kind of drive."""
    yield Facts()
    facts = Facts()
    facts.put(Fact(HOST, "guests", known(("4711 vm1",), "")))
    facts.put(
        Fact(
            HOST,
            "mount_table",
            known(("41 28 0:51 / / rw - zfs rpool/ROOT rw", "42 41 0:52 / /boot rw - zfs tank/b rw"), ""),
        )
    )
    facts.put(Fact(HOST, "zfs_modules", known(("6.12-lts /usr/lib/modules/6.12-lts/extra/zfs.ko.xz",), "")))
    facts.put(Fact(HOST, "modprobe_files", known(("/etc/modprobe.d/zfs.conf",), "")))
    facts.put(Fact(HOST, "keys_bound", known(("tank/enc",), "")))
    facts.put(Fact(HOST, "block_targets", known((TargetUnit("LIO-db", "keeps", "/dev/zvol/tank/db"),), "")))
    for path in ("/home/ann/zfs.ko", "/usr/lib/modules/6.12/../../../../home/ann/zfs.ko"):
        odd = Facts()
        odd.put_all(facts)
        odd.replace(Fact(HOST, "zfs_modules", known((f"6.12 {path}",), "")))
        yield odd
    facts.put(Fact(HOST, "zfs_version", known((2, 2, 0), "")))
    facts.put(Fact(HOST, "zfs_version_text", known("2.2.0-0ubuntu1", "")))
    yield facts
    for engine, dsn in (("postgres", "service=audit"), ("mariadb", "mariadb://root@/?unix_socket=/run/s")):
        facts = Facts()
        facts.put(Fact(HOST, "connected_engine", known(engine, "")))
        facts.put(Fact(HOST, "database_connection", known(dsn, "")))
        yield facts
    for place in ("/srv/my db", "/srv/../etc", "/", "relative", "/srv/*"):
        facts = Facts()
        for subject in subjects("database"):
            given = (f"--config-file={place}/x.conf", f"--defaults-file={place}/..", "--config", f"{place}/shadow")
            facts.put(Fact(subject, "data_directory", known(place, "")))
            facts.put(Fact(subject, "arguments", known(given, "")))
            facts.put(Fact(subject, "directories", known((f"data:{place}", f"log:{place}/pg_wal"), "")))
            facts.put(Fact(subject, "symlinks", known((SymbolicLink(f"{place}/pg_wal", f"/mnt/wal{place}"),), "")))
            facts.put(Fact(subject, "mountinfo", known(("25 1 254:1 / / rw - ext4 /dev/vda1 rw",), "")))
            facts.put(Fact(subject, "unit", known("postgresql@17-a\\x2db.service", "")))
            facts.put(
                Fact(
                    subject,
                    "mounted_from",
                    known((MountedFrom(place, "tank/db"), MountedFrom("/.hidden/d b", "tank")), ""),
                )
            )
        yield facts
    values: list[tuple[Value, ...]] = [
        (release, transport, model, consistent)
        for release in ((2, 1, 11), (2, 2, 0), (2, 3, 9), (2, 4, 4), (3, 0, 0))
        for transport in ("nvme", "sata", "sas", "usb", "virtio", "dm", "unknown")
        for model in ("QEMU NVMe Ctrl", "Samsung SSD 980", "INTEL SSDPEDMD400G4")
        for consistent in (False, True)
    ]
    for release, transport, model, consistent in values:
        facts = Facts()
        for name in ("zfs_version", "zfs_userland_version"):
            facts.put(Fact(HOST, name, known(release, "")))
        facts.put(Fact(HOST, "consistent", known(consistent, "")))
        facts.put(Fact(HOST, "os_ids", known(("nixos",), "")))
        facts.put(Fact(HOST, "kernel_release", known("6.12.33-production+truenas", "")))
        facts.put(Fact(HOST, "dev_links", known((DeviceName("/dev/mapper/vg-db", "dm-0"),), "")))
        facts.put(Fact(HOST, "tgt_daemons", known(("0",), "")))
        for subject in subjects("disk"):
            facts.put(Fact(subject, "transport", known(transport, "")))
            facts.put(Fact(subject, "model", known(model, "")))
            facts.put(Fact(subject, "sysfs_model", known(model, "")))
        server = Subject("database", "postgres 612")
        facts.put(Fact(HOST, "database_processes", known((server,), "")))
        facts.put(Fact(server, "datasets", known(tuple(subjects("dataset")), "")))
        for subject in subjects("dataset"):
            away: dict[str, Value] = {"type": "filesystem", "mounted": False, "canmount": "on", "readonly": "off"}
            facts.put_all(Fact(subject, name, known(value, "")) for name, value in away.items())
        yield facts


def subjects(kind: str) -> list[Subject]:
    names = {
        "host": ["host"],
        "pool": ["tank", "my pool", "a:b.c-d_e"],
        "disk": ["nvme0n1", "sda", "vda", "cciss/c0d0"],
        "dataset": ["tank", "my pool/d b/wal"],
        "database": ["postgres 612", "mysql 7", "redis 8", "etcd 9", "mongodb 10", "mariadb /srv/my db"],
    }
    kinds: dict[str, Kind] = {"host": "host", "pool": "pool", "disk": "disk", "dataset": "dataset"}
    kinds["database"] = "database"
    return [Subject(kinds[kind], name) for name in names[kind]]


@pytest.mark.parametrize("name", sorted(registry.sources()))
def test_every_question_of_every_collector_only_reads(name: str) -> None:
    module = registry.sources()[name]
    asked = 0
    for facts in states():
        for subject in subjects("dataset" if module.per == "target" else module.per):
            match module.request(subject, facts):
                case Run(argv, package) as run:
                    asked += 1
                    assert permitted(argv), argv
                    assert any(each.permits(argv) for each in module.runs), argv
                    # what only a vendor has goes by several names, and is in no package
                    assert package or run.also or argv[0] == builtin.KMSG, f"{argv[0]}: of which package?"
                    assert not argv[0].startswith("/")
                case Read(patterns):
                    asked += 1
                    assert all(map(readable, patterns)), patterns
                    assert not any("**" in pattern for pattern in patterns), patterns
    assert asked


def test_a_name_that_looks_like_an_option_is_not_passed_on() -> None:
    assert not permitted(("zpool", "status", "-j", "-R/"))
    assert not permitted(("zdb", "-C", "-e"))
    assert not permitted(("hdparm", "-W", "/dev/-x"))


# -- commands ---------------------------------------------------------------------------------------------------------


def run(argv: tuple[str, ...], timeout_s: float) -> Capture:
    return process.run(argv, Time.of(timeout_s), ENVIRONMENT)


def called(call: Callable[[], T], timeout_s: float) -> T | None:
    def failed(why: str) -> T | None:
        return None

    return within(Time.of(timeout_s), call, failed)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    "script",
    [
        "sleep 60 & echo $!; sleep 60 & echo $!; wait",
        "trap '' TERM INT HUP; sleep 60 & echo $!; while :; do sleep 1; done",
        "(sleep 60 & echo $!) & sleep 60",
        "sleep 60 & echo $!",  # ends at once, and leaves a child that holds its output
        "sleep 60 >/dev/null 2>&1 & echo $!; exec >/dev/null 2>&1; sleep 60",  # shuts its output and goes on
    ],
)
def test_a_command_that_hangs_is_killed_with_all_its_children(script: str) -> None:
    started = time.monotonic()
    capture = run(("/bin/sh", "-c", script), 0.5)
    assert time.monotonic() - started < 0.5 + request.AFTER_KILL_S
    assert (capture.exit, capture.fault) == (None, "no answer within 0.5 s")
    children = [int(pid) for pid in re.findall(rb"\d+", capture.stdout)]
    assert children
    deadline = time.monotonic() + 2
    while any(map(alive, children)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(alive, children))


def test_what_was_said_before_the_time_out_is_kept_apart_from_an_answer() -> None:
    capture = run(("/bin/sh", "-c", "echo half; echo why >&2; sleep 60"), 0.3)
    assert (capture.stdout, capture.stderr, capture.exit) == (b"half\n", b"why\n", None)
    assert capture.fault


@pytest.mark.parametrize("where", ["", " >&2"])
def test_output_is_bounded(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "OUTPUT_BYTES", 1 << 20)
    started = time.monotonic()
    capture = run(("/bin/sh", "-c", f"while :; do echo 0123456789012345678901234567890123456789{where}; done"), 30)
    assert capture.fault == "more than 1 MiB of output"
    assert capture.exit is None
    assert len(capture.stdout) + len(capture.stderr) == request.HALF_BYTES
    assert time.monotonic() - started < 20


def test_of_a_history_only_the_lines_that_were_asked_for_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole lines, the heading and the empty line at the end; and a vendor's tool by whichever name it is there."""
    script = "#!/bin/sh\nprintf 'History for tank:\\n1 zpool create tank a\\n2 zfs snapshot x\\n3 zpool import -m tank\\n\\n'\n"
    (tmp_path / "other-name").write_text(script)
    (tmp_path / "other-name").chmod(0o755)
    monkeypatch.setattr(seam, "PATH", (str(tmp_path),))
    request = Run(("zpool", "history", "tank"), also=("other-name",), keep=zpool_history.KEEP)
    assert LiveHost(5).run(request).stdout.decode().split("\n") == [
        "History for tank:",
        "1 zpool create tank a",
        "3 zpool import -m tank",
        "",
        "",
    ]
    assert LiveHost(5).run(request._replace(also=())).fault == "not installed"


def test_of_what_the_kernel_did_by_itself_only_who_took_the_pool_up_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (
        "2026-11-20.09:49:12 zpool import tank",
        "2026-11-20.09:49:12 [txg:4] set tank/db (54) a:b=zpool import x",
        "2026-11-20.09:49:13 ioctl set_prop",
        "        a:b: zpool trim x",
        "2026-11-20.09:49:13 [txg:7] set tank (54) a:b=open pool version 5000; software version x; uts y z",
        "2026-11-20.09:49:13 [txg:8] open pool version 5000; software version zfs-2.4.4-1; uts db2 6.12.0 1 x86_64",
        "2026-11-20.09:49:14 (3ms) zpool trim x",
    )
    (tmp_path / "zpool").write_text("#!/bin/sh\nprintf 'History for tank:\\n" + "\\n".join(lines) + "\\n\\n'\n")
    (tmp_path / "zpool").chmod(0o755)
    monkeypatch.setattr(seam, "PATH", (str(tmp_path),))
    request = question.run(zpool_history.internal_history, Subject("pool", "tank"))
    assert LiveHost(5).run(request).stdout.decode().split("\n") == [
        "History for tank:",
        lines[0],
        lines[-2],
        lines[-1],
        "",
        "",
    ]


def test_streams_are_apart_and_the_exit_code_is_kept() -> None:
    capture = run(("/bin/sh", "-c", "echo out; echo err >&2; exit 3"), 10)
    assert (capture.exit, capture.stdout, capture.stderr, capture.fault) == (3, b"out\n", b"err\n", "")
    assert run(("/bin/sh", "-c", "kill -9 $$"), 10).exit == -9


def test_the_environment_and_standard_input_are_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("ZFS_COLOR", "1")
    monkeypatch.setenv("LD_PRELOAD", "")
    capture = run(("/bin/sh", "-c", "cat; env; pwd; cut -d' ' -f5 /proc/$$/stat; echo $$"), 10)
    lines = capture.stdout.decode().splitlines()
    assert {"LC_ALL=C", "TZ=UTC", "LANG=C"} <= set(lines)
    assert not [line for line in lines if line.startswith(("ZFS_", "LD_"))]
    assert "/" in lines
    assert lines[-1] == lines[-2] != str(os.getpgid(0))


def test_what_cannot_be_started_is_a_value(tmp_path: Path) -> None:
    assert run((str(tmp_path / "none"),), 1).fault.startswith("cannot be started")
    (tmp_path / "text").write_text("no program")
    (tmp_path / "text").chmod(0o755)
    assert run((str(tmp_path / "text"),), 1).fault.startswith("cannot be started")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Installs a tool that is this script, where no other is installed."""

    def install(name: str, script: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    monkeypatch.setattr(seam, "PATH", (str(tmp_path),))
    return install


VERSION, MEMORY = Run(("zfs", "version")), Run(("dmidecode", "-t", "memory"))


def test_a_path_that_is_not_there_is_an_answer(tmp_path: Path) -> None:
    host = LiveHost(5)
    with pytest.raises(FileNotFoundError):
        host.realpath(f"{tmp_path}/gone")
    assert host.steady(f"{tmp_path}/gone") == ""
    assert host.steady(str(tmp_path)) == str(tmp_path)


def test_after_the_deadline_nothing_is_asked(tools: Callable[[str, str], None], tmp_path: Path) -> None:
    tools("zfs", "sleep 60")
    tools("dmidecode", f"echo >{tmp_path}/asked")
    host = recording.RecordingHost(LiveHost(30, 0.5))
    assert host.read(Read(("/proc/uptime",))).text
    assert host.run(VERSION).fault == "no answer before the deadline of 0.5 s"
    late = "not asked: the deadline of 0.5 s was over"
    assert host.run(MEMORY) == Capture(None, fault=late)
    assert host.read(Read(("/proc/meminfo",))) == Files({}, errors={"/proc/meminfo": late})
    with pytest.raises(OSError, match=late):
        host.realpath("/")
    assert not (tmp_path / "asked").exists()
    recording.write(host.recording((), {}, ""), tmp_path / "kept")
    again = recording.ReplayHost(recording.load(tmp_path / "kept"))
    assert again.run(MEMORY) == Capture(None, fault=late)
    assert again.read(Read(("/proc/meminfo",))).errors == {"/proc/meminfo": late}


def test_what_was_not_asked_is_unknown_and_says_what_helps() -> None:
    late = "not asked: the deadline of 900 s was over"
    reason = fault_of(VERSION, Capture(None, fault=late), "zfs version", 0)
    assert reason == Reason(f"zfs version: {late}", "--deadline", True)
    assert unread_reasons(
        Files({}, errors={"/proc/x": late}), "/proc/x", ReplayHost(Recording(0.0, 0, ()))
    ).reasons == (Reason(f"/proc/x: {late}", "--deadline", True),)


def test_without_a_deadline_there_is_none(tools: Callable[[str, str], None]) -> None:
    tools("zfs", "echo here")
    assert LiveHost(5, 0).run(VERSION).stdout == b"here\n"


def test_all_answers_together_are_bounded(tools: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is too much is not an answer, and makes room for others."""
    tools("zfs", "head -c 700000 /dev/zero")
    tools("dmidecode", "head -c 200000 /dev/zero")
    monkeypatch.setattr(seam, "Total", partial(process.Total, 1 << 20))
    host = LiveHost(20)
    assert len(host.run(VERSION).stdout) == 700000
    assert host.run(VERSION).fault == "more than 1 MiB of answers in all"
    assert len(host.run(MEMORY).stdout) == 200000
    assert host.run(MEMORY).fault == "more than 1 MiB of answers in all"
    monkeypatch.setattr(seam, "read_files", lambda *words: Files({"/proc/x": "x" * 200000}))
    assert host.read(Read(("/proc/x",))) == Files({}, errors={"/proc/x": "more than 1 MiB of answers in all"})


def test_a_history_without_an_end_takes_no_memory(
    tools: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "2026-01-01.00:00:00 zfs snapshot tank@x"
    tools("zpool", f"echo 'History for tank:'; yes '{line}'")
    monkeypatch.setattr(request, "OUTPUT_BYTES", 1 << 20)  # the ring of a history holds more than any other answer
    monkeypatch.setattr(request, "HISTORY_BYTES", 4 << 20)
    total = process.Total()
    monkeypatch.setattr(seam, "Total", lambda: total)
    capture = LiveHost(20).run(Run(("zpool", "history", "tank"), keep=zpool_history.KEEP))
    assert capture.fault == "more than 4 MiB of output"
    assert capture.stdout == b"History for tank:\n"
    assert total.take(request.ANSWERS_BYTES - len(capture.stdout))  # it holds no more than that
    assert not total.take(1)


@pytest.mark.parametrize(("bytes_", "fault"), [(60000, ""), (3 << 20, "a line of more than 64 KiB")])
def test_a_line_of_a_history_has_an_end(tools: Callable[[str, str], None], bytes_: int, fault: str) -> None:
    tools("zpool", f"head -c {bytes_} /dev/zero; echo; echo 'zpool import -m tank'; printf 'zpool clear tank'")
    capture = LiveHost(20).run(Run(("zpool", "history", "tank"), keep=zpool_history.KEEP))
    assert capture.fault == fault
    assert capture.stdout == (b"" if fault else b"zpool import -m tank\nzpool clear tank")


def test_lines_are_the_same_however_they_come() -> None:
    text = b"History for tank:\n1 zpool create tank a\n2 zfs snapshot x\n\n3 zpool trim tank\n4 zfs"
    for size in range(1, len(text)):
        lines = process.Lines(zpool_history.KEEP)
        kept = b"".join(lines.of(text[at : at + size]) for at in range(0, len(text), size)) + lines.end()
        assert kept == b"History for tank:\n1 zpool create tank a\n\n3 zpool trim tank\n"


def test_of_the_first_line_of_a_history_the_time_is_kept() -> None:
    """However it comes; a line that is kept anyway is kept as it is."""
    stamp = b"2026-11-19.09:49:12 "
    for start, kept in ((b"zfs set user:pass=secret tank", b""), (b"zpool create tank a", b"zpool create tank a")):
        text = b"History for 'tank':\n" + stamp + start + b"\n" + stamp + b"zfs snapshot tank@x\n\n"
        for size in range(1, len(text)):
            lines = process.Lines(zpool_history.KEEP, zpool_history.FIRST)
            said = b"".join(lines.of(text[at : at + size]) for at in range(0, len(text), size)) + lines.end()
            assert said == b"History for 'tank':\n" + stamp + kept + b"\n\n"


def test_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam, "PATH", ())
    capture = LiveHost(1).run(Run(("zpool", "status", "tank"), "zfsutils-linux"))
    assert (capture.exit, capture.fault) == (None, "not installed")


def test_the_path_of_the_user_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "zpool").write_text("#!/bin/sh\necho wrong\n")
    (tmp_path / "zpool").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert b"wrong" not in LiveHost(5).run(Run(("zpool", "status", "tank"))).stdout


def test_a_call_that_hangs_is_left_behind() -> None:
    started = time.monotonic()
    assert called(lambda: time.sleep(1.0), 0.1) is None
    assert time.monotonic() - started < 0.9
    assert called(lambda: 7, 5) == 7


# -- files ------------------------------------------------------------------------------------------------------------


def test_files_links_folders_and_devices(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text \xff\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner").write_text("1\n")
    (tmp_path / "to-file").symlink_to("file")
    (tmp_path / "to-folder").symlink_to("folder")
    (tmp_path / "to-nothing").symlink_to("nothing")
    (tmp_path / "to-itself").symlink_to("to-itself")
    (tmp_path / "to-device").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    patterns = (f"{tmp_path}/*", f"{tmp_path}/*/inner", f"{tmp_path}/absent", f"{tmp_path}/no/*")
    done = called(lambda: read_files(patterns), 5)
    assert done is not None
    names = {path.removeprefix(f"{tmp_path}/"): text for path, text in done.text.items()}
    assert names == {
        "file": "text \udcff\n",
        "to-file": "text \udcff\n",
        "folder/inner": "1\n",
        "to-folder/inner": "1\n",
    }
    assert {path.removeprefix(f"{tmp_path}/"): target for path, target in done.links.items()} == {
        "to-file": "file", "to-folder": "folder", "to-nothing": "nothing", "to-itself": "to-itself", "to-device": "/dev/zero",
    }  # fmt: skip
    assert {path.removeprefix(f"{tmp_path}/"): error for path, error in done.errors.items()} == {
        "absent": "no such file or directory", "no/*": "no such file", "to-itself/inner": "too many levels of symbolic links",
    }  # fmt: skip


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/tty", "/dev/pts", "/proc/self"])
def test_a_device_or_a_folder_is_not_read(path: str) -> None:
    assert not read_files((path,)).text


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_what_may_not_be_read_says_so() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's own folders are shut to others
        top = Path(folder)
        top.chmod(0o755)
        (top / "open").mkdir()
        (top / "shut" / "in").mkdir(parents=True)
        (top / "secret").write_text("x")
        (top / "secret").chmod(0)
        (top / "shut").chmod(0)
        patterns = (f"{top}/secret", f"{top}/shut/*", f"{top}/shut/*/x", f"{top}/shut/in", f"{top}/open/*")
        errors = errors_for_nobody(patterns)
        (top / "shut").chmod(0o755)
    assert errors == {**dict.fromkeys(patterns[:-1], "permission denied"), patterns[-1]: "no such file"}


def errors_for_nobody(patterns: tuple[str, ...]) -> dict[str, str]:
    """The errors that a user without rights would get."""
    if os.geteuid() != 0:
        return dict(read_files(patterns).errors)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(65534)
            os.setuid(65534)
            os.write(writer, json.dumps(dict(read_files(patterns).errors)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        found: dict[str, str] = json.load(stream)
    os.waitpid(child, 0)
    return found


def test_a_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "FILE_BYTES", 1 << 20)
    (tmp_path / "large").write_bytes(bytes((1 << 20) + 1))
    (tmp_path / "fits").write_bytes(bytes(1 << 20))
    done = read_files((f"{tmp_path}/large", f"{tmp_path}/fits"))
    assert list(done.text) == [f"{tmp_path}/fits"]
    assert done.errors == {f"{tmp_path}/large": "more than 1 MiB"}


def test_all_files_of_a_question_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "MACHINE_BYTES", 1 << 20)
    for name in "abc":
        (tmp_path / name).write_bytes(bytes(600 << 10))
    done = read_files((f"{tmp_path}/*",))
    assert list(done.text) == [f"{tmp_path}/a"]
    assert done.errors == dict.fromkeys((f"{tmp_path}/b", f"{tmp_path}/c"), "more than 1 MiB for one question")


def test_a_folder_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "MACHINE_ENTRIES", 3)
    for name in "abcd":
        (tmp_path / name).touch()
    assert read_files((f"{tmp_path}/*",)).errors == {f"{tmp_path}/*": "more than 3 entries in a folder"}
    (tmp_path / "d").unlink()
    assert len(read_files((f"{tmp_path}/*",)).text) == 3


@given(st.lists(st.text("ab", max_size=3), min_size=2, max_size=5), st.text("ab", max_size=10))
def test_a_star_stands_for_any_part_of_a_name(pieces: list[str], name: str) -> None:
    part = "*".join(pieces)
    assert matches(name, part) == fnmatchcase(name, part)


@pytest.mark.parametrize("odd", ["\0", "\ud800"])
def test_a_name_that_no_file_can_have_is_an_error_of_that_path(tmp_path: Path, odd: str) -> None:
    (tmp_path / "file").write_text("1\n")
    strange = (f"{tmp_path}/a{odd}b", f"{tmp_path}/a{odd}b/*", f"{tmp_path}/*{odd}/b")
    done = read_files((*strange, f"{tmp_path}/file"))
    assert done.text == {f"{tmp_path}/file": "1\n"}
    assert set(done.errors) == set(strange)
    assert {done.errors[each] for each in strange[:2]} == {"no file can have this name"}
    assert run(("/bin/echo", f"a{odd}b"), 1).fault.startswith("cannot be started")


def test_a_sysctl_is_read_whole() -> None:
    done = LiveHost(5).read(Read(("/proc/sys/kernel/hostname", "/proc/uptime")))
    assert done.text["/proc/sys/kernel/hostname"].endswith("\n")
    assert done.text["/proc/uptime"]


@pytest.mark.parametrize(
    "pattern",
    [
        *("/home/x", "/root/.ssh/*", "etc/passwd", "/proc/../root/x", "/sys/block/..", "", "/"),
        *("/etc/shadow", "/etc/hostid2", "/etc/*", "/dev/sda", "/dev/*", "/run/secrets/*", "/sys/firmware/efi/*"),
    ],
)
def test_files_elsewhere_are_refused(pattern: str) -> None:
    with pytest.raises(PermissionError, match="does not read this"):
        LiveHost(1).read(Read(("/proc/uptime", pattern)))


def test_files_that_hang_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam, "read_files", lambda *words: time.sleep(1.0))
    assert LiveHost(0.1).read(Read(("/proc/uptime",))).errors == {"/proc/uptime": "no answer within 0.1 s"}


@pytest.mark.skipif(Path("/sys/module/zfs").exists(), reason="OpenZFS is loaded here")
@pytest.mark.parametrize("names", [(), ("no-such-pool",)])
def test_live_without_zfs(names: tuple[str, ...]) -> None:
    with pytest.raises(audit.NothingToAudit) as error:
        audit.look(LiveHost(5), names, audit.Options())
    assert "\n" not in str(error.value)
    assert len(str(error.value)) > 10


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("abc", ["abc"]),
        (r"^a|^$|b (c|d) e", ["^a", "^$", "b (c|d) e"]),
        (r"(?:a|b)$", ["(?:a|b)$"]),
        (r"a\||\(b|c\)", [r"a\|", r"\(b", r"c\)"]),
    ],
)
def test_branches(pattern: str, says: list[str]) -> None:
    assert process.branches(pattern) == says


@pytest.mark.parametrize(
    "name",
    [
        "zpool_history",
        "zpool_history_internal",
        "zpool_events_all",
        "kernel_log",
        "kernel_hangs",
        "kernel_faults",
        "kernel_traces",
        "kernel_buses",
    ],
)
def test_branches_find_what_the_whole_pattern_finds(name: str) -> None:
    keep = question.run(registry.sources()[name], Subject("pool", "tank")).keep
    assert all(re.compile(each) for each in process.branches(keep))
    assert "|".join(process.branches(keep)) == keep
