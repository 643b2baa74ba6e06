"""Small fleets for the tests: recordings of the lab under other names and times, and files that are none."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from auditor.host.request import Files
from auditor.recording import recording
from tests import shared

DAY = 86400.0
CASES = ("2.3-sync-disabled-local", "2.4-healthy-physical-no-cache", "2.3-healthy-mirrored-slog")
HOSTNAME = "/proc/sys/kernel/hostname"
GUEST, SERIAL = "QEMU NVMe Ctrl", "LABNVME"  # model and, with a number, serial of the drives of the lab


def named(case: str, host: str, days: float = 0.0) -> recording.Recording:
    """A recorded host under another name, and so many days later."""
    past = shared.host(case)
    files = {patterns: _named(each, host) for patterns, each in past.files.items()}
    return replace(past, taken=past.taken + days * DAY, files=files)


def _named(files: Files, host: str) -> Files:
    return files._replace(text={path: f"{host}\n" if path == HOSTNAME else text for path, text in files.text.items()})


def respelt(past: recording.Recording, words: Mapping[str, str]) -> recording.Recording:
    """The recording with other words in all that was asked and answered: the model of a drive, its serial number."""

    def text(content: str) -> str:
        for old, new in words.items():
            content = content.replace(f"{old:40}", f"{new:40}").replace(old, new)
            content = content.replace(old.replace(" ", "_"), new.replace(" ", "_"))
            content = content.replace(old.replace(" ", "\\x20"), new.replace(" ", "\\x20"))
            content = content.replace(old.encode().hex(), new.encode().hex())
        return content

    def said(each: bytes) -> bytes:
        return text(each.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def table(texts: Mapping[str, str]) -> dict[str, str]:
        return {text(path): text(content) for path, content in texts.items()}

    commands = {tuple(map(text, argv)): each._replace(stdout=said(each.stdout)) for argv, each in past.commands.items()}
    files = {
        names: each._replace(text=table(each.text), links=table(each.links), errors=table(each.errors))
        for names, each in past.files.items()
    }
    return replace(past, commands=commands, files=files)


def fleet(folder: Path, hosts: Mapping[str, str], days: float = 0.0) -> Path:
    """Recordings HOST.tar.gz in a folder. hosts: name -> recorded host."""
    folder.mkdir(exist_ok=True)
    for host, case in hosts.items():
        recording.write(named(case, host, days), folder / f"{host}.tar.gz")
    return folder


def three(folder: Path) -> Path:
    """db1 loses commits, db2 keeps them, db3 is a guest."""
    return fleet(folder, dict(zip(("db1", "db2", "db3"), CASES, strict=True)))


def spoilt(folder: Path, whole: Path) -> dict[str, Path]:
    """Files that look like recordings: cut off, empty, none at all, one that says that it is 2 GiB large, one that unpacks to
    far more than it is, and one whose list of answers is too deep."""
    data = whole.read_bytes()
    bomb = tarfile.TarInfo("recording.json")
    bomb.size = 2 << 30
    files = {
        "cut": data[: len(data) // 2],
        "empty": b"",
        "none": b"no recording\n",
        "bomb": gzip.compress(bomb.tobuf()),
        "zeros": gzip.compress(bomb.tobuf() + bytes(4 << 20), 9),
        "deep": _packed({"recording.json": b"[" * 100_000}),
        "other": _packed({"recording.json": b'{"schema": "another/1"}'}),
    }
    for name, content in files.items():
        (folder / f"{name}.tar.gz").write_bytes(content)
    return {name: folder / f"{name}.tar.gz" for name in files}


def hungry(folder: Path) -> Path:
    """A recording of some kilobytes that takes 300 MiB of memory to read."""
    path = folder / "hungry.tar.gz"
    path.write_bytes(_packed({"recording.json": b'{"schema": "' + b"x" * (100 << 20) + b'"}'}))
    return path


def _packed(members: Mapping[str, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return raw.getvalue()
