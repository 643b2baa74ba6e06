"""``zaudit fleet report``: who is worst, what is new, who is missing, and a page that no name can break."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from auditor.commands.fleet import _link
from auditor.fleet import counting, fleet_page
from auditor.fleet.counting import BadRows
from auditor.fleet.workers import judge_recording, missing, unjudged
from tests.fake import CommandLine
from tests.fleet.fleets import CASES
from tests.report.test_audit_page_hostile import EVIL, Elements
from tests.shared import HOSTS

Row = dict[str, Any]
NOW = datetime(2026, 11, 22, tzinfo=UTC).timestamp()


@cache
def judged(case: str) -> Sequence[Row]:
    return judge_recording(str(HOSTS / case))


def rows_of(case: str, name: str, days: int = 0) -> list[Row]:
    """Of a recorded host under another name, on another day."""
    rows = judged(case)
    return [
        {**row, "name": name, "recording": f"{name}.tar.gz", "taken": f"2026-11-{10 + days:02}T02:00:00+00:00"}
        for row in rows
    ]


LOSES, KEEPS, GUEST = (rows_of(case, name) for case, name in zip(CASES, ("db1", "db2", "db3"), strict=True))


def span(found: counting.Fleet) -> str:
    return "; ".join(fleet_page.notes(found))


def lines(*groups: Iterable[Row]) -> list[bytes]:
    return [json.dumps(row).encode() + b"\n" for group in groups for row in group]


def fleet(*groups: Iterable[Row], before: list[bytes] | None = None) -> counting.Fleet:
    found = lines(*groups)
    return counting.fleet(lambda: found, (lambda: before) if before is not None else None, NOW)


def test_the_worst_host_comes_first_and_the_answer_is_its() -> None:
    found = fleet(KEEPS, GUEST, LOSES)
    assert [host.seen.name for host in found.hosts] == ["db1", "db3", "db2"]
    assert fleet_page.headline(found) == "LOSE ACKNOWLEDGED COMMITS WHEN THE POWER FAILS: 1 OF 3 HOSTS"
    assert fleet_page.kind(found) == "bad"
    assert found.rules["sync-disabled"].failed == {"db1"}
    assert found.exit_code("low") == 14


def test_nobody_is_well_of_whom_nothing_is_known() -> None:
    assert fleet_page.kind(fleet(KEEPS)) == "good"
    assert fleet(KEEPS).exit_code("low") == 0
    for absent in (missing("db9"), unjudged("db9.tar.gz", "not whole")):
        found = fleet(KEEPS, [absent])
        assert fleet_page.headline(found) == "ARE NOT KNOWN TO KEEP COMMITS WHEN THE POWER FAILS: 1 OF 2 HOSTS"
        assert fleet_page.kind(found) == "open"
        assert (found.exit_code("low"), found.exit_code("low", failed_only=True)) == (14, 10)
        assert "db9" in fleet_page.write_text(found)
        assert "db9" in fleet_page.write_html(found)


def test_hosts_that_are_alike_are_one_line() -> None:
    """What is only undecided there is not named as if it failed."""
    found = fleet(*([{**row, "name": f"db{number}"} for row in LOSES] for number in range(10, 30)), KEEPS, GUEST)
    groups = fleet_page.alike(found)
    assert [(each.standing, each.rules, len(each.hosts)) for each in groups] == [
        ("lost", ("sync-disabled",), 20),
        (GUEST[0]["standing"], tuple(sorted({row["rule"] for row in GUEST[1:] if row["outcome"] == "fail"
                                             and row["severity"] in counting.GRAVE})), 1),
    ]  # fmt: skip
    text = fleet_page.write_text(found)
    assert "lost  20 hosts  sync-disabled: db10, db11, db12, db13, db14, db15 and 14 more" in text
    page = fleet_page.write_html(found)
    assert page.count("<summary><b>") == 21
    assert "db10, db11, db12, db13, db14, db15 and 14 more" in page


def test_each_kind_of_host_has_a_page_before_any_has_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_page, "HOSTS", 3)
    other = rows_of("2.3-db-postgres-fsync-off", "db9")
    found = fleet(*([{**row, "name": f"db{number}"} for row in LOSES] for number in range(5)), other)
    assert [host.seen.name for host in fleet_page.opened(found)] == ["db9", "db0", "db1"]


def test_who_is_missing_is_one_line_on_a_terminal() -> None:
    text = fleet_page.write_text(
        fleet(KEEPS, [missing(f"db{number}") for number in range(10, 40)], [unjudged("x.tar.gz", "cut off")])
    )
    assert "missing  30 hosts: db10, db11, db12, db13, db14, db15 and 24 more" in text
    assert "not judged  x.tar.gz: cut off" in text


def test_of_each_host_its_newest_look_counts() -> None:
    mended = [{**row, "name": "db1", "recording": "later"} for row in rows_of(CASES[1], "db1", 3)]
    for order in ((LOSES, mended), (mended, LOSES)):
        found = fleet(*order)
        assert [host.seen.standing for host in found.hosts] == ["kept"]
        assert found.older == 1
        assert "sync-disabled" not in found.rules


def test_an_old_look_is_named() -> None:
    found = fleet(KEEPS, rows_of(CASES[1], "db7", 9))
    assert [host.seen.name for host in found.stale] == ["db2"]
    assert "1 host more than 7 days before the newest: db2" in span(found)


def test_a_look_from_the_future_counts_only_where_there_is_no_other() -> None:
    """It would be the newest for ever, and make all others old."""
    later = [{**row, "taken": "2099-01-01T00:00:00+00:00", "recording": "db1-x"} for row in rows_of(CASES[1], "db1")]
    for order in ((LOSES, later, KEEPS), (later, KEEPS, LOSES)):
        found = fleet(*order)
        assert {host.seen.name: host.seen.standing for host in found.hosts} == {"db1": "lost", "db2": "kept"}
        assert (found.ahead, found.stale, found.exit_code("low")) == (("db1",), [], 14)
        assert "looks from the future, left aside where there is another: db1" in span(found)
    alone = fleet(later, KEEPS)
    assert [host.seen.name for host in alone.hosts] == ["db1", "db2"]
    assert (alone.ahead, alone.stale) == (("db1",), [])


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ("r/db1-2026-11-10.tar.gz", "r/db1-2026-11-13.tar.gz", False),
        ("week1/db1.tar.gz", "week2/db1.tar.gz", False),
        ("db1/2026-11-10.tar.gz", "db1/2026-11-13.tar.gz", False),
        ("minions/x/2026-11-10.tar.gz", "minions/x/2026-11-13.tar.gz", False),
        ("minions/x/host.tar.gz", "minions/y/host.tar.gz", True),
        ("r/db1.tar.gz", "r/db2.tar.gz", True),
    ],
)
def test_two_recordings_that_take_one_name_are_told(one: str, other: str, told: bool) -> None:
    mended = [{**row, "name": "db1", "recording": other} for row in rows_of(CASES[1], "db1", 3)]
    found = fleet([{**row, "recording": one} for row in LOSES], mended)
    assert (found.claimed, found.aside) == (({"db1": 1}, 1) if told else ({}, 0))
    assert fleet_page.headline(found).startswith("1 NOT COUNTED, WHICH CLAIM NAMES OF OTHERS; OF THE REST ") is told
    assert ("recordings in several places claim the host name db1" in span(found)) is told
    assert [host.seen.standing for host in found.hosts] == ["kept"]


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ("site1/db1.tar.gz", "site2/db1.tar.gz", True),
        ("site1/db1/2026-11-10.tar.gz", "site2/db1/2026-11-13.tar.gz", True),
        ("r/db1-2026-11-10.tar.gz", "r/db1-2026-11-13.tar.gz", False),
        ("r/2026-11-10/db1.tar.gz", "r/2026-11-13/db1.tar.gz", False),
        ("r/db1/2026-11-10.tar.gz", "r/db1/new.tar.gz", False),
    ],
)
def test_one_name_in_several_folders_may_be_two_hosts(one: str, other: str, told: bool) -> None:
    mended = [{**row, "name": "db1", "recording": other} for row in rows_of(CASES[1], "db1", 3)]
    found = fleet([{**row, "recording": one} for row in LOSES], mended)
    said = "recordings in several folders count as one host each, the newest of db1"
    assert (said in span(found), found.claimed) == (told, {})


def test_a_name_that_only_ends_alike_is_not_the_place() -> None:
    other = [{**row, "name": "b1", "recording": "r/db1.tar.gz"} for row in rows_of(CASES[1], "b1", 3)]
    found = fleet([{**row, "name": "b1", "recording": "r/web1.tar.gz"} for row in LOSES], other)
    assert found.claimed == {"b1": 1}


def test_a_report_that_leaves_aside_more_than_it_counts_is_no_report() -> None:
    many = [
        {**row, "name": "db1", "recording": f"minions/{at}/host.tar.gz"}
        for at in "xyz"
        for row in rows_of(CASES[1], "db1")
    ]
    found = fleet(many)
    assert (found.aside, len(found.hosts), found.exit_code("low")) == (2, 1, 2)
    assert fleet(many, KEEPS, rows_of(CASES[1], "db3")).exit_code("low") in (0, 11, 12, 13, 14)


def test_no_host_makes_the_tables_too_long_for_the_others() -> None:
    """Each finding of one names as many models as it may; the others are told as ever, before it and after it."""
    slow = "2.3-slow-drive"
    one = rows_of(slow, "db5")
    finding = next(row for row in one if row["kind"] == "finding" and row["outcome"] == "fail" and row["models"])
    many = [{**finding, "id": str(i), "models": [f"{i}-{j}" for j in range(20)]} for i in range(counting.OF_ONE)]
    found = fleet([one[0], *many], rows_of(slow, "db6"))
    alone = fleet(rows_of(slow, "db6"))
    assert len(found.models) <= counting.OF_ONE + len(alone.models)
    assert {key for key, line in found.models.items() if "db6" in line.failed | line.open} == set(alone.models)
    assert next(host for host in found.hosts if host.seen.name == "db5").failed.total() == len(many)
    assert found.crowded == {"db5"}
    assert "models, releases and remedies of db5" in span(found)


def test_what_is_new_and_what_is_only_out_of_sight() -> None:
    before = lines(KEEPS, GUEST, rows_of(CASES[1], "db4"))
    worse = rows_of(CASES[0], "db2", 1)
    unseen = [
        {**row, "outcome": "unknown", "id": f"{row['id']}?"} for row in worse if row.get("rule") == "sync-disabled"
    ]
    news = fleet(worse, GUEST, rows_of(CASES[1], "db5"), before=before).news
    assert news
    assert ("db2", "sync-disabled") in {(each.key[0], each.rule) for each in news.fresh}
    assert {each.key[0] for each in news.fresh} == {"db2"}
    assert (news.came, news.left, news.gone, news.unseen) == (("db5",), ("db4",), 0, 0)
    mended = fleet(rows_of(CASES[1], "db2", 2), before=lines(worse)).news
    assert mended
    assert mended.gone == sum(row.get("outcome") == "fail" for row in worse)
    hidden = fleet([*rows_of(CASES[1], "db2", 2), *({**row, "taken": "2026-11-12T02:00:00+00:00"} for row in unseen)],
                   before=lines(worse)).news  # fmt: skip
    assert hidden
    assert (hidden.gone, hidden.unseen) == (mended.gone - 1, 1)


def test_waived_and_known_findings_do_not_count() -> None:
    waived = [{**row, "outcome": "waived", "waiver": {}} if row["kind"] == "finding" else row for row in LOSES]
    known = [{**row, "known": "2026-11-01"} if row["kind"] == "finding" else row for row in LOSES]
    for rows in (waived, known):
        found = fleet(rows)
        assert (found.exit_code("low"), found.waived, found.rules) == (0, len(LOSES) - 1, {})
        assert "findings waived or known" in span(found)


def test_what_would_decide_it_is_a_sentence() -> None:
    undecided = next(row for row in GUEST[1:] if row["outcome"] == "unknown")
    found = fleet(GUEST[:1], [{**undecided, "remedies": ["run as root", "apt install nvme-cli"]}])
    text = fleet_page.write_text(found)
    assert "1 host  needs root" in text
    assert "1 host  needs nvme-cli (apt install nvme-cli)" in text


def test_drives_releases_and_remedies() -> None:
    nobody = rows_of("2.3-healthy-mirrored-slog-nobody", "db7")
    found = fleet(nobody, rows_of("2.3-consumer-ssd-log", "db8"), rows_of("2.1-full-81", "db9"))
    assert any("SSD" in model for model, _ in found.models)
    assert any(release.startswith("2.1") for release, _ in found.advisories)
    assert all(rule.startswith("advisory-") for _, rule in found.advisories)
    assert found.remedies
    text = fleet_page.write_text(found)
    for title in (
        "Drive models by finding",
        "Releases by advisory",
        "What would decide the rest",
        "Next: zaudit check --replay",
    ):
        assert title in text


@pytest.mark.parametrize("change", [
    {"schema": "zaudit-lines/2"}, {"kind": []}, {"standing": "fine"}, {"host": 1, "name": 1}, {"taken": "today"},
    {"taken": None}, {"openzfs": {}}, {"taken": "0001-01-01T00:00:00+23:59"}, {"taken": "9999-12-31T23:59:59-23:59"},
])  # fmt: skip
def test_a_report_row_that_is_none(change: Row) -> None:
    if change == {"kind": []}:
        assert fleet([{**KEEPS[0], **change}]).total == 0  # a kind of later; nothing is known of it
        return
    with pytest.raises(BadRows, match="line 2 is no row"):
        fleet(GUEST[:1], [{**KEEPS[0], **change}])


@pytest.mark.parametrize("change", [
    {"severity": "mild"}, {"outcome": "pass"}, {"rule": None}, {"models": "x"}, {"fix": []}, {"name": "nobody"},
])  # fmt: skip
def test_a_finding_that_is_none(change: Row) -> None:
    with pytest.raises(BadRows):
        fleet(LOSES[:1], [{**LOSES[1], **change}])


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"schema": "zaudit-lines/1"}'])
def test_a_line_that_is_no_row(text: bytes, zaudit: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(text + b"\n")
    done = zaudit("fleet", "report", tmp_path / "rows")
    assert done.code == 2
    assert "line 1 is no row" in done.err


def test_the_page_has_its_own_elements_only_whatever_things_are_called() -> None:
    def evil(value: Any) -> Any:
        match value:
            case str():
                return f"{value}{EVIL}"
            case list():
                return [evil(each) for each in value]
            case _:
                return value

    kept = {"schema", "kind", "outcome", "was", "severity", "taken", "standing", "fix", "known"}
    hostile = [{key: value if key in kept else evil(value) for key, value in row.items()} for row in LOSES]
    before = [row for row in hostile if row["kind"] == "report"]
    both = [partial(fleet, rows, before=lines(rows[:1])) for rows in (LOSES, hostile)]
    plain, spoilt = (
        Elements(fleet_page.write_html(each(), lambda host: f"https://example.org/{quote(host)}")) for each in both
    )
    assert before
    assert spoilt.seen == plain.seen
    assert "a href" in plain.seen
    assert EVIL.splitlines()[0][:10] in "".join(spoilt.text)
    assert "\x1b" not in fleet_page.write_text(both[1]())


def test_a_link_to_a_host_is_no_place_of_its_choice() -> None:
    name = "../../x?y#z&<"
    assert _link("https://h/{host}.html", None)(name) == "https://h/..%2F..%2Fx%3Fy%23z%26%3C.html"
    assert _link("{host}.html", None)("../README") == ""


@pytest.mark.parametrize(
    "pages", ["javascript:alert(1)//{host}", "data:{host}", "file:///{host}", "/srv/{host}", "hosts", "https://h/"]
)
def test_links_lead_to_pages(pages: str, zaudit: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(b"".join(lines(KEEPS)))
    words = ("fleet", "report", tmp_path / "rows", "--format", "html", "--pages", pages)
    assert zaudit(*words, "-o", tmp_path / "page.html").code == 2


def links(page: str) -> set[str]:
    return set(re.findall(r'href="([^"]*)"', page))


def test_pages_that_are_there_are_linked_and_no_others(zaudit: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(b"".join(lines(LOSES, GUEST, KEEPS)))
    (tmp_path / "hosts").mkdir()
    for name in ("db1", "db2"):
        (tmp_path / "hosts" / f"{name}.html").write_text("")
    zaudit(
        "fleet",
        "report",
        tmp_path / "rows",
        "--format",
        "html",
        "--pages",
        "hosts/{host}.html",
        "-o",
        tmp_path / "fleet.html",
    )
    assert links((tmp_path / "fleet.html").read_text()) == {"hosts/db1.html", "hosts/db2.html"}


def test_the_command(zaudit: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "then").write_bytes(b"".join(lines(KEEPS)))
    (tmp_path / "now").write_bytes(b"".join(lines(rows_of(CASES[0], "db2", 1))))
    (tmp_path / "more").write_bytes(b"".join(lines(GUEST)))
    done = zaudit("fleet", "report", tmp_path / "now", tmp_path / "more", "--since", tmp_path / "then")
    assert done.code == 14
    assert done.out.splitlines()[1] == "LOSE ACKNOWLEDGED COMMITS WHEN THE POWER FAILS: 1 OF 2 HOSTS"
    assert "New since then" in done.out
    assert zaudit("fleet", "report", tmp_path / "then").code == 0
    page = tmp_path / "page.html"
    done = zaudit("fleet", "report", tmp_path / "now", "--format", "html", "-o", page)
    assert (done.code, done.out) == (14, "")
    assert "Content-Security-Policy" in page.read_text()
    assert zaudit("fleet", "report", tmp_path).code == 2


def test_lines_of_checks_are_rows_too(zaudit: CommandLine, tmp_path: Path) -> None:
    out = zaudit("check", "--replay", HOSTS / CASES[0], "--format", "jsonl").out
    (tmp_path / "rows").write_text(out)
    assert zaudit("fleet", "report", tmp_path / "rows").code == 14


@pytest.mark.slow
def test_a_page_of_many_hosts_stays_one(tmp_path: Path) -> None:
    hosts = [[{**row, "name": f"db{number:04}"} for row in LOSES] for number in range(1200)]
    found = fleet(*hosts)
    assert len(fleet_page.write_text(found).splitlines()) < 70
    page = fleet_page.write_html(found)
    assert page.count("<details>") == fleet_page.HOSTS + 2  # one for each, one around them, and that of all hosts
    assert "100 of these 1,200 hosts" in page
    assert len(page) < 1 << 20
