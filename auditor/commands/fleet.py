"""``zaudit fleet``: the recordings of many hosts, judged and reported together."""

from __future__ import annotations

import hashlib
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn
from urllib.parse import quote

import click

from auditor import Stop, __version__
from auditor.commands import _options
from auditor.commands._options import Local, Output, Seconds
from auditor.host import user_files
from auditor.interrupt import progress
from auditor.screen import look, note
from auditor.screen import write as emitted

if TYPE_CHECKING:
    from auditor.fleet.inputs import Account, Inputs, Journal
    from auditor.fleet.workers import How

Judge = Callable[[Iterable[str], "How"], Iterator[str]]
INVENTORY = 256 << 20
DEADLINE_S = 21600.0
LINE = 16 << 20  # bytes of one row


class TooLate(Stop):
    """The deadline came before the last recording."""


def _engine(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, str]:
    """processes, dask or dask=ADDRESS, as (name, address). Raises BadParameter."""
    name, equals, address = value.partition("=")
    if name not in ("processes", "dask") or (equals and (name != "dask" or not address)):
        raise click.BadParameter(f"{value!r} is neither processes, dask nor dask=ADDRESS.", ctx, param)
    return name, address


@click.group(short_help="Judge the recordings of many hosts and report on them together.")
def fleet() -> None:
    """Judge the recordings of many hosts by today's rules, and sum them up."""


@fleet.command(short_help="Judge many recordings; write a row for each finding.")
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING|FOLDER|PATTERN|URL...",
                shell_complete=_options.files)  # fmt: skip
@click.option("-o", "--output", "place", type=Output(url=True), metavar="FILE|URL",
              help="Write rows here: JSON lines, or Parquet if it ends in .parquet.  [default: standard output]")  # fmt: skip
