"""A zfs get -r that says nothing before it has opened every dataset is given up, and asked again by names: what was answered so
counts, what was not is unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pytest

from auditor import audit
from auditor.facts import Facts, Known, Subject, Unknown
from auditor.gather import answer
from auditor.gather.gatherer import Gatherer
from auditor.host import live as seam
from auditor.host.live import LiveHost
from auditor.host.request import UNASKED, Capture, Files, Read, Run
from auditor.recording import recording
from auditor.recording.recording import Recording, RecordingHost, ReplayHost
from auditor.registry import sources
from auditor.sources.zfs import COLUMNS
from tests import shared
from tests.bench import synthetic
from tests.bench.__main__ import RECORDING

TANK = Subject("dataset", "tank")
SET = Subject("dataset", "tank/app000/db077")  # sync=disabled, of its own
LATE = "no answer within 30 s"


@cache
def large() -> Recording:
    return synthetic.with_datasets(recording.load(RECORDING), 1000)


@cache
def rows() -> dict[str, bytes]:
    """Dataset -> what zfs get prints of it."""
    (said,) = (each.stdout for argv, each in large().commands.items() if argv[:2] == ("zfs", "get") and "-r" in argv)
    found: dict[str, bytes] = {}
    for line in said.splitlines(True):
        name = line.partition(b"\t")[0].decode()
        found[name] = found.get(name, b"") + line
    return found


@dataclass
class SlowZfs:
    """A host whose zfs opens everything before it prints anything, on a clock of its own. cost: seconds a dataset; timeout and
    left: of one command and of all. hangs: datasets that are never opened; gone: that were destroyed after they were listed."""

    cost: float
    timeout: float = 30.0
    left: float = 900.0
    hangs: Sequence[str] = ()
    gone: Sequence[str] = ()
    listed: bool = True
    now: float = 0.0
    euid: int = 0
    at_once: int = 1
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._others = ReplayHost(large())
        self.now = self._others.now

    def run(self, request: Run) -> Capture:
        if request.argv[:2] == ("zfs", "list") and not self.listed:
            return Capture(None, fault=LATE)
        if request.argv[:2] != ("zfs", "get") or "-t" not in request.argv:
            return self._others.run(request)
        properties, *named = request.argv[request.argv.index("name,property,value,source") + 1 :]
        if "sync" in properties.split(","):  # and not mount points, which are asked for apart
            self.asked.append(tuple(named))
        if self.left <= 0:
            return Capture(None, fault="not asked: the deadline of 900 s was over")
        deep = answer.RECURSIVE in request.argv
        names = [each for each in rows() if not deep or each not in self.gone] if deep else list(named)
        needs = float("inf") if set(names) & set(self.hangs) else self.cost * len(names)
        most = min(self.timeout, self.left / 2 if request.halved else self.left)
        self.left -= min(needs, most)
        if needs > most:
            early = most < self.timeout and not request.halved
            return Capture(None, fault="no answer before the deadline of 900 s" if early else LATE)
        lost = [each for each in names if each in self.gone]
        errors = "".join(f"cannot open '{each}': dataset does not exist\n" for each in lost)
        lines = [line for each in names if each not in lost for line in rows()[each].splitlines(True)]
        out = b"".join(line for line in lines if line.split(b"\t")[1].decode() in properties.split(","))
        return Capture(1 if lost else 0, out, errors.encode(), needs)

    def read(self, request: Read) -> Files:
        return self._others.read(request)

    def realpath(self, path: str) -> str:
        return self._others.realpath(path)

    def steady(self, path: str) -> str:
        return self._others.steady(path)


def seen(host: SlowZfs) -> Facts:
    """What is found on it; a recording of it tells the same."""
    asking = RecordingHost(host)
    facts = audit.look(asking, (), audit.Options()).facts
    again = audit.look(ReplayHost(asking.recording((), {}, "")), (), audit.Options()).facts
    assert {each.subject: again.get(each.subject, "sync") for each in facts} == {
        each.subject: facts.get(each.subject, "sync") for each in facts
    }
    return facts


def known(facts: Facts) -> list[str]:
    return sorted(each.name for each in facts.subjects("dataset") if isinstance(facts.get(each, "sync"), Known))


def reason(facts: Facts, dataset: Subject) -> tuple[str, str]:
    why = facts.get(dataset, "sync")
    assert isinstance(why, Unknown)
    return why.reasons[0].text, why.reasons[0].remedy


def outcomes(facts: Facts) -> set[tuple[str, Subject, str]]:
    report = audit.judge(audit.Look(facts, (TANK,)), shared.audited(), ("tank",), "low")
    return {(each.rule.id, each.subject, each.outcome) for each in report.verdicts}


def test_what_is_slow_is_known_whole_by_name() -> None:
    facts = seen(host := SlowZfs(cost=0.1))
    assert known(facts) == sorted(rows())
    assert ("sync-disabled", SET, "fail") in outcomes(facts)
    sizes = [len(each) for each in host.asked[1:]]  # after zfs get -r
    assert sizes[:8] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert max(sizes) == answer.MOST
    assert sum(sizes) == len(rows())
    quick = audit.look(ReplayHost(large()), (), audit.Options()).facts
    assert {each: facts.get(each, "volsize") for each in facts.subjects("dataset")} == {
        each: quick.get(each, "volsize") for each in quick.subjects("dataset")
    }  # with the same reasons as where it answered at once


def test_what_the_deadline_leaves_is_used() -> None:
    facts = seen(SlowZfs(cost=0.1, left=40.0))
    some = known(facts)
    assert TANK.name in some
    assert 100 <= len(some) <= 200
    text, remedy = reason(facts, Subject("dataset", "tank/app009/db099"))
    assert f"{LATE}; by name {len(some):,} of {len(rows()):,} were asked about: no answer before the deadline" in text
    assert remedy == "--deadline"
    pool = facts.get(Subject("pool", "tank"), "datasets")
    assert isinstance(pool, Known)
    assert isinstance(pool.value, tuple)
    assert len(pool.value) == len(rows())  # as zfs list names them
    undecided = Subject("dataset", "tank/app009/db099")
    assert ("sync-disabled", undecided, "unknown") in outcomes(facts)


def test_a_pool_that_hangs_is_asked_once_more() -> None:
    facts = seen(host := SlowZfs(cost=float("inf")))
    assert host.asked == [("tank",), ("tank",)]
    assert known(facts) == []
    assert reason(facts, SET)[1] == "--timeout"


def test_one_that_hangs_is_left_out() -> None:
    facts = seen(SlowZfs(cost=0.01, hangs=[SET.name]))
    assert known(facts) == sorted({*rows()} - {SET.name})
    assert LATE in reason(facts, SET)[0]


def test_after_two_that_hang_nothing_more_is_asked() -> None:
    both = [SET.name, "tank/app000/db078", "tank/app000/db099"]
    facts = seen(SlowZfs(cost=0.01, hangs=both))
    assert SET.name not in known(facts)
    assert "tank/app000/db076" in known(facts)
    assert "tank/app000/db079" not in known(facts)


def test_one_that_was_destroyed_meanwhile_is_unknown_alone() -> None:
    facts = seen(SlowZfs(cost=0.1, gone=[SET.name]))
    assert known(facts) == sorted({*rows()} - {SET.name})
    assert f"cannot open '{SET.name}': dataset does not exist" in reason(facts, SET)[0]


@pytest.mark.parametrize("cut", [Capture(-9, b"tank/a\tsync\tdis"), Capture(1, b"tank/a\tsync\tdis")])
def test_an_answer_that_is_cut_off_is_none(cut: Capture) -> None:
    """Nothing is put behind half a record."""
    steps = answer.ByName(
        Run(("zfs", "get", "-r", "-o", COLUMNS, "sync", "tank"), halved=True), Capture(None, fault=LATE)
    ).steps()
    next(steps)
    steps.send(Capture(0, b"tank\tsync\tstandard\tdefault\n"))
    steps.send(Capture(0, b"tank\ntank/a\ntank/b\ntank/c\n"))
    with pytest.raises(StopIteration) as ended:
        steps.send(cut)
    said = ended.value.value
    assert said.stdout == b"tank\tsync\tstandard\tdefault\n"
    assert said.fault.startswith(f"{LATE}; by name 1 of 4 were asked about: exit code ")


def test_without_a_list_the_top_alone_is_known() -> None:
    facts = seen(SlowZfs(cost=0.1, listed=False))
    assert known(facts) == ["tank"]
    assert isinstance(facts.get(Subject("pool", "tank"), "datasets"), Unknown)


def test_a_recording_that_was_not_asked_so_tells_what_it_told() -> None:
    past = large()
    late = Capture(None, rows()["tank"], fault=LATE)
    commands = {
        argv: late if argv[:2] == ("zfs", "get") and "-r" in argv else each for argv, each in past.commands.items()
    }
    facts = audit.look(ReplayHost(replace(past, commands=commands)), (), audit.Options()).facts
    assert known(facts) == ["tank"]
    assert LATE in reason(facts, SET)[0]
    assert UNASKED not in reason(facts, SET)[0]


def test_a_list_of_anybody_ends() -> None:
    """A recording says itself how many datasets there are, and what is answered of them."""
    request = Run(("zfs", "get", "-Hp", "-r", "-o", "name", "sync", "tank"), part=True, halved=True)
    again = answer.ByName(request, Capture(None, fault=LATE))
    steps = again.steps()
    next(steps)
    steps.send(Capture(0, b"tank\tsync\tstandard\tdefault\n"))
    names = "".join(f"tank/{n}\n" for n in range(5000)).encode()
    steps.send(Capture(0, b"tank\n" + 2 * names))
    asked, answers = 0, [Capture(0), Capture(None, fault=LATE)]
    with suppress(StopIteration):
        while asked < 20_000:
            asked += 1
            steps.send(answers[asked % 2])
    assert 5_000 <= asked < 20_000


SCRIPT = """
case "$*" in
"list "*) echo tank; i=1; while [ $i -le 9 ]; do echo tank/$i; i=$((i+1)); done; exit;;
*" -r "*) sleep 60;;
esac
shift 7
for name; do printf '%s\\tsync\\tdisabled\\tlocal\\n' "$name"; done
"""


@pytest.fixture
def zfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def install(script: str) -> None:
        (tmp_path / "zfs").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "zfs").chmod(0o755)

    monkeypatch.setattr(seam, "PATH", (str(tmp_path),))
    return install


@pytest.mark.parametrize("limits", [(0.5, 0.0), (30.0, 3.0)])
def test_of_a_live_host(zfs: Callable[[str], None], limits: tuple[float, float]) -> None:
    """Its time-out, or a deadline that would come first."""
    zfs(SCRIPT)
    gatherer, facts = Gatherer(LiveHost(*limits), sources()), Facts()
    gatherer.ask("zfs_list", [TANK], facts)
    gatherer.ask("zfs_get", [TANK], facts)
    gatherer.settle(facts)
    assert known(facts) == ["tank", *(f"tank/{n}" for n in range(1, 10))]


def test_half_of_what_the_deadline_leaves_is_spared(zfs: Callable[[str], None]) -> None:
    zfs("sleep 60")
    host = LiveHost(30, 2)
    argv = ("zfs", "get", "-Hp", "-r", "-t", "filesystem,volume", "-o", "name", "sync", "tank")
    first = host.run(Run(argv, halved=True))
    assert first.fault == "no answer within 1 s, half of what the deadline of 2 s left"
    assert host.run(Run(argv)).fault == "no answer before the deadline of 2 s"
    assert host.run(Run(argv, halved=True)).fault == "not asked: the deadline of 2 s was over"
