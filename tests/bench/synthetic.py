"""A large host made of the recording of a small one: more mirrors of NVMe drives, more datasets.

Everything that names a drive or a dataset is copied with the name of the new one: what the commands print, /sys, udev's
database, the kstats. So the copy is as consistent as the original, and every collector sees what it would see there.
Made for recordings of OpenZFS 2.4 whose mirror-0 is nvme0n1 and nvme1n1 (fixtures/hosts/2.4-healthy-mirrored-slog).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from auditor.collect.host import Capture
from auditor.collect.recording import Recording
from auditor.collect.request import Files

PAIR = (0, 1)  # the drives of mirror-0, which are copied
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


def with_disks(small: Recording, disks: int) -> Recording:
    """mirror-0 again and again, until the pool has so many drives."""
    there = sum(argv[:2] == ("nvme", "id-ctrl") for argv in small.commands)
    copies = range((disks - there) // 2)
    commands: dict[tuple[str, ...], Capture] = {}
    for argv, capture in small.commands.items():
        commands[argv] = replace(capture, stdout=_output(argv, capture.stdout.decode(), copies).encode())
        for copy in copies if any(word.startswith("/dev/nvme") for word in argv) else ():
            for one, new in _drives(copy):
                if f"/dev/nvme{one}n1" in argv:
                    renamed = tuple(_renamed(word, one, new) for word in argv)
                    stdout = _renamed(capture.stdout.decode(), one, new).encode()
                    commands[renamed] = replace(capture, stdout=stdout)
    files = {patterns: _files(each, copies) for patterns, each in small.files.items()}
    return replace(small, commands=commands, files=files)


def _drives(copy: int) -> Iterator[tuple[int, int]]:
    """(original, new number) of both drives of one copy."""
    return ((one, FIRST + 2 * copy + one) for one in PAIR)


def _renamed(text: str, one: int, new: int) -> str:
    """A text about one drive as a text about another: node, serial number (plain and in hexadecimal) and PCI slot."""
    text = re.sub(rf"\b((?:nvme|ng|\w*{_SERIAL})){one}(?!\d)", rf"\g<1>{new}", text)
    text = text.replace(f"{_SERIAL}{one}".encode().hex(), f"{_SERIAL}{new}".encode().hex())
    return re.sub(rf"0000([:_])00([:_]){5 + one:02x}([._])0", rf"0000\g<1>{new:02x}\g<2>00\g<3>0", text)


def _mirror(text: str, copy: int) -> str:
    """A text about mirror-0 and its drives as a text about another mirror."""
    for one, new in _drives(copy):
        text = _renamed(text, one, new)
    text = _GUID.sub(lambda guid: str(int(guid[0]) // 1000 * 1000 + copy), text)
    return text.replace("mirror-0", f"mirror-{copy + 2}")


def _output(argv: tuple[str, ...], text: str, copies: range) -> str:
    """The output of a command about the whole host or pool, with the copies in it."""
    match argv[:2]:
        case ("nvme", "list"):
            listed = json.loads(text)
            listed["Devices"] += [
                _about(listed["Devices"][one], one, new) for copy in copies for one, new in _drives(copy)
            ]
            return json.dumps(listed, indent=2)
        case ("udevadm", "info"):
            records = text.split("\n\n")
            more = [_renamed(record, one, new) for one in PAIR for record in records if re.search(rf"^N: nvme{one}n", record, re.M)
                    for new in (FIRST + 2 * copy + one for copy in copies)]  # fmt: skip
            return "\n\n".join([*records[:-1], *more, records[-1]])
        case ("zpool", "status"):
            status = json.loads(text)
            (tree,) = (tree for pool in status["pools"].values() for tree in pool["vdevs"].values())
            mirror = json.dumps(tree["vdevs"]["mirror-0"])
            tree["vdevs"] |= {f"mirror-{copy + 2}": json.loads(_mirror(mirror, copy)) for copy in copies}
            return json.dumps(status)
        case ("zdb", "-C"):
            return _zdb(text, copies)
        case ("zpool", "get") if "all-vdevs" in argv:
            rows = text[text.index("mirror-0\t") : text.index("mirror-1\t")]
            return text + "".join(_mirror(rows, copy) for copy in copies)
    return text


def _about(device: Any, one: int, new: int) -> Any:
    return json.loads(_renamed(json.dumps(device), one, new))


def _zdb(text: str, copies: range) -> str:
    start, end, tail = (
        text.index(mark) for mark in (" " * 12 + "children[0]", " " * 12 + "children[1]", "        features_")
    )
    first = text[start:end]
    more = [
        _mirror(first, copy).replace("children[0]:", f"children[{copy + 2}]:", 1).replace("id: 0", f"id: {copy + 2}", 1)
        for copy in copies
    ]
    head = text[:tail].replace("vdev_children: 2", f"vdev_children: {2 + len(copies)}")
    return head + "".join(more) + text[tail:]


def _files(files: Files, copies: range) -> Files:
    """/sys with the new drives in it."""

    def copied(table: Mapping[str, str]) -> dict[str, str]:
        more = {}
        for path, content in table.items():
            for one in PAIR:
                if re.search(rf"/nvme{one}(n|/)", path):
                    for new in (FIRST + 2 * copy + one for copy in copies):
                        more[_renamed(path, one, new)] = _renamed(content, one, new)
        return {**table, **more}

    return Files(copied(files.text), copied(files.links), copied(files.errors))


# -- datasets -------------------------------------------------------------------------------------------------------


def with_datasets(small: Recording, datasets: int) -> Recording:
    """Folders of 100 datasets each; those of every tenth folder inherit sync=disabled, one in a hundred has its own."""
    names = _names(datasets)
    commands = dict(small.commands)
    for argv, capture in small.commands.items():
        text = capture.stdout.decode()
        match argv[:2]:
            case ("zfs", "list"):
                commands[argv] = replace(capture, stdout=(text + "".join(f"{name}\n" for name in names)).encode())
            case ("zfs", "get"):
                plain = "".join(line for line in text.splitlines(keepends=True) if line.startswith(f"{PLAIN}\t"))
                commands[argv] = replace(
                    capture,
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
    """Each dataset's own file, with counts of its own."""
    path, text = next((path, text) for path, text in files.text.items() if f" {PLAIN}\n" in text)
    folder, counted = path.rpartition("/")[0], re.compile(r"(\s4\s+)([1-9]\d*)\n")

    def of(n: int, name: str) -> str:
        own = counted.sub(lambda found: f"{found[1]}{int(found[2]) + n}\n", text)
        return own.replace(f" {PLAIN}\n", f" {name}\n")

    return Files({**files.text, **{f"{folder}/objset-0x{4096 + n:x}": of(n, name) for n, name in enumerate(names)}})
