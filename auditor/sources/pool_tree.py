"""The tree of a pool, as ``zpool status -j`` and ``zdb -C`` have it: how vdevs are called, how numbers look.

Names follow zpool_vdev_name() in lib/libzfs/libzfs_pool.c. The layout of the JSON (2.3 and later) is that of
status_callback_json() in cmd/zpool/zpool_main.c.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from auditor.facts import HOST, Facts, Known, Spec
from auditor.host.request import Run

ROW_STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "SPLIT", "UNKNOWN", "AVAIL", "INUSE")
POOL_STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "SUSPENDED")
TOP_TYPES = ("mirror", "raidz1", "raidz2", "raidz3", "draid", "disk", "file", "spare", "replacing", "missing")
DEPTH = 8  # pool, raidz, spare, replacing, disk: more than OpenZFS nests


ASHIFT = Spec.number("block size of the top-level vdev as a power of two: 9 is 512 bytes, 12 is 4096 bytes")
GUID = Spec.word("the 64-bit identifier, in decimal")
PATH = Spec.word("path of the device, with partition, as OpenZFS opens it")
TREE = Spec.words(
    "its leaves as this command nests them, a line each: top-level vdev, name, GUID, path, class, with a TAB between"
)
PARITY = Spec.number("disks that a raidz or draid can lose; 0 for mirrors and single disks, as the property has it")


# zpool_default_import_path[] in lib/libzutil/os/linux/zutil_import_os.c, in this order
_FOLDERS = tuple(f"/dev/disk/by-{each}/" for each in ("vdev", "partlabel", "partuuid", "label", "uuid", "id", "path"))
_SEARCH = (_FOLDERS[0], "/dev/mapper/", *_FOLDERS[1:], "/dev/")
_INTERIOR = re.compile(r"(mirror|raidz[123]|draid|spare|replacing|indirect|hole|missing)([\d:a-z]*)(-\d+)?")
_PARTITION = re.compile(r"(.+?)-part\d+|(.+\d)p\d+|([hsv]d[a-z]+|xvd[a-z]+)\d+")


class Row(NamedTuple):
    """One vdev. type: root, mirror, raidz1-3, draid, spare, replacing, indirect, hole, missing, disk, file, dspare, or
    empty where it cannot be told. state, path, guid, note: empty where the source does not say. counts: those of
    read, write, checksum and slow that it says. ashifts: (configured, physical) where the source says that they differ.
    space: (allocated, all) bytes of a top-level vdev where the source says so.
    """

    name: str
    type: str = ""
    state: str = ""
    path: str = ""
    guid: str = ""
    counts: Mapping[str, int] = {}
    note: str = ""
    ashifts: tuple[int, ...] = ()
    children: tuple[Row, ...] = ()
    space: tuple[int, ...] = ()

    def leaves(self, replacing: bool = False) -> Iterator[tuple[Row, bool]]:
        """All leaves, each with whether a ``replacing`` vdev stands above it."""
        if not self.children and self.type not in ("root", "indirect", "hole", "missing"):
            yield self, replacing
        for child in self.children:
            yield from child.leaves(replacing or self.type == "replacing")


class LeafRow(NamedTuple):
    """A leaf as one command tells it, to be compared with another: names as ``zpool status`` has them, or empty.

    top: the name of its top-level vdev. allocation: normal, log, special, dedup, cache or spare; "not log" from a command
    that can say no more; empty from one that says nothing.
    """

    top: str
    name: str
    guid: str = ""
    path: str = ""
    allocation: str = ""

    def line(self) -> str:
        return "\t".join(each.replace("\t", " ") for each in self)

    @classmethod
    def of_line(cls, line: str) -> LeafRow:
        return cls(*line.split("\t"))


class Scan(NamedTuple):
    """One scan. function: scrub, resilver, errorscrub. state: finished, in progress, canceled, paused.

    end_s: seconds since the epoch, or -1 where not said; repaired (bytes) and errors likewise. text: as printed.
    start_s: when it began, of one that has not ended. pass_start_s: since when it runs without a restart of the pool. moved: 1
    where it has read something since then, 0 where it has not.
    """

    function: str
    state: str
    text: str
    end_s: int = -1
    errors: int = -1
    repaired: int = -1
    start_s: int = -1
    pass_start_s: int = -1
    moved: int = -1


class PoolStatus(NamedTuple):
    """One pool of ``zpool status``.

    tops: (allocation class, top-level vdev) of class normal, dedup, special and log; cache and spares apart.
    errors: the text of the ``errors:`` line. data_errors: -1 where not said. complete: the end of the
    pool was seen; without it nothing may be concluded from absence.
    """

    name: str
    state: str = ""
    guid: str = ""
    headers: Mapping[str, str] = {}
    scans: tuple[Scan, ...] | None = None
    root: Row | None = None
    tops: tuple[tuple[str, Row], ...] = ()
    cache: tuple[Row, ...] = ()
    spares: tuple[Row, ...] = ()
    errors: str = ""
    data_errors: int = -1
    complete: bool = False


def top_type(name: str, children: bool) -> str:
    """The type of an interior vdev from its name; empty when it has none that is known, or is a leaf."""
    found = _INTERIOR.fullmatch(name)
    if not found or (not children and not (found[3] and found[1] in ("indirect", "hole", "missing"))):
        return ""
    return found[1]


def no_children(name: str) -> None:
    """Raises ValueError where a vdev that is made of others stands without them: their rows are lost."""
    found = _INTERIOR.fullmatch(name)
    if found and found[3] and found[1] not in ("indirect", "hole", "missing"):
        raise ValueError(f"zpool status: {name} without what it is made of")


def parity(name: str, kind: str) -> int:
    """Parity from the name of a vdev ("raidz2-0", "draid1:4d:11c:1s-0"); -1 when it does not say."""
    if kind in ("mirror", "disk", "file"):
        return 0
    found = re.match(r"(?:raidz|draid)([123])\b", name)
    return int(found[1]) if found else -1


def leaf_type(name: str) -> str:
    if re.fullmatch(r"draid[123]-\d+-\d+", name):
        return "dspare"
    return "file" if name.startswith("/") and not name.startswith("/dev/") else "disk"


def display_name(path: str, whole_disk: bool) -> str:
    """The name that ``zpool status`` gives a disk with this path."""
    name = next((path[len(each) :] for each in _SEARCH if path.startswith(each)), path)
    found = _PARTITION.fullmatch(name) if whole_disk else None
    return next(each for each in found.groups() if each) if found else name


class Paths:
    """The paths of the leaves of a pool, by the names that they may have."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_name: tuple[dict[str, set[str]], ...] = ({}, {}, {})  # those in front decide
        for path in paths:
            last = path.rpartition("/")[2]  # zfs_strip_path() of 2.1
            names = ({path, display_name(path, False)}, {display_name(path, True)}, {last})
            for table, several in zip(self._by_name, names, strict=True):
                for name in several:
                    table.setdefault(name, set()).add(path)

    def of(self, name: str) -> str:
        """The path of the leaf that is called name; empty when none or several could be it."""
        found = next((table[name] for table in self._by_name if name in table), ())
        return next(iter(found)) if len(found) == 1 else ""


