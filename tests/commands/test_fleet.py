"""``zaudit fleet judge``: every recording is accounted for, a run goes on where it was, and who is missing is said."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from auditor import Stop
from auditor.fleet import inputs, workers
from auditor.fleet.inputs import Input, Journal
from auditor.host.user_files import CannotWrite
from auditor.report.formats import exchange
from tests.fake import CommandLine
from tests.fleet.fleets import CASES, fleet, spoilt, three

NEEDED = {("missing", "name"), ("unjudged", "recording"), ("unjudged", "error"), ("duplicate", "of"), ("finding", "id")}


@pytest.fixture(autouse=True)
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process imports zaudit anew; tests/fleet/test_workers.py has several at once."""
    monkeypatch.setattr(workers, "processors", lambda: 1)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [row["kind"] for row in found if row["kind"] != "finding"]


@pytest.mark.slow
def test_a_healthy_fleet_is_exit_code_0_whatever_is_found(zaudit: CommandLine, tmp_path: Path) -> None:
    three(tmp_path)
    done = zaudit("fleet", "judge", tmp_path, "-o", tmp_path / "rows.jsonl")
    found = rows(tmp_path / "rows.jsonl")
    assert done.code == 0
    assert done.out == ""
    assert f"3 recordings: 3 judged, 0 could not be judged, 0 given twice; {len(found)} rows" in done.err
    assert [row["name"] for row in found if row["kind"] == "report"] == ["db1", "db2", "db3"]
    assert "sync-disabled" in {row.get("rule") for row in found}
    assert not (tmp_path / "rows.jsonl.part").exists()
    assert zaudit("fleet", "judge", tmp_path, "-q").out == (tmp_path / "rows.jsonl").read_text()
    assert zaudit("fleet", "judge", tmp_path, "-o", "/dev/null").code == 0
    assert not Path("/dev/null.part").exists()


@pytest.mark.slow
def test_everything_that_was_given_comes_out(zaudit: CommandLine, tmp_path: Path) -> None:
    folder = three(tmp_path / "all")
    bad = spoilt(folder, folder / "db1.tar.gz")
    (folder / "again.tar.gz").write_bytes((folder / "db1.tar.gz").read_bytes())
    (folder / "notes.txt").write_text("mind the gap\n")
    (tmp_path / "hosts").write_text("db1 # the first\n\ndb2\ndb9\n")
    done = zaudit("fleet", "judge", folder, f"{tmp_path}/nothing*", "-o", tmp_path / "rows", "--inventory",
                  tmp_path / "hosts")  # fmt: skip
    found = rows(tmp_path / "rows")
    assert done.code == 2
    assert sorted(kinds(found)) == sorted([*["report"] * 3, "duplicate", *["unjudged"] * (len(bad) + 1), "missing"])
    assert {row["recording"] for row in found if "recording" in row} == {
        *(str(path) for path in folder.glob("*.tar.gz")), f"{tmp_path}/nothing*",
    }  # fmt: skip
    assert [row["name"] for row in found if row["kind"] == "missing"] == ["db9"]
    assert next(row["of"] for row in found if row["kind"] == "duplicate") == f"{folder}/db1.tar.gz"
    assert f"{len(bad) + 5} recordings: 3 judged, {len(bad) + 1} could not be judged, 1 given twice" in done.err
    assert "3 hosts expected: 1 missing; 1 came that were not expected" in done.err
    assert "1 other files" in done.err


@pytest.mark.slow
def test_who_is_missing_is_an_exit_code(zaudit: CommandLine, tmp_path: Path) -> None:
    three(tmp_path)
    (tmp_path / "hosts").write_text("db1\ndb2\ndb3\ndb4\n")
    assert zaudit("fleet", "judge", tmp_path, "-q", "--inventory", tmp_path / "hosts").code == 10
    (tmp_path / "hosts").write_text("# nobody\n")
    assert zaudit("fleet", "judge", tmp_path, "-q", "--inventory", tmp_path / "hosts").code == 2


