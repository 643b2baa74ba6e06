"""What reports say alike of the table of events and of findings, for a terminal and as a page. All is harmless to print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from auditor.durability.answers import PROMISES
from auditor.facts import AGAIN, Evidence
from auditor.judge import known_bugs
from auditor.judge.event import (
    EVENTS,
    KEPT,
    NEXT,
    ORDER,
    STORE_PARTIES,
    Cell,
    Event,
    Take,
    Tried,
    Word,
    both,
    joined,
    milder,
)
from auditor.judge.event_table import Column
from auditor.judge.finding import RANK, Finding
from auditor.judge.verdict import Verdict
from auditor.model.write_cache import ENOUGH, bounds
from auditor.text import few, harmless, quoted, shortened, unknown_headline

if TYPE_CHECKING:
    from auditor.report.model import Report


NOUNS: dict[Event, str] = {
    "process": "killing the database",
    "restart": "a restart",
    "crash": "a crash",
    "power": "a power cut",
    "drive": "data drive failure",
    "log": "log device failure",
    "power+log": "a power cut plus log device failure",
    "power+drive": "a power cut plus data drive failure",
    "below": "a power cut of the physical host or storage",
}
ALONE = "a power cut of this machine alone"  # where a power cut below it ends otherwise
LOSS_OF_THE_POOL = "loss of the pool"
IMPORT = "the pool needs zpool import -m"
NAMES_SHOWN, USERS_SHOWN, PROMISES_SHOWN = 4, 2, 3
CLAUSES = 2  # of a headline
UNVERIFIED = " (not verified)"
NOBODY: Mapping[str, Sequence[str]] = {}


class Line(NamedTuple):
    """Events at which the same happens. why: ids of the rules that decide it."""

    events: tuple[Event, ...]
    cell: Cell
    text: str
    why: tuple[str, ...]


def lines(column: Column, events: Sequence[Event]) -> Iterator[Line]:
    """What happens to these datasets, one line for all events that end alike."""
    together: dict[tuple[object, ...], list[Event]] = {}
    for event in events:
        cell, later = column.cells[event], column.next_boot.get(event)
        together.setdefault((_same(cell), later and _same(later)), []).append(event)

    def place(at: Sequence[Event]) -> tuple[int, bool, int]:
        """The worst first; of equal ones that of the power cut."""
        return -ORDER[column.cells[at[0]].outcome], "power" not in at, EVENTS.index(at[0])

    for at in sorted(together.values(), key=place):
        cell = joined(column.cells[event] for event in at)
        yield Line(tuple(at), cell, sentence(cell, at), tuple(map(harmless, cell.rules)))
        if then := [column.next_boot[event] for event in at if event in column.next_boot]:
            cell = joined(then)
            rules = tuple(map(harmless, cell.rules))
            yield Line(tuple(at), cell, f"after a restart of {column.restart}: {sentence(cell, at)}", rules)


def _same(cell: Cell) -> tuple[object, ...]:
    """What two events have in common that stand in one line; unknown ones all do."""
    return ("unknown",) if cell.outcome == "unknown" else (cell.outcome, cell.takes, cell.parties, cell.amounts)


def happening(events: Sequence[Event], possible: Sequence[Event] = ()) -> str:
    """a crash or a power cut. What includes another is implied. possible: events here; "below" may end otherwise."""
    apart = "below" in possible and "below" not in events
    names = NOUNS | {"power": ALONE} if apart else NOUNS
    return _listed([names[event] for event in _apart(events)], " or ")


def _apart(events: Sequence[Event]) -> list[Event]:
    """Without those that include another of them."""
    return [event for event in events if not milder(event) & {"power", "drive", "log"} & set(events)]


def sentence(cell: Cell, events: Sequence[Event] = ()) -> str:
    """no loss; LOSES up to 5 s of commits, more under load; no loss, relies on nvme0n1 (not verified). events: at which."""
    match cell.outcome:
        case "kept":
            return "no loss"
        case "word":
            return f"no loss, relies on {parties(cell, events)}"
        case "lost":
            return f"{_harm(cell, 'LOSES', 'CORRUPTS') or IMPORT}{_answered(cell)}"
        case _:
            because = "".join(f": {harmless(each)}" for each in cell.unseen[:1])
            return f"unknown, may {_harm(cell, 'lose', 'corrupt') or 'need zpool import -m'}{because}"


def losses_of_the_pool(columns: Sequence[Column]) -> list[str]:
    """loss of the pool: LOSES at least 26 h of commits. Once for all datasets with the same cell."""
    found: dict[str, list[str]] = {}
    for column in columns:
        if column.gone:
            found.setdefault(sentence(column.gone), []).extend(column.names)
    return [
        f"{LOSS_OF_THE_POOL}{'' if len(found) == 1 else f' ({_some([*map(harmless, names)])})'}: {text}"
        for text, names in found.items()
    ]


def _answered(cell: Cell) -> str:
    """Of what somebody answers for in the policy: who, and until when."""
    waivers = [each.waiver for each in cell.verdicts if each.waiver]
    if not waivers or len(waivers) < len(cell.verdicts):
        return ""
    return _who(waivers[0].owner, min(each.expires for each in waivers))


def _who(owner: str, until: object) -> str:
    return f", for which {harmless(owner)} answers until {until}"


def parties(cell: Cell, events: Sequence[Event] = (), *, brief: bool = False) -> str:
    """sda, sdb and the hypervisor (not verified); nvme0n1 or nvme1n1, for which storage@example.org answers until 2027-01-31;
    nvme2n1 (28 informative cuts of this drive, 0 lost: ...). What nobody has tried or answers for comes first. brief: in
    capital letters, all but the names, for a headline. events: at which."""
    spelt = str.upper if brief else str
    open_ = sorted((each for each in cell.parties if not each.owner), key=lambda each: list(PROMISES).index(each.party))
    unverified = [word for each in open_ for word in _parted(each, proven=False)]
    proven = [word for each in open_ for word in _parted(each, proven=True)]
    does, of = ("", "") if brief else _relied(unverified, events)
    words = [of + _all(unverified, spelt, does) + ("" if brief else UNVERIFIED)] if unverified else []
    for word in cell.parties:
        if word.owner:
            said_by = f" (documented: {harmless(word.owner)})" if word.documented else _who(word.owner, word.until)
            words.append(_promised(word, spelt) + ("" if brief else said_by))
    if brief and words:
        documented = not unverified and all(word.documented for word in cell.parties if word.owner)
        words = [spelt(" and ").join(dict.fromkeys(words)) + spelt(" (documented)" if documented else UNVERIFIED)]
    if proven:
        words.append(f"{_all(proven, spelt)} ({spelt(_proof(proven, brief=brief))})")
    return spelt(" and ").join(dict.fromkeys(words))


def _relied(words: Sequence[Word], events: Sequence[Event]) -> tuple[str, str]:
    """What the hypervisor has to do, behind it, and what of all others is needed, before them: while the power stays, one
    device fails, which only another copy makes good."""
    shown = set(_apart(events))
    device = {"drive", "log"} & shown
    parts = ["flushes"] if shown - device else []
    parts += ["redundancy"] if device else []
    if any(word.party == "hypervisor" for word in words):
        return f" for {' and '.join(parts)}" if parts else "", ""
    copies = shown and device == shown and all(word.party in STORE_PARTIES for word in words)
    return "", "redundancy in " if copies else ""


def _all(words: Sequence[Word], spelt: Callable[[str], str], does: str = "") -> str:
    """does: what the hypervisor has to do."""
    said = dict.fromkeys(_promised(word, spelt) + does * (word.party == "hypervisor") for word in words)
    return _listed(shortened(said, PROMISES_SHOWN, spelt("{} more")), spelt(" and "))


def _parted(word: Word, *, proven: bool) -> Iterator[Word]:
    """What of a promise rests on power cuts, or what does not; a choice is proven where each of its drives is."""
    found = tuple(each for each in word.tried if each.held >= ENOUGH)
    names = {each.name for each in found}
    if not names or (word.needed and not names.issuperset(word.names)):
        if not proven:
            yield word
    elif part := tuple(each for each in word.names if (each in names) is proven):
        yield word._replace(names=part, tried=found)


def _proof(words: Sequence[Word], *, brief: bool) -> str:
    """28 informative cuts of this drive, 0 lost: the bound. Of several drives that of the fewest cuts: none are summed."""
    found = dict.fromkeys(each for word in words for each in word.tried if each.name in word.names)
    fewest, most = min(each.held for each in found), max(each.held for each in found)
    cuts = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    but = ", but another of the model lost" if any(each.lost for each in found) else ""
    if brief:
        return f"{cuts} cuts{'' if len(found) == 1 else ' of each'}, 0 lost{but}"
    share = f"fewer than {_below(fewest)} of such cuts lose, with 95 % confidence"
    return f"{cuts} informative cuts of {'this drive' if len(found) == 1 else 'each'}, 0 lost: {share}{but}"


def _below(held: int) -> str:
    return f"{bounds(0, held)[1] * 100:.1f} %"


def tried(columns: Sequence[Column]) -> list[str]:
    """What power cuts have shown of the drives that are relied on, a line for those of which it is the same."""
    cells = (cell for column in columns for cells in (column.cells, column.next_boot) for cell in cells.values())
    found = dict.fromkeys(each for cell in cells for word in cell.parties for each in word.tried)
    lines: dict[str, list[str]] = {}
    for each in found:
        lines.setdefault(_shown(each), []).append(harmless(each.name))
    return [f"{_some(names)}: {line}" for line, names in lines.items()]


def _shown(found: Tried) -> str:
    if found.held >= ENOUGH:
        said = f"{found.held} informative, 0 lost (below {_below(found.held)})"
    else:
        said = f"{found.held} informative, too few" if found.held else "not tried"
    units = f"{found.units} {'drive' if found.units == 1 else 'drives'} of the model tried"
    return f"{said}; {units}, {found.lost or 'none'} lost flushed data"


def _some(names: Sequence[str]) -> str:
    return _listed(shortened(names, NAMES_SHOWN, "{} more"), " and ")


def _promised(word: Word, spelt: Callable[[str], str]) -> str:
    """sda and sdb; either sda or sdb; 2 of sda, sdb and sdc; the hypervisor."""
    shown = shortened(map(harmless, word.names), NAMES_SHOWN, spelt("{} more"))
    either = word.needed == 1 and len(word.names) == 2
    names = spelt("either " if either else "") + _listed(shown, spelt(" or " if either else " and "))
    if word.needed and len(word.names) > word.needed and not either:
        names = spelt(f"{'one' if word.needed == 1 else word.needed} of ") + names
    form = "{}" if word.documented else PROMISES[word.party]
    if word.party == "hypervisor" and names and not word.documented:
        form = "the {} hypervisor"
    before, place, after = form.partition("{}")
    return f"{spelt(before)}{names if place else ''}{spelt(after)}"


def _listed(each: Sequence[str], last: str) -> str:
    return last.join((", ".join(each[:-1]), each[-1])) if len(each) > 1 else "".join(each)


def _harm(cell: Cell, loses: str, corrupts: str) -> str:
    """LOSES up to 5.3 s of commits and the pool; LOSES commits; the pool needs zpool import -m. Empty where only the import
    is in the way. Where one of the failures has no bound, no amount is named."""
    amounts = [] if "" in cell.amounts else [harmless(each) for each in cell.amounts]
    words = _words(cell.takes, " and ".join(amounts) or "commits", loses, corrupts)
    return f"{words}; {IMPORT}" if words and "import" in cell.takes else words


def _words(takes: Sequence[Take], commits: str, loses: str, corrupts: str) -> str:
    lost = [{"commits": commits, "pool": "the pool"}[each] for each in takes if each in ("commits", "pool")]
    harm = [f"{loses} {' and '.join(lost)}"] if lost else []
    return " and ".join([*harm, f"{corrupts} the database"] if "consistency" in takes else harm)


def where(column: Column, users: Mapping[str, Sequence[str]] = NOBODY) -> str:
    """The datasets of it, with who uses them: tank/vm (guest db1)."""
    return few([harmless(name) + used(users.get(name, ())) for name in column.names], NAMES_SHOWN)


def used(by: Sequence[str], spelt: Callable[[str], str] = harmless) -> str:
    """Behind a name: the first of those who use it, and how many more there are."""
    return f" ({few([*map(spelt, by)], USERS_SHOWN)})" if by else ""


HAPPENS: dict[Event, str] = {
    "process": "KILLING THE DATABASE",
    "restart": "A RESTART",
    "crash": "A CRASH OR POWER CUT",
    "power": "A POWER CUT",
    "below": "A POWER CUT OF THE PHYSICAL HOST OR STORAGE",
}  # what comes to every host by itself, the mildest first
BROKEN = tuple(event for event in NEXT if event not in HAPPENS)  # what takes a broken device as well


def loses(columns: Sequence[Column]) -> bool:
    """Does some event certainly lose something, or all that is known to be there?"""
    return bool(one_copy(columns)) or any(
        cell.outcome == "lost" for column in columns for cell in column.cells.values()
    )


def headline(columns: Sequence[Column]) -> str:
    """What the mildest losing event takes, and what a more severe one takes as well, or more of; where. Else what a device
    failure takes, certainly or unless a lower layer has a copy. Else what is unknown. Else what the host relies on."""
    said, taken, bounded = list[str](), set[Take](), False
    for event, happens in HAPPENS.items():
        cell = worst(columns, event)
        if (takes := tuple(each for each in _lost(columns, event) if each not in taken)) and len(said) < CLAUSES:
            said.append(f"{happens} {'ALSO ' if said else ''}{_capital(takes)}{_pools(columns, event)}")
            taken.update(takes)
            bounded = bool(cell.amounts) and "" not in cell.amounts
        elif bounded and "" in cell.amounts and len(said) < CLAUSES:
            said.append(f"{happens} LOSES MORE OF THEM{_pools(columns, event)}")
    if said:
        return ", ".join(said)
    unknown = next((each for each in ("power", "below", *BROKEN) if worst(columns, each).outcome == "unknown"), None)
    for event in BROKEN:
        if takes := _lost(columns, event):
            certain = f"{NOUNS[event].upper()} {_capital(takes)}{_pools(columns, event)}"
            return certain + (f"; {_doubt(columns, 'power', takes)}" if unknown == "power" else "")
    if alone := one_copy(columns):
        lost: Take = "commits" if alone in ("log", "power+log") else "pool"
        kept = parties(worst(columns, alone), brief=True)
        certain = f"{NOUNS[alone].upper()} {_capital([lost])} UNLESS REDUNDANCY COMES FROM {kept}"
        return certain + (f"; {_doubt(columns, unknown)}" if unknown else "")
    if unknown:
        return _doubt(columns, unknown)
    if later := loses_later(columns):
        of, event, takes = later
        return f"AFTER A RESTART OF {of.upper()}, {NOUNS[event].upper()} {_capital(takes)}"
    cut = of_a_cut(columns)
    relied = {NOUNS["power"]: cut, **{NOUNS[event]: worst(columns, event) for event in BROKEN}}
    for noun, cell in sorted(relied.items(), key=lambda each: all(word.owner for word in each[1].parties)):
        if cell.outcome == "word":
            also = NOUNS["drive"] if cell is cut and set(relied[NOUNS["drive"]].parties) & set(cell.parties) else ""
            happens = f"{noun} or {also}" if also else noun
            return f"NO LOSS FOUND, BUT SURVIVING {happens.upper()} RELIES ON {parties(cell, brief=True)}"
    return "NO LOSS FOUND FROM ANY EVENT CHECKED, INCLUDING A POWER CUT"


def loses_later(columns: Sequence[Column]) -> tuple[str, Event, tuple[Take, ...]] | None:
    """What has to restart, the mildest event that then certainly loses something, and what it takes."""
    for event in NEXT:
        lost = [each for each in columns if each.next_boot.get(event, KEPT).outcome == "lost"]
        if lost:
            return lost[0].restart, event, joined(each.next_boot[event] for each in lost).takes
    return None


def _pools(columns: Sequence[Column], event: Event) -> str:
    """Which pools an event takes something of, where others of the host lose nothing."""
    lost, others = set[str](), set[str]()
    for column in columns:
        found = lost if column.cells.get(event, KEPT).outcome == "lost" else others
        found.update(harmless(name.partition("/")[0]) for name in column.names)
    return f" ({_some(sorted(lost))})" if others - lost else ""


def _doubt(columns: Sequence[Column], event: Event, certain: Sequence[Take] = ()) -> str:
    """certain: what a milder clause has said is lost."""
    takes = worst(columns, event).takes
    happens = HAPPENS.get(event) or NOUNS[event].upper()
    return f"UNKNOWN WHETHER {happens} {'DOES' if set(takes) <= set(certain) else _capital(takes)}"


def one_copy(columns: Sequence[Column]) -> Event | None:
    """The device failure that only a copy in a lower layer makes good, where a severe finding explains it."""
    for event in BROKEN:
        cell = worst(columns, event)
        severe = (each for each in cell.verdicts if each.outcome == "fail" and each.severity in ("high", "critical"))
        if cell.outcome == "word" and any("redundancy" in each.rule.elements for each in severe):
            return event
    return None


def of_a_cut(columns: Sequence[Column]) -> Cell:
    """The worse of a power cut here and of the physical host or storage."""
    return both(worst(columns), worst(columns, "below"))


def _lost(columns: Sequence[Column], event: Event) -> tuple[Take, ...]:
    cell = worst(columns, event)
    return cell.takes if cell.outcome == "lost" else ()


def _capital(takes: Sequence[Take]) -> str:
    """LOSES ACKNOWLEDGED COMMITS AND THE POOL; who loses commits learns of the import from the table."""
    words = _words(takes, "acknowledged commits", "loses", "corrupts").upper()
    return words or "NEEDS zpool import -m AFTERWARDS"


def worst(columns: Sequence[Column], event: Event = "power") -> Cell:
    if not columns:
        return Cell("unknown", ("commits",))
    return joined(column.cells.get(event, KEPT) for column in columns)


# -- findings -------------------------------------------------------------------------------------------------------------


SUBJECTS_SHOWN = 6
_PACKAGE = re.compile(r"(?:[a-z]+ )?(?:install|add|-S) ([\w.+-]+)")  # as platforms install one
LEFT_OUT_SHOWN = 5
_HARDWARE = re.compile(r"zpool (?:attach|replace|add|remove) ")
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


def subjects_of(*findings: Finding) -> str:
    subjects = dict.fromkeys(verdict.subject for finding in findings for verdict in finding.verdicts)
    names = [harmless(str(subject)) for subject in subjects]
    if findings[0].failed and findings[0].rule.origin and names != [place := harmless(findings[0].place)]:
        heirs = [name for name in names if name != place]
        word = "inherited by" if place in names else "where it is inherited by"
        return f"{place}, {word} {listed(heirs)}"
    return listed(names)


def listed(names: Sequence[str]) -> str:
    return few(names, SUBJECTS_SHOWN)


def statement(finding: Finding) -> str:
    """The message where there is one; where cases have messages, that of the first subject; else the title."""
    messages = [finding.message] if finding.message else list(dict.fromkeys(each.message for each in finding.verdicts))
    if len(messages) == 1 and messages[0]:
        return harmless(messages[0])
    if messages[0] and any(case.message for case in finding.rule.cases):
        return f"{harmless(messages[0])}; and {len(messages) - 1} more like it"
    return finding.rule.title


def first(report: Report) -> tuple[str, Finding] | None:
    """What to do before anything else, for somebody who reads no further: Fix first, or Look first, and the finding."""
    opens = report.lead and report.standing in ("damaged", "stalled", "at risk")
    lead = [report.lead] if report.lead and opens and not report.lead.known and not report.lead.waiver else []
    steps = _steps(report)
    # a degraded pool or log costs something at the next failure only: what ends a loss at once comes before it
    later = bool(lead and lead[0].rule.elements)
    sooner = [each for each in steps if each.severity == "critical" and each.ends and not needs_hardware(each)]
    steps = [*(sooner[:1] if later else ()), *lead, *steps]
    bars = [each for each in (*report.findings, *report.waived) if each.failed and each.rule.id in BAR_RESTART]
    if bars and steps and _restarts(steps[0]):
        steps = [*(each for each in steps if each in bars), *(each for each in steps if not _restarts(each))]
    worst = steps[0] if steps else None
    return (f"{verb(worst)} first", worst) if worst else None


def by_gain(found: Sequence[Finding], columns: Sequence[Column]) -> list[Finding]:
    """By severity, then by how many datasets a step improves: at the mildest event that loses something, then at all. Cells
    after a restart count where nothing is lost now. A setting comes before hardware. Known bugs come last, unless they
    alone explain a loss."""
    gain: dict[int, tuple[int, int]] = {}
    for cells in ([each.cells for each in columns], [each.next_boot for each in columns]):
        if not any(map(any, gain.values())):
            lost = [
                (event, len(column.names), {(each.rule.id, each.subject) for each in cell.verdicts})
                for column, events in zip(columns, cells, strict=True)
                for event, cell in events.items()
                if cell.outcome == "lost"
            ]
            mildest = min((event for event, _, _ in lost), key=NEXT.index, default="")
            for finding in found:
                keys = {(each.rule.id, each.subject) for each in finding.verdicts}
                better = [(event, datasets) for event, datasets, explained in lost if keys & explained]
                at_mildest = sum(datasets for event, datasets in better if event == mildest)
                gain[id(finding)] = at_mildest, sum(datasets for _, datasets in better)
    explained = any(any(gain[id(each)]) for each in found if each.rule.id != known_bugs.ID)

    def order(finding: Finding) -> tuple[bool, int, int, int, bool]:
        mildest, every = gain[id(finding)]
        bugs = finding.rule.id == known_bugs.ID and (explained or not every)
        return bugs, -RANK[finding.severity], -mildest, -every, every > 0 and needs_hardware(finding)

    return sorted(found, key=order)


def worst_first(report: Report) -> list[Finding]:
    """What failed, from medium on; and unknown rules that alone speak of what the headline relies on, before their
    severity."""
    failed = [each for each in report.fresh if each.failed and each.severity != "low"]
    rules = of_a_cut(report.columns).rules if report.standing == "on the word" else ()
    if any(each.rule.id in rules for each in failed):
        return failed
    return sorted([*_unknown_of(rules, report), *failed], key=lambda each: -RANK[each.severity])


def _steps(report: Report) -> list[Finding]:
    """The findings in the order of their steps. Where the headline says that something is unknown, what would decide it comes
    behind failures that explain it and certain ones of high severity, and before others."""
    failed = by_gain(worst_first(report), report.columns)
    if report.standing != "cannot tell":
        return failed
    rules = of_a_cut(report.columns).rules
    decides = [each for each in _unknown_of(rules, report) if not unasked(each)]
    most = max((RANK[each.severity] for each in decides), default=0)
    certain = [
        RANK[each.least] >= RANK["high"] or (each.rule.id in rules and RANK[each.severity] >= most) for each in failed
    ]
    behind = max((number for number, each in enumerate(certain, 1) if each), default=0)
    return [*failed[:behind], *decides, *failed[behind:]]


def _unknown_of(rules: Sequence[str], report: Report) -> list[Finding]:
    return [each for each in report.fresh if not each.failed and each.severity != "low" and each.rule.id in rules]


def _restarts(finding: Finding) -> bool:
    return finding.fix.cost == "needs restart" and finding.rule.subject == "host"


def needs_hardware(finding: Finding) -> bool:
    return any(_HARDWARE.match(each.command) for each in finding.verdicts if each.command)


def looks(finding: Finding) -> bool:
    """Does its fix begin with a look? Nothing is better after it, and a reader should know."""
    command = finding.fix.command
    return (command.source if command else finding.fix.text).startswith((*LOOKS, "Run zaudit on"))


def verb(finding: Finding) -> str:
    """Fix; Look, where a step shows something and makes nothing better."""
    return "Look" if looks(finding) or not finding.failed else "Fix"


def severity(finding: Finding) -> str:
    """CRITICAL; CRITICAL? of what may be less severe, or no failure, and was not seen."""
    return finding.severity.upper() + ("" if finding.failed and finding.least == finding.severity else "?")


def at_least(finding: Finding) -> str:
    """Of a failure that may be less severe than it counts: how severe it is in any case; else nothing."""
    least = f"({finding.least}, or {finding.severity} if what is unknown fails)"
    return "" if finding.least == finding.severity else least


def shortly(finding: Finding) -> str:
    """The same behind the subject; of several subjects with the message of the first, or what was seen of it."""
    if not finding.failed:
        return f"{question(finding)} ({finding.reasons[0].text})" if finding.reasons else question(finding)
    said = statement(finding).removeprefix(f"{subjects_of(finding)}: ")
    worst = finding.verdicts[0]
    seen = worst.message or next((each.text for each in worst.evidence if each.text), "")
    return f"{said} ({harmless(seen)})" if said == finding.rule.title and seen else said


def question(finding: Finding) -> str:
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
    if remedy.startswith("start it, or name "):
        return f"the server started, or {remedy.removeprefix('start it, or name ')}"
    if way := _PACKAGE.fullmatch(remedy):
        return f"{way[1]} ({remedy})" if not remedy.startswith("install ") else way[1]
    return remedy
