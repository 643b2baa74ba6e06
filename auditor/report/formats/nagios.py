"""For Nagios, Icinga and what else runs their plugins: a line with figures, more lines below it, and one of four exit codes.

(nagios-plugins.org, Development Guidelines: plugin output, performance data; old versions of NRPE take 4 KiB)
"""

from __future__ import annotations

from auditor.report.formats import _state
from auditor.report.formats._told import Told, brief

MEDIA = "text/plain; charset=utf-8"
MOST = 3500


def render(told: Told) -> str:
    """What the plugin prints."""
    figures = " ".join(f"{name}={value};;;0" for name, value in _state.figures(told).items())
    text, length = [f"{_state.line(told)} | {figures}"], 0
    for row in _state.rows(told):
        if (length := length + len(row.encode()) + 1) > MOST - len(text[0].encode()):
            break
        text.append(row)
    return "\n".join(text) + "\n"


def status(told: Told) -> int:
    """The exit code of the plugin."""
    return _state.state(told)


def failed(text: str, now: float) -> str:
    """When there is no report; it goes with exit code 3."""
    return f"ZAUDIT UNKNOWN - {brief(_state.plain(text), _state.LINE)}\n"