@pytest.mark.parametrize(
    ("recording", "name"),
    [("r/db1.tar.gz", "db1"), ("r/db1-2026-11-22.tar.gz", "db1"), ("r/db1_20261122T0200.tgz", "db1"),
     ("r/db1/2026-11-22.tar.gz", "db1"), ("s3://b/db1/now.tar.gz", "db1"), ("r/db1-a.tar.gz", "says"),
     ("r/rack/db1.tar.gz", "rack"), ("r/db1/rack/db1.tar.gz", "db1"), ("r/xdb1.tar.gz", "says"),
     ("r/rack-2.tar.gz", "says"), ("r/rack-2/now.tar.gz", "says")],
)  # fmt: skip
def test_a_host_is_called_as_the_inventory_has_it(recording: str, name: str) -> None:
    account = inputs.Account(frozenset({"db1", "rack"}), 0.0)
    assert account.name(recording, "says") == name


@pytest.mark.slow
def test_no_host_stands_in_for_another(zaudit: CommandLine, tmp_path: Path) -> None:
    """db2 says that it is db1; that does not make db2 missing, nor is db1 seen by it."""
    fleet(tmp_path, {"db1": CASES[0]})
    (tmp_path / "db1.tar.gz").rename(tmp_path / "db2.tar.gz")
    (tmp_path / "hosts").write_text("db1\ndb2\n")
    zaudit("fleet", "judge", tmp_path, "-q", "-o", tmp_path / "rows", "--inventory", tmp_path / "hosts")
    found = rows(tmp_path / "rows")
    assert {row["name"] for row in found if row["kind"] == "report"} == {"db2"}
    assert {row["name"] for row in found if row["kind"] == "missing"} == {"db1"}


@pytest.mark.slow
def test_a_name_that_is_taken_and_a_time_that_has_not_come_are_told(zaudit: CommandLine, tmp_path: Path) -> None:
    fleet(tmp_path, {"db1": CASES[0]})
    (tmp_path / "db1.tar.gz").rename(tmp_path / "db2.tar.gz")
    fleet(tmp_path, {"db1": CASES[1]}, days=100_000.0)
    done = zaudit("fleet", "judge", tmp_path, "-o", tmp_path / "rows")
    assert "taken in the future, as the recordings say, of db1: is a clock wrong?" in done.err
    assert "recordings in several places claim the host name db1: each is named after its place" in done.err
    assert sorted(row["name"] for row in rows(tmp_path / "rows") if row["kind"] == "report") == ["db1", "db2"]
    assert zaudit("fleet", "report", tmp_path / "rows").code == 14
    (tmp_path / "hosts").write_text("db1\ndb2\n")
    assert "several places" not in zaudit("fleet", "judge", tmp_path, "--inventory", tmp_path / "hosts").err


def test_hosts_that_claim_one_name_are_called_by_their_places() -> None:
    """As little of a place as tells them apart, whichever comes first; a host that is called so where it lies keeps its
    name."""
    account = inputs.Account(frozenset(), 0.0)
    said = {
        "r/a/db1.tar.gz": "zlab", "r/b/db1.tar.gz": "zlab", "r/b/db1-2026-11-22.tar.gz": "zlab", "r/zlab.tar.gz": "zlab",
        "r/x/upload.tar.gz": "zlab", "r/db9.tar.gz": "db9", "r/c/db9.tar.gz": "zlab", "r/d/2026-11-22.tar.gz": "zlab",
    }  # fmt: skip
    for recording, host in said.items():
        account.claims(json.dumps({"kind": "report", "recording": recording, "host": host}))
    assert {recording: account.name(recording, host) for recording, host in said.items()} == {
        "r/a/db1.tar.gz": "a/db1", "r/b/db1.tar.gz": "b/db1", "r/b/db1-2026-11-22.tar.gz": "b/db1", "r/zlab.tar.gz": "zlab",
        "r/x/upload.tar.gz": "upload", "r/db9.tar.gz": "db9", "r/c/db9.tar.gz": "c/db9", "r/d/2026-11-22.tar.gz": "d",
    }  # fmt: skip
    assert account.claimed == {"zlab"}


