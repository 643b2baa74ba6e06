"""A host of many pools, with snapshots in their history: 2,000 in each. Nothing else that zaudit asks grows with them.

python -m tests.bench.pools RECORDING POOLS DRIVES DATASETS FOLDER    lays it out; drives and datasets of each pool
python -m tests.bench.pools check FOLDER SECONDS [WORDS...]           zaudit check WORDS on it; SECONDS of each command
"""

from __future__ import annotations

import json
import re
import resource
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path

from auditor import audit
from auditor.host import builtin
from auditor.host import live as seam
from auditor.host.live import LiveHost, read_files
from auditor.host.process import Time
from auditor.host.request import Capture, Files, Read
from auditor.recording import recording
from auditor.recording.recording import Recording, RecordingHost, ReplayHost
from tests.bench import synthetic, tools

STRIDE = 2000  # between the numbers of the drives of two pools
SNAPSHOTS = 2000
_DRIVE = re.compile(r"\b(nvme|ng)(\d+)")
_SERIAL = re.compile(r"LABNVME(\d+)")
_HEX = re.compile(f"{b'LABNVME'.hex()}((?:3[0-9])+)")
_SLOT = re.compile(r"\b0000(?=[:_][0-9a-f]{2}[:_][0-9a-f]{2}[._]\d)|(?<=\bpci)0000(?=:)")
_GUID = re.compile(r"(?<!\d)\d{17,20}(?!\d)")


