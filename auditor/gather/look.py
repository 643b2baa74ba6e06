"""One look at a host: everything that is asked, and the facts that the answers give. Nothing is judged here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from auditor.databases import ENGINES
from auditor.errors import EXIT_NOTHING, Stop
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, known, unknown
from auditor.gather import pool_lists, targets, walk
from auditor.gather.gatherer import Gatherer, Progress
from auditor.host import sql
from auditor.host.live import Host
from auditor.sources.source import Source

# As root these would load the module (libzfs_core_init() of lib/libzfs_core), and zaudit changes nothing
LOADERS = frozenset({"zfs", "zpool", "zdb"})


class NothingToAudit(Stop):
    """No ZFS here, no pool, or no such target; the text says which and what is there instead. facts: of the host, where no
    pool was named and none is imported, so that they may tell why; else None."""

    exit_code = EXIT_NOTHING

    def __init__(self, text: str, facts: Facts | None = None) -> None:
        super().__init__(text)
        self.facts = facts


class DatabaseError(Stop):
    """``--db`` that is not understood; the text repeats no DSN."""


class LookOptions(NamedTuple):
    """What changes the questions. consistent: read the dataset properties in one transaction group. database: what will run
    there (its page size decides a rule), or empty; directory: of its data, where it does not run; connection: to ask the
    server itself."""

    consistent: bool = False
    database: str = ""
    directory: str = ""
    connection: str = ""

    def words(self) -> dict[str, str]:
        """For a recording."""
        words = {"consistent": "yes" if self.consistent else "no", "database": self.database}
        if self.directory:
            words["directory"] = self.directory
        if self.connection:
            words["connection"] = self.connection
        return words

    def with_database(self, said: str) -> LookOptions:
        """The same with what ``--db NAME[=DIR|DSN]`` says. Raises DatabaseError."""
        name, equals, place = said.partition("=")
        if name not in ENGINES or (equals and not place) or (place.startswith("/") and name == "sqlite"):
            raise DatabaseError(
                f"--db {name}: NAME is one of {', '.join(ENGINES)}; DIR is an absolute path, not of SQLite"
            )
        if not place or place.startswith("/"):
            return self._replace(database=name, directory=place.rstrip("/") or place, connection="")
        if name not in sql.DRIVERS:
            raise DatabaseError(
                f"--db {name}=...: DIR is an absolute path; a DSN goes with {', '.join(sql.DRIVERS)} only"
            )
        if "=" not in place and "://" not in place:
            raise DatabaseError(f"--db {name}=...: neither an absolute path nor a DSN (a URI or key=value)")
        if fault := sql.fault(name, place):
            raise DatabaseError(f"--db {name}=...: {fault}")
        return self._replace(database=name, directory="", connection=place)


class Gathered(NamedTuple):
    """The facts, and the datasets that the targets meant. unasked: today's questions that a recording did not know."""

    facts: Facts
    roots: tuple[Subject, ...]
    unasked: tuple[str, ...]


def gather(
    host: Host,
    names: Sequence[str],
    wanted: LookOptions,
    sources: Mapping[str, Source],
    progress: Progress | None = None,
) -> Gathered:
    """Ask a host everything that there is to ask about these targets. Raises NothingToAudit."""
    facts, inventory = Facts(host.now), Facts(host.now)
    facts.put_all(_given(wanted))
    gatherer = Gatherer(host, sources, progress)
    try:
        walk.read_host(gatherer, facts, inventory)
        loaded = _loaded(gatherer, facts)
        facts.put(Fact(HOST, "zfs_loaded", loaded))
        why = loaded.evidence[0].text if isinstance(loaded, Known) and not loaded.value else ""
        if why:
            if names:
                raise NothingToAudit(why)
            gatherer.withhold(LOADERS, why)
        walk.ask_host(gatherer, facts)
        roots, imported = _roots(gatherer, facts, inventory, host, names)
        if not roots:
            walk.look_at_pools(gatherer, facts, inventory, roots)
            raise NothingToAudit(why or "no pool is imported", facts)
        walk.look_at_pools(gatherer, facts, inventory, roots, imported)
        for root in roots:
            targets.must_exist(host, root, gatherer.failure("zfs_list", root))
    except targets.TargetError as error:
        raise NothingToAudit(str(error)) from None
    finally:
        gatherer.close()
    return Gathered(facts, roots, gatherer.unasked)


def _given(wanted: LookOptions) -> list[Fact]:
    """What the command line says of the host."""
    named = f"--db {wanted.database}={wanted.connection}" if wanted.connection else ""
    # of a server that is asked itself it will be seen which datasets are its own
    everywhere = "" if wanted.connection else wanted.database
    where = f"--db {wanted.database}={wanted.directory}" if wanted.directory else ""
    return [
        Fact(HOST, "consistent", known(wanted.consistent, "--consistent" if wanted.consistent else "")),
        Fact(HOST, "database", known(everywhere, f"--db {everywhere}" if everywhere else "")),
        Fact(HOST, "connected_engine", known(wanted.database if wanted.connection else "", named)),
        Fact(HOST, "database_directory", known(wanted.directory, where)),
        Fact(HOST, "database_connection", known(wanted.connection, named)),
    ]


def _roots(
    gatherer: Gatherer, facts: Facts, inventory: Facts, host: Host, names: Sequence[str]
) -> tuple[tuple[Subject, ...], Sequence[str]]:
    """The datasets that the names mean, the root dataset of every imported pool when there are none; and all imported pools,
    as far as they can be listed."""
    gatherer.settle(facts, ["zpool_list", "zfs_version", "zfs_userland"])
    pools = pool_lists.imported(facts)
    if not names:
        if pools is None and not gatherer.withheld:
            raise NothingToAudit(f"no pool can be listed: {_why(gatherer)}")
        names = pools or ()
    held = partial(walk.held, gatherer, facts, inventory)
    return tuple(
        sorted({each for name in names for each in targets.resolve(host, name, pools, held, facts)})
    ), pools or ()


def _why(gatherer: Gatherer) -> str:
    """Why zpool list says nothing."""
    failure = gatherer.failure("zpool_list", HOST)
    return "; ".join(reason.text for reason in failure.reasons) if failure else "zpool list names none"


def _loaded(gatherer: Gatherer, facts: Facts) -> Judged:
    """Is the module of OpenZFS loaded? Where it is not, the text of the evidence is the whole sentence."""
    for name in ("zfs_version", "zfs_txg_timeout"):
        if isinstance(fact := facts.get(HOST, name), Known):
            return Known(True, fact.evidence)
    module = gatherer.failure("zfs_version", HOST) or unknown("it was not looked for")
    pools = isinstance(facts.get(HOST, "kstat_pools"), Known)  # a folder of the module, and so of one that is loaded
    if pools or not any("no such file" in reason.text for reason in module.reasons):
        return module
    why = "; ".join(reason.text for reason in module.reasons if "/zfs/" in reason.text)
    return known(False, f"OpenZFS is not loaded here ({why})")
