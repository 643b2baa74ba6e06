"""Hosts that answer from dictionaries, and zaudit's command line on them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase as fnmatch
from typing import NamedTuple

import pytest

from auditor import cli, screen
from auditor.host import live as seam
from auditor.host.live import allowed_part
from auditor.host.request import Capture, Files, Read, Run

NOT_INSTALLED = Capture(None, fault="not installed")


@dataclass
class FakeHost:
    """commands: argv, or its beginning -> what it does; files: path -> content. Everything else is not there."""

    commands: Mapping[tuple[str, ...], Capture] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    now: float = 1.7e9
    euid: int = 0
    at_once: int = 1
    ran: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, request: Run) -> Capture:
        self.ran.append(request.argv)
        for length in range(len(request.argv), 0, -1):
            if request.argv[:length] in self.commands:
                return self.commands[request.argv[:length]]
        return NOT_INSTALLED

    def read(self, request: Read) -> Files:
        here: dict[str, str] = {}
        errors: dict[str, str] = {}
        for pattern in request.patterns:
            found = {path: text for path, text in self.files.items() if fnmatch(path, pattern)}
            here |= {path: kept for path, text in found.items() if (kept := allowed_part(path, text)) is not None}
            if not found:
                errors[pattern] = "no such file"
        return Files(here, {}, errors)

    def realpath(self, path: str) -> str:
        if path not in self.paths:
            raise FileNotFoundError(path)
        return self.paths[path]

    def steady(self, path: str) -> str:
        return self.paths.get(path, "")


class Result(NamedTuple):
    """What a command line came to."""

    code: int
    out: str
    err: str


@dataclass
class CommandLine:
    """zaudit in this process; a live check sees the host, if there is one."""

    patch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]
    host: FakeHost | None = None

    def __call__(self, *words: object) -> Result:
        self.patch.setattr(sys, "argv", ["zaudit", *map(str, words)])
        screen.wanted("auto", quiet=False)  # as in a new process
        if self.host is not None:
            self.patch.setattr(seam, "LiveHost", lambda *limits: self.host)
        self.capture.readouterr()
        try:
            with pytest.raises(SystemExit) as ended:
                cli.run()
        finally:
            gc.enable()
        out, err = self.capture.readouterr()
        assert isinstance(ended.value.code, int)
        return Result(ended.value.code, out, err)
