"""For the custom plugins of node-problem-detector: one line of at most 80 characters, and its exit codes: 0 fine, 1 a
problem, all else not known. (pkg/custompluginmonitor/types of node-problem-detector: Status, max_output_length)
"""

from __future__ import annotations

from auditor.report.formats import _state
from auditor.report.formats._told import Told, brief, causes, worst

MEDIA = "text/plain; charset=utf-8"
LINE = 80
FINE, PROBLEM, NOT_KNOWN = range(3)


def render(told: Told) -> str:
    """The worst of what counts, and how much more there is."""
    counting = causes(worst(told.counting))
    if not counting:
        return f"{brief(_state.plain(told.headline.lower()), LINE)}\n"
    more = f" (+{len(counting) - 1})" if counting[1:] else ""
    return f"{brief(_state.plain(_state.shortly(counting[0])), LINE - len(more))}{more}\n"


def status(told: Told) -> int:
    """The exit code of the plugin."""
    return {_state.OK: FINE, _state.UNKNOWN: NOT_KNOWN}.get(_state.state(told), PROBLEM)


def failed(text: str, now: float) -> str:
    """When there is no report; the exit code is none of 0 and 1."""
    return f"{brief(_state.plain(text), LINE)}\n"
