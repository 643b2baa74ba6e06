"""The database's view: each release from the columns that it has, nothing guessed, and causes only where they are certain."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.diagnose import database_counters, diagnose_page, observation
from auditor.diagnose.conclusion import diagnose
from auditor.diagnose.diagnosis import Diagnosis, Row, View
from auditor.facts import Subject
from tests.diagnose import databases, worlds


def view(found: Diagnosis) -> View:
    assert found.database is not None
    return found.database


def row(found: Diagnosis, what: str) -> Row:
    return next(each for each in view(found).rows if each.what == what)


def judged(text: str, engine: str = "postgres", rows: Any = None, **given: Any) -> Diagnosis:
    return diagnose(databases.observed(text, engine, rows), databases.facts(**given))


@pytest.mark.parametrize("release", databases.COLUMNS)
def test_every_release_tells_its_wal_syncs_from_the_columns_that_it_has(release: int) -> None:
    found = judged(databases.answer(release, requested=1))
    assert view(found).first == "PostgreSQL: 400 WAL syncs, 5.2 ms each (kernel: 400 commits by its processes, 5.3 ms)"
    assert row(found, "checkpoints requested").counted == 1
    assert row(found, "checkpoints by time").counted == 0
    data = [each for each in view(found).rows if each.what == "syncs of data files"]
    assert [(each.counted, each.why) for each in data] == (
        [(100, "not timed: track_io_timing is off")] if release >= 16 else []
    )
    assert (found.outcome, found.causes, found.reasons) == ("NOTHING STANDS OUT", (), ())
    table = "pg_stat_checkpointer" if release >= 17 else "pg_stat_bgwriter"
    assert f"psql -xc 'TABLE {table}'" in view(found).commands
    assert any("pg_stat_io" in each for each in view(found).commands) is (release >= 16)


def test_a_release_that_counts_no_wal_syncs_is_unknown() -> None:
    text = json.loads(databases.answer(15))
    for reading in ("before", "after"):
        del text[reading]["pg_stat_wal"]
    found = judged(json.dumps(text))
    assert row(found, "WAL syncs") == ("WAL syncs", None, None, "this server does not count them")
    assert view(found).first == "PostgreSQL: WAL syncs are not known: this server does not count them"


@pytest.mark.parametrize(
    ("settings", "each_ms", "why"),
    [
        ({"track_wal_io_timing": "off"}, 0.0, "not timed: track_wal_io_timing is off"),
        ({"track_wal_io_timing": "on"}, 0.0, "no time of theirs was counted"),
    ],
)
@pytest.mark.parametrize("release", [15, 18])
def test_what_is_not_timed_is_not_told_as_no_time(
    release: int, settings: dict[str, str], each_ms: float, why: str
) -> None:
    found = judged(databases.answer(release, each_ms=each_ms, settings=settings))
    assert row(found, "WAL syncs") == ("WAL syncs", 400, None, why)
    assert view(found).first.startswith("PostgreSQL: 400 WAL syncs (kernel")


@pytest.mark.parametrize("release", [15, 18])
def test_a_method_that_syncs_with_each_write_is_counted_by_its_writes(release: int) -> None:
    found = judged(databases.answer(release, settings={"wal_sync_method": "open_datasync"}))
    assert view(found).rows[0][:2] == ("WAL writes that sync (open_datasync)", 800)


def test_statistics_that_were_reset_are_unknown() -> None:
    text = json.loads(databases.answer(15))
    text["after"]["pg_stat_wal"]["stats_reset"] = "2026-01-02 00:00:00+00"
    found = judged(json.dumps(text))
    assert row(found, "WAL syncs")[1:] == (None, None, "the statistics of pg_stat_wal were reset meanwhile")
    text["after"]["pg_stat_wal"] |= {"stats_reset": databases.RESET, "wal_sync": "3"}
    assert "wal_sync of pg_stat_wal fell" in row(judged(json.dumps(text)), "WAL syncs").why


def test_a_server_that_ended_meanwhile_leaves_what_it_said_before() -> None:
    found = judged(databases.answer(15, more={"after": {}, "ended": "OperationalError 57P01"}))
    assert row(found, "WAL syncs").why == "the second reading is missing: OperationalError 57P01"
    assert "the look ended early: OperationalError 57P01" in view(found).unseen
    assert found.outcome == "NOTHING STANDS OUT"


def test_waits_of_others_that_the_role_may_not_see_are_told_as_unseen() -> None:
    found = judged(databases.answer(waits={"LWLock WALWrite": [120, 14]}, more={"sees": False}))
    assert view(found).waits == ()
    assert (
        "what backends wait for: the role of the connection is not a member of pg_read_all_stats" in view(found).unseen
    )
    assert found.causes == ()


def test_sessions_that_the_user_may_not_see_are_told_as_unseen() -> None:
    found = judged(json.dumps({**json.loads(databases.mariadb()), "sees": False}), "mariadb")
    assert view(found).waits == ()
    assert "what sessions wait for: the user of the connection does not seem to have PROCESS" in view(found).unseen


# -- beside the kernel's ----------------------------------------------------------------------------------------------


def test_the_checkpointer_and_processes_of_others_are_not_its_commits() -> None:
    rows = {**databases.ROWS, (101, "postgres", 1): (50, 50 * 900), (200, "nginx", 1): (9, 90)}
    seen = databases.observed(databases.answer(more={"threads": [90, 100, 101]}), rows=rows)
    seen = seen._replace(processes=(*databases.WHO, databases.WHO[0]._replace(pid=101, role="checkpointer")))
    assert view(diagnose(seen, databases.facts())).kernel == ("commits by its processes", 400, 5300000.0, "")


def test_processes_of_its_name_that_came_and_went_leave_it_open_whether_the_two_agree() -> None:
    found = judged(databases.answer(more={"threads": [90]}))
    kernel = view(found).kernel
    assert kernel is not None
    assert (kernel.counted, kernel.why) == (
        0,
        "and 400 by processes called postgres that came and went, or are of another server",
    )
    assert found.reasons == ()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"syncs": 1400}, "PostgreSQL counted 1,400 WAL syncs, and the kernel 400 commits by its processes"),
        ({"syncs": 90}, "PostgreSQL counted 90 WAL syncs, and the kernel 400 commits by its processes"),
        ({"each_ms": 20}, "PostgreSQL says that its WAL syncs take 20 ms each, and the kernel that commits by its "
                          "processes take 5.3 ms"),
    ],
)  # fmt: skip
def test_two_that_differ_by_far_are_a_reason_and_not_a_guess(given: dict[str, Any], says: str) -> None:
    found = judged(databases.answer(**given))
    assert found.outcome == "INCONCLUSIVE"
    assert says in found.reasons


def test_times_that_are_not_the_same_are_not_compared() -> None:
    found = judged(databases.answer(syncs=90, more={"to": 1003.0}))
    assert found.reasons == ()
    assert "all of the time: it was asked for 3 s of 10 s" in view(found).unseen


def test_a_log_elsewhere_is_told_and_not_compared() -> None:
    found = judged(databases.answer(syncs=9000), log="other/wal")
    assert "its log lies on other/wal, not on tank: its syncs are not those of this pool" in view(found).unseen
    assert (view(found).kernel, found.reasons) == (None, ())
    assert database_counters.elsewhere(databases.facts(log="other/wal"), "tank") == ""
    assert database_counters.elsewhere(databases.facts(log="other/wal", data="other/db"), "tank") == (
        "postgres 90 keeps its files on other/wal, other/db, and none on tank"
    )


def test_a_server_that_is_not_seen_here_is_told_so() -> None:
    unseen = "the connection leaves this host, or this network namespace"
    found = diagnose(
        databases.observed(databases.answer(more={"process": 0, "threads": [], "unseen": unseen})), worlds.facts()
    )
    assert any(each.startswith("whether it lies on tank is not known") for each in view(found).unseen)
    assert view(found).kernel is None
    found = judged(databases.answer(more={"process": 0, "threads": [], "unseen": unseen}))
    assert view(found).kernel == ("commits by its processes", None, None, unseen)


def test_a_trace_that_is_not_whole_is_not_compared() -> None:
    seen = databases.observed(databases.answer(syncs=90))
    assert seen.traced is not None
    cut = seen.traced._replace(commits=seen.traced.commits.replace("Dropped: 0", "Dropped: 9"))
    found = diagnose(seen._replace(traced=cut), databases.facts())
    assert view(found).kernel == ("commits by its processes", None, None, "the kernel's histograms are not whole")


def test_without_a_trace_there_is_no_kernel_beside_it() -> None:
    seen = databases.observed(databases.answer())._replace(traced=None, untraced="only root may trace")
    found = diagnose(seen, databases.facts())
    assert view(found).first == "PostgreSQL: 400 WAL syncs, 5.2 ms each"
    assert "the kernel's side was not traced: only root may trace" in view(found).unseen


# -- what stands out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", [15, 18])
def test_checkpoints_that_the_wal_brings_about_are_a_cause_that_names_the_setting(release: int) -> None:
    found = judged(databases.answer(release, requested=3, inserted=1200 << 20))
    assert (found.outcome, found.causes[0].id) == ("CAUSE", "checkpoint-storm")
    assert "PostgreSQL made 3 checkpoints in 10 s because its WAL reached max_wal_size (1 GiB)" in found.answer
    assert found.causes[0].fix == "Raise max_wal_size: at this load 66.8 GiB last for checkpoint_timeout (300 s)."


@pytest.mark.parametrize(
    "given",
    [
        {"requested": 3, "inserted": 1000 << 20},  # 2 times 33 segments and 64 MiB: one is somebody's CHECKPOINT
        {"requested": 1, "inserted": 9000 << 20},
        {"requested": 3, "inserted": 1200 << 20, "settings": {"max_wal_size": "?"}},
        {"requested": 3, "inserted": 1200 << 20, "more": {"after": {}}},
    ],
)
def test_checkpoints_that_may_be_asked_for_are_none(given: dict[str, Any]) -> None:
    found = judged(databases.answer(**given))
    assert found.causes == ()


@pytest.mark.parametrize(
    ("waits", "top", "says"),
    [
        ({"LWLock WALWrite": [120, 14], "IO WALSync": [10, 1]}, "commits-in-turn",
         "12 of 13 backends of PostgreSQL wait for the lock that one holds"),
        ({"LWLock WALWrite": [120, 14], "IO WalSync": [10, 1]}, "commits-in-turn", "12 of 13 backends"),
        ({"Lock transactionid": [60, 8], "Lock tuple": [9, 1], "IO WALSync": [11, 1]}, "row-locks", "7 of 8 backends"),
        ({"IPC SyncRep": [60, 8], "": [3, 1]}, "standby", "wait for a synchronous standby, not for a disk here"),
    ],
)  # fmt: skip
def test_what_most_backends_wait_for_is_a_cause(waits: dict[str, list[int]], top: str, says: str) -> None:
    found = judged(databases.answer(waits=waits))
    assert found.causes[0].id == top
    assert says in found.answer


@pytest.mark.parametrize(
    "waits",
    [
        {"LWLock WALWrite": [20, 3], "IO WALSync": [10, 1]},  # one group behind another: as it should be
        {"LWLock WALWrite": [60, 8], "": [90, 10]},
        {"Lock transactionid": [15, 2]},
        {"IO WALSync": [900, 90]},
    ],
)
def test_waits_of_a_healthy_server_are_none(waits: dict[str, list[int]]) -> None:
    assert judged(databases.answer(waits=waits)).causes == ()


@pytest.mark.parametrize("where", [{"log": "other/wal"}, {}])
def test_nothing_stands_out_here_of_a_server_elsewhere(where: dict[str, str]) -> None:
    away = {} if where else {"process": 0, "threads": [], "unseen": "the connection leaves this host"}
    text = databases.answer(
        requested=3, inserted=1200 << 20, waits={"IPC SyncRep": [60, 8]}, settings={"fsync": "off"}, more=away
    )
    found = judged(text, **where)
    assert (found.causes, found.outcome) == ((), "NOTHING STANDS OUT")


def test_a_server_that_syncs_nothing_comes_before_any_speed() -> None:
    found = judged(databases.answer(settings={"fsync": "off"}, syncs=0))
    assert (found.outcome, found.causes[0].rule) == ("NOT DURABLE", "pg-fsync-off")
    assert found.answer == "PostgreSQL runs with fsync = off: its commits wait for nothing to be written"
    assert "Then sync the file systems once" in found.causes[0].fix


# -- MySQL and MariaDB ------------------------------------------------------------------------------------------------


def test_mariadb_without_performance_schema_is_counted_and_not_timed() -> None:
    found = judged(databases.mariadb(), "mariadb")
    assert view(found).first == (
        "MariaDB InnoDB: 400 InnoDB syncs of log and data (kernel: 400 commits by its processes, 5.3 ms)"
    )
    assert row(found, "the binary log: syncs and the like")[1:] == (
        None, None, "not counted and not timed: performance_schema is off",
    )  # fmt: skip
    assert (row(found, "commits through the binary log").counted, row(found, "groups of them").counted) == (900, 300)
    assert view(found).waits[0][:2] == ("its commit", 6.5)
    assert found.reasons == ()


def test_mariadb_with_performance_schema_is_timed_where_it_is() -> None:
    found = judged(databases.mariadb(timed=True), "mariadb")
    assert row(found, "the binary log: syncs and the like")[1:] == (300, 5e6, "")
    assert row(found, "the InnoDB log: syncs and the like").why == "performance_schema does not count them"


@pytest.mark.parametrize(
    ("faults", "why"),
    [
        ({}, "performance_schema counts nothing that this user is shown"),
        (
            {"file_summary_by_event_name": "OperationalError 1142"},
            "performance_schema may not be read (OperationalError 1142)",
        ),
    ],
)
def test_performance_schema_that_is_not_shown_is_not_one_that_counts_nothing(faults: dict[str, str], why: str) -> None:
    text = json.loads(databases.mariadb())
    text["settings"]["performance_schema"] = "ON"
    found = judged(json.dumps({**text, "faults": faults}), "mariadb")
    assert row(found, "the binary log: syncs and the like").why == why


def test_mysql_times_the_syncs_of_its_log() -> None:
    text = json.loads(databases.mariadb(timed=True))
    for number, reading in enumerate(("before", "after")):
        text[reading]["status"]["Innodb_os_log_fsyncs"] = str(3000 + 350 * number)
        event = {"COUNT_MISC": 7 + 350 * number, "SUM_TIMER_MISC": 10**12 + 350 * number * 4 * 10**9}
        text[reading]["wait/io/file/innodb/innodb_log_file"] = {name: str(value) for name, value in event.items()}
    found = judged(json.dumps(text), "mysql")
    assert row(found, "InnoDB syncs of the log").counted == 350
    assert row(found, "the InnoDB log: syncs and the like").why == "not timed: setup_instruments does not time them"
    text["timed"].append("wait/io/file/innodb/innodb_log_file")
    found = judged(json.dumps(text), "mysql")
    assert row(found, "the InnoDB log: syncs and the like")[1:] == (350, 4e6, "")


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({"Innodb_checkpoint_age": "1048576", "Innodb_checkpoint_max_age": "83886080"}, "1 MiB of 80 MiB"),
        (
            {"Innodb_redo_log_current_lsn": "9437184", "Innodb_redo_log_checkpoint_lsn": "1048576",
             "Innodb_redo_log_capacity_resized": "104857600"},
            "8 MiB of 100 MiB",
        ),
        ({"Innodb_redo_log_current_lsn": "9437184"}, ""),
    ],
)  # fmt: skip
def test_how_full_the_log_of_innodb_is(status: dict[str, str], says: str) -> None:
    text = json.loads(databases.mariadb())
    text["after"]["status"] |= status
    told = [each for each in view(judged(json.dumps(text), "mysql")).settings if each.startswith("checkpoint age")]
    assert told == ([f"checkpoint age at the end: {says}"] if says else [])


def test_a_log_buffer_that_is_waited_for_is_named() -> None:
    found = judged(databases.mariadb(log_waits=90), "mariadb")
    assert (found.causes[0].id, found.outcome) == ("log-buffer", "CAUSE")
    assert "waited 90 times for room in its log buffer (innodb_log_buffer_size)" in found.answer


def test_a_server_that_was_restarted_counts_nothing() -> None:
    found = judged(databases.mariadb(uptime=3), "mariadb")
    assert "the server was restarted" in row(found, "InnoDB syncs of log and data").why


# -- what is recorded -------------------------------------------------------------------------------------------------


def test_an_observation_comes_back_with_what_the_database_said() -> None:
    seen = databases.observed(databases.answer(18))
    assert observation.from_text(observation.to_text(seen)) == seen


def test_an_observation_of_before_is_read_as_one_without_a_database() -> None:
    document = json.loads(observation.to_text(databases.observed(databases.answer())))
    del document["database"]
    old = observation.from_text(json.dumps(document))
    assert old.database is None
    assert diagnose(old, worlds.facts()).database is None


def test_why_nothing_was_said_is_told_and_costs_nothing_else() -> None:
    found = diagnose(databases.observed("", fault="it did not answer: OperationalError 28P01"), databases.facts())
    assert view(found).unseen == ("it did not answer: OperationalError 28P01",)
    assert (found.outcome, view(found).first) == ("NOTHING STANDS OUT", "")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=9,
)


@given(st.sampled_from([*json.loads(databases.answer()), "?"]), JSON)
def test_any_answer_is_judged_or_told_as_not_understood(name: str, value: Any) -> None:
    text = json.dumps({**json.loads(databases.answer(waits={"IO WALSync": [9, 1]})), name: value})
    try:
        database_counters.parse_counters(text)
    except ValueError:
        assert "what it answered could not be used" in view(judged(text)).unseen[0]
    else:
        assert view(judged(text)).rows


def test_a_server_is_named_once() -> None:
    assert view(judged(databases.answer())).server == "postgres 90"
    assert (
        view(judged(databases.answer(), server=Subject("database", "postgres elsewhere"))).server
        == "postgres elsewhere"
    )


HUGE, TINY = 10**400, "1e-300"


@pytest.mark.parametrize(
    "given",
    [
        {"from": HUGE}, {"to": HUGE}, {"from": -1}, {"to": float("nan")},
        {"settings": {**databases.SETTINGS, "wal_segment_size": TINY}},
        {"settings": {**databases.SETTINGS, "max_wal_size": "9e18", "wal_segment_size": "1"}},
        {"before": {"pg_stat_wal": {"wal_sync": "0", "wal_sync_time": "0"}},
         "after": {"pg_stat_wal": {"wal_sync": TINY, "wal_sync_time": "9e18"}}},
    ],
)  # fmt: skip
def test_numbers_of_a_hostile_server_end_nothing(given: dict[str, Any]) -> None:
    found = judged(databases.answer(requested=5, inserted=10**10, more=given))
    assert json.loads(diagnose_page.write("json", found))["diagnosis"]["outcome"] == found.outcome


def test_a_table_of_a_hostile_recording_is_no_command() -> None:
    found = json.loads(databases.answer())
    for part in ("before", "after"):
        found[part] |= {"pg_stat_x';rm${IFS}-rf${IFS}~;' y": {}, "pg_stat_io wal normal": {}}
    commands = view(judged(json.dumps(found))).commands
    assert [each for each in commands if "TABLE" in each] == [
        f"psql -xc 'TABLE pg_stat_{name}'" for name in ("bgwriter", "io", "wal")
    ]