def count(text: object) -> int:
    """A count as it is printed: 12, "12", "4.11K" (about 4208: zfs_nicenum has units of 1024); and bytes: 4096, "0B", "66.5M".
    -1 when it is none, or one that cannot be."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTPE]?)B?", str(text), re.ASCII)
    if not found or isinstance(text, bool):
        return -1
    whole, fraction = [*found[1].split("."), ""][:2]
    scale = 1024 ** " KMGTPE".find(found[2] or " ")
    value = int(whole) * scale + int(fraction or 0) * scale // 10 ** len(fraction)
    return value if value < 1 << 63 else -1  # an underflowed counter of 64 bits


size = count


def speaks(facts: Facts, major: int, minor: int) -> bool:
    """Whether both the module and the commands are known to be of this release or later."""
    versions = [facts.get(HOST, name) for name in ("zfs_version", "zfs_userland_version")]
    known = [each.value for each in versions if isinstance(each, Known) and isinstance(each.value, tuple)]
    return bool(known) and all(_pair(each) >= (major, minor) for each in known)


def _pair(version: tuple[object, ...]) -> tuple[int, int]:
    numbers = [each if isinstance(each, int) else 0 for each in (*version, 0, 0)]
    return numbers[0], numbers[1]


def zpool(*argv: str) -> Run:
    return Run(("zpool", *argv), package="zfsutils-linux")


_CLASSES = {"dedup": "dedup", "special": "special", "logs": "log"}
_DEVICES = {"dedup", "special", "logs", "l2cache", "spares"}  # left out where the pool has none
_OTHERS = {"vdevs", "l2cache", "spares", "scan_stats", "removal_stats", "checkpoint_stats", "condense", "load_info"}
_OTHERS |= {"raidz_expand_stats", "dedup_stats"}
# zpool_state_to_name() in lib/libzfs/libzfs_pool.c, which the text has and JSON has not
_STATES = {"CLOSED": "OFFLINE", "CANT_OPEN": "UNAVAIL"}
_LOST = {"CORRUPT_DATA": "FAULTED", "BAD_LOG": "FAULTED", "SPLIT_POOL": "SPLIT"}
_NOTES = {
    "OPEN_FAILED": "cannot open",
    "CORRUPT_DATA": "corrupted data",
    "NO_REPLICAS": "insufficient replicas",
    "BAD_GUID_SUM": "missing device",
    "BAD_LABEL": "invalid label",
    "SPARED": "currently in use",
    "ERR_EXCEEDED": "too many errors",
    "IO_FAILURE": "experienced I/O failures",
    "BAD_LOG": "bad intent log",
    "EXTERNAL": "external device fault",
    "CHILDREN_OFFLINE": "all children offline",
}
_SCAN_STATES = {"SCANNING": "in progress", "FINISHED": "finished", "CANCELED": "canceled"}
_ERROR_SCRUB_STATES = {"ERRORSCRUBBING": "in progress", "FINISHED": "finished", "CANCELED": "canceled"}
_REBUILD_STATES = {"ACTIVE": "in progress", "COMPLETE": "finished", "CANCELED": "canceled"}


def pools(text: str) -> list[PoolStatus]:
    """All pools in the document; ValueError when it is not one of ``zpool status``."""
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("zpool status -j: nested too deeply") from None
    try:
        if document["output_version"]["command"] != "zpool status":
            raise ValueError(f"zpool status -j: this is {document['output_version']['command']}")
        return [_pool(each) for each in document["pools"].values()]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"zpool status -j: not the document expected ({type(error).__name__}: {error})") from error


def _pool(pool: dict[str, Any]) -> PoolStatus:
    for key, value in pool.items():
        if key in _DEVICES and not value:
            raise ValueError(f"zpool status -j: no device in {key}")
        if isinstance(value, dict) and key not in _OTHERS and key not in _CLASSES:
            raise ValueError(f"zpool status -j: unknown section {key}")
    scan = pool.get("scan_stats", {})
    active = _scans(scan)
    resilvering = any(each.function == "resilver" and each.state == "in progress" for each in active)
    roots = [_row(name, each, resilvering) for name, each in pool.get("vdevs", {}).items()]
    if len(roots) > 1:
        raise ValueError("zpool status -j: several roots (--json-flat-vdevs?)")
    tops = [("normal", each) for root in roots for each in root.children]
    for key, name in _CLASSES.items():
        tops += [(name, _row(each, value, resilvering)) for each, value in pool.get(key, {}).items()]
    errors = count(pool.get("error_count"))
    return PoolStatus(
        name=_word(pool, "name"),
        state=_word(pool, "state"),
        guid=_guid(pool.get("pool_guid")),
        headers={
            "status": _lines(_word(pool, "status")),
            "action": _lines(_word(pool, "action")),
            "see": _word(pool, "moreinfo"),
        },
        scans=None if scan and not active and scan.get("function") != "NONE" else tuple(active),
        root=roots[0] if roots else None,
        tops=tuple(tops),
        cache=tuple(_row(name, each, resilvering) for name, each in pool.get("l2cache", {}).items()),
        spares=tuple(_row(name, each, resilvering) for name, each in pool.get("spares", {}).items()),
        errors="No known data errors" if errors == 0 else f"{errors} data errors" if errors > 0 else "",
        data_errors=errors,
        complete=True,
    )


def _row(name: str, vdev: dict[str, Any], resilvering: bool, level: int = 0) -> Row:
    if level > DEPTH:
        raise ValueError("zpool status -j: nested too deeply")
    children = tuple(_row(key, each, resilvering, level + 1) for key, each in vdev.get("vdevs", {}).items())
    if not children:
        no_children(name)
    kind = _word(vdev, "vdev_type")
    if kind in ("", "raidz", "draid") or (kind != "root" and children):
        kind = top_type(name, bool(children)) or ("" if children or not name else leaf_type(name))
    state, aux = _word(vdev, "state"), _word(vdev, "aux")
    ashifts = [count(vdev.get(f"{each}_ashift")) for each in ("configured", "physical")]
    counts = {each: count(vdev.get(f"{each}_errors")) for each in ("read", "write", "checksum")}
    if "slow_ios" in vdev:
        counts["slow"] = count(vdev["slow_ios"])
    space = [size(vdev.get(f"{each}_space")) for each in ("alloc", "total")]
    notes = [f"was {vdev['was']}"] if "was" in vdev else []
    notes += [_NOTES.get(aux, aux.lower().replace("_", " "))] if aux and aux != "NONE" else []
    notes += [f"block size: {1 << ashifts[0]}B configured, {1 << ashifts[1]}B native"] if _plausible(ashifts) else []
    notes += ["(removing)"] if vdev.get("removing") else ["(non-allocating)"] if vdev.get("noalloc") else []
    if resilvering and not children and state == "ONLINE":
        busy = "(resilvering)" if count(vdev.get("scan_processed")) > 0 else ""
        notes += [busy or ("(awaiting resilver)" if vdev.get("resilver_deferred") else "")]
    return Row(
        name,
        type=kind,
        state=_LOST.get(aux, "UNAVAIL") if state == "CANT_OPEN" else _STATES.get(state, state),
        path="" if "was" in vdev else _word(vdev, "path"),  # where it was, another disk may be now
        guid=_guid(vdev.get("guid")),
        counts={key: value for key, value in counts.items() if value >= 0},
        note="  ".join(each for each in notes if each),
        ashifts=tuple(ashifts) if _plausible(ashifts) else (),
        children=children,
        space=tuple(space) if 0 <= space[0] <= space[1] > 0 else (),
    )


def _word(values: dict[str, Any], name: str) -> str:
    value = values.get(name, "")
    return value if isinstance(value, str) else ""


def _plausible(ashifts: list[int]) -> bool:
    return all(0 < each < 63 for each in ashifts)


def _guid(value: object) -> str:
    return str(value) if isinstance(value, (int, str)) and str(value).isdigit() else ""


def _lines(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().split("\n"))


def _scans(stats: dict[str, Any]) -> list[Scan]:
    found = []
    if stats.get("function") in ("SCRUB", "RESILVER") and stats.get("state") in _SCAN_STATES:
        paused = stats["state"] == "SCANNING" and count(stats.get("scrub_pause", 0)) > 0
        state = "paused" if paused else _SCAN_STATES[stats["state"]]
        found.append(_scan(stats["function"].lower(), state, stats, "processed"))
    for each in stats.get("rebuild_stats", {}).values():
        if each.get("state") in _REBUILD_STATES:
            found.append(_scan("resilver", _REBUILD_STATES[each["state"]], each, "rebuilt"))
    error_scrub = _error_scrub(stats)
    # one that is over is no reason to forget the whole scrub before it, which is told next to it
    return found + [each for each in error_scrub if each.state in ("in progress", "paused") or not found]


def _error_scrub(stats: dict[str, Any]) -> list[Scan]:
    """zpool scrub -e (OpenZFS 2.2 and later), where it began after the last other scan."""
    if stats.get("err_scrub_func") != "ERRORSCRUB" or stats.get("err_scrub_state") not in _ERROR_SCRUB_STATES:
        return []
    state = _ERROR_SCRUB_STATES[stats["err_scrub_state"]]
    paused = state == "in progress" and count(stats.get("err_scrub_pause", 0)) > 0
    times = {name: stats.get(f"err_scrub_{name}") for name in ("start_time", "end_time")}
    return [_scan("errorscrub", "paused" if paused else state, times, "repaired")]


def _scan(function: str, state: str, stats: dict[str, Any], repaired: str) -> Scan:
    """Times are numbers with --json-int; a date with the name of a time zone is left alone."""
    over = state in ("finished", "canceled")
    start, end, errors = (count(stats.get(name)) for name in ("start_time", "end_time", "errors"))
    text = f"{function} {state}" + (f" with {errors} errors" if errors >= 0 and over else "")
    return Scan(
        function,
        state,
        text,
        end_s=end if over and end > 0 else -1,
        errors=errors,
        repaired=size(stats.get(repaired)),
        start_s=start if not over and start > 0 else -1,
        pass_start_s=count(stats.get("pass_start")),
        moved=_moved(stats),
    )


def _moved(stats: dict[str, Any]) -> int:
    """Of a scan or of the rebuilding of one vdev: what its pass has read or issued."""
    for names in (("bytes_per_scan", "issued_bytes_per_scan"), ("pass_scanned", "pass_issued")):
        done = [size(stats.get(name)) for name in names]
        if max(done) > 0 or min(done) == 0:
            return int(max(done) > 0)
    return -1
