"""``zfs``: datasets, their properties, and the release. (man 8 zfs-get, man 7 zfsprops)"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from functools import cache, lru_cache, partial

from auditor.data import releases
from auditor.facts import HOST, Fact, Facts, Known, Spec, Subject, is_true, known
from auditor.host import builtin
from auditor.host.request import ANY, NAME, WITNESS, Command, Files, Output, Read, Request, Run, Skip, command
from auditor.host.request import PROPERTIES as LISTED
from auditor.sources.source import integer, source

PROPERTIES: dict[str, Spec] = {
    "type": Spec.word("file system or zvol", "filesystem", "volume"),
    "creation": Spec.number("when it was created, seconds since the epoch"),
    "sync": Spec.word("what fsync and O_SYNC do", "standard", "always", "disabled"),
    "logbias": Spec.word("what the ZIL optimises for", "latency", "throughput"),
    "recordsize": Spec.number("largest block of a file, bytes"),
    "volblocksize": Spec.number("block of a zvol, bytes"),
    "volsize": Spec.number("logical size of a zvol, bytes"),
    "primarycache": Spec.word("what the ARC keeps", "all", "none", "metadata"),
    "secondarycache": Spec.word("what the L2ARC keeps", "all", "none", "metadata"),
    "checksum": Spec.word("on, off or the algorithm"),
    "compression": Spec.word("on, off or the algorithm"),
    "dedup": Spec.word("off, on, verify or the algorithm"),
    "copies": Spec.number("copies of each block"),
    "atime": Spec.word("whether reads update the access time", "on", "off"),
    "relatime": Spec.word("whether they do so at most once a day", "on", "off"),
    "redundant_metadata": Spec.word("which metadata is stored twice", "all", "most", "some", "none"),
    "special_small_blocks": Spec.number("blocks up to this size go to the special class, bytes; 0 is none"),
    "quota": Spec.number("limit with descendants, bytes; 0 is none"),
    "refquota": Spec.number("limit without descendants, bytes; 0 is none"),
    "used": Spec.number("space taken with descendants, bytes"),
    "available": Spec.number("space that can still be written, bytes"),
    "referenced": Spec.number("space reachable through this dataset, bytes"),
    "reservation": Spec.number("space guaranteed with descendants, bytes; 0 is none"),
    "refreservation": Spec.number("space guaranteed without descendants, bytes; 0 is none"),
    "mounted": Spec.flag("it is mounted now"),
    "canmount": Spec.word("whether it is mounted automatically", "on", "off", "noauto"),
    "encryption": Spec.word("off, on or the cipher"),
    "keystatus": Spec.word("whether the key is loaded", "none", "unavailable", "available"),
    "keylocation": Spec.word("where the key comes from: none, prompt or a URL"),
    "mountpoint": Spec.word("the mount point, legacy or none"),
    "sharenfs": Spec.word("off, on or the options of the NFS export"),
    "sharesmb": Spec.word("off, on or the options of the SMB share"),
    "origin": Spec.word("the snapshot that it is a clone of; empty where it is no clone"),
    "snapdir": Spec.word("how .zfs shows", "hidden", "visible", "disabled"),
    "direct": Spec.word("what O_DIRECT does", "standard", "always", "disabled"),
    "readonly": Spec.word("whether it refuses writes", "on", "off"),
}
FACTS: dict[str, Spec] = {
    **PROPERTIES,
    "pool": Spec.link("pool", "the pool that it is in"),
    "ancestors": Spec.links(
        "dataset", "the datasets above it, nearest first; none for the root dataset of a pool", none_tells=True
    ),
}
SINCE = {"direct": (2, 3)}  # all others are in every release from 0.8 on (module/zcommon/zfs_prop.c)
# a value may hold TABs and newlines; nothing stands between them in PROPERTIES, nor before what ends a question about them
FREE_TEXT, BEHIND = frozenset({"keylocation", "mountpoint", "sharenfs", "sharesmb"}), "origin"
ORDER = {name: number for number, name in enumerate(PROPERTIES)}
NONE_IS_ZERO = frozenset({"quota", "refquota", "reservation", "refreservation"})
LONGEST_NAME = 255  # ZFS_MAX_DATASET_NAME_LEN of OpenZFS, less the NUL
IMPOSSIBLE = 1 << 63  # an unsigned counter that went below 0, or "no limit"


def known_to(facts: Facts, version: str) -> tuple[str, ...]:
    """The properties to ask for: one unknown name makes ``zfs get`` refuse them all ("bad property list"). version: the
    fact that says who must know them: zfs_userland_version (command) or zfs_version (module). Unknown: what all from 2.1 on
    have."""
    match facts.get(HOST, version):
        case Known(tuple() as release):
            there = tuple(int(part) for part in release[:2] if isinstance(part, int))
        case _:
            there = (0, 0)
    return tuple(name for name in PROPERTIES if there >= SINCE.get(name, there))


def above(dataset: str) -> tuple[str, ...]:
    parts = dataset.split("/")
    return tuple("/".join(parts[:depth]) for depth in range(len(parts) - 1, 0, -1))


Row = tuple[str, str]  # (property, record)


class _Rows(dict[str, Row]):
    """Record -> the row that it is, shared by all datasets; the property is empty where it is no row."""

    def __missing__(self, record: str) -> Row:
        head, tab, rest = record.partition("\t")
        row = self[record] = (head if tab and head in PROPERTIES and "\n" not in rest else "", record)
        return row


def records(text: str, ours: Callable[[str], bool]) -> tuple[dict[str, list[Row]], set[str]]:
    """(dataset -> its rows, the datasets that are not believed). ours: whether a name was asked for.

    Rows that are alike are shared, for thousands of datasets. A cut output ends in an incomplete record, which is left out;
    a value that may go on in the next line counts only when another record follows. Raises ValueError where a line begins
    no record and is part of no value."""
    every: dict[str, list[Row]] = {}
    doubted: set[str] = set()
    shared = _Rows()
    mine: list[Row] = []
    held: list[str] = []  # a record whose value may go on
    dataset, free, last = "", "", -1
    for piece in _pieces(text):
        name, _, rest = piece.partition("\t")
        rows = [*map(shared.__getitem__, rest.split(f"\n{name}\t"))]
        text_of = _free_text_of(tuple([each for each, _ in rows]))
        if text_of is not None and not held and name not in every and len(name) <= LONGEST_NAME and ours(name):
            dataset, free, last = name, text_of or free, ORDER[rows[-1][0]]
            mine = every[name] = rows
            continue
        for line in piece.split("\n"):
            name, _, record = line.partition("\t")
            row = shared[record]
            if not row[0] or (name != dataset and not ours(name)) or len(name) > LONGEST_NAME:
                if not free:  # no value can go on in this line
                    raise ValueError("a line is not a property of a dataset that was asked for")
                if held:
                    held.append(line)
                else:
                    doubted.add(dataset)
                continue
            if held:
                mine.append((free, "\n".join(held)))
                held = []
            if name != dataset:
                if name in every:
                    doubted.add(name)
                dataset, last = name, -1
                mine = every[name] = []
            if ORDER[row[0]] <= last:
                doubted.add(name)
            last = ORDER[row[0]]
            if row[0] in FREE_TEXT:
                free, held = row[0], [record]
            else:
                mine.append(row)
    if not every:
        raise ValueError("no dataset in it")
    return every, doubted


def _pieces(text: str) -> Iterator[str]:
    """All lines that are whole, in pieces that begin with the property of the first line: of one dataset each, as a rule."""
    start, end = 0, text.rfind("\n")
    first = "\t" + text.partition("\t")[2].partition("\t")[0] + "\t"
    while start <= end:
        then = text.find(first, text.find("\n", start))
        last = end if then < 0 else text.rfind("\n", start, then)
        yield text[start:last]
        start = last + 1


@lru_cache(64)
def _free_text_of(properties: tuple[str, ...]) -> str | None:
    """The last property of these rows whose value may hold anything, empty where none does. None where they are not in order,
    or where the last value may go on behind them."""
    order = [ORDER.get(each, -1) for each in properties]
    if order[0] < 0 or order != sorted({*order}) or properties[-1] in FREE_TEXT:
        return None
    return next((each for each in reversed(properties) if each in FREE_TEXT), "")


def parse(text: str, ours: Callable[[str], bool], wanted: Container[str]) -> Facts:
    """The facts of these names of all records that are believed, and that the other datasets are there; ours: whether a name is
    one of the datasets that were asked for. Raises ValueError where none are believed."""
    found = Facts()
    every, doubted = records(text, ours)
    read = cache(partial(_read, wanted))
    links_of: dict[str, dict[str, Known]] = {}
    wrong = f"records of {min(doubted)} contradict each other" if doubted else ""
    for name, rows in every.items():
        parent = name.rpartition("/")[0] or name + "/"
        if (values := links_of.get(parent)) is None:
            values = links_of[parent] = {fact: value for fact, value in _links(name).items() if fact in wanted}
        if name not in doubted:
            try:
                values = {**values, **dict(filter(None, map(read, rows)))}
            except ValueError as error:
                doubted.add(name)
                wrong = f"{name}: {error}"
        found.put_of(Subject("dataset", name), values)
    if doubted >= every.keys():
        raise ValueError(wrong)
    return found


def _read(wanted: Container[str], row: Row) -> tuple[str, Known] | None:
    """(property, what is known); None for one that is not wanted, or says nothing about this dataset ("-")."""
    name, _, rest = row[1].partition("\t")
    value, tab, source = rest.rpartition("\t")
    origin = ""
    match source.partition("inherited from "):
        case ("", "inherited from ", above_it) if above_it:
            origin, where = above_it, f", inherited from {above_it}"
        case _ if source in ("local", "default", "received", "temporary"):
            where = f" ({source})"
        case _ if source == "-":
            where = ""
        case _:
            raise ValueError(f"{name} has no source")
    if not tab:
        raise ValueError(f"{name} has no value")
    typed = _value(name, value)
    if typed is None or name not in wanted:
        return None
    return name, known(typed, f"{name}={value}{where}", f"zfs get {name} {{subject}}", origin)


def _value(name: str, value: str) -> bool | int | str | None:
    """The value in its type; None when the property has no meaning here ("-") or is not one that we know."""
    spec = PROPERTIES[name]
    if value == "-":
        return "" if name == "origin" else None
    if spec.type is bool:
        return {"yes": True, "no": False}.get(value)
    if spec.type is int:
        if value == "none" and name in NONE_IS_ZERO:
            return 0
        return size if value.isascii() and value.isdigit() and (size := int(value)) < IMPOSSIBLE else None
    return value if not spec.values or value in spec.values else None


def _links(dataset: str) -> dict[str, Known]:
    """By the name alone; shared by all children of one parent."""
    pool, higher = dataset.partition("/")[0], above(dataset)
    text = f"below {higher[0]}" if higher else "a root dataset"
    return {
        "pool": known(Subject("pool", pool), f"in pool {pool}"),
        "ancestors": known(tuple(Subject("dataset", each) for each in higher), text),
    }


def _ask_channel_program(target: Subject, facts: Facts) -> Request:
    """The kernel must know every property, so its release decides what to ask for."""
    if not consistent(facts):
        return Skip("asked only with --consistent", "--consistent", applies=False)
    names = [name for name in known_to(facts, "zfs_version") if name in channel_program.facts]
    pool = target.name.partition("/")[0]
    return Run((builtin.LZC_NAME, pool, target.name, *names), package="python3-pyzfs")


@source(
    "zfs_channel_program",
    "target",
    ask=_ask_channel_program,
    runs=(Command((builtin.LZC_NAME,), others=ANY, named=2, table=True),),
    facts={name: spec for name, spec in FACTS.items() if name not in builtin.LZC_CANNOT_SAY},
    title="properties at one moment of {datasets} of",
)
def channel_program(reply: Output, target: Subject) -> Facts:
    """The properties of a whole subtree at one moment (``--consistent``), in the lines of ``zfs get``; see
    ``host/builtin.py``."""
    return of_subtree(reply, target, channel_program.facts)


COLUMNS = "name,property,value,source"
_GET = command(
    "zfs get", "-Hp -r -t -o", NAME, apart="-r", valued="-t -o -s -d", lists=("-t", "-o", LISTED), table=True
)


def _ask_properties(target: Subject, facts: Facts) -> Request:
    """target: the dataset at the top of the subtree; a pool's name is its root dataset. One that was not named stands alone.

    With --consistent only what the channel program cannot say: nothing else may come from another moment."""
    names = [name for name in known_to(facts, "zfs_userland_version") if name in properties.facts]
    if consistent(facts):
        names = [name for name in names if name in builtin.LZC_CANNOT_SAY]
    return question(target, names, facts)._replace(part=True)


def consistent(facts: Facts) -> bool:
    """Whether what the channel program can say is left to it (--consistent)."""
    return is_true(facts.get(HOST, "consistent"))


def question(target: Subject, names: Iterable[str], facts: Facts) -> Run:
    deep = below(target, facts)
    words = ("zfs", "get", "-Hp", *deep, "-t", "filesystem,volume", "-o", COLUMNS, ",".join(names), target.name)
    return Run(words, package="zfsutils-linux", halved=bool(deep))


def below(target: Subject, facts: Facts) -> tuple[str, ...]:
    """The option that asks for all below a target: of what a database brought along nobody asked for that."""
    return () if isinstance(facts.get(target, "brought"), Known) else ("-r",)


@source(
    "zfs_get",
    "target",
    ask=_ask_properties,
    runs=(_GET,),
    facts={name: spec for name, spec in FACTS.items() if name not in FREE_TEXT},
    after=("zfs_channel_program",),  # which reads all datasets in one transaction group
    part=True,  # of thousands of datasets some are known when the time is over: see gather/answer.py
    title="properties of {datasets} of",
)
def properties(reply: Output, target: Subject) -> Facts:
    """``zfs get -r``: the properties of a dataset and of all below it, in one call; those whose values may hold lines of any
    kind are asked for apart (:mod:`.zfs_get_text`). (man 8 zfs-get)

    Text, not ``-j``: the JSON of 10,000 datasets is many times larger, and 2.1 and 2.2 have none."""
    return of_subtree(reply, target, properties.facts)


def of_subtree(reply: Output, target: Subject, wanted: Container[str]) -> Facts:
    top, below = target.name, target.name + "/"
    return parse(reply.text, lambda name: name == top or name.startswith(below), wanted)


def _ask_datasets(target: Subject, facts: Facts) -> Request:
    form = ("-t", "filesystem,volume", "-o", "name", "-s", "name")
    return Run(("zfs", "list", "-H", *below(target, facts), *form, target.name), package="zfsutils-linux")


def _list_command(options: str) -> Command:
    return command("zfs list", options, NAME, apart="-r -d", valued="-t -o -s -d", lists=("-t", "-o"), table=True)


@source(
    "zfs_list",
    "target",
    ask=_ask_datasets,
    runs=(_list_command("-H -r -t -o -s"),),
    facts={"listed": Spec.flag("zfs list names it")},
    title="names of the datasets of",
)
def datasets(reply: Output, target: Subject) -> Iterator[Fact]:
    """``zfs list``: which datasets exist, to notice one of which ``zfs get`` says nothing. (man 8 zfs-list)

    Only the name is asked for, and to be sorted by: then zfs reads no properties at all. One fact a dataset; what is cut off in
    mid-line is left out."""
    listed = known(True, "listed", "zfs list {subject}")
    names = reply.text.split("\n")[:-1]
    if not names:
        raise ValueError("no dataset in it")
    for name in names:
        if name != target.name and not name.startswith(target.name + "/"):
            raise ValueError(f"{name!r} is not {target.name} or below it")
        if len(name) > LONGEST_NAME:
            raise ValueError(f"a name of {len(name)} characters; OpenZFS allows {LONGEST_NAME}")
        yield Fact(Subject("dataset", name), "listed", listed)


def _ask_free_text(target: Subject, facts: Facts) -> Run | Skip:
    """target: as of ``zfs get`` of the others. With --consistent the channel program tells them."""
    if consistent(facts):
        return Skip("asked of the channel program, with --consistent", applies=False)
    names = [name for name in known_to(facts, "zfs_userland_version") if name in free_text.facts]
    return question(target, [*names, BEHIND], facts)._replace(free_text=True)


@source(
    "zfs_get_text",
    "target",
    ask=_ask_free_text,
    runs=(_GET,),
    facts={name: spec for name, spec in PROPERTIES.items() if name in FREE_TEXT},
    after=("zfs_channel_program", "zfs_get", "zfs_list"),
    part=True,
    adds=False,  # a line that somebody has made up may name a dataset that is not there
    title="mount points and shares of {datasets} of",
)
def free_text(reply: Output, target: Subject) -> Facts:
    """``zfs get -r`` of the properties whose values may hold lines of any kind: a mount point, where a key comes from, how it
    is shared.

    Asked apart from all others, so that no line that somebody has put into one of them stands next to a property that decides
    (above). The last property is one that nobody chooses the text of: where its records end is seen by that.
    """
    return of_subtree(reply, target, free_text.facts)


def _ask_ancestors(target: Subject, facts: Facts) -> Request:
    """Nothing is above the root dataset of a pool."""
    parents = above(target.name)
    if not parents:
        return Skip(f"{target.name} is the root dataset of its pool", applies=False)
    names = ",".join(known_to(facts, "zfs_userland_version"))
    return Run(("zfs", "get", "-Hp", "-o", COLUMNS, names, *parents), package="zfsutils-linux", free_text=True)


@source(
    "zfs_get_ancestors",
    "target",
    ask=_ask_ancestors,
    runs=(_GET,),
    facts=FACTS,
    after=("zfs_get", "zfs_get_text"),
    part=True,
    title="properties of the datasets above",
)
def ancestors(reply: Output, target: Subject) -> Facts:
    """``zfs get``: the properties of the datasets above a target, from which their new children inherit. (man 8 zfs-get)"""
    return parse(reply.text, frozenset(above(target.name)).__contains__, FACTS)


MODULE_VERSION = "/sys/module/zfs/version"


@source(
    "zfs_version",
    "host",
    ask=Read((MODULE_VERSION,)),
    facts={
        "zfs_version": Spec.words("version of the loaded zfs module: three numbers, and a mark where it is no release"),
        "zfs_version_text": Spec.word("the same with the distribution's suffix"),
    },
)
def loaded(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/sys/module/zfs/version``: the release of the kernel module that is loaded. Absent when it is not."""
    if MODULE_VERSION in reply.text:
        text = reply.text[MODULE_VERSION]
        if not text.endswith("\n"):
            raise ValueError(f"{MODULE_VERSION} is cut off")
        yield from versions("zfs_version", text[:-1], f"cat {MODULE_VERSION}")


