"""A host of shell scripts: each command of a recording prints what was recorded, after as many seconds as it took then.

:class:`ToolHost` runs them as :class:`auditor.host.live.LiveHost` runs the real ones, and reads real files: those of
the recording, laid out below a folder.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from auditor.host import process
from auditor.host.live import ENVIRONMENT, permitted, read_files
from auditor.host.process import Time, within
from auditor.host.request import AT_ONCE, Capture, Files, Read, Run
from auditor.recording.recording import Recording


def lay_out(recording: Recording, folder: Path, scale: float) -> None:
    """``bin/`` with one script a tool, ``out/`` with the outputs, ``root/`` with the files, ``argv.json`` with all commands.
    scale: of the recorded seconds; 0 answers at once."""
    for part in ("bin", "out", "root"):
        (folder / part).mkdir(parents=True)
    cases: dict[str, list[str]] = {}
    argvs: list[list[str]] = []
    for number, (argv, capture) in enumerate(sorted(recording.commands.items())):
        if capture.fault or capture.exit is None:
            continue
        out, err = folder / "out" / f"{number}.out", folder / "out" / f"{number}.err"
        out.write_bytes(capture.stdout)
        steps = [f"sleep {capture.seconds * scale:.3f}"] if scale else []
        if capture.stderr:
            err.write_bytes(capture.stderr)
            steps.append(f"cat {shlex.quote(str(err))} >&2")
        steps.append(
            f"cat {shlex.quote(str(out))}; exit {capture.exit}" if capture.exit else f"exec cat {shlex.quote(str(out))}"
        )
        argvs.append([str(folder / "bin" / argv[0]), *argv[1:]])
        cases.setdefault(argv[0], []).append(f"{shlex.quote(' '.join(argv[1:]))}) {'; '.join(steps)};;")
    for tool, arms in cases.items():
        script = folder / "bin" / tool
        script.write_text("\n".join(("#!/bin/sh", 'case "$*" in', *arms, "esac", "exit 99\n")))
        script.chmod(0o755)
    (folder / "argv.json").write_text(json.dumps(argvs))
    for files in recording.files.values():
        _write(files, folder / "root")


def _write(files: Files, root: Path) -> None:
    """Folders behind the links first, as in /sys, then the files, which may lie behind them. A link may have been read
    more than once. Raises PermissionError for a file behind an absolute link: it is of this host."""
    for path, target in sorted(files.links.items(), key=lambda link: link[0].count("/")):
        link = root / path[1:]
        link.parent.mkdir(parents=True, exist_ok=True)
        if not target.startswith("/"):
            behind = link.parent / target
            (behind.parent if path in files.text else behind).mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(target)
    for path, text in files.text.items():
        file = root / path[1:]
        if files.links.get(path, "").startswith("/"):
            continue  # what is read there is of this host
        if not file.resolve().is_relative_to(root.resolve()):
            raise PermissionError(f"{path} leads out of {root}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogateescape"))


class ToolHost:
    """The host that :func:`lay_out` made."""

    at_once = AT_ONCE

    def __init__(self, folder: Path, now: float, timeout_s: float = 30.0) -> None:
        self.now = now
        self.euid = 0
        self._bin = str(folder / "bin")
        self._root = str(folder / "root")
        self._allowed = Time.of(timeout_s)

    def run(self, request: Run) -> Capture:
        if not permitted(request.argv):
            raise PermissionError(request.argv)
        tool = f"{self._bin}/{request.argv[0]}"
        if not os.access(tool, os.X_OK):
            return Capture(None, fault="not installed")
        return process.run((tool, *request.argv[1:]), self._allowed, ENVIRONMENT)

    def read(self, request: Read) -> Files:
        return within(self._allowed, lambda: self._files(request), lambda why: Files({}, errors={"": why}))

    def _files(self, request: Read) -> Files:
        files = read_files(tuple(self._root + pattern for pattern in request.patterns))
        return Files(self._bare(files.text), self._bare(files.links), self._bare(files.errors))

    def realpath(self, path: str) -> str:
        return path

    def steady(self, path: str) -> str:
        return path

    def _bare(self, table: Mapping[str, str]) -> dict[str, str]:
        skip = len(self._root)
        return {path[skip:]: content for path, content in table.items()}


def longest_chain(recording: Recording) -> float:
    """Seconds of the slowest commands that wait for each other, in the order of ``gather/walk.py``: lists of the host,
    then ``zpool status``, then the disks; beside them everything else that only needs a list of the pools."""
    slowest = dict.fromkeys(("lists", "status", "disk", "host", "pool"), 0.0)
    for argv, capture in recording.commands.items():
        stage = _stage(argv)
        slowest[stage] = max(slowest[stage], capture.seconds)
    disks_known = max(slowest["lists"] + slowest["status"], slowest["host"])
    return max(disks_known + slowest["disk"], slowest["lists"] + slowest["pool"])


def _stage(argv: tuple[str, ...]) -> str:
    match argv[:2]:
        case ("zpool", "list") | ("zfs", "version"):
            return "lists"
        case ("zpool", "status"):
            return "status"
        case ("udevadm", _) | ("nvme", "list") | ("systemd-detect-virt",):
            return "host"
        case _:
            return "disk" if any(word.startswith("/dev/") for word in argv) else "pool"
