"""``/proc/PID/cgroup``: which service of the host's systemd a database server belongs to.

systemd names the control groups of its units after them, below slices: the first folder that is no slice is the unit. Below a
unit of its own user manager (user.slice) a user names them as he likes, and so does a container (machine.slice, or none of
systemd's at all): what stands there says nothing of the host's services. (man 7 cgroups; systemd src/basic/cgroup-util.c,
cg_path_decode_unit() and skip_slices(), 257)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import Fact, Facts, Subject, known, word
from auditor.host.request import Files, Read, Skip
from auditor.text import harmless

PER = "database"
SUBJECT = "database"
FACTS = {"unit": word("the service of the host's systemd that it belongs to; empty: none")}
OTHERS = ("user.slice", "machine.slice")  # of users, and of containers
UNIT = re.compile(r"[\w@.:\\-]{1,247}\.service", re.ASCII)  # 255 with its end
_HIERARCHIES = ("name=systemd", "")  # of systemd beside those of controllers, or the only one


def request(database: Subject, facts: Facts) -> Read | Skip:
    process = database.name.partition(" ")[2]
    if not process.isdigit():
        return Skip("it is no process that is seen here", applies=False)
    return Read((f"/proc/{process}/cgroup",))


def parse(reply: Files, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where the line of systemd's hierarchy is missing, or names no place below the root."""
    path = f"/proc/{database.name.partition(' ')[2]}/cgroup"
    if path not in reply.text:
        raise ValueError(f"{path}: {reply.errors.get(path, 'was not read')}")
    rows = [line.split(":", 2) for line in reply.lines(path)]
    groups = {row[1]: row[2] for row in rows if len(row) == 3}
    group = next((groups[each] for each in _HIERARCHIES if each in groups), "")
    if not group.startswith("/"):
        raise ValueError(f"{path}: no line of systemd's hierarchy")
    if ".." in group.split("/") or group.endswith(" (deleted)"):
        raise ValueError(f"{path}: {harmless(group[:200])} is no control group that is seen from here")
    unit = _unit(group)
    text = f"in {harmless(group[:200])}"
    yield Fact(database, "unit", known(unit, text if unit else f"{text}: no service of the host", f"cat {path}"))


def _unit(group: str) -> str:
    """The service of a control group; empty where it is none of the host's. Raises ValueError for a name that is none."""
    parts = group.split("/")[1:]
    slices = [each for each in parts if each.endswith(".slice")]
    if not slices or parts[0] != slices[0] or parts[0] in OTHERS:
        return ""
    first = next((each for each in parts if not each.endswith(".slice")), "").removeprefix("_")
    if not first.endswith(".service"):
        return ""
    if not UNIT.fullmatch(first) or first.startswith("-"):
        raise ValueError(f"{harmless(first[:100])} is no name of a service")
    return first
