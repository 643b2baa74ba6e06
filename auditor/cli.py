"""Arguments and exit codes, nothing else. Heavy modules are imported by the command that needs them, so that
``zaudit --version`` answers at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from auditor import __version__
from auditor.errors import EXIT_BROKE, EXIT_INTERRUPTED, EXIT_USAGE, Stop

SEVERITIES = ("low", "medium", "high", "critical")
DATABASES = ("postgres", "mysql", "mariadb", "sqlite", "mongodb", "etcd")
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=CONTEXT, no_args_is_help=True)
@click.version_option(__version__, prog_name="zaudit", message="%(prog)s %(version)s")
def main() -> None:
    """Does fsync keep its promise on this host? Audits OpenZFS under databases; changes nothing.

    Exit codes: 0 nothing at or above --fail-on, 1 zaudit broke, 2 usage, 3 nothing to audit, 10 undecided only,
    11 low, 12 medium, 13 high, 14 critical.
    """


def _looking(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that looks at a host."""
    for option in reversed(
        (
            click.option("--timeout", type=click.FloatRange(0.1, 3600), default=30.0, show_default=True, metavar="SECONDS",
                         help="Give up on a command after so long."),
            click.option("--consistent", is_flag=True, help="Read dataset properties in one transaction group (root, pyzfs)."),
        )
    ):  # fmt: skip
        command = option(command)
    return command


@main.command(short_help="Audit pools, datasets, zvols or paths.")
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option(
    "--replay",
    type=click.Path(path_type=Path),
    metavar="REC",
    help="Audit a recording (folder or .tar.gz) instead of this host.",
)
@click.option("--record", type=click.Path(path_type=Path), metavar="REC", help="Also write a recording of this run.")
@click.option("--format", "format_", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the report to a file.",
)
@click.option("--fail-on", type=click.Choice(SEVERITIES), default="low", show_default=True,
              help="Findings and undecided rules below this do not count for the exit code.")  # fmt: skip
@click.option("--rule", "only", multiple=True, metavar="ID", help="Run only this rule (repeat for more).")
@click.option("--skip", multiple=True, metavar="ID", help="Do not run this rule (repeat for more).")
@click.option(
    "--rules",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Your own rules, beside ours.",
)
@click.option(
    "--db", "database", type=click.Choice(DATABASES), help="The database that runs on the target (decides page sizes)."
)
@click.option("-v", "--verbose", is_flag=True, help="Show what passed, with its evidence.")
@_looking
def check(
    targets: tuple[str, ...],
    replay: Path | None,
    record: Path | None,
    format_: str,
    output: Path | None,
    fail_on: Any,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    folders: tuple[Path, ...],
    database: str | None,
    verbose: bool,
    timeout: float,
    consistent: bool,
) -> NoReturn:
    """Audit TARGETs: pools, datasets, zvols, mounted paths or /dev/zvol/... paths; all imported pools when none is named.

    It audits the target and its children, the pool, every leaf, the physical disks behind them and the host.
    """
    from auditor import audit, rulebook
    from auditor.collect import recording
    from auditor.collect.host import Host, LiveHost

    rules = rulebook.select(folders, only, skip)
    host: Host
    if replay:
        if record:
            raise click.UsageError("--record goes with a live check; a recording exists already")
        past = recording.load(replay)
        host = recording.ReplayHost(past)
        asked, options = past.targets, audit.Options.from_words(past.options)
        if database:
            options = audit.Options(options.consistent, database)
    else:
        past = None
        host = LiveHost(timeout)
        asked, options = targets, audit.Options(consistent, database or "")
        if record:
            host = recording.RecordingHost(host)
    seen = audit.look(host, asked, options, None if replay else _progress())
    if record and isinstance(host, recording.RecordingHost):
        recording.write(host.recording(targets, options.words(), __version__), record)
    focus = targets if past and targets and targets != asked else ()
    report = audit.judge(audit.focus(seen, host, focus) if focus else seen, rules, focus or asked, fail_on)
    _emit(report, format_, output, verbose)
    sys.exit(report.exit_code)


