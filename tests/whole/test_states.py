"""States that no recorded host is in: a recorded host, changed in one place, and the rule that must say so.

From the command or file to the finding, so that a rule whose facts nobody reads on a whole host cannot hide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from auditor import audit
from auditor.host.request import Capture, Files
from auditor.judge.verdict import Verdict
from auditor.recording.recording import Recording, ReplayHost
from auditor.sources import raid, shares, units
from tests import question, shared

RULES = {rule.id: rule for rule in shared.rules()}
Edit = Callable[[Recording], Recording]
HEALTHY = "2.3-healthy-mirrored-slog"
WITNESS = "/proc/filesystems"


# -- changes ----------------------------------------------------------------------------------------------------------


def everywhere(pairs: Mapping[str, str]) -> Edit:
    """Words replaced in all that was asked and answered."""

    def words(text: str) -> str:
        for old, new in pairs.items():
            text = text.replace(old, new)
        return text

    def edit(past: Recording) -> Recording:
        return replace(
            past,
            commands={
                tuple(map(words, argv)): each._replace(stdout=words(each.stdout.decode("latin-1")).encode("latin-1"))
                for argv, each in past.commands.items()
            },
            files={
                patterns: Files(
                    {words(path): words(text) for path, text in each.text.items()},
                    {words(path): words(target) for path, target in each.links.items()},
                    each.errors,
                )
                for patterns, each in past.files.items()
            },
        )

    return edit


def in_file(path: str, pattern: str, new: str) -> Edit:
    """A regular expression replaced in every file whose path matches; it must be found."""

    def edit(past: Recording) -> Recording:
        found = 0
        files = {}
        for patterns, each in past.files.items():
            text = dict(each.text)
            for name in text:
                if re.search(path, name):
                    text[name], count = re.subn(pattern, new, text[name], flags=re.M)
                    found += count
            files[patterns] = each._replace(text=text)
        assert found, f"{pattern} is in no {path}"
        return replace(past, files=files)

    return edit


def in_output(command: str, pattern: str, new: str) -> Edit:
    """A regular expression replaced in the output of the commands that begin so; it must be found."""

    def edit(past: Recording) -> Recording:
        found = 0
        commands = dict(past.commands)
        for argv, each in past.commands.items():
            if " ".join(argv).startswith(command):
                text, count = re.subn(pattern, new, each.stdout.decode(), flags=re.M)
                commands[argv] = each._replace(stdout=text.encode())
                found += count
        assert found, f"{pattern} is not in {command}"
        return replace(past, commands=commands)

    return edit


def says(command: tuple[str, ...], output: str, exit_code: int = 0) -> Edit:
    """A command that was not recorded, and what it says."""
    return lambda past: replace(past, commands={**past.commands, command: Capture(exit_code, output.encode())})


def files(patterns: tuple[str, ...], text: Mapping[str, str], links: Mapping[str, str] | None = None) -> Edit:
    """Files that were not recorded; what is not given is not there."""
    missing = {each: "no such file" for each in patterns if each not in text}
    return lambda past: replace(past, files={**past.files, patterns: Files(text, links or {}, missing)})


def gone(path: str) -> Edit:
    """A file that is not there."""

    def edit(past: Recording) -> Recording:
        changed = {
            patterns: Files(
                {name: text for name, text in each.text.items() if name != path},
                each.links,
                {**each.errors, path: "no such file or directory"} if path in each.text else each.errors,
            )
            for patterns, each in past.files.items()
        }
        assert changed != past.files
        return replace(past, files=changed)

    return edit


def option(name: str, value: str) -> Edit:
    return lambda past: replace(past, options={**past.options, name: value})


def denied(patterns: tuple[str, ...]) -> Edit:
    """Files that are there and may not be read."""
    answer = Files({WITNESS: "\text4\n"}, {}, dict.fromkeys(patterns, "permission denied"))
    return lambda past: replace(past, files={**past.files, patterns: answer})


def history(*lines: str) -> Edit:
    return says(("zpool", "history", "tank"), "\n".join(["History for 'tank':", *lines, "", ""]))


def bare_metal(model: str) -> Edit:
    """The same host with drives of another model, and no hypervisor."""
    return lambda past: in_output("systemd-detect-virt", r"\w+", "none")(
        in_file("/dmi/id/", r".+", "Example")(
            everywhere({"QEMU NVMe Ctrl": model, "QEMU_NVMe_Ctrl": model.replace(" ", "_")})(past)
        )
    )


def storcli(policy: str, battery: str) -> Edit:
    """A MegaRAID controller with one volume, sda."""
    volume = {"/c0/v0": [{"Cache": policy}], "VD0 Properties": {"OS Drive Name": "/dev/sda"}}
    status = {"Controller": 0, "Status": "Success"}
    controller = {"Basics": {}, "HwCfg": {}, **({"Cachevault_Info": [{"State": battery}]} if battery else {})}

    def answer(data: object) -> str:
        return json.dumps({"Controllers": [{"Command Status": status, "Response Data": data}]})

    device = "/sys/bus/pci/drivers/megaraid_sas/0000:03:00.0"
    drivers = question.patterns(raid.drivers)
    edits = (
        everywhere({"LAB_SATA_DISK": "PERC H730 Mini", "LAB SATA DISK": "PERC H730 Mini"}),
        files(drivers, {WITNESS: "\text4\n"}, {device: "../../../../devices/pci0000:00/0000:03:00.0"}),
        says(("storcli64", "/call/vall", "show", "all", "J", "nolog"), answer(volume)),
        says(("storcli64", "/call", "show", "all", "J", "nolog"), answer(controller)),
    )
    return lambda past: all_of(past, *edits)


def all_of(past: Recording, *edits: Edit) -> Recording:
    for edit in edits:
        past = edit(past)
    return past


def row(dataset_kstat: str, value: int) -> Edit:
    """A counter of the dataset that has commits."""

    def edit(past: Recording) -> Recording:
        changed = {}
        for patterns, each in past.files.items():
            text = dict(each.text)
            for path, content in text.items():
                if "/objset-" in path and re.search(r"^zil_commit_count\s+4\s+60$", content, re.M):
                    text[path] = re.sub(rf"^({dataset_kstat}\s+4\s+)\d+$", rf"\g<1>{value}", content, flags=re.M)
            changed[patterns] = each._replace(text=text)
        assert changed != past.files
        return replace(past, files=changed)

    return edit


NFS, SMB = question.patterns(shares.nfs), question.patterns(shares.samba)
TRIM = question.patterns(units.trim_timers)
ONE_BRIDGE = everywhere(
    {f"/devices/pci0000:00/0000:00:0{n}.0/": f"/devices/pci0000:00/0000:00:1c.0/0000:0{n}:00.0/" for n in (7, 8)}
)
FABRIC = everywhere({"/devices/pci0000:00/0000:00:05.0/nvme": "/devices/virtual/nvme-fabrics/ctl"})
TCP = in_file("/sys/class/nvme/nvme0/transport", "pcie", "tcp")

# -- states -----------------------------------------------------------------------------------------------------------

# rule, recorded host, what is changed, "kind name" of a subject on which it must then fail, severity
STATES: list[tuple[str, str, tuple[Edit, ...], str, str]] = [
    ("zil-commit-errors", HEALTHY, (row("zil_commit_error_count", 3),), "dataset tank/db", "high"),
    ("zil-commit-errors", HEALTHY, (row("zil_commit_stall_count", 9),), "dataset tank/db", "medium"),
    (
        "direct-io-bypasses-slog",
        HEALTHY,
        (
            row("zil_itx_indirect_count", 500),
            row("zil_itx_indirect_bytes", 9 << 20),
            in_file("/iostats$", r"(?<=direct_write_count {14}4 {4})0", "500"),
        ),
        "dataset tank/db",
        "high",
    ),
    ("direct-io-einval", HEALTHY, (option("database", "mysql"),), "dataset tank/db", "medium"),
    ("slog-unused", HEALTHY, (row("zil_itx_metaslab_normal_count", 500),), "dataset tank/db", "medium"),
    (
        "slog-no-redundancy",
        HEALTHY,
        (bare_metal("INTEL SSDPEDMD400G4"), ONE_BRIDGE),
        "vdev tank mirror-1",
        "low",
    ),
    (
        "disk-worn",
        HEALTHY,
        (bare_metal("INTEL SSDPEDMD400G4"), in_output("nvme smart-log", r'"percent_used":0', '"percent_used":101')),
        "leaf tank nvme-INTEL_SSDPEDMD400G4_LABNVME2",
        "high",
    ),
    (
        "disk-firmware-blocklist",
        HEALTHY,
        (bare_metal("Samsung SSD 980 PRO 2TB"), everywhere({"10.0.13": "3B2QGXA7"})),
        "disk nvme0n1",
        "high",
    ),
    (
        "volatile-cache-off-by-choice",
        HEALTHY,
        (
            bare_metal("INTEL SSDPEDMD400G4"),
            in_output("nvme get-feature", "0x0*1", "0x00000000"),
            in_output("nvme get-feature", "Enabled", "Disabled"),
        ),
        "disk nvme0n1",
        "low",
    ),
    ("network-attached-vdev", "2.4-healthy-raidz1", (FABRIC, TCP), "leaf tank nvme0n1", "medium"),
    ("multihost-off-shared", HEALTHY, (FABRIC, TCP), "pool tank", "medium"),
    ("hostid-zero", HEALTHY, (gone("/etc/hostid"),), "host host", "low"),
    ("failmode-panic", HEALTHY, (in_output("zpool get", "failmode\twait", "failmode\tpanic"),), "pool tank", "low"),
    (
        "space-nearly-gone",
        HEALTHY,
        (in_output("zfs get", r"^(tank/db\tavailable\t)\d+", r"\g<1>8388608"),),
        "dataset tank/db",
        "high",
    ),
    (
        "resilver-or-scrub-running",
        "2.4-checksum-errors",
        (in_output("zpool status", r'"state":"FINISHED"', '"state":"SCANNING"'),),
        "pool tank",
        "low",
    ),
    (
        "autotrim-none",
        HEALTHY,
        (files(TRIM, {WITNESS: "\text4\n"}), history("2026-11-01.00:00:00 zpool create tank mirror a b")),
        "pool tank",
        "low",
    ),
    ("import-discards-commits", HEALTHY, (history("2026-11-20.08:00:00 zpool import -m tank"),), "pool tank", "medium"),
    (
        "import-discards-commits",
        HEALTHY,
        (history("2026-11-20.08:00:00 zpool import -FX tank"),),
        "pool tank",
        "medium",
    ),
    (
        "nfs-export-async",
        HEALTHY,
        (
            files(NFS, {WITNESS: "\text4\n", "/etc/exports": "/tank *(rw,async,crossmnt)\n"}),
            files(SMB, {WITNESS: "\text4\n"}),
        ),
        "dataset tank/db/wal",
        "critical",
    ),
    (
        "nfs-export-async",
        HEALTHY,
        (
            in_output("zfs get", r"^(tank/db\tsharenfs\t)off\tdefault", r"\g<1>rw,async\tlocal"),
            option("database", "postgres"),
        ),
        "dataset tank/db",
        "critical",
    ),
    (
        "smb-strict-sync",
        HEALTHY,
        (files(SMB, {WITNESS: "\text4\n", "/etc/samba/smb.conf": "[vm]\npath = /tank/other/vm\nstrict sync = no\n"}),),
        "dataset tank/other",
        "critical",
    ),
    (
        "smb-strict-sync",
        HEALTHY,
        (
            files(SMB, {WITNESS: "\text4\n", "/etc/samba/smb.conf": "[global]\nstrict sync = no\n"}),
            in_output("zfs get", r"^(tank/db\tsharesmb\t)off\tdefault", r"\g<1>on\tlocal"),
        ),
        "dataset tank/db",
        "critical",
    ),
    ("dm-stack-under-vdev", "2.3-stacked-devices", (), "leaf tmd md0", "medium"),
    (
        "dm-stack-under-vdev",
        "2.3-stacked-devices",
        (
            says(
                ("dmsetup", "table", "--concise"),
                "vg0-lv0,LVM-x,1,rw,0 9 cache 253:2 253:1 253:3 1 1 writeback smq 0\n",
            ),
        ),
        "leaf tlvm vg0/lv0",
        "medium",
    ),
    (
        "raid-volume-hides-disks",
        "2.3-ashift-9-on-512e",
        (storcli("RWTD", "Optimal"),),
        "leaf tank ata-PERC H730 Mini_LABSATA0",
        "medium",
    ),
    ("raid-writeback-no-bbu", "2.3-ashift-9-on-512e", (storcli("RAWBD", ""),), "disk sda", "medium"),
    ("raid-writeback-no-bbu", "2.3-ashift-9-on-512e", (storcli("RAWBD", "Optimal"),), "disk sda", "medium"),
    ("raid-writeback-no-bbu", "2.3-ashift-9-on-512e", (storcli("RWBD", "Failed"),), "disk sda", "low"),
    (
        "virtio-cache-mode",
        "2.4-healthy-raidz1",
        (
            everywhere({"/0000:00:05.0/nvme/nvme0/nvme0n1": "/0000:00:05.0/virtio3/block/vdz", "nvme0n1": "vdz"}),
            in_file("/sys/block/vdz/queue/write_cache", "write back", "write through"),
        ),
        "disk vdz",
        "medium",
    ),
]


def verdicts(past: Recording, rule: str) -> list[Verdict]:
    seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    return list(audit.judge(seen, [RULES[rule]], past.targets or ("all",), "low").verdicts)


@pytest.mark.parametrize(
    ("rule", "host", "edits", "subject", "severity"),
    STATES,
    ids=[f"{state[0]}-{state[4]}-{i}" for i, state in enumerate(STATES)],
)
def test_the_rule_says_so(rule: str, host: str, edits: tuple[Edit, ...], subject: str, severity: str) -> None:
    past = shared.earlier(host)
    judged = verdicts(all_of(past, *edits), rule)
    failed = {f"{each.subject.kind} {each.subject}": each for each in judged if each.outcome == "fail"}
    assert subject in failed, sorted(failed) or judged[:3]
    assert failed[subject].least == severity  # these recordings lack answers of today
    assert failed[subject].evidence


@pytest.mark.parametrize(
    ("rule", "host", "edits"),
    [
        ("advisory-zvol-flush-lost", "2.3-odd-names", (in_file("/zfs/version", r".+", "2.3.1-1ubuntu2"),)),
        ("zil-commit-errors", HEALTHY, (in_file("/objset-", "zil_commit_error_count", "zil_later"),)),
        ("disk-worn", "2.3-healthy-mirrored-slog-nobody", (bare_metal("INTEL SSDPEDMD400G4"),)),
        ("nfs-export-async", HEALTHY, (denied(NFS),)),
        ("smb-strict-sync", HEALTHY, (files(SMB, {WITNESS: "\text4\n", "/etc/samba/smb.conf": "[global]\ninclude = x\n"}),)),
        ("import-discards-commits", HEALTHY, (says(("zpool", "history", "tank"), "History for 'tank':\n"),)),
        ("autotrim-none", HEALTHY, (history("2026-11-01.00:00:00 zpool trim tank"),)),
        ("dm-stack-under-vdev", "2.3-stacked-devices", ()),
        ("raid-writeback-no-bbu", "2.3-ashift-9-on-512e", (everywhere({"LAB_SATA_DISK": "PERC H730 Mini"}),)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_was_not_seen_is_unknown(rule: str, host: str, edits: tuple[Edit, ...]) -> None:
    past = shared.earlier(host)
    assert "unknown" in {each.outcome for each in verdicts(all_of(past, *edits), rule)}


@pytest.mark.parametrize(
    ("rule", "edits"),
    [
        ("nfs-export-async", (files(NFS, {WITNESS: "\text4\n", "/etc/exports": "/tank *(rw,sync)\n/srv *(async)\n"}),)),
        ("nfs-export-async", (files(NFS, {WITNESS: "\text4\n", "/etc/exports": "/tank *(ro,async)\n"}),)),
        ("nfs-export-async", (files(NFS, {WITNESS: "\text4\n"}),)),
        ("smb-strict-sync", (files(SMB, {WITNESS: "\text4\n"}),)),
        (
            "smb-strict-sync",
            (files(SMB, {WITNESS: "\text4\n", "/etc/samba/smb.conf": "[global]\n[a]\npath = /tank/db\n"}),),
        ),
        ("autotrim-none", (in_output("zpool get", "autotrim\toff", "autotrim\ton"),)),
        ("autotrim-none", (files(TRIM, {WITNESS: "\text4\n", TRIM[1]: "0 0 1 * * root /usr/lib/zfs-linux/trim\n"}),)),
        ("import-discards-commits", (history("2025-01-01.08:00:00 zpool import -m tank"),)),
        ("import-discards-commits", (history("2026-11-20.08:00:00 zpool import -d /dev/disk/by-id -f tank"),)),
        ("direct-io-bypasses-slog", ()),
        ("zil-commit-errors", ()),
        ("slog-unused", ()),
        ("space-nearly-gone", ()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_rule_is_silent(rule: str, edits: tuple[Edit, ...]) -> None:
    past = all_of(shared.earlier(HEALTHY), *edits)
    assert {each.outcome for each in verdicts(past, rule)} <= {"pass", "not applicable"}
