"""A large host made of the recording of a small one: more mirrors of NVMe drives, more datasets.

Everything that names a drive or a dataset is copied with the name of the new one: what the commands print, /sys, udev's
database, the kstats. So the copy is as consistent as the original, and every collector sees what it would see there.
Made for recordings of the lab with OpenZFS 2.4 and two mirrors of NVMe drives (2.4-healthy-mirrored-slog).

    python -m tests.bench.synthetic RECORDING DRIVES DATASETS LARGE_RECORDING
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from auditor.host.request import Capture, Files
from auditor.recording import recording
from auditor.recording.recording import Recording

FIRST = 10  # number of the first copy: nvme10n1
CHILDREN = 100  # datasets in each folder of a synthetic pool
PLAIN = "tank/db"  # the dataset that is copied

_SERIAL = "LABNVME"
_GUID = re.compile(r"(?<!\d)\d{17,20}(?!\d)")
_SIZES = re.compile(r"\t(used|referenced)\t(\d+)\t")


def large(small: Recording, disks: int, datasets: int) -> Recording:
    """The same host with so many NVMe drives in its pool (an even number), and so many datasets."""
    return with_datasets(with_disks(small, disks), datasets)


# -- drives ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Drive:
    """node: 0 of nvme0n1. serial: its number in the serial number. slot: PCI address."""

    node: int
    serial: int
    slot: str

    def renamed(self, text: str, number: int) -> str:
        """A text about this drive as a text about another: node, serial number (plain and in hexadecimal), PCI slot."""
        text = re.sub(rf"\b(nvme|ng){self.node}(?!\d)", rf"\g<1>{number}", text)
        text = re.sub(rf"{_SERIAL}{self.serial}(?!\d)", f"{_SERIAL}{number}", text)
        text = text.replace(f"{_SERIAL}{self.serial}".encode().hex(), f"{_SERIAL}{number}".encode().hex())
        slot = f"0000:{number >> 8:02x}:{number & 0xFF:02x}.7"
        text = text.replace(self.slot, slot)
        return text.replace(re.sub("[:.]", "_", self.slot), re.sub("[:.]", "_", slot))


Copies = list[list[tuple[Drive, int]]]  # of each copy of mirror-0: (drive of the original, number of the copy)


def with_disks(small: Recording, disks: int) -> Recording:
    """mirror-0 again and again, until the pool has so many drives."""
    there = sum(argv[:2] == ("nvme", "id-ctrl") for argv in small.commands)
    pair = _mirrored(small)
    copies = [
        [(drive, FIRST + 2 * copy + leg) for leg, drive in enumerate(pair)] for copy in range((disks - there) // 2)
    ]
    commands: dict[tuple[str, ...], Capture] = {}
    for argv, capture in small.commands.items():
        text = capture.stdout.decode()
        commands[argv] = capture._replace(stdout=_output(argv, text, copies).encode())
        for drive, number in (leg for legs in copies for leg in legs):
            if f"/dev/nvme{drive.node}n1" in argv:
                other = tuple(drive.renamed(word, number) for word in argv)
                commands[other] = capture._replace(stdout=drive.renamed(text, number).encode())
    files = {patterns: _files(each, copies) for patterns, each in small.files.items()}
    return replace(small, commands=commands, files=files)


def _mirrored(small: Recording) -> list[Drive]:
    """The drives of mirror-0."""
    listed = next(each.stdout for argv, each in small.commands.items() if argv[:2] == ("nvme", "list"))
    status = next(each.stdout for argv, each in small.commands.items() if argv[:2] == ("zpool", "status"))
    slots = {path: text.strip() for files in small.files.values() for path, text in files.text.items()}
    drives = []
    for device in json.loads(listed)["Devices"]:
        node = device["DevicePath"].removeprefix("/dev/")
        serial = int(device["SerialNumber"].removeprefix(_SERIAL))
        drives.append(
            Drive(int(re.sub(r"nvme(\d+)n1", r"\1", node)), serial, slots[f"/sys/block/{node}/device/address"])
        )
    leaves = _tree(json.loads(status))["vdevs"]["mirror-0"]["vdevs"]
    return [drive for drive in drives if any(leaf.endswith(f"{_SERIAL}{drive.serial}") for leaf in leaves)]


def _tree(status: Any) -> Any:
    (tree,) = (tree for pool in status["pools"].values() for tree in pool["vdevs"].values())
    return tree


def _mirror(text: str, copies: Copies, copy: int) -> str:
    """A text about mirror-0 and its drives as a text about another mirror."""
    for drive, number in copies[copy]:
        text = drive.renamed(text, number)
    text = _GUID.sub(lambda guid: str(int(guid[0]) // 1000 * 1000 + copy), text)
    return text.replace("mirror-0", f"mirror-{copy + 2}")


def _output(argv: tuple[str, ...], text: str, copies: Copies) -> str:
    """The output of a command about the whole host or pool, with the copies in it."""
    legs = [leg for each in copies for leg in each]
    match argv[:2]:
        case ("nvme", "list"):
            listed = json.loads(text)
            by_path = {device["DevicePath"]: json.dumps(device) for device in listed["Devices"]}
            listed["Devices"] += [
                json.loads(drive.renamed(by_path[f"/dev/nvme{drive.node}n1"], number)) for drive, number in legs
            ]
            return json.dumps(listed, indent=2)
        case ("udevadm", "info"):
            *records, end = text.split("\n\n")
            for drive, number in legs:
                records += [drive.renamed(each, number) for each in records if f"\nN: nvme{drive.node}n" in each]
            return "\n\n".join([*records, end])
        case ("zpool", "status"):
            status = json.loads(text)
            mirrors = _tree(status)["vdevs"]
            first = json.dumps(mirrors["mirror-0"])
            mirrors |= {f"mirror-{i + 2}": json.loads(_mirror(first, copies, i)) for i in range(len(copies))}
            return json.dumps(status)
        case ("zdb", "-C"):
            return _zdb(text, copies)
        case ("zpool", "get") if "all-vdevs" in argv:
            rows = text[text.index("mirror-0\t") : text.index("mirror-1\t")]
            return text + "".join(_mirror(rows, copies, i) for i in range(len(copies)))
    return text


def _zdb(text: str, copies: Copies) -> str:
    start, end, tail = (text.index(mark) for mark in (f"{'':12}children[0]", f"{'':12}children[1]", f"{'':8}features_"))
    more = [
        _mirror(text[start:end], copies, i)
        .replace("children[0]:", f"children[{i + 2}]:", 1)
        .replace("id: 0", f"id: {i + 2}", 1)
        for i in range(len(copies))
    ]
    head = text[:tail].replace("vdev_children: 2", f"vdev_children: {2 + len(copies)}")
    return head + "".join(more) + text[tail:]


def _files(files: Files, copies: Copies) -> Files:
    """/sys and /dev/disk with the new drives in it."""

    def copied(table: Mapping[str, str], links: bool = False) -> dict[str, str]:
        more = {}
        for drive, number in (leg for legs in copies for leg in legs):
            mine = re.compile(rf"/nvme{drive.node}(n|/)")
            for path, content in table.items():
                if mine.search(path) or (links and mine.search(content)):
                    more[drive.renamed(path, number)] = drive.renamed(content, number)
        return {**table, **more}

    return Files(copied(files.text), copied(files.links, links=True), copied(files.errors))


# -- datasets -------------------------------------------------------------------------------------------------------


def with_datasets(small: Recording, datasets: int) -> Recording:
    """Folders of 100 datasets each; those of every tenth folder inherit sync=disabled, one in a hundred has its own."""
    names = _names(datasets)
    commands = dict(small.commands)
    for argv, capture in small.commands.items():
        text = capture.stdout.decode()
        match argv[:2]:
            case ("zfs", "list"):
                commands[argv] = capture._replace(stdout=(text + "".join(f"{name}\n" for name in names)).encode())
            case ("zfs", "get"):
                plain = "".join(line for line in text.splitlines(keepends=True) if line.startswith(f"{PLAIN}\t"))
                commands[argv] = capture._replace(
                    stdout=(text + "".join(_properties(plain, n, name) for n, name in enumerate(names))).encode(),
                )
    files = {
        patterns: _kstats(each, names) if "objset-" in patterns[0] else each for patterns, each in small.files.items()
    }
    return replace(small, commands=commands, files=files)


def _names(datasets: int) -> list[str]:
    """Sorted as zfs sorts them: every folder before what is in it."""
    folders = [(f"tank/app{n // CHILDREN:03d}", n) for n in range(0, datasets, CHILDREN)]
    return [name for folder, n in folders
            for name in (folder, *(f"{folder}/db{i:03d}" for i in range(1, min(CHILDREN, datasets - n))))]  # fmt: skip


def _properties(plain: str, n: int, name: str) -> str:
    """The records of ``zfs get`` for one dataset: space of its own, the rest as it is set or inherited."""
    folder = name.rpartition("/")[0] if name.count("/") > 1 else ""
    text = plain.replace(f"{PLAIN}\t", f"{name}\t").replace(f"/{PLAIN}", f"/{name}")
    text = _SIZES.sub(lambda found: f"\t{found[1]}\t{int(found[2]) + 4096 * n}\t", text)
    if n // CHILDREN % 10 == 3:
        source = f"inherited from {folder}" if folder else "local"
        return text.replace("\tsync\tstandard\tdefault", f"\tsync\tdisabled\t{source}")
    if n % CHILDREN == 77:
        return text.replace("\tsync\tstandard\tdefault", "\tsync\tdisabled\tlocal")
    return text


def _kstats(files: Files, names: list[str]) -> Files:
    """Each dataset's own file. Every fourth dataset is busy, with counts of its own."""
    path, text = next((path, text) for path, text in files.text.items() if f" {PLAIN}\n" in text)
    folder, counted = path.rpartition("/")[0], re.compile(r"^(\w+\s+4\s+)([1-9]\d*)$", re.M)
    idle = counted.sub(r"\g<1>0", text)

    def of(n: int, name: str) -> str:
        busy = counted.sub(lambda found: f"{found[1]}{int(found[2]) + n}", text) if n % 4 == 0 else idle
        return busy.replace(f" {PLAIN}\n", f" {name}\n")

    return Files({**files.text, **{f"{folder}/objset-0x{4096 + n:x}": of(n, name) for n, name in enumerate(names)}})


if __name__ == "__main__":
    given, wanted_drives, wanted_datasets, target = sys.argv[1:]
    recording.write(large(recording.load(Path(given)), int(wanted_drives), int(wanted_datasets)), Path(target))
