"""Database engines: one module each, and the questions about their servers, settings, paths and services.

A module of this folder that is not in PARTS is an engine: it holds instances of subclasses of :class:`.engine.Engine`. Nothing
here touches the machine.
"""

from __future__ import annotations

from auditor import data
from auditor.databases.engine import Engine

PARTS = ("configuration", "engine", "paths", "servers", "settings")

ENGINES = {
    each.name: each
    for each in sorted(
        (
            each
            for module in data.modules(__name__, *PARTS)
            for each in vars(module).values()
            if isinstance(each, Engine)
        ),
        key=lambda each: (each.place, each.name),
    )
}
"""By the word that --db takes, in the order in which they are listed to people."""

SERVERS = {process: each for each in ENGINES.values() for process in each.processes}
"""By the name of the process, as the kernel shows it."""
