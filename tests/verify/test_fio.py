"""fio's own output, as fio 3.33 printed it: its figures and no others, and an error wherever it is not whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.verify import fio, profile
from auditor.verify.fio import FioError
from auditor.verify.result import Histogram
from tests.golden import FIO, fio_output, fio_outputs

OUTPUTS = sorted(FIO.glob("*/*.out.gz"))
ONE = fio_output(FIO / "postgres" / "log.out.gz")
MANY = fio_output(FIO / "postgres" / "log-every-second.out.gz")
SYNCS = {"log": "fdatasync", "data": "fsync"}


def name(path: Path) -> str:
    return f"{path.parent.name}-{run(path)}"


def run(path: Path) -> str:
    return path.name.partition(".")[0]


def of(path: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    syncs = {each.name: each.sync for each in profile.load(path.parent.name).sections}
    return fio.documents(fio_output(path)), syncs


@pytest.mark.parametrize("folder", sorted(FIO.iterdir()), ids=lambda path: path.name)
def test_what_is_read(folder: Path) -> None:
    assert fio_outputs(folder) == json.loads((folder / "expected.json").read_text())


def test_each_profile_has_its_outputs() -> None:
    assert {path.parent.name for path in OUTPUTS if run(path) == "log-every-second"} == set(profile.names())


@pytest.mark.parametrize("path", OUTPUTS, ids=name)
def test_the_figures_are_those_of_fio(path: Path) -> None:
    found, syncs = of(path)
    said = {each["jobname"]: each for each in found[-1]["jobs"]}
    jobs = fio.jobs_of(found[-1], syncs)
    assert [job.name for job in jobs] == list(said)
    for job in jobs:
        block = said[job.name]["sync"]["lat_ns"]
        assert job.syncs == block["N"] == job.latency.samples
        assert job.syncs > 0 or job.name == "data"  # it ended before its first sync
        assert (job.writes, job.write_bytes) == (
            said[job.name]["write"]["total_ios"],
            said[job.name]["write"]["io_bytes"],
        )
        assert job.seconds == said[job.name]["job_runtime"] / 1000
        for percent, ns in block.get("percentile", {}).items():  # by fio's own arithmetic
            assert job.latency.percentile_ns(float(percent) / 100) == ns


@pytest.mark.parametrize("path", [path for path in OUTPUTS if run(path) != "log"], ids=name)
def test_the_intervals_add_up(path: Path) -> None:
    found, syncs = of(path)
    began = found[0]["timestamp_ms"] / 1000 - 1
    slices = list(fio.timeline_of(found, syncs, began, "log"))
    assert len(slices) >= 3
    assert sum(each.syncs.samples for each in slices) == fio.jobs_of(found[-1], syncs, "log")[0].syncs
    assert [each.at_s for each in slices[1:]] == [each.to_s for each in slices[:-1]]
    assert all(each.to_s > each.at_s for each in slices)


def test_the_job_of_the_log_stands_first_wherever_it_was_printed() -> None:
    document = fio.documents(fio_output(FIO / "postgres" / "together.out.gz"))[-1]
    document["jobs"].reverse()
    assert [job.name for job in fio.jobs_of(document, SYNCS)] == ["data", "log"]
    assert [job.name for job in fio.jobs_of(document, SYNCS, "log")] == ["log", "data"]


def test_jobs_that_are_not_reported_as_a_group_are_added_up() -> None:
    document = json.loads(ONE)
    (one,) = fio.jobs_of(document, SYNCS)
    document["jobs"] *= 4
    (four,) = fio.jobs_of(document, SYNCS)
    assert (four.syncs, four.writes, four.write_bytes) == (4 * one.syncs, 4 * one.writes, 4 * one.write_bytes)
    assert four.latency == Histogram(tuple((ns, 4 * count) for ns, count in one.latency.counts))
    assert (four.seconds, four.cpu_percent) == (one.seconds, one.cpu_percent)


def test_with_dsync_the_write_is_the_sync() -> None:
    document = json.loads(ONE)
    (job,) = fio.jobs_of(document, {"log": "dsync"})
    assert job.syncs == job.writes
    assert job.latency.samples == document["jobs"][0]["write"]["clat_ns"]["N"]


def test_a_job_that_never_syncs_has_no_latency() -> None:
    (job,) = fio.jobs_of(json.loads(ONE), {})
    assert (job.sync, job.latency) == ("none", Histogram())


# -- what is not whole --------------------------------------------------------------------------------------------


def test_output_that_ends_early_is_an_error_or_an_earlier_state() -> None:
    whole = fio.documents(MANY)
    states = [fio.jobs_of(each, SYNCS) for each in whole]
    lines = MANY.splitlines(keepends=True)
    errors = 0
    for cut in range(len(lines)):
        try:
            found = fio.documents("".join(lines[:cut]))
        except FioError:
            errors += 1
        else:
            assert found == whole[: len(found)]
            assert fio.jobs_of(found[-1], SYNCS) in states
    assert errors >= len(lines) - 2 * len(whole)


@given(st.integers(0, len(ONE) - 3))
def test_one_document_that_ends_early_is_an_error(cut: int) -> None:
    with pytest.raises(FioError, match=r"cut off or damaged|printed no JSON"):
        fio.documents(ONE[:cut])


def test_warnings_between_documents() -> None:
    noisy = "fio: this platform does not support process shared mutexes\n" + MANY.replace(
        "\n}\n{", "\n}\nfio: file {x} may grow\nnote: {\n{"
    )
    assert noisy.count("may grow") >= 2
    assert fio.documents(noisy) == fio.documents(MANY)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "printed no JSON: nothing"),
        ("fio: failed to open\n", "printed no JSON: fio: failed to open"),
        ("{" * 100_000, "cut off or damaged"),
        ('{"a":' * 100_000, "cut off or damaged"),
        ('{"a": ' + "9" * 5000 + "}", "cut off or damaged"),
        ("{]", "cut off or damaged"),
    ],
    ids=range(6),
)
def test_what_is_no_output(text: str, says: str) -> None:
    with pytest.raises(FioError, match=says):
        fio.documents(text)


STRANGE: tuple[Any, ...] = (None, "x", [], {}, -1, float("inf"), float("nan"), [1], {"bins": 3}, {"N": "x"})


def places(data: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    members = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [at, *(place for key, each in members for place in places(each, (*at, key)))]


SMALL = json.loads(ONE)
SMALL["jobs"][0]["sync"]["lat_ns"]["bins"] = {"1000": 2, "2000": 1}
PLACES = [place for place in places(SMALL) if place]


@given(st.sampled_from(PLACES), st.sampled_from(STRANGE))
def test_anything_strange_in_it_is_an_error_or_makes_no_difference(place: tuple[Any, ...], value: Any) -> None:
    document = json.loads(json.dumps(SMALL))
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    try:
        jobs = fio.jobs_of(document, SYNCS)
        list(fio.timeline_of([document], SYNCS, 0.0))
    except FioError:
        return
    assert jobs[0].latency.samples in (3, 0)


def test_without_a_count_of_short_writes_there_are_not_none() -> None:
    document = json.loads(ONE)
    assert fio.jobs_of(document, SYNCS)[0].short_writes == 0
    del document["jobs"][0]["write"]["short_ios"]
    with pytest.raises(FioError, match="short_ios"):
        fio.jobs_of(document, SYNCS)


def test_a_document_without_jobs_is_an_error() -> None:
    strange: tuple[dict[str, Any], ...] = ({"jobs": []}, {"jobs": {}}, {"jobs": None}, {})
    for wrong in strange:
        with pytest.raises(FioError):
            list(fio.timeline_of([wrong], SYNCS, 0.0))


def test_a_state_that_goes_back_is_an_error() -> None:
    with pytest.raises(FioError, match="fewer samples than an earlier one"):
        list(fio.timeline_of(fio.documents(MANY)[::-1], SYNCS, 0.0))


@pytest.mark.parametrize(
    ("text", "is_"), [("fio-3.33\n", (3, 33)), ("fio-3.20-12-gabc", (3, 20)), ("x fio-10.1", (10, 1))]
)
def test_versions(text: str, is_: tuple[int, int]) -> None:
    assert fio.version(text) == is_


@pytest.mark.parametrize("text", ["", "fio: not found", "fio-master"])
def test_no_version(text: str) -> None:
    with pytest.raises(FioError, match="fio --version printed"):
        fio.version(text)
