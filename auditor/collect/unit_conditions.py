"""``busctl get-property``: the conditions and assertions without which the service of a database does not start. ``systemctl
show`` has no form for them. (man 1 busctl; man 5 org.freedesktop.systemd1, Conditions, Asserts; systemd src/core/dbus-unit.c
property_get_conditions(), src/busctl/busctl.c format_cmdline(), src/basic/bus-label.c, 257)"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import Fact, Facts, Known, Subject, known, words
from auditor.host.request import Output, Run, Skip

PER = "database"
SUBJECT = "database"
FACTS = {
    "unit_conditions": words(
        "KIND=PATH of its conditions and assertions about paths; | before one of several of which one is enough, ! where it is"
        " turned round"
    )
}
MANAGER = "org.freedesktop.systemd1"
UNITS = "/org/freedesktop/systemd1/unit/"
ASKED = ("Conditions", "Asserts")
_LIST = re.compile(r"a\(sbbsi\) (\d{1,6})((?: .*)?)")
_ONE = re.compile(r' "(\w+)" (true|false) (true|false) "((?:[^"\\]|\\.)*)" -?\d+')
_ABOUT = re.compile(r"(?:Condition|Assert)(?:Path|Directory|File)\w*")
_CHAR = re.compile(r"\\([0-7]{3}|.)")
_LETTERS = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def request(database: Subject, facts: Facts) -> Run | Skip:
    unit = facts.get(database, "unit")
    if not isinstance(unit, Known):
        return Skip(unit.reasons[0].text, unit.reasons[0].remedy)
    if not unit.value:
        return Skip("no service of the host starts it", applies=False)
    path = UNITS + label(str(unit.value))
    return Run(("busctl", "get-property", MANAGER, path, f"{MANAGER}.Unit", *ASKED), package="systemd")


def label(name: str) -> str:
    """A name as a part of a path on the bus."""
    return "".join(
        char if char.isascii() and (char.isalpha() or (char.isdigit() and i)) else f"_{ord(char):02x}"
        for i, char in enumerate(name)
    )


def parse(reply: Output, database: Subject) -> Iterator[Fact]:
    """Raises ValueError where a list is cut off."""
    lines = reply.text.removesuffix("\n").split("\n")
    if len(lines) != len(ASKED):
        raise ValueError("not one line for each property")
    found: list[str] = []
    for line in lines:
        head = _LIST.fullmatch(line)
        rows = list(_ONE.finditer(head[2])) if head else []
        if not head or len(rows) != int(head[1]) or "".join(row[0] for row in rows) != head[2]:
            raise ValueError("a line that is no list of conditions")
        several = sum(row[2] == "true" for row in rows) > 1
        for row in rows:
            if _ABOUT.fullmatch(row[1]):
                path = _CHAR.sub(_meant, row[4]).encode("latin-1").decode("utf-8", "surrogateescape")
                or_, not_ = "|" if row[2] == "true" and several else "", "!" if row[3] == "true" else ""
                found.append(f"{or_}{not_}{row[1]}={path}")
    yield Fact(
        database, "unit_conditions", known(tuple(found), ", ".join(found) or "no condition about a path", reply.command)
    )


def _meant(found: re.Match[str]) -> str:
    """The byte for which an escape stands."""
    return chr(int(found[1], 8) & 0xFF) if len(found[1]) == 3 else _LETTERS.get(found[1], found[1])
