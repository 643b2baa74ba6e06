"""What zaudit makes of the recorded hosts: ``python -m tests.golden`` writes it down again.

Look at ``git diff fixtures`` afterwards: a golden file is only as good as the eye that read it.
"""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from auditor import audit, codec, rulebook
from auditor import sources as catalog
from auditor.checklist import checklist_page, responses
from auditor.checklist.lists import Checklist
from auditor.cli import main as main_command
from auditor.commands._schemas import SCHEMAS as EVERY_SCHEMA
from auditor.diagnose import diagnose_page
from auditor.facts import AGAIN
from auditor.host.request import NOTHING_ELSE
from auditor.judge import rule_file
from auditor.judge.finding import Finding
from auditor.recording import recording
from auditor.registry import registry, sources
from auditor.report import audit_page, formats, report_reader
from auditor.report import report_json as json_report
from auditor.report.model import Report
from auditor.verify import fio, profile, verification, verify_page
from auditor.verify.comparison import compare
from auditor.verify.verification import VerifyResult
from tests import rule_pages
from tests.checklist import worlds as listed
from tests.diagnose import databases as asked
from tests.diagnose import worlds as diagnosed
from tests.lab import tables
from tests.shared import HOSTS as HOSTS
from tests.shared import OLDER as OLDER
from tests.shared import name_of
from tests.shared import report_anew as report_anew
from tests.shared import report_of as report_of
from tests.verify import samples

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
FIO = FIXTURES / "fio"
VERIFICATIONS = FIXTURES / "verifications"
REPORTS = FIXTURES / "reports"
README = FIXTURES.parent / "README.md"
USAGE = FIXTURES.parent / "docs" / "usage.md"
QUESTIONS = FIXTURES.parent / "docs" / "questions.md"
EXPECTED, PROVOKED = FIXTURES / "expected.txt", FIXTURES / "provoked.txt"
ALLOWED = FIXTURES / "allowed.txt"
# of which all is expected, to the last undecided rule: healthy hosts, those that lose most, and the oddest
WHOLE = (
    *("2.1-full-81", "2.1-healthy-mirrored-slog", "2.1-slog-legs-on-one-disk", "2.2-zil-nocacheflush"),
    *("2.3-db-postgres-fsync-off", "2.3-healthy-mirrored-slog-nobody", "2.3-odd-names", "2.3-stacked-devices"),
    *("2.3-sync-disabled-local", "2.4-healthy-physical-no-cache", "2.4-special-consumer-ssd", "composed-truenas-25.10"),
)
PAGE_RULES = (
    Path(__file__).parent / "report" / "rules"
)  # ours once: a page changes with what makes pages, never with a rule
CANONICAL, GREEN = "2.3-sync-disabled-local", "2.4-healthy-physical-no-cache"
FORMATS = REPORTS / "formats"
VERIFY_REPORTS, NARROW = REPORTS / "verify", REPORTS / "narrow"
SCHEMAS = Path(formats.__file__).parents[1]
MADE_SCHEMAS = FIXTURES / "schemas"
VERIFY_SCHEMA = MADE_SCHEMAS / "verify.json"
DIAGNOSE_REPORTS, DIAGNOSIS_SCHEMA = REPORTS / "diagnose", MADE_SCHEMAS / "diagnose.json"
CHECKLISTS, CHECKLIST_SCHEMA = REPORTS / "checklist", MADE_SCHEMAS / "checklist.json"


@cache
def page_report(name: str) -> Report:
    """That of a host by the rules of pages, which knows of no other question."""
    rules = rule_file.load_folder(PAGE_RULES, registry())
    report = report_anew(HOSTS / name, [each._replace(page=rulebook.PAGE.format(each.id)) for each in rules])
    return report._replace(unasked=())  # what is asked since changes no page


def expectation(case: Path) -> str:
    """All that is expected of a host: standing, exit code, every failure with its subjects, and what is undecided."""
    report = report_of(case)
    lacking = (f"  undecided: {count} {remedy}\n" for remedy, count in undecided(report).items())
    found = (f"  {line}\n" for line in failures(report))
    return f"{name_of(case)}: {report.standing}, exit code {report.exit_code}\n{''.join((*found, *lacking))}"


def provoked(case: Path) -> list[str]:
    """Of a host what it shows that is more than low, a line each."""
    return [f"{provoked_by(case)}: {line}" for line in failures(report_of(case)) if not line.startswith("low ")]


def provoked_by(case: Path) -> str:
    """What a host is called in the table of what hosts provoke."""
    return f"older/{name_of(case)}" if case.parent == OLDER.folder else name_of(case)


def failures(report: Report) -> list[str]:
    """Severity, rule and subjects of each finding that failed; of known bugs which they are."""
    return [
        f"{finding.severity} {finding.rule.id}: {', '.join(_about(finding))}"
        for finding in report.findings
        if finding.failed
    ]


def _about(finding: Finding) -> list[str]:
    bugs = [f"{bug.id} ({bug.severity})" for bug in finding.bugs]
    return bugs or [f"{each.subject.kind} {each.subject}" for each in finding.verdicts]


