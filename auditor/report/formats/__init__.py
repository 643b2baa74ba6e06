"""What a report may look like: one module a format, and this folder is the list of them.

A module has MEDIA (its media type) and either ``render(told)``, which makes its text of a report as data
(:class:`auditor.report.formats._told.Told`), or ``page(report, verbose, look)``, which needs the report itself: those of the
first kind can also be made of a report that was kept. One that a monitor reads has ``failed(text, now)``: what is said when
there is no report; and ``status(told)`` where its protocol has exit codes of its own. MODE: who may read the file, if not its
owner alone.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from types import ModuleType


@cache
def names() -> tuple[str, ...]:
    """All formats, as they are named on a command line."""
    found = (each.name for each in pkgutil.iter_modules(__path__))
    return tuple(sorted(name.replace("_", "-") for name in found if not name.startswith("_")))


def module(name: str) -> ModuleType:
    """The module of one of them."""
    return import_module(f"{__name__}.{name.replace('-', '_')}")


def of_data() -> tuple[str, ...]:
    """Those that can be made of a report that was kept."""
    return tuple(name for name in names() if hasattr(module(name), "render"))
