"""Options that several commands share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from auditor import EXIT_USAGE, Stop, interrupt
from auditor.host import trust, user_files
from auditor.host.request import DEADLINE_S
from auditor.text import harmless, is_url

if TYPE_CHECKING:
    from auditor.audit import Options

Command = Callable[..., Any]
Option = Callable[[Command], Command]
SEVERITIES = ("low", "medium", "high", "critical")
LATE = "not read and judged within {:g} s (see --deadline)"
AHEAD = 300  # seconds by which the clock of another host may be ahead of ours
RECORDED = ("replay", "replays", "since")  # options of which each names a recording


class Late(Stop):
    """A recording that took longer than --deadline allows."""


class Seconds(click.FloatRange):
    """A range of numbers without "nan", which is neither below nor above any bound."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Fails for what is not finite."""
        number = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{value!r} is not a number of seconds.", param, ctx)


class Local(click.Path):
    """A path on this machine, no URL. To check it takes no longer than the command may; one that another user serves is
    not touched."""

    def __init__(self, *, dir_okay: bool = True, url: bool = False) -> None:
        """url: one may stand in its place, which remains a text."""
        super().__init__(path_type=Path, dir_okay=dir_okay)
        self._url = url

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Fails for a URL, and for a folder where a file is wanted."""
        if is_url(str(value)):
            if self._url:
                return value
            self.fail(
                f"{value} is a URL: this is a file on this machine; only zaudit fleet takes URLs, of object stores.",
                param,
                ctx,
            )
        seconds = ctx.params.get("deadline", DEADLINE_S) if ctx else 0
        try:
            with interrupt.within(seconds, f"{harmless(str(value))}: {LATE.format(seconds)}", EXIT_USAGE):
                if user_files.is_folder(value) and not self.dir_okay:
                    self.fail(f"{value} is a directory.", param, ctx)
        except trust.Served as error:
            self.fail(f"{value}: {error.strerror}.", param, ctx)
        except interrupt.TooLate as late:
            raise Late(str(late)) from None
        return Path(value)


def span(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """The seconds of 26h, 2d, 90m or 30s, for an option. Raises BadParameter."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,6})([smhd])", value)
    if not found:
        raise click.BadParameter(f"{value!r} is not a time span such as 26h or 2d.", ctx, param)
    return float(int(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]])


def deadline(words: str, recordings: tuple[str, ...] = RECORDED) -> Option:
    """``--deadline SECONDS``. words: what it means for a host. recordings: what may name some; with one the command ends after
    this time, wherever it is, but for the time in which it asks a host or waits for who reads its report."""

    def option(command: Command) -> Command:
        @wraps(command)
        def bounded(**given: Any) -> Any:
            paths = [path for each in recordings for path in _paths(given.get(each))]
            seconds = given["deadline"] if paths else 0
            text = f"{', '.join(paths)}: {LATE.format(seconds)}"
            try:
                with interrupt.within(seconds, text, EXIT_USAGE):
                    return command(**given)
            except interrupt.TooLate as late:
                raise Late(str(late)) from None

        return click.option(
            "--deadline",
            type=Seconds(0, 86400),
            default=DEADLINE_S,
            show_default=True,
            metavar="SECONDS",
            is_eager=True,  # it holds for the paths among the other options, too
            help=f"{words} 0: no deadline.",
        )(bounded)

    return option


def _paths(given: Path | tuple[Path, ...] | None) -> list[str]:
    return [harmless(str(each)) for each in (given if isinstance(given, tuple) else (given,)) if each]