@main.command(short_help="Record a host, to audit it elsewhere.")
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option(
    "-o",
    "--output",
    "path",
    required=True,
    type=click.Path(path_type=Path),
    metavar="REC",
    help="Folder or .tar.gz to write.",
)
@click.option("--redact", is_flag=True, help="Replace serials, GUIDs, WWNs and host names by stable stand-ins.")
@_looking
def record(targets: tuple[str, ...], path: Path, redact: bool, timeout: float, consistent: bool) -> None:
    """Ask everything that `zaudit check` asks and write the answers to REC; `zaudit check --replay REC` audits them."""
    from auditor import audit
    from auditor.collect import recording, redaction
    from auditor.collect.host import LiveHost

    host = recording.RecordingHost(LiveHost(timeout))
    options = audit.Options(consistent)
    audit.look(host, targets, options, _progress())
    taken = host.recording(targets, options.words(), __version__)
    recording.write(redaction.redact(taken) if redact else taken, path)
    click.echo(
        f"{path}: {len(taken.commands)} commands, {sum(len(files.text) for files in taken.files.values())} files",
        err=True,
    )


@main.command(short_help="List the rules.")
@click.option("--format", "format_", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True)
@click.option(
    "--rules",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Your own rules, beside ours.",
)
def rules(format_: str, folders: tuple[Path, ...]) -> None:
    """List all rules with severity, subject and title."""
    from auditor import rulebook
    from auditor.report import rule_page

    everything = rulebook.load(folders, examples=format_ == "json")
    click.echo(
        rule_page.as_json(everything) if format_ == "json" else rule_page.as_table(everything, _width()), nl=False
    )


@main.command(short_help="Show one rule: what, why, impact, fix, references, examples.")
@click.argument("rule_id", metavar="ID")
@click.option(
    "--rules",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Your own rules, beside ours.",
)
def explain(rule_id: str, folders: tuple[Path, ...]) -> None:
    """Show what rule ID checks, why it matters, how to mend it, where that is written, and its examples."""
    from auditor import rulebook
    from auditor.report import rule_page

    click.echo(rule_page.page(rulebook.find(folders, rule_id), _width()), nl=False)


@main.command(short_help="Follow every fsync down to the flush on the device, with a short honest fio run.")
@click.argument("target", required=False)
@click.option("--profile", default="postgres", show_default=True, metavar="NAME|FILE.fio",
              help="postgres, mysql-innodb, sqlite, mongodb, etcd, or an fio job file.")  # fmt: skip
@click.option("--quick", "length", flag_value="quick", default=True, help="The log path alone, 36 s (the default).")
@click.option("--standard", "length", flag_value="standard", help="Every part of the profile, 2 min each.")
@click.option("--long", "length", flag_value="long", help="Every part of the profile, 10 min each: enough for p99.9.")
@click.option("--slo", default="", metavar="p99=5ms,...", help="What a commit may take; default: that of the profile.")
@click.option("--size", default="", metavar="SIZE", help="Size of each data file; default: twice zfs_dirty_data_max.")
@click.option("--limit", default="", metavar="SIZE", help="Write at most so much.  [default: 10g]")
@click.option("--despite", multiple=True, type=click.Choice(["degraded", "scrub", "full", "space"]),
              help="Run although the pool is in this state (repeat for more).")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print what would be run and written, and do nothing.")
@click.option("--keep", is_flag=True, help="Leave the files there; zaudit clean removes them.")
@click.option("--yes", is_flag=True, help="Do not ask before more than 10 GiB are written.")
@click.option("--replay", type=click.Path(path_type=Path), metavar="REC", help="Judge a recorded verification again.")
@click.option("--record", type=click.Path(path_type=Path), metavar="REC", help="Also write a recording of this run.")
@click.option(
    "--format", "format_", type=click.Choice(["terminal", "json", "html"]), default="terminal", show_default=True
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the report to a file.")  # fmt: skip
@click.option("--fail-on", type=click.Choice(SEVERITIES), default="low", show_default=True,
              help="Findings and undecided rules below this do not count for the exit code.")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(0.1, 3600), default=30.0, show_default=True, metavar="SECONDS",
              help="Give up on a command (not on fio) after so long.")  # fmt: skip
