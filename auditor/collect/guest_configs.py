"""``/etc/pve/qemu-server``, ``/etc/libvirt/qemu``: disks of guests that are set to drop flushes when these start, whether they
run now or not. (Proxmox VE, man 5 qm.conf, pvesm: ``STORAGE:VOLUME``; libvirt, Domain XML format)

What is kept of these files is said in ``guest_settings``. /etc/pve is a file system of Proxmox VE's own and shows the guests of
this node. What other hypervisors and front ends keep elsewhere is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from auditor.facts import HOST, Evidence, Fact, Facts, GuestSetting, Known, Subject, rows
from auditor.host import guest_lines
from auditor.host.guest_settings import DROPS, GUEST_FILE, LIBVIRT, PROXMOX, STORAGES, UNSURE
from auditor.host.request import WITNESS, Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {"guests_set_to_drop": rows(GuestSetting, "each disk that drops flushes from its guest's next start on")}
_VOLUME = re.compile(r"([\w.-]+):(.+)")
MOST, LVM = 1000, "lvm:"


def request(host: Subject, facts: Facts) -> Read:
    return Read((PROXMOX, STORAGES, LIBVIRT, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where one of them could not be read, or is not understood."""
    reply.witness()
    for path, error in reply.errors.items():
        asked = path in (PROXMOX, STORAGES, LIBVIRT) or GUEST_FILE.fullmatch(path)
        if asked and not error.startswith("no such"):
            raise ValueError(f"{path}: {error}")
    if not all(reply.complete(each) for each in (PROXMOX, LIBVIRT)):
        return
    rows = (line.split(" ", 2) for line in _lines(reply, STORAGES))
    storages = {name: (kind, place) for kind, name, place in rows}
    found = dict[GuestSetting, Evidence]()
    for path in sorted(each for each in reply.text if GUEST_FILE.fullmatch(each)):
        guest = path.rpartition("/")[2].rpartition(".")[0]
        for line in _lines(reply, path):
            if line == UNSURE or not line.startswith(DROPS):
                raise ValueError(f"{path}: not all of its disks are understood")
            volume = line.removeprefix(DROPS)
            text = f"guest {guest}: {volume} is set to cache=unsafe"
            who = guest_lines.LIBVIRT if path.endswith(".xml") else guest_lines.PROXMOX
            found[GuestSetting(who, guest, _place(volume, storages))] = Evidence(text, f"grep unsafe {path}")
    if len(found) > MOST:
        raise ValueError(f"more than {MOST} disks")
    none = Evidence(
        "no guest that Proxmox VE or libvirt knows is set to drop flushes", f"grep unsafe {PROXMOX} {LIBVIRT}"
    )
    yield Fact(HOST, "guests_set_to_drop", Known(tuple(found), tuple(found.values()) or (none,)))


def _lines(reply: Files, path: str) -> list[str]:
    return reply.text.get(path, "").splitlines()


def _place(volume: str, storages: Mapping[str, tuple[str, str]]) -> str:
    """A path, a dataset or a volume group. Raises ValueError for a volume of a storage that is not known: where it lies was
    not seen."""
    if volume.startswith("/"):
        return volume
    named = _VOLUME.fullmatch(volume)
    kind, place = storages.get(named[1] if named else "", ("", ""))
    if not named or not kind:
        raise ValueError(f"{volume}: its storage is not known")
    if kind.startswith("lvm"):
        return LVM + place
    parts = named[2].split("/")  # of a linked clone that of its origin comes first
    return f"{place}/{parts[-1]}" if kind == "zfspool" else "/".join((place, "images", *parts[-2:]))
