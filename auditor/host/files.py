"""Reading the files that a collector asks for: the machine's own here, those of others with their rights (``owner``). Sizes
and numbers are bounded (``request``), and of what may hold passwords only a part is kept (``allowed``)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from auditor.databases import SERVERS, configuration
from auditor.databases.engine import ARGUMENT, path
from auditor.host import owner as host_owner
from auditor.host import request, trust
from auditor.host.children.reader import BLOCKS, CHANGED, DEVICE, ERROR, LINK, OTHER, TEXT, Reader, reason
from auditor.host.owner import Others
from auditor.host.request import Files
from auditor.sources import catalog, guests

_OF_PROCESS = re.compile(r"/proc/(\d+|self)/(.+)", re.DOTALL)
_OF_EACH = re.compile(r"/proc/(\d+|\*)/(.+)", re.DOTALL)
_OPEN = re.compile(r"/proc/\d+/fd/\d+")
_ENDED = b"no such file or directory"
Answers = tuple[  # as Files has them, still being filled
    dict[str, str], dict[str, str], dict[str, str], dict[str, str], dict[str, float]
]


def read_files(
    patterns: tuple[str, ...],
    others: Others | None = None,
    owner: str = "",
    timeout_s: float = 30.0,
    blocks: bool = False,
    trusted: bool = False,
) -> Files:
    """Expand the patterns and read what they name; symbolic links are noted, and followed only to regular files.

    others: what was seen of the processes whose files are asked for. owner: the folder whose owner's rights are taken below
    /proc/self/root. blocks: of these nothing but the sizes of blocks is asked. trusted: of the machine's own files only those
    that nobody but root and this user could have put there or changed."""
    found: Answers = {}, {}, {}, {}, {}
    seen = others or Others()
    mine: list[str] = []
    kept: list[str] = []
    theirs: dict[str, list[str]] = {}  # root directory -> patterns
    for pattern in patterns:
        root = PROCESS_ROOT.match(pattern)
        if not _possible(pattern):
            _keep(found, ERROR, pattern, reason(ValueError()).encode())
        elif root:
            theirs.setdefault(root[0].rstrip("/"), []).append(pattern)
        elif _OF_EACH.fullmatch(pattern) and not host_owner.USERS_AT_ONCE.fullmatch(pattern):
            kept.append(pattern)
        else:
            mine.append(pattern)
    if mine:
        _read_own(mine, seen, found, trusted=trusted)
    if kept:
        _read_memory(kept, seen, timeout_s, found)
    for root_path, wanted in theirs.items():
        _read_others(root_path, wanted, seen, owner, timeout_s, blocks, found)
    return Files(*found)


def _possible(path: str) -> bool:
    """Whether a file can have this name."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _the_one(patterns: Sequence[str]) -> str:
    """The number of the process that all that they say of processes is about, if it is one."""
    numbers = {process[1] for each in patterns if (process := _OF_EACH.match(each))} - {"self"}
    return numbers.pop() if len(numbers) == 1 and "*" not in numbers else ""


def _read_own(patterns: Sequence[str], others: Others, found: Answers, *, trusted: bool) -> None:
    one = _the_one(patterns)

    def opened(path: str, flags: int) -> int:
        if trusted:
            return trust.locate(path)[0]
        flags |= os.O_PATH | os.O_CLOEXEC
        if one and (process := _OF_PROCESS.fullmatch(path)) and process[1] == one:
            return os.open(process[2], flags, dir_fd=others.process(one))
        return os.open(path, flags)

    wide = False

    def said(kind: str, path: str, data: bytes) -> None:
        if kind != OTHER:  # what is no file has nothing to say: /dev is full of it
            _keep(found, kind, path, data, wide=wide)

    try:
        reader = Reader(
            opened, said, file_bytes=request.FILE_BYTES, total_bytes=request.MACHINE_BYTES, files=request.MACHINE_ENTRIES,
            entries=request.MACHINE_ENTRIES, over=f"more than {request.MACHINE_BYTES // request.MIB} MiB for one question",
            follow=lambda path: not _OF_PROCESS.match(path),
        )  # fmt: skip
    except OSError as error:  # without /proc no file can be judged before it is read
        _fail(found, patterns, f"/proc/self/fd: {reason(error)}")
        return
    try:
        for pattern in patterns:
            wide = "*" in pattern
            reader.read(pattern, content=True)
    finally:
        reader.close()


def _read_memory(patterns: Sequence[str], others: Others, timeout_s: float, found: Answers) -> None:
    """Of all processes only those that are there are told."""
    wide: dict[str, bool] = {}
    try:
        numbers = sorted(filter(str.isdigit, os.listdir("/proc"))) if any("*" in each for each in patterns) else []
        held = (one, others.process(one)) if (one := _the_one(patterns)) else None
    except OSError as error:
        _fail(found, patterns, reason(error))
        return
    for pattern in patterns:
        process = _OF_EACH.fullmatch(pattern)
        assert process
        every = process[1] == "*"
        wide |= dict.fromkeys((f"/proc/{each}/{process[2]}" for each in numbers) if every else [pattern], every)

    def said(kind: str, path: str, data: bytes) -> None:
        every = wide.get(path, True)
        if not (every and data == _ENDED):
            _keep(found, kind, path, data, wide=every)

    host_owner.read_memory(list(wide), held, timeout_s, said)