def together(*options: Option) -> Option:
    """Several as one, in the order of the help text."""

    def apply(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


def timeout(words: str = "Give up on a command after this time.", default: float = 30.0) -> Option:
    return click.option(
        "--timeout", type=Seconds(0.1, 3600), default=default, show_default=True, metavar="SECONDS", help=words
    )


def _looking(words: str) -> Option:
    consistent = "Read dataset properties in one transaction group (root, pyzfs)."
    return together(timeout(), deadline(words), click.option("--consistent", is_flag=True, help=consistent))


# the options of every command that asks a host, and of those that look at a host or a recording
asking = _looking("Stop asking after this time and go on without the rest.")
looking = _looking("Stop asking after this time and report without the rest; give up on a recording.")


def database(command: Command) -> Command:
    """``--db NAME[=DIR|DSN]``; see :func:`with_database`."""
    from auditor.databases import ENGINES

    words = (
        f"The database of the target: {', '.join(ENGINES)}. DIR: its data directory, if it is not running. DSN: to ask "
        "the server itself; without a password."
    )
    return click.option("--db", "database", metavar="NAME[=DIR|DSN]", help=words, shell_complete=engines)(command)


def with_database(options: Options, database: str | None) -> Options:
    """The options with what ``--db`` says, if it says anything. Raises UsageError, which does not repeat a DSN."""
    if database is None:
        return options
    from auditor.audit import DatabaseError

    try:
        return options._replace(wanted=options.wanted.with_database(database))
    except DatabaseError as error:
        raise click.UsageError(str(error)) from None


class Output(Local):
    """A file to write to; ``-`` and /dev/stdout are standard output, as without the option."""

    def __init__(self, *, url: bool = False) -> None:
        super().__init__(dir_okay=False, url=url)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """None: standard output."""
        return None if user_files.stream(Path(value)) == 1 else super().convert(value, param, ctx)


# What a shell offers for a word that is not finished: what click cannot know by itself. It never fails, and asks the host for a
# second at most.

Items = list[CompletionItem]
ASK_S = 1.0


def rule_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    from auditor import rulebook

    rules = rulebook.load(examples=False)
    return [CompletionItem(rule.id, help=rule.title) for rule in rules if rule.id.startswith(incomplete)]


def max_age(words: str) -> Option:
    """``--max-age SPAN``; see :func:`is_old`."""
    return click.option("--max-age", callback=span, metavar="26h|2d", help=words)


def is_old(age: float, most: float | None) -> bool:
    """Whether a report is older than a span, or of the future. age, most: seconds; None: any age will do."""
    return most is not None and not -AHEAD <= age <= most


def engines(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    from auditor.databases import ENGINES

    return [CompletionItem(name) for name in ENGINES if name.startswith(incomplete)]


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    return [CompletionItem(incomplete, type="file")]


def changes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The beginnings of a supposition: who it may be about."""
    fixed = [CompletionItem(each) for each in ("host release=", "zfs ") if each.startswith(incomplete)]
    return fixed + (
        target_names(ctx, param, incomplete) if incomplete and not incomplete.startswith(("/", ".")) else []
    )


def target_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Datasets and zvols that ``zfs list`` names; paths, once a path is begun."""
    if incomplete.startswith(("/", ".")):
        return files(ctx, param, incomplete)
    from auditor.host.live import LiveHost
    from auditor.host.request import Run

    said = LiveHost(ASK_S, ASK_S).run(Run(("zfs", "list", "-H", "-t", "filesystem,volume", "-o", "name", "-s", "name")))
    names = said.stdout.decode(errors="replace").splitlines() if said.exit == 0 else []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


# Options and arguments that say the same in every command.

FOLDERS = "A folder of your own rules, in addition to the built-in ones."
POLICY = (
    "Roles, rules, thresholds and waivers.  [default: /etc/zaudit/zaudit.toml if it exists; for a recording: its own]"
)
FAILED_ONLY = "The exit code counts failures only; otherwise an unknown rule counts as the worst that it may be."
FAIL_ON = "Findings and unknown rules below this do not count for the exit code."

folders = click.option("--rules", "folders", multiple=True, type=Local(), metavar="DIR", help=FOLDERS)
rules_of = together(
    click.option("--rule", "only", multiple=True, metavar="ID", shell_complete=rule_ids,
                 help="Run only this rule (repeat for more)."),
    click.option("--skip", "skip", multiple=True, metavar="ID", shell_complete=rule_ids,
                 help="Do not run this rule (repeat for more)."),
    folders,
)  # fmt: skip
policy = click.option("--policy", "policy_file", type=Local(dir_okay=False), metavar="FILE", help=POLICY)
fail_on = together(
    click.option("--fail-on", type=click.Choice(SEVERITIES), default="low", show_default=True, help=FAIL_ON),
    click.option("--failed-only", is_flag=True, help=FAILED_ONLY),
)
targets = click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=target_names)
record = click.option("--record", type=Local(), metavar="REC", help="Also write a recording of this run.")


def replay(words: str = "A recording instead of this host.") -> Option:
    return click.option("--replay", type=Local(), metavar="REC", help=words)


def output(words: str) -> Option:
    return click.option("-o", "--output", type=Output(), metavar="FILE", help=words)


def formats_of(*names: str, words: str | None = None) -> Option:
    """``--format``, of those that a command can render; the first is the default."""
    kind = click.Choice(names)
    return click.option("--format", "format_", type=kind, default=names[0], show_default=True, help=words)


formats = formats_of("terminal", "json")