@cache
def written() -> dict[Path, list[tuple[str, str]]]:
    """Recording -> severity and rule of each failure that is written down: all of some hosts, and what is more than low of the
    others. What tests choose hosts by; nothing is judged for it."""
    found: dict[Path, list[tuple[str, str]]] = {case: [] for case in cases()}
    places = {provoked_by(case): case for case in found}
    lines = [tuple(line.split(": ")[:2]) for line in PROVOKED.read_text().splitlines()]
    for block in EXPECTED.read_text().split("\n\n"):
        name, *each = (line.strip().partition(": ")[0] for line in block.splitlines())
        lines += [(name, one) for one in each if one != "undecided"]
    for place, failure in lines:
        severity, rule = failure.split(" ")
        found[places[place]].append((severity, rule))
    return found


def others() -> list[Path]:
    """All recordings but those, of which the table says what they provoke."""
    return [case for case in cases() if case.parent == OLDER.folder or name_of(case) not in WHOLE]


def findings_of(report: Report) -> list[dict[str, Any]]:
    """Every failure of a report with its subjects."""
    return [
        {
            "rule": finding.rule.id,
            "outcome": "fail",
            "severity": finding.severity,
            "subjects": [f"{verdict.subject.kind} {verdict.subject}" for verdict in finding.verdicts],
        }
        for finding in report.findings
        if finding.failed
    ]


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
    return [*HOSTS.cases(), *OLDER.cases()]


def verifications() -> list[Path]:
    """All recorded verifications."""
    return sorted(VERIFICATIONS.glob("*.tar.gz"))


def verified(found: VerifyResult) -> dict[str, Any]:
    """The golden part of a verification: the chain, what was judged of latency, and every failure of a run."""
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
        "findings": [each for each in findings_of(found.report) if each["subjects"][0].startswith("run ")],
    }


def fio_output(path: Path) -> str:
    """What fio printed."""
    return gzip.decompress(path.read_bytes()).decode()


def fio_outputs(folder: Path) -> dict[str, Any]:
    """What is read from the outputs of fio and strace for one profile: file -> jobs and what each interval added."""
    syncs = {each.name: each.sync for each in profile.load(folder.name).sections}
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.out.gz")):
        documents = fio.documents(fio_output(path))
        began = documents[0]["timestamp_ms"] / 1000 - 1
        slices = fio.timeline_of(documents, syncs, began, "log")
        jobs = fio.jobs_of(documents[-1], syncs, "log")
        found[path.name.removesuffix(".gz")] = {
            "jobs": codec.plain(jobs),
            "timeline": [[at, to, new.samples] for at, to, new in slices],
        }
    return {**found, "log.strace": codec.plain(fio.parse((folder / "log.strace").read_text(), ("zaudit.",)))}


@cache
def verify_reports() -> dict[str, str]:
    """File name -> what is said of made-up verifications."""
    traced = samples.traced()
    return {
        "traced-80.txt": verify_page.write("terminal", traced, zaudit="0.0", width=80),
        "traced-120-ascii.txt": verify_page.write("terminal", traced, zaudit="0.0", width=120, ascii_only=True),
        "contradicted-100.txt": verify_page.write(
            "terminal", samples.contradicted(), page_report(CANONICAL), width=100
        ),
        "contradicted.html": verify_page.write("html", samples.contradicted(), page_report(CANONICAL)),
        "compared-and-swept-80.txt": verify_page.write(
            "terminal",
            samples.inconclusive(),
            comparison=compare(samples.traced((samples.run(spike_ms=40.0),)), traced),
            sweep=samples.sweep(scatter=0.2),
            zaudit="0.0",
            width=80,
        ),
        "inconclusive-80.txt": verify_page.write("terminal", samples.inconclusive(), zaudit="0.0", width=80),
    }


def allowed() -> str:
    """Every command line that a source may run: its first words, [options], the pattern of other words, and the sources; then
    every file that they may read, and what begins the paths of others."""
    found: dict[str, list[str]] = {}
    for name, source in sorted(sources().items()):
        for each in source.runs:
            options = f" [{' '.join(sorted(each.options))}]" if each.options else ""
            others = "" if each.others == NOTHING_ELSE else f" /{each.others.pattern}/"
            least = f" ({each.named + 1} or more)" if each.named else ""
            found.setdefault(f"{' '.join(each.begins)}{options}{others}{least}", []).append(name)
    files, folders = catalog.places()
    reads = sorted((*files, *(f"{each}*" for each in folders)))
    return "".join(
        (
            *(f"{line}\n    {', '.join(names)}\n" for line, names in sorted(found.items())),
            *(f"{each}\n" for each in reads),
        )
    )


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
        f"{case}-{width}.txt": audit_page.write_text(page_report(case), width=width) for case, width in NARROW_PAGES
    }


@cache
def format_files() -> dict[str, str]:
    """File name -> the canonical report in each format that is made of data."""
    told = report_reader.parse_report(json.loads(json_report.render(page_report(CANONICAL))))
    endings = {
        "markdown": "md",
        "junit": "xml",
        "html": "html",
        "sarif": "json",
        "sarif-github": "json",
        "prometheus": "prom",
        "jsonl": "jsonl",
    }
    return {
        f"{name}.{endings.get(name, 'txt')}": formats.named(name).render(told)
        for name in formats.of_data()
        if name != "json"
    }


