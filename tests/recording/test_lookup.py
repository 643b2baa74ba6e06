"""An answer of an older recording is found by what was asked about, says what it lacks, and never stands for more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from auditor import audit, registry
from auditor.databases import ENGINES, configuration
from auditor.facts import AGAIN, HOST, Facts, Known, Subject, Unknown
from auditor.gather.answer import Answer, answer_of
from auditor.host import builtin
from auditor.host.request import UNASKED, WITNESS, Capture, Files, Read, Request, Run
from auditor.recording import lookup, recording
from auditor.recording.recording import Recording, ReplayHost
from auditor.sources import commands, zpool, zpool_history
from tests import shared

TANK = Subject("pool", "tank")


def of(*commands: str, **files: Files) -> Recording:
    return Recording(0.0, 0, (), commands={tuple(each.split()): Capture(0, each.encode()) for each in commands})


def answered(past: Recording, command: str) -> str:
    """Which recorded command answers, with what it lacks; or why none does."""
    found = ReplayHost(past).run(Run(tuple(command.split())))
    return " / ".join(filter(None, (found.fault, found.stdout.decode(), ",".join(found.lacks))))


@pytest.mark.parametrize(
    ("then", "now", "answer"),
    [
        ("zpool get -Hp -o name,value size,free tank", "zpool get -Hp -o name,value size,later tank", "later"),
        ("zpool list -Hp -o name,size", "zpool list -Hp -o name,later,size", "later"),
        ("zfs list -H -r -t filesystem -o name tank", "zfs list -H -r -t filesystem,snapshot -o name tank", "snapshot"),
        ("smartctl -j -x /dev/sda", "smartctl -j -x -l farm /dev/sda", ""),
        ("zpool status -p -s tank", "zpool status -p -s -t tank", "-t"),
        ("zpool status -j --json-int tank", "zpool status -p -s tank", "-p,-s"),
        ("systemctl show --property=A,B zfs-zed.service", "systemctl show --property=A,C zfs-zed.service", "C"),
        (f"{builtin.LZC_NAME} tank tank/db sync used", f"{builtin.LZC_NAME} tank tank/db sync later used", "later"),
        ("zpool list -Hp -o name,size,free", "zpool list -Hp -o name,size", "whole"),
    ],
)  # fmt: skip
def test_an_answer_to_less_serves_and_says_what_it_lacks(then: str, now: str, answer: str) -> None:
    found = answered(of(then), now)
    if answer:
        assert found == (then if answer == "whole" else f"{then} / {answer}")
    else:
        assert found == UNASKED


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("zpool status -p -s tank", "zpool status -P tank"),
        ("zpool status -p -s tank", "zpool status -p -s tank2"),
        ("zpool get -Hp -o name,value size tank", "zpool get -Hp -o name,value feature@device_removal tank"),
        ("zpool get -Hp -o name,value size tank", "zpool get -Hp -o name,value size tank all-vdevs"),
        ("zfs get -Hp -o name,value sync tank", "zfs get -Hp -r -o name,value sync tank"),
        ("nvme get-feature -f 6 -H /dev/nvme0n1", "nvme get-feature -f 4 -H /dev/nvme0n1"),
        ("nvme id-ctrl /dev/nvme0n1 -o json", "nvme id-ns /dev/nvme0n1 -o json"),
        ("storcli64 /call show all J nolog", "storcli64 /call/vall show all J nolog"),
        ("smartctl -j -x /dev/sda", "smartctl -j -x -d sat /dev/sda"),
        ("dmidecode -t memory", "dmidecode -t bios"),
        ("systemctl list-units --type=timer *scrub*", "systemctl list-units --type=service *scrub*"),
        ("newtool --all /dev/sda", "newtool --all --more /dev/sda"),
        ("sql postgres host=a", "sql postgres host=b"),
    ],
)
def test_another_question_is_not_answered(then: str, now: str) -> None:
    assert answered(of(then), now) == UNASKED


def test_of_several_answers_that_which_lacks_least_is_taken() -> None:
    few, many = "zpool list -Hp -o name,size", "zpool list -Hp -o name,size,free"
    assert answered(of(few, many), "zpool list -Hp -o name,free,later") == f"{many} / later"


def test_a_program_is_no_part_of_a_question() -> None:
    old = ("python3", "-I", "-c", "print('of another release')", "tank", "tank/db", "sync")
    past = Recording(0.0, 0, (), commands={old: Capture(0, b"tank/db\tsync\tdisabled\tlocal\n")})
    assert ReplayHost(past).run(Run((builtin.LZC_NAME, "tank", "tank/db", "sync"))).stdout
    assert not ReplayHost(past).run(Run((builtin.LZC_NAME, "tank", "tank/db", "used"))).stdout


def test_commands_that_begin_alike_are_compared_alike() -> None:
    """The first of them is what an answer is found by."""
    found: dict[tuple[str, ...], set[object]] = {}
    for each in commands():
        found.setdefault(each.begins, set()).add((each.apart, each.valued, each.lists, each.named, each.table))
    assert [begins for begins, ways in found.items() if len(ways) > 1] == []


def test_columns_are_read_by_their_names() -> None:
    text = b"tank\tONLINE\t100\n"
    past = Recording(0.0, 0, (), commands={("zpool", "list", "-Hp", "-o", "name,health,size"): Capture(0, text)})
    found = asked("zpool_list", HOST, past)
    assert value(found, TANK, "list_health") == "ONLINE"
    assert value(found, TANK, "list_size_bytes") == 100
    assert value(found, TANK, "list_capacity_percent") == AGAIN
    assert zpool.COLUMNS["capacity"] in found.facts.of(TANK)


def test_a_property_that_was_not_asked_for_is_unknown_and_no_other() -> None:
    text = b"tank\tsize\t100\t-\ntank\tcapacity\t3\t-\n"
    argv = ("zpool", "get", "-Hp", "-o", "name,property,value,source", "size,capacity,freeing", "tank")
    found = asked("zpool_get", TANK, Recording(0.0, 0, (), commands={argv: Capture(0, text)}))
    assert value(found, TANK, "capacity_percent") == 3
    assert value(found, TANK, "checkpoint_bytes") == AGAIN  # which is 0 where it was asked for and is not set
    assert value(found, TANK, "freeing_bytes") == ""  # asked for, and not said
    assert found.failure is not None
    assert found.failure.reasons[0].remedy == ""
    assert "(checkpoint, " in found.unasked or "checkpoint" in found.unasked


def test_lines_that_were_chosen_otherwise_are_no_answer() -> None:
    said = Capture(0, b"History for 'tank':\n\n", keep=zpool_history.KEEP)
    argv = ("zpool", "history", "tank")
    assert value(asked("zpool_history", TANK, Recording(0.0, 0, (), commands={argv: said})), TANK, "trims") == 0
    first = said._replace(keep="")  # recordings of the first edition do not say it
    assert value(asked("zpool_history", TANK, Recording(0.0, 0, (), commands={argv: first})), TANK, "trims") == 0
    other = said._replace(keep="^History for |^$|zpool import ")
    found = asked("zpool_history", TANK, Recording(0.0, 0, (), commands={argv: other}))
    assert found.failure is not None
    assert found.failure.reasons[0].remedy == AGAIN


def test_what_chooses_lines_is_recorded(tmp_path: Path) -> None:
    class Alone:
        now, euid, at_once = 0.0, 0, 1

        def run(self, request: Run) -> Capture:
            return Capture(0, b"x\n")

        def read(self, request: Read) -> Files:
            return Files({})

        def realpath(self, path: str) -> str:
            return path

        def steady(self, path: str) -> str:
            return path

    host = recording.RecordingHost(Alone())
    host.run(Run(("dmesg", "-k"), keep="x"))
    recording.write(host.recording((), {}, "0"), tmp_path / "rec")
    past = recording.load(tmp_path / "rec")
    assert ReplayHost(past).run(Run(("dmesg", "-k"), keep="x")).stdout == b"x\n"
    assert ReplayHost(past).run(Run(("dmesg", "-k"), keep="x|y")).fault == UNASKED


# -- files ----------------------------------------------------------------------------------------------------------


def read(past: Recording, *patterns: str) -> Files:
    return ReplayHost(past).read(Read(patterns))


def test_files_are_found_pattern_by_pattern() -> None:
    one = Files(
        {"/sys/block/sda/queue/fua": "1\n", "/sys/block/sda/size": "8\n"}, {}, {"/sys/block/*/md": "no such file"}
    )
    two = Files({WITNESS: "nodev sysfs\n"})
    past = Recording(
        0.0, 0, (), files={("/sys/block/*/queue/fua", "/sys/block/*/size", "/sys/block/*/md"): one, (WITNESS,): two}
    )
    found = read(past, "/sys/block/*/size", WITNESS, "/sys/block/*/md", "/sys/block/*/queue/later")
    assert found.text == {"/sys/block/sda/size": "8\n", WITNESS: "nodev sysfs\n"}
    assert found.errors == {"/sys/block/*/md": "no such file", "/sys/block/*/queue/later": UNASKED}
    assert found.complete("/sys/block/*/md")
    assert not found.complete("/sys/block/*/queue/later")


def test_a_star_is_no_more_than_a_part_of_a_name() -> None:
    one = Files({"/sys/block/sda/device/serial": "1\n"})
    past = Recording(0.0, 0, (), files={("/sys/block/*/device/serial", "/sys/block/*/serial"): one})
    assert read(past, "/sys/block/*/serial").text == {}


def test_a_wider_pattern_answers_for_what_it_found() -> None:
    one = Files(
        {"/sys/module/zfs/parameters/zfs_flags": "0\n"}, {}, {"/sys/module/zfs/parameters/zfs_x": "permission denied"}
    )
    past = Recording(0.0, 0, (), files={("/sys/module/zfs/parameters/*",): one})
    folder = "/sys/module/zfs/parameters"
    found = read(
        past, f"{folder}/zfs_flags", f"{folder}/zfs_x", f"{folder}/zfs_y", "/sys/module/*/parameters/zfs_flags"
    )
    assert found.text == {f"{folder}/zfs_flags": "0\n"}
    assert found.errors == {
        f"{folder}/zfs_x": "permission denied",
        f"{folder}/zfs_y": UNASKED,
        "/sys/module/*/parameters/zfs_flags": UNASKED,  # of other modules nothing is known
    }


def test_a_recording_of_many_patterns_is_not_searched_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is from anybody, and says itself how many processes are asked about."""
    compared = 0

    def meant(path: str, pattern: str) -> bool:
        nonlocal compared
        compared += 1
        return False

    monkeypatch.setattr(lookup, "meant", meant)
    monkeypatch.setattr(lookup, "COMPARED", 10_000)
    past = lookup.Answers({}, {(f"/proc/{at}/s*",): Files({}) for at in range(500)}, frozenset())
    found = past.read(Read(tuple(f"/proc/{at}/exe" for at in range(500))))
    assert compared <= 10_000
    assert set(found.errors.values()) == {UNASKED}


