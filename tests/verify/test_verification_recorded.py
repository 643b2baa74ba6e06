"""Recorded verifications of real pools: what is said of them is what was written down, on every run of the tests."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.codec import CodecError
from auditor.recording import recording
from auditor.verify import trial, verification
from tests.golden import VERIFICATIONS, findings_of, verifications, verified

LARGEST = 150_000
TRUTH = {  # what the pool was made to be: outcome, and the links that contradict or a word of the reason
    "2.3-mirrored-slog": ("TRACED", set(), ""),
    "2.3-flushes-fail": ("CONTRADICTED", {"kernel's log"}, ""),
    "2.3-sync-disabled": ("CONTRADICTED", {"ZIL", "nvme2n1", "nvme3n1"}, ""),
    "2.3-flushing-latched-off": ("CONTRADICTED", {"nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1"}, ""),
    "2.3-foreign-load-other-dataset": ("INCONCLUSIVE", set(), "tank/other"),
}


@pytest.mark.parametrize("path", verifications(), ids=lambda path: path.name.removesuffix(".tar.gz"))
def test_a_recorded_verification_is_judged_as_it_was(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    name = path.name.removesuffix(".tar.gz")
    found = verified(verification.replayed(path, "low", None))
    assert found == json.loads(path.with_name(f"{name}.json").read_text())
    outcome, contradicts, says = TRUTH[name]  # a golden file could be regenerated without a look
    assert found["outcome"] == outcome
    assert {link for link, status, _ in found["links"] if status == "contradicts"} == contradicts
    assert says in " ".join(found["reasons"])
    judged = {judgement for *_, judgement, _ in found["latency"]}
    assert judged <= {"met", "missed", "not judged"}
    if outcome != "TRACED":
        assert judged == {"not judged"}


def test_a_run_of_no_section_is_a_fault_of_it(tmp_path: Path) -> None:
    past = recording.load(verifications()[0])
    document = json.loads(past.trial)
    document["runs"] = [{**each, "sections": []} for each in document["runs"]]
    recording.write(replace(past, trial=json.dumps(document).encode()), tmp_path / "rec.tar.gz")
    found = verification.replayed(tmp_path / "rec.tar.gz", "low", None).verification
    assert found.chain.outcome == "INCONCLUSIVE"
    assert not any(run.jobs for run in found.runs)
    assert all("fio: no section of the profile was run" in run.faults for run in found.runs)


def test_a_recording_from_before_the_kernels_log_was_read(tmp_path: Path) -> None:
    """What a recording does not hold is not assumed."""
    past = recording.load(VERIFICATIONS / "2.3-mirrored-slog.tar.gz")
    document = json.loads(past.trial)
    assert [each.pop("logged", None) for each in document["runs"]].count(None) == 0
    recording.write(replace(past, trial=json.dumps(document).encode()), tmp_path / "rec.tar.gz")
    found = verification.replayed(tmp_path / "rec.tar.gz", "low", None).verification
    assert found.chain.outcome == "INCONCLUSIVE"
    assert "what the kernel logged meanwhile is not in the recording" in " ".join(found.chain.reasons)


def test_a_trial_with_a_number_of_5000_digits_is_one_error() -> None:
    with pytest.raises(CodecError, match=r"trial\.json is not JSON"):
        trial.from_text('{"size": ' + "9" * 5000 + "}")


def failures(name: str) -> list[dict[str, Any]]:
    return findings_of(verification.replayed(VERIFICATIONS / f"{name}.tar.gz", "low", None).report)


def test_flushing_that_no_setting_turns_off_names_the_way_out() -> None:
    critical = {
        each["rule"]: each["subjects"]
        for each in failures("2.3-flushing-latched-off")
        if each["severity"] == "critical"
    }
    assert set(critical) == {"flush-latched-off", "fsync-not-followed"}, "nothing that can be configured explains it"
    assert len(critical["flush-latched-off"]) == 4
    shown = {each["rule"] for each in failures("2.3-mirrored-slog")}
    assert "flush-latched-off" not in shown, "the run has shown that flushes arrive"


def test_all_of_them() -> None:
    assert {path.name.removesuffix(".tar.gz") for path in verifications()} == set(TRUTH)