@pytest.mark.slow
def test_with_an_inventory_nobody_takes_the_place_of_a_host_that_has_one(zaudit: CommandLine, tmp_path: Path) -> None:
    """A newer recording in a folder of nobody's says that it is of db1, and a copy of that of db1 comes before it."""
    (tmp_path / "old").mkdir()
    fleet(tmp_path / "old", {"db1": CASES[1]}, days=1.0)
    (tmp_path / "old/db1.tar.gz").rename(tmp_path / "old/upload.tar.gz")
    fleet(tmp_path, {"db1": CASES[0]})
    (tmp_path / "again.tar.gz").write_bytes((tmp_path / "db1.tar.gz").read_bytes())
    (tmp_path / "hosts").write_text("db1\n")
    done = zaudit("fleet", "judge", tmp_path, "-o", tmp_path / "rows", "--inventory", tmp_path / "hosts")
    found = [row for row in rows(tmp_path / "rows") if row["kind"] != "finding"]
    assert done.code == 0
    assert "recordings elsewhere claim the host name db1: each is named after its file" in done.err
    assert [(row["kind"], row.get("name"), row["recording"].removeprefix(f"{tmp_path}/")) for row in found] == [
        ("report", "db1", "db1.tar.gz"),
        ("duplicate", None, "again.tar.gz"),
        ("report", f"{tmp_path}/old/upload.tar.gz", "old/upload.tar.gz"),
    ]
    assert zaudit("fleet", "report", tmp_path / "rows").out.splitlines()[1].startswith("LOSE ACKNOWLEDGED COMMITS")


def test_what_a_link_leads_to_is_not_told(zaudit: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("xyz\n")
    (tmp_path / "db1.tar.gz").symlink_to("secret")
    done = zaudit("fleet", "judge", tmp_path)
    assert "not a whole .tar.gz (not a gzip file, or its data are damaged)" in done.out
    assert "xy" not in done.out


@pytest.mark.slow
def test_a_run_goes_on_where_it_was(zaudit: CommandLine, tmp_path: Path) -> None:
    folder = three(tmp_path / "all")
    words = ("fleet", "judge", folder, "-o", tmp_path / "rows")
    zaudit(*words)
    whole = (tmp_path / "rows").read_bytes()
    part = tmp_path / "rows.part"

    from auditor.commands import fleet as command

    _, told = command._how((), None)
    first, second, _ = inputs.find([str(folder)]).recordings
    with Journal(part, told) as journal:
        journal.add(first, next(block for block in blocks(whole) if "db1.tar.gz" in block))
        journal.add(Input(second.name, "another stamp"), "not to be used\n")
    with part.open("ab") as file:
        file.write(b'["cut off')
    done = zaudit(*words)
    assert "1 of 3 recordings were judged before" in done.err
    assert (tmp_path / "rows").read_bytes() == whole
    assert not part.exists()


@pytest.mark.slow
def test_a_run_that_its_deadline_ends_goes_on(zaudit: CommandLine, tmp_path: Path) -> None:
    folder, rows = three(tmp_path / "all"), tmp_path / "rows"
    words = ("fleet", "judge", folder, "--jobs", "1", "-o", rows)
    late = zaudit(*words, "--deadline", "1e-6")
    assert late.code == 2
    assert "1 of 3 recordings were judged within 1e-06 s; the same command goes on from" in late.err
    assert not rows.exists()
    again = zaudit(*words)
    assert again.code == 0
    assert "1 of 3 recordings were judged before" in again.err
    zaudit("fleet", "judge", folder, "-o", tmp_path / "whole")
    assert rows.read_bytes() == (tmp_path / "whole").read_bytes()
    assert zaudit("fleet", "judge", folder, "--deadline", "1e-6").code == 2


def blocks(whole: bytes) -> list[str]:
    """The lines of each recording as they were judged: without the name that the accounting adds."""
    found: dict[str, str] = {}
    for row in map(json.loads, whole.decode().splitlines()):
        row.pop("name")
        found[row["recording"]] = found.get(row["recording"], "") + json.dumps(row) + "\n"
    return list(found.values())


def test_what_was_judged_otherwise_is_judged_again(tmp_path: Path) -> None:
    each = Input("a", "1")
    with Journal(tmp_path / "part", "one") as journal:
        journal.add(each, "rows\n")
    with Journal(tmp_path / "part", "one") as journal:
        assert each in journal
        assert journal.rows(each) == "rows\n"
    with Journal(tmp_path / "part", "another") as journal:
        assert each not in journal
        with pytest.raises(CannotWrite, match="another zaudit is writing it"):
            Journal(tmp_path / "part", "another")


def test_a_journal_that_others_may_write_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "part"
    path.write_text("{}\n")
    path.chmod(0o644)
    with pytest.raises(Stop, match="not a file for this user alone"):
        Journal(path, "")
    path.chmod(0o600)
    os.link(path, tmp_path / "other")
    with pytest.raises(Stop, match="not a file for this user alone"):
        Journal(path, "")
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(Stop, match="link"):
        Journal(tmp_path / "link", "")


@pytest.mark.parametrize("whole", ["one\ntwo\n", "no line", "{", '{"zaudit-fleet": 1}\n', "\n"])
def test_a_file_that_zaudit_has_not_begun_is_left_alone(zaudit: CommandLine, tmp_path: Path, whole: str) -> None:
    part = tmp_path / "rows.part"
    part.write_text(whole)
    part.chmod(0o600)
    done = zaudit("fleet", "judge", three(tmp_path / "all"), "-o", tmp_path / "rows")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert f"{part}: not made by zaudit" in done.err
    assert part.read_text() == whole
    assert not (tmp_path / "rows").exists()


def test_inputs_are_each_there_once_and_in_order(tmp_path: Path) -> None:
    folder = three(tmp_path / "all")
    deep = folder / "a/b/c/d/e/f"
    deep.mkdir(parents=True)
    (folder / "loop").symlink_to(folder)
    found = inputs.find([f"{folder}/db*.tar.gz", str(folder), f"{folder}/db2.tar.gz", str(tmp_path / "none")])
    assert [Path(each.name).name for each in found.recordings] == ["db1.tar.gz", "db2.tar.gz", "db3.tar.gz", "none"]
    assert found.beside == 1
    assert found.too_deep == (f"{folder}/a/b/c/d/e",)


def test_a_recording_that_changed_has_another_stamp(tmp_path: Path) -> None:
    folder = three(tmp_path)
    before = inputs.find([str(folder)]).recordings
    (folder / "db2.tar.gz").write_bytes(b"")
    after = inputs.find([str(folder)]).recordings
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True]


