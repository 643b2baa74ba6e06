"""The index of the rules and a page for each, for the site: ``python -m tests.rule_pages FOLDER`` writes them below it."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from auditor.report import rule_page
from tests import shared
from tests.lab import provoked

INDEX = "rules/README.md"


@cache
def pages() -> dict[str, str]:
    """Path on the site -> text, in Markdown."""
    shown = provoked.shown(shared.rules())
    return {
        INDEX: rule_page.markdown_index(shared.rules()),
        **{rule.page: rule_page.markdown_page(rule, shown[rule.id]) for rule in shared.rules()},
    }


def write(folder: Path) -> None:
    for path, text in pages().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
