"""``zpool status -j --json-int`` (OpenZFS 2.3 and later). Layout: status_callback_json() in cmd/zpool/zpool_main.c.

Not a collector. Interior rows other than top-level ones are looked up by name there, so that two ``spare-0`` share one
state: nothing is concluded from them. draid rows come without vdev_type and state (openzfs/zfs#18431): the name gives
the type, the state stays unknown. Vdevs of a class are not below ``vdevs`` but beside it, under the name of the class.
"""

from __future__ import annotations

import json
from typing import Any

from auditor.collect._pool_tree import DEPTH, PoolStatus, Row, Scan, count, leaf_type, no_children, size, top_type

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
    listed = pool.get("errlist")
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
        files=() if errors == 0 else tuple(map(str, listed)) if isinstance(listed, list) else None,
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
    # one that is over is no reason to forget the whole scrub before it, which is told beside it
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
