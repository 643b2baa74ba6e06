"""``/proc/meminfo`` and ``/proc/uptime``: how much memory, how long since boot. (man 5 proc)"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.collect._json import LARGEST, integer
from auditor.facts import HOST, Fact, Facts, Subject, known, number, real
from auditor.host.request import Files, Read, Request

PER = "host"
SUBJECT = "host"
FACTS = {
    "memory_bytes": number("memory that the kernel has (MemTotal)"),
    "memory_available_bytes": number("memory that can be had without swapping (MemAvailable; leaves out the ARC)"),
    "swap_bytes": number("swap space (SwapTotal)"),
    "uptime_s": real("seconds since boot"),
}
ROWS = {"MemTotal": "memory_bytes", "MemAvailable": "memory_available_bytes", "SwapTotal": "swap_bytes"}


def request(host: Subject, facts: Facts) -> Request:
    """Two files."""
    return Read(("/proc/meminfo", "/proc/uptime"))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """kB there means 1024 bytes."""
    found = dict(re.findall(r"^(\w+): +(\d+) kB\n", reply.text.get("/proc/meminfo", ""), re.M))
    for row, name in ROWS.items():
        if row in found:
            yield Fact(HOST, name, known(_bytes(found[row]), f"{row} {found[row]} kB", f"grep {row} /proc/meminfo"))
    if "/proc/uptime" in reply.text:
        times = re.fullmatch(r"(\d+\.\d\d) \d+\.\d\d\n", reply.text["/proc/uptime"])
        if times is None:
            raise ValueError("/proc/uptime is not two numbers")
        yield Fact(HOST, "uptime_s", known(float(times[1]), f"up {times[1]} s", "cat /proc/uptime"))


def _bytes(kib: str) -> int:
    number = integer(kib) * 1024
    if number > LARGEST:
        raise ValueError(f"{kib} kB is more than any machine has")
    return number
