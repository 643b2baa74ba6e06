"""The database servers that run here, and what the kernel says of each. (man 5 proc_pid_stat)

``/proc/*/stat`` shows which run: a server that forks a process for each client is the one whose parent is no such process.
Any user may start a thousand processes with the name of a server, so :func:`choose` has a quota for each user, and none crowds
out the server of another. The oldest come first: a real server seldom starts after its imitations. Of a user with more
processes than that, only those count whose program is a server's, as far as that can be seen. The rest is one database for
each user and name, of which nothing is known: it stays unknown, and is not left out.

``/proc/PID`` shows where a server was told to find its data, and whether a library ignores its flushes. Some servers change
to their data directory when they start.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from auditor.databases import ENGINES, SERVERS, configuration
from auditor.databases.configuration import ELSEWHERE
from auditor.databases.engine import DOUBT, WITHHELD
from auditor.databases.paths import MountedFrom
from auditor.facts import HOST, Evidence, Fact, Facts, Known, Spec, Subject, Unknown, known, unknown
from auditor.host import request as host_request
from auditor.host.request import UNANSWERED, Command, Files, Output, Read, Run, Skip
from auditor.sources.source import source
from auditor.sources.units import show
from auditor.text import harmless, unit_escaped

PROCESSES_FACTS = {
    "database_processes": Spec.links("database", "database servers that run, or that the user named"),
    "server_processes": Spec.words("NUMBER NAME START of each process, where they are too many to look at each"),
    "database.engine": Spec.word("which server it is", *(each.name for each in SERVERS.values())),
    "database.process": Spec.word("its process number, or self where it does not run"),
}
_STAT = re.compile(r"/proc/\d+/stat")
LATEST = str(1 << 62)


@source("database_processes", "host", ask=Read(("/proc/*/stat",)), facts=PROCESSES_FACTS)
def database_processes(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where process 1 is not shown: then others are hidden, too (proc mounted with hidepid)."""
    processes = {}
    for path, text in reply.text.items():
        if path.removeprefix("/proc/").removesuffix("/stat").isdigit():
            number, _, rest = text.partition(" (")
            name, _, rest = rest.rpartition(") ")  # which may hold any character
            fields = rest.split(" ")
            if len(fields) < 3 or not (number.isdecimal() and fields[1].isdecimal() and text.endswith("\n")):
                raise ValueError(f"{path} is cut off")
            if path != f"/proc/{number}/stat":
                raise ValueError(f"{path} is that of another process")
            processes[number] = name, fields[1]
    for path, error in reply.errors.items():  # without its parent a child looks like a server; one that ended is none
        if _STAT.fullmatch(path) and not error.startswith("no such"):
            number = path.split("/")[2]
            processes[number] = _named(reply, number), ""
    if "1" not in processes:
        why = "permission denied" if processes else reply.errors.get("/proc/*/stat", "was not read")
        raise ValueError(f"/proc/1/stat: {why}")
    servers = [
        (number, name)
        for number, (name, parent) in sorted(processes.items(), key=lambda each: int(each[0]))
        if name in SERVERS and processes.get(parent, ("", ""))[0] != name
    ]
    command = f"pgrep -x '{'|'.join(SERVERS)}'"
    if len(servers) > host_request.SERVERS_OF_A_USER:
        each_of = tuple(f"{number} {name} {_start(reply, number)}" for number, name in servers)
        text = f"{len(servers):,} processes have the name of a database server"
        yield Fact(HOST, "server_processes", known(each_of, text, command))
        return
    subjects = []
    for number, name in servers:
        subjects.append(Subject("database", f"{SERVERS[name].name} {number}"))
        yield from _server_facts(subjects[-1], number, name)
    text = ", ".join(each.name for each in subjects) or "no database server runs"
    yield Fact(HOST, "database_processes", known(tuple(subjects), text, command))


def _named(reply: Files, number: str) -> str:
    """Which server a process is, if any, that lets nobody read its line: it counts as one, whatever its parent is. Raises
    ValueError where that was not asked."""
    status = reply.text.get(f"/proc/{number}/status")
    if status is None or not reply.errors[f"/proc/{number}/stat"].startswith(UNANSWERED):
        raise ValueError(f"/proc/{number}/stat: {reply.errors[f'/proc/{number}/stat']}")
    return next((name for name in SERVERS if f"Name:\t{name}\n" in status), "")


