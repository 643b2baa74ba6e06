"""``zpool status`` as text, as releases before 2.3 print it: indentation is the tree. Layout: print_status_config() in
cmd/zpool/zpool_main.c. Raises ValueError for what it does not know, or where the text is cut off.
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterator

from auditor.sources.pool_tree import (
    DEPTH,
    ROW_STATES,
    PoolStatus,
    Row,
    Scan,
    count,
    leaf_type,
    no_children,
    size,
    top_type,
)
from auditor.sources.replies import integer

_HEADER = re.compile(r" {0,3}([a-z]+):(?: ++(.*)|)")
_HEADERS = {"pool", "id", "state", "status", "action", "see", "scan", "scrub", "remove", "checkpoint", "expand", "trim"}
_HEADERS |= {"config", "errors", "dedup", "comment"}
_TABLE = re.compile(r"\s*+NAME\s++STATE(?:\s++READ\s++WRITE\s++CKSUM((?:\s++[A-Z]++)*+))?")
_STATE = "|".join(ROW_STATES)
_COUNT = r"\d+(?:\.\d+)?[KMGTPE]?"
_COUNTS = rf"\s++({_COUNT})\s++({_COUNT})\s++({_COUNT})"
_STATES = re.compile(rf"(?<=\s)(?={_STATE})")
_MOST_COLUMNS = 8  # after CKSUM; zpool status -p -s -t has three
_CLASSES = {"logs": "log", "log": "log", "special": "special", "dedup": "dedup", "cache": "cache", "spares": "spare"}
_BLOCKS = re.compile(r"block size: (\d+)B configured, (\d+)B native")
_WHEN = r"(\w{3} \w{3} +\d{1,2} \d\d:\d\d:\d\d \d{4})"
_NO_ERRORS = ("No known data errors", "No known errors")
_LISTED = "Permanent errors have been detected"
_SCANS = (  # pattern -> function, state
    (r"(?:thorough )?scrub (?:repaired|completed)\b", "scrub", "finished"),
    (r"(?:thorough )?scrub (?:in progress)\b", "scrub", "in progress"),
    (r"(?:thorough )?scrub (?:canceled|stopped)\b", "scrub", "canceled"),
    (r"(?:thorough )?scrub paused\b", "scrub", "paused"),
    (r"(?:resilvered|resilver completed)\b", "resilver", "finished"),
    (r"resilver (?:\([^)]*+\) )?in progress\b", "resilver", "in progress"),
    (r"resilver (?:\([^)]*+\) )?canceled\b", "resilver", "canceled"),
    (r"scrubbed \d+ error blocks\b", "errorscrub", "finished"),
    (r"error scrub in progress\b", "errorscrub", "in progress"),
    (r"error scrub canceled\b", "errorscrub", "canceled"),
    (r"error scrub paused\b", "errorscrub", "paused"),
)


def pools(text: str) -> list[PoolStatus]:
    """All pools in the text, in its order. A table without a ``pool:`` line is a pool without a name."""
    blocks: list[list[str]] = [[]]
    for line in text.removesuffix("\n").split("\n"):
        found = _HEADER.fullmatch(line)
        if found and found[1] == "pool":
            blocks.append([])
        blocks[-1].append(line)
    return [_pool(block) for number, block in enumerate(blocks) if number or any(map(_TABLE.match, block))]


def _pool(lines: list[str]) -> PoolStatus:
    headers: dict[str, str] = {}
    scans: list[Scan] = []
    table: list[str] = []
    listed: list[str] = []
    key, ended = "", False
    for line in lines:
        found = _HEADER.fullmatch(line)
        if found and not (key == "table" and _row_like(line)):
            key = "scan" if found[1] == "scrub" else found[1]
            if key == "scan" and "scan" in headers:
                scans += _scan(headers.pop("scan"))
            headers[key] = (found[2] or "").strip()
        elif _TABLE.match(line) and key in ("config", ""):
            key, table = "table", [line]
        elif not line.strip():
            ended = ended or bool(listed)
            key = "" if key == "table" and len(table) > 1 else key
        elif key == "table":
            table.append(line)
        elif key == "errors":
            if not ended:
                listed.append(line.strip())
        elif key in headers:
            headers[key] += "\n" + line.strip()
    if unknown := sorted(headers.keys() - _HEADERS):
        raise ValueError(f"zpool status: {unknown[0]}: is not a header that is known")
    scans += _scan(headers.get("scan", ""))
    errors = headers.get("errors", "")
    counted = re.fullmatch(r"(\d+) data errors?, use '-v' for a list", errors)
    permanent = errors.startswith(_LISTED)
    none = errors in _NO_ERRORS
    pool = PoolStatus(
        name=headers.get("pool", ""),
        state=headers.get("state", ""),
        headers=headers,
        scans=None if headers.get("scan") and not scans and headers["scan"] != "none requested" else tuple(scans),
        errors=errors,
        # a list may be cut off anywhere: it counts only when something follows it
        data_errors=0 if none else integer(counted[1]) if counted else len(listed) if permanent and ended else -1,
        complete=bool(none or counted or permanent or errors.startswith("List of errors unavailable")),
    )
    return _rows(pool, table) if table else pool


def _row_like(line: str) -> bool:
    return bool(re.search(rf"\s({_STATE})\s++{_COUNT}\s++{_COUNT}\s", line))


def _rows(pool: PoolStatus, table: list[str]) -> PoolStatus:
    columns = _TABLE.match(table[0])
    extra = len(columns[1].split()) if columns and columns[1] else 0
    if extra > _MOST_COLUMNS:
        raise ValueError(f"zpool status: {extra} columns after CKSUM")
    slow = bool(columns and columns[1] and columns[1].split()[0] == "SLOW")
    at = len(table[0].encode("utf-8", "surrogateescape").partition(b"STATE")[0])
    sections: dict[str, list[tuple[int, Row]]] = {"normal": []}
    section = "normal"
    for line in table[1:]:
        word = line.split()
        if sections["normal"] and word[0] in _CLASSES and (len(word) == 1 or _old_section(word)):
            section = _CLASSES[word[0]]
            if section in sections:
                raise ValueError(f"zpool status: two sections {word[0]}")
            sections[section] = []
        else:
            sections[section].append((_indent(line), _row(line, at, extra, slow, section == "spare")))
    if empty := [name for name, rows in sections.items() if not rows]:
        raise ValueError(f"zpool status: no device in section {empty[0]}")
    trees = {name: _tree(rows) for name, rows in sections.items()}
    if len(trees["normal"]) != 1:
        raise ValueError("zpool status: the table does not begin with one row for the pool")
    root = trees["normal"][0]._replace(type="root")
    tops = [("normal", each) for each in root.children]
    tops += [(name, each) for name in ("dedup", "special", "log") for each in trees.get(name, ())]
    return pool._replace(root=root, tops=tuple(tops), cache=trees.get("cache", ()), spares=trees.get("spare", ()))


def _old_section(words: list[str]) -> bool:
    """``logs ONLINE 0 0 0``, as illumos and early releases print it."""
    return words[0] == "logs" and len(words) == 5 and words[1] in ROW_STATES


def _indent(line: str) -> int:
    return sum(8 if each == "\t" else 1 for each in line[: len(line) - len(line.lstrip())])


def _row(line: str, at: int, extra: int, slow: bool, spare: bool) -> Row:
    """Name and state stand apart in the state's column; where TABs were lost, at the first word that is a state."""
    raw = line.encode("utf-8", "surrogateescape")
    line = line.rstrip()
    tail = re.compile(rf"({_STATE})(?:{_COUNTS}((?:\s++\S++){{{extra}}}))?(?:\s{{2}}\s*+(.+))?")
    name = raw[:at].decode("utf-8", "surrogateescape").strip()
    found = tail.fullmatch(raw[at:].decode("utf-8", "surrogateescape").rstrip()) if raw[at - 2 : at] == b"  " else None
    if not found or not name:
        starts = (each.start() for each in _STATES.finditer(line) if line[: each.start()].strip())
        found = next((found for start in starts if (found := tail.fullmatch(line, start))), None)
        if not found:
            raise ValueError(f"zpool status: row not understood or cut off: {line.strip()[:80]}")
        name = line[: found.start()].strip()
    groups = found.groups()
    state, read, write, checksum, more, note = (each or "" for each in groups)
    if not read and not spare:
        raise ValueError(f"zpool status: the row of {name[:80]} is cut off")
    values = {"read": count(read), "write": count(write), "checksum": count(checksum)}
    if slow:
        values["slow"] = count(more.split()[0]) if more else -1
    blocks = _BLOCKS.search(note)
    return Row(
        name,
        state=state,
        path=name if name.startswith("/") else "",
        counts={key: value for key, value in values.items() if value >= 0},
        note=note,
        ashifts=tuple(integer(each).bit_length() - 1 for each in blocks.groups()) if blocks else (),
    )


