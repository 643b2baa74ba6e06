"""The runner of the documents' commands (tests/documents.py): what it takes for a block, and which it leaves out."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import click
import pytest

from auditor.cli import main
from tests import documents

ROOT = Path(__file__).parents[2]
BLOCKS = [each for name in documents.DOCUMENTS for each in documents.blocks(name, (ROOT / name).read_text())]
TEXT = """A line.

<!-- not run, "verify", "watch it": needs a pool -->
<!-- before: mkdir here -->
```sh
zaudit check tank/db   # a comment
# of its own
zaudit verify tank/db
zaudit show \\
    report.json
```

```text
no command
```
"""


def test_a_block_and_its_commands() -> None:
    (block,) = documents.blocks("a.md", TEXT)
    assert [(each.line, each.text, each.reason) for each in documents.commands(block)] == [
        (6, "zaudit check tank/db   # a comment", ""),
        (8, "zaudit verify tank/db", "needs a pool"),
        (10, "zaudit show \\\n    report.json", ""),
    ]
    made = documents.script([block])
    assert "{ mkdir here; }" in made
    assert "verify" not in made


def test_a_block_that_is_a_file_has_its_syntax_looked_at() -> None:
    (block,) = documents.blocks("a.md", "<!-- file: /etc/zaudit/alert -->\n```sh\n#!/bin/sh\necho\n```\n")
    (command,) = documents.commands(block)
    assert command.text.endswith("#!/bin/sh\necho\nEND-OF-FILE")
    assert "sh -n /etc/zaudit/alert" in command.text


def test_a_mark_without_a_block_is_refused() -> None:
    with pytest.raises(ValueError, match="before no block"):
        list(documents.blocks("a.md", "<!-- not run: why -->\nA line.\n"))


def test_every_reason_names_what_is_there() -> None:
    reasons = {text for block in BLOCKS for _, text in block.mark("not run")}
    assert reasons
    for path in re.findall(r"\b(?:tests|contrib)/[\w/.]+", " ".join(reasons)):
        assert (ROOT / path).exists(), path
    targets = {each for reason in reasons for each in re.findall(r"make ([\w, -]+)", reason)}
    makefile = (ROOT / "Makefile").read_text()
    for target in {name for each in targets for name in re.findall(r"[a-z-]+", each)}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_claim_is_about_a_command_that_runs() -> None:
    due = {(block.document, each.text) for block in BLOCKS for each in documents.commands(block) if not each.reason}
    for name, begins in documents.CLAIMS:
        assert any(document == name and text.startswith(begins) for document, text in due), (name, begins)


def test_what_went_wrong_is_named() -> None:
    (block,) = documents.blocks("a.md", "```sh\nzaudit check\nls\nfalse\nzaudit show\n```\n")
    due = list(documents.commands(block))
    printed = "@@begin 2\n@@end 2 14\n@@begin 3\n@@end 3 0\n@@begin 4\n@@end 4 1\n@@begin 5\nUsage\n@@end 5 2\n"
    found = list(documents._faults("a.md", due, printed, ""))
    assert [each.splitlines()[0] for each in found] == [
        "a.md:4: false: ended with 1",
        "a.md:5: zaudit show: ended with 2",
    ]
    (cut,) = documents._faults("a.md", due[:1], "@@begin 2\n", "killed")
    assert "did not end" in cut


def test_every_command_of_zaudit_has_the_options_that_are_printed() -> None:
    """Those that are not run, too."""
    found = 0
    for each in (command for block in BLOCKS for command in documents.commands(block)):
        words = shlex.shlex(each.text, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        name, *rest = itertools.takewhile(lambda word: word not in ("|", ">", "<", "&&", ";"), words)
        command: click.Command | None = main
        context = click.Context(main)
        if name == "zaudit":
            while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
                command = command.get_command(context, rest.pop(0))
            assert command, each.text
            command.make_parser(context).parse_args(rest)
            found += 1
    assert found > 60
