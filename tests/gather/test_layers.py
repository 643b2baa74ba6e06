"""What lies below a pool and above a volume on the same host: recorded hosts, changed in one place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor import audit
from auditor.facts import HOST, Facts, Known, Subject, Unknown
from auditor.gather import layers
from auditor.judge.verdict import Verdict
from auditor.recording.recording import STEADY, Recording, ReplayHost
from auditor.sources import mounts
from auditor.sources.block_tree import Holders
from tests import question, shared
from tests.whole.test_states import Edit, all_of, files, in_file, in_output

RULES = shared.rules()
STACKED = "2.3-stacked-devices"  # tfile on /lab/b/file.img, tloop on loop0, whose file is /lab/b/loop.img
ON_ZVOL = "2.3-db-postgres-on-zvol"  # ext4 on zd0, which is tank/volume, at /mnt/volume
VOLUME = Subject("dataset", "tank/volume")
FILE, LOOP = Subject("leaf", "/lab/b/file.img", "tfile"), Subject("leaf", "loop0", "tloop")
ROOT = "25 1 254:0 / / rw,noatime - ext4 /dev/vda rw"
PROC, DEV = "27 25 0:23 / /proc rw - proc proc rw", "28 25 0:6 / /dev rw - devtmpfs dev rw"
TANK = "32 25 0:28 / /tank rw - zfs tank rw"
EXT4 = "33 25 230:0 / /mnt/volume rw,relatime - ext4 /dev/zd0 rw"
SELF = "/proc/self/mountinfo"


def mounted(*lines: str) -> Edit:
    """As the first process of the host has it."""
    table = "".join(f"{line}\n" for line in (ROOT, PROC, DEV, *lines))
    both = all_of_edits(
        files(question.patterns(mounts.zfs_mounts), {"/proc/1/mountinfo": table}),
        files((SELF,), {SELF: table}),
    )
    paths = {each: each for each in ("/mnt/volume/pg", "/dev/zd0", "/srv")} | {
        f"{STEADY}/lab/b/file.img": "/lab/b/file.img"
    }
    return lambda past: replace(both(past), paths=paths)


def all_of_edits(*edits: Edit) -> Edit:
    return lambda past: all_of(past, *edits)


def lab_on(fstype: str, source: str) -> Edit:
    return mounted(TANK, f"40 25 0:40 / /lab rw - {fstype} {source} rw")


def recorded(name: str, *edits: Edit, targets: tuple[str, ...] = ()) -> Recording:
    past = all_of(shared.earlier(name), *edits)
    return replace(past, targets=targets) if targets else past


def looked(past: Recording) -> audit.Look:
    return audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))


def verdict(seen: audit.Look, rule: str, subject: Subject) -> Verdict:
    report = audit.judge(seen, [each for each in RULES if each.id == rule], (), "low")
    (found,) = [each for each in report.verdicts if each.rule.id == rule and each.subject == subject]
    return found


def sync(dataset: str, value: str) -> Edit:
    return in_output("zfs get", rf"^({dataset}\tsync\t)\w+", rf"\1{value}")


def text(facts: Facts, subject: Subject, name: str) -> str:
    found = facts.get(subject, name)
    if isinstance(found, Unknown):
        return f"unknown: {found.reasons[0].text}"
    return str(found.value)


# -- below ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaf", [FILE, LOOP])
def test_a_pool_keeps_what_the_dataset_below_it_keeps(leaf: Subject) -> None:
    rule, below = "vdev-on-unsynced-dataset", lab_on("zfs", "tank/db")
    assert verdict(looked(recorded(STACKED, below)), rule, leaf).outcome == "pass"
    failed = verdict(looked(recorded(STACKED, below, sync("tank/db", "disabled"))), rule, leaf)
    assert (failed.outcome, failed.severity) == ("fail", "critical")
    assert "tank/db" in failed.message


def test_the_dataset_below_comes_with_the_pool() -> None:
    seen = looked(recorded(STACKED, lab_on("zfs", "tank/db"), targets=("tfile",)))
    pools = seen.facts.linked(HOST, "pools")
    assert {each.name for pool in pools for each in seen.facts.linked(pool, "datasets")} == {"tfile", "tank/db"}
    assert text(seen.facts, Subject("dataset", "tank/db"), "brought") == "/lab/b/file.img of pool tfile lies on it"


@pytest.mark.parametrize("leaf", [FILE, LOOP])
def test_of_another_file_system_it_is_said_which(leaf: Subject) -> None:
    seen = looked(recorded(STACKED, lab_on("ext4", "/dev/vda")))
    assert text(seen.facts, leaf, "below") == "ext4"
    assert verdict(seen, "vdev-on-unsynced-dataset", leaf).outcome == "not applicable"
    failed = verdict(seen, "file-vdev" if leaf == FILE else "loop-vdev", leaf)
    assert "lies on ext4" in failed.message


def test_without_the_mounts_it_is_not_known() -> None:
    seen = looked(recorded(STACKED))
    assert verdict(seen, "vdev-on-unsynced-dataset", FILE).outcome == "unknown"
    assert verdict(seen, "vdev-on-unsynced-dataset", LOOP).outcome == "unknown"


def test_a_file_that_is_not_there_is_not_known() -> None:
    seen = looked(replace(recorded(STACKED, lab_on("zfs", "tank/db")), paths={}))
    assert verdict(seen, "vdev-on-unsynced-dataset", FILE).outcome == "unknown"


# -- above ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edits", "outcome", "lost"),
    [
        ((mounted(EXT4),), "pass", "()"),
        ((mounted(),), "pass", "()"),
        ((mounted(EXT4 + ",nobarrier"),), "fail", "('ext4 at /mnt/volume is mounted nobarrier',)"),
        (
            (mounted(EXT4 + ",nobarrier"), sync("tank/volume", "always")),
            "pass",
            "('ext4 at /mnt/volume is mounted nobarrier',)",
        ),
        ((mounted(EXT4.replace("ext4", "newfs")),), "unknown", "unknown: whether newfs at /mnt/volume sends flushes"),
        ((mounted(EXT4.replace("ext4", "btrfs")),), "unknown", "unknown: btrfs at /mnt/volume: btrfs may lie on more"),
        ((in_file("/zd0/queue/write_cache", "write back", "write through"),), "fail", "('zd0 says write through',)"),
        ((), "unknown", "unknown: /proc/1/mountinfo: not in the recording"),
    ],
)
def test_what_keeps_flushes_from_a_volume(edits: tuple[Edit, ...], outcome: str, lost: str) -> None:
    seen = looked(recorded(ON_ZVOL, *edits))
    assert text(seen.facts, VOLUME, "flushes_lost").startswith(lost)
    assert verdict(seen, "volume-flushes-lost", VOLUME).outcome == outcome


@pytest.mark.parametrize("path", ["/mnt/volume/pg", "/dev/zd0"])
def test_what_lies_on_a_volume_is_a_target(path: str) -> None:
    past = recorded(ON_ZVOL, mounted(TANK, EXT4), targets=(path,))
    asked = {argv: answer for argv, answer in past.commands.items() if argv[0] == "zfs" and argv[-1] == "tank"}
    volume = {(*argv[:-1], "tank/volume"): _only(answer.stdout, b"tank/volume\t") for argv, answer in asked.items()}
    answers = {argv: answer._replace(stdout=volume[*argv[:-1], "tank/volume"]) for argv, answer in asked.items()}
    commands = {**past.commands, **{(*argv[:-1], "tank/volume"): answer for argv, answer in answers.items()}}
    seen = looked(replace(past, commands=commands))
    assert seen.roots == (VOLUME,)
    assert text(seen.facts, VOLUME, "carries") == "('ext4 at /mnt/volume',)"


def _only(output: bytes, start: bytes) -> bytes:
    return b"".join(line for line in output.splitlines(keepends=True) if line.startswith(start))


def test_what_is_not_on_zfs_is_none() -> None:
    past = recorded(ON_ZVOL, mounted(TANK, EXT4), targets=("/srv",))
    with pytest.raises(audit.NothingToAudit, match="/srv is not on ZFS: it is on ext4"):
        looked(past)


@pytest.mark.parametrize(
    "line", [EXT4.replace("ext4", "fuse.sshfs"), EXT4.replace("230:0", "0:77").replace("ext4", "tmpfs")]
)
def test_any_user_may_name_the_source_of_a_mount_as_he_likes(line: str) -> None:
    """FUSE on the host, and tmpfs and overlay in mounts of his own, where he may run what looks like a database."""
    seen = looked(recorded(ON_ZVOL, mounted(line)))
    assert text(seen.facts, VOLUME, "carries") == "()"
    place = Holders(seen.facts, seen.facts).mount(mounts.mounts(f"{line}\n")[0])
    assert (place.datasets, place.off) == ((), True)


def test_the_cache_of_a_zvol_is_memory() -> None:
    seen = looked(recorded(STACKED, lab_on("zfs", "tank/db")))
    loop = Subject("disk", "loop0")
    assert isinstance(seen.facts.get(loop, "volatile_cache"), Known)
    through = in_file("/loop0/queue/write_cache", "write back", "write through")
    assert (
        verdict(
            looked(recorded(STACKED, through, lab_on("zfs", "tank/db"))), "write-cache-forced-through", loop
        ).outcome
        == "fail"
    )
    always = looked(recorded(STACKED, through, lab_on("zfs", "tank/db"), sync("tank/db", "always")))
    assert verdict(always, "write-cache-forced-through", loop).outcome == "pass"


# -- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("holder", "outcome"),
    [("zfs my\\040pool/enc", "fail"), ("zfs my\\040pool", "pass"), ("ext4 /dev/vda", "pass")],
)
def test_where_the_file_of_a_key_lies(holder: str, outcome: str) -> None:
    past = recorded("2.3-odd-names", mounted(f"40 25 0:40 / /keys rw - {holder} rw"))
    location = in_output("zfs get", r"^(my pool/enc\tkeylocation\t)\S+", r"\1file:///keys/k")
    seen = looked(replace(location(past), paths={f"{STEADY}/keys/k": "/keys/k"}))
    assert verdict(seen, "encryption-key-inside", Subject("dataset", "my pool/enc")).outcome == outcome


def test_a_file_system_that_hangs_is_waited_for_once() -> None:
    asked = []

    def real(path: str) -> str:
        asked.append(path)
        raise OSError(0, "timed out after 30 s")

    paths = layers.Paths(real)
    assert [paths.of("/mnt/a"), paths.of("/mnt/b")] == ["", ""]
    assert asked == ["/mnt/a"]