def _start(reply: Files, number: str) -> str:
    """When a process started, in ticks since the machine did: its 22nd field, the 20th after its name. One that does not say
    stands behind those that do."""
    if f"/proc/{number}/stat" not in reply.text:
        return LATEST
    fields = reply.text[f"/proc/{number}/stat"].rpartition(") ")[2].split()
    if len(fields) < 20 or not fields[19].isdecimal():
        raise ValueError(f"/proc/{number}/stat is cut off")
    return fields[19]


PROCESS_FACTS = {
    "arguments": Spec.words("its command line, without the name: the options that zaudit knows"),
    "arguments_bytes": Spec.number("how long they were together, each with its end, where a title replaces them"),
    "variables": Spec.words("of its environment, those that say where its files are"),
    "program": Spec.word("the path of its executable, as it sees it"),
    "data_directory": Spec.word("where its data lies, as it sees it"),
    "eatmydata": Spec.flag("a library that turns fsync into nothing is loaded into it"),
}


def request_process(database: Subject, facts: Facts) -> Read | Skip:
    process = database.name.partition(" ")[2]
    if process == ELSEWHERE:
        return Skip("it is not one of the processes that are seen here")
    if not process.isdigit():
        return Skip("it does not run", applies=False)
    return Read(tuple(f"/proc/{process}/{name}" for name in ("cmdline", "cwd", "environ", "exe", "maps")))


# a server that is asked says what it uses itself
@source("database_process", "database", ask=request_process, facts=PROCESS_FACTS, after=("database_sql",))
def database_process(reply: Files, database: Subject) -> Iterator[Fact]:
    """maps, cwd and environ are only for root and the user that it runs as."""
    name, _, process = database.name.partition(" ")
    engine = ENGINES[name]
    here = f"/proc/{process}/"
    found: list[tuple[str, str]] = []
    cwd = reply.links.get(here + "cwd", "")
    if engine.at_home and cwd and not cwd.endswith(" (deleted)"):
        found.append((cwd, "cwd"))
    if program := reply.links.get(here + "exe"):
        yield Fact(database, "program", known(program.removesuffix(" (deleted)"), program, f"ls -l {here}exe"))
    line = reply.text.get(here + "cmdline")
    if line is not None:
        if not line.endswith("\0"):  # of a postmaster that has set its title, too
            raise ValueError(f"{here}cmdline is cut off")
        given = configuration.arguments(engine, line)
        arguments = (WITHHELD,) if given is None else tuple(each.text for each in given)
        shown = known(arguments, " ".join(arguments) or "no arguments", f"tr '\\0' ' ' <{here}cmdline")
        yield Fact(database, "arguments", shown)
        if given == [] and engine.units:
            # a title is written over its name and them, and NUL bytes over the rest
            size = len(line) - len(line.partition("\0")[0].partition(" ")[0]) - 1
            yield Fact(
                database, "arguments_bytes", known(size, f"{size} bytes behind its name", f"wc -c {here}cmdline")
            )
        if given is None or DOUBT in given:
            found.append((WITHHELD, "cmdline"))
        options = {each.name: each.value for each in given or ()}
        found += [(options[name], "cmdline") for name in engine.data_options if name in options]
    if here + "environ" in reply.text:
        pairs = configuration.environment(reply.text[here + "environ"])
        variables = tuple(f"{name}={value}" for name, value in pairs)
        shown = known(variables, " ".join(variables), f"tr '\\0' '\\n' <{here}environ")
        yield Fact(database, "variables", shown)
        found += [(value, "environ") for name, value in pairs if name == engine.data_variable]
    told = [(path, source) for path, source in found if path.startswith("/") or path == WITHHELD]
    if told and told[0][0] != WITHHELD:
        path, source = told[0]
        yield Fact(database, "data_directory", known(path.rstrip("/") or "/", path, f"ls -l {here}{source}"))
    if maps := reply.text.get(here + "maps", ""):
        loaded = [each for each in maps.splitlines() if "libeatmydata" in each]
        text = f"{loaded[0]} is loaded" if loaded else "libeatmydata is not loaded"
        yield Fact(database, "eatmydata", Known(bool(loaded), (Evidence(text, f"grep libeatmydata {here}maps"),)))


