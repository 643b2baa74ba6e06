"""What power cuts showed: as a page, as JSON (``zaudit-powercut/1``), and as entries that others can compute again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Unpack

from auditor import codec
from auditor.model.write_cache import ENOUGH
from auditor.powercut.proof import Campaign, Entry, Gap, Reach, Trial, Verdict, judge
from auditor.powercut.sectors import CLASSES
from auditor.report import document as doc
from auditor.report import html, terminal
from auditor.report.html import Element, element, joined
from auditor.text import harmless
from auditor.verify import charts

SCHEMA, ENTRIES = "zaudit-powercut/1", "zaudit-cuts/1"
DAMAGED, UNDECIDED = 14, 10
SHOWN = 3
WORST = (*CLASSES, "NO CUT", "NOT TESTED", "TOO FEW CUTS", "HELD")  # first
MEANS = {
    "GONE": "The drive, the folder or the pool did not come back.",
    "CORRUPT": "What lies there is neither old nor new.",
    "REORDERED": "A later write is there, and one that was flushed before it began is not.",
    "LOST": "Acknowledged writes are gone.",
    "STALE": "In place of acknowledged writes there are older ones.",
    "TORN": "Parts of one unit are of two writes.",
    "HELD": "No acknowledged write was lost.",
    "TOO FEW CUTS": f"No acknowledged write was lost; below {ENOUGH} informative cuts that proves little.",
    "NOT TESTED": "No acknowledged write was lost, and none of these cuts could have shown a lie.",
    "NO CUT": "No drive is known to have lost its power: nothing is known of its cache.",
}
RESUME = "zaudit powercut resume"
OTHER_DRIVE = "keep commits off what was tried: move the log and the data to other drives, then run zaudit check"
STEPS: dict[str, doc.Line] = {
    **dict.fromkeys(("GONE", "CORRUPT", "REORDERED", "LOST", "STALE"), OTHER_DRIVE),
    "TORN": "keep the database's guard against torn pages on (full_page_writes, the doublewrite buffer)",
    "HELD": (doc.command(RESUME), ": more cuts narrow the bound"),
    "TOO FEW CUTS": (doc.command(RESUME), f", until there are {ENOUGH} informative cuts"),
    "NOT TESTED": "name a partition of the drive with --raw, and write more with --writers: the cache must hold something",
    "NO CUT": (doc.command(RESUME), ", and take the power away at the plug: the reset button leaves a drive its power"),
}
WAITS: doc.Line = (doc.command("zaudit powercut check"), " on the host, once it is back")
LAYERS = {"drive": "FLUSH of this drive and firmware", "pool": "commits through this pool as it is configured"}
TRIALS: tuple[doc.Column | str, ...] = (
    *("Session", "Cut", doc.Column("Acknowledged", number=True)),
    *(doc.Column(each, aside=True) for each in ("Damage", "Never flushed", "Counts")),
)
STREAMS: tuple[doc.Column | str, ...] = (
    "Stream",
    doc.Column("Issued", aside=True),
    *(doc.Column(each, number=True) for each in ("Acknowledged", "Found")),
    doc.Column("Gone", aside=True),
)
ISSUED = (
    "Numbers are commits of a stream, in their order: no clock takes part. Issued is the least that is known: what a host sent "
    "last dies with it. Found is the newest one that was whole after the cut."
)


def write(
    format_: str, campaigns: Sequence[Campaign], entries: Sequence[Entry] = (), **screen: Unpack[terminal.Screen]
) -> str:
    """json (all that a verdict is computed from), toml (an entry a drive, sorted: the same logs give the same bytes), html
    with all timelines, or else for a terminal, with those of damage and of the last cut."""
    match format_:
        case "json":
            return json.dumps({"schema": SCHEMA, "runs": [_plain(each) for each in campaigns]}, indent=2) + "\n"
        case "toml":
            lines = [f'schema = "{ENTRIES}"']
            for each in sorted(entries):
                # a JSON string of what is harmless is a TOML string
                words = (harmless(value) if isinstance(value, str) else value for value in each)
                pairs = zip(each._fields, words, strict=True)
                lines += ["", "[[cuts]]", *(f"{key} = {json.dumps(word, ensure_ascii=False)}" for key, word in pairs)]
            return "\n".join(lines) + "\n"
        case "html":
            return html.write(_document(campaigns, None))
        case _:
            return terminal.write(_document(campaigns, SHOWN), **screen)


def _plain(found: Campaign) -> dict[str, Any]:
    def reaches(each: Trial | Gap) -> dict[str, Any]:
        return {"streams": [{**codec.plain(one), "issued": one.issued} for one in each.streams]}

    verdict = judge(found.trials)
    return {
        **codec.plain(found, harmless),
        "trials": [
            {**codec.plain(each), "informative": each.informative, "worst": each.worst, **reaches(each)}
            for each in found.trials
        ],
        "gaps": [{**codec.plain(each), **reaches(each)} for each in found.gaps],
        "verdict": codec.plain(verdict),
        "means": MEANS[verdict.word],
        "bound": bound(verdict),
    }


def _document(campaigns: Sequence[Campaign], most: int | None) -> doc.Document:
    """most: timelines of a run."""
    ranked = sorted(campaigns, key=lambda each: WORST.index(judge(each.trials).word))
    facts = ["zaudit powercut", f"{len(ranked)} {'run' if len(ranked) == 1 else 'runs'}"]
    names = [
        f"{each.subject or 'nothing was written'}, layer {each.layer or 'none'}, run {each.run[:8]}" for each in ranked
    ]
    runs = [doc.section(name, _run(each, most)) for name, each in zip(names, ranked, strict=True)]
    models = doc.section("Drives of one model", map(doc.Say, _models(campaigns)))
    return doc.Document("zaudit: power cuts", tuple(facts), (_answer(ranked), *runs, models))


def _answer(ranked: Sequence[Campaign]) -> doc.Verdict:
    """Of the worst."""
    if not ranked:
        return doc.Verdict(
            "open", "NO RUN", (doc.Say(("Next: ", doc.command("zaudit powercut start"), " begins one")),)
        )
    worst = ranked[0]
    word = judge(worst.trials).word
    alike = sum(judge(each.trials).word == word for each in ranked)
    of = f" ({alike} of {len(ranked)} runs)" if len(ranked) > 1 else ""
    waits = word not in CLASSES and any(each.last for each in worst.gaps)
    step = WAITS if waits else STEPS[word]
    tone: doc.Tone = "bad" if word in CLASSES else "good" if word == "HELD" else "open"
    said = doc.Say(("Next: ", *doc.runs(step)))
    return doc.Verdict(tone, f"{word}: {MEANS[word].removesuffix('.')}{of}", (said,))


def _run(found: Campaign, most: int | None) -> Iterator[doc.Block]:
    verdict = judge(found.trials)
    why = f"{verdict.why[:1].upper()}{verdict.why[1:]}"
    yield doc.Say((doc.Run(verdict.word, "strong"), ": ", " ".join(filter(None, (MEANS[verdict.word], why)))))
    yield doc.Say(bound(verdict))
    if found.trials:
        what = LAYERS.get(found.layer, "what was written")
        yield doc.Say(f"It is a bound of {what}, under this load, by this kind of cut; of no other.")
    drives = (
        (f"drive {each.name}", f"{each.model or 'model unknown'}, firmware {each.firmware or 'unknown'}")
        for each in found.drives
    )
    yield doc.labelled(drives, at=16)
    for gap in found.gaps:
        why = "not checked yet: it still writes, or its host is not back" if gap.last else "never checked"
        summary = f"Session {gap.session}: {why}. Whatever its cut did is not in the verdict"
        if gap.streams:
            yield doc.Details(summary, tuple(_streams(f"Commits of session {gap.session}", gap.streams)))
        else:
            yield doc.Say(f"{summary}. What was acknowledged is known to the witness alone.")
    yield doc.table(TRIALS, map(_row, found.trials))
    shown = [each for each in found.trials if most is None or each.worst or each is found.trials[-1]][-(most or 0) :]
    yield from map(_timeline, shown)
    if left := len(found.trials) - len(shown):
        yield doc.Say(("and ", f"{left:,} more: ", doc.command("zaudit powercut report --format html")), "dim")
    if shown or found.gaps:
        yield doc.Say(ISSUED, "dim")


def _row(trial: Trial) -> tuple[doc.Line, ...]:
    control = f"{trial.control[1]:,} of {trial.control[0]:,} gone" if trial.control[0] else "no control"
    counts = (
        doc.Run("loss", "bad") if trial.worst else doc.Run("yes", "good") if trial.informative else "not informative"
    )
    return str(trial.session), trial.cut.kind, f"{trial.acknowledged:,}", _damage(trial), control, counts


def _damage(trial: Trial) -> str:
    return ", ".join(f"{trial.damage[kind]:,} {kind}" for kind in CLASSES if trial.damage.get(kind)) or "nothing lost"


def _timeline(trial: Trial) -> doc.Block:
    title = f"Session {trial.session}: {trial.cut.kind} ({trial.cut.why}), {_damage(trial)}"
    examples = [doc.Tree(tuple(map(doc.Item, trial.examples[:SHOWN])))] if trial.examples else []
    return doc.Details(title, (*_streams(f"Commits of session {trial.session}", trial.streams), *examples))


def _streams(title: str, streams: Sequence[Reach]) -> Iterator[doc.Block]:
    if not streams:
        yield doc.Say("How far each stream came is not on record.", "dim")
        return
    if any(each.found is not None for each in streams):
        yield doc.Picture(lambda width: None, lambda: _drawn(title, streams))
    yield doc.table(STREAMS, map(_reach, streams))


def _reach(each: Reach) -> tuple[doc.Line, ...]:
    gone = f"{each.missing:,}, from {each.lost:,} on" if each.missing and each.lost else f"{each.missing:,}"
    return (
        _stream(each),
        f"≥ {each.issued:,}",
        f"{each.acknowledged:,}",
        "not read" if each.found is None else f"{each.found:,}",
        "not known" if each.found is None else gone if each.missing else "nothing",
    )


def _stream(each: Reach) -> str:
    return f"{each.stream}{'' if each.flushed else ' (never flushed)'}"


def _drawn(title: str, streams: Sequence[Reach]) -> Element:
    rows = [
        charts.StreamBar(
            f"stream {_stream(each)}",
            None if each.found is None else each.found - each.acknowledged,
            each.acknowledged - each.lost + 1 if 0 < each.lost <= each.acknowledged else None,
        )
        for each in streams
    ]
    words = (
        "The bar ends at the newest commit found after the cut; the dashed line is where acknowledged ones are gone."
    )
    return joined(
        (charts.reaches(f"{title}; the table below has the numbers", rows), element("p", words, class_="dim small"))
    )


def bound(verdict: Verdict) -> str:
    """What so many cuts prove, in one sentence."""
    if not verdict.n:
        return f"{_cuts(verdict.cuts)}, none of them informative: no bound."
    if not verdict.lost:
        return f"{_cuts(verdict.n, 'informative ')}, 0 lost: fewer than {verdict.high:.1%} of such cuts lose (95 %, exact)."
    share = f"{verdict.low:.1%} to {verdict.high:.1%}"
    return f"{verdict.lost} of {_cuts(verdict.n)} lost: {share} of such cuts lose (95 %, exact)."


def _cuts(count: int, kind: str = "") -> str:
    return f"{count} {kind}{'cut' if count == 1 else 'cuts'}"


def _models(campaigns: Sequence[Campaign]) -> Iterator[str]:
    """Drives of a model are no trials of one drive: they are counted, and never summed."""
    rows = sorted(
        {
            (drive.model, drive.firmware, drive.identity, each.run, judge(each.trials).n)
            for each in campaigns
            if each.layer == "drive"
            for drive in each.drives
            if drive.model
        }
    )
    for (model, firmware), group in groupby(rows, key=lambda row: row[:2]):
        of = list(group)
        units = len({row[2] or row[3] for row in of})
        if len(of) > 1:
            counts = " + ".join(str(row[4]) for row in of)
            named = "1 drive" if units == 1 else f"{units} drives"
            words = f"{named}, {counts} informative cuts, which are not to be summed: the unit is the drive"
            yield f"{model}, firmware {firmware}: {words}"


def exit_code(campaigns: Sequence[Campaign]) -> int:
    """0: all held; 10: too little is known of one; 14: something acknowledged was lost or damaged."""
    words = {judge(each.trials).word for each in campaigns}
    if words & set(CLASSES):
        return DAMAGED
    return 0 if words == {"HELD"} else UNDECIDED
