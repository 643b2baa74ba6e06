"""What a subject is, from one night to the next: a drive by its serial number, a pool by its GUID, a server by its data.

The kernel calls another drive sda after a restart, and a server has another process number. These names are evidence. Whatever
is compared between two nights (baseline, diff, ids of findings) asks here what is the same.

========= =====================================================================================================
host      itself
dataset   its name, as an administrator chose it
pool      its GUID, which stays when it is renamed; else its name
vdev      its pool, and its place in it (mirror-0); one without legs as its device
leaf      its pool and the drives that it lies on, with the partition; else its GUID; else a path that udev or a user chose
disk      its serial number, else its WWN, else the GUID of what a pool has on it
database  its engine, its data directory, and the datasets that this lies on
========= =====================================================================================================
"""

from __future__ import annotations

import re
from typing import NamedTuple

from auditor.facts import HOST, Facts, Subject

NEW_NAME = ("disk", "leaf", "vdev", "pool", "database")  # kinds of which a restart or a command may change the name
MEMBERS = re.compile(r"(?:mirror|raidz\d|draid\d.*|spare|replacing|indirect|hole)-\d+")
_PART = re.compile(r"(?:-part|(?<=\d)p|(?<=\Dd[a-z]))(\d+)$")
_LASTING = re.compile(r"/dev/(?:disk/by-|mapper/)|/(?!dev/)")
_NUMBERED = re.compile(r" (?:\d+|self)$")
_SAYS_NOTHING = re.compile(r"[0:.\s-]*|none|unknown|not[ _]specified|n/a", re.I)


class Identity(NamedTuple):
    """text: the same on every night, another one for another thing; empty where the host does not tell. label: for a reader."""

    text: str
    label: str


class Identities:
    """Of the subjects of one host."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._found: dict[Subject, Identity] = {}

    def of(self, subject: Subject) -> Identity:
        if subject not in self._found:
            self._found[subject] = self._identity(subject)
        return self._found[subject]

    def _identity(self, subject: Subject) -> Identity:
        match subject.kind:
            case "pool":
                return Identity(self._pool(subject.name), subject.name)
            case "vdev":
                return Identity(self._vdev(subject), str(subject))
            case "leaf":
                return Identity(self._leaf(subject), str(subject))
            case "disk":
                return Identity(self._disk(subject), subject.name)
            case "database":
                return self._database(subject)
            case _:
                return Identity(str(subject), str(subject))

    def _pool(self, name: str) -> str:
        pool = Subject("pool", name)
        return self._word(pool, "guid") or self._word(pool, "list_guid") or name

    def _vdev(self, vdev: Subject) -> str:
        if MEMBERS.fullmatch(vdev.name):
            return f"{self._pool(vdev.within)} {vdev.name}"
        leaves = {self.of(leaf).text for leaf in self._facts.linked(vdev, "leaves")}
        guid = self._word(vdev, "guid")
        return leaves.pop() if len(leaves) == 1 else f"{self._pool(vdev.within)} {guid}" if guid else ""

    def _leaf(self, leaf: Subject) -> str:
        pool, path = self._pool(leaf.within), self._word(leaf, "path")
        drives = sorted({self._drive(disk) for disk in self._facts.linked(leaf, "disks")})
        if drives and all(drives):
            part = _PART.search(path or leaf.name)
            return f"{pool} {' '.join(drives)}{f' part {part[1]}' if part else ''}"
        if guid := self._word(leaf, "guid"):
            return f"{pool} {guid}"
        return f"{pool} {leaf.name}" if _LASTING.match(path or leaf.name) else ""

    def _drive(self, disk: Subject) -> str:
        """By what it reports."""
        return self._word(disk, "serial") or self._word(disk, "wwn")

    def _disk(self, disk: Subject) -> str:
        if own := self._drive(disk):
            return own
        users = self._facts.linked(disk, "used_by")
        guids = sorted(self._word(leaf, "guid") for leaf in users)
        return " ".join(guids) if all(guids) else ""

    def _database(self, database: Subject) -> Identity:
        """Servers in containers may all have their data in the same place, each as it sees it."""
        engine, home = self._word(database, "engine"), self._word(database, "data_directory")
        if not _NUMBERED.search(database.name):  # those of one user, together
            return Identity(database.name, database.name)
        if not home.startswith("/"):
            return Identity("", database.name)
        label = f"{engine} {home}"
        below = sorted(each.name for each in self._facts.linked(database, "data_datasets"))
        return Identity(f"{label} on {' '.join(below)}" if below else label, label)

    def _word(self, subject: Subject, name: str) -> str:
        """A fact as text; empty where it is not known or says nothing."""
        found = self._facts.get(subject, name).word().strip()
        return "" if _SAYS_NOTHING.fullmatch(found) else found


def identities(facts: Facts) -> dict[Subject, str]:
    """Of all subjects whose names may change, as far as the host tells."""
    names = Identities(facts)
    listed = (each for kind in NEW_NAME for each in facts.subjects(kind))  # type: ignore[arg-type]
    return {each: text for each in listed if each != HOST and (text := names.of(each).text)}
