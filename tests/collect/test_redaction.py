"""A redacted recording names no device and no host, and says the same of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import cast

import pytest

from auditor import audit, rulebook
from auditor.collect import nfs_exports, recording, redaction
from auditor.collect.recording import Recording, ReplayHost
from auditor.collect.request import Capture, Files, Run
from auditor.facts import Facts, Kind, Known
from tests import golden

CASES = golden.cases()
# facts whose values say which host or device it is, and facts that say what it is
IDENTITIES = {
    "host": ("hostname",),
    "pool": ("guid", "list_guid"),
    "vdev": ("guid",),
    "leaf": ("guid",),
    "disk": (
        "serial", "wwn", "nvme_serial", "smart_serial", "sysfs_serial", "udev_serial", "nvme_subsystem_nqn",
        "sysfs_subsystem_nqn", "nvme_list_serial", "dm_uuid",
    ),
}  # fmt: skip
# 2^63 - 1, 2^64 - 1, -2^31 as zpool status prints it of a log that is missing, and the pattern that zpool initialize
# writes (zfs_initialize_value): the same on every host
NUMBERS = {b"9223372036854775807", b"18446744073709551615", b"18446744071562067968", b"16045690984833335022"}
SHOWN = {
    "host": ("zfs_version_text", "virtualization", "kernel_release", "os_name"),
    "disk": ("model", "nvme_model", "smart_model", "firmware", "transport", "sysfs_model"),
    "dataset": ("sync", "mountpoint", "recordsize", "used"),
    "pool": ("state", "failmode", "capacity_percent"),
}  # fmt: skip


@cache
def past(case: Path) -> Recording:
    return recording.load(case)


@cache
def redacted(case: Path) -> Recording:
    return redaction.redact(past(case))


def facts_of(taken: Recording) -> Facts:
    return audit.look(ReplayHost(taken), taken.targets, audit.Options.from_words(taken.options)).facts


def values(facts: Facts, names: dict[str, tuple[str, ...]]) -> list[tuple[str, str, object]]:
    return [
        (kind, name, found.value)
        for kind, wanted in names.items()
        for subject in facts.subjects(cast(Kind, kind))
        for name in wanted
        if isinstance(found := facts.get(subject, name), Known)
    ]


def content(taken: Recording) -> bytes:
    """Everything that would leave the host: contents and names of all members."""
    return b"\n".join(part for name, data in recording.members(taken) for part in (name.encode(), data))


def spelt(value: str) -> Iterator[bytes]:
    yield value.encode("utf-8", "surrogateescape")
    yield json.dumps(value)[1:-1].encode()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_no_identity_is_left(case: Path) -> None:
    identities = {str(value) for _, _, value in values(facts_of(past(case)), IDENTITIES) if len(str(value)) >= 4}
    assert len(identities) >= 3
    left = content(redacted(case))
    assert [each for each in identities if any(way in left for way in spelt(each))] == []


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_looks_like_an_identity_is_not_left(case: Path) -> None:
    """By the raw text, not by what zaudit makes of it: each GUID of zdb and zpool, each serial and host id."""
    before, left = content(past(case)), content(redacted(case))
    found = set(re.findall(rb"\bguid(?:: |[\"'=\t :]+)(\d{12,20})\b", before))
    found |= set(re.findall(rb"\b\d{17,20}\b", before)) - NUMBERS
    found |= set(re.findall(rb"LAB(?:NVME|SCSI|ROOT)\w*", before))
    assert len(found) >= 3
    assert {each for each in found if each in left} == set()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_findings_are_the_same(case: Path) -> None:
    assert summary(redacted(case)) == summary(past(case))


def summary(taken: Recording) -> tuple[int, list[tuple[str, bool, str, int]]]:
    seen = audit.look(ReplayHost(taken), taken.targets, audit.Options.from_words(taken.options))
    report = audit.judge(seen, rulebook.select((), (), ()), taken.targets, "low")
    found = [(each.rule.id, each.failed, each.severity, len(each.verdicts)) for each in report.findings]
    return report.exit_code, sorted(found)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_models_and_names_of_datasets_are_the_same(case: Path) -> None:
    before, after = facts_of(past(case)), facts_of(redacted(case))
    shown = values(before, SHOWN)
    assert len(shown) >= 5  # of a pool that hangs little can be seen
    assert sorted(map(repr, values(after, SHOWN))) == sorted(map(repr, shown))
    assert list(after.subjects("dataset")) == list(before.subjects("dataset"))
    assert list(after.subjects("pool")) == list(before.subjects("pool"))


def test_a_stand_in_is_the_same_everywhere_in_one_recording_and_another_in_the_next() -> None:
    serial = b"S4EWNX0R123456"
    taken = Recording(
        0.0,
        0,
        ("tank",),
        commands={
            ("smartctl", "-j", "-x", "/dev/sda"): Capture(0, b'{"serial_number": "%s"}' % serial, b"ata-%s" % serial),
            ("zpool", "status"): Capture(0, b"\t  ata-SAMSUNG_%s-part1  ONLINE\n" % serial),
        },
        files={("/dev/disk/*",): Files({}, {f"/dev/disk/ata-SAMSUNG_{serial.decode()}": "../../sda"})},
        paths={f"/mnt/{serial.decode()}": "/mnt"},
    )
    found: set[bytes] = set()
    for _ in range(2):
        left = content(redaction.redact(taken))
        assert serial not in left
        assert b"SAMSUNG" in left
        stand_ins = set(re.findall(rb"(?:SAMSUNG_|ata-|/mnt/|: \")([A-Z]\d[A-Z]{4}\d[A-Z]\d{6})", left))
        assert len(stand_ins) == 1
        found |= stand_ins
    assert len(found) == 2


def test_a_redacted_recording_is_a_recording(tmp_path: Path) -> None:
    for case in CASES[:2]:
        recording.write(redacted(case), tmp_path / f"{case.name}.tar.gz")
        back = recording.load(tmp_path / f"{case.name}.tar.gz")
        assert back.taken == past(case).taken
        assert len(back.commands) == len(past(case).commands)
        assert back == replace(redacted(case), commands=back.commands)


@pytest.mark.parametrize("name", ["db1", "data", "online", "tank", "x", "db1.example.org"])
def test_the_name_of_the_host(name: str) -> None:
    """Short, or a word that stands everywhere: replaced where it is the host's, and nothing else is touched."""
    status = b"errors: No known data errors\n ONLINE 0 0 0 online db12 /data\n"
    host, hostid = "/proc/sys/kernel/hostname", "/etc/hostid"
    config = f"        hostid: 179354119\n        hostname: '{name}'\n".encode()
    taken = Recording(
        0.0,
        0,
        (),
        commands={
            ("zdb", "-C", "tank"): Capture(0, config),
            ("zpool", "status"): Capture(0, status),
            ("zpool", "list", "-Hp"): Capture(0, b"tank\t1\n"),
        },
        files={(host, hostid): Files({host: f"{name}\n", hostid: "\x07\udcba\udcb0\n"})},
    )
    left = redaction.redact(taken)
    zdb = left.commands["zdb", "-C", "tank"].stdout
    files = left.files[host, hostid].text
    stand_in = files[host].rstrip("\n")
    assert stand_in != name or len(name) < 2
    assert len(stand_in) == len(name)
    assert b"hostname: '%s'" % stand_in.encode() in zdb
    assert b"179354119" not in zdb
    assert left.commands["zpool", "status"].stdout == status
    assert files[hostid] == ""


