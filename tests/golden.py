"""What zaudit makes of the recorded hosts: ``python -m tests.golden [CASE...]`` writes it down anew.

Look at ``git diff fixtures`` afterwards: a golden file is only as good as the eye that read it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from auditor import audit
from auditor.checklist.model import Checklist
from auditor.cli import main as main_command
from auditor.commands import _listing, _verifying
from auditor.facts import AGAIN
from auditor.judge.rule import Rule
from auditor.recording import recording
from auditor.report import formats, rule_index
from auditor.report.audit import json as json_report
from auditor.report.audit import terminal
from auditor.report.checklist import html as checklist_html
from auditor.report.checklist import json as checklist_json
from auditor.report.checklist import markdown as checklist_markdown
from auditor.report.checklist import terminal as checklist_terminal
from auditor.report.diagnose import html as diagnose_html
from auditor.report.diagnose import json as diagnose_json
from auditor.report.diagnose import terminal as diagnose_terminal
from auditor.report.formats import _told
from auditor.report.model import Report
from auditor.report.verify import html as verify_html
from auditor.report.verify import terminal as verify_terminal
from auditor.verify import codec, fio_output, profile, strace_output
from auditor.verify.compare import compare
from auditor.verify.verification import Found
from tests import man_pages
from tests.checklist import schema as checklist_schema
from tests.checklist import worlds as listed
from tests.diagnose import databases as asked
from tests.diagnose import schema as diagnosis_schema
from tests.diagnose import worlds as diagnosed
from tests.lab import provoked, tables
from tests.shared import HOSTS as HOSTS
from tests.shared import OLDER as OLDER
from tests.shared import audited, rules
from tests.verify import samples
from tests.verify import schema as verify_schema

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
FIO = FIXTURES / "fio"
VERIFICATIONS = FIXTURES / "verifications"
REPORTS = FIXTURES / "reports"
README = FIXTURES.parent / "README.md"
USAGE = FIXTURES.parent / "docs" / "usage.md"
RULES = FIXTURES.parent / "rules" / "README.md"
PAGES = FIXTURES.parent / "docs" / "rules"
CANONICAL, GREEN = "2.3-sync-disabled-local", "2.4-healthy-physical-no-cache"
FORMATS = REPORTS / "formats"
VERIFY_REPORTS, NARROW = REPORTS / "verify", REPORTS / "narrow"
SCHEMAS = Path(rule_index.__file__).parent
VERIFY_SCHEMA = SCHEMAS / "verify_schema.json"
DIAGNOSE_REPORTS, DIAGNOSIS_SCHEMA = REPORTS / "diagnose", SCHEMAS / "diagnosis_schema.json"
CHECKLISTS, CHECKLIST_SCHEMA = REPORTS / "checklist", SCHEMAS / "checklist_schema.json"


def report_anew(case: Path) -> Report:
    """The report of one recorded host with all rules."""
    past = recording.load(case)
    seen = audit.look(recording.ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    return audit.judge(seen, audited(), past.targets, "low")


report_of = cache(report_anew)  # the same for all tests that only look at it


def findings_of(report: Report) -> dict[str, Any]:
    """The golden part: standing, exit code, every failure with its subjects, and what is undecided."""
    return {
        "standing": report.standing,
        "exit_code": report.exit_code,
        "findings": [
            {
                "rule": finding.rule.id,
                "outcome": "fail",
                "severity": finding.severity,
                "subjects": [f"{verdict.subject.kind} {verdict.subject}" for verdict in finding.verdicts],
            }
            for finding in report.findings
            if finding.failed
        ],
        "undecided": undecided(report),
    }


def undecided(report: Report) -> dict[str, int]:
    """What would decide it -> how many rules are undecided for the lack of it. No rule is named, and what an older zaudit did
    not ask is left out: a new rule, or a new question, changes the golden file of no host that it says nothing of."""
    lacking: dict[str, set[str]] = {}
    for finding in report.findings:
        for reason in () if finding.failed else finding.reasons:
            if reason.remedy != AGAIN:
                lacking.setdefault(reason.remedy or "nothing that zaudit knows of", set()).add(finding.rule.id)
    return {remedy: len(rules) for remedy, rules in sorted(lacking.items())}


def cases() -> list[Path]:
    """All recorded hosts, older recordings last."""
    return sorted(path for folder in (HOSTS, OLDER) for path in folder.iterdir() if path.is_dir())


def verifications() -> list[Path]:
    """All recorded verifications."""
    return sorted(VERIFICATIONS.glob("*.tar.gz"))


def verified(found: Found) -> dict[str, Any]:
    """The golden part of a verification: the chain, what was judged of latency, and every finding of a run."""
    chain = found.verification.chain
    return {
        "outcome": chain.outcome,
        "exit_code": found.report.exit_code,
        "links": [[link.name, link.status, link.text] for link in chain.links],
        "reasons": list(chain.reasons),
        "latency": [
            [each.run, f"p{one.q * 100:g}", one.ns, one.judgement, one.why]
            for each in found.verification.latencies
            for one in each.percentiles
        ],
        **{key: findings_of(found.report)[key] for key in ("findings", "undecided")},
    }


def fio_outputs(folder: Path) -> dict[str, Any]:
    """What is read from the outputs of fio and strace for one profile: file -> jobs and what each interval added."""
    syncs = {each.name: each.sync for each in profile.load(folder.name).sections}
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.out")):
        documents = fio_output.documents(path.read_text())
        began = documents[0]["timestamp_ms"] / 1000 - 1
        slices = fio_output.timeline(documents, syncs, began, "log")
        jobs = fio_output.jobs(documents[-1], syncs, "log")
        found[path.name] = {"jobs": codec.plain(jobs), "timeline": [[at, to, new.samples] for at, to, new in slices]}
    return {**found, "log.strace": codec.plain(strace_output.parse((folder / "log.strace").read_text(), ("zaudit.",)))}


@cache
def verify_reports() -> dict[str, str]:
    """File name -> what is said of made-up verifications."""
    traced = samples.traced()
    return {
        "traced-80.txt": verify_terminal.render(traced, zaudit="0.0", width=80),
        "traced-120-ascii.txt": verify_terminal.render(traced, zaudit="0.0", width=120, ascii_only=True),
        "contradicted-100.txt": verify_terminal.render(samples.contradicted(), report_of(HOSTS / CANONICAL), width=100),
        "contradicted.html": verify_html.render(samples.contradicted(), report_of(HOSTS / CANONICAL)),
        "compared-and-swept-80.txt": verify_terminal.render(
            samples.inconclusive(),
            comparison=compare(samples.traced((samples.run(spike_ms=40.0),)), traced),
            sweep=samples.sweep(scatter=0.2),
            zaudit="0.0",
            width=80,
        ),
        "inconclusive-80.txt": verify_terminal.render(samples.inconclusive(), zaudit="0.0", width=80),
    }


# pages that a phone or a narrow window shows, and who looks at one: (recorded host, columns)
NARROW_PAGES = (
    ("2.3-sync-disabled-local", 40),
    ("2.3-healthy-mirrored-slog-nobody", 40),
    ("2.3-suspended-wait", 60),
    ("2.3-stacked-devices", 60),
    ("2.4-healthy-physical-no-cache", 60),
)


@cache
def narrow_pages() -> dict[str, str]:
    """File name -> the page."""
    return {
        f"{case}-{width}.txt": terminal.render(report_of(HOSTS / case), width=width) for case, width in NARROW_PAGES
    }


def rule_pages(rules: Sequence[Rule]) -> dict[Path, str]:
    """File -> the page of a rule."""
    shown = provoked.shown(rules)
    return {FIXTURES.parent / rule.page: rule_index.page(rule, shown[rule.id]) for rule in rules}


@cache
def format_files() -> dict[str, str]:
    """File name -> the canonical report in each format that is made of data."""
    told = _told.told(json.loads(json_report.render(report_of(HOSTS / CANONICAL))))
    endings = {
        "markdown": "md",
        "junit": "xml",
        "sarif": "json",
        "sarif-github": "json",
        "prometheus": "prom",
        "jsonl": "jsonl",
    }
    return {
        f"{name}.{endings.get(name, 'txt')}": formats.module(name).render(told)
        for name in formats.of_data()
        if name != "json"
    }


def blocks() -> dict[Path, tuple[str, str]]:
    """Document -> the mark in it, and what stands in the block after that: the program's own words."""
    shown = CliRunner().invoke(main_command, ["check", "--help"], prog_name="zaudit", terminal_width=100)
    return {
        README: ("report", terminal.render(report_of(HOSTS / CANONICAL), width=100)),
        USAGE: ("zaudit check --help", shown.output),
    }


