"""The commands of zfs that a verification runs, on datasets that are not there."""

from __future__ import annotations

import errno
import getopt
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from auditor.verify import ledger

GUID = str(2**64 - 7)  # a number of Lua has a sign


class Dataset(NamedTuple):
    """mark: its user property, and the dataset at which that is set."""

    guid: str
    mark: tuple[str, str]
    created: float = 0.0


@dataclass
class FakeZfs:
    """datasets: by name; a text stands for one that bears it as its mark. fails: a command, and what it prints then; busy: how
    often a dataset cannot be destroyed yet."""

    datasets: Mapping[str, str | Dataset] = field(default_factory=dict)
    mountpoint: str = "/nowhere"
    fails: str = ""
    busy: int = 0
    asked: list[tuple[str, ...]] = field(default_factory=list)
    before: Callable[[], None] = lambda: None
    after: Callable[[FakeZfs], None] = lambda zfs: None  # zfs create has made something

    def __post_init__(self) -> None:
        self.there = {
            name: each if isinstance(each, Dataset) else Dataset(GUID, (each, name))
            for name, each in self.datasets.items()
        }

    def __call__(self, argv: tuple[str, ...]) -> tuple[int, str]:
        self.asked.append(argv)
        self.before()
        name = argv[-1]
        if self.fails and argv[1] == self.fails.partition(" ")[0]:
            return 1, self.fails
        match argv[1]:
            case "create":
                mark = next(word.partition("=")[2] for word in argv if word.startswith(ledger.PROPERTY))
                self.there[name] = Dataset(GUID, (mark, name), time.time())
                self.after(self)
                return 0, ""
            case "program":
                return self._program(argv[2:])
            case "get" if "-r" in argv:
                return 0, "".join(f"{each}\t{one.guid}\n" for each, one in self.there.items())
        if name not in self.there:
            return 1, f"cannot open '{name}': dataset does not exist\n"
        assert argv[1] == "get"
        one = self.there[name]
        values = {"mountpoint": self.mountpoint, "guid": one.guid, "creation": f"{one.created:.0f}"}
        values[ledger.PROPERTY] = one.mark[0]
        source = "local" if one.mark[1] == name else f"inherited from {one.mark[1]}"
        words = argv[-2].split(",")
        if argv[argv.index("-o") + 1] == "value":
            return 0, f"{values[words[0]]}\n"
        return 0, "".join(f"{word}\t{values[word]}\t{source if word == ledger.PROPERTY else '-'}\n" for word in words)

    def _program(self, words: Sequence[str]) -> tuple[int, str]:
        """What that program does, by its words."""
        options, (_, path, name, guid, key, mark) = getopt.gnu_getopt(list(words), "jnt:m:")
        assert ("-j", "") in options
        assert (key, Path(path).read_text()) == (ledger.PROPERTY, ledger.PROGRAM)
        dry = ("-n", "") in options
        one = self.there.get(name)
        if one is None:
            return 0, '{"return":"gone"}\n'
        if int(one.guid) % 2**64 != int(guid) % 2**64:
            return 0, '{"return":"another"}\n'
        if one.mark != (mark, name):
            return 0, '{"return":"unmarked"}\n'
        assert not dry
        if self.busy:
            self.busy -= 1
            return 0, f'{{"return":"error {errno.EBUSY}"}}\n'
        del self.there[name]
        return 0, '{"return":"error 0"}\n'

    def rename(self, old: str, new: str) -> None:
        one = self.there.pop(old)
        self.there[new] = one._replace(mark=(one.mark[0], new if one.mark[1] == old else one.mark[1]))