def test_a_short_serial_is_not_cut_out_of_other_numbers() -> None:
    taken = Recording(
        0.0,
        0,
        (),
        commands={
            ("smartctl",): Capture(0, b'{"serial_number": "0001"}'),
            ("zfs", "get"): Capture(0, b"tank\tused\t900010000\t-\n"),
        },
    )
    left = redaction.redact(taken)
    assert b"0001" not in left.commands["smartctl",].stdout
    assert left.commands["zfs", "get"].stdout == b"tank\tused\t900010000\t-\n"


def test_of_exports_and_smb_conf_only_what_rules_read_is_left() -> None:
    """Clients, users and comments are names of hosts and people; the findings are the same without them."""
    exports = "# of Alice's group\n/srv -rw alice.example.org(async) 10.1.2.3(ro) \\\n  @staff(sync)\n/tank bob\n"
    smb = "[global]\nworkgroup = ACME\n# Alice\n[vm]\nvalid users = alice\nPath = /tank/vm\nstrict sync = no\n"
    files = Files({"/etc/exports": exports, "/etc/samba/smb.conf": smb})
    made = redaction.redact(Recording(0.0, 0, (), files={("/etc/exports", "/etc/samba/smb.conf"): files}))
    text = made.files["/etc/exports", "/etc/samba/smb.conf"].text
    assert not re.search(r"alice|bob|example|10\.1|staff|acme", " ".join(text.values()), re.I)
    before, after = (list(nfs_exports.exports(each)) for each in (exports, text["/etc/exports"]))
    assert [re.sub(r" .*\(", " (", each) for each in after] == [re.sub(r" .*\(", " (", each) for each in before]
    assert text["/etc/samba/smb.conf"] == "[global]\n[vm]\nPath = /tank/vm\nstrict sync = no\n"


