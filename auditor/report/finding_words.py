"""What the reports say of a finding alike, for a terminal and as a page. All of it is harmless to print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from auditor.facts import AGAIN, Evidence
from auditor.judge import known_bugs
from auditor.judge.finding import RANK, Finding
from auditor.judge.verdict import Verdict
from auditor.report import event_words
from auditor.report.model import Report
from auditor.text import harmless, quoted, unknown_headline

SUBJECTS_SHOWN = 6
_PACKAGE = re.compile(r"(?:[a-z]+ )?(?:install|add|-S) ([\w.+-]+)")  # as platforms install one
LEFT_OUT_SHOWN = 5
# commands of fixes that show where to begin and change nothing; a test knows the others
LOOKS = (
    "arcstat", "cat", "dkms status", "dmesg", "dmidecode",
    "echo {host.provider_answer}",  # a line of the policy: what is answered for becomes no better
    "exportfs -v", "findmnt", "grep", "lsblk", "nvme smart-log",
    "smartctl", "stat", "storcli64 /call show", "systemctl --failed", "testparm", "zaudit diagnose",
    "zaudit powercut plan", "zfs get", "zfs list", "zfs version", "zpool events", "zpool history", "zpool import",
    "zpool iostat", "zpool list", "zpool status",
)  # fmt: skip
# while one of these fails no restart of the host is a first step: it may not come up, or with a device less
BAR_RESTART = ("pool-degraded", "pool-suspended", "kernel-without-zfs", "running-kernel-without-zfs")


def where(*findings: Finding) -> str:
    """The subjects, or the place that they inherit it from and who they are."""
    subjects = dict.fromkeys(verdict.subject for finding in findings for verdict in finding.verdicts)
    names = [harmless(str(subject)) for subject in subjects]
    if findings[0].failed and findings[0].rule.origin and names != [place := harmless(findings[0].place)]:
        heirs = [name for name in names if name != place]
        word = "inherited by" if place in names else "where it is inherited by"
        return f"{place}, {word} {listed(heirs)}"
    return listed(names)


def listed(names: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    shown = ", ".join(names[:SUBJECTS_SHOWN])
    more = f" and {len(names) - SUBJECTS_SHOWN} more" if len(names) > SUBJECTS_SHOWN else ""
    return shown + more


def sentence(finding: Finding) -> str:
    """The rule's message when there is one subject, its title when there are several or no message. Where its cases have
    messages, that of the first subject, which says the case."""
    messages = [finding.message] if finding.message else list(dict.fromkeys(each.message for each in finding.verdicts))
    if len(messages) == 1 and messages[0]:
        return harmless(messages[0])
    if messages[0] and any(case.message for case in finding.rule.cases):
        return f"{harmless(messages[0])}; and {len(messages) - 1} more"
    return finding.rule.title


def first(report: Report) -> tuple[str, Finding] | None:
    """What to do before anything else, for somebody who reads no further: Fix first, or Look first, and the finding."""
    opens = report.lead and report.standing in ("damaged", "stalled", "at risk")
    lead = [report.lead] if report.lead and opens and not report.lead.known and not report.lead.waiver else []
    steps = [
        *lead,
        *sorted(worst_first(report), key=lambda each: each.rule.id == known_bugs.ID),
    ]  # below signs of this host
    bars = [each for each in (*report.findings, *report.waived) if each.failed and each.rule.id in BAR_RESTART]
    if bars and steps and _restarts(steps[0]):
        steps = [*(each for each in steps if each in bars), *(each for each in steps if not _restarts(each))]
    worst = steps[0] if steps else None
    return ("Look first" if looks(worst) else "Fix first", worst) if worst else None


def worst_first(report: Report) -> list[Finding]:
    """What failed with medium severity at least. Where the headline says what is relied on, and the rules that speak of it are
    all unknown, these as well, before others of their severity."""
    failed = [each for each in report.fresh if each.failed and each.severity != "low"]
    rules = event_words.of_a_cut(report.columns).rules if report.standing == "on the word" else ()
    if any(each.rule.id in rules for each in failed):
        return failed
    relied = [each for each in report.fresh if not each.failed and each.severity != "low" and each.rule.id in rules]
    return sorted([*relied, *failed], key=lambda each: -RANK[each.severity]) if relied else failed


def _restarts(finding: Finding) -> bool:
    """Does its fix restart the host?"""
    return finding.fix.cost == "needs restart" and finding.rule.subject == "host"


def looks(finding: Finding) -> bool:
    """Does its fix begin with a look? Nothing is better after it, and a reader should know."""
    command = finding.fix.command
    return (command.source if command else finding.fix.text).startswith((*LOOKS, "Run zaudit on"))


def severity(finding: Finding) -> str:
    """CRITICAL; CRITICAL? of what may be less severe, or no failure, and was not seen."""
    return finding.severity.upper() + ("" if finding.failed and finding.least == finding.severity else "?")


def at_least(finding: Finding) -> str:
    """Of a failure that may be less severe than it counts: how severe it is in any case; else nothing."""
    least = f"({finding.least}, or {finding.severity} if what is unknown turns out badly)"
    return "" if finding.least == finding.severity else least


def shortly(finding: Finding) -> str:
    """The same behind the subject; of several subjects with the message of the first, or what was seen of it."""
    if not finding.failed:
        return f"{question(finding)} ({finding.reasons[0].text})" if finding.reasons else question(finding)
    said = sentence(finding).removeprefix(f"{where(finding)}: ")
    worst = finding.verdicts[0]
    seen = worst.message or next((each.text for each in worst.evidence if each.text), "")
    return f"{said} ({harmless(seen)})" if said == finding.rule.title and seen else said


def question(finding: Finding) -> str:
    """Of one that is unknown: what is not known."""
    return harmless(finding.message) or unknown_headline(finding.rule.title)


def unasked(finding: Finding) -> bool:
    """Whether it is unknown for the one reason that the recording was made before the question."""
    return not finding.failed and {reason.remedy for reason in finding.reasons} == {AGAIN}


def recorded_by(report: Report) -> str:
    """What an older recording does not hold, in one sentence."""
    by = harmless(f"zaudit {report.recorder}" if report.recorder else "an older zaudit")
    return f"Recorded by {by}, and lacks {len(report.unasked):,} inputs of today. Record again."


def evidence(verdict: Verdict) -> list[tuple[str, str]]:
    """What was seen of a subject, each once, with the command that repeats the observation."""
    return list(dict.fromkeys((harmless(each.text), _command(each, verdict)) for each in verdict.evidence if each.text))


def _command(seen: Evidence, verdict: Verdict) -> str:
    return harmless(seen.command.replace("{subject}", quoted(verdict.subject.name)))


def bugs(finding: Finding) -> Iterator[str]:
    """Of a finding about known bugs each of them: id, severity, harm in words, what it needs, and the fix."""
    for bug in finding.bugs:
        needs = f"if {bug.needs}" if bug.needs else "every host with the release"
        here = f" (here: {listed([harmless(each) for each in bug.here])})" if bug.here else ""
        fixed = f"fixed in {', '.join(bug.fixed_in)}" if bug.fixed_in else "no release fixes it"
        yield f"{bug.id} ({bug.severity}, {bug.harm}): {bug.title}; {needs}{here}; {fixed} [{bug.references[0]}]"


def lesser_bugs(finding: Finding) -> list[tuple[str, str]]:
    """Of a finding about known bugs what was seen of those that are no entries of the table."""
    last = finding.verdicts[-1]
    return evidence(last)[1:] if finding.bugs and last.rule.head is None else []


def condition(finding: Finding) -> str:
    """What stands before the step: "Once the directory is empty: "; or nothing."""
    return f"{finding.fix.needs}: " if finding.fix.needs else ""


def commands(finding: Finding) -> list[str]:
    """What fixes it, to be pasted."""
    return list(dict.fromkeys(harmless(verdict.command) for verdict in finding.verdicts if verdict.command))


def hidden(report: Report) -> str:
    """What the reader did not want to see, or empty."""
    least, count = report.hidden
    they = "1 finding is" if count == 1 else f"{count} findings are"
    return f"{they} below {least} and not shown (--min-severity)." if count else ""


def known(report: Report) -> Iterator[tuple[str, str]]:
    """(WORSE, KNOWN, NOT SEEN or GONE, which) of what a baseline knows, the most severe first; of many the first."""
    if not report.night:
        return
    old = [
        f"{each.rule.id} {harmless(each.place)} ({'' if each.failed else 'undecided, '}{each.severity}, since {each.known})"
        for each in report.findings
        if each.known
    ]
    worse = [f"{each.rule} {harmless(str(each.subject))} ({harmless(why)})" for each, why in report.night.worse]
    unseen, gone = (
        [
            f"{each.rule} {harmless(str(each.subject))} ({each.severity}, last seen {each.last})"
            for each in sorted(found, key=lambda each: -RANK[each.severity])
        ]
        for found in (report.night.unseen, report.night.gone)
    )
    for word, names in (("WORSE", worse), ("KNOWN", old), ("NOT SEEN", unseen), ("GONE", gone)):
        if names:
            yield word, listed(names)


def left_out(report: Report) -> Iterator[tuple[str, str]]:
    """(by what, which) of the rules that were not judged or count as less; of many the most severe alone."""
    by: dict[str, list[str]] = {}
    for each in report.left_out:
        what = f"Counts as {each.counts_as} by" if each.counts_as else "Left out by"
        by.setdefault(f"{what} {harmless(each.by)}", []).append(f"{each.rule} ({each.severity})")
    for what, rules in by.items():
        shown = rules[:LEFT_OUT_SHOWN]
        more = f" and {len(rules) - len(shown)} more (--format json names all)" if len(rules) > len(shown) else ""
        yield what, ", ".join(shown) + more


def first_sentences(text: str, count: int = 1) -> str:
    """Of several; "ALTER ROLE ... RESET" goes on."""
    return ". ".join(re.split(r"(?<!\.)\. ", text)[:count]).rstrip(".") + "."


def need(remedy: str) -> str:
    """What decides it, as a noun: "root", "a new recording", "smartmontools (apt install smartmontools)"."""
    nouns = {"--timeout": "a longer --timeout", "run as root": "root", "record again": "a new recording"}
    if noun := nouns.get(remedy):
        return noun
    if way := _PACKAGE.fullmatch(remedy):
        return f"{way[1]} ({remedy})" if not remedy.startswith("install ") else way[1]
    return remedy
