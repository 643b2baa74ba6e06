"""What imports and mounts pools when systemd starts the host: which of its units for ZFS are enabled, the pools of the cache
file that one of them reads, and the pools of which the generator of mounts has a list.

A unit is enabled by a link to it in a folder of the unit that wants it, and masked by a link to /dev/null. Only names are
read. That there is no link counts only where files could be read at all. (man 5 systemd.unit; OpenZFS etc/systemd/system;
man 8 zfs-mount-generator)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, flag, known, words
from auditor.host import pool_cache
from auditor.host.request import WITNESS, Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {
    "systemd": flag("the first process is systemd"),
    "zfs_units_wanted": words("UNIT WANTED of units for ZFS that another one wants or requires"),
    "zfs_units_masked": words("units for ZFS that are masked"),
    "cached_pools": words("the pools of /etc/zfs/zpool.cache"),
    "generated_pools": words("pools whose file systems zfs-mount-generator mounts"),
}
FIRST = "/proc/1/comm"
LINKS = tuple(f"/{root}/systemd/system/*.{how}/zfs*" for root in ("etc", "usr/lib") for how in ("wants", "requires"))
OWN = "/etc/systemd/system/zfs*"
LISTS = "/etc/zfs/zfs-list.cache/*"
_LINK = re.compile(r"/(?:etc|usr/lib)/systemd/system/([^/]+)\.(?:wants|requires)/([^/]+)")


def request(host: Subject, facts: Facts) -> Read:
    return Read((FIRST, *LINKS, OWN, pool_cache.PATH, LISTS, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    reply.witness()
    if FIRST in reply.text:
        name = reply.text[FIRST].removesuffix("\n")
        if not re.fullmatch(r"[!-~]{1,15}", name):
            raise ValueError(f"{FIRST} holds no name of a program")
        yield Fact(HOST, "systemd", known(name == "systemd", f"process 1 is {name[:40]}", f"cat {FIRST}"))
    seen = sorted({*reply.links, *reply.text})
    if reply.complete(*LINKS):
        wanted = tuple(f"{found[1]} {found[2]}" for each in seen if (found := _LINK.fullmatch(each)))
        text = ", ".join(each.partition(" ")[2] for each in wanted) or "no unit for ZFS is enabled"
        yield Fact(HOST, "zfs_units_wanted", known(wanted, text, "systemctl list-unit-files 'zfs*'"))
    if reply.complete(OWN):
        masked = tuple(path.rpartition("/")[2] for path in seen if reply.links.get(path) == "/dev/null")
        yield Fact(HOST, "zfs_units_masked", known(masked, ", ".join(masked) or "none is masked", f"ls -l {OWN}"))
    path = pool_cache.PATH
    if path in reply.text:
        if reply.text[path] == pool_cache.DAMAGED:
            raise ValueError(f"{path} is damaged")
        pools = tuple(reply.text[path].splitlines())
        yield Fact(HOST, "cached_pools", known(pools, f"in it: {', '.join(pools) or 'nothing'}", f"zdb -CU {path}"))
    elif reply.absent(path):
        yield Fact(HOST, "cached_pools", known((), f"no {path}", f"ls {path}"))
    if reply.complete(LISTS):
        folder = LISTS.removesuffix("*")
        pools = tuple(each.removeprefix(folder) for each in seen if each.startswith(folder))
        yield Fact(HOST, "generated_pools", known(pools, ", ".join(pools) or "no list", f"ls {folder}"))
