"""``--sweep``, as a part of a report: for a terminal, as a page and as data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from auditor.report.page import escaped, paragraph, section
from auditor.report.verify import pictures, svg
from auditor.report.verify.pictures import Bar
from auditor.units import size
from auditor.verify.codec import plain
from auditor.verify.knee import TIMES, Step, Sweep, find, named

TITLE = "What a sync costs"
MARK = f"{TIMES:g} times one sync at the end"


def spread(step: Step) -> str:
    """2.04 s (2 to 2.07); a single trial has no spread."""
    if not step.seconds:
        return "not tried"
    between = f" ({min(step.seconds):.3g} to {max(step.seconds):.3g})" if len(step.seconds) > 1 else ""
    return f"{step.median_s:.3g} s{between}"


def rows(sweep: Sweep) -> list[Bar]:
    """A bar for each step, in times of "at the end"; none where that was not measured."""
    ends = [step for step in sweep.steps if step.every == 0 and _drawable(step)]
    if len(ends) != 1:
        return []
    unit = ends[0].median_s
    return [
        Bar(
            named(step.every),
            step.median_s / unit,
            min(step.seconds) / unit,
            max(step.seconds) / unit,
            spread(step),
        )
        for step in sweep.steps
        if _drawable(step)
    ]


def _drawable(step: Step) -> bool:
    return bool(step.seconds) and all(math.isfinite(each) and each > 0 for each in step.seconds)


def terminal(sweep: Sweep, width: int) -> Iterator[RenderableType]:
    """The section of a report on a terminal."""
    first, *others = find(sweep).says
    yield Text()
    yield Text.assemble((TITLE, "bold"), f"   {first}")
    yield Text(f"{size(sweep.amount)} written with a sync …", "dim")
    drawn = rows(sweep)
    if drawn:
        yield from (Text(line, no_wrap=True, overflow="crop") for line in pictures.bars(drawn, width, TIMES))
        yield Text(f"Bars on a log axis from one sync at the end; ┊ {MARK}, ─ slower trials.", "dim")
    else:
        yield from (Text(f"{named(step.every):>14}  {spread(step)}") for step in sweep.steps)
    yield from (Padding(Text(sentence), (0, 0, 0, 2)) for sentence in others)


def html(sweep: Sweep) -> str:
    """The section of a page."""
    first, *others = find(sweep).says
    drawn = rows(sweep)
    if drawn:
        picture = svg.bars(drawn, TIMES, MARK)
    else:
        told = "".join(f"<tr><td>{named(step.every)}</td><td>{spread(step)}</td></tr>" for step in sweep.steps)
        picture = f"<table>{told}</table>"
    says = "Bars on a log axis from one sync at the end, by the medians; the line is from the fastest to the slowest trial."
    return section(
        TITLE,
        [
            f"<p><b>{escaped(first)}</b></p>",
            paragraph(f"{size(sweep.amount)} written with a sync …", "dim small"),
            picture,
            paragraph(says, "dim small") if drawn else "",
            *(paragraph(sentence) for sentence in others),
        ],
    )


def data(sweep: Sweep) -> dict[str, Any]:
    """What was measured and the knee in it, as JSON data."""
    return {"sweep": plain(sweep), "knee": plain(find(sweep))}