def _tree(rows: list[tuple[int, Row]]) -> tuple[Row, ...]:
    """The forest that the depths make."""
    if rows and any(depth < rows[0][0] for depth, _ in rows):
        raise ValueError("zpool status: the indentation of the table is not a tree")
    return tuple(_forest(rows, 0))


def _forest(rows: list[tuple[int, Row]], level: int) -> Iterator[Row]:
    if level > DEPTH:
        raise ValueError("zpool status: nested too deeply")
    while rows:
        depth, row = rows[0]
        inner = 1
        while inner < len(rows) and rows[inner][0] > depth:
            inner += 1
        children = tuple(_forest(rows[1:inner], level + 1))
        if not children:
            no_children(row.name)
        kind = top_type(row.name, bool(children)) or ("" if children else leaf_type(row.name))
        yield row._replace(type=kind, children=children)
        rows = rows[inner:]


def _scan(text: str) -> list[Scan]:
    text = text.replace("\n", " ").strip()
    kinds = [(function, state) for pattern, function, state in _SCANS if re.match(pattern, text)]
    if not kinds:
        return []
    function, state = kinds[0]
    over = state in ("finished", "canceled")
    ended = re.search(rf" on {_WHEN}", text) if over else None
    # a paused one has two dates: that of the pause and, below, that of the start
    began = None if over else re.search(rf" started on {_WHEN}", text) or re.search(rf" since {_WHEN}", text)
    paused = state == "paused" and began is not None and " started on " not in began[0]
    errors = re.search(r" with (\d+) errors", text)
    repaired = re.search(r"(?:repaired|resilvered)(?: \([^()]*+\))? ([\d.]++[KMGTPE]?B?) in ", text)
    return [
        Scan(
            function,
            state,
            text,
            end_s=_ctime(ended[1]) if ended else -1,
            errors=integer(errors[1]) if errors else -1,
            repaired=size(repaired[1]) if repaired else -1,
            start_s=_ctime(began[1]) if began and not paused else -1,
            moved=_moved(text) if state == "in progress" else -1,
        )
    ]


def _moved(text: str) -> int:
    """By its rates, which are means over its pass; from 2.2 on those that are 0 are left out."""
    if not re.search(r"[\d.][KMGTPE]?B? scanned\b", text):
        return -1
    rates = (size(each) for each in re.findall(r"(?<![\d.])([\d.]++[KMGTPE]?B?)/s", text))
    return int(any(rate > 0 for rate in rates))


def _ctime(text: str) -> int:
    """ctime(3) carries no time zone: read as UTC."""
    try:
        return calendar.timegm(time.strptime(text, "%a %b %d %H:%M:%S %Y"))
    except ValueError:
        return -1