def filled(document: Path) -> str:
    """A document with its block as it must be."""
    mark, text = blocks()[document]
    pattern = re.compile(rf"(<!-- {re.escape(mark)} -->\n```text\n).*?(```\n)", re.DOTALL)
    whole, count = pattern.subn(lambda found: found[1] + text + found[2], document.read_text())
    if count != 1:
        raise ValueError(f"{document}: {count} blocks after <!-- {mark} -->")
    return whole


def diagnosis_reports() -> dict[str, str]:
    """File -> the canonical diagnosis in it."""
    found, several = diagnosed.canonical(), diagnosed.several()
    return {
        "terminal.txt": diagnose_terminal.render(found, zaudit="0.1.0"),
        "narrow.txt": diagnose_terminal.render(found, zaudit="0.1.0", width=80),
        "wide.txt": diagnose_terminal.render(found, zaudit="0.1.0", width=120),
        "ascii.txt": diagnose_terminal.render(found, zaudit="0.1.0", ascii_only=True),
        "page.html": diagnose_html.render(found, zaudit="0.1.0"),
        "json.json": diagnose_json.render(found, zaudit="0.1.0"),
        "database.txt": diagnose_terminal.render(asked.canonical(), zaudit="0.1.0"),
        "several.txt": diagnose_terminal.render(several, zaudit="0.1.0", width=80),
        "several.html": diagnose_html.render(several, zaudit="0.1.0"),
    }