def _read_others(
    root: str, patterns: Sequence[str], others: Others, owner: str, timeout_s: float, blocks: bool, found: Answers
) -> None:
    """Files below the root directory of a process: of those that are no configuration only links and devices are noted."""
    wanted = [
        f"{'=' if blocks else '+' if _is_configuration(each) else '-'}{each.removeprefix(root)}" for each in patterns
    ]
    answers = others.read(root.split("/")[2], wanted, owner, timeout_s)
    if isinstance(answers, str):
        _fail(found, patterns, answers)
        return
    for kind, below, data in answers:
        path = root + below
        if kind == TEXT and not _is_configuration(path):
            _keep(found, ERROR, path, b"its name is none that zaudit reads")
        elif kind == OTHER:
            _keep(found, ERROR, path, b"not a regular file")
        elif kind == BLOCKS:
            _keep(found, TEXT, path, data)
        else:
            _keep(found, kind, path, data)


def _is_configuration(path: str) -> bool:
    return bool(CONFIGURATION.fullmatch(path.rpartition("/")[2].replace("*", "x")))


def _keep(found: Answers, kind: str, path: str, data: bytes, *, wide: bool = False) -> None:
    text, links, errors, devices, changed = found
    if kind == LINK and _OPEN.fullmatch(path) and not data.startswith(b"/"):
        return  # sockets, pipes and the like
    if kind == CHANGED:  # a link, and what it leads to: the later of both
        changed[path] = max(float(data), changed.get(path, float(data)))
    elif kind != TEXT:
        (links if kind == LINK else devices if kind == DEVICE else errors)[path] = os.fsdecode(data)
    elif (kept := allowed_part(path, data.decode("utf-8", "surrogateescape"), wide=wide)) is not None:
        text[path] = kept


def _fail(found: Answers, patterns: Sequence[str], why: str) -> None:
    for pattern in patterns:
        _keep(found, ERROR, pattern, why.encode("utf-8", "surrogateescape"))


# What is kept of files that say more than zaudit asks: configuration, environment and command lines hold passwords.
#
# Everything here happens before anything is parsed, stored or recorded.

PROCESS_ROOT = re.compile(r"/proc/(?:\d+|self)/root/")
CONFIGURATION = re.compile(r"[\w.@#-]+\.(?:conf|cnf|ya?ml)")
KTHREADD = "PPid:\t2"  # the parent of all threads of the kernel
NAMED = "Name:\t"
_STATUS = frozenset((KTHREADD, *(NAMED + each for each in SERVERS)))
IGNORES_FLUSHES = "libeatmydata"
_SIZE = re.compile(r"[0-9]{1,10} [0-9]{1,10}")
_PROCESS = re.compile(r"/proc/(?:\d+|self)/(environ|maps|cmdline|status|stat)")


def allowed_part(name: str, text: str, *, wide: bool = False) -> str | None:
    """The part of a file that is kept, or None: nothing of it. name: its path. wide: it is one of many that a pattern means.
    Lines of a configuration keep their number."""
    if PROCESS_ROOT.match(name):
        last = name.rpartition("/")[2]
        if "*" in last:  # sizes of blocks, and how many files have them; a question mark for any other line
            return "".join(f"{line if _SIZE.fullmatch(line) else '?'}\n" for line in text.splitlines())
        return configuration.settings(last, text)
    if declared := catalog.keep(name):
        return declared(text)
    found = _PROCESS.fullmatch(name)
    match found and found[1]:
        case "stat":  # of database servers, and of the first process, which shows that they can be seen
            command = text.partition(" (")[2].rpartition(") ")[0]  # may hold any character (man 5 proc_pid_stat)
            return text if name == "/proc/1/stat" or command in ("", *SERVERS) else None
        case "environ":
            return configuration.variables(text)
        case "cmdline":
            guest = guests.keep_command_line(text)
            return guest if wide or guest is not None else configuration.command_line(text)
        case "maps":
            return _libraries(text)
        case "status":  # who runs it, whether the kernel made it, and which database server it may be
            return "".join(f"{line}\n" for line in text.split("\n") if line.startswith("Uid:") or line in _STATUS)
        case _:
            return text


def _libraries(maps: str) -> str:
    """Of the files that are mapped those that make fsync do nothing, and that there are others. What was kept is kept again."""
    rows = (line.split(maxsplit=5) for line in maps.splitlines())
    names = {" ".join(row) if len(row) < 5 else row[5] for row in rows if len(row) != 5}
    found = {each if path(each) else IGNORES_FLUSHES for each in names if IGNORES_FLUSHES in each}
    others = [ARGUMENT] if any(IGNORES_FLUSHES not in each for each in names) else []
    return "".join(f"{each}\n" for each in (*sorted(found), *others))
