"""The command line: which command is meant, and which exit codes its errors have. The commands are in ``auditor/commands``, and
only the one that is asked for is imported, so that each starts at once."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from io import StringIO
from typing import Any, NoReturn, cast

import click

from auditor import DISK, EXIT_BROKE, EXIT_INTERRUPTED, EXIT_USAGE, NO_MEMORY, Stop, __version__
from auditor.screen import note
from auditor.text import harmless, near

CONTEXT: Any = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
# ZAUDIT_TIMEOUT and the like may say how long it takes and how it looks. What is written or run, where to, and what is left
# out stands on the command line alone: nobody looks at the environment that root has inherited. (click's auto_envvar_prefix
# would take ZAUDIT_CHECK_HELP, too, with which every check ends with 0.)
SET_BY_ENVIRONMENT = frozenset({"timeout", "deadline", "color", "quiet", "verbose", "min_severity"})
# as the help text groups them; a module of auditor.commands has those of a group, but for one that has a module of its own
GROUPS = {
    "Before go-live": ("golive", ("check", "plan", "advise", "checklist", "verify", "powercut")),
    "Every night": ("nightly", ("baseline", "alert", "show", "policy", "fleet")),
    "When something is wrong": ("incident", ("diagnose", "record", "diff", "clean")),
    "Reference": ("reference", ("rules", "explain", "drives", "schema", "selftest", "completion")),
}
MODULES = {name: module for module, names in GROUPS.values() for name in names} | {
    name: name for name in ("powercut", "fleet")
}
COMMANDS = tuple(MODULES)


class Commands(click.Group):
    """Imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        every = {name: command for name in COMMANDS if (command := self.get_command(ctx, name))}
        limit = formatter.width - 6 - max(map(len, every))
        for title, (_, names) in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, every[name].get_short_help_str(limit)) for name in names], col_max=30)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = cast(click.Command, getattr(import_module(f"auditor.commands.{MODULES[cmd_name]}"), cmd_name))
        # click keeps the help option of the first context that a command was read in
        command.context_settings |= CONTEXT
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.name in SET_BY_ENVIRONMENT:
                parameter.envvar = f"ZAUDIT_{parameter.name.upper()}"
        return command

    def main(self, *words: Any, **options: Any) -> Any:
        """No variable turns a check into a completion, which ends with 0: click looks for one of an impossible name."""
        return super().main(*words, **{**options, "complete_var": "="})

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises UsageError with the near matches, and where an option is given twice."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}{near(args[0], COMMANDS)}.")
        name, command, words = super().resolve_command(ctx, args)
        if command and not ctx.resilient_parsing:
            _once(command, words, ctx)
        return name, command, words


def _once(command: click.Command, words: list[str], parent: click.Context) -> None:
    """click takes the last of two values of an option and drops the other in silence. Raises UsageError; not for choices
    and times, which a wrapper script and its caller may both give."""
    ctx = click.Context(command, parent, command.name, **command.context_settings)
    try:
        _, rest, order = command.make_parser(ctx).parse_args(list(words))
    except click.UsageError:
        return  # click says so where it reads them
    given = [
        each for each in order if isinstance(each, click.Option) and not (each.multiple or each.is_flag or each.count)
    ]
    for each in given:
        overridden = isinstance(each.type, (click.Choice, click.FloatRange)) or each.callback
        if given.count(each) > 1 and not overridden:
            ctx.fail(f"{each.opts[0]} appears more than once; it takes one value.")
    if isinstance(command, click.Group) and rest and (below := command.get_command(ctx, rest[0])):
        _once(below, rest[1:], ctx)


@click.group(cls=Commands, context_settings=CONTEXT, no_args_is_help=True)
@click.version_option(__version__, prog_name="zaudit", message="%(prog)s %(version)s")
def main() -> None:
    """Audit OpenZFS under databases: does fsync keep its promise? Changes nothing.

    Exit codes: 0 nothing at or above --fail-on, 1 zaudit broke or a disk is full, 2 usage, 3 nothing to audit.
    The worst that failed or is unknown: 11 low, 12 medium, 13 high, 14 critical. --failed-only: 10 is unknown only.
    """


def run() -> NoReturn:
    """The command ``zaudit``: every error in one line with its exit code, a traceback only with ZAUDIT_DEBUG."""
    try:
        main.main(standalone_mode=False)
        sys.exit(0)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        complaint = StringIO()
        error.show(complaint)
        note(complaint.getvalue())
        sys.exit(_answered(error.format_message(), EXIT_USAGE))
    except click.Abort:
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader went away; the interpreter must not complain at exit
        sys.exit(EXIT_BROKE)
    except Exception as error:
        if os.environ.get("ZAUDIT_DEBUG"):
            raise
        sys.exit(_failed(error))


def _failed(error: Exception) -> int:
    match error:
        case Stop():
            code, text = error.exit_code, str(error)
        case OSError():
            code = EXIT_BROKE if error.errno in DISK else EXIT_USAGE
            text = f"{error.filename or ''}: {error.strerror or error}".lstrip(": ")
        case MemoryError():
            code, text = EXIT_USAGE, NO_MEMORY
        case _:
            code, text = (
                EXIT_BROKE,
                f"internal error, please report it: {type(error).__name__}: {error} (ZAUDIT_DEBUG=1 shows where)",
            )
    note(f"zaudit: {harmless(text)}")
    return _answered(text, code)


def _answered(text: str, code: int) -> int:
    """The exit code, after a monitor that reads standard output was told there that there is no report."""
    if "--format" not in " ".join(sys.argv):
        return code
    with suppress(OSError, MemoryError):  # nobody reads it, or what failed has left no room to read a module
        from auditor.commands._auditing import unanswered

        said, code = unanswered(sys.argv[1:], text, code)
        click.echo(said, nl=False)
    return code
