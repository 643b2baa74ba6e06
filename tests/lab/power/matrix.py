"""The settings of matrix.toml, and which of them share a guest."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..machine import CACHE, LINES
from .disks import MODELS

FILE, PAGES_FILE = (Path(__file__).with_name(f"{name}.toml") for name in ("matrix", "pages"))
PAGES = (
    *(f"pages{size}" for size in (4, 8, 16, 32)),
    *("pages4-mixed", "pages8-mixed", "pages16-mixed", "pages16-apart", "pages16-direct"),
)
WORKLOADS = (
    "fsync",
    "direct",
    "dsync",
    "buffered",
    "mmap",
    "sqlite-full",
    "sqlite-normal",
    "pair",
    "pair-direct",
    "pair-never",
    "postgres",
    "postgres-async",
    "postgres-never",
    "innodb",
    "innodb-late",
    "innodb-no-fsync",
    *PAGES,
)
SERVERS = {"postgres": "lib/postgresql/*/bin/postgres", "innodb": "sbin/mariadbd"}
EVENTS = ("process", "crash", "power", "power+log", "power+drive", "drive")
LAYERS = ("", "file", "loop")
DISKS_PER_GUEST = 12
CUTS = 5


class MatrixError(ValueError):
    """A matrix.toml that cannot be right."""


@dataclass(frozen=True)
class Setting:
    """One row: see the head of matrix.toml."""

    name: str
    vdevs: str
    workload: str
    data: str = ""
    log: str | None = None
    pool_options: str = ""
    parameters: Mapping[str, int] = field(default_factory=dict)
    before_import: str = ""
    after_import: str = ""
    running: str = ""
    layer: str = ""
    lose: tuple[int, ...] = ()
    within: int | None = None
    application: bool = False
    ask: bool = True
    disputed: str = ""
    cuts: int = CUTS
    lines: tuple[str, ...] = ("2.3",)

    @property
    def drives(self) -> tuple[str, ...]:
        """The models of its drives, in order."""
        return tuple(word for word in self.vdevs.split() if word in MODELS)

    @property
    def classes(self) -> tuple[str, ...]:
        """Of its drives, in order: data, special or log."""
        found, now = [], "data"
        for word in self.vdevs.split():
            if word in MODELS:
                found.append(now)
            else:
                now = word if word in ("special", "log") else now
        return tuple(found)

    def away(self, event: str) -> int | None:
        """The drive that is lost with the power, or that dies: the first log device, or the first other one."""
        wanted = {"power+log": ("log",), "power+drive": ("data", "special"), "drive": ("data", "special")}.get(
            event, ()
        )
        return next((number for number, each in enumerate(self.classes) if each in wanted), None)

    @property
    def pulls(self) -> bool:
        """Does it pull out drives? Those that it loses are not blank at the import, but not there."""
        return "device/" in self.running

    @property
    def events(self) -> tuple[str, ...]:
        """What can be brought about here. Where a drive is taken away while the program runs there is no other moment."""
        if self.pages or not self.ask or self.pulls:
            return ()
        return tuple(event for event in EVENTS if "+" not in event or self.away(event) is not None)

    @property
    def lost_at(self) -> str:
        """The event that a power cut of this setting is: what goes with the power is named by lose."""
        if not self.lose:
            return "power"
        return "power+log" if self.classes[self.lose[0]] == "log" else "power+drive"

    @property
    def pages(self) -> bool:
        """Does its program rewrite pages? zaudit sees no database there, and is not asked."""
        return self.workload in PAGES

    @property
    def page_kib(self) -> int:
        """Of its pages; raises ValueError for another program."""
        return int(self.workload.partition("-")[0].removeprefix("pages"))

    @property
    def needs(self) -> str:
        """A program that an image may lack."""
        return next((each for each in SERVERS if self.workload.startswith(each)), "")

    def plan(self, pool: str, serials: Sequence[str]) -> dict[str, Any]:
        """What stage.py needs to know."""
        left = iter(serials)
        words = " ".join(next(left) if word in MODELS else word for word in self.vdevs.split())
        plan: dict[str, Any] = {"name": self.name, "pool": pool, "vdevs": words, "serials": list(serials)}
        for key in ("workload", "data", "pool_options", "layer", "before_import", "after_import", "running"):
            plan[key] = getattr(self, key)
        plan["redundant"] = any(
            word.startswith(("mirror", "raidz")) for word in self.vdevs.partition(" log ")[0].split()
        )
        if self.pulls:
            plan["absent"] = [serials[number] for number in self.lose]
        if (away := self.away("drive")) is not None:
            plan["dies"] = serials[away]
        return plan | ({} if self.log is None else {"log": self.log})


def load(text: str) -> list[Setting]:
    """All settings; raises MatrixError."""
    settings = []
    for table in tomllib.loads(text)["setting"]:
        try:
            words: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
            }
            setting = Setting(**words)
        except TypeError as error:
            raise MatrixError(f"{table.get('name')}: {error}") from None
        if setting.workload not in WORKLOADS or not setting.drives or set(setting.lines) - set(LINES):
            raise MatrixError(f"{setting.name}: workload, drives or lines")
        if setting.layer not in LAYERS:
            raise MatrixError(f"{setting.name}: layer")
        if any(number >= len(setting.drives) for number in (*setting.lose, setting.within or 0)):
            raise MatrixError(f"{setting.name}: lose or within names a drive that it has not")
        settings.append(setting)
    if len({setting.name for setting in settings}) != len(settings):
        raise MatrixError("a name is there twice")
    return settings


def everything(file: Path = FILE) -> list[Setting]:
    """All settings of the checked-in matrix, or of another one."""
    return load(file.read_text(encoding="utf-8"))


def guests(settings: Sequence[Setting], drives: int = DISKS_PER_GUEST) -> list[list[Setting]]:
    """Settings that can share a guest: the same module parameters, not too many drives; disputed ones first."""
    groups: dict[str, list[list[Setting]]] = {}
    for setting in sorted(settings, key=lambda each: not each.disputed):
        # a parameter is judged by all drives of the host, so that protected ones get a host of their own
        protected = bool(setting.parameters) and set(setting.drives) == {"plp"}
        same = groups.setdefault(json.dumps([dict(setting.parameters), setting.needs, protected], sort_keys=True), [[]])
        if sum(len(each.drives) for each in same[-1]) + len(setting.drives) > drives:
            same.append([])
        same[-1].append(setting)
    found = [group for same in groups.values() for group in same]
    return sorted(found, key=lambda group: -sum(bool(each.disputed) for each in group))


def offers(line: str, program: str) -> bool:
    """Does the guest's image hold what a setting needs? Seen in the folder that the image was made from."""
    return not program or any((CACHE / f"root-{line}" / "usr").glob(SERVERS[program]))
