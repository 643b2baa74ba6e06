"""What records of power cuts change in a check: of the drive itself, of others of its model, of a pool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from auditor import audit, codec
from auditor.facts import Known, Subject
from auditor.host.request import WITNESS, Files
from auditor.judge.event import Cell, Tried
from auditor.powercut.proof import FLUSHED, Cut, Trial, evidence
from auditor.powercut.proof import DriveTrial as Session
from auditor.recording.recording import Recording, ReplayHost
from auditor.recording.redaction import redact
from auditor.report import audit_page as page
from auditor.report import phrases, report_json
from auditor.report.audit_page import promise
from auditor.report.model import Report
from auditor.sources import machine
from auditor.sources.machine import DriveCuts
from tests import law, shared

BASE, OLD = "2.4-healthy-physical-no-cache", "INTEL SSDPE2KX010T8"
MODEL, FIRMWARE = "Samsung SSD 990 PRO", "VDV10184"  # no power-loss protection
DATA, LOGS = ("PHLJ912300XQ1P0FGN", "PHLJ912301XQ1P0FGN"), ("PHLJ912302XQ1P0FGN", "PHLJ912303XQ1P0FGN")
ELSEWHERE = "PHLJ912399XQ1P0FGN"
RULE = "drive-lost-flushed-data"
HELD = DriveCuts("drive", "HELD", 28, 0, MODEL, FIRMWARE, LOGS[0])
LOST = HELD._replace(verdict="LOST", cuts=3, lost=1)
FACTS = ("cuts_held", "lost_flushed", "model_tried", "model_lost")


@cache
def host() -> Recording:
    """A mirror of two drives for data and one of two for the log, all of a model that promises nothing."""
    past = shared.earlier(BASE)

    def other(text: str) -> str:
        for blank in (" ", "_", "\\x20"):
            text = text.replace(OLD.replace(" ", blank), MODEL.replace(" ", blank))
        return text

    def named(table: Mapping[str, str]) -> dict[str, str]:
        return {other(path): other(text) for path, text in table.items()}

    commands = {
        argv: each._replace(stdout=other(each.stdout.decode()).encode()) for argv, each in past.commands.items()
    }
    files = {asked: each._replace(text=named(each.text), links=named(each.links)) for asked, each in past.files.items()}
    return replace(past, commands=commands, files=files, paths=named(past.paths))


def recorded(*found: DriveCuts, errors: Mapping[str, str] | None = None) -> Recording:
    """The host with a record of each."""
    text = {
        f"/var/lib/zaudit/cuts/{number:032x}.json": machine.keep_cuts(json.dumps(document(each)))
        for number, each in enumerate(found)
    }
    absent = {} if text else {machine.RECORDS: "no such file"}
    return with_records(host(), text, absent if errors is None else errors)


def with_records(past: Recording, text: Mapping[str, str], errors: Mapping[str, str]) -> Recording:
    witness = {WITNESS: "nodev\tsysfs\n"}
    return replace(past, files={**past.files, (machine.RECORDS, WITNESS): Files({**witness, **text}, errors=errors)})


def document(*found: DriveCuts) -> dict[str, Any]:
    return {"schema": machine.CUTS_SCHEMA, "evidence": codec.plain(found)}


def test_a_copy_of_a_record_counts_once() -> None:
    """Under another name, or as the run was earlier: of one run the losses and the most cuts."""
    run, other = {"campaign": {"run": "a" * 32}}, {"campaign": {"run": "b" * 32}}
    earlier, mine = HELD._replace(cuts=12), HELD._replace(cuts=28)

    def cuts(*documents: dict[str, Any]) -> tuple[object, ...]:
        text = {
            f"/var/lib/zaudit/cuts/{n}.json": machine.keep_cuts(json.dumps(each)) for n, each in enumerate(documents)
        }
        return shown(with_records(host(), text, {}), LOGS[0])[:2]

    assert cuts(document(mine) | run, document(mine) | run, document(earlier) | run) == (28, False)
    assert cuts(document(earlier) | run, document(mine) | run) == (28, False)
    assert cuts(document(mine) | run, document(mine) | other) == (56, False)
    assert cuts(document(mine) | run, document(LOST) | run) == (0, True)
    corrupt, another = HELD._replace(verdict="CORRUPT"), HELD._replace(serial=LOGS[1])
    assert cuts(document(mine) | run, document(corrupt) | run) == (0, False), "an earlier answer hides no worse one"
    assert cuts(document(LOST) | run, document(another._replace(lost=1, verdict="LOST")) | run) == (0, True)


def looked(past: Recording) -> audit.Look:
    return audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))


def judged(past: Recording) -> Report:
    return audit.judge(looked(past), shared.audited(), past.targets, "low")


def shown(past: Recording, serial: str) -> tuple[object, ...]:
    """The facts of the drive with this serial number; None for one that is not known."""
    facts = looked(past).facts
    (disk,) = (each for each in facts.subjects("disk") if facts.get(each, "serial").or_none() == serial)
    return tuple(facts.get(disk, name).or_none() for name in FACTS)


def outcomes(report: Report) -> dict[str, tuple[str, str]]:
    """Serial number -> outcome and severity of the rule, where it applies."""
    return {
        each.subject.name.rpartition("_")[2]: (each.outcome, each.severity)
        for each in report.verdicts
        if each.rule.id == RULE and each.outcome != "not applicable"
    }


def cell(report: Report, event: str = "power") -> Cell:
    return phrases.worst(report.columns, event)  # type: ignore[arg-type]


def tried(report: Report, event: str = "power") -> set[Tried]:
    return {each for word in cell(report, event).parties for each in word.tried}


def alike(report: Report) -> tuple[object, ...]:
    """All that a report decides, but for the rule that speaks of cuts."""
    verdicts = [
        (each.rule.id, each.subject, each.outcome, each.severity) for each in report.verdicts if each.rule.id != RULE
    ]
    return verdicts, report.exit_code, report.headline, report.next_step


def test_a_host_without_records_and_a_recording_of_old_are_judged_alike() -> None:
    old, none = judged(host()), judged(recorded())
    assert alike(old) == alike(none)
    assert not outcomes(old)
    assert not outcomes(none)
    assert not tried(old)
    assert not tried(none)
    assert shown(host(), LOGS[0]) == shown(recorded(), LOGS[0]) == (0, False, 0, 0)


def test_twenty_eight_cuts_are_evidence_and_never_a_proof() -> None:
    past = recorded(*(HELD._replace(serial=each) for each in (*DATA, *LOGS)))
    report, before = judged(past), judged(host())
    assert cell(report).outcome == "word"
    assert set(outcomes(report).values()) == {("pass", "high")}
    assert report.exit_code == before.exit_code
    assert tried(report) == {Tried(f"nvme{number}n1", 28, 4, 0) for number in range(4)}
    assert "NOT VERIFIED" not in report.headline
    assert report.headline.endswith("(28 CUTS OF EACH, 0 LOST)")
    text = phrases.sentence(cell(report))
    assert text.startswith(
        "no loss, relies on either nvme0n1 or nvme3n1 and either nvme1n1 or nvme2n1 (28 informative cuts of each, 0 lost:"
    )
    assert "fewer than 10.1 % of such cuts lose" in text


def test_nothing_is_summed_over_drives() -> None:
    counts = dict(zip((*DATA, *LOGS), (12, 30, 28, 14), strict=True))
    report = judged(recorded(*(HELD._replace(serial=serial, cuts=cuts) for serial, cuts in counts.items())))
    assert {each.held for each in tried(report)} == set(counts.values())
    assert "(12 TO 30 CUTS OF EACH, 0 LOST)" in report.headline
    assert "fewer than 22.1 % of such cuts lose" in phrases.sentence(cell(report))


def test_runs_of_one_drive_are_one_drive() -> None:
    past = recorded(HELD, HELD._replace(cuts=4, verdict="TOO FEW CUTS"))
    assert shown(past, LOGS[0]) == (32, False, 1, 0)


def test_a_drive_that_nobody_tried_stays_not_verified() -> None:
    report = judged(recorded(HELD))
    assert report.headline.endswith("(NOT VERIFIED)")
    text = phrases.sentence(cell(report, "power+log"))
    assert "(not verified) and nvme1n1 (28 informative cuts of this drive, 0 lost" in text
    assert Tried("nvme2n1", 0, 1, 0) in tried(report)


def test_a_log_whose_drives_lost_flushed_data_loses_commits() -> None:
    report = judged(recorded(*(LOST._replace(serial=each) for each in LOGS)))
    assert (cell(report).outcome, cell(report).takes) == ("lost", ("commits",))
    assert {RULE} <= set(cell(report).rules)
    assert outcomes(report) == {
        **dict.fromkeys(LOGS, ("fail", "critical")),
        **dict.fromkeys(DATA, ("fail", "high")),  # they are of the same model
    }
    disks = report.facts.subjects("disk")
    assert [each.name for each in disks if promise(report.facts, each)[1] == "bad"] == ["nvme1n1", "nvme2n1"]
    assert report.headline == "A POWER CUT LOSES ACKNOWLEDGED COMMITS"
    assert report.exit_code == 14


def test_one_loss_is_never_outweighed() -> None:
    past = recorded(HELD, LOST, HELD)
    assert shown(past, LOGS[0]) == (0, True, 1, 0)
    assert outcomes(judged(past))[LOGS[0]] == ("fail", "high")  # the other leg of the mirror has what it lost
    assert Tried("nvme1n1", 28, 1, 0) not in tried(judged(past), "power+log")


@pytest.mark.parametrize("other", [{"serial": ELSEWHERE}, {"firmware": "OLDER"}, {"serial": ""}])
def test_a_sibling_that_lost_is_a_severe_finding_for_all_of_its_model(other: dict[str, Any]) -> None:
    report = judged(recorded(LOST._replace(**other)))
    assert outcomes(report) == dict.fromkeys((*DATA, *LOGS), ("fail", "high"))
    assert cell(report).outcome == "word"
    assert report.headline.endswith("(NOT VERIFIED)")


def test_a_sibling_that_lost_is_named_next_to_what_held() -> None:
    found = [HELD._replace(serial=each) for each in (*DATA, *LOGS)]
    report = judged(recorded(*found, LOST._replace(serial=ELSEWHERE)))
    assert shown(recorded(*found, LOST._replace(serial=ELSEWHERE)), LOGS[0]) == (28, False, 5, 1)
    assert report.headline.endswith("(28 CUTS OF EACH, 0 LOST, BUT ANOTHER OF THE MODEL LOST)")


def test_a_sibling_that_held_is_counted_and_proves_nothing() -> None:
    past = recorded(HELD._replace(serial=ELSEWHERE), HELD._replace(serial="PHLJ912398XQ1P0FGN"))
    assert shown(past, LOGS[0]) == (0, False, 2, 0)
    assert judged(past).headline.endswith("(NOT VERIFIED)")


@pytest.mark.parametrize(
    "found",
    [
        HELD._replace(layer="pool"), LOST._replace(layer="pool"), HELD._replace(model="Another"),
        HELD._replace(cuts=0, verdict="NOT TESTED"), HELD._replace(cuts=0, verdict="NO CUT"),
    ],
)  # fmt: skip
def test_what_says_nothing_of_a_drive(found: DriveCuts) -> None:
    assert shown(recorded(found), LOGS[0]) == (0, False, 0, 0)
    assert alike(judged(recorded(found))) == alike(judged(host()))


@pytest.mark.parametrize("verdict", ["GONE", "CORRUPT"])
def test_damage_that_no_power_cut_made_is_no_evidence_of_either(verdict: str) -> None:
    past = recorded(HELD, HELD._replace(verdict=verdict))
    assert shown(past, LOGS[0]) == (0, False, 1, 0)
    assert judged(past).headline.endswith("(NOT VERIFIED)")


def test_too_few_cuts_are_not_shown_as_evidence() -> None:
    report = judged(recorded(*(HELD._replace(serial=each, cuts=9, verdict="TOO FEW CUTS") for each in (*DATA, *LOGS))))
    assert report.headline.endswith("(NOT VERIFIED)")
    assert phrases.tried(report.columns) == [
        "nvme0n1, nvme3n1, nvme1n1 and nvme2n1: 9 informative, too few; 4 drives of the model tried, none lost flushed data"
    ]


@pytest.mark.parametrize(
    "error", ["permission denied", "another user could have put it there: /var belongs to uid 1000"]
)
def test_records_that_cannot_be_read_may_be_of_a_loss(error: str) -> None:
    report = judged(recorded(errors={machine.RECORDS: error}))
    assert set(outcomes(report)) == {*DATA, *LOGS}
    assert {each for each, _ in outcomes(report).values()} == {"unknown"}
    assert cell(report).outcome == "unknown"
    (reason, *_) = (each.reasons for each in report.verdicts if each.rule.id == RULE)
    assert error in reason[0].text


def test_a_loss_counts_although_another_record_cannot_be_read() -> None:
    found = [LOST._replace(serial=each) for each in LOGS]
    report = judged(recorded(*found, errors={"/var/lib/zaudit/cuts/x.json": "permission denied"}))
    assert cell(report).outcome == "lost"
    assert outcomes(report)[LOGS[0]] == ("fail", "critical")
    held = judged(recorded(HELD, errors={"/var/lib/zaudit/cuts/x.json": "permission denied"}))
    assert cell(held).outcome == "unknown"
    assert outcomes(held)[LOGS[0]][0] == "unknown"


def test_a_loss_that_cannot_be_read_any_more_makes_nothing_better() -> None:
    lost = [LOST._replace(serial=each) for each in LOGS]
    for found in (lost, [LOST], [LOST._replace(serial=ELSEWHERE)], [HELD]):
        after = recorded(errors={machine.RECORDS: "permission denied"})
        assert list(law.broken(law.Audited.of(recorded(*found)), law.Audited.of(after))) == []


def test_evidence_of_a_redacted_recording_is_of_the_same_drive() -> None:
    past = recorded(HELD, LOST._replace(serial=LOGS[1]))
    other = redact(past)
    texts = "".join(text for files in other.files.values() for text in files.text.values())
    assert not any(serial in texts for serial in LOGS)
    assert MODEL in texts
    assert outcomes(judged(past)).keys() != outcomes(judged(other)).keys()
    assert sorted(outcomes(judged(past)).values()) == sorted(outcomes(judged(other)).values())
    assert tried(judged(past), "power+log") == tried(judged(other), "power+log")


def test_the_page_and_the_json_of_it() -> None:
    report = judged(recorded(*(HELD._replace(serial=each) for each in (*DATA, *LOGS))))
    line = "power cuts: nvme0n1, nvme3n1, nvme1n1 and nvme2n1: 28 informative, 0 lost (below 10.1 %); 4 drives of the model"
    for verbose in (0, 1):
        assert line in " ".join(page.write_text(report, verbose=verbose, width=80).split())
    assert line in page.write_html(report)
    whole = json.loads(report_json.render(report))
    jsonschema.validate(whole, json.loads((Path(report_json.__file__).parent / "schema.json").read_text()))
    words = whole["events"][0]["events"]["power"]["word"]
    assert {"name": "nvme1n1", "held": 28, "below": 0.1015, "units": 4, "lost": 0} in words[1]["tried"]


# -- what a run writes down -----------------------------------------------------------------------------------------


def trial(session: int, kind: str = "power", control: int = 3, **damage: int) -> Trial:
    return Trial(session, Cut(kind, ""), 100, 0, damage, (), (10, control))  # type: ignore[arg-type]


def test_a_run_goes_on_with_another_drive() -> None:
    """Each session is of the drive and the firmware that it was written with."""
    sessions = [
        Session(1, MODEL, "F1", "A"),
        Session(2, MODEL, "F1", "A"),
        Session(3, MODEL, "F2", "A"),
        Session(4, MODEL, "F1", ""),
    ]
    trials = [trial(1), trial(2), trial(3, LOST=1), trial(4)]
    assert evidence("drive", trials, sessions) == (
        DriveCuts("drive", "TOO FEW CUTS", 2, 0, MODEL, "F1", "A"),
        DriveCuts("drive", "LOST", 1, 1, MODEL, "F2", "A"),
        DriveCuts("drive", "TOO FEW CUTS", 1, 0, MODEL, "F1", ""),
    )


@pytest.mark.parametrize("kind", FLUSHED)
def test_what_a_drive_lost_by_a_power_cut(kind: str) -> None:
    session = [Session(1, MODEL, "F1", "A")]
    damage: dict[str, Any] = {kind: 2}
    (found,) = evidence("drive", [trial(1, **damage)], session)
    assert (found.verdict, found.cuts, found.lost) == (kind, 1, 1)
    (found,) = evidence("drive", [trial(1, "reset", **damage)], session)
    assert (found.verdict, found.cuts, found.lost) == (kind, 0, 0)


def test_a_drive_that_is_gone_has_not_lost_what_it_flushed() -> None:
    (found,) = evidence("drive", [trial(1, GONE=1)], [Session(1, MODEL, "F1", "A")])
    assert (found.verdict, found.cuts, found.lost) == ("GONE", 1, 0)


def test_virtual_disks_are_no_drives() -> None:
    """Clouds give all their disks one serial number."""
    past = shared.earlier("2.4-special-consumer-ssd")
    found = DriveCuts("drive", "LOST", 3, 1, "QEMU NVMe Ctrl", "10.0.13", "LABNVME0")
    text = {"/var/lib/zaudit/cuts/1.json": machine.keep_cuts(json.dumps(document(found)))}
    facts = looked(with_records(past, text, {})).facts
    disk = Subject("disk", "nvme0n1")
    assert facts.get(disk, "virtual") == Known(True, facts.get(disk, "virtual").evidence)  # type: ignore[union-attr]
    assert [facts.get(disk, name).or_none() for name in FACTS] == [0, False, 0, 0]
