"""What several witnesses tell is compared: an answer that lost something never makes a verdict better."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from auditor import audit
from auditor import selftest as law
from auditor.databases.paths import FolderDevice, SymbolicLink
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known, unknown
from auditor.gather import witnesses
from auditor.host.request import Capture, Files
from auditor.judge.rule import Rule
from auditor.recording import recording
from auditor.recording.recording import Recording, ReplayHost
from auditor.report.model import Report
from auditor.sources import machine, zpool_history
from auditor.sources.pool_tree import LeafRow
from tests import golden, second_looks, shared
from tests.model.test_model_pools import POOL, World, leaf, vdev
from tests.shared import name_of

Edit = Callable[[bytes], bytes]
MOUNTS = ("/proc/1/mountinfo", "/proc/self/mountinfo", "/proc/1/ns/mnt", "/proc/self/ns/mnt")
TABLE = "25 1 254:0 / / rw - ext4 /dev/vda rw\n45 25 0:28 / /tank {mount} - zfs tank {system},xattr\n"
RULES = shared.audited()

pytestmark = pytest.mark.usefixtures("parsed_once")


def improved(rules: Sequence[Rule], past: Recording, most: int) -> list[str]:
    """What gets better on a recorded host when its answers lose something; of each collector at most so many losses."""
    if (trials := law.Trials.of(rules, past)) is None:
        return []
    found: list[str] = []
    for collector in trials.asked:
        for fault, to in law.lost(past, collector, trials.questions(collector), most):
            cells = trials.one(collector, to, fault)
            found += [f"{rule}: {text}" for rule, cell in cells.items() for text in cell.wrong]
    return found


def recorded(name: str) -> Recording:
    return shared.earlier(name)


def edited(past: Recording, words: str, edit: Edit) -> Recording:
    """The recording with the answers to the commands that begin so edited; at least one of them is."""
    commands = dict(past.commands)
    for argv, answer in past.commands.items():
        if " ".join(argv).startswith(words):
            commands[argv] = answer._replace(stdout=edit(answer.stdout))
    assert commands != past.commands
    return replace(past, commands=commands)


def looked(past: Recording) -> audit.Look:
    return audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))


def report(past: Recording) -> Report:
    return audit.judge(looked(past), RULES, past.targets, "low")


def outcomes(past: Recording) -> dict[tuple[str, Subject], str]:
    return {(each.rule.id, each.subject): each.outcome for each in report(past).verdicts}


def reasons(past: Recording, rule: str) -> str:
    """Why a rule is undecided; it is on something."""
    undecided = [each for each in report(past).verdicts if each.rule.id == rule and each.outcome == "unknown"]
    assert undecided, f"{rule} is not undecided"
    return " ".join(reason.text for each in undecided for reason in each.reasons)


def without(*words: str) -> Edit:
    """Lines that hold one of the words are gone."""

    def edit(text: bytes) -> bytes:
        return b"".join(line for line in text.splitlines(True) if not any(word.encode() in line for word in words))

    return edit


def without_key(*path: str) -> Edit:
    def edit(text: bytes) -> bytes:
        document = holder = json.loads(text)
        for key in path[:-1]:
            holder = holder[key]
        del holder[path[-1]]
        return json.dumps(document).encode()

    return edit


# -- the vdevs of a pool ------------------------------------------------------------------------------------------------

LOG = "nvme-QEMU_NVMe_Ctrl_LABNVME2"


@pytest.mark.parametrize(
    ("host", "command", "edit", "both"),
    [
        ("2.1-healthy-single-slog", "zpool status -p -s", without(LOG), "no device in section log"),
        ("2.1-healthy-single-slog", "zpool status -p -s", without(LOG, "\tlogs"), f"{LOG} (GUID "),
        ("2.1-healthy-mirrored-slog-nobody", "zpool status -p -s", without(LOG), "missing from the first"),
        ("2.3-healthy-single-slog", "zpool status -j", without_key("pools", "tank", "logs"), "zdb -C tank 3"),
        ("2.3-healthy-single-slog", "zpool status -j", without_key("pools", "tank", "logs", LOG), "no device in logs"),
    ],
)
def test_a_log_device_that_zpool_status_lost_is_undecided(host: str, command: str, edit: Edit, both: str) -> None:
    past = edited(recorded(host), command, edit)
    assert both in reasons(past, "slog-no-redundancy")


def test_a_section_whose_heading_is_lost_is_of_another_class_in_the_others() -> None:
    past = edited(recorded("2.1-healthy-single-slog"), "zpool status -p -s", without("\tlogs"))
    assert f"{LOG}: of another class in the second" in reasons(past, "slog-no-redundancy")
    assert f"{LOG}: of another class in the second" in reasons(past, "no-redundancy")


def test_a_mirror_that_lost_a_leg_is_no_single_disk() -> None:
    past = edited(recorded("2.1-healthy-mirrored-slog-nobody"), "zpool status", without("LABNVME0"))
    facts = looked(past).facts  # both looks of zpool status lost it, and nobody else may look: that is believed
    assert len(facts.linked(POOL, "leaves")) == 3
    past = edited(recorded("2.1-healthy-mirrored-slog-nobody"), "zpool status -p", without("LABNVME0"))
    facts = looked(past).facts
    assert isinstance(facts.get(Subject("vdev", "mirror-0", "tank"), "legs"), Unknown)
    assert len(facts.linked(POOL, "leaves")) == 4
    assert "missing from the first" in reasons(past, "no-redundancy")


def test_what_only_zpool_status_names_is_undecided_too() -> None:
    past = edited(
        recorded("2.3-healthy-single-slog"), "zdb -C", lambda text: text.replace(b"whole_disk: 1", b"whole_disk: 0")
    )
    facts = looked(past).facts  # zdb calls the leaf otherwise, by its GUID it is the same
    assert [each.name for each in facts.linked(POOL, "log_leaves")] == [LOG]
    past = edited(recorded("2.3-healthy-single-slog"), "zdb -C", lambda text: text.replace(b"is_log: 1", b"is_log: 0"))
    assert "of another class" in reasons(past, "slog-no-redundancy")


def test_an_absent_witness_makes_no_difference() -> None:
    past = recorded("2.3-healthy-single-slog")
    alone = {argv: each for argv, each in past.commands.items() if argv[0] != "zdb" and "all-vdevs" not in argv}
    facts = looked(replace(past, commands=alone)).facts
    assert [each.name for each in facts.linked(POOL, "log_leaves")] == [LOG]


# -- pools --------------------------------------------------------------------------------------------------------------


def with_kernel_list(past: Recording) -> Recording:
    """The state files that were read pool by pool, as the answer to the question for all of them."""
    texts = {
        path: text
        for files in past.files.values()
        for path, text in files.text.items()
        if path.startswith("/proc/spl/kstat/zfs/") and path.endswith("/state")
    }
    return replace(past, files={**past.files, law.POOLS: Files(texts)})


def test_a_pool_that_zpool_list_leaves_out_is_audited_and_named() -> None:
    past = with_kernel_list(recorded("2.3-stacked-devices"))
    whole = looked(past).facts
    cut = edited(past, "zpool list", without("tfile"))
    facts = looked(cut).facts
    assert facts.linked(HOST, "pools") == whole.linked(HOST, "pools")
    assert {"file-vdev", "no-redundancy"} <= {each.rule.id for each in report(cut).findings if each.failed}
    why = facts.get(HOST, "imported_pools")
    assert isinstance(why, Unknown)
    assert why.reasons[0].text == "/proc/spl/kstat/zfs names tfile, zpool list does not"
    assert isinstance(facts.get(Subject("pool", "tfile"), "list_health"), Unknown)


def test_a_pool_that_is_being_looked_for_is_none() -> None:
    past = with_kernel_list(recorded("2.3-stacked-devices"))
    states = past.files[law.POOLS].text
    files = Files({**states, "/proc/spl/kstat/zfs/$import/state": "ONLINE\n"})
    facts = looked(replace(past, files={**past.files, law.POOLS: files})).facts
    assert isinstance(facts.get(HOST, "imported_pools"), Known)


# -- disks --------------------------------------------------------------------------------------------------------------


def test_an_answer_for_another_disk_is_refused() -> None:
    past = recorded("2.3-drives-that-warn")
    argv, other = ("smartctl", "-j", "-x", "/dev/sdd"), ("smartctl", "-j", "-x", "/dev/sdb")
    swapped = replace(past, commands={**past.commands, argv: past.commands[other]})
    assert "it answers for /dev/sdb, not for /dev/sdd" in reasons(swapped, "disk-smart-failed")
    disguised = past.commands[other]._replace(stdout=past.commands[other].stdout.replace(b"/dev/sdb", b"/dev/sdd"))
    told = replace(past, commands={**past.commands, argv: disguised})
    text = reasons(told, "no-power-loss-protection")
    assert "smartctl -x says" in text
    assert "the kernel (/sys/block) Samsung SSD 980" in text


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ("Samsung SSD 860", "Samsung SSD 860 EVO 500GB", False),  # the kernel cuts after 16 characters
        ("Samsung_SSD_860_EVO_500GB", "Samsung SSD 860 EVO 500GB", False),  # udev
        ("SEAGATE ST4000NM0034", "ST4000NM0034", False),  # smartctl puts the vendor first
        ("S3Z8NB0K123456", "S3Z8NB0K123457", True),
        ("", "S3Z8NB0K123457", False),
        ("5000c500a1b2c3d4", "Z4F0ABCD", False),  # a world-wide name is no serial number
    ],
)
def test_one_and_the_same_disk_spelt_differently(one: str, other: str, differ: bool) -> None:
    world = World(("mirror-0", "mirror", "normal", ("a", "b")))
    disk = Subject("disk", "a")
    world.put(disk, transport="sata", smart_serial=other, udev_serial=one, nvme_serial="")
    witnesses.compare(world.facts, witnesses.compare_disks)
    assert isinstance(world.facts.get(disk, "smart_serial"), Unknown) == differ
    assert isinstance(world.facts.get(disk, "udev_serial"), Unknown) == differ


def test_what_lies_behind_a_bridge_or_a_network_is_not_compared() -> None:
    world = World(("mirror-0", "mirror", "normal", ("a", "b")))
    disk = Subject("disk", "a")
    world.put(disk, transport="usb", smart_serial="S3Z8NB0K123456", udev_serial="DD5641988")
    witnesses.compare(world.facts, witnesses.compare_disks)
    assert isinstance(world.facts.get(disk, "smart_serial"), Known)


# -- mounts -------------------------------------------------------------------------------------------------------------


def in_namespace(past: Recording, mount: str, system: str, own: str = "2") -> Recording:
    """readonly=on for zfs get where zaudit ran; mount: options there, system: of the file system, or empty: not in sight."""
    past = edited(past, "zfs get", read_only)
    table = TABLE.format(mount=mount, system=system) if system else TABLE.splitlines(True)[0]
    links = {"/proc/1/ns/mnt": "mnt:[1]", "/proc/self/ns/mnt": f"mnt:[{own}]"}
    return replace(past, files={**past.files, MOUNTS: Files({"/proc/self/mountinfo": table}, links)})


def read_only(text: bytes) -> bytes:
    return law.TEMPORARY.capture(Capture(0, text)).stdout


def test_a_read_only_bind_mount_is_no_read_only_dataset() -> None:
    past = recorded("2.3-sync-disabled-local")
    seen = report(in_namespace(past, "ro", "rw"))
    assert "sync-disabled" in {each.rule.id for each in seen.findings if each.failed}
    assert seen.seen_from
    assert seen.exit_code == report(past).exit_code
    assert "not seen" in reasons(in_namespace(past, "ro", ""), "sync-disabled")
    truly = report(in_namespace(past, "ro", "ro", own="1"))
    decided = {each.subject.name: each.outcome for each in truly.verdicts if each.rule.id == "sync-disabled"}
    assert decided["tank"] == "not applicable"
    assert not truly.seen_from


def test_the_report_says_that_zaudit_stands_in_a_container() -> None:
    own = machine.OWN
    past = recorded("2.3-sync-disabled-local")
    inside = replace(past, files={**past.files, (own,): Files({}, {own: "pid:[4026532289]"})})
    assert report(inside).seen_from.startswith("Seen from a container")
    assert not report(past).seen_from


def test_a_recording_without_the_mounts_does_not_decide_what_is_temporary() -> None:
    past = edited(recorded("2.3-sync-disabled-local"), "zfs get", read_only)
    assert "readonly=on (temporary)" in reasons(past, "sync-disabled")


@pytest.mark.parametrize(("own", "atime", "is_mounted"), [("1", True, False), ("2", False, True), ("", False, False)])
def test_atime_and_mounted_are_of_the_namespace(own: str, atime: bool, is_mounted: bool) -> None:
    tank, other = Subject("dataset", "tank"), Subject("dataset", "tank/other")
    world = World(("mirror-0", "mirror", "normal", ("a", "b")))
    facts = world.facts
    world.put(HOST, zfs_mounts=("tank=rw",), **({"own_mount_namespace": own == "2"} if own else {}))
    for dataset in (tank, other):
        world.put(dataset, mounted=False)
    facts.replace(Fact(tank, "atime", known("off", "atime=off (temporary)")))
    witnesses.compare(facts, witnesses.compare_mounted)
    assert isinstance(facts.get(tank, "atime"), Known) == atime
    found = facts.get(tank, "mounted")
    assert isinstance(found, Known)
    assert found.value is is_mounted
    assert isinstance(facts.get(other, "mounted"), Known) == (own != "2")


# -- which pools there are --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "kernel", "mounted", "pools", "why"),
    [
        (("tank",), ("tank",), ("tank/db=rw", "tank=ro"), ["tank"], ""),
        (("tank",), None, ("tank/db=rw",), ["tank"], ""),
        (("tank",), None, None, ["tank"], ""),
        (("tank",), None, ("tank=rw", "fast/wal=rw"), ["tank", "fast"], "mountinfo names fast, zpool list does not"),
        (("tank",), ("fast", "tank"), ("fast=rw",), ["tank", "fast"], "kstat/zfs names fast, zpool list does not"),
        (("tank", "fast"), ("tank",), (), ["tank", "fast"], "zpool list names fast, /proc/spl/kstat/zfs does not"),
        (None, None, ("tank=rw",), None, "refused"),
    ],
)
def test_a_pool_that_one_of_them_does_not_name(
    listed: tuple[str, ...] | None,
    kernel: tuple[str, ...] | None,
    mounted: tuple[str, ...] | None,
    pools: list[str] | None,
    why: str,
) -> None:
    facts = Facts(0.0)
    names = unknown("refused") if listed is None else known(tuple(Subject("pool", name) for name in listed), "")
    facts.put(Fact(HOST, "imported_pools", names))
    for name, said in (("kstat_pools", kernel), ("zfs_mounts", mounted)):
        facts.put(Fact(HOST, name, unknown("not in the recording") if said is None else known(said, "")))
    assert witnesses.pool_names(facts) == pools
    found = facts.get(HOST, "imported_pools")
    assert isinstance(found, Unknown) == bool(why)
    assert not isinstance(found, Unknown) or why in found.reasons[0].text


# -- what is remembered ---------------------------------------------------------------------------------------------------


def test_events_of_a_suspended_pool_that_know_of_no_suspension_are_cut() -> None:
    past = edited(
        recorded("2.3-suspended-path-failed"), "zpool events", lambda text: b"".join(text.splitlines(True)[:42])
    )
    assert "does not reach to now" in reasons(past, "pool-suspended-history")


FAILED = b"ereport.fs.zfs.io_failure\n"


def test_an_event_that_one_list_lost_is_a_hole_and_both_are_named() -> None:
    past = second_looks.added(recorded("2.3-path-that-hangs"))
    lines = past.commands["zpool", "events", "-H", "tank"].stdout.splitlines(True)
    hung = [at for at, line in enumerate(lines) if b".deadman" in line][:-1]
    short = edited(past, "zpool events -H tank", lambda _: b"".join(x for at, x in enumerate(lines) if at not in hung))
    lost = reasons(short, "deadman-seen")
    assert "zpool events -v has" in lost
    assert "deadman, zpool events tank lacks it" in lost
    every = past.commands[second_looks.EVENTS].stdout.splitlines(True)
    gap = edited(past, "zpool events -H -v", lambda _: b"".join(every[: 3 * hung[0]] + every[3 * hung[0] + 3 :]))
    assert f"zpool events -v lacks event {hung[0] + 1} of the kernel" in reasons(gap, "deadman-seen")


def test_of_two_lists_that_end_elsewhere_only_the_one_without_texts_of_users_is_believed() -> None:
    """They are asked for one after the other: what is beyond the end of one is no hole."""
    past = second_looks.added(recorded("2.3-suspended-path-failed"))
    for words, value in (("zpool events -H tank", None), ("zpool events -H -v", 1)):
        ended = edited(past, words, lambda text: text[: text.rindex(b"\n", 0, text.index(FAILED)) + 1])
        found = looked(ended).facts.get(Subject("pool", "tank"), "events_io_failure")
        assert (found.value if isinstance(found, Known) else None) == value
        assert value or "io_failure, which zpool events tank does not have" in str(found)


def test_a_pool_that_was_made_in_the_text_of_a_user_hides_no_event() -> None:
    """What came before a pool of this name was created belongs to another one: -v may say so and prints what users wrote."""
    past = second_looks.added(recorded("2.3-suspended-path-failed"))
    forged = b"Dec 31 2099 00:00:00.000000000\tsysevent.fs.zfs.pool_create\n"

    def also(text: bytes) -> bytes:
        newest = text.count(b"eid = ")
        return text + forged + b'        pool = "tank"\n' + f"        eid = {newest + 1:#x}\n".encode()

    found = looked(edited(past, "zpool events -H -v", also)).facts.get(Subject("pool", "tank"), "events_io_failure")
    assert isinstance(found, Known)
    assert found.value == 1


def test_events_of_no_pool_and_of_others() -> None:
    facts, tank = Facts(0.0), Subject("pool", "tank")
    seen = "2026-11-21 10:00:00.1 sysevent.fs.zfs.pool_import", "2026-11-21 10:00:03.1 ereport.fs.zfs.io_failure"
    facts.put(Fact(HOST, "pools", known((tank,), "")))
    facts.put_all(zpool_history.counts(tank, seen, ""))
    facts.put(Fact(tank, "events", known(seen, "")))
    rows = (f"1 {seen[0]} tank", f"2 {seen[1]} tank", "3 2026-11-21 10:00:02.1 ereport.fs.zfs.deadman my data")
    facts.put(Fact(HOST, "events", known(rows, "")))
    witnesses.compare(facts, witnesses.compare_events)
    found = {name: facts.get(tank, name) for name in ("events_deadman", "events_io_failure")}
    assert [each.value for each in found.values() if isinstance(each, Known)] == [0, 1]
    facts.replace(Fact(HOST, "events", known((*rows, "4 2026-11-21 10:00:09.1 ereport.fs.zfs.deadman "), "")))
    witnesses.compare(facts, witnesses.compare_events)
    assert "10:00:09.1 ereport.fs.zfs.deadman, which zpool" in str(facts.get(tank, "events_deadman"))


def test_a_command_that_one_answer_of_zpool_history_lost() -> None:
    past = second_looks.added(recorded("2.3-import-rewound"))
    assert outcomes(past)["import-discards-commits", Subject("pool", "tank")] == "fail"
    for words in ("zpool history tank", "zpool history -i tank"):
        lost = reasons(edited(past, words, without(" zpool import ")), "import-discards-commits")
        assert "of zpool history and zpool history -i only one has" in lost
        assert " zpool import " in lost


def test_a_line_that_is_lost_from_the_mounts_of_a_database() -> None:
    past = recorded("2.3-db-postgres-healthy")
    before = outcomes(past)
    key = next(key for key in past.files if key[0].endswith("/mountinfo"))
    lines = past.files[key].text[key[0]].splitlines(True)
    for at in range(len(lines)):
        files = past.files[key]._replace(text={key[0]: "".join(lines[:at])})
        after = outcomes(replace(past, files={**past.files, key: files}))
        undecided = {rule for (rule, _), outcome in after.items() if outcome == "unknown"}
        lost = [k for k, was in before.items() if was == "fail" and after.get(k) != "fail" and k[0] not in undecided]
        assert lost == []


def test_a_folder_that_is_on_another_device_than_its_table_says() -> None:
    """A mount of another file system over it was lost, or there is none of them in the table."""
    database = Subject("database", "postgres 9")
    table = (
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw",
        "23 22 0:40 / /pg rw - zfs tank/pg rw",
        "24 23 0:41 / /pg/log rw - xfs x rw",
    )

    def found(*lines: str, wal: str = "0:41") -> Known | Unknown:
        facts = Facts(0.0)
        facts.put(Fact(database, "mountinfo", known(lines, "")))
        facts.put(Fact(database, "directories", known(("data:/pg", "log:/pg/pg_wal"), "")))
        facts.put(Fact(database, "symlinks", known((SymbolicLink("/pg/pg_wal", "log"),), "")))
        facts.put(Fact(database, "devices", known((FolderDevice("/pg", "0:40"), FolderDevice("/pg/pg_wal", wal)), "")))
        facts.put(Fact(database, "datasets", known((), "")))
        witnesses.compare(facts, witnesses.compare_mounts_of_databases)
        return facts.get(database, "datasets")

    assert isinstance(found(*table), Known)
    lost = found(*table[:2])
    assert isinstance(lost, Unknown)
    assert "puts /pg/pg_wal on tank/pg (0:40), the folder itself is on device 0:41" in lost.reasons[0].text
    assert isinstance(found(table[0], *table[2:]), Unknown)
    subvolumes = [line.replace("zfs tank/pg", "btrfs /dev/sdb") for line in table[:2]]
    assert isinstance(found(*subvolumes, wal="0:77"), Known)  # which have devices that no table names


@pytest.mark.parametrize(
    ("mount", "home", "lost"),
    [
        ("/ / rw - zfs rpool/ROOT/here rw", "/var/lib/pg", ""),
        ("/ / rw - zfs rpool/ROOT/here rw", "/srv/pg", "tank/pg"),
        ("/ / rw - zfs rpool/data/subvol-101 rw", "/var/lib/pg", ""),
        ("/ / rw - zfs rpool/data/unaudited rw", "/srv/pg", ""),
        ("/machine / rw - ext4 /dev/sda1 rw", "/srv/pg", ""),
        ("/ /boot rw - ext4 /dev/sda1 rw", "/var/lib/pg", "rpool/ROOT/here"),
    ],
)
def test_a_container_has_another_root_than_the_host(mount: str, home: str, lost: str) -> None:
    facts, database = Facts(0.0), Subject("database", "postgres 9")
    points = {"rpool/ROOT/here": "/", "rpool/data/subvol-101": "/rpool/data/subvol-101", "tank/pg": "/srv/pg"}
    for name, point in points.items():
        facts.put(Fact(Subject("dataset", name), "mounted", known(True, "")))
        facts.put(Fact(Subject("dataset", name), "mountpoint", known(point, "")))
    facts.put(Fact(database, "mountinfo", known((f"100 50 0:40 {mount}",), "")))
    facts.put(Fact(database, "directories", known((f"data:{home}",), "")))
    facts.put(Fact(database, "symlinks", known((), "")))
    facts.put(Fact(database, "datasets", known((), "")))
    witnesses.compare(facts, witnesses.compare_mounts_of_databases)
    found = facts.get(database, "datasets")
    assert isinstance(found, Unknown) == bool(lost)
    assert not isinstance(found, Unknown) or f"{lost} is mounted" in found.reasons[0].text


# -- all hosts ------------------------------------------------------------------------------------------------------------


def spoilable() -> list[Path]:
    """Hosts on which all the rules of medium or more fail that fail on any, the one with most of those that are left first; and
    of each release a healthy one. On the others nothing else of these fails that could be lost."""
    failing = {case: {rule for _, rule in failures} for case, failures in golden.written().items()}
    left, chosen = (
        set[str]().union(*failing.values()),
        [case for case in failing if name_of(case).endswith("y-mirrored-slog")],
    )
    assert {case.name[:3] for case in chosen} == {"2.1", "2.2", "2.3", "2.4"}
    while left:
        chosen.append(max(failing, key=lambda case: len(failing[case] & left)))
        left -= failing[chosen[-1]]
    return chosen


@pytest.mark.slow
@pytest.mark.parametrize("case", spoilable(), ids=name_of)
def test_no_loss_makes_a_verdict_better(case: Path) -> None:
    assert improved(RULES, second_looks.added(recording.load(case)), 1) == []


@pytest.mark.slow
@pytest.mark.parametrize("host", ["2.1-slog-legs-on-one-disk", "2.3-drives-that-warn", "2.4-zfs-nocacheflush"])
def test_nor_do_many(host: str) -> None:
    assert improved(RULES, second_looks.added(recorded(host)), 6) == []


@pytest.mark.slow
def test_the_losses_find_something_to_spoil() -> None:
    """With zpool status as the only witness, a lost line does take a finding away: the faults are worth it."""
    past = recorded("2.1-slog-striped")
    alone = {
        argv: each for argv, each in past.commands.items() if argv[0] != "zdb" and argv[:3] != ("zpool", "status", "-P")
    }
    found = improved(RULES, second_looks.added(replace(past, commands=alone)), 30)
    assert any("slog-no-redundancy: zpool_status" in each for each in found)


# -- what is no difference --------------------------------------------------------------------------------------------------


def compared(world: World, *rows: LeafRow) -> World:
    world.put(POOL, zdb_tree=tuple(row.line() for row in rows))
    witnesses.compare(world.facts, witnesses.compare_vdevs)
    return world


def test_a_spare_in_use_stands_in_two_places() -> None:
    world = World(("mirror-0", "mirror", "normal", ("a", "b", "s")), ("mirror-1", "mirror", "normal", ("c", "d")))
    world.facts.replace(Fact(leaf("s"), "vdev", unknown("it stands in two places")))
    rows = [LeafRow("mirror-0", each, allocation="not log") for each in "abs"]
    compared(world, *rows, LeafRow("mirror-1", "c"), LeafRow("mirror-1", "d"), LeafRow("", "s", allocation="spare"))
    assert world.get(vdev("mirror-0"), "legs") == 3
    assert isinstance(world.facts.get(POOL, "spare_leaves"), Unknown)  # which only the other one lists
    assert len(world.facts.linked(POOL, "leaves")) == 5


def test_a_missing_device_is_called_by_its_guid_or_by_its_path() -> None:
    world = World(("mirror-0", "mirror", "normal", ("a", "1234567890")))
    compared(
        world, LeafRow("mirror-0", "a", "77", "/dev/a"), LeafRow("mirror-0", "nvme9n1", "1234567890", "/dev/nvme9n1p1")
    )
    assert world.get(vdev("mirror-0"), "legs") == 2


def test_a_single_disk_is_called_by_its_name_or_by_its_path() -> None:
    world = World(("lv0", "disk", "normal", ("lv0",)))
    world.put(leaf("lv0"), path="/dev/vg0/lv0")
    compared(world, LeafRow("/dev/vg0/lv0", "/dev/vg0/lv0", "", "/dev/vg0/lv0", "normal"))
    assert world.get(vdev("lv0"), "allocation_class") == "normal"


def test_a_whole_disk_is_called_without_its_partition_where_no_path_is_known() -> None:
    world = World(("mirror-0", "mirror", "normal", ("nvme-X", "nvme-Y")))
    rows = [LeafRow("mirror-0", path, "", path, "normal") for path in ("/dev/disk/by-id/nvme-X-part1", "/dev/nvme-Y")]
    compared(world, *rows)
    assert world.get(vdev("mirror-0"), "legs") == 2


def test_special_is_not_log() -> None:
    world = World(("a", "disk", "special", ("a",)), ("b", "disk", "log", ("b",)))
    compared(world, LeafRow("a", "a", allocation="not log"), LeafRow("b", "b", allocation="log"))
    assert world.get(vdev("a"), "allocation_class") == "special"
    compared(world, LeafRow("a", "a", allocation="normal"), LeafRow("b", "b", allocation="log"))
    assert "of another class" in world.why(vdev("a"), "allocation_class")
    assert world.get(vdev("b"), "allocation_class") == "log"


def test_another_guid_under_the_same_name_is_another_device() -> None:
    world = World(("mirror-0", "mirror", "normal", ("a", "b")))
    world.put(leaf("a"), guid="1")
    compared(world, LeafRow("mirror-0", "a", "2"), LeafRow("mirror-0", "b", "3"))
    assert "a (GUID 2): missing from the first; a: missing from the second" in world.why(vdev("mirror-0"), "legs")