def versions(name: str, text: str, command: str) -> Iterator[Fact]:
    """(2, 3, 9) and "2.3.9-0+deb13u1"; (2, 4, 0, "rc1") and "2.4.0-rc1"."""
    if (found := re.match(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?!\d)", text)) is None:
        raise ValueError(f"{text!r} is not a version")
    yield Fact(HOST, name, known(releases.version(text, found[0]), text, command))
    yield Fact(HOST, f"{name}_text", known(text, text, command))


DEBIAN = tuple(f"/usr/share/doc/{package}/changelog.Debian.gz" for package in ("zfsutils-linux", "zfs-dkms"))
# An RPM has its changelog in the database of packages alone, and `rpm -q` run by root makes two files there: an administrator
# puts what it prints here.
RPM = "/etc/zaudit/zfs.changelog"
CHANGELOGS = (*DEBIAN, RPM)
CHANGELOG_BYTES = 256 << 10  # the newest entries come first
_GZIP = "\x1f\udc8b"  # as bytes that are no UTF-8 are read
_ENTRY = re.compile(r"((?:open)?zfs(?:-linux)?) \(([\w.+~:-]{1,100})\)", re.ASCII)
_RPM_ENTRY = re.compile(
    r"\* \S+ \S+ \d{1,2} \d{4} .*", re.ASCII
)  # rpm's popt alias --changelog: date, who, perhaps version
_RPM_BUILD = re.compile(r" (?:\d+:)?(\d[\w.+~]*-[\w.+~]{1,80}?)(?:\.(?:fc|el)\d\w*)?$", re.ASCII)
_MAIL = re.compile(r"<[^<>\s@]+@[^<>\s]+>")


def keep_changelog(text: str) -> str:
    """Of the newest entries the package, its version and what changed, without who changed it. What was kept is kept again."""
    if text.startswith(_GZIP):
        try:
            data = zlib.decompressobj(31).decompress(text.encode("utf-8", "surrogateescape"), CHANGELOG_BYTES)
        except zlib.error:
            return ""
        text = data.decode("utf-8", "replace")
    lines = text[:CHANGELOG_BYTES].rpartition("\n")[0].split("\n")
    changes = _rpm_changes(lines) if _RPM_ENTRY.match(text) else _deb_changes(lines)
    kept = _MAIL.sub("<>", "".join(f"{line}\n" for line in changes))
    return "".join(kept[:CHANGELOG_BYTES].rpartition("\n")[:2])


def _deb_changes(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if entry := _ENTRY.match(line):
            yield entry[0]
        elif line.startswith("  ") and line.strip() and not line.startswith("  ["):
            yield line.rstrip()


def _rpm_changes(lines: Iterable[str]) -> Iterator[str]:
    """The same lines of what ``rpm -q --changelog`` prints; an entry without a version is left out."""
    build = None
    for line in lines:
        if _RPM_ENTRY.fullmatch(line):
            if build := _RPM_BUILD.search(line):
                yield f"zfs ({build[1]})"
        elif build and line.strip():
            yield f"  * {line[2:].strip()}" if line.startswith("- ") else f"    {line.strip()}"


def _ask_changelog(host: Subject, facts: Facts) -> Read | Skip:
    text = facts.get(HOST, "zfs_version_text")
    if not isinstance(text, Known):
        return Skip("which zfs module is loaded is not known")
    if releases.as_tagged(version := text.word()) or version in releases.load_builds():
        return Skip(f"what {version} fixes is known", applies=False)
    return Read((*CHANGELOGS, WITNESS), trusted=True)


@source(
    "zfs_changelog",
    "host",
    ask=_ask_changelog,
    keeps=dict.fromkeys(CHANGELOGS, keep_changelog),
    facts={
        "zfs_changes": Spec.words("VERSION CHANGE of each change in the changelog of the zfs package, the newest first")
    },
)
def changelog(reply: Files, host: Subject) -> Iterator[Fact]:
    """What a distribution says that its builds of OpenZFS change. (man 5 deb-changelog, man 8 rpm)

    Asked only of a build whose fixes nobody has read. A file counts only if root alone can have put it there, as it can any
    module. A change is all that follows one ``*``, whatever is below it."""
    reply.witness()
    changes: dict[str, None] = {}
    for path in CHANGELOGS:
        version = ""
        rows: list[str] = []
        for line in reply.text.get(path, "").splitlines():
            if entry := _ENTRY.fullmatch(line):
                version = entry[2]
            elif not version:
                raise ValueError(f"{path}: a change of no version")
            elif line.startswith("  * ") or not rows or not rows[-1].startswith(f"{version} "):
                rows.append(f"{version} {line.strip().removeprefix('* ')}")
            else:
                rows[-1] += f" {line.strip()}"
        changes |= dict.fromkeys(rows)
    if changes:
        text = f"{len(changes)} changes, the newest of {next(iter(changes)).partition(' ')[0]}"
        yield Fact(
            HOST, "zfs_changes", known(tuple(changes), text, f"zless {' '.join(filter(reply.text.get, CHANGELOGS))}")
        )


@source(
    "zfs_userland",
    "host",
    ask=Run(("zfs", "version"), package="zfsutils-linux", accept=frozenset({0, 1})),
    facts={
        "zfs_userland_version": Spec.words(
            "version of the zfs command: three numbers, and a mark where it is no release"
        ),
        "zfs_userland_version_text": Spec.word("the same with the distribution's suffix"),
    },
)
def userland(reply: Output, host: Subject) -> Iterator[Fact]:
    """``zfs version``: the release of the zfs command (first line) and of the loaded module (second line).

    The first line only: the module speaks for itself in /sys."""
    first, newline, _ = reply.text.partition("\n")
    if not newline or not first.startswith("zfs-"):
        raise ValueError("it does not begin with the version of zfs")
    yield from versions("zfs_userland_version", first.removeprefix("zfs-"), "zfs version")


_BOOKMARK = re.compile(r"([^\t\n#@]{1,255}#[^\t\n]{1,255})\t([0-9]{1,12})")


@source(
    "zfs_bookmarks",
    "pool",
    ask=lambda pool, _: Run(
        ("zfs", "list", "-Hp", "-r", "-t", "bookmark", "-o", "name,creation", pool.name), package="zfsutils-linux"
    ),
    runs=(_list_command("-Hp -r -t -o"),),
    facts={"bookmarks": Spec.words("each bookmark and when its snapshot was made: tank/db#NAME SECONDS")},
    title="bookmarks of",
)
def bookmarks(reply: Output, pool: Subject) -> Iterator[Fact]:
    """``zfs list -t bookmark``: the marks from which the next incremental send goes on. zrepl moves its cursor, and syncoid
    makes one (--create-bookmark), once a snapshot has been received. (man 8 zfs-bookmark)

    One line each, its creation that of the snapshot. Raises ValueError for anything else."""
    if reply.text and not reply.text.endswith("\n"):
        raise ValueError("the last line is cut off")
    found = [_BOOKMARK.fullmatch(line) for line in reply.text.splitlines()]
    rows = tuple(f"{each[1]} {each[2]}" for each in found if each and each[1].split("/")[0].split("#")[0] == pool.name)
    if len(rows) < len(found):
        raise ValueError("a line that is no bookmark of this pool")
    yield Fact(pool, "bookmarks", known(rows, f"{len(rows)} bookmarks", reply.command))


_SNAPSHOT = re.compile(r"([0-9]{1,12})\t([0-9]{1,20})", re.ASCII)


def _ask_snapshots(dataset: Subject, facts: Facts) -> Run | Skip:
    """Of a hundred thousand snapshots on a host only those where a database keeps files are worth the time."""
    if not any(dataset in facts.linked(each, "datasets") for each in facts.linked(HOST, "database_processes")):
        return Skip("no database keeps files there", applies=False)
    words = ("zfs", "list", "-Hp", "-d", "1", "-t", "snapshot", "-o", "creation,referenced", dataset.name)
    return Run(words, package="zfsutils-linux")


@source(
    "zfs_snapshots",
    "dataset",
    ask=_ask_snapshots,
    runs=(_list_command("-Hp -d -t -o"),),
    facts={"snapshots": Spec.words("when each of its snapshots was made, and what it refers to: SECONDS BYTES")},
    adds=False,
    title="snapshots of",
)
def snapshots(reply: Output, dataset: Subject) -> Iterator[Fact]:
    """``zfs list -d 1 -t snapshot``: the snapshots of a dataset, without their names and those of its children. (man 8
    zfs-list, man 7 zfsprops)

    One line each. Raises ValueError for anything else."""
    if reply.text and not reply.text.endswith("\n"):
        raise ValueError("the last line is cut off")
    found = [_SNAPSHOT.fullmatch(line) for line in reply.text.splitlines()]
    rows = sorted((int(each[1]), integer(each[2])) for each in found if each)
    if len(rows) < len(found):
        raise ValueError("a line that is no snapshot")
    words = tuple(f"{made} {held}" for made, held in rows)
    yield Fact(dataset, "snapshots", known(words, f"{len(rows)} snapshots", reply.command))