def checklist_of(*recordings: Path) -> Checklist:
    """The checklist of recordings, drawn up three weeks after the first was made."""
    made = recording.load(recordings[0]).taken + 21 * 86400
    return _listing.draw(_listing.Wanted(None, recordings, audit.Options(), None, 30.0, 600.0, made), None)


@cache
def checklist_reports() -> dict[str, str]:
    """File -> a checklist: of a healthy host of which nothing was measured, of one that fails what was, and of a made-up one
    that was verified and diagnosed."""
    healthy, failing = checklist_of(HOSTS / GREEN), checklist_of(VERIFICATIONS / "2.3-sync-disabled.tar.gz")
    proven, slow = listed.listed(listed.whole()), listed.listed(listed.slow())
    return {
        "healthy-80.txt": checklist_terminal.render(healthy, zaudit="0.1.0", width=80),
        "failing-80.txt": checklist_terminal.render(failing, zaudit="0.1.0", width=80),
        "failing-120-ascii.txt": checklist_terminal.render(failing, zaudit="0.1.0", width=120, ascii_only=True),
        "failing-verbose-100.txt": checklist_terminal.render(failing, zaudit="0.1.0", verbose=True),
        "proven-120.txt": checklist_terminal.render(proven, zaudit="0.1.0", width=120),
        "slow-80.txt": checklist_terminal.render(slow, zaudit="0.1.0", width=80),
        "page.html": checklist_html.render(slow, zaudit="0.1.0"),
        "markdown.md": checklist_markdown.render(slow, zaudit="0.1.0"),
        "json.json": checklist_json.render(slow, zaudit="0.1.0"),
    }


def main(names: list[str]) -> None:
    for case in cases():
        if not names or case.name in names:
            golden = json.dumps(findings_of(report_of(case)), indent=1, ensure_ascii=True) + "\n"
            (case / "expected.json").write_text(golden)
    for past in verifications():
        golden = json.dumps(verified(_verifying.replayed(past, "low", None)), indent=1, ensure_ascii=True) + "\n"
        past.with_name(past.name.replace(".tar.gz", ".json")).write_text(golden)
    for folder in sorted(FIO.iterdir()):
        (folder / "expected.json").write_text(json.dumps(fio_outputs(folder), indent=1) + "\n")
    report = report_of(HOSTS / CANONICAL)
    (REPORTS / "terminal.txt").write_text(terminal.render(report, width=100))
    (REPORTS / "json.json").write_text(json_report.render(report))
    (REPORTS / "green.txt").write_text(terminal.render(report_of(HOSTS / GREEN), width=100))
    NARROW.mkdir(exist_ok=True)
    for name, text in narrow_pages().items():
        (NARROW / name).write_text(text)
    for name, text in format_files().items():
        (FORMATS / name).write_text(text)
    VERIFY_REPORTS.mkdir(exist_ok=True)
    for name, text in verify_reports().items():
        (VERIFY_REPORTS / name).write_text(text)
    DIAGNOSE_REPORTS.mkdir(exist_ok=True)
    for name, text in diagnosis_reports().items():
        (DIAGNOSE_REPORTS / name).write_text(text)
    CHECKLISTS.mkdir(exist_ok=True)
    for name, text in checklist_reports().items():
        (CHECKLISTS / name).write_text(text)
    CHECKLIST_SCHEMA.write_text(json.dumps(checklist_schema.schema(), indent=1) + "\n")
    DIAGNOSIS_SCHEMA.write_text(json.dumps(diagnosis_schema.schema(), indent=1) + "\n")
    VERIFY_SCHEMA.write_text(json.dumps(verify_schema.schema(), indent=1) + "\n")
    for document in blocks():
        document.write_text(filled(document))
    tables.write()
    RULES.write_text(rule_index.markdown(rules()))
    pages = rule_pages(rules())
    for gone in {*PAGES.glob("*.md")} - pages.keys():
        gone.unlink()
    PAGES.mkdir(parents=True, exist_ok=True)
    for path, text in pages.items():
        if not path.exists() or path.read_text() != text:  # only what changed is written
            path.write_text(text)
    man_pages.write()


if __name__ == "__main__":
    main(sys.argv[1:])
