"""What Python alone needs to read a recording: ``python -m tests.bench.bare FOLDER`` splits every answer into its cells, or its
JSON, and holds them all. A replay does this and judges."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def held(folder: Path) -> dict[str, Any]:
    """File -> what it says."""
    return {path.name: split(path.read_text("utf-8", "surrogateescape")) for path in sorted(folder.iterdir())}


def split(text: str) -> Any:
    """A document of JSON, or lines of cells."""
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            pass
    separator = "\t" if "\t" in text else None
    return [line.split(separator) for line in text.split("\n")]


if __name__ == "__main__":
    everything = held(Path(sys.argv[1]))
    sys.exit(not everything)
