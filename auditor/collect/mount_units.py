"""Mounts of encrypted file systems that zfs-mount-generator has made: which encryption roots' units they are bound to.

systemd stops a mount that is bound to a unit which is not active. (man 5 systemd.unit, BindsTo=; OpenZFS
etc/systemd/system-generators/zfs-mount-generator.c)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.mount_units import BOUND, FOLDER, UNIT, encryption_root
from auditor.host.request import WITNESS, Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {"keys_bound": words("encryption roots whose unit zfs-load-key@ the mount of a file system is bound to")}
UNITS = f"{FOLDER}*.mount"


def request(host: Subject, facts: Facts) -> Read:
    return Read((UNITS, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """One, where all units were read."""
    reply.witness()
    if not reply.complete(UNITS):
        return
    lines = [line.removeprefix(BOUND) for text in reply.text.values() for line in text.splitlines() if BOUND in line]
    found = [UNIT.fullmatch(unit) for line in lines for unit in line.split(" ")]
    roots = tuple(sorted({encryption_root(each[1]) for each in found if each}))
    yield Fact(HOST, "keys_bound", known(roots, ", ".join(roots) or "none", f"grep {BOUND}zfs-load-key {UNITS}"))
