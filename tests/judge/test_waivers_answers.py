"""Who answers for a promise that nothing here can check: shown in the table by name, until the last day, and no further."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from auditor import audit
from auditor.facts import HOST, Fact, Facts, Known, Subject, known, unknown
from auditor.host.request import Capture
from auditor.judge import waivers
from auditor.judge.policy import NONE, Answer, PolicyError
from auditor.judge.policy_file import bare, parse, sketch
from auditor.judge.verdict import Verdict
from auditor.model.disk import providers_below, providers_of_pools
from auditor.recording import recording
from auditor.recording.recording import ReplayHost
from auditor.report import audit_page
from auditor.report import report_json as json_report
from auditor.report.model import Report
from tests import edited, shared
from tests.judge.test_policy import judged, outcomes
from tests.renamed import passed_through
from tests.report.test_report_json import SCHEMA

GUEST = edited.unused(shared.earlier("2.4-healthy-mirrored-slog"))  # seen 2026-11-21 in QEMU
DRIVES = edited.unused(passed_through(shared.host("2.4-sata-cache-on")))
WHO = 'owner = "ann@example.org"\nreason = "cache=none"\nexpires = 2026-11-21\n'
HYPERVISOR = f'[[answer]]\nhypervisor = "flushes honoured"\n{WHO}'


def power(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json_report.render(report))["events"][0]["events"]["power"]
    return found


def test_the_table_names_who_answers_for_the_hypervisor() -> None:
    asked, answered = judged("", GUEST), judged(HYPERVISOR, GUEST)
    assert outcomes(asked, "container-or-vm-blind") == {"host": "fail"}
    assert outcomes(answered, "container-or-vm-blind") == {"host": "waived"}
    assert power(asked)["word"] == [{"party": "hypervisor", "names": ["QEMU"]}]
    who = {"owner": "ann@example.org", "expires": "2026-11-21"}
    assert power(answered)["word"] == [{"party": "hypervisor", "names": ["QEMU"], "answered": who}]
    assert power(answered)["outcome"] == "word", "an answer changes who answers, not what can be seen"
    assert "the QEMU hypervisor, for which ann@example.org answers until 2026-11-21" in power(answered)["text"]
    assert (
        answered.headline
        == "NO LOSS FOUND, BUT SURVIVING A POWER CUT OR DATA DRIVE FAILURE RELIES ON THE QEMU HYPERVISOR (NOT VERIFIED)"
    )
    text = audit_page.write_text(answered, width=100)
    assert "WAIVED    container-or-vm-blind (medium), until 2026-11-21 by ann@example.org: cache=none" in text
    assert "ann@example.org" in audit_page.write_html(answered)
    jsonschema.validate(json.loads(json_report.render(answered, passed=True)), SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        HYPERVISOR.replace("2026-11-21", "2026-11-20"),
        f'{HYPERVISOR}host = "another"\n',
        HYPERVISOR.replace("hypervisor", "target"),
        f'[[answer]]\ndrive = "flushes honoured"\nmodel = "QEMU NVMe Ctrl"\n{WHO}',
    ],
)
def test_what_has_run_out_or_is_about_another_answers_nothing(text: str) -> None:
    report = judged(text, GUEST)
    assert outcomes(report, "container-or-vm-blind") == {"host": "fail"}
    assert power(report)["word"] == [{"party": "hypervisor", "names": ["QEMU"]}]


def test_an_answer_that_has_run_out_or_is_about_nothing_is_a_finding() -> None:
    late = judged(HYPERVISOR.replace("2026-11-21", "2026-11-20"), GUEST)
    assert "waiver-expired" in {each.rule.id for each in late.findings if each.failed}
    target = judged(HYPERVISOR.replace("hypervisor", "target"), GUEST)
    assert "waiver-unused" in {each.rule.id for each in target.findings if each.failed}
    elsewhere = judged(f'{HYPERVISOR}host = "another"\n', GUEST)
    assert outcomes(elsewhere, "waiver-unused") == {"flushes honoured by hypervisor another": "not applicable"}
    assert "waiver-unused" not in {each.rule.id for each in judged(HYPERVISOR, GUEST).findings}


def drive(**named: str) -> str:
    lines = "".join(f'{key} = "{value}"\n' for key, value in named.items())
    who = WHO.replace("2026-11-21", "2026-11-30")  # DRIVES was seen a day later than GUEST
    return f'[[answer]]\ndrive = "flushes honoured"\n{lines}{who}'


def test_drives_are_answered_for_by_model_or_one_by_one() -> None:
    """Of a mirror one leg that is answered for is enough."""

    def relied_on(report: Report) -> list[dict[str, Any]]:
        return list(json_report.document(report)["events"][0]["events"]["below"]["word"])

    assert relied_on(judged("", DRIVES)) == [{"party": "drive", "names": ["sda", "sdb"], "needed": 1}]
    every = judged(drive(model="Samsung SSD 860 EVO 500GB"), DRIVES)
    assert [(each["names"], "answered" in each) for each in relied_on(every)] == [(["sda"], True)]
    assert set(outcomes(every, "no-power-loss-protection").values()) <= {"waived", "pass", "not applicable"}
    one = relied_on(judged(drive(serial="LABSATA0"), DRIVES))
    assert [(each["names"], "answered" in each) for each in one] == [(["sda"], True)]


@pytest.mark.parametrize(
    ("text", "scope", "name"),
    [
        (drive(serial="LABSATA0"), "device", "LABSATA0"),
        (drive(model="X"), "device", "X"),
        (HYPERVISOR, "host", "hypervisor"),
        (f'{HYPERVISOR}host = "db1"\n', "host", "db1"),
    ],
)
def test_as_a_waiver_it_says_what_it_is_about(text: str, scope: str, name: str) -> None:
    (answer,) = parse(text, "p.toml").answers
    waiver = waivers.as_waiver(answer, "no-power-loss-protection")
    assert (waiver.rule, waiver.scope, waiver.name, waiver.owner) == (
        "no-power-loss-protection",
        scope,
        name,
        "ann@example.org",
    )


ANN = Answer("drive", "S-1", "", "", "ann", "bought with capacitors", date(2027, 3, 1), 1)
BOB = ANN._replace(serial="", model="X", owner="bob", expires=date(2027, 1, 1))
BELOW = ANN._replace(party="hypervisor", serial="", owner="cy")
SHELF: dict[str, tuple[str, ...]] = {
    "a": ("S-1", "Y"),
    "b": ("S-2", "X"),
    "c": ("S-3", "Y"),
    "d": ("S-1", "X"),
    "e": (),
}
MIRROR = Subject("vdev", "mirror-0", "tank")


def shelf(*held: str) -> Facts:
    """A host with drives of these serials and models, one that says neither, and a vdev of some."""
    facts = Facts(1.7e9)
    for name, told in SHELF.items():
        disk, leaf = Subject("disk", name), Subject("leaf", name, "tank")
        facts.put(Fact(leaf, "disks", known((disk,), "")))
        facts.put_all(
            Fact(disk, fact, known(value, "")) for fact, value in zip(("serial", "model"), told, strict=False)
        )
    facts.put(Fact(MIRROR, "leaves", known(tuple(Subject("leaf", name, "tank") for name in held), "")))
    return facts


@pytest.mark.parametrize(
    ("disks", "who"),
    [("a", ANN), ("b", BOB), ("ab", BOB), ("ba", BOB), ("d", ANN), ("c", None), ("ac", None), ("e", None), ("", None)],
)
def test_who_answers_for_several_drives_answers_for_each_and_until_the_first_day(
    disks: str, who: Answer | None
) -> None:
    for order in ((ANN, BOB, BELOW), (BELOW, ANN, BOB)):
        facts = shelf(*disks)
        answering = waivers.Answers(NONE._replace(answers=order), facts)
        assert answering.of_disks([Subject("disk", name) for name in disks]) == who
        rule = next(rule for rule in shared.rules() if rule.id == "no-power-loss-protection")
        verdict = Verdict(rule, MIRROR, "fail", "medium", relies=("drive",))
        assert answering.of(verdict) == who, "of all leaves of a vdev"
        assert answering.of(verdict._replace(relies=())) is None, "something is lost"
        assert waivers.Answers(NONE, facts).of(verdict) is None


@pytest.mark.parametrize(("serial", "outcome"), [("LABSATA0", "pass"), ("ELSEWHERE", "not applicable")])
def test_an_answer_is_of_use_where_its_drive_is_seen(serial: str, outcome: str) -> None:
    report = judged(drive(serial=serial), DRIVES)
    assert set(outcomes(report, "waiver-unused").values()) == {outcome}


def test_an_answer_does_not_cover_what_loses() -> None:
    report = judged(HYPERVISOR)  # sync=disabled
    assert power(report)["outcome"] == "lost"
    assert report.exit_code == judged("").exit_code == 14


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HYPERVISOR.replace("flushes honoured", "yes"), "line 2: hypervisor = 'yes': the answer is 'flushes honoured'"),
        (f"[[answer]]\n{WHO}", "line 1: an answer needs exactly one of hypervisor, controller, target, drive"),
        (f'{HYPERVISOR}target = "flushes honoured"\n', "line 1: an answer needs exactly one of"),
        (f'{HYPERVISOR}model = "x"\n', "model goes with a drive"),
        (drive(), "line 1: of a drive an answer needs either its serial or its model"),
        (drive(serial="1", model="2"), "line 1: of a drive an answer needs either"),
        (HYPERVISOR.replace('owner = "ann@example.org"\n', ""), "line 1: owner missing"),
        (HYPERVISOR + HYPERVISOR, "line 6: answer flushes honoured by hypervisor is also decided in"),
        ("answer = 1", "line 1: answers are [[answer]] tables"),
        ("answer = [1]", "line 1: an answer must be a table"),
    ],
)
def test_an_answer_is_read_strictly(text: str, says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse(text, "zaudit.toml")
    assert says in str(caught.value)


def test_what_leaves_the_house_names_nobody() -> None:
    policy = parse(drive(serial="S-1"), "zaudit.toml")
    again = parse(bare(policy), "zaudit.toml")
    (answer,) = again.answers
    assert (answer.party, answer.serial, answer.owner) == ("drive", "S-1", "redacted")
    assert answer.expires == policy.answers[0].expires


@pytest.mark.parametrize(
    ("past", "party", "rule"),
    [(GUEST, "hypervisor", "container-or-vm-blind"), (DRIVES, "drive", "no-power-loss-protection")],
)
def test_a_policy_to_begin_with_offers_the_answers(past: recording.Recording, party: str, rule: str) -> None:
    seen = audit.look(recording.ReplayHost(past), past.targets, audit.Options())
    report = judged("", past)
    text = sketch(seen.facts, report.findings, shared.rules())
    assert parse(text, "zaudit.toml").answers == (), "it decides nothing yet"
    decided = text.replace("# ", "").replace('owner = ""', 'owner = "ann"').replace('reason = ""', 'reason = "known"')
    blocks = ["[[answer]]" + each.partition("\n#")[0] for each in decided.split("[[answer]]")[1:]]
    policy = parse("\n".join(blocks), "zaudit.toml")
    assert {each.party for each in policy.answers} == {party}
    assert set(outcomes(judged("\n".join(blocks), past), rule).values()) <= {"waived", "pass", "not applicable"}


def test_a_sketch_knows_what_a_database_keeps_where() -> None:
    """A dataset for both, one for its log, one for its data, and one of which nothing is known."""
    facts = Facts(1.7e9)
    server, pool = Subject("database", "postgres 7"), Subject("pool", "tank")
    both, data, log, other = (Subject("dataset", f"tank/{name}") for name in ("both", "data", "log", "other"))
    facts.put(Fact(HOST, "pools", known((pool,), "")))
    facts.put(Fact(pool, "datasets", known((both, data, log, other), "")))
    facts.put(Fact(server, "engine", known("mysql", "")))
    facts.put(Fact(server, "log_datasets", known((both, log), "")))
    facts.put(Fact(server, "data_datasets", known((both, data), "")))
    lines = sketch(facts, (), shared.rules()).splitlines()
    said = {line: lines[at + 1 : at + 3] for at, line in enumerate(lines) if line.startswith("# [datasets.")}
    where = "   # files of postgres 7 lie here"
    assert said == {
        '# [datasets."tank/both"]': [f'# role = "both"{where}', '# database = "mysql"'],
        '# [datasets."tank/data"]': [f'# role = "data"{where}', '# database = "mysql"'],
        '# [datasets."tank/log"]': [f'# role = "log"{where}', '# database = "mysql"'],
        '# [datasets."tank/other"]': ['# role = "both"', '# database = "postgres"'],
    }


# -- what providers document ------------------------------------------------------------------------------------------

ADOPTED = '[answers]\nhypervisor = "qemu"\n'


def cloud(model: str, machine: str) -> recording.Recording:
    """GUEST, with disks of this model on a hypervisor that systemd-detect-virt calls so."""
    drive = edited.Drive(model, "1.0", 0x1D0F, "vol0123?", cache=True)
    past = edited.edited(shared.host("2.4-healthy-mirrored-slog"), drive, edited.Machine(machine, "", ""), "cloud")
    said = Capture(0, f"{machine}\n".encode())
    return edited.unused(replace(past, commands={**past.commands, ("systemd-detect-virt",): said}))


def words(report: Report, event: str) -> list[dict[str, Any]]:
    return list(json_report.document(report)["events"][0]["events"][event].get("word", []))


def test_the_page_names_the_hypervisor_and_the_line_that_adopts_what_it_documents() -> None:
    report = judged("", GUEST)
    assert words(report, "power") == [{"party": "hypervisor", "names": ["QEMU"]}]
    page = " ".join(audit_page.write_text(report, width=80).split())
    assert "RELIES ON THE QEMU HYPERVISOR (NOT VERIFIED) Look first Check that no disk of this VM" in page
    assert "echo 'answers.hypervisor = \"qemu\"' | install" in page


def test_the_line_as_it_is_printed_makes_its_folder_and_loses_nothing(tmp_path: Path) -> None:
    page = " ".join(audit_page.write_text(judged("", GUEST), width=80).split())
    (command,) = set(re.findall(r"echo '.*?/provider\.toml", page))
    file = tmp_path / "zaudit" / "conf.d" / "provider.toml"
    for before in ("", "answers.target = 'ceph-rbd'\n"):
        if before:
            file.write_text(before)
        subprocess.run(["sh", "-c", command.replace("/etc/zaudit", f"{tmp_path}/zaudit")], check=True)
        assert [each.provider for each in parse(file.read_text(), "p.toml").answers] == ["qemu"]
        assert file.stat().st_mode & 0o777 == 0o644, "whoever runs check reads it"
    assert (file.parent / "provider.toml~").read_text() == before


def test_an_adopted_provider_answers_at_the_events_that_it_documents_alone() -> None:
    report = judged(ADOPTED, GUEST)
    assert outcomes(report, "container-or-vm-blind") == {"host": "waived"}
    owner = {"owner": "libvirt.org", "expires": "2028-11-27"}
    assert words(report, "below") == [{"party": "hypervisor", "names": ["QEMU"], "answered": owner}]
    assert words(report, "drive") == [{"party": "hypervisor", "names": ["QEMU"]}], "QEMU promises no copy"
    assert "relies on QEMU (documented: libvirt.org)" in audit_page.write_text(report, width=200)
    headline = judged(ADOPTED, GUEST).headline
    assert headline == "NO LOSS FOUND, BUT SURVIVING DATA DRIVE FAILURE RELIES ON THE QEMU HYPERVISOR (NOT VERIFIED)", (
        "what nobody answers for"
    )
    every = judged(ADOPTED.replace("qemu", "ceph-rbd"), GUEST)
    assert all("answered" in each for event in ("below", "drive", "power+drive") for each in words(every, event))
    assert (
        every.headline
        == "NO LOSS FOUND, BUT SURVIVING A POWER CUT OR DATA DRIVE FAILURE RELIES ON Ceph RBD (DOCUMENTED)"
    )
    assert "waiver-unused" not in {each.rule.id for each in every.findings}


def test_a_provider_answers_for_disks_that_look_like_its_own_alone() -> None:
    ebs = cloud("Amazon Elastic Block Store", "amazon")
    asked, adopted = judged("", ebs), judged('answers.hypervisor = ["qemu", "aws-ebs"]\n', ebs)
    assert words(asked, "power") == [{"party": "hypervisor", "names": ["Amazon EC2"]}]
    assert [each["names"] for each in words(adopted, "below")] == [["Amazon EBS"]]
    assert outcomes(adopted, "container-or-vm-blind") == {"host": "waived"}
    wrong = judged(ADOPTED, ebs)
    assert outcomes(wrong, "container-or-vm-blind") == {"host": "fail"}
    assert outcomes(wrong, "waiver-unused") == {"flushes honoured by hypervisor qemu": "not applicable"}
    short = cloud("Amazon EC2 NVMe Instance Storage", "amazon")
    assert outcomes(judged('answers.hypervisor = "aws-ebs"\n', short), "container-or-vm-blind") == {"host": "fail"}


DISK = Subject("disk", "nvme0n1")


def of_guest() -> Facts:
    return audit.look(ReplayHost(GUEST), GUEST.targets, audit.Options.from_words(GUEST.options)).facts


@pytest.mark.parametrize(
    ("subject", "name"),
    [(DISK, "model"), (DISK, "transport"), (DISK, "drive_class"), (HOST, "virtualization")],
)
def test_of_a_disk_that_nobody_saw_no_provider_is_known(subject: Subject, name: str) -> None:
    facts = of_guest()
    assert isinstance(providers_below.derive(DISK, facts)[0].value, Known)
    facts.replace(Fact(subject, name, unknown("nobody looked")))
    assert providers_below.derive(DISK, facts)[0].value == unknown("nobody looked")


@pytest.mark.parametrize(
    ("subject", "name"),
    [(DISK, "providers"), (DISK, "transport"), (HOST, "pools"), (Subject("pool", "tank"), "leaves")],
)
def test_a_disk_that_nobody_saw_may_be_of_another_provider(subject: Subject, name: str) -> None:
    """No line of the policy is offered, and one that was adopted does not answer."""
    facts = of_guest()
    adopted = waivers.Answers(parse(ADOPTED, "p.toml"), facts)
    assert adopted.of_party("hypervisor", ("power",))
    facts.replace(Fact(subject, name, unknown("nobody looked")))
    found = {each.value for each in providers_of_pools.derive(HOST, facts)}
    assert found == {unknown("nobody looked")}
    assert adopted.of_party("hypervisor", ("power",)) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[answers]\nhypervisor = "ebs"\n', "line 2: hypervisor = 'ebs': it is one of aws-ebs"),
        ('[answers]\ndrive = "qemu"\n', "line 2: there is no 'drive'; there are hypervisor, target"),
        ('answers.hypervisor = [["qemu"]]\n', "line 1: hypervisor = ['qemu']: it is one of aws-ebs"),
        ("answers.hypervisor = {qemu = 1}\n", "line 1: hypervisor = {'qemu': 1}: it is one of aws-ebs"),
        ('answers.hypervisor = ["qemu", "qemu"]\n', "line 1: hypervisor names one twice"),
        ("answers = 1\n", "answers must be a table"),
    ],
)
def test_what_nobody_documents_cannot_be_adopted(text: str, says: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(says)):
        parse(text, "p.toml")


def test_a_recording_keeps_what_was_adopted_and_a_sketch_offers_it() -> None:
    text = bare(parse('answers.hypervisor = ["qemu", "aws-ebs"]\nanswers.target = "ceph-rbd"\n', "p.toml"))
    assert [(each.party, each.provider) for each in parse(text, "p.toml").answers] == [
        ("hypervisor", "qemu"),
        ("hypervisor", "aws-ebs"),
        ("target", "ceph-rbd"),
    ]