def test_long_paths_of_a_recording_count_for_what_they_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0

    def matches(name: str, part: str) -> bool:
        nonlocal steps
        steps += 1
        return True

    monkeypatch.setattr(lookup, "matches", matches)
    monkeypatch.setattr(lookup, "COMPARED", 100_000)
    deep = tuple(f"{'/a' * 1000}/{at}" for at in range(10))
    past = lookup.Answers({}, {(f"{'/*' * 1000}/x{at}*",): Files({}) for at in range(500)}, frozenset())
    found = past.read(Read(deep))
    assert steps <= 200_000
    assert set(found.errors.values()) == {UNASKED}


def test_one_process_does_not_stand_for_all() -> None:
    """That no database runs is not concluded from a recording that has the first process only."""
    past = Recording(0.0, 0, (), files={("/proc/1/stat",): Files({"/proc/1/stat": "1 (init) S 0 " + "0 " * 20 + "\n"})})
    found = asked("database_processes", HOST, past)
    assert not list(found.facts)
    assert found.failure is not None
    assert [each.remedy for each in found.failure.reasons] == [AGAIN]


# -- what was kept --------------------------------------------------------------------------------------------------


def test_a_setting_that_was_not_kept_has_no_default() -> None:
    """An older zaudit made "#" of every line that it did not know: that is not "not set"."""
    past = shared.earlier("2.3-db-postgres-healthy")
    past = replace(past, options={"consistent": "no"})  # its files alone
    server = next(each for each in facts(past).subjects("database"))
    before = facts(past).of(server)
    assert isinstance(before["wal_recycle"], Known)
    after = facts(replace(past, kept=past.kept - {"postgres wal_recycle"})).of(server)
    known = {name for name, found in before.items() if isinstance(found, Known)}
    lost = {name: after[name] for name in known if isinstance(after[name], Unknown)}
    assert list(lost) == ["wal_recycle"]
    assert isinstance(why := lost["wal_recycle"], Unknown)
    assert "not in the recording" in why.reasons[0].text


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
def test_doubt_spreads_to_facts_that_are_made_of_several_settings(engine: str) -> None:
    known = ENGINES[engine]
    own = configuration.doubts(known, (f"{engine} {next(each.name for each in known.settings if each.fact)}",))
    fact = next(each.fact for each in known.settings if each.fact)
    assert own(fact)
    assert not own("directories")
    several = configuration.doubts(known, (f"{engine} {next(each.name for each in known.settings if not each.fact)}",))
    assert several("directories")
    assert several("torn_page_guard")
    assert not several(fact)


def test_recordings_of_the_first_edition_say_nothing_of_what_came_later() -> None:
    past = shared.earlier("2.3-db-postgres-healthy")
    assert past.kept == lookup.KEPT
    assert "postgres fsync" in past.kept


def facts(past: Recording) -> Facts:
    return audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options)).facts


def asked(name: str, subject: Subject, past: Recording) -> Answer:
    module = registry.sources()[name]
    request: Request = module.request(subject, Facts())
    host = ReplayHost(past)
    assert isinstance(request, Run | Read)
    reply = host.run(request) if isinstance(request, Run) else host.read(request)
    return answer_of(module, subject, request, reply, host)


def value(found: Answer, subject: Subject, name: str) -> object:
    """The value, the remedy of one that is unknown, or an empty word where it is not there."""
    match found.facts.of(subject).get(name):
        case Known(seen):
            return seen
        case Unknown(reasons):
            return reasons[0].remedy
        case _:
            return ""
