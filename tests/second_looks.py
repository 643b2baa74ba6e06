"""What a recording of an older zaudit lacks: the second looks at lists that have no end mark. What the second would have said
follows from the first, where that is whole; with it the self-test can lose something of either."""

from __future__ import annotations

import re
from dataclasses import replace

from auditor.databases.configuration import Tree
from auditor.host.request import Capture, Files
from auditor.recording.recording import Recording
from auditor.sources import mounts, zpool_history

EVENTS = ("zpool", "events", "-H", "-v")


def added(past: Recording) -> Recording:
    """The same, where it has the first looks and not the second ones as they are asked today."""
    commands = dict(past.commands)
    lists = []
    for argv, answer in past.commands.items():
        match argv:
            case ("zpool", "events", "-H", pool) if answer.exit == 0 and pool != "-v":
                lists.append((pool, answer.stdout.decode().splitlines()))
            case ("zpool", "history", pool) if answer.exit == 0:
                again = ("zpool", "history", "-i", pool)
                if again not in commands or commands[again].keep != zpool_history.INTERNAL_HISTORY_KEEP:
                    commands[again] = _again(answer)
    if lists:
        commands.setdefault(EVENTS, Capture(0, _numbered(lists).encode(), keep=zpool_history.ALL_EVENTS_KEEP))
    files = {patterns: _with_devices(patterns, answer) for patterns, answer in past.files.items()}
    return replace(past, commands=commands, files=files)


def _again(answer: Capture) -> Capture:
    """The commands alone, chosen as they are chosen beside what the kernel did by itself."""
    kept = re.compile(zpool_history.INTERNAL_HISTORY_KEEP.encode())
    lines = (line for line in answer.stdout.split(b"\n") if kept.search(line))
    return answer._replace(stdout=b"\n".join(lines), keep=zpool_history.INTERNAL_HISTORY_KEEP)


def _with_devices(patterns: tuple[str, ...], answer: Files) -> Files:
    """Each folder on the way to the files of a database is on the device of its mount."""
    table = answer.text.get(patterns[0], "")
    if not patterns[0].endswith("/mountinfo") or not patterns[1:] or answer.devices or not table:
        return answer
    root = f"{patterns[0].removesuffix('mountinfo')}root"
    tree, mounted = Tree(answer, root), mounts.mounts(table)
    found = {
        path: mount.major_minor
        for path in (*patterns[1:], *answer.links)
        if path.startswith(f"{root}/")
        and "*" not in path
        and path not in answer.errors
        and (mount := mounts.mount_of(mounted, tree.real(path.removeprefix(root))))
    }
    return answer._replace(devices=found)


def _numbered(lists: list[tuple[str, list[str]]]) -> str:
    """As the kernel numbers them: those of all pools in their order. Lines that are no events have no number."""
    rows = [
        (zpool_history.event(found), line, pool)
        for pool, lines in lists
        for line in lines
        if (found := zpool_history.LINE.fullmatch(line))
    ]
    rows.sort(key=lambda row: row[0].rpartition(" ")[0])
    return "".join(
        f'{line}\n        pool = "{pool}"\n        eid = {number:#x}\n'
        for number, (_, line, pool) in enumerate(rows, 1)
    )