def named(text: str, pool: int) -> str:
    """A text about the first pool and its drives as one about another."""
    more = pool * STRIDE
    text = _DRIVE.sub(lambda found: f"{found[1]}{int(found[2]) + more}", text)
    text = _SERIAL.sub(lambda found: f"LABNVME{int(found[1]) + more}", text)
    text = _HEX.sub(lambda found: f"LABNVME{int(bytes.fromhex(found[1])) + more}".encode().hex(), text)
    text = _SLOT.sub(f"{pool:04x}", text)
    text = _GUID.sub(lambda found: str(int(found[0]) // 10**7 * 10**7 + pool * 1000 + int(found[0]) % 1000), text)
    return re.sub(r"\btank\b", f"tank{pool:02d}", text)


def with_pools(one: Recording, pools: int) -> Recording:
    """The same pool so many times."""
    commands, files = dict(one.commands), dict(one.files)
    for pool in range(1, pools):
        for argv, each in one.commands.items():
            other = tuple(named(word, pool) for word in argv)
            if other != argv:
                commands[other] = each._replace(stdout=named(each.stdout.decode(), pool).encode())
    for argv, each in one.commands.items():
        commands[argv] = each._replace(stdout=_of_all(argv, each.stdout.decode(), pools).encode())
    for patterns, found in one.files.items():
        files[patterns] = _merged(found, pools)
        for pool in range(1, pools):
            if (others := tuple(named(pattern, pool) for pattern in patterns)) != patterns:
                files[patterns] = found
                files[others] = Files(
                    {named(path, pool): named(text, pool) for path, text in found.text.items()},
                    {named(path, pool): named(to, pool) for path, to in found.links.items()},
                    {named(path, pool): error for path, error in found.errors.items()},
                )
    return replace(one, commands=commands, files=files, targets=())


def _of_all(argv: tuple[str, ...], text: str, pools: int) -> str:
    """What a command says that is about the whole host."""
    others = range(1, pools)
    match argv[:2]:
        case ("nvme", "list"):
            listed = json.loads(text)
            first = json.dumps(listed["Devices"])
            for pool in others:
                listed["Devices"] += json.loads(named(first, pool))
            return json.dumps(listed, indent=2)
        case ("udevadm", "info"):
            *records, end = text.split("\n\n")
            mine = [each for each in records if "\nN: nvme" in each]
            return "\n\n".join([*records, *(named(each, pool) for pool in others for each in mine), end])
        case ("zpool", "list"):
            return text + "".join(named(text, pool) for pool in others)
    return text


def _merged(files: Files, pools: int) -> Files:
    text, links = dict(files.text), dict(files.links)
    for pool in range(1, pools):
        for path, content in files.text.items():
            if (other := named(path, pool)) != path:
                text[other] = named(content, pool)
        links |= {named(path, pool): named(to, pool) for path, to in files.links.items() if named(path, pool) != path}
    for path, content in files.text.items():
        if path.endswith(("/mountinfo", "/zpool.cache")):
            mine = "".join(line for line in content.splitlines(True) if "tank" in line)
            text[path] = content + "".join(named(mine, pool) for pool in range(1, pools))
    return Files(text, links, files.errors)


def large(small: Recording, pools: int, drives: int, datasets: int) -> Recording:
    """drives, datasets: of each pool. With the answers to today's questions in today's words."""
    asking = RecordingHost(ReplayHost(with_pools(synthetic.large(small, drives, datasets), pools)))
    audit.look(asking, (), audit.Options())
    return asking.recording((), {}, small.zaudit)


def lay_out(host: Recording, folder: Path) -> None:
    """As tools.lay_out(), with snapshots in the history of each pool, and a pause before each answer."""
    lines = "".join(f"2026-11-01.00:00:00 zfs snapshot -r tank@auto-{n}\n" for n in range(SNAPSHOTS)).encode()
    commands = {
        argv: each._replace(stdout=each.stdout + lines) if argv[:2] == ("zpool", "history") else each
        for argv, each in host.commands.items()
    }
    tools.lay_out(replace(host, commands=commands), folder, scale=0.0)
    for script in (folder / "bin").iterdir():
        pause = f'sleep "$(cat {shlex.quote(str(folder))}/pause)"'
        script.write_text(script.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{pause}\n", 1))
    (folder / "pause").write_text("0\n")
    (folder / "now").write_text(f"{host.taken}\n")


class Scripts(LiveHost):
    """A live host, but for its tools and its files."""

    folder = Path()

    def __init__(self, timeout_s: float, deadline_s: float = 0.0) -> None:
        super().__init__(timeout_s, deadline_s)
        self.now, self.euid = float((self.folder / "now").read_text()), 0

    def _tool(self, names: tuple[str, ...], allowed: Time) -> str | Capture:
        tool = self.folder / "bin" / names[0]
        return str(tool) if tool.is_file() else Capture(None, fault="not installed")

    def read(self, request: Read) -> Files:
        root = str(self.folder / "root")
        found = read_files(tuple(root + pattern for pattern in request.patterns))
        text, links, errors = (
            {path.removeprefix(root): each for path, each in table.items()}
            for table in (found.text, found.links, found.errors)
        )
        return Files(text, links, errors)

    def realpath(self, path: str) -> str:
        return path

    def steady(self, path: str) -> str:
        return path


def check(folder: Path, pause: str, words: list[str]) -> None:
    """Prints seconds on the clock, seconds of its own processor time and MiB of memory at most on standard error."""
    import gc

    from auditor import cli

    gc.disable()  # as auditor/__main__.py does
    (folder / "pause").write_text(f"{pause}\n")
    Scripts.folder = folder
    seam.LiveHost = Scripts  # type: ignore[misc]
    setattr(builtin, "UDEV_ARGV", ())  # noqa: B010 (this machine's own is not asked)
    sys.argv, began = ["zaudit", "check", *words], time.monotonic()
    try:
        cli.run()
    finally:
        wall, used = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
        own, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        print(f"{wall:.1f} s, of it {own:.1f} s own processor time; {peak:.0f} MiB", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1] == "check":
        check(Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
    else:
        given, *numbers, target = sys.argv[1:]
        many, drives_, datasets_ = map(int, numbers)
        lay_out(large(recording.load(Path(given)), many, drives_, datasets_), Path(target))
