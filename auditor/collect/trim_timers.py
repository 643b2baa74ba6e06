"""Which pools are trimmed on a schedule: OpenZFS' systemd timers, and Debian's monthly cron job. (man 8 zpool-trim,
PERIODIC TRIM; Debian zfsutils-linux /usr/lib/zfs-linux/trim)

Debian's job trims pools that lie on NVMe drives only, unless their property org.debian:periodic-trim says otherwise.
That there is no timer counts only where files could be read at all: /proc/filesystems is the witness.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, flag, known, words
from auditor.host.request import WITNESS, Files, Read
from auditor.text import unescaped

PER = "host"
SUBJECT = "host"
FACTS = {
    "trim_timers": words("pools with a zfs-trim timer that is enabled"),
    "trim_cron": flag("Debian's job trims pools of NVMe drives once a month"),
}
UNITS = "/etc/systemd/system/*.wants/zfs-trim-*"
CRON = "/etc/cron.d/zfsutils-linux"
_TIMER = re.compile(r"zfs-trim-(?:weekly|monthly)@(.+)\.timer")


def request(host: Subject, facts: Facts) -> Read:
    return Read((UNITS, CRON, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Instance names are pool names, escaped as systemd does it ("-" stands for "/", which no pool has)."""
    reply.witness()
    links = [path.rpartition("/")[2] for path in sorted((*reply.links, *reply.text))]
    timers = [found[1] for name in links if (found := _TIMER.fullmatch(name))]
    if timers or reply.complete(UNITS):
        pools = tuple(dict.fromkeys(map(unescaped, timers)))
        text = ", ".join(pools) or "no zfs-trim timer is enabled"
        yield Fact(HOST, "trim_timers", known(pools, text, "systemctl list-timers 'zfs-trim-*'"))
    if CRON in reply.text:
        active = any(
            "zfs-linux/trim" in line and not line.lstrip().startswith("#") for line in reply.text[CRON].split("\n")
        )
        yield Fact(HOST, "trim_cron", known(active, "zfs-linux/trim" if active else "no trim in it", f"cat {CRON}"))
    elif reply.absent(CRON):
        yield Fact(HOST, "trim_cron", known(False, f"no {CRON}", f"ls {CRON}"))
