"""Public incidents of OpenZFS under databases, each with the sign that a host shows and the rules that catch it.

``incidents.toml`` is the table; in our words, from the source that an entry names. An entry has

``source``    where it was told
``group``     commits (latency and settings), pool (layout, space, health), release (bugs and builds) or around (the next
              boot, drives, guests, targets)
``happened``, ``sign``, ``solved``   what went wrong, what the host shows of it, and what helped as far as the source says
``first``     of those that were judged before anything was fixed for them: the verdict of then
``now``       today's, with the reason above it where it is not plain: caught, partly (a rule points at it and not at the
              cause), missed, or out (nothing to be seen)
``rules``     that fail on such a host
``edits``     what makes a host of fixtures/hosts (``base``) show the sign; ``like`` takes those of another entry. Without
              edits the examples of the rule show the same

``pages.txt`` says what the page of each such host shows: the line that first names one of its rules, and whether the headline
tells another story. ``python -m tests.incidents`` writes it, by the rules that there are.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from auditor import audit
from auditor.facts import HOST, Facts
from auditor.host.request import WITNESS, Capture, Files, Read
from auditor.recording import lookup
from auditor.recording.recording import Recording, ReplayHost, load
from auditor.registry import sources
from auditor.report import audit_page
from auditor.report.model import Report
from auditor.sources import kernel_log, of_module
from tests.question import run
from tests.renamed import passed_through
from tests.shared import HOSTS, audited

TABLE = Path(__file__).with_name("incidents.toml")
PAGES = TABLE.with_name("pages.txt")
SEEN = 12  # lines of a page at 80 columns that somebody reads who reads no further
AGAINST = "the headline finds no loss"
MEASURES = ("caught", "hidden", "examples", "partly", "missed")
BASE = "2.4-healthy-physical-protected-cache"
RELEASE = "2.4.4-1~bpo13+1"  # of that host
# what has happened already, or the first sign of it: who reads it has lost time, or more
AFTER = frozenset(
    """
    checksum-errors-on-several deadman-seen decryption-failed device-was-gone disk-smart-failed disk-unreadable-sectors
    drive-path-faults flush-failed-logged host-faults import-discards-commits leaf-device-missing log-replay-failed
    pool-data-errors pool-degraded pool-not-imported pool-suspended pool-suspended-history resilver-still
    running-kernel-without-zfs scrub-errors slog-unhealthy space-refused txg-hangs upkeep-failed vdev-errors-nonzero
    zfs-threads-stopped zfs-units-failed zil-commit-errors zpool-status-warns
    """.split()  # noqa: SIM905 (a list of words)
)
GROUPS = ("commits", "pool", "release", "around")
VERDICTS = ("caught", "partly", "missed", "out")
KEEP: Mapping[tuple[str, ...], str] = {
    argv: run(each).keep
    for argv, question in lookup.ASKED.items()
    for each in of_module(kernel_log)
    if run(each).argv == question
}


class Incident(NamedTuple):
    """One of the table, as its docstring says."""

    source: str
    group: str
    happened: str
    sign: str
    solved: str
    now: str
    first: str = ""
    rules: tuple[str, ...] = ()
    base: str = BASE
    edits: tuple[Mapping[str, str], ...] = ()


def everything() -> dict[str, Incident]:
    """All of them by name. Raises ValueError or TypeError for an entry that is not as it should be."""
    table: dict[str, dict[str, Any]] = tomllib.loads(TABLE.read_text())
    return {name: _incident(table, name) for name in table}


def _incident(table: Mapping[str, dict[str, Any]], name: str) -> Incident:
    entry = dict(table[name])
    if like := entry.pop("like", ""):
        entry = {key: table[like][key] for key in ("base", "edits") if key in table[like]} | entry
    entry |= {key: tuple(entry[key]) for key in ("rules", "edits") if key in entry}
    found = Incident(**entry)
    told = found.group in GROUPS and found.now in VERDICTS and found.first in ("", *VERDICTS)
    if not told or bool(found.rules) != (found.now in ("caught", "partly")):
        raise ValueError(f"{name}: its group, its verdicts or its rules are not as they should be")
    return found


def report_of(past: Recording) -> Report:
    seen = audit.look(ReplayHost(past), past.targets, audit.Options.from_words(past.options))
    return audit.judge(seen, audited(), past.targets, "low")


def page_line(incident: Incident, report: Report) -> str:
    """The number of the line that first names one of its rules, by id or title (0: none does), and AGAINST where the headline
    finds no loss while one of them is high or critical."""
    found = {each.rule.id: each for each in report.findings if each.failed and each.rule.id in incident.rules}
    names = [name.lower() for each in found.values() for name in (each.rule.id, each.rule.title)]
    lines = audit_page.write_text(report, width=80).lower().splitlines()
    at = next((number for number, line in enumerate(lines, 1) if any(name in line for name in names)), 0)
    grave = any(each.severity in ("high", "critical") for each in found.values())
    return f"{at} {AGAINST}" if grave and report.headline.startswith("NO LOSS") else str(at)


def pages() -> dict[str, str]:
    """Name -> what the page shows, as it is written down."""
    return dict(line.split(": ", 1) for line in PAGES.read_text(encoding="utf-8").splitlines())


def measure(name: str, incident: Incident, pages: Mapping[str, str]) -> str:
    """caught: a host with the sign shows it by line 12, and the headline does not deny it. hidden: the rule fails there,
    further down. examples: no host shows the sign, the examples of the rule do. partly, missed: as ``now`` says."""
    if incident.now != "caught":
        return incident.now
    if not incident.edits:
        return "examples"
    at, _, against = pages[name].partition(" ")
    return "caught" if 0 < int(at) <= SEEN and not against else "hidden"


def warned(incident: Incident) -> bool:
    """Whether a rule that catches it fails on a host on which nothing has gone wrong yet."""
    return incident.now == "caught" and bool(set(incident.rules) - AFTER)


def written() -> Iterator[str]:
    """The lines of pages.txt."""
    for name, incident in everything().items():
        if incident.edits:
            yield f"{name}: {page_line(incident, report_of(shown(incident)))}\n"


def shown(incident: Incident) -> Recording:
    """Its base, whose drives are real, with the sign. Raises ValueError where an edit changes nothing."""
    past = passed_through(load(HOSTS / incident.base))
    for edit in incident.edits:
        before = past
        past = _edited(past, edit)
        if past == before:
            raise ValueError(f"this changes nothing: {edit}")
    return past


def _edited(past: Recording, edit: Mapping[str, str]) -> Recording:
    """``run``: of all commands that begin so, ``from`` becomes ``to``, or ``text`` is what they say, or ``add`` is what they
    say besides. ``file``: the same of one file; ``link``: of where a link leads; ``gone``: it is not there. ``release``:
    OpenZFS is of that one."""
    match dict(edit):
        case {"release": new}:
            texts = dict.fromkeys(("/sys/module/zfs/version", "/sys/module/spl/version"), lambda said: f"{new}\n")
            changed = _edited(past, {"run": "zfs version", "from": RELEASE, "to": new})
            return replace(changed, files={each: _files(each, at, texts) for each, at in changed.files.items()})
        case {"run": begins, **how}:
            argv = tuple(begins.split(" "))
            commands = dict(past.commands)
            if not any(each[: len(argv)] == argv for each in commands):
                commands[argv] = Capture(0, keep=KEEP.get(argv, ""))
            for each, said in commands.items():
                if each[: len(argv)] == argv:
                    text = _change(how)(said.stdout.decode()).encode()
                    commands[each] = said._replace(exit=int(how.get("exit", "0")), fault="", stdout=text)
            return replace(past, commands=commands)
        case {"file": path, **how}:
            past = _asked(past, path)
            return replace(
                past, files={each: _files(each, at, {path: _change(how)}) for each, at in past.files.items()}
            )
        case {"gone": path}:
            return replace(past, files={each: _without(each, at, path) for each, at in past.files.items()})
        case {"link": path, **how}:
            links = {path: _change(how)}
            return replace(past, files={each: _files(each, at, {}, links) for each, at in past.files.items()})
    raise ValueError(f"no such edit: {edit}")


def _asked(past: Recording, path: str) -> Recording:
    """With the answer to the question about that file, where the base was recorded before there was one: there is none."""
    if any(_among(path, patterns) for patterns in past.files):
        return past
    asked = (module.request(HOST, Facts()) for module in sources().values() if module.per == "host")
    patterns = next(each.patterns for each in asked if isinstance(each, Read) and _among(path, each.patterns))
    witness = {WITNESS: "nodev\tsysfs\n"} if WITNESS in patterns else {}
    gone = {each: "no such file" for each in patterns if each not in witness}
    return replace(past, files={**past.files, patterns: Files(witness, errors=gone)})


def _among(path: str, patterns: tuple[str, ...]) -> bool:
    return any(lookup.meant(path, pattern) for pattern in patterns)


def _without(patterns: tuple[str, ...], answer: Files, path: str) -> Files:
    """The answer to one question where a file is not there."""
    if path not in answer.text and path not in answer.links:
        return answer
    left = answer._replace(
        text={each: text for each, text in answer.text.items() if each != path},
        links={each: to for each, to in answer.links.items() if each != path},
    )
    empty = [
        pattern
        for pattern in patterns
        if lookup.meant(path, pattern) and not any(lookup.meant(each, pattern) for each in (*left.text, *left.links))
    ]
    return left._replace(errors={**left.errors, **dict.fromkeys(empty, "no such file")})


def _change(how: Mapping[str, str]) -> Callable[[str], str]:
    if "text" in how:
        return lambda said: how["text"]
    return lambda said: (said.replace(how["from"], how["to"]) if "from" in how else said) + how.get("add", "")


def _files(
    patterns: tuple[str, ...],
    answer: Files,
    texts: Mapping[str, Callable[[str], str]],
    links: Mapping[str, Callable[[str], str]] | None = None,
) -> Files:
    """The answer to one question with some of its files, or links, changed or added."""
    links = links or {}
    asked = [path for path in (*texts, *links) if _among(path, patterns)]
    if not asked:
        return answer
    gone = set(asked) | {pattern for pattern in patterns for path in asked if lookup.meant(path, pattern)}
    return answer._replace(
        text={**answer.text, **{path: texts[path](answer.text.get(path, "")) for path in asked if path in texts}},
        links={**answer.links, **{path: links[path](answer.links.get(path, "")) for path in asked if path in links}},
        errors={path: error for path, error in answer.errors.items() if path not in gone},
    )
