"""The same host after a restart: other kernel names and numbers of processes. And a host with other drives in its slots."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from auditor.host.request import Files
from auditor.model.disk import EMULATED
from auditor.recording.recording import Recording

KERNEL = re.compile(
    r"(?<![A-Za-z0-9])(?:(sd)([a-h])(?=\d{0,2}(?![A-Za-z0-9]))"
    r"|(nvme)([0-7])(?=(?:c\d+)?(?:n\d+)?(?:p\d+)?(?![A-Za-z0-9])))"
)
LETTERS = dict(zip("abcdefgh", "hgfedcba", strict=True))
SERVER = re.compile(r"(?m)^(\d+) \((?:postgres|mysqld|mariadbd|mongod|redis-server|valkey-server|etcd)\)")


def renamed(past: Recording) -> Recording:
    """After a restart."""
    processes = {
        found[1]
        for files in past.files.values()
        for path, text in files.text.items()
        if path.startswith("/proc/") and path.endswith("/stat")
        for found in SERVER.finditer(text)
    }
    pids = {each: str(int(each) + 9000) for each in processes}
    any_of = "|".join(sorted(pids, key=len, reverse=True))
    places = (
        rf"(?<=/proc/)(?:{any_of})(?=/)",
        rf"^(?:{any_of})(?= \()",
        rf"(?<=\) [A-Z] )(?:{any_of})(?= )",  # a parent
        rf'(?<="process": )(?:{any_of})\b',  # as the server itself says
    )
    number = re.compile("|".join(places)) if pids else None

    def change(text: str) -> str:
        text = KERNEL.sub(lambda m: m[1] + LETTERS[m[2]] if m[1] else f"{m[3]}{7 - int(m[4])}", text)
        return number.sub(lambda m: pids[m[0]], text) if number else text

    return changed(past, change)


def other_drives(past: Recording) -> Recording:
    """Other drives of the same model in the same slots."""

    def change(text: str) -> str:
        text = re.sub(r"LAB(NVME|SATA)(\d)", r"NEW\1\2", text)
        text = re.sub(r"4c4142(4e564d45|53415441)(?=3\d)", r"4e4557\1", text)
        text = text.replace("PHLJ91230", "PHLJ99999").replace("2118E5AA1F", "2118E5BB2F")
        return text.replace("3231313845354141314", "3231313845354242324")

    return changed(past, change)


def passed_through(past: Recording) -> Recording:
    """The lab's drives with names of their own as what they are called: QEMU emulates none of them."""
    return changed(past, lambda text: text.replace(EMULATED, "RVT04B6Q"))


def changed(past: Recording, change: Callable[[str], str]) -> Recording:
    """With another text wherever there is one."""

    def table(of: Mapping[str, str]) -> dict[str, str]:
        return {change(key): change(value) for key, value in of.items()}

    def data(of: bytes) -> bytes:
        return change(of.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    commands = {
        tuple(map(change, argv)): each._replace(stdout=data(each.stdout), stderr=data(each.stderr))
        for argv, each in past.commands.items()
    }
    files: dict[tuple[str, ...], Files] = {}
    for patterns, each in past.files.items():
        files[tuple(map(change, patterns))] = each._replace(
            text=table(each.text),
            links=table(each.links),
            errors=table(each.errors),
            devices=table(each.devices),
            changed={change(path): seconds for path, seconds in each.changed.items()},
        )
    return replace(past, commands=commands, files=files)
