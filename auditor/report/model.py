"""What a report says, before anybody decides how it looks. Built from verdicts and facts alone; renderers only render."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from auditor.facts import HOST, Facts, Known
from auditor.judge.event import EVENTS, SEVERITIES, Event, Severity
from auditor.judge.event_table import Column
from auditor.judge.finding import RANK, Coverage, Finding, exit_code, opening
from auditor.judge.policy import LeftOut
from auditor.judge.verdict import Verdicts
from auditor.report import phrases
from auditor.text import harmless, quoted

if TYPE_CHECKING:
    from auditor.judge.baseline import Night

PLACEHOLDER = re.compile(r"\b[A-Z][A-Z_0-9]{3,}\b")  # in a command: NEW_DEVICE, ONE_LEG

Standing = Literal[
    "damaged",
    "lost",
    "corrupted",
    "stalled",
    "one failure away",
    "at risk",
    "cannot tell",
    "on the word",
    "waived",
    "kept",
]
WAIVED = "WHAT A POWER CUT CAN LOSE IS WAIVED"


class Report(NamedTuple):
    """One audit. taken: seconds since the epoch. release: of the kernel module. findings: those that count; waived:
    those that somebody answers for. policy: its path, or empty. left_out: rules that the user chose not to judge, the
    most severe first. seen_from: where zaudit ran, if not where the host is; or empty. columns: what each event would
    cost each dataset; events: those that can happen here. used: dataset -> who uses it. brought: dataset that nobody
    named -> why it is audited. rules: digest of those that judged. recorder: the release that made the recording, or
    empty; unasked: today's questions that it lacks; edited: what was changed in it. night: what a baseline knew. lead:
    the failure that comes before what an event would lose; unseen: severe damage that could not be ruled out. hidden:
    how many findings below which severity are not shown."""

    facts: Facts
    zaudit: str
    hostname: str
    release: str
    taken: float
    targets: tuple[str, ...]
    findings: tuple[Finding, ...]
    waived: tuple[Finding, ...]
    verdicts: Verdicts
    coverage: Coverage
    threshold: Severity
    standing: Standing
    exit_code: int
    policy: str = ""
    left_out: tuple[LeftOut, ...] = ()
    seen_from: str = ""
    columns: tuple[Column, ...] = ()
    events: tuple[Event, ...] = EVENTS
    brought: Mapping[str, str] = {}
    used: Mapping[str, Known] = {}
    rules: str = ""
    recorder: str = ""
    unasked: tuple[str, ...] = ()
    edited: str = ""
    night: Night | None = None
    hidden: tuple[Severity, int] = ("low", 0)
    lead: Finding | None = None
    unseen: Finding | None = None

    @classmethod
    def make(cls, facts: Facts, found: Sequence[Finding], *, failed_only: bool, **others: Any) -> Report:
        """others: the fields that follow neither from the facts nor from the findings."""
        columns, threshold = others["columns"], others["threshold"]
        counted = tuple(each for each in found if not each.waiver)
        fresh = tuple(each for each in counted if not each.known)
        grave = (
            each for each in counted if each.rule.damage and not each.failed and RANK[each.severity] >= RANK["high"]
        )
        unseen, power = next(grave, None), phrases.of_a_cut(columns).outcome
        lead = opening(found, cut=power == "lost", other=phrases.loses(columns), calm=power == "kept")
        return cls(
            **others,
            facts=facts,
            hostname=facts.get(HOST, "hostname").word("unknown"),
            release=facts.get(HOST, "zfs_version_text").word("unknown"),
            taken=facts.now,
            findings=counted,
            waived=tuple(each for each in found if each.waiver),
            standing=_standing(columns, lead, unseen),
            lead=lead,
            unseen=unseen,
            exit_code=exit_code(((each.severity, each.failed) for each in fresh), threshold, failed_only=failed_only),
            seen_from=_seen_from(facts),
            brought={name: found.word() for name, found in _of_datasets(facts, "brought")},
            used={name: found for name, found in _of_datasets(facts, "used_by") if found.words()},
        )

    @property
    def headline(self) -> str:
        """The worst that is true: damage that is done, then what the next event would lose; and whether all was asked."""
        power = phrases.of_a_cut(self.columns)
        answer = WAIVED if self.standing == "waived" else phrases.headline(self.columns)
        if self.lead and self.standing in ("stalled", "damaged", "at risk"):
            fault = _capital(self.lead)
            answer = f"{fault}. {answer}" if power.outcome == "lost" else fault
        elif self.unseen and self.standing == "cannot tell" and power.outcome != "unknown":
            answer = f"UNKNOWN: {_capital(self.unseen)}"
        out = [each for each in self.left_out if not each.counts_as]
        if not out:
            return answer
        rules = "RULE WAS" if len(out) == 1 else "RULES WERE"
        return f"{answer} ({len(out)} {rules} LEFT OUT, THE MOST SEVERE {out[0].severity.upper()})"

    def above(self, least: Severity) -> Report:
        """The same for a reader who wants to see no finding below a severity, with how many those are."""
        shown = tuple(each for each in self.findings if RANK[each.severity] >= RANK[least])
        return self._replace(findings=shown, hidden=(least, len(self.findings) - len(shown)))

    @property
    def next_step(self) -> str:
        """A command, about the finding of the first step before others."""
        found, failed = phrases.first(self), [each for each in self.fresh or self.findings if each.failed]
        return _next_step(self.targets, [found[1], *failed] if found else failed)

    @property
    def users(self) -> dict[str, tuple[str, ...]]:
        return {name: found.words() for name, found in self.used.items()}

    @property
    def fresh(self) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if not each.known)

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """("critical", 1), ..., ("unknown", 7), ("waived", 1): failures by severity, then rules that do not count as one."""
        failed = Counter(finding.severity for finding in self.fresh if finding.failed)
        counted = [(severity, failed[severity]) for severity in reversed(SEVERITIES) if failed[severity]]
        undecided = len({finding.rule.id for finding in self.fresh if not finding.failed})
        known = len(self.findings) - len(self.fresh)
        others = (("unknown", undecided), ("known", known), ("waived", len(self.waived)))
        return (*counted, *(each for each in others if each[1]))


def _seen_from(facts: Facts) -> str:
    """A container or a sandbox of systemd has mounts of its own, and the commands of ZFS tell of those."""
    match facts.get(HOST, "all_processes"):
        case Known(False):
            return "Seen from a container: mounts are not those of the host, and databases outside it are not visible."
    match facts.get(HOST, "own_mount_namespace"):
        case Known(True):
            return "Seen from a separate mount namespace (a container or sandbox): mounts are not those of the host."
    return ""


def _of_datasets(facts: Facts, name: str) -> Iterator[tuple[str, Known]]:
    for pool in facts.linked(HOST, "pools"):
        for dataset in facts.linked(pool, "datasets"):
            if isinstance(found := facts.of(dataset).get(name), Known):
                yield dataset.name, found


def _capital(worst: Finding) -> str:
    """THE POOL IS DEGRADED (tank)"""
    subjects = list(dict.fromkeys(harmless(str(each.subject)) for each in worst.verdicts if each.subject != HOST))
    more = f" and {len(subjects) - 1} more" if len(subjects) > 1 else ""
    words = harmless(worst.message).partition(" (")[0] or worst.rule.title  # known bugs say how many, and what they do
    return words.upper() + (f" ({subjects[0]}{more})" if subjects else "")


def _standing(columns: Sequence[Column], lead: Finding | None, unseen: Finding | None) -> Standing:
    power = phrases.of_a_cut(columns)
    if lead and lead.rule.damage:
        stops = lead.rule.harm == "availability" and lead.severity == "critical"
        return "stalled" if stops else "damaged"
    if power.outcome in ("lost", "unknown") and power.verdicts and all(each.waiver for each in power.verdicts):
        return "waived"
    if power.outcome == "lost":
        return "lost" if "commits" in power.takes else "corrupted"
    if power.outcome == "unknown" or unseen:
        return "cannot tell"
    if phrases.loses(columns):
        return "one failure away"
    if lead or phrases.loses_later(columns):
        return "at risk"
    if power.outcome == "word":
        return "on the word"
    others = (cell.outcome for column in columns for cell in column.cells.values())
    return "kept" if all(outcome == "kept" for outcome in others) else "one failure away"


# pools on which appliances and installers put the system alone: TrueNAS (truenas/middleware, boot.pool_name), Ubuntu's /boot
OF_THE_SYSTEM = frozenset({"boot-pool", "bpool"})


def _next_step(targets: tuple[str, ...], found: Sequence[Finding]) -> str:
    """One command. Latency means nothing while a durability finding stands, so a grave one is fixed before it is measured."""
    for finding in found:
        if finding.severity in ("critical", "high") or finding.rule.damage:
            template = finding.fix.command
            whole = template and not finding.fix.needs and not PLACEHOLDER.search(template.source)
            commands = [each.command for each in finding.verdicts if each.command and whole]
            return commands[0] if commands else f"zaudit explain {finding.rule.id}"
    first = min(targets, key=lambda each: each in OF_THE_SYSTEM)
    return f"zaudit verify {quoted(first)}"  # which takes one target, and writes there