PROVIDES = {"database.unexamined": Spec.number("how many processes it stands for; none was looked at")}
GROUPS = 10  # that are distinguished; users of whom there are more than that are one
OTHERS = "others"
NAMES = tuple(each.partition("-")[0] for each in SERVERS)  # Debian's redis-server is a link to redis-check-rdb


class Server(NamedTuple):
    """A process with the name of a server. start: in ticks of the kernel. foreign: its program has the name of none."""

    process: str
    name: str
    start: int
    user: str
    foreign: bool


def choose(facts: Facts, read: Callable[[Read], Files]) -> Mapping[Subject, Unknown]:
    """Make databases of the processes that ``database_processes`` saw, where it left that to be done; those that stand for
    many, and why nothing is known of them."""
    seen = facts.get(HOST, "server_processes")
    if not isinstance(seen, Known) or not isinstance(seen.value, tuple):
        return {}
    asked = {each.name.partition(" ")[2] for each in facts.linked(HOST, "connected_database")}
    servers = _servers([str(each).split(" ") for each in seen.value], read)
    servers.sort(key=lambda each: (each.process not in asked, each.start, int(each.process)))
    every = Counter(each.user for each in servers)
    chosen: list[Server] = []
    of_user: Counter[str] = Counter()
    rest: Counter[tuple[str, str]] = Counter()  # by name and user
    for each in servers:
        crowded = len(chosen) >= host_request.SERVERS or of_user[each.user] >= host_request.SERVERS_OF_A_USER
        doubtful = each.foreign and every[each.user] > host_request.SERVERS_OF_A_USER
        if each.process in asked or not (crowded or doubtful):
            of_user[each.user] += 1
            chosen.append(each)
        else:
            rest[each.name, each.user] += 1
    subjects = list[Subject]()
    for each in sorted(chosen, key=lambda each: int(each.process)):
        subjects.append(Subject("database", f"{SERVERS[each.name].name} {each.process}"))
        facts.put_all(_server_facts(subjects[-1], each.process, each.name))
    groups = dict(_group(facts, name, user, count) for (name, user), count in _merged(rest).items())
    facts.put(Fact(HOST, "database_processes", Known((*subjects, *groups), seen.evidence)))
    return groups


def _servers(processes: list[list[str]], read: Callable[[Read], Files]) -> list[Server]:
    said = read(Read(tuple(f"/proc/{process}/{file}" for process, _, _ in processes for file in ("status", "exe"))))
    found = []
    for process, name, start in processes:
        users = said.text.get(f"/proc/{process}/status", "").partition("Uid:")[2].split()
        program = said.links.get(f"/proc/{process}/exe", "").removesuffix(" (deleted)").rpartition("/")[2]
        foreign = bool(program) and not program.startswith(NAMES)
        found.append(Server(process, name, int(start), users[0] if users else "unknown", foreign))
    return found


