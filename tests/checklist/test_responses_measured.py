"""What a verification and a diagnosis say of a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from auditor.checklist import lists, responses
from auditor.checklist.lists import Line, Statement
from auditor.checklist.responses import VERIFY_PARTS, Verified
from auditor.diagnose.conclusion import diagnose
from auditor.verify.result import Slice, Verification
from tests.checklist import worlds
from tests.diagnose import worlds as loads
from tests.verify import samples

LINE = next(line for each in lists.load() for line in each.lines if line.id == "figures-possible")


POSTGRES: Mapping[str, str] = {"postgres": "postgres"}


def part(name: str, found: Verification, profiles: Mapping[str, str] = POSTGRES) -> Statement:
    return VERIFY_PARTS[name](Verified(found, profiles))


def links(found: Verification, *names: str) -> list[Statement]:
    line = LINE._replace(rules=(), links=names or LINE.links, verify=())
    return list(responses.of_verification(line, Verified(found, {}), "tank/db/wal"))


def test_a_chain_that_was_followed_whole() -> None:
    assert [each.answer for each in links(samples.traced())] == ["yes", "yes"]


def test_a_link_that_lost_syncs_is_a_critical_no() -> None:
    zil, devices = links(samples.contradicted())
    assert (zil.answer, zil.severity, devices.answer) == ("no", "critical", "no")
    assert "the ZIL saw 0" in zil.text


def test_what_could_not_be_told_apart_is_open_though_the_counts_would_do() -> None:
    whole = samples.traced()
    others = whole.chain._replace(outcome="INCONCLUSIVE", reasons=("foreign load: 900 commits of tank/other",))
    zil, calls = links(whole._replace(chain=others), "ZIL", "system calls")
    assert (zil.answer, calls.answer) == ("open", "yes")
    assert "foreign load" in zil.text


def test_a_link_that_is_not_there_is_open() -> None:
    whole = samples.traced()
    none = whole.chain._replace(links=tuple(each for each in whole.chain.links if not each.name.startswith("nvme")))
    assert [each.answer for each in links(whole._replace(chain=none))] == ["yes", "open"]


def test_how_long_a_run_was() -> None:
    short = samples.traced()
    assert part("two minutes", short).answer == "yes"
    assert part("ten minutes", short) == Statement("open", "verify", "the run of the log lasted 120 s, not ten minutes")
    assert part("ten minutes", short._replace(runs=())).answer == "open"


def test_a_tail_without_samples_or_without_meaning_is_open() -> None:
    few = samples.traced((samples.run(seconds=8),))
    assert "samples lie beyond it" in part("p99.9", few).text
    lost = part("p99.9", samples.contradicted())
    assert (lost.answer, "not latencies of stable storage" in lost.text) == ("open", True)
    assert part("p99.9", worlds.verification()).answer == "yes"


def halves(first_ms: float, last_ms: float, each: int) -> Verification:
    """A run whose last half takes longer."""
    slices = tuple(
        Slice(at, at + 1.0, samples.histogram([1e6 * (first_ms if at < 30 else last_ms)] * each)) for at in range(60)
    )
    return samples.traced((samples.run()._replace(timeline=slices),))


@pytest.mark.parametrize(
    ("first_ms", "last_ms", "each", "answer"),
    [(1, 1.9, 200, "yes"), (1, 2.5, 200, "no"), (2, 1, 200, "yes"), (1, 9, 4, "open")],
)
def test_whether_the_end_of_a_run_is_like_its_beginning(
    first_ms: float, last_ms: float, each: int, answer: str
) -> None:
    assert part("steady", halves(first_ms, last_ms, each)).answer == answer


def test_a_run_without_intervals_has_neither_beginning_nor_end() -> None:
    assert part("steady", samples.traced((samples.run()._replace(timeline=()),))).answer == "open"


def test_a_profile_that_is_not_of_the_database_is_no_answer() -> None:
    found = samples.traced()
    assert part("profile", found).answer == "yes"
    other = part("profile", found, {"mysql": "mysql-innodb"})
    assert (other.answer, "--profile mysql-innodb" in other.do) == ("open", True)
    assert part("profile", found, {"postgres": "postgres", "redis": ""}).do == "ask for a profile"
    assert part("profile", found, {}).do == "zaudit checklist tank/db/wal --db NAME=DIR"
    own = part("profile", found._replace(profile="/root/own.fio"))
    assert (own.answer, own.by) == ("open", "person")


def test_log_and_data_have_to_be_measured_both() -> None:
    assert part("log and data", samples.traced()).text == "data not measured"
    assert part("log and data", worlds.verification()).answer == "yes"


@pytest.mark.parametrize(("gone", "says"), [
    ({"devices": ()}, "the devices of the log"), ({"txgs": ()}, "transaction groups"), ({"counters": {}}, "the throttle"),
    ({"faults": ("/proc/x: gone",)}, "/proc/x: gone"),
])  # fmt: skip
def test_each_witness_has_to_have_been_there(gone: dict[str, Any], says: str) -> None:
    found = samples.traced()
    assert part("witnesses", found).answer == "yes"
    blind = part("witnesses", found._replace(runs=(found.runs[0]._replace(**gone),)))
    assert (blind.answer, says in blind.text) == ("open", True)


def test_the_shortest_verification_that_can_show_it() -> None:
    assert responses.verify_command("tank/db") == "zaudit verify tank/db --record verify.tar.gz"
    assert responses.verify_command("tank/a b", ("witnesses",)) == "zaudit verify 'tank/a b' --record verify.tar.gz"
    assert "--standard" in responses.verify_command("tank/db", ("two minutes", "steady"))
    assert "--long" in responses.verify_command("tank/db", ("two minutes", "p99.9"))


# -- a diagnosis --------------------------------------------------------------------------------------------------

ALL: Line = LINE._replace(rules=(), links=(), diagnose=tuple(responses.DIAGNOSE_PARTS))
DB = (100, "postgres", 1)


def told(**of: Any) -> dict[str, Statement]:
    """Part -> what it says of a load. of: as worlds.load() takes it, and rows of threads."""
    rows = of.pop("rows_of_threads", {DB: (400, 400 * 5300)})
    sync = of.pop("sync", {})
    trace = loads.traced(rows) if rows else None
    found = diagnose(loads.observation(loads.load(**of), trace), loads.facts(sync=sync))
    return dict(zip(responses.DIAGNOSE_PARTS, responses.of_diagnosis(ALL, found, "tank/db"), strict=True))


def test_two_sessions_and_nothing_that_stands_out() -> None:
    found = dict(zip(responses.DIAGNOSE_PARTS, responses.of_diagnosis(ALL, worlds.diagnosis(), "tank/db"), strict=True))
    assert {each.answer for each in found.values()} == {"yes"}


def test_one_session_and_few_commits() -> None:
    found = told()
    assert found["several"].text == "one thread alone committed meanwhile"
    assert found["tail"].text == "400 commits are too few for p99"
    assert found["tail"].do == "zaudit diagnose tank/db --seconds 300 --record diagnose.tar.gz"
    assert found["nothing stands out"].answer == "yes"


def test_a_slow_leg_speaks_against_the_log_device() -> None:
    found = told(block_ms={"sdd": (1, 24)}, rows_of_threads={DB: (400, 400 * 25300)})
    for name in ("log devices", "nothing stands out"):
        assert (found[name].answer, found[name].severity) == ("no", "medium")
        assert "sdd is the slower leg" in found[name].text


def test_counters_alone_show_no_commit() -> None:
    found = told(rows_of_threads={})
    assert {name: each.answer for name, each in found.items()} == {
        "durable": "yes", "several": "open", "log devices": "open", "tail": "open", "nothing stands out": "open",
    }  # fmt: skip


def test_nobody_commits() -> None:
    found = told(commits={}, rows_of_threads={})
    assert {each.answer for each in found.values()} == {"open"}


def test_syncs_that_write_nothing_are_a_critical_no() -> None:
    found = told(commits={}, rows={"writes": 400}, sync={"tank/db": "disabled"}, rows_of_threads={DB: (400, 400 * 3)})
    assert (found["durable"].answer, found["durable"].severity) == ("no", "critical")
    assert found["nothing stands out"].severity == "critical"
    assert {found[name].answer for name in ("several", "log devices", "tail")} == {"open"}


def test_a_thread_that_hardly_commits_is_not_one_of_several_sessions() -> None:
    found = told(commits={"tank/db": 1000}, rows_of_threads={DB: (960, 960 * 5300), (7, "cron", 1): (40, 40 * 5300)})
    assert found["several"].answer == "open"
