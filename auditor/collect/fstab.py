"""``/etc/fstab``: what systemd mounts by it when the host starts without waiting for the file systems of ZFS, and which folders
that needs. (man 5 fstab, man 5 systemd.mount)

That there is no such file means that nothing is mounted by it only where files could be read at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, FstabNeed, Subject, known, rows, words
from auditor.host import fstab
from auditor.host.request import WITNESS, Files, Read

REQUIRES = "x-systemd.requires="
PER = "host"
SUBJECT = "host"
FACTS = {
    "fstab_needs": rows(FstabNeed, "mounts by fstab that wait for nothing of ZFS"),
    "fstab_requires": words("units for ZFS that mounts by fstab start before them (x-systemd.requires)"),
}


def request(host: Subject, facts: Facts) -> Read:
    return Read((fstab.PATH, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Of the lines as they are kept."""
    reply.witness()
    if fstab.PATH not in reply.text and not reply.absent(fstab.PATH):
        return
    lines = fstab.kept(reply.text.get(fstab.PATH, "")).splitlines()
    needs = tuple(each for line in lines for each in _needs(*line.split(" ")))
    text = f"{len(lines)} mounts in {fstab.PATH}" if lines else f"nothing is mounted by {fstab.PATH}"
    yield Fact(HOST, "fstab_needs", known(needs, text, f"cat {fstab.PATH}"))
    units = tuple(sorted({each for line in lines for each in _requires(line.rpartition(" ")[2].split(","))}))
    text = ", ".join(units) or f"no unit for ZFS is required in {fstab.PATH}"
    yield Fact(HOST, "fstab_requires", known(units, text, f"cat {fstab.PATH}"))


def _needs(source: str, point: str, kind: str, options: str) -> Iterator[FstabNeed]:
    waits = (each in fstab.LATER or each.partition("=")[2].startswith("zfs") for each in options.split(","))
    if kind != "zfs" and not any(waits):
        yield from (FstabNeed(point, path) for path in (point, source) if path.startswith("/"))


def _requires(options: list[str]) -> Iterator[str]:
    """Of what is mounted when the host starts."""
    if not {"noauto", "x-systemd.automount"} & {*options}:
        names = [each.removeprefix(REQUIRES) for each in options if each.startswith(REQUIRES)]
        yield from (each for each in names if each.startswith("zfs"))
