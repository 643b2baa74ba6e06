r"""A local check of Checkmk: one line, in which ``\n`` stands for the ends of lines. Checkmk does not look at the exit code.

(docs.checkmk.com, Local checks: state, service name in double quotes, metrics joined by ``|``, text)
"""

from __future__ import annotations

from auditor.report.formats import _state
from auditor.report.formats._told import Told, brief

MEDIA = "text/plain; charset=utf-8"
SERVICE = '"zaudit"'


def render(told: Told) -> str:
    """The line."""
    figures = "|".join(f"zaudit_{name}={value}" for name, value in _state.figures(told).items())
    text = r"\n".join([_state.line(told), *_state.rows(told)])
    return f"{_state.state(told)} {SERVICE} {figures} {text}\n"


def failed(text: str, now: float) -> str:
    """When there is no report."""
    return f"{_state.UNKNOWN} {SERVICE} - ZAUDIT UNKNOWN - {brief(_state.plain(text), _state.LINE)}\n"
