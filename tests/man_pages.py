"""The manual pages, one a command, made of what the commands say of themselves: ``python -m tests.man_pages FOLDER`` writes
them, as the packages have them.

What they are checked with: mandoc -Tlint (man 7 man)."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

import click

from auditor import __version__
from auditor.cli import CONTEXT, SET_BY_ENVIRONMENT, main

ROOT = Path(__file__).parent.parent
RELEASE = ROOT / "contrib" / "debian" / "changelog"
HOME = "/etc/zaudit/zaudit.toml", "/etc/zaudit/conf.d/*.toml", "/var/lib/zaudit"
TERMINAL = {
    "COLUMNS": "The width of the page.",
    "FORCE_COLOR": "Colors although the output is no terminal.",
    "NO_COLOR": "No colors.",
}
WHAT = (
    "The site's policy: roles, rules, thresholds and waivers.",
    "More of it, a file for each concern.",
    "What the nightly run keeps, and where zaudit verify notes what it makes.",
)


def pages() -> dict[str, str]:
    """File name -> page."""
    return {f"{_name(path)}.1": _page(path, command) for path, command in _commands((), main)}


def write(folder: Path) -> None:
    """All pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)


def _commands(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), name)
            assert below
            yield from _commands((*path, name), below)


def _name(path: tuple[str, ...]) -> str:
    return "-".join(("zaudit", *path))


def _page(path: tuple[str, ...], command: click.Command) -> str:
    context = click.Context(
        command, info_name=" ".join(("zaudit", *path)), help_option_names=CONTEXT["help_option_names"]
    )
    day = parsedate_to_datetime(RELEASE.read_text().rpartition("  ")[2].strip()).date().isoformat()
    brief = "audits whether fsync keeps its promise on OpenZFS" if not path else command.get_short_help_str(200)
    about, _, exits = inspect.cleandoc(command.help or "").partition("\n\nExit codes: ")
    lines = [
        '.\\" made by: python -m tests.golden',
        f'.TH {_text(_name(path).upper())} 1 {day} "zaudit {__version__}" "zaudit"',
        ".SH NAME",
        _text(f"{_name(path)} - {brief.rstrip('.')}"),
        ".SH SYNOPSIS",
        f".B {_text(context.info_name or '')}",
        *(_text(piece) for piece in command.collect_usage_pieces(context)),
        ".SH DESCRIPTION",
        *_paragraphs(about),
        ".SH OPTIONS",
        *_options(command, context),
    ]
    if isinstance(command, click.Group):
        lines += [".SH COMMANDS", *_below(path, command)]
    if not path:
        lines += [".SH EXIT STATUS", *_paragraphs(exits), *_surroundings()]
    else:
        lines += [".SH SEE ALSO", ".BR zaudit (1)"]
    return "\n".join(lines) + "\n"


def _below(path: tuple[str, ...], group: click.Group) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command
        yield from (".TP", f".BR {_text(_name((*path, name)))} (1)", _text(command.get_short_help_str(200)))


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context)):
            yield from (".TP", f".B {_flat(record[0])}", _text(record[1]))


def _surroundings() -> Iterator[str]:
    yield ".SH ENVIRONMENT"
    for name in sorted(SET_BY_ENVIRONMENT):
        yield from (".TP", f".B ZAUDIT_{name.upper()}", _text(f"The default of --{name.replace('_', '-')}."))
    for name, what in TERMINAL.items():
        yield from (".TP", f".B {name}", what)
    yield ".SH FILES"
    for name, what in zip(HOME, WHAT, strict=True):
        yield from (".TP", f".I {_text(name)}", _text(what))
    yield from (".SH SEE ALSO", ".BR zfs (8),", ".BR zpool (8),", ".BR zed (8),", ".BR fsync (2)")


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        yield from ([".PP"] if number else [])
        yield _text(" ".join(paragraph.split()))


def _flat(text: str) -> str:
    return _text(text).replace("\n", " ")


def _text(text: str) -> str:
    """As roff has it: short lines, none begins as a request, and a hyphen stays one."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    lines = textwrap.wrap(escaped, 78, break_on_hyphens=False, break_long_words=False)
    return "\n".join(re.sub(r"^(?=[.'])", r"\\&", line) for line in lines)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