def blocks() -> dict[Path, tuple[str, str]]:
    """Document -> the mark in it, and what stands in the block after that: the program's own words."""
    shown = CliRunner().invoke(main_command, ["check", "--help"], prog_name="zaudit", terminal_width=100)
    return {
        README: ("report", audit_page.write_text(report_of(HOSTS / CANONICAL), width=100)),
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


@cache
def diagnosis_reports() -> dict[str, str]:
    """File -> the canonical diagnosis in it."""
    found, several = diagnosed.canonical(), diagnosed.several()
    return {
        "terminal.txt": diagnose_page.write("terminal", found, zaudit="0.1.0"),
        "narrow.txt": diagnose_page.write("terminal", found, zaudit="0.1.0", width=80),
        "wide.txt": diagnose_page.write("terminal", found, zaudit="0.1.0", width=120),
        "ascii.txt": diagnose_page.write("terminal", found, zaudit="0.1.0", ascii_only=True),
        "page.html": diagnose_page.write("html", found, zaudit="0.1.0"),
        "json.json": diagnose_page.write("json", found, zaudit="0.1.0"),
        "database.txt": diagnose_page.write("terminal", asked.canonical(), zaudit="0.1.0"),
        "several.txt": diagnose_page.write("terminal", several, zaudit="0.1.0", width=80),
        "several.html": diagnose_page.write("html", several, zaudit="0.1.0"),
    }


def checklist_of(*recordings: Path) -> Checklist:
    """The checklist of recordings, drawn up three weeks after the first was made; of any number of rules."""
    made = recording.load(recordings[0]).taken + 21 * 86400
    found = responses.draw(responses.ChecklistOptions(None, recordings, audit.Options(), None, 30.0, 600.0, made), None)
    evidence = (
        each._replace(text=re.sub(r"\d+ of \d+ rules", "200 of 205 rules", each.text)) for each in found.evidence
    )
    return found._replace(evidence=tuple(evidence))


@cache
def made_schemas() -> dict[str, Any]:
    """Those that are made from type hints: within a version keys are added alone, which the diff shows."""
    return {name: EVERY_SCHEMA[name]() for name in ("verify", "checklist", "diagnose", "plan", "supposed", "cluster")}


@cache
def checklist_reports() -> dict[str, str]:
    """File -> a checklist: of a healthy host of which nothing was measured, of one that fails what was, and of a made-up one
    that was verified and diagnosed."""
    healthy, failing = checklist_of(HOSTS / GREEN), checklist_of(VERIFICATIONS / "2.3-sync-disabled.tar.gz")
    proven, slow = listed.listed(listed.whole()), listed.listed(listed.slow())
    return {
        "healthy-80.txt": checklist_page.write("terminal", healthy, zaudit="0.1.0", width=80),
        "failing-80.txt": checklist_page.write("terminal", failing, zaudit="0.1.0", width=80),
        "failing-120-ascii.txt": checklist_page.write("terminal", failing, zaudit="0.1.0", width=120, ascii_only=True),
        "failing-verbose-100.txt": checklist_page.write("terminal", failing, zaudit="0.1.0", verbose=True),
        "proven-120.txt": checklist_page.write("terminal", proven, zaudit="0.1.0", width=120),
        "slow-80.txt": checklist_page.write("terminal", slow, zaudit="0.1.0", width=80),
        "page.html": checklist_page.write("html", slow, zaudit="0.1.0"),
        "markdown.md": checklist_page.write("markdown", slow, zaudit="0.1.0"),
        "json.json": checklist_page.write("json", slow, zaudit="0.1.0"),
    }


def main() -> None:
    ALLOWED.write_text(allowed())
    EXPECTED.write_text("\n".join(expectation(HOSTS / name) for name in WHOLE))
    PROVOKED.write_text("".join(f"{line}\n" for case in others() for line in provoked(case)))
    for past in verifications():
        golden = json.dumps(verified(verification.replayed(past, "low", None)), indent=1, ensure_ascii=True) + "\n"
        past.with_name(past.name.replace(".tar.gz", ".json")).write_text(golden)
    for folder in sorted(FIO.iterdir()):
        (folder / "expected.json").write_text(json.dumps(fio_outputs(folder), indent=1) + "\n")
    report = page_report(CANONICAL)
    (REPORTS / "terminal.txt").write_text(audit_page.write_text(report, width=100))
    (REPORTS / "json.json").write_text(json_report.render(report))
    (REPORTS / "green.txt").write_text(audit_page.write_text(page_report(GREEN), width=100))
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
    for name, made in made_schemas().items():
        (MADE_SCHEMAS / f"{name}.json").write_text(json.dumps(made, indent=1) + "\n")
    for document in blocks():
        document.write_text(filled(document))
    QUESTIONS.write_text(rule_pages.questions())
    tables.write()


if __name__ == "__main__":
    main()
