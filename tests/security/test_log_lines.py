"""A local user can add lines to the kernel's log and push others out of it: no verdict becomes better by that.

The added lines are those of all pairs of the parsers, each of which some parser takes for the kernel's word. They are added
anywhere: to records of /dev/kmsg, where no user can put a line, and to answers of dmesg in older recordings, where any could.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor import audit
from auditor.facts import HOST, Fact, Facts, Subject, known
from auditor.host.process import Lines
from auditor.host.request import Output, Run
from auditor.judge import verdict
from auditor.judge.event import ORDER, Event
from auditor.judge.finding import RANK
from auditor.judge.rule import Rule
from auditor.judge.verdict import Verdict
from auditor.model.fault_log import host_faults, logged_faults
from auditor.model.pool import suspensions
from auditor.recording import lookup
from auditor.recording.recording import Recording, ReplayHost
from auditor.report.model import Report
from auditor.sources import kernel_log, of_module
from tests import pairs, shared
from tests.question import run
from tests.renamed import passed_through

SOURCES = {each.name: each for each in of_module(kernel_log)}
BOOT = "[    0.000000] Linux version 6.12.48 (a@b) #1"
FIRST = ("dmesg", f"dmesg\n{BOOT}", "records 0 to 90210", "records 523 to 90210", "records 0 to 90210, some lost")
OUTCOMES = {"pass": 0, "not applicable": 0, "unknown": 1, "fail": 2}
HOSTS = shared.HOSTS.names()
STAMP = re.compile(r"^\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ?")
TRIM = (
    "I/O error, dev sda, sector 0 op 0x3:(DISCARD) flags 0x800 phys_seg 1 prio class 0",
    "ata3.00: failed command: DATA SET MANAGEMENT",  # of a port that may be of another disk
)
Change = Callable[[Run, str], str]
Log = Mapping[str, list[str]]  # by collector, the lines that it asks for


def alike(line: str) -> str:
    """The same of the same disk, port and record: what others say of it, too."""
    for thing, one in (
        (r"\bsd[a-z]\b", "sda"),
        (r"\bata\d+", "ata3"),
        (r"\{\d+\}", "{7417}"),
        (r"\bsd \d+:\d+:\d+:\d+", "sd 6:0:3:0"),
    ):
        line = re.sub(thing, one, line)
    return line


@cache
def logs() -> tuple[tuple[str, ...], ...]:
    """The lines of each pair, and of one disk, without their times."""
    said = [
        pair.reply.text.split("\n")[1:-1]
        for name in SOURCES
        for pair in pairs.of(name)
        if isinstance(pair.reply, Output)
    ]
    found = {tuple(STAMP.sub("", line) for line in each) for each in said}
    return tuple(sorted(found | {tuple(map(alike, each)) for each in found} | {TRIM}))


@cache
def lines() -> tuple[str, ...]:
    return tuple(sorted({line for each in logs() for line in each}))


@cache
def asked(keep: str, line: str) -> bool:
    """Whether the reader keeps a line without its time."""
    return bool(Lines(keep).of(f"{line}\n".encode()))


def kept(keep: str, told: Iterable[str]) -> list[str]:
    """What the reader keeps for a collector."""
    return [line for line in told if asked(keep, STAMP.sub("", line))]


def added(told: list[str], more: list[tuple[int, str]]) -> list[str]:
    """With these lines at these places."""
    found = list(told)
    for at, line in more:
        found.insert(at % (len(found) + 1), line)
    return found


# -- what the parsers and derivations make of it ------------------------------------------------------------------------------

DISKS = {
    "sda": "/devices/pci0000:00/0000:00:17.0/ata3/host6/target6:0:3/6:0:3:0/block/sda",
    "sdb": "/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sdb",  # a port that two share
    "sdc": "/devices/pci0000:00/0000:5e:00.0/ata1/host0/target0:0:0/0:0:0:0/block/sdc",
    "nvme0n1": "/devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1",
    "sdd": "",
}
POOL, LEAF, PATHS = Subject("pool", "tank"), Subject("leaf", "luks", "tank"), Subject("leaf", "mpatha", "tank")


@cache
def resting() -> tuple[Rule, ...]:
    """The rules that rest on the log."""
    names = {name for source in SOURCES.values() for name in source.facts} | {
        name.partition(".")[2] for name in logged_faults.facts
    }
    names |= {*host_faults.facts, *suspensions.facts}
    texts = {path.stem: path.read_text() for path in (shared.FIXTURES.parent / "rules").glob("*.toml")}
    found = tuple(
        rule for rule in shared.audited() if any(re.search(rf"\.{name}\b", texts.get(rule.id, "")) for name in names)
    )
    assert len(found) > 5
    return found


def world(log: Log, first: str) -> Facts:
    """A pool on all of the disks, sdb of them by multipath, and what the log says of them."""
    facts = Facts()
    disks = {Subject("disk", name): place for name, place in DISKS.items()}
    said: dict[Subject, dict[str, Any]] = {
        HOST: {"virtualization": "none", "zfs_version": (2, 1, 5), "pools": (POOL,), "memory_ecc": False},
        POOL: {"events_io_failure": 0, "leaves": (LEAF, PATHS)},
        LEAF: {"disks": tuple(disk for disk in disks if disk.name != "sdb"), "layers": (), "path": "/dev/mapper/luks"},
        PATHS: {"disks": (Subject("disk", "sdb"),), "layers": ("multipath",), "nodes": ("dm-0",), "path": "/dev/dm-0"},
    }
    for disk, place in disks.items():
        said[disk] = {
            "transport": "nvme" if disk.name.startswith("nvme") else "sata",
            "sysfs_write_cache": "write through",
        }
        said[disk] |= {"virtual": False, "raid_volume": False, "is_ssd": True}
        said[disk] |= {"sysfs_path": place} if place else {}
        said[disk] |= {"used_by": (PATHS if disk.name == "sdb" else LEAF,)} if disk.name != "sdc" else {}
    said[HOST]["kernel_failures"] = ()
    for subject, of_it in said.items():
        facts.put_all([Fact(subject, name, known(value, "")) for name, value in of_it.items()])
    for name, source in SOURCES.items():
        text = "".join(f"{line}\n" for line in (first, *log[name]))
        facts.put_all(source.parse(Output(text, "/dev/kmsg"), HOST))
    facts.put_all(list(logged_faults.derive(HOST, facts)))
    facts.put_all(list(host_faults.derive(HOST, facts)))
    facts.put_all(list(suspensions.derive(POOL, facts)))
    return facts


def verdicts(told: list[str], first: str) -> dict[tuple[str, Subject], Verdict]:
    log = {name: kept(run(source).keep, told) for name, source in SOURCES.items()}
    return {(each.rule.id, each.subject): each for each in verdict.judge(resting(), world(log, first))}


def better(
    before: Mapping[tuple[str, Subject], Verdict], after: Mapping[tuple[str, Subject], Verdict]
) -> Iterator[str]:
    """What has become better."""
    for key, was in before.items():
        now = after.get(key)
        if now is None or OUTCOMES[now.outcome] < OUTCOMES[was.outcome]:
            yield f"{key[0]} {key[1]}: {was.outcome} -> {now and now.outcome}"
        elif was.outcome == now.outcome == "fail" and RANK[now.severity] < RANK[was.severity]:
            yield f"{key[0]} {key[1]}: {was.severity} -> {now.severity}"


# nobody has a time before the log begins; a trace and what comes between its lines are near to each other
times = st.integers(1, 40).map(lambda tenths: tenths / 10) | st.floats(0.1, 1e6)


def stamped(text: str, at: float) -> str:
    return f"[{at:12.6f}] {text}"


@st.composite
def told_and_more(draw: st.DrawFn) -> tuple[list[str], list[tuple[int, str]]]:
    """What the kernel logged, as in one of the pairs, and lines that belong to it or to any."""
    log, at = draw(st.sampled_from(logs())), draw(times)
    some = draw(st.lists(st.booleans(), min_size=len(log), max_size=len(log)))
    told = [
        stamped(line, at + 0.01 * number) for number, (line, kept_) in enumerate(zip(log, some, strict=True)) if kept_
    ]
    line = (
        st.sampled_from(log or lines()) | st.sampled_from(lines()) | st.sampled_from(tuple(map(alike, log or lines())))
    )
    near = st.tuples(st.integers(0, 20), st.tuples(line, st.just(at) | times).map(lambda each: stamped(*each)))
    return told, draw(st.lists(near, max_size=6))


@pytest.mark.hypothesis
@shared.examples(600)
@given(told_and_more(), st.sampled_from(FIRST))
def test_no_rule_becomes_better_by_lines_that_are_added(
    log: tuple[list[str], list[tuple[int, str]]], first: str
) -> None:
    told, more = log
    assert list(better(verdicts(told, first), verdicts(added(told, more), first))) == []


def test_each_rule_that_rests_on_the_log_can_pass_and_fail_here() -> None:
    whole = {rule for (rule, _), each in verdicts([], "records 0 to 90210").items() if each.outcome == "pass"}
    assert whole == {rule.id for rule in resting()}
    everything = [stamped(line, 5 + number) for number, line in enumerate((*lines(), *map(alike, lines())) * 3)]
    failed = {rule for (rule, _), each in verdicts(everything, "records 0 to 90210").items() if each.outcome == "fail"}
    assert failed == whole


@pytest.mark.hypothesis
@shared.examples(100)
@given(st.lists(st.tuples(st.sampled_from(lines()), times).map(lambda each: stamped(*each)), max_size=20))
def test_where_the_beginning_is_gone_no_rule_passes(told: list[str]) -> None:
    """Also not by a line that reads like the first."""
    usual = {key for key, each in verdicts([], "records 0 to 90210").items() if each.outcome == "pass"}
    passed = {key for key, each in verdicts(told, "records 523 to 90210").items() if each.outcome == "pass"}
    without = {key for key, each in verdicts([], "records 523 to 90210").items() if each.outcome == "pass"}
    assert passed <= without < usual


# -- whole hosts --------------------------------------------------------------------------------------------------------


def report(past: Recording) -> Report:
    seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    return audit.judge(seen, shared.audited(), past.targets, "low")


def of(found: Report) -> dict[tuple[str, Subject], Verdict]:
    return {(each.rule.id, each.subject): each for each in found.verdicts}


def events(found: Report) -> dict[tuple[str, Event], int]:
    return {
        (dataset, event): ORDER[cell.outcome]
        for column in found.columns
        for event, cell in column.cells.items()
        for dataset in column.names
    }


def changed(past: Recording, change: Change) -> Recording:
    """With another text of each answer of the log."""
    commands = dict(past.commands)
    for request in map(run, SOURCES.values()):
        for argv in (request.argv, *(old for old, new in lookup.ASKED.items() if new == request.argv)):
            if (answer := commands.get(argv)) and answer.exit == 0 and answer.keep == request.keep:
                text = change(request, answer.stdout.decode())
                commands[argv] = answer._replace(stdout=text.encode())
    return replace(past, commands=commands)


@pytest.mark.parametrize("name", shared.briefly([(name,) for name in HOSTS], quick=3))
def test_no_host_becomes_better_by_lines_that_are_added(name: str) -> None:
    chance = Random(name)
    before = report(past := shared.host(name))
    for _ in range(3):
        forged = [stamped(line, chance.uniform(1, 1e5)) for line in chance.choices(lines(), k=60)]

        def change(request: Run, text: str, forged: list[str] = forged) -> str:
            told = text.splitlines()
            for line in kept(request.keep, forged):
                told.insert(chance.randrange(1, len(told) + 1) if told else 0, line)
            return "".join(f"{line}\n" for line in told)

        after = report(changed(past, change))
        assert list(better(of(before), of(after))) == []
        was, now = events(before), events(after)
        assert [key for key in was if now[key] < was[key]] == []
        assert after.exit_code >= before.exit_code


@pytest.mark.parametrize("name", shared.briefly([(name,) for name in HOSTS], quick=1))
def test_no_host_becomes_better_by_a_log_that_was_filled(name: str) -> None:
    """A finding may go with the line that told of it; nothing passes in its place."""
    before = report(past := shared.host(name))
    after = report(changed(past, lambda request, text: ""))
    passed = {key for key, each in of(before).items() if each.outcome == "pass"}
    assert {key for key, each in of(after).items() if each.outcome == "pass"} <= passed
    was, now = events(before), events(after)
    assert [key for key in was if now[key] < was[key]] == []


def test_a_line_of_a_cache_that_was_asked_takes_nothing_back() -> None:
    """A user could write it: then scsi-cache-assumed passed."""
    past = passed_through(shared.host("2.4-sata-cache-on"))
    files = {
        patterns: each._replace(
            text={
                path: "write through\n" if path == "/sys/block/sda/queue/write_cache" else text
                for path, text in each.text.items()
            }
        )
        for patterns, each in past.files.items()
    }
    assumed = "[    2.100000] sd 0:0:0:0: [sda] Assuming drive cache: write through\n"
    written = "[ 1225.425329] sd 0:0:0:0: [sda] Write cache: enabled\n"

    def told(more: str) -> str:
        def change(request: Run, text: str) -> str:
            return text + more if request.argv[1] == "disks" else text

        found = of(report(changed(replace(past, files=files), change)))
        return found["scsi-cache-assumed", Subject("disk", "sda")].outcome

    assert told("") == "pass"
    assert told(assumed) == told(assumed + written) == "fail"
