"""What a report says, before anybody decides how it looks. Built from verdicts and facts alone; renderers only render."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from auditor.facts import HOST, Facts, Known
from auditor.judge.finding import RANK, Coverage, Finding, exit_code
from auditor.judge.policy import LeftOut
from auditor.judge.rule import SEVERITIES, Severity
from auditor.judge.verdict import Verdict
from auditor.text import quoted

Standing = Literal["lost", "corrupted", "stalled", "one failure away", "cannot tell", "waived", "nothing found"]
GRAVE: dict[str, Severity] = {"commits": "medium", "corruption": "medium"}  # from where on a harm is in the headline
HEADLINES: dict[Standing, str] = {
    "lost": "ACKNOWLEDGED COMMITS CAN BE LOST",
    "corrupted": "DATA CAN BE CORRUPTED",
    "stalled": "COMMITS CAN STALL",
    "one failure away": "DURABILITY IS UNPROVEN OR ONE FAILURE AWAY FROM LOSS",
    "cannot tell": "CANNOT TELL WHETHER COMMITS ARE SAFE",
    "waived": "WHAT CAN LOSE COMMITS IS WAIVED",
    "nothing found": "NO WAY TO LOSE COMMITS WAS FOUND IN WHAT WAS SEEN",
}


class Report(NamedTuple):
    """One audit. taken: seconds since the epoch at which the host was looked at. release: of the kernel module. findings:
    those that count; waived: those that somebody answers for. policy: the path of the one that was followed, or empty.
    left_out: rules that were not judged because somebody chose so, the gravest first. seen_from: where zaudit stood, in a
    sentence, when it is not where the host stands; or empty. rules: digest of those that judged. recorder: the release that
    made the recording which was judged, or empty; unasked: the questions of today that it did not know; edited: what
    somebody has changed in it, or empty."""

    zaudit: str
    hostname: str
    release: str
    taken: float
    targets: tuple[str, ...]
    findings: tuple[Finding, ...]
    waived: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]
    coverage: Coverage
    threshold: Severity
    standing: Standing
    next_step: str
    exit_code: int
    policy: str = ""
    left_out: tuple[LeftOut, ...] = ()
    seen_from: str = ""
    rules: str = ""
    recorder: str = ""
    unasked: tuple[str, ...] = ()
    edited: str = ""

    @classmethod
    def make(
        cls,
        *,
        zaudit: str,
        facts: Facts,
        targets: tuple[str, ...],
        verdicts: Sequence[Verdict],
        found: Sequence[Finding],
        covered: Coverage,
        threshold: Severity,
        policy: str = "",
        left_out: tuple[LeftOut, ...] = (),
        failed_only: bool = False,
        rules: str = "",
        recorder: str = "",
        unasked: tuple[str, ...] = (),
        edited: str = "",
    ) -> Report:
        counted = tuple(each for each in found if not each.waiver)
        waived = tuple(each for each in found if each.waiver)
        return cls(
            zaudit=zaudit,
            hostname=_text(facts, "hostname"),
            release=_text(facts, "zfs_version_text"),
            taken=facts.now,
            targets=targets,
            findings=counted,
            waived=waived,
            verdicts=tuple(verdicts),
            coverage=covered,
            threshold=threshold,
            standing=_standing(counted, waived),
            next_step=_next_step(targets, counted),
            exit_code=exit_code(((each.severity, each.failed) for each in counted), threshold, failed_only=failed_only),
            policy=policy,
            left_out=left_out,
            seen_from=_seen_from(facts),
            rules=rules,
            recorder=recorder,
            unasked=unasked,
            edited=edited,
        )

    @property
    def headline(self) -> str:
        """The answer to "can I lose commits?", and whether all was asked for it."""
        out = [each for each in self.left_out if not each.counts_as]
        if not out:
            return HEADLINES[self.standing]
        rules = "RULE WAS" if len(out) == 1 else "RULES WERE"
        return f"{HEADLINES[self.standing]} ({len(out)} {rules} LEFT OUT, THE GRAVEST {out[0].severity.upper()})"

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """("critical", 1), ..., ("undecided", 7), ("waived", 1): failures by severity, worst first, what could not be
        decided, and what somebody answers for."""
        failed = Counter(finding.severity for finding in self.findings if finding.failed)
        counted = [(severity, failed[severity]) for severity in reversed(SEVERITIES) if failed[severity]]
        undecided = sum(not finding.failed for finding in self.findings)
        others = (("undecided", undecided), ("waived", len(self.waived)))
        return (*counted, *(each for each in others if each[1]))


def _text(facts: Facts, name: str) -> str:
    found = facts.get(HOST, name)
    return str(found.value) if isinstance(found, Known) else "unknown"


def _seen_from(facts: Facts) -> str:
    """A container or a sandbox of systemd has mounts of its own, and the commands of ZFS tell of those."""
    match facts.get(HOST, "own_mount_namespace"):
        case Known(True):
            return "Seen from a mount namespace of its own (a container or sandbox): mounts are not those of the host."
    return ""


def _standing(found: Sequence[Finding], waived: Sequence[Finding]) -> Standing:
    """From the worst finding: what failed speaks by its harm, what is undecided only that nobody can tell.

    Commits that rest on a promise of the drive are no reason to say that no way to lose them was found: power cuts on
    drives that break it lost acknowledged commits where the worst finding was medium.
    """
    grave = [finding for finding in found if _grave(finding)]
    if not grave:
        return "waived" if any(map(_grave, waived)) else "nothing found"
    worst = grave[0]
    if not worst.failed:
        return "cannot tell"
    if worst.severity != "critical":
        return "one failure away"
    harms = {finding.rule.harm for finding in found if finding.failed and finding.severity == "critical"}
    return "lost" if "commits" in harms else "corrupted" if "corruption" in harms else "stalled"


def _grave(finding: Finding) -> bool:
    return RANK[finding.severity] >= RANK[GRAVE.get(finding.rule.harm, "high")]


def _next_step(targets: tuple[str, ...], found: Sequence[Finding]) -> str:
    """Latency means nothing while a durability finding stands, so a grave one is mended before it is measured."""
    words = " ".join(quoted(target) for target in targets)
    measured = f"zaudit verify {quoted(targets[0])}"  # which takes one target
    if found and found[0].failed and found[0].severity in ("critical", "high"):
        return f"mend the {found[0].severity} findings, then zaudit check {words}, then {measured}"
    return measured
