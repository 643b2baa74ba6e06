"""Whoever may set a mount point, or is root in a container with a dataset of its own, puts any lines into what zfs get prints:
they cost nobody but him, and nothing that they say is believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor import audit
from auditor.facts import Facts, Known, Subject
from auditor.gather import answer
from auditor.gather.gatherer import Gatherer
from auditor.host.request import UNASKED, Capture, Files, Output, Read, Run
from auditor.recording.recording import RecordingHost, ReplayHost
from auditor.registry import sources
from auditor.sources import zfs
from auditor.sources.zfs import BEHIND, FREE_TEXT, PROPERTIES
from tests import shared

ORDINARY = {"type": "filesystem", "sync": "disabled", "mounted": "yes", "mountpoint": "/m", "keylocation": "none"}
ORDINARY |= {"sharenfs": "off", "sharesmb": "off", "readonly": "off", "quota": "0"}
Pool = Mapping[str, Mapping[str, str]]


@dataclass
class Zfs:
    """A host with these datasets, and zfs as it prints them; late: a question that nobody gets an answer to in time."""

    pool: Pool
    late: str = ""
    cut: int = 0  # bytes that are printed of that
    now: float = 0.0
    euid: int = 0
    at_once: int = 1
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, request: Run) -> Capture:
        self.asked.append(request.argv)
        match request.argv:
            case ("zfs", "list", *_, top):
                return Capture(0, "".join(f"{name}\n" for name in self._below(top)).encode())
            case ("zfs", "get", *_):
                return self._get(request)
        return Capture(None, fault=UNASKED)

    def _below(self, top: str) -> list[str]:
        return sorted(name for name in self.pool if name == top or name.startswith(f"{top}/"))

    def _get(self, request: Run) -> Capture:
        at = request.argv.index("-o") + 2
        properties, names = request.argv[at].split(","), list(request.argv[at + 1 :])
        deep = "-r" in request.argv
        found = [each for name in names for each in (self._below(name) if deep else [name])]
        text = "".join(
            f"{name}\t{each}\t{self.pool[name].get(each, '-')}\tlocal\n"
            for name in found
            if name in self.pool
            for each in properties
        ).encode()
        gone = "".join(f"cannot open '{name}': dataset does not exist\n" for name in found if name not in self.pool)
        if self.late and self.late in request.argv and "origin" in properties and len(properties) < 10:
            return Capture(None, text[: self.cut], fault=f"{answer.LATE} within 30 s")
        return Capture(1 if gone else 0, text, gone.encode())

    def read(self, request: Read) -> Files:
        return Files({}, errors=dict.fromkeys(request.patterns, UNASKED))

    def realpath(self, path: str) -> str:
        raise FileNotFoundError(path)

    def steady(self, path: str) -> str:
        return ""


def rows(name: str, **values: str) -> str:
    """As zfs prints them, without the end of the last."""
    return "\n".join(f"{name}\t{each}\t{value}\tlocal" for each, value in values.items()).removesuffix("\tlocal")


def facts_of(host: Zfs, target: str = "tank") -> Facts:
    """What is found; a recording of it tells the same."""
    found = []
    recorded = RecordingHost(host)
    for asking in (recorded, None):
        gatherer, facts = Gatherer(asking or ReplayHost(recorded.recording((), {}, "")), sources()), Facts()
        for name in ("zfs_get", "zfs_get_text", "zfs_get_ancestors", "zfs_list"):
            gatherer.ask(name, [Subject("dataset", target)], facts)
        gatherer.settle(facts)
        found.append(facts)
    assert known(found[0]) == known(found[1])
    return found[0]


def known(facts: Facts) -> dict[tuple[str, str], object]:
    names = ("sync", "readonly", "direct", *sorted(FREE_TEXT))
    every = ((each.name, name, facts.get(each, name)) for each in facts.subjects("dataset") for name in names)
    return {(dataset, name): value.or_none() for dataset, name, value in every if isinstance(value, Known)}


def truth(pool: Pool) -> dict[tuple[str, str], object]:
    names = ("sync", "readonly", "direct", *sorted(FREE_TEXT))
    return {(dataset, name): values[name] for dataset, values in pool.items() for name in names if name in values}


def pool(**forged: str) -> dict[str, dict[str, str]]:
    """Five datasets; what is forged is in tank/u."""
    every = {
        name: {**ORDINARY, "mountpoint": f"/{name}"} for name in ("tank", "tank/db", "tank/u", "tank/u/c", "tank/wal")
    }
    every["tank/u"] |= forged
    return every


ALL = dict.fromkeys((*sorted(FREE_TEXT), BEHIND), "e")
FORGERIES = {
    "another": {"mountpoint": "/x\tlocal\n" + rows("tank/db", mountpoint="/evil")},
    "another whole": {"mountpoint": "/x\tlocal\n" + rows("tank/db", **ALL)},
    "another that decides": {"mountpoint": "/x\tlocal\n" + rows("tank/db", sync="standard")},
    "one that comes before": {"sharesmb": "off\tlocal\n" + rows("tank", mountpoint="/evil")},
    "its end": {"sharesmb": f"off\tlocal\n{rows('tank/u', origin='-')}\tlocal\n{rows('tank/wal', mountpoint='/e')}"},
    "itself, with what was not asked for": {"keylocation": "/x\tlocal\n" + rows("tank/u", sync="e", direct="e")},
    "itself": {"keylocation": "file:///k\tlocal\n" + rows("tank/u", sync="standard", mountpoint="/evil")},
    "one that is not there": {"mountpoint": "/x\tlocal\n" + rows("tank/no", **ALL)},
    "no row": {"mountpoint": "/x\tlocal\n" + rows("tank/u", origin="-") + "\tlocal\nwhatever"},
    "a long name": {"mountpoint": "/x\tlocal\n" + rows("tank/" + 300 * "n", origin="-")},
    "no source": {"mountpoint": "/x\tlocal\n" + rows("tank/no", sharenfs="off") + "\tnowhere\ntank/no\tsharenfs\toff"},
}  # fmt: skip


@pytest.mark.parametrize("forged", FORGERIES.values(), ids=FORGERIES)
def test_forged_rows_cost_the_forger_alone(forged: Mapping[str, str]) -> None:
    facts = facts_of(Zfs(pool(**forged)))
    wanted = {each: value for each, value in truth(pool()).items() if each[0] != "tank/u" or each[1] not in FREE_TEXT}
    assert wanted.items() <= known(facts).items()
    assert known(facts).items() <= truth(pool(**forged)).items()
    assert {each.name for each in facts.subjects("dataset")} == {*pool()}


@pytest.mark.parametrize("forged", FORGERIES.values(), ids=FORGERIES)
def test_nor_do_they_above_what_is_audited(forged: Mapping[str, str]) -> None:
    facts = facts_of(Zfs(pool(**forged)), "tank/u/c")
    mine = ("tank", "tank/u", "tank/u/c")
    wanted = {key: value for key, value in truth(pool()).items() if key[0] in mine}
    wanted = {key: value for key, value in wanted.items() if key[0] != "tank/u" or key[1] not in FREE_TEXT}
    assert wanted.items() <= known(facts).items()
    assert known(facts).items() <= truth(pool(**forged)).items()


NAMES = ("tank", "tank/a", "tank/a/b", "tank/c")
PIECES = st.sampled_from(
    [*NAMES, "tank/no", "\n", "\t", "\tlocal\n", "/x", *sorted(FREE_TEXT), "type", "sync", "always"]
)
TEXTS = st.lists(PIECES, min_size=1, max_size=14).map("".join)
LINES = st.lists(
    st.tuples(st.sampled_from([*NAMES, "tank/no"]), st.sampled_from([*sorted(FREE_TEXT), "origin", "sync", "direct"])),
    max_size=6,
).map(lambda some: "/x" + "".join(f"\tlocal\n{name}\t{each}\te" for name, each in some))


@shared.examples(300, deadline=None)
@given(
    values=st.dictionaries(st.tuples(st.sampled_from(NAMES), st.sampled_from(sorted(FREE_TEXT))), TEXTS | LINES, max_size=3),
    target=st.sampled_from(["tank", "tank/a/b"]),
    cut=st.none() | st.integers(0, 2000),
)  # fmt: skip
def test_no_text_makes_a_fact_that_is_not_true(
    values: Mapping[tuple[str, str], str], target: str, cut: int | None
) -> None:
    """Whoever chooses what, and wherever the answer ends."""
    every = {name: dict(ORDINARY) for name in NAMES}
    for (name, each), value in values.items():
        every[name][each] = value
    facts = facts_of(Zfs(every, late="" if cut is None else target, cut=cut or 0), target)
    assert known(facts).items() <= truth(every).items()
    assert {each.name for each in facts.subjects("dataset")} <= {*NAMES}
    asked = [each for each in NAMES if target == "tank" or f"{target}/".startswith(f"{each}/")]
    assert {(each, "sync") for each in asked} <= known(facts).keys()
    forgers = {name for name, _ in values}
    if cut is None:
        assert {(each, "mountpoint") for each in asked if each not in forgers} <= known(facts).keys()


def test_who_is_not_believed_is_there() -> None:
    """Where zfs list is not answered, nothing else tells of it."""
    text = rows("tank", sync="disabled") + "\tlocal\n" + 2 * (rows("tank/db", sync="disabled") + "\tlocal\n")
    found = list(zfs.properties.parse(Output(text, "zfs get"), Subject("dataset", "tank")))
    assert {(each.subject.name, each.name) for each in found if each.name in ("sync", "pool")} == {
        *(("tank", "pool"), ("tank", "sync"), ("tank/db", "pool")),
    }


def test_a_line_that_is_part_of_no_value_is_not_understood() -> None:
    """No property that was asked for may hold it: nobody knows whose it was."""
    text = "".join(f"{name}\tsync\tdisabled\tlocal\n" for name in ("tank", "tank/db", "tank/\nwal"))
    with pytest.raises(ValueError, match="not a property of a dataset"):
        list(zfs.properties.parse(Output(text, "zfs get"), Subject("dataset", "tank")))


def test_it_is_told_whose_lines_they_are() -> None:
    gatherer, facts = Gatherer(Zfs(pool(**FORGERIES["another"])), sources()), Facts()
    gatherer.ask("zfs_get_text", [Subject("dataset", "tank")], facts)
    gatherer.settle(facts)
    assert (why := gatherer.failure("zfs_get_text", Subject("dataset", "tank"))) is not None
    assert why.reasons[0].text.endswith(": a value of tank/u has several lines, which are taken for no rows")


def test_one_who_names_all_is_asked_about_a_bounded_number_of_times() -> None:
    every = {f"tank/{number:04}": dict(ORDINARY) for number in range(400)} | {"tank": dict(ORDINARY)}
    every["tank/0007"]["mountpoint"] = "/x" + "".join(f"\tlocal\n{name}\tmountpoint\te" for name in every)
    facts = facts_of(host := Zfs(every))
    assert len(host.asked) <= answer.ALONE + 5
    assert {(each, "sync") for each in every} <= known(facts).keys()
    assert known(facts).items() <= truth(every).items()
    assert isinstance(facts.get(Subject("dataset", "tank"), "mountpoint"), Known)


def test_an_answer_to_the_one_question_of_before_loses_those_that_it_contradicts() -> None:
    """Recordings of before have one command for all properties."""
    past = shared.earlier("2.3-sync-disabled-local")
    (argv,) = (each for each in past.commands if each[:2] == ("zfs", "get"))
    honest = past.commands[argv].stdout
    forged = honest.replace(
        b"tank/db\tmountpoint\t", b"tank/db\tmountpoint\t/x\tlocal\ntank/db/wal\tsync\tstandard\tlocal\n", 1
    )
    assert forged != honest

    def failed(stdout: bytes) -> dict[str, str]:
        commands = {**past.commands, argv: past.commands[argv]._replace(stdout=stdout)}
        look = audit.look(ReplayHost(replace(past, commands=commands)), past.targets, audit.Options())
        report = audit.judge(look, shared.audited(), past.targets, "low")
        return {str(each.subject): each.outcome for each in report.verdicts if each.rule.id == "sync-disabled"}

    assert failed(honest) == dict.fromkeys(("tank", "tank/db", "tank/db/wal"), "fail")
    assert failed(forged) == {"tank": "fail", "tank/db": "unknown", "tank/db/wal": "unknown"}


def test_a_whole_check_asks_one_command_more_for_it() -> None:
    facts, tank = Facts(), Subject("dataset", "tank")
    asked = {
        name: request.argv[-2].split(",")
        for name, module in sources().items()
        if module.per == "target" and isinstance(request := module.request(tank, facts), Run)
        if request.argv[:2] == ("zfs", "get")
    }
    assert {*asked} == {"zfs_get", "zfs_get_text"}
    assert not FREE_TEXT & {*asked["zfs_get"], *sources()["zfs_get"].facts}
    assert {*sources()["zfs_get_text"].facts} == FREE_TEXT


def test_in_a_question_nothing_comes_between_those_that_may_hold_any_text() -> None:
    """A forged row of one that was not asked for would stand where it could be an answer."""
    names = list(PROPERTIES)
    first = min(map(names.index, FREE_TEXT))
    assert {*names[first : first + len(FREE_TEXT)]} == FREE_TEXT
    assert names[first + len(FREE_TEXT)] == BEHIND
