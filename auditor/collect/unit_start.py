"""``systemctl show``: what the service of a database requires and runs before it starts, and which of the mounts below its
files systemd knows when the host starts.

A mount of ``zfs mount -a`` has a mount unit only once it is there (from /proc/self/mountinfo), and RequiresMountsFor= requires
none that has no file. One that a file makes (of zfs-mount-generator, of the generator for fstab, of the administrator) is
known before. Nothing is kept of what is run but the programs that are known here, and the path of the first other one.

(man 1 systemctl; man 5 systemd.unit, RequiresMountsFor=; man 5 org.freedesktop.systemd1; systemd src/core/mount.c
mount_setup_new_unit(), src/core/unit.c unit_add_mount_dependencies(), src/core/dbus-unit.c property_get_mounts_for(),
src/systemctl/systemctl-show.c, 257)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from auditor.facts import Fact, Facts, Known, MountedFrom, Subject, flag, known, rows_of, word, words
from auditor.host.request import Output, Run, Skip
from auditor.text import harmless, unit_escaped

PER = "database"
SUBJECT = "database"
FACTS = {
    "unit_starts": flag("another unit pulls its service in"),
    "unit_requires": words("units that its service requires, or is bound to"),
    "unit_bound": words("of these, those that it is bound to (BindsTo=, Requisite=)"),
    "unit_mounts_for": words("paths of which its service requires the mounts that systemd knows"),
    "unit_looks_at": words("paths that its service starts only where mountpoint(1) finds a mount there"),
    "unit_prepares": words("programs that lay out an empty directory, which its service runs first"),
    "unit_runs_else": word("another program that its service runs to start; empty: none"),
    "mount_files": words("mount units below its files that a file makes when the host starts"),
    "local_requires": words("units without which the host does not get to its services (local-fs.target)"),
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
_SERVERS = "etcd|mongod|redis-server|mysqld|mariadbd|postgres|postmaster|pg_ctl|pg_ctlcluster"
_GALERA = (
    r"(?:/usr)?/bin/(?:ba)?sh ; argv\[\]=\S+ -c "
    r"(?:systemctl unset-environment _WSREP_START_POSITION|(?:set -f; )?\[ ! -e /usr/bin/galera_recovery \] &&)"
)
_RUN = r"(?:/usr)?/bin/(?:install|mkdir|chown|chmod) ; argv\[\]=[\w./: -]* /(?:var/)?run/[\w./-]+ ; ignore_errors="
_BEFORE = (
    rf"{_RUN}|{_GALERA}|/usr/libexec/(?:mariadb|mysql)-check-socket ;|/[\w./+-]*/postgresql(?:-\d+)?-check-db-dir ;"
)
KEEP = rf"^$|^(?:{'|'.join(PLAIN)})=|^{_LOOKS}$|^{_PREPARES}$"
_OTHER = r"Exec(?:Condition|StartPre|Start)=(?:\{ path=(?P<program>/[\w./+-]{1,255}) ;)?"
FIRST = (
    rf"^(?!{_LOOKS}$|{_PREPARES}$|Exec(?:Condition|StartPre)=\{{ path=(?:{_BEFORE})"
    rf"|ExecStart=\{{ path=(?:/[\w./+-]*/(?:{_SERVERS}) ;|{_GALERA})){_OTHER}"
)
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s"]+)')
_ESCAPED = re.compile(r"\\(.)")


def request(database: Subject, facts: Facts) -> Run | Skip:
    """Of the service, of the mounts below its files, and of the target that comes before all services."""
    unit, places = facts.get(database, "unit"), facts.get(database, "mounted_from")
    if not isinstance(unit, Known):
        return Skip(unit.reasons[0].text, unit.reasons[0].remedy)
    if not unit.value:
        return Skip("no service of the host starts it", applies=False)
    if not isinstance(places, Known):
        return Skip(f"where its file systems are mounted is not known; {places.reasons[0].text}")
    points = dict.fromkeys(each.point for each in rows_of(places, MountedFrom))
    mounts = [mount_unit(each) for each in points if each != "/"]
    if len(mounts) > MOST or any(len(each) > 255 or each.startswith("-") for each in mounts):
        return Skip(f"{len(mounts)} mounts below its files, or one with a name of which systemd makes another")
    return Run(
        ("systemctl", "show", PROPERTIES, str(unit.value), LOCAL, *mounts), package="systemd", keep=KEEP, first=FIRST
    )


def mount_unit(point: str) -> str:
    """The name of the unit of a mount point. (man 5 systemd.mount; systemd unit_name_path_escape())"""
    return f"{unit_escaped(point.strip('/'))}.mount"


def parse(reply: Output, database: Subject) -> Iterator[Fact]:
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
