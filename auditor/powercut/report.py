"""What power cuts showed: as text, and as JSON (``zaudit-powercut/1``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from auditor import codec
from auditor.model.power_cuts import ENOUGH
from auditor.powercut.record import CLASSES
from auditor.powercut.verdict import Campaign, Trial, Verdict, judge
from auditor.text import harmless

SCHEMA = "zaudit-powercut/1"
DAMAGED, UNDECIDED = 14, 10
SHOWN = 3
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
    "NO CUT": "No drive lost its power: nothing is known of its cache.",
}
LAYERS = {"drive": "FLUSH of this drive and firmware", "pool": "commits through this pool as it is configured"}


def render(campaigns: Sequence[Campaign]) -> str:
    """All of them, each with its verdict, and how many drives of a model were tried."""
    if not campaigns:
        return "no run: zaudit powercut start begins one\n"
    return "\n".join("\n".join(_page(each)) + "\n" for each in campaigns) + "".join(_models(campaigns))


def _page(found: Campaign) -> Iterator[str]:
    verdict = judge(found.trials)
    yield f"{verdict.word}  {found.subject or 'nothing was written'}  (run {found.run[:8]}, layer {found.layer or 'none'})"
    yield f"  {MEANS[verdict.word]} {verdict.why[:1].upper()}{verdict.why[1:]}".rstrip()
    yield f"  {bound(verdict)}"
    if found.trials:
        what = LAYERS.get(found.layer, "what was written")
        yield f"  It is a bound of {what}, under this load, by this kind of cut; of no other."
    for drive in found.drives:
        yield f"  drive {drive.name}: {drive.model or 'model unknown'}, firmware {drive.firmware or 'unknown'}"
    for trial in found.trials:
        yield from _trial(trial)
    if found.gaps:
        yield f"  never checked: session {', '.join(map(str, found.gaps))}: whatever these cuts did is not in the verdict"


def _trial(trial: Trial) -> Iterator[str]:
    control = f"{trial.control[1]:,} of {trial.control[0]:,} unflushed gone" if trial.control[0] else "no control"
    damage = ", ".join(f"{trial.damage[kind]:,} {kind}" for kind in CLASSES if trial.damage.get(kind)) or "nothing lost"
    yield f"  session {trial.session}: {trial.cut.kind} ({trial.cut.why})"
    yield f"    {trial.acknowledged:,} acknowledged, {damage}; {control}{'' if trial.informative else '; not informative'}"
    yield from (f"      {each}" for each in trial.examples[:SHOWN])


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
            words = f"{units} drives, {counts} informative cuts, which are not to be summed: the unit is the drive"
            yield f"{model}, firmware {firmware}: {words}\n"


def render_json(campaigns: Sequence[Campaign]) -> str:
    """The same, with all that a verdict is computed from."""
    return json.dumps({"schema": SCHEMA, "runs": [_document(each) for each in campaigns]}, indent=2) + "\n"


def _document(found: Campaign) -> dict[str, Any]:
    verdict = judge(found.trials)
    trials = [{**codec.plain(each), "informative": each.informative, "worst": each.worst} for each in found.trials]
    return {
        **codec.plain(found, harmless),
        "trials": trials,
        "verdict": codec.plain(verdict),
        "means": MEANS[verdict.word],
    }


def exit_code(campaigns: Sequence[Campaign]) -> int:
    """0: all held; 10: too little is known of one; 14: something acknowledged was lost or damaged."""
    words = {judge(each.trials).word for each in campaigns}
    if words & set(CLASSES):
        return DAMAGED
    return 0 if words == {"HELD"} else UNDECIDED