@click.option("--inventory", type=Local(dir_okay=False), metavar="FILE",
              help="The hosts that are expected, one per line; each missing one is a row.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1, 1024), help="Parallel processes.  [default: one per processor]")
@click.option("--engine", callback=_engine, default="processes", metavar="processes|dask[=ADDRESS]", show_default=True,
              help="Where they run: here, or on the workers of Dask.")  # fmt: skip
@_options.folders
@click.option("--policy", "policy_file", type=Local(dir_okay=False), metavar="FILE",
              help="Roles, rules, thresholds and waivers for all hosts.  [default: for each recording its own]")  # fmt: skip
@_options.timeout("Give up on a recording after this time.", 120.0)
@click.option("--deadline", type=Seconds(0, 604800), default=DEADLINE_S, show_default=True, metavar="SECONDS",
              help="Begin no further recording after this time; 0: no deadline.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="Do not print the summary.")
def judge(
    recordings: tuple[str, ...],
    place: Path | str | None,
    inventory: Path | None,
    jobs: int | None,
    engine: tuple[str, str],
    folders: tuple[Path, ...],
    policy_file: Path | None,
    timeout: float,
    deadline: float,
    quiet: bool,
) -> NoReturn:
    """Judge recordings of zaudit record or check --record (folders, .tar.gz or .zaudit). Folders, patterns and (with
    fsspec) URLs work, too. The rows are those of check --format jsonl, and each recording is among them, whatever is
    wrong with it. A run that was interrupted, or ended by its deadline, resumes from FILE.part.

    Exit code: 0 when all recordings were judged and no host is missing, 2 if not, 10 when hosts are missing. What the
    rows say: zaudit fleet report.
    """
    from auditor.fleet import inputs, workers

    how, told = _how(folders, policy_file)
    account = inputs.Account(frozenset(_expected(inventory)), time.time())
    found = inputs.find(recordings)
    found = found._replace(recordings=account.in_order(found.recordings))
    bounds = workers.Bounds(min(jobs or workers.processors(), len(found.recordings)), timeout)

    def judged(names: Iterable[str], how: How) -> Iterator[str]:
        if engine[0] == "dask":
            return workers.judge_by_dask(names, how, bounds, engine[1])
        return workers.judge_all(names, how, bounds)

    with _journal(place, told) as journal:
        write(place, _blocks(found, journal, judged, how, account, quiet, deadline))
        if journal:
            journal.remove()
    if not quiet:
        for line in account.summary(len(found.recordings), found.beside, found.too_deep):
            note(line)
    sys.exit(account.exit_code)


@fleet.command(short_help="Summarize the rows of many hosts.")
@click.argument("rows", nargs=-1, required=True, type=Local(dir_okay=False, url=True), metavar="ROWS|URL...")
@click.option("--since", type=Local(dir_okay=False, url=True), metavar="ROWS|URL",
              help="Rows of an earlier run: say what is new.")  # fmt: skip
@_options.formats_of("terminal", "html")
@_options.output("Write the report to a file.")
@click.option("--pages", default="", metavar="NAME|URL",
              help="Link the pages of hosts, where they are: hosts/{host}.html or https://...{host}.")  # fmt: skip
@_options.fail_on
def report(
    rows: tuple[Path | str, ...],
    since: Path | str | None,
    format_: str,
    output: Path | None,
    pages: str,
    fail_on: Any,
    failed_only: bool,
) -> NoReturn:
    """Report the worst of many hosts, how many fail each rule, drives and releases, what is new or unknown.
    It also names missing hosts. ROWS: JSON lines of zaudit fleet judge, or of check
    --format jsonl; the newest report of each host counts.

    Exit code: as of zaudit check, for the worst host; a host that is missing or was not judged may be as bad as any.
    """
    from auditor.fleet import counting, fleet_page

    link = _link(pages, output)
    found = counting.fleet(partial(lines, rows), partial(lines, (since,)) if since else None, time.time())
    text = fleet_page.write_html(found, link) if format_ == "html" else fleet_page.write_text(found, **look(output))
    code = found.exit_code(fail_on, failed_only=failed_only)
    emitted(text, output, f"{fleet_page.headline(found)} (exit code {code})", encoded=format_ == "html")
    sys.exit(code)


@fleet.command(short_help="Which single event loses a commit on every copy of a cluster.")
@click.argument("recordings", nargs=-1, required=True, type=Local(), metavar="RECORDING...")
@click.option("--cluster", "database", required=True, metavar="ENGINE[ FOLDER]", shell_complete=_options.engines,
              help="The database of which each host is a member; FOLDER of its data where a host has several.")  # fmt: skip
@click.option("--copies", type=click.IntRange(1, 99), metavar="N",
              help="Members that flush a commit before it is acknowledged.  [default: by the engine]")  # fmt: skip
@_options.folders
@_options.deadline("Give up on the recordings after this time.", ("recordings",))
@_options.formats_of("terminal", "json", "html")
@_options.output("Write the answer to a file.")
def check(
    recordings: tuple[Path, ...],
    database: str,
    copies: int | None,
    folders: tuple[Path, ...],
    deadline: float,
    format_: str,
    output: Path | None,
) -> NoReturn:
    """Judge one recording of each member together, that of the primary first. It says which event takes an acknowledged
    commit from every copy: at one host, at a shared drive, or at all hosts at once.

    Exit code: as of zaudit check, for the worst of these events; 2 where the recordings are no cluster.
    """
    from auditor import rulebook
    from auditor.fleet import cluster
    from auditor.judge.policy import NONE
    from auditor.recording import recording

    rules = rulebook.choose(folders, (), (), NONE)
    found = cluster.cluster([(each, recording.load(each)) for each in recordings], database, copies or 0, rules)
    text = cluster.write(format_, found, **look(output))
    emitted(text, output, f"{cluster.headline(found)} (exit code {found.exit_code})", encoded=format_ == "html")
    sys.exit(found.exit_code)


@contextmanager
def _journal(place: Path | str | None, told: str) -> Iterator[Journal | None]:
    """Beside a file that is to be written; none beside a stream, a device or a URL."""
    from auditor.fleet.inputs import Journal

    if not isinstance(place, Path) or user_files.stream(place) is not None or place.is_char_device():
        yield None
    else:
        with Journal(place.with_name(f"{place.name}.part"), told) as journal:
            yield journal


def _blocks(
    found: Inputs, journal: Journal | None, judge: Judge, how: How, account: Account, quiet: bool, deadline: float
) -> Iterator[str]:
    """The rows of each recording in their order, then the missing hosts. Names claimed twice are known only after all.
    Raises TooLate."""
    ends = time.monotonic() + deadline if deadline else float("inf")
    every, show = found.recordings, None if quiet else progress()
    left = [each for each in every if journal is None or each not in journal]
    if journal and len(left) < len(every) and not quiet:
        note(f"{journal.path}: {len(every) - len(left):,} of {len(every):,} recordings were judged before")
    done, held = len(every) - len(left), dict[str, bytes]()
    with closing(judge((each.name for each in left), how)) as judged:  # type: ignore[type-var]
        for each, rows in zip(left, judged, strict=True):
            done += 1
            if show:
                show(done, len(every), each.name, 0.0)
            if journal:
                journal.add(each, rows)
            else:
                held[each.name] = zlib.compress(rows.encode(), 1)
            if done < len(every) and time.monotonic() > ends:
                more = f"; the same command goes on from {journal.path}" if journal else ""
                raise TooLate(f"{done:,} of {len(every):,} recordings were judged within {deadline:g} s{more}")
    of = journal.rows if journal else lambda each: zlib.decompress(held[each.name]).decode()
    for each in every:
        account.claims(of(each))
    yield from (account.counted(of(each)) for each in every)
    yield from account.absent()


def _how(folders: tuple[Path, ...], policy_file: Path | None) -> tuple[How, str]:
    """By what is judged, and a digest of it. Raises RuleError or PolicyError."""
    from auditor.commands._auditing import read_policy
    from auditor.fleet import workers
    from auditor.judge import rule

    policy = read_policy(policy_file) if policy_file else None
    how = workers.How(
        tuple(str(each.absolute()) for each in folders), policy.text if policy else "", policy.path if policy else ""
    )
    rules = rule.digest(workers.chosen(how.folders, how.policy, how.policy_path).rules)
    return how, hashlib.sha256("\0".join((__version__, rules, how.policy, how.policy_path)).encode()).hexdigest()


def _expected(path: Path | None) -> tuple[str, ...]:
    """The hosts of an inventory. Raises InventoryError or OSError."""
    if path is None:
        return ()
    from auditor.fleet.inputs import InventoryError, inventory

    try:
        return inventory(user_files.read(path, INVENTORY).decode("utf-8", "replace"))
    except InventoryError as error:
        raise InventoryError(f"{path}: {error}") from None


# Where the rows of a fleet go: a file, standard output, or a URL; as lines of JSON or as Parquet.


def write(place: Path | str | None, blocks: Iterable[str]) -> None:
    """A file is written as a whole or not at all. Raises NoPlace, CannotWrite, NoStore or NoParquet."""
    from auditor.fleet import store

    def put(file: BinaryIO) -> None:
        if str(place).endswith(".parquet"):
            store.write(file, blocks)
        else:
            file.writelines(block.encode() for block in blocks)

    if place is None:
        sys.stdout.writelines(blocks)
        sys.stdout.flush()
    elif isinstance(place, str):
        with store.written(place) as file:
            put(file)
    else:
        user_files.replace(place, put)


def lines(places: Iterable[Path | str]) -> Iterator[bytes]:
    """The lines of files and URLs, one at a time. Raises OSError, NoStore, or BadRows for a line that no row is as long as."""
    from auditor.fleet.counting import BadRows

    for place in places:
        if str(place).endswith(".parquet"):
            raise BadRows(f"{place}: Parquet is for stores; the report reads lines of JSON (fleet judge -o FILE.jsonl)")
        for line in _of(place):
            if len(line) == LINE:
                raise BadRows(f"{place}: a line of more than {LINE >> 20} MiB is no row")
            yield line


def _of(place: Path | str) -> Iterator[bytes]:
    from auditor.fleet import store
    from auditor.fleet.counting import BadRows

    if isinstance(place, str):
        yield from store.lines(place, LINE)
        return
    with user_files.open_input(place) as file:
        if isinstance(file, int):
            raise BadRows(f"{place}: a folder; rows are in files")
        while line := file.readline(LINE):
            yield line


# ``--pages`` of ``zaudit fleet report``: where the pages of the hosts are.

HOST = "{host}"
WEB = ("https://", "http://")


def _link(said: str, page: Path | None) -> Callable[[str], str]:
    """The page of a host. said: what the option says: ``https://.../{host}`` or ``hosts/{host}.html``. page: the one of all
    hosts, beside which relative names are. Raises UsageError."""
    if said and (HOST not in said or said.startswith("/") or (":" in said and not said.startswith(WEB))):
        raise click.UsageError(f"--pages is a relative name, or begins with http:// or https://, and has {HOST} in it")
    beside = (page or Path("-")).parent

    def there(host: str) -> str:
        """Of a file only where it exists."""
        if said.startswith(WEB):
            return said.replace(HOST, quote(host, safe=""))
        name = said.replace(HOST, host)
        return quote(name) if said and "/" not in host and (beside / name).is_file() else ""

    return there