def verify(
    target: str | None, replay: Path | None, format_: str, output: Path | None, fail_on: Any, **given: Any
) -> NoReturn:
    """Write as a database does to TARGET (a dataset, zvol or mounted path), and follow each sync through system calls,
    fio, the ZIL and the devices.

    TRACED: every sync was followed to a flush that the device acknowledged. CONTRADICTED: a named link lost some.
    INCONCLUSIVE: could not be seen, and why. Writes only into a new directory of its own, which it removes.
    """
    from auditor.commands import verify as command

    if bool(target) == bool(replay):
        raise click.UsageError("name a TARGET, or --replay a recording")
    if replay:
        found = command.replayed(replay, fail_on)
    else:
        wanted = command.Wanted(target=str(target), fail_on=fail_on, **given)
        done = command.live(wanted, _progress(), _steps())
        if done is None:
            sys.exit(0)
        found = done
    _write(command.rendered(*found, format_, _terminal(output)), output, command.summary(*found))
    sys.exit(found[1].exit_code)


@main.command(short_help="Remove what interrupted verifications left.")
def clean() -> NoReturn:
    """Remove the directories and scratch zvols of verifications that were killed; nothing else."""
    from auditor.commands import verify as command

    sys.exit(EXIT_BROKE if command.clean() else 0)


# -- the terminal ---------------------------------------------------------------------------------------------------


def _emit(report: Any, format_: str, output: Path | None, verbose: bool) -> None:
    from auditor.report import json, terminal

    if format_ == "json":
        text = json.render(report, verbose=verbose)
    else:
        text = terminal.render(report, verbose=verbose, **_terminal(output))
    _write(text, output, f"{report.headline} (exit code {report.exit_code})")


def _terminal(output: Path | None) -> dict[str, Any]:
    """How a terminal report is to look: width, color, ascii_only. A file is none."""
    if output:
        return {}
    return {"width": _width(), "color": _color(), "ascii_only": _ascii_only()}


def _write(text: str, output: Path | None, summary: str) -> None:
    if output:
        output.write_text(text, encoding="utf-8")
        click.echo(f"{output}: {summary}", err=True)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()


def _steps() -> Callable[[str, float, float], None] | None:
    """Progress of a verification, with the time that is left of the run that is under way; on a terminal only."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return None

    def show(what: str, done: float, seconds: float) -> None:
        left = max(seconds - done, 0)
        sys.stderr.write(f"\r\x1b[K{what}: {left:.0f} s left\r")
        sys.stderr.flush()

    return show


def _width() -> int:
    """Columns of the terminal; 100 in a pipe or file. COLUMNS decides when it is set."""
    if os.environ.get("COLUMNS", "").isdigit():
        return min(max(int(os.environ["COLUMNS"]), 60), 140)
    if not sys.stdout.isatty():
        return 100
    return min(max(os.get_terminal_size(sys.stdout.fileno()).columns, 60), 140)


def _ascii_only() -> bool:
    """Python writes UTF-8 even where LC_ALL=C asks for less (PEP 540), unless PYTHONIOENCODING says otherwise."""
    if os.environ.get("LC_ALL") in ("C", "POSIX") and not os.environ.get("PYTHONIOENCODING"):
        return True
    return (sys.stdout.encoding or "ascii").lower().replace("-", "") not in ("utf8", "utf8sig")


def _color() -> bool:
    """NO_COLOR and FORCE_COLOR (no-color.org, force-color.org) before the question whether this is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _progress() -> Callable[[int, int, str], None] | None:
    """One line on standard error while commands run; on a terminal only."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return None

    def show(done: int, asked: int, what: str) -> None:
        end = "\r\x1b[K" if done >= asked else ""
        sys.stderr.write(f"\r\x1b[K{done}/{asked} {what[:50]}{end}")
        sys.stderr.flush()

    return show


def run() -> NoReturn:
    """The command ``zaudit``: every error in one line with its exit code, a traceback only with ZAUDIT_DEBUG."""
    try:
        main.main(standalone_mode=False)
        sys.exit(0)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_USAGE)
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
    from auditor.text import harmless

    match error:
        case Stop():
            code, text = error.exit_code, str(error)
        case OSError():
            code, text = EXIT_USAGE, f"{error.filename or ''}: {error.strerror or error}".lstrip(": ")
        case _:
            code, text = (
                EXIT_BROKE,
                f"internal error, please report it: {type(error).__name__}: {error} (ZAUDIT_DEBUG=1 shows where)",
            )
    click.echo(f"zaudit: {harmless(text)}", err=True)
    return code
