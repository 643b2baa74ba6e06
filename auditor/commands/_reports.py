"""Reading a JSON report that was kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from auditor.host import user_files
from auditor.text import crowded

LIMIT = 256 << 20


def read(path: Path, *, trusted: bool = False) -> dict[str, Any]:
    """The document of a file. Raises UsageError for what is none, OSError for what cannot be read.

    trusted: nobody but root and this user can have put it there.
    """
    try:
        text = user_files.read(path, LIMIT, trusted=trusted).decode("utf-8", "surrogatepass")
        if crowded(text):
            raise ValueError("more values than a report has")
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise click.UsageError(f"{path}: neither a recording nor a JSON report") from None
    if not isinstance(document, dict):
        raise click.UsageError(f"{path}: not a report of zaudit")
    return document