def _merged(rest: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """No more groups than a reader may look through."""
    ordered = sorted(rest.items(), key=lambda each: (-each[1], each[0]))
    merged = Counter(dict(ordered[:GROUPS]))
    for (name, _), count in ordered[GROUPS:]:
        merged[name, OTHERS] += count
    return merged


def _server_facts(subject: Subject, process: str, name: str) -> Iterator[Fact]:
    yield Fact(subject, "engine", known(SERVERS[name].name, f"process {process} is {name}", f"ps {process}"))
    yield Fact(subject, "process", known(process, f"process {process}", f"ps {process}"))


def _group(facts: Facts, name: str, user: str, count: int) -> tuple[Subject, Unknown]:
    whose = "other users" if user == OTHERS else f"user {harmless(user)}"
    text = f"{count:,} processes of {whose} that call themselves {name}"
    subject = Subject("database", f"{SERVERS[name].name} of {whose}")
    facts.put(Fact(subject, "engine", Known(SERVERS[name].name, (Evidence(text, f"pgrep -x {name}"),))))
    facts.put(Fact(subject, "unexamined", Known(count, (Evidence(text, f"pgrep -x {name}"),))))
    return subject, unknown(f"{text} were not looked at one by one")


# The service of a database server: which one it belongs to, what systemd starts and requires for it, and which mounts below its
# files systemd knows when the host starts.
#
# ``/proc/PID/cgroup``: systemd names the control groups of its units after them, below slices; the first folder that is no
# slice is the unit. Below a unit of its own user manager (user.slice) a user names them as he likes, and so does a container
# (machine.slice, or none of systemd's at all): these say nothing of the host's services. (man 7 cgroups; systemd
# src/basic/cgroup-util.c, cg_path_decode_unit() and skip_slices(), 257)
#
# ``systemctl show``: a mount of ``zfs mount -a`` has a mount unit only once it is there (from /proc/self/mountinfo), and
# RequiresMountsFor= requires none that has no file. One that a file makes (of zfs-mount-generator, of the generator for fstab,
# of the administrator) is known before. Of what is run, only the programs that are known here are kept, and the path of the
# first other one. (man 1 systemctl; man 5 systemd.unit, RequiresMountsFor=; man 5 org.freedesktop.systemd1; systemd
# src/core/mount.c mount_setup_new_unit(), src/core/unit.c unit_add_mount_dependencies(), src/core/dbus-unit.c
# property_get_mounts_for(), src/systemctl/systemctl-show.c, 257)
#
# ``busctl get-property``: conditions and assertions, for which ``systemctl show`` has no form. (man 1 busctl; systemd
# src/core/dbus-unit.c property_get_conditions(), src/busctl/busctl.c format_cmdline(), src/basic/bus-label.c, 257)

UNIT_FACTS = {"unit": Spec.word("the service of the host's systemd that it belongs to; empty: none")}
OTHER_SLICES = ("user.slice", "machine.slice")  # of users, and of containers
UNIT = re.compile(r"[\w@.:\\-]{1,247}\.service", re.ASCII)  # 255 with its end
_HIERARCHIES = ("name=systemd", "")  # of systemd next to those of controllers, or the only one


def request_unit(database: Subject, facts: Facts) -> Read | Skip:
    process = database.name.partition(" ")[2]
    if not process.isdigit():
        return Skip("it is no process that is seen here", applies=False)
    return Read((f"/proc/{process}/cgroup",))


@source("database_unit", "database", ask=request_unit, facts=UNIT_FACTS)
def database_unit(reply: Files, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where the line of systemd's hierarchy is missing, or names no place below the root."""
    path = f"/proc/{database.name.partition(' ')[2]}/cgroup"
    if path not in reply.text:
        raise ValueError(f"{path}: {reply.errors.get(path, 'was not read')}")
    rows = [line.split(":", 2) for line in reply.lines(path)]
    groups = {row[1]: row[2] for row in rows if len(row) == 3}
    group = next((groups[each] for each in _HIERARCHIES if each in groups), "")
    if not group.startswith("/"):
        raise ValueError(f"{path}: no line of systemd's hierarchy")
    if ".." in group.split("/") or group.endswith(" (deleted)"):
        raise ValueError(f"{path}: {harmless(group[:200])} is no control group that is seen from here")
    unit = _unit(group)
    text = f"in {harmless(group[:200])}"
    yield Fact(database, "unit", known(unit, text if unit else f"{text}: no service of the host", f"cat {path}"))


def _unit(group: str) -> str:
    """The service of a control group; empty where it is none of the host's. Raises ValueError for a name that is none."""
    parts = group.split("/")[1:]
    slices = [each for each in parts if each.endswith(".slice")]
    if not slices or parts[0] != slices[0] or parts[0] in OTHER_SLICES:
        return ""
    first = next((each for each in parts if not each.endswith(".slice")), "").removeprefix("_")
    if not first.endswith(".service"):
        return ""
    if not UNIT.fullmatch(first) or first.startswith("-"):
        raise ValueError(f"{harmless(first[:100])} is no name of a service")
    return first


START_FACTS = {
    "unit_starts": Spec.flag("another unit pulls its service in"),
    "unit_requires": Spec.words("units that its service requires, or is bound to"),
    "unit_bound": Spec.words("of these, those that it is bound to (BindsTo=, Requisite=)"),
    "unit_mounts_for": Spec.words("paths whose mounts, as systemd knows them, its service requires"),
    "unit_looks_at": Spec.words("paths that its service starts only where mountpoint(1) finds a mount there"),
    "unit_prepares": Spec.words("programs that lay out an empty directory, which its service runs first"),
    "unit_runs_else": Spec.word("another program that its service runs to start; empty: none"),
    "mount_files": Spec.words("mount units below its files that a file makes when the host starts"),
    "local_requires": Spec.words("units without which the host does not get to its services (local-fs.target)"),
}
LOCAL = "local-fs.target"
MOST = 50  # mount points of one database
PULLED = ("WantedBy", "RequiredBy", "BoundBy", "TriggeredBy")
PLAIN = (
    *("Id", "LoadState", "FragmentPath", "MainPID", "NeedDaemonReload", *PULLED),
    *("Requires", "Requisite", "BindsTo", "RequiresMountsFor"),
)
PROPERTIES = f"--property={','.join((*PLAIN, 'ExecCondition', 'ExecStartPre', 'ExecStart'))}"
LASTING = ("/etc/systemd/", "/usr/lib/systemd/", "/lib/systemd/", "/usr/local/lib/systemd/", "/run/systemd/generator")
_ARGUMENTS = r"[\w./@:$%{}=+ -]*"
_LOOKS = (
    r"Exec(?:Condition|StartPre)=\{ path=(?:/usr)?/bin/mountpoint ; argv\[\]=\S+(?: (?:-q|--quiet|--nofollow))*"
    r" (?P<path>/[\w./:@+-]+) ; ignore_errors=no ;[^{}]*\}"
)
_PREPARES = (
    r"ExecStartPre=\{ path=(?P<lays>/[\w./+-]*/(?:(?:mariadb|mysql)-prepare-db-dir|mysqld_pre_systemd"
    rf"|mariadb-install-db|mysql_install_db)) ; argv\[\]={_ARGUMENTS} ; ignore_errors=[^{{}}]*\}}"
)
# what the packages of databases have, and that looks at no mount
_SERVERS = "|".join(name for each in ENGINES.values() for name in (*each.processes, *each.starters))
_GALERA = (
    r"(?:/usr)?/bin/(?:ba)?sh ; argv\[\]=\S+ -c "
    r"(?:systemctl unset-environment _WSREP_START_POSITION|(?:set -f; )?\[ ! -e /usr/bin/galera_recovery \] &&)"
)
_RUN = r"(?:/usr)?/bin/(?:install|mkdir|chown|chmod) ; argv\[\]=[\w./: -]* /(?:var/)?run/[\w./-]+ ; ignore_errors="
_BEFORE = "|".join(dict.fromkeys((_RUN, _GALERA, *(each for engine in ENGINES.values() for each in engine.before))))
KEEP = rf"^$|^(?:{'|'.join(PLAIN)})=|^{_LOOKS}$|^{_PREPARES}$"
_OTHER = r"Exec(?:Condition|StartPre|Start)=(?:\{ path=(?P<program>/[\w./+-]{1,255}) ;)?"
FIRST = (
    rf"^(?!{_LOOKS}$|{_PREPARES}$|Exec(?:Condition|StartPre)=\{{ path=(?:{_BEFORE})"
    rf"|ExecStart=\{{ path=(?:/[\w./+-]*/(?:{_SERVERS}) ;|{_GALERA})){_OTHER}"
)
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s"]+)')
_ESCAPED = re.compile(r"\\(.)")


def request_start(database: Subject, facts: Facts) -> Run | Skip:
    """Of the service, of the mounts below its files, and of the target that comes before all services."""
    unit, places = facts.get(database, "unit"), facts.get(database, "mounted_from")
    if not isinstance(unit, Known):
        return Skip(unit.reasons[0].text, unit.reasons[0].remedy)
    if not unit.value:
        return Skip("no service of the host starts it", applies=False)
    if not isinstance(places, Known):
        return Skip(f"where its file systems are mounted is not known; {places.reasons[0].text}")
    points = dict.fromkeys(each.point for each in places.rows(MountedFrom))
    mounts = [mount_unit(each) for each in points if each != "/"]
    if len(mounts) > MOST or any(len(each) > 255 or each.startswith("-") for each in mounts):
        return Skip(f"{len(mounts)} mounts below its files, or one with a name of which systemd makes another")
    return Run(
        ("systemctl", "show", PROPERTIES, str(unit.value), LOCAL, *mounts), package="systemd", keep=KEEP, first=FIRST
    )


def mount_unit(point: str) -> str:
    """The name of the unit of a mount point. (man 5 systemd.mount; systemd unit_name_path_escape())"""
    return f"{unit_escaped(point.strip('/'))}.mount"


@source(
    "unit_start",
    "database",
    ask=request_start,
    runs=(show(PROPERTIES, LOCAL, others=r"\A[\w.:\\@][\w.:\\@-]*\.(?:service|mount)"),),
    facts=START_FACTS,
)
def unit_start(reply: Output, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where the process is not the one that the service is about, or the service on disk is another one."""
    first, *others = [_block(text) for text in reply.text.rstrip("\n").split("\n\n")]
    unit, process = first.get("Id", ""), database.name.partition(" ")[2]
    if not unit.endswith(".service") or first.get("LoadState") != "loaded":
        raise ValueError(f"systemd has no such service loaded: {harmless(unit)}")
    if first.get("MainPID") != process:  # a job of cron belongs to the service of cron
        raise ValueError(f"process {process} is not the main process of {unit}")
    if first.get("NeedDaemonReload") != "no":
        raise ValueError(f"{unit} on disk is not the one that is loaded (systemctl daemon-reload)")
    named = {each.get("Id", ""): each for each in others}
    if LOCAL not in named or len(named) < len(others):
        raise ValueError(f"nothing was said of {LOCAL}")
    command = f"systemctl show {unit}"
    pulled = [each for name in PULLED for each in _words(first, name)]
    text = f"{unit} is pulled in by {', '.join(pulled)}" if pulled else f"nothing pulls {unit} in"
    yield Fact(database, "unit_starts", known(bool(pulled), text, command))
    bound = tuple(sorted({each for name in ("Requisite", "BindsTo") for each in _words(first, name)}))
    required = tuple(sorted({*_words(first, "Requires"), *bound}))
    paths = tuple(sorted(_words(first, "RequiresMountsFor")))
    looks, prepares, other = _runs(reply.text)
    kept = tuple(
        sorted(
            name
            for name, each in named.items()
            if name.endswith(".mount")
            and each.get("LoadState") == "loaded"
            and each.get("FragmentPath", "").startswith(LASTING)
        )
    )
    for name, value, said in (
        ("unit_requires", required, f"Requires={' '.join(required)}"),
        ("unit_bound", bound, f"BindsTo={' '.join(bound)}"),
        ("unit_mounts_for", paths, f"RequiresMountsFor={' '.join(paths)}"),
        ("unit_looks_at", looks, f"ExecStartPre=mountpoint {' '.join(looks)}"),
        ("unit_prepares", prepares, f"ExecStartPre={' '.join(prepares) or 'nothing that lays out a directory'}"),
        ("unit_runs_else", other, f"it runs {other}" if other else "it runs no other program to start"),
        ("mount_files", kept, f"units with a file: {' '.join(kept) or 'none of its mounts'}"),
    ):
        yield Fact(database, name, known(value, f"{unit}: {said}", command))
    local = tuple(sorted({*_words(named[LOCAL], "Requires"), *_words(named[LOCAL], "BindsTo")}))
    yield Fact(
        database, "local_requires", known(local, f"{LOCAL}: Requires={' '.join(local)}", f"systemctl show {LOCAL}")
    )


def _block(text: str) -> dict[str, str]:
    """PROPERTY: VALUE of one unit, of those that have one value. Raises ValueError where one was told twice: the end of a line
    within what is run looks like that of a property."""
    pairs = [
        (name, value)
        for name, mark, value in (line.partition("=") for line in text.split("\n"))
        if name in PLAIN and mark
    ]
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a property of {harmless(found.get('Id', ''))} was told twice")
    return found


def _words(block: Mapping[str, str], name: str) -> list[str]:
    """Of a list: what the shell would quote stands in double quotes, with backslashes. Raises ValueError where it was not
    told: that it is not there does not say that it is empty."""
    if name not in block:
        raise ValueError(f"{name} was not told")
    value = block[name]
    if rest := _WORD.sub("", value).strip(" "):
        raise ValueError(f"{name} is no list: {harmless(rest[:40])}")
    return [_ESCAPED.sub(r"\1", each[1]) if each[2] is None else each[2] for each in _WORD.finditer(value)]


def _runs(text: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """The paths that mountpoint(1) is asked about, the programs that lay out a directory, and another program."""
    lines = [each for each in text.split("\n") if each.startswith("Exec")]
    looks = tuple(found["path"].rstrip("/") for each in lines if (found := re.fullmatch(_LOOKS, each)))
    prepares = tuple(found["lays"] for each in lines if (found := re.fullmatch(_PREPARES, each)))
    other = next((found["program"] or "something" for each in lines if (found := re.match(FIRST, each))), "")
    return looks, prepares, other


CONDITIONS_FACTS = {
    "unit_conditions": Spec.words(
        "KIND=PATH of its conditions and assertions about paths; | before one of several of which one is enough, ! where it is"
        " turned round"
    )
}
MANAGER = "org.freedesktop.systemd1"
UNITS = "/org/freedesktop/systemd1/unit/"
ASKED = ("Conditions", "Asserts")
_LIST = re.compile(r"a\(sbbsi\) (\d{1,6})((?: .*)?)")
_ONE = re.compile(r' "(\w+)" (true|false) (true|false) "((?:[^"\\]|\\.)*)" -?\d+')
_ABOUT = re.compile(r"(?:Condition|Assert)(?:Path|Directory|File)\w*")
_CHAR = re.compile(r"\\([0-7]{3}|.)")
_LETTERS = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def request_conditions(database: Subject, facts: Facts) -> Run | Skip:
    unit = facts.get(database, "unit")
    if not isinstance(unit, Known):
        return Skip(unit.reasons[0].text, unit.reasons[0].remedy)
    if not unit.value:
        return Skip("no service of the host starts it", applies=False)
    path = UNITS + label(str(unit.value))
    return Run(("busctl", "get-property", MANAGER, path, f"{MANAGER}.Unit", *ASKED), package="systemd")


def label(name: str) -> str:
    """A name as a part of a path on the bus."""
    return "".join(
        char if char.isascii() and (char.isalpha() or (char.isdigit() and i)) else f"_{ord(char):02x}"
        for i, char in enumerate(name)
    )


_BUS = ("busctl", "get-property", MANAGER)


@source(
    "unit_conditions",
    "database",
    ask=request_conditions,
    runs=(Command(_BUS, frozenset({f"{MANAGER}.Unit", *ASKED}), re.compile(rf"{UNITS}\w+", re.ASCII)),),
    facts=CONDITIONS_FACTS,
)
def unit_conditions(reply: Output, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where a list is cut off."""
    lines = reply.text.removesuffix("\n").split("\n")
    if len(lines) != len(ASKED):
        raise ValueError("not one line for each property")
    found: list[str] = []
    for line in lines:
        head = _LIST.fullmatch(line)
        rows = list(_ONE.finditer(head[2])) if head else []
        if not head or len(rows) != int(head[1]) or "".join(row[0] for row in rows) != head[2]:
            raise ValueError("a line that is no list of conditions")
        several = sum(row[2] == "true" for row in rows) > 1
        for row in rows:
            if _ABOUT.fullmatch(row[1]):
                path = _CHAR.sub(_meant, row[4]).encode("latin-1").decode("utf-8", "surrogateescape")
                or_, not_ = "|" if row[2] == "true" and several else "", "!" if row[3] == "true" else ""
                found.append(f"{or_}{not_}{row[1]}={path}")
    yield Fact(
        database, "unit_conditions", known(tuple(found), ", ".join(found) or "no condition about a path", reply.command)
    )


def _meant(found: re.Match[str]) -> str:
    return chr(int(found[1], 8) & 0xFF) if len(found[1]) == 3 else _LETTERS.get(found[1], found[1])
