"""What a target brings: the datasets and pools that its databases use, and the leaves of other pools on its disks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from auditor import audit
from auditor.facts import HOST, Fact, Facts, Known, Subject, known
from auditor.gather import layers
from auditor.host.request import Capture
from auditor.judge.verdict import Verdict
from auditor.recording.recording import Recording, ReplayHost
from auditor.report import audit_page
from auditor.report import report_json as json_report
from auditor.report.model import Report
from tests import shared
from tests.whole.test_states import Edit, all_of, in_file, in_output

RULES = shared.rules()
POSTGRES = "2.3-db-postgres-healthy"  # data on tank/pg, log on tank/pg/wal
WAL = Subject("dataset", "tank/pg/wal")
DATA = Subject("dataset", "tank/pg")


@cache
def recorded(name: str) -> Recording:
    return shared.earlier(name)


def named(*targets: str) -> Edit:
    """As if these had been audited: of each dataset the lines that zfs has for it, and those of the datasets above it."""

    def lines(answer: Capture, *names: str) -> Capture:
        said = answer.stdout.decode().splitlines(keepends=True)
        return answer._replace(stdout="".join(each for each in said if each.split("\t")[0].strip() in names).encode())

    def edit(past: Recording) -> Recording:
        commands = dict(past.commands)
        for argv, answer in past.commands.items():
            if argv[:2] in (("zfs", "get"), ("zfs", "list")) and argv[-1] == "tank":
                names = {line.split("\t")[0].strip() for line in answer.stdout.decode().splitlines()}
                for name in names - {"tank"}:
                    alone = tuple(each for each in argv[:-1] if each != "-r")
                    inside = [each for each in names if (each + "/").startswith(name + "/")]
                    commands[*argv[:-1], name] = lines(answer, *inside)
                    commands[*alone, name] = lines(answer, name)
                    if argv[1] == "get":
                        parts = name.split("/")
                        over = ["/".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]
                        plain = ("zfs", "get", "-Hp", *argv[argv.index("-o") : -1], *over)
                        commands[plain] = lines(answer, *over)
        return replace(past, commands=commands, targets=targets)

    return edit


def twin(pool: str) -> Edit:
    """Another pool on the same disks, with one dataset: what is said of tank and tank/pg/wal is said of it, too."""

    def edit(past: Recording) -> Recording:
        commands = dict(past.commands)
        for argv, answer in past.commands.items():
            if argv[0] in ("zpool", "zdb") and "tank" in argv:
                said = answer.stdout.replace(b"tank", pool.encode())
                commands[tuple(each.replace("tank", pool) for each in argv)] = answer._replace(stdout=said)
            elif argv[0] == "zfs" and argv[-1] == "tank/pg/wal":
                said = answer.stdout.replace(b"tank/pg/wal", f"{pool}/wal".encode())
                commands[*argv[:-1], f"{pool}/wal"] = answer._replace(stdout=said)
        return replace(past, commands=commands)

    return all_of_edits(edit, in_output("zpool list", r"^tank(.*\n)", rf"tank\1{pool}\1"))


def all_of_edits(*edits: Edit) -> Edit:
    return lambda past: all_of(past, *edits)


SYNC_OFF = in_output("zfs get -Hp -r", r"^(tank/pg\tsync\t)standard", r"\1disabled")
WAL_ELSEWHERE = in_file("/mountinfo$", r"zfs tank/pg/wal ", "zfs fast/wal ")


def looked(past: Recording, *names: str) -> audit.Look:
    seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    return audit.focus(seen, ReplayHost(past), names) if names else seen


def report(seen: audit.Look) -> Report:
    return audit.judge(seen, RULES, (), "low")


def verdicts(seen: audit.Look, rule: str) -> dict[Subject, Verdict]:
    found = audit.judge(seen, [each for each in RULES if each.id == rule], (), "low")
    return {each.subject: each for each in found.verdicts}


def audited(facts: Facts) -> set[str]:
    return {each.name for pool in facts.linked(HOST, "pools") for each in facts.linked(pool, "datasets")}


def test_a_database_brings_the_datasets_that_were_not_named() -> None:
    past = all_of(recorded(POSTGRES), SYNC_OFF, named("tank/pg/wal"))
    seen = looked(past)
    assert audited(seen.facts) == {"tank/pg", "tank/pg/wal"}
    found = verdicts(seen, "sync-disabled")
    assert found[DATA].outcome == "fail"
    assert "unknown" not in {
        verdicts(seen, "sync-mixed-log-data")[each].outcome for each in seen.facts.linked(HOST, "databases")
    }


def test_the_report_says_why_it_is_there() -> None:
    said = report(looked(all_of(recorded(POSTGRES), named("tank/pg/wal"))))
    assert list(said.brought) == ["tank/pg"]
    assert "Also audited: tank/pg (postgres 1997 keeps data there)." in audit_page.write_text(said)
    assert '"why": "postgres 1997 keeps data there"' in json_report.render(said)
    assert not report(looked(recorded(POSTGRES))).brought


def test_a_dataset_comes_without_those_below_it() -> None:
    past = named("tank/pg/wal")(in_file("/mountinfo$", r"zfs tank/pg ", "zfs tank ")(recorded(POSTGRES)))
    asked = {argv for argv in past.commands if argv[-1] == "tank"}
    alone = {tuple(each for each in argv if each != "-r"): past.commands[argv] for argv in asked}
    seen = looked(replace(past, commands={**past.commands, **alone}))
    assert audited(seen.facts) == {"tank", "tank/pg/wal"}


def test_a_database_brings_another_pool() -> None:
    past = all_of(recorded(POSTGRES), WAL_ELSEWHERE, named("tank/pg"), twin("fast"))
    seen = looked(past)
    assert [pool.name for pool in seen.facts.linked(HOST, "pools")] == ["tank", "fast"]
    assert audited(seen.facts) == {"tank/pg", "tank/pg/wal", "fast/wal"}
    assert verdicts(seen, "pool-degraded")[Subject("pool", "fast")].outcome == "pass"


def test_what_was_not_recorded_of_it_is_undecided() -> None:
    past = all_of(recorded(POSTGRES), WAL_ELSEWHERE, named("tank/pg"))
    found = verdicts(looked(past), "sync-disabled")
    assert found[Subject("dataset", "fast/wal")].outcome == "unknown"
    assert found[DATA].outcome == "pass"


def using(facts: Facts, database: str, *datasets: str) -> None:
    links = tuple(Subject("dataset", name) for name in datasets)
    for name in ("datasets", "data_datasets"):
        facts.put(Fact(Subject("database", database), name, known(links, "")))


def test_what_one_process_brings_is_bounded_and_else_it_is_undecided() -> None:
    facts, names = Facts(), [f"tank/d{number}" for number in range(1000)]
    using(facts, "postgres 1", "tank/a", *names)
    using(facts, "postgres 2", "tank/a", *names[: layers.MOST])
    found = layers.expand(facts, [Subject("dataset", "tank/a")])
    assert [each.name for each in found] == names[: layers.MOST]
    assert "1,000 datasets that were not named" in str(facts.get(Subject("database", "postgres 1"), "datasets"))


def test_a_database_that_may_not_bring_what_it_uses_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "MOST", 0)
    seen = looked(all_of(recorded(POSTGRES), named("tank/pg/wal")))
    assert audited(seen.facts) == {"tank/pg/wal"}
    assert {each.outcome for each in verdicts(seen, "sync-mixed-log-data").values()} == {"unknown"}


def test_databases_on_what_was_brought_bring_theirs() -> None:
    facts = Facts()
    using(facts, "postgres 1", "tank/a", "fast/log")
    using(facts, "postgres 2", "slow/x", "fast/log")
    using(facts, "postgres 3", "slow/y")
    found = layers.expand(facts, [Subject("dataset", "tank/a")])
    assert {each.name: why for each, why in found.items()} == {
        "fast/log": "postgres 1 keeps data there",
        "slow/x": "postgres 2 keeps data there",
    }


@pytest.mark.parametrize("name", ["-r", "tank/a@b", "", "/tank"])
def test_what_no_dataset_can_be_called_is_not_asked_for(name: str) -> None:
    facts = Facts()
    using(facts, "postgres 1", "tank/a", name)
    assert not layers.expand(facts, [Subject("dataset", "tank/a")])


def test_a_look_at_all_is_narrowed_to_a_target_and_what_it_brings() -> None:
    seen = looked(recorded(POSTGRES), "tank/pg/wal")
    assert audited(seen.facts) == {"tank/pg", "tank/pg/wal"}
    assert list(report(seen).brought) == ["tank/pg"]


def test_a_leaf_of_another_pool_on_the_same_disk_is_found() -> None:
    past = all_of(recorded(POSTGRES), named("tank/pg"), twin("other"))
    facts = looked(past).facts
    assert [pool.name for pool in facts.linked(HOST, "pools")] == ["tank"]
    log = next(each for each in facts.linked(Subject("pool", "tank"), "leaves") if _is(facts, each, "log"))
    shared = facts.get(log, "disk_neighbours")
    assert isinstance(shared, Known)
    assert "other " in str(shared.value)


def test_a_pool_beside_that_gave_no_answer_leaves_it_open() -> None:
    listed = in_output("zpool list", r"^tank(.*\n)", r"tank\1other\1")
    facts = looked(all_of(recorded(POSTGRES), named("tank/pg"), listed)).facts
    log = next(each for each in facts.linked(Subject("pool", "tank"), "leaves") if _is(facts, each, "log"))
    assert not isinstance(facts.get(log, "shares_disk_with_data"), Known)


def _is(facts: Facts, leaf: Subject, allocation_class: str) -> bool:
    found = facts.get(leaf, "allocation_class")
    return isinstance(found, Known) and found.value == allocation_class