def test_serials_of_raid_controllers_are_not_left() -> None:
    commands: dict[tuple[str, ...], Capture] = {
        ("storcli64",): Capture(0, b'{"Serial Number" : "SK12345678", "SCSI NAA Id" : "600605b010e943702a33"}\n'),
        ("ssacli",): Capture(
            0, b"   Serial Number: PEYHD0X\n   Unique Identifier: 600508B1001C\n   Caching:  Enabled\n"
        ),
    }
    left = b"".join(
        each.stdout for each in redaction.redact(Recording(0.0, 0, (), commands=commands)).commands.values()
    )
    assert not re.search(rb"SK12345678|600605b010e943702a33|PEYHD0X|600508B1001C", left)
    assert b"Caching:  Enabled" in left


def test_options_of_the_kernel_and_of_other_modules_go() -> None:
    """A command line and modprobe.d may name anything; what rules read is the zfs module's."""
    cmdline, conf = "/proc/cmdline", "/etc/modprobe.d/local.conf"
    files = Files(
        {
            cmdline: 'BOOT_IMAGE=/vmlinuz root=UUID=1b4e ip=::1 zfs.zfs_arc_max=1 "zfs.zil_replay_disable=1" quiet\n',
            conf: "# secret host\noptions wifi password=hunter2\noptions zfs zfs_txg_timeout=7\n",
        }
    )
    past = Recording(taken=0.0, euid=0, targets=(), files={(cmdline, conf): files})
    (found,) = redaction.redact(past).files.values()
    assert found.text[cmdline] == 'zfs.zfs_arc_max=1 "zfs.zil_replay_disable=1"\n'
    assert found.text[conf] == "options zfs zfs_txg_timeout=7\n"


def test_how_a_database_was_reached_is_not_left() -> None:
    """Hosts, users and roles go; the question of a replay finds the answer."""
    dsn = "host=db1.example user=alice dbname=payroll"
    answer = json.dumps(
        {"process": 612, "settings": [["fsync", "on"]], "roles": [["payroll", "", "synchronous_commit=off"]]}
    )
    refused = b'OperationalError: connection to server at "db1.example", port 5432 failed: no user "alice"'
    for capture in (Capture(0, answer.encode()), Capture(1, b"", refused)):
        past = Recording(
            1.7e9, 0, (), {"database": "postgres", "connection": dsn}, commands={("sql", "postgres", dsn): capture}
        )
        redacted = redaction.redact(past)
        whole = b"".join(data for _, data in recording.members(redacted)).decode()
        for name in ("db1.example", "alice", "payroll"):
            assert name not in whole
        again = ReplayHost(redacted).run(Run(("sql", "postgres", redacted.options["connection"])))
        assert (again.exit, again.fault) == (capture.exit, "")
        if capture.exit == 0:
            assert json.loads(again.stdout)["roles"] == [["database1", "", "synchronous_commit=off"]]
            assert json.loads(again.stdout)["settings"] == [["fsync", "on"]]