def test_rules_or_a_policy_that_are_wrong_end_it_at_once(zaudit: CommandLine, tmp_path: Path) -> None:
    three(tmp_path)
    (tmp_path / "policy").write_text("[nonsense]\n")
    assert zaudit("fleet", "judge", tmp_path, "--policy", tmp_path / "policy").code == 2
    assert zaudit("fleet", "judge", tmp_path, "--rules", tmp_path / "none").code == 2
    assert zaudit("fleet", "judge", tmp_path, "--engine", "ray").code == 2


def test_parquet_is_not_for_the_report(zaudit: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    done = zaudit("fleet", "report", tmp_path / "rows.parquet")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "the report reads lines of JSON" in done.err


def test_urls_without_what_opens_them(zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    done = zaudit("fleet", "judge", "s3://bucket/recordings")
    assert done.code == 2
    assert "fsspec" in done.err


def test_parquet(zaudit: CommandLine, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    three(tmp_path / "all")
    for name in ("rows.parquet", "rows.jsonl"):
        assert zaudit("fleet", "judge", tmp_path / "all", "-q", "-o", tmp_path / name).code == 0
    table = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    lines = rows(tmp_path / "rows.jsonl")
    assert [json.loads(row["row"]) for row in table] == lines
    assert [row["rule"] for row in table] == [row.get("rule") for row in lines]
    assert [row["says"] for row in table] == [row.get("says") for row in lines]


def test_parquet_without_what_writes_it(zaudit: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    three(tmp_path / "all")
    done = zaudit("fleet", "judge", tmp_path / "all", "-o", tmp_path / "rows.parquet")
    assert done.code == 2
    assert "pyarrow" in done.err
    assert not (tmp_path / "rows.parquet").exists()


@pytest.mark.slow
def test_all_rows_are_after_the_schema(zaudit: CommandLine, tmp_path: Path) -> None:
    schema = json.loads((Path(exchange.__file__).parent / "jsonl_schema.json").read_text())
    folder = three(tmp_path / "all")
    spoilt(folder, folder / "db1.tar.gz")
    (folder / "db0.tar.gz").write_bytes((folder / "db1.tar.gz").read_bytes())
    (tmp_path / "hosts").write_text("db1\ndb9\n")
    done = zaudit("fleet", "judge", folder, "--inventory", tmp_path / "hosts")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert {row["kind"] for row in found} == {"report", "finding", "unjudged", "duplicate", "missing"}
    for row in found:
        jsonschema.validate(row, schema)
        for key in ("name", "recording", "error", "of", "remedies", "id"):
            if key in row and (row["kind"], key) in NEEDED:
                with pytest.raises(jsonschema.ValidationError):
                    jsonschema.validate({name: value for name, value in row.items() if name != key}, schema)
