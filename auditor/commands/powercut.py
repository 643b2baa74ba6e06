"""``zaudit powercut``: does what was acknowledged outlive a power cut on this hardware? With a witness on another machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from auditor import EXIT_USAGE
from auditor.commands import _options
from auditor.commands._options import Local
from auditor.screen import look, note, say, write

PORT = 5409
GIB = 1 << 30


class Address(click.ParamType):  # type: ignore[type-arg]
    """HOST:PORT, [::]:5409 or a port alone."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """(host, port)."""
        if isinstance(value, tuple):
            return value
        host, colon, port = str(value).rpartition(":")
        if not colon or value.endswith("]"):
            host, port = str(value), str(PORT)
        if not port.isdigit() or not 0 < int(port) < 1 << 16:
            self.fail(f"{value!r} is not HOST:PORT.", param, ctx)
        return host.strip("[]"), int(port)


key_option = click.option("--key", type=Local(dir_okay=False), required=True, metavar="FILE",
                          help="The key that host and witness share, in a file of mode 0600; - is standard input.")  # fmt: skip
target_argument = click.argument("target", required=False, shell_complete=_options.target_names)
raw_option = click.option("--raw", default="", metavar="DEVICE",
                          help="A partition labelled zaudit-powercut, which is overwritten: the layer drive; with TARGET "
                          "the control stream alone.")  # fmt: skip
production_option = click.option("--production", multiple=True, metavar="POOL",
                                 help="This imported pool may lose its power (repeat for each).")  # fmt: skip
despite_option = click.option("--despite", multiple=True, type=click.Choice(["tpm", "resync", "servers", "counters"]),
                              help="Begin despite this objection (repeat for more).")  # fmt: skip


@click.group(short_help="Cut the power, and check that acknowledged writes survived.")
def powercut() -> None:
    """Write to a pool or a spare partition while a witness on another machine records what was acknowledged. Cut the power
    yourself: the plug, a switched outlet, or a program that the witness runs. Then check what survived."""


@powercut.command(short_help="What would be written, what blocks it, how many cuts prove what.")
@target_argument
@raw_option
@production_option
def plan(target: str | None, raw: str, production: tuple[str, ...]) -> NoReturn:
    """Show what start would write, what blocks a power cut here, and how many cuts prove what. Writes
    nothing.

    Exit code: 0 when start would begin, 2 when something blocks it.
    """
    from auditor.powercut import campaign

    state = _state(target, raw, ("", 0), Path("-"), "fsync", 4)
    text, hazards = campaign.describe(state, _host(), production)
    say(text)
    sys.exit(EXIT_USAGE if hazards else 0)


@powercut.command(short_help="Record what hosts report; on another machine, without root or ZFS.")
@click.option("--listen", type=Address(), default=f"[::]:{PORT}", show_default=True, metavar="HOST:PORT")
@click.option("--store", type=Local(), default=Path("cuts"), show_default=True, metavar="FOLDER",
              help="Where the logs are kept.")  # fmt: skip
@key_option
@click.option("--limit", type=click.IntRange(1, 1024), default=1, show_default=True, metavar="GIB",
              help="The largest log of a run.")  # fmt: skip
@click.option("--cut", type=Local(dir_okay=False), metavar="FILE",
              help="A program that cuts the power of the host: run once a session, at a random moment.")  # fmt: skip
def witness(listen: tuple[str, int], store: Path, key: Path, limit: int, cut: Path | None) -> NoReturn:
    """Listen, keep each acknowledgement in a log that is synced before it answers the host, and compute nothing else. Give it
    a machine on another circuit than the host."""
    from auditor.powercut import witness as server

    secret = server.read_key(key)
    keeper = server.Witness(store, secret, limit * GIB, note, cut.absolute() if cut else None)
    keeper.serve(server.listen(listen))
    sys.exit(0)


@powercut.command(short_help="Begin a run: write until the power is cut.")
@target_argument
@raw_option
@click.option("--witness", "address", type=Address(), required=True, metavar="HOST[:PORT]", help="The other machine.")
@key_option
@click.option("--profile", type=click.Choice(["fsync", "dsync", "direct", "mmap", "pages8", "pages16"]), default="fsync",
              show_default=True, help="How TARGET is written.")  # fmt: skip
@click.option("--writers", type=click.IntRange(1, 32), default=4, show_default=True, help="Streams at once.")
@production_option
@despite_option
def start(
    target: str | None,
    raw: str,
    address: tuple[str, int],
    key: Path,
    profile: str,
    writers: int,
    production: tuple[str, ...],
    despite: tuple[str, ...],
) -> NoReturn:
    """Write to TARGET (a dataset or folder) or DEVICE, and report each commit to the witness, until the power cut or
    Ctrl-C. After the boot: zaudit powercut check, or resume for the next cut."""
    from auditor.powercut import campaign
    from auditor.powercut.witness import read_key

    secret = read_key(key)
    state = _state(target, raw, address, key.absolute(), profile, writers)
    host = _host()
    with campaign.alone():
        found = campaign.standing(state, host, production)
        if left := [_reason(each) for each in found if not each.name or each.name not in despite]:
            raise campaign.Refused("not begun: " + "; ".join(left))
        sys.exit(campaign.write(campaign.begin(state), secret, host, note))


@powercut.command(short_help="After the boot: what survived, and the verdict so far.")
@click.option("--key", type=Local(dir_okay=False), metavar="FILE", help="Instead of the key that start was given.")
@click.option("--gone", is_flag=True, help="The pool does not import any more: count that as a loss.")
@_options.formats
def check(key: Path | None, gone: bool, format_: str) -> NoReturn:
    """Read what the last session wrote, compare it with the witness's log, and print the verdict of the run.

    Exit code: 0 held, 10 too little is known, 14 something acknowledged was lost or damaged.
    """
    from auditor.powercut import campaign

    secret = _secret(key)
    with campaign.alone():
        found = _examined(secret, gone=gone)
    _print([found], format_, None)


@powercut.command(short_help="Check, then write again until the next cut.")
@click.option("--key", type=Local(dir_okay=False), metavar="FILE", help="Instead of the key that start was given.")
def resume(key: Path | None) -> NoReturn:
    """As check, and then as start with the same run; where something was lost it stops, so that nothing is overwritten."""
    from auditor.powercut import campaign, report

    secret = _secret(key)
    with campaign.alone():
        state = campaign.load_state()
        found = campaign.load_record(campaign.record_of(state.run)) if state.checked else _examined(secret)
        if found:
            write(report.write("terminal", [found], **look(None)), None, "")
            if report.exit_code([found]) == report.DAMAGED:
                sys.exit(report.DAMAGED)
        sys.exit(campaign.write(campaign.load_state(), secret or _secret(Path(state.key)), _host(), note))


@powercut.command(short_help="Learn how an orderly reboot changes the drives' counters.")
def calibrate() -> None:
    """Run it before and after one orderly reboot: some drives count that as a power cut."""
    from auditor.powercut import campaign

    say(campaign.calibrate(_host()))


@powercut.command(short_help="Summarize the runs of witnesses or of this host.")
@click.argument("stores", nargs=-1, type=Local(), metavar="[STORE...]")
@_options.formats_of("terminal", "html", "json", "toml")
@_options.output("Write the report to a file.")
def report(stores: tuple[Path, ...], format_: str, output: Path | None) -> NoReturn:
    """Compute the verdicts from the logs of witnesses (STORE), or show those of this host. Several stores are merged. toml: an
    entry for each drive, by its model and firmware, that anybody with the logs can compute again; it needs a STORE.

    Exit code: 0 all held, 10 too little is known of one, 14 one lost or damaged something acknowledged.
    """
    from auditor.powercut import campaign, proof

    if format_ == "toml" and not stores:
        raise click.UsageError("--format toml needs a STORE: its entries are computed from the witness's logs alone")
    runs = campaign.stored(stores)
    entries = [one for each in runs for one in proof.entries(each)] if format_ == "toml" else ()
    _print([proof.campaign(each) for each in runs] if stores else campaign.collect(), format_, output, entries)


def _state(target: str | None, raw: str, address: tuple[str, int], key: Path, profile: str, writers: int) -> Any:
    from auditor.powercut.campaign import State

    if not target and not raw:
        raise click.UsageError("name a TARGET, or --raw DEVICE")
    return State("", *address, str(key), target or "", raw, profile, writers)


def _host() -> Any:
    from auditor.host import live

    return live.LiveHost(60.0)


def _secret(key: Path | None) -> Any:
    from auditor.powercut.witness import read_key

    return read_key(key) if key else b""


def _examined(secret: bytes, *, gone: bool = False) -> Any:
    from auditor.powercut import campaign

    state = campaign.load_state()
    if state.checked and state.session:
        raise campaign.NoRun("the last session was checked already: zaudit powercut report shows it")
    return campaign.examine(state, secret or _secret(Path(state.key)), _host(), gone=gone)


def _print(found: Any, format_: str, output: Path | None, entries: Any = ()) -> NoReturn:
    from auditor.powercut import report

    text = report.write(format_, found, entries, **look(output))
    code = report.exit_code(found)
    write(text, output, f"{len(found)} runs (exit code {code})", encoded=format_ != "terminal")
    sys.exit(code)


def _reason(hazard: Any) -> str:
    return f"{hazard.text} (--despite {hazard.name})" if hazard.name else str(hazard.text)
