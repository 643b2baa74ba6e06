"""Which recordings there are, what of them a killed run has done (the journal), and that each comes out again."""

from __future__ import annotations

import errno
import fcntl
import glob
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple

from auditor import EXIT_USAGE, Stop
from auditor.codec import moment
from auditor.fleet import store
from auditor.fleet.counting import ahead, named, names, place, undated
from auditor.fleet.workers import common, lines, missing
from auditor.host import trust, user_files
from auditor.host.trust import held
from auditor.host.user_files import CannotWrite, complaining
from auditor.judge.finding import EXIT_UNDECIDED
from auditor.recording.archive import ENDINGS, MANIFEST
from auditor.text import counted, harmless, is_url

# Which recordings are meant: files, folders of them, patterns and URLs. Other files in the folders are counted.

DEEP = 4  # folders within a folder
MOST = 1_000_000
STARS = frozenset("*?[")


class TooMany(Stop):
    """More recordings than are judged at once."""


class Input(NamedTuple):
    """name: of a recording, for messages and rows. stamp: another one when its content may be another."""

    name: str
    stamp: str


class Inputs(NamedTuple):
    """recordings: each once, in the order of the words and by name within each. beside: how many other files lie in the
    folders. too_deep: folders that were not looked into."""

    recordings: tuple[Input, ...]
    beside: int
    too_deep: tuple[str, ...]


def find(words: Iterable[str]) -> Inputs:
    """A word that means no recording is an input too, which cannot be judged. Raises TooMany, NoStore or OSError."""
    walk = _Walk()
    every: dict[str, Input] = {}
    for word in words:
        none = True
        for each in walk.word(word):
            none = False
            every.setdefault(each.name, each)
            if len(every) > MOST:
                raise TooMany(f"more than {MOST:,} recordings: judge them in parts")
        if none:
            every.setdefault(word, Input(word, ""))
    return Inputs(tuple(every.values()), walk.beside, tuple(walk.too_deep))


class _Walk:
    def __init__(self) -> None:
        self.beside = 0
        self.too_deep: list[str] = []

    def word(self, word: str) -> Iterator[Input]:
        if is_url(word):
            for url, stamp in store.listed(word):
                if url.endswith(ENDINGS):
                    yield Input(url, stamp)
                else:
                    self.beside += 1
        elif STARS & set(word) and (_of_another(word) or not os.path.lexists(word)):
            for name in sorted(_matching(word)):
                yield from self._path(name, named=False)
        else:
            yield from self._path(word, named=True)

    def _path(self, path: str, *, named: bool) -> Iterator[Input]:
        """named: somebody wrote this name, and is told when it is no recording."""
        if _of_another(path):
            yield Input(path, "")
        elif os.path.isdir(path) and not os.path.lexists(os.path.join(path, MANIFEST)):
            yield from self._folder(path, DEEP)
        elif named or path.endswith(ENDINGS) or os.path.isdir(path):
            yield Input(path, _stamp(path))
        else:
            self.beside += 1

    def _folder(self, folder: str, deep: int) -> Iterator[Input]:
        """Recordings below it. No link to a folder is followed: it may lead in a circle."""
        with os.scandir(folder) as entries:
            names = sorted((each.name, each.is_dir(follow_symlinks=False)) for each in entries)
        for name, is_folder in names:
            path = os.path.join(folder, name)
            if _of_another(path):
                yield Input(path, "")
            elif name.endswith(ENDINGS) or (is_folder and os.path.lexists(os.path.join(path, MANIFEST))):
                yield Input(path, _stamp(path))
            elif is_folder and deep:
                yield from self._folder(path, deep - 1)
            elif is_folder:
                self.too_deep.append(path)
            else:
                self.beside += 1


def _matching(pattern: str) -> Iterator[str]:
    """As glob.glob, without ** (folders are searched through). What is not to be asked stands for what lies there."""
    above, name = os.path.split(pattern)
    for folder in _matching(above) if STARS & set(above) else (above,):
        if _of_another(folder or "."):
            yield folder
        elif STARS & set(name):
            yield from (os.path.join(folder, each) for each in glob.glob(name, root_dir=folder or None))
        elif _of_another(path := os.path.join(folder, name)) or os.path.lexists(path):
            yield path


def _of_another(path: str) -> bool:
    """Whether another user serves its file system, who could let wait whoever asks it; who judges it says so."""
    try:
        os.close(trust.reach(path))
    except OSError as error:
        return isinstance(error, trust.Served)
    return False


def _stamp(path: str) -> str:
    """Size, time and number of a file; of a folder those of all that is in it."""
    try:
        find = os.stat(path)
        if not stat.S_ISDIR(find.st_mode):
            return f"{find.st_ino}:{find.st_size}:{find.st_mtime_ns}"
        with os.scandir(path) as entries:
            every = sorted((each.name, each.stat(follow_symlinks=False)) for each in entries)
    except OSError:
        return ""
    return (
        f"{len(every)}:{max((one.st_mtime_ns for _, one in every), default=0)}:{sum(one.st_size for _, one in every)}"
    )


# What was judged so far, next to the output, so that an interrupted run can resume.
#
# ``FILE.part``: a line of JSON that says by what was judged, then one for each recording: its name, its stamp and its rows.
# It is resumed only where zaudit began it and it is a plain file of this user that no other may write; only results of the
# same rules and release count.

MARK = b'{"zaudit-fleet-part": 1, '  # with which every journal begins, whatever judged
LINE = 256 << 20  # bytes of the rows of one recording, twice encoded
_FLAGS = os.O_RDWR | os.O_APPEND


class Journal:
    """path: of the journal; how: a digest of what decides the rows. Raises NoPlace or CannotWrite."""

    def __init__(self, path: Path, how: str) -> None:
        self.path = path
        self._head = MARK + json.dumps({"how": how}).encode()[1:] + b"\n"
        self._where: dict[Input, tuple[int, int]] = {}
        with complaining(path):
            self._file = self._opened()
            try:
                self._found()
            except BaseException:
                self._file.close()
                raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __contains__(self, each: Input) -> bool:
        return bool(each.stamp) and each in self._where

    def add(self, each: Input, rows: str) -> None:
        """Rows of one recording; they are there once this returns, should the program be killed."""
        with complaining(self.path):
            start = self._file.seek(0, os.SEEK_END)
            self._file.write(json.dumps([*each, rows]).encode() + b"\n")
            self._file.flush()
            self._where[each] = start, self._file.tell() - start

    def rows(self, each: Input) -> str:
        start, size = self._where[each]
        self._file.seek(start)
        return str(json.loads(self._file.read(size))[2])

    def remove(self) -> None:
        with complaining(self.path), held(os.path.dirname(self.path) or ".") as folder:
            os.unlink(self.path.name, dir_fd=folder)

    def _opened(self) -> BinaryIO:
        other = CannotWrite(f"{self.path}: not a file for this user alone, so it is not continued; remove it")
        with held(os.path.dirname(self.path) or ".") as folder:
            try:
                descriptor = _open(self.path.name, folder)
            except user_files.WrongKind:
                raise other from None
        find = os.fstat(descriptor)
        if not trust.private(descriptor) or find.st_uid != os.geteuid() or find.st_nlink != 1:
            os.close(descriptor)
            raise other
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno == errno.EWOULDBLOCK:
                raise CannotWrite(f"{self.path}: another zaudit is writing it") from None
            raise
        return os.fdopen(descriptor, "r+b")

    def _found(self) -> None:
        """Where the rows of each recording are. An incomplete end, or what was judged otherwise, is cut off. Raises
        CannotWrite for a file that zaudit did not begin."""
        self._file.seek(0)
        head = self._file.read(len(MARK))
        if head and head != MARK:
            raise CannotWrite(
                f"{self.path}: not made by zaudit, so it is left alone; move it away or name another output"
            )
        whole = 0
        for start, line in self._lines():
            if not start:
                if line != self._head:
                    break
            else:
                try:
                    name, stamp, rows = json.loads(line)
                except (ValueError, TypeError):
                    break
                if not all(isinstance(each, str) for each in (name, stamp, rows)):
                    break
                self._where[Input(name, stamp)] = start, len(line)
            whole = start + len(line)
        self._file.truncate(whole)
        if not whole:
            self._file.write(self._head)
            self._file.flush()

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        start = self._file.seek(0)
        while (line := self._file.readline(LINE)).endswith(b"\n"):
            yield start, line
            start += len(line)


def _open(name: str, folder: int) -> int:
    """A new file, or the one that is there. Raises OSError, WrongKind for what is no file."""
    try:
        return os.open(name, _FLAGS | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    except FileExistsError:
        return user_files.open_as(name, user_files.FILE, folder=folder, flags=_FLAGS)


# Every recording comes out again, once: judged, not judged and why, given twice; and which hosts are missing.

HOSTS = 1_000_000
HOST = re.compile(r"[^\W_][\w.-]{0,252}")
ERRORS_SHOWN = 10
ERROR = 200  # characters


class InventoryError(Stop):
    """A list of hosts that is none."""


def inventory(text: str) -> tuple[str, ...]:
    """The expected hosts: one a line, # begins a comment. Raises InventoryError, which repeats nothing of the file."""
    hosts: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if name := line.partition("#")[0].strip():
            if not HOST.fullmatch(name):
                raise InventoryError(f"line {number}: an inventory has one host per line: letters, digits and . _ -")
            hosts[name] = None
    if not hosts or len(hosts) > HOSTS:
        raise InventoryError(f"an inventory names 1 to {HOSTS:,} hosts, one per line; this one has {len(hosts):,}")
    return tuple(hosts)


@dataclass
class Account:
    """expected: the hosts of the inventory. others: the rest. now: seconds since the epoch. ahead: hosts, as of Looks.
    claimed: names that recordings of several places claim; each is called by its place, unless that has the name. own:
    expected hosts with a recording in a place called so; another one that claims such a name (posing) is called as its
    file."""

    expected: frozenset[str]
    now: float
    judged: int = 0
    rows: int = 0
    twice: int = 0
    errors: list[str] = field(default_factory=list)
    unjudged: int = 0
    seen: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    ahead: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)
    own: frozenset[str] = frozenset()
    posing: set[str] = field(default_factory=set)
    _claims: dict[str, set[str]] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)

    def in_order(self, recordings: Iterable[Input]) -> tuple[Input, ...]:
        """Those first that lie where an expected host is called so: of two equal ones the other is the duplicate."""
        every = tuple(recordings)
        placed = {each: name for each in every if (name := self._placed(each.name))}
        self.own = frozenset(placed.values())
        return tuple(sorted(every, key=lambda each: each not in placed))

    def claims(self, text: str) -> None:
        """Notes which name a recording gives its host, before any is counted."""
        row = json.loads(text.partition("\n")[0])
        if row["kind"] == "report":
            self._claims.setdefault(row["host"], set()).add(undated(row["recording"]))

    def counted(self, text: str) -> str:
        """The lines of one recording, with the ``name`` of its host; of a duplicate, a line that says so."""
        row = json.loads(text.partition("\n")[0])
        if row["kind"] == "unjudged":
            self.unjudged += 1
            self.errors += [f"{row['recording']}: {row['error']}"[:ERROR]][: ERRORS_SHOWN - len(self.errors)]
            self.rows += 1
            name = self.name(row["recording"], "")
            if name in self.expected:  # it came, and cannot be read
                self.seen.add(name)
                return lines([{"name": name, **row}])
            return text
        before = self._digests.setdefault(row["digest"], row["recording"])
        if before != row["recording"]:
            self.twice += 1
            self.rows += 1
            return lines([{**common("duplicate"), "recording": row["recording"], "of": before}])
        name = self.name(row["recording"], row["host"])
        (self.seen if name in self.expected else self.others).add(name)
        if ahead(moment(row["taken"]), self.now):
            self.ahead.add(name)
        self.judged += 1
        self.rows += text.count("\n")
        begins = json.dumps({"name": name})[:-1]
        return "".join(f"{begins}, {line[1:]}\n" for line in text.splitlines())

    def name(self, recording: str, host: str) -> str:
        """As the inventory has it, by where the recording lies; else as the host calls itself, unless that is the name of
        another one, or recordings of other places claim it too."""
        if name := self._placed(recording):
            return name
        if host in self.own:
            self.posing.add(host)
            return recording
        places = self._claims.get(host, set())
        if len({place(each, host) for each in places}) < 2 or host in named(recording):
            return host
        self.claimed.add(host)
        return self._shortest(recording, places)

    def _shortest(self, recording: str, places: Iterable[str]) -> str:
        """As little of a place as no other recording of that name has, and no host is called."""
        parts = [each.split("/") for each in places]
        own = undated(recording).split("/")
        ends = ("/".join(own[-length:]) for length in range(1, len(own)))
        taken = self._claims.keys() | self.expected
        alone = (
            end for end in ends if end not in taken and sum("/".join(each).endswith(f"/{end}") for each in parts) == 1
        )
        return next(alone, undated(recording))

    def _placed(self, recording: str) -> str:
        return next((name for name in named(recording) if name in self.expected), "")

    def absent(self) -> Iterator[str]:
        for host in sorted(self.expected - self.seen):
            self.rows += 1
            yield lines([missing(host)])

    @property
    def exit_code(self) -> int:
        """0 where everything was judged and everybody is there. What was found does not count: that is the report's to say."""
        return EXIT_USAGE if self.unjudged else EXIT_UNDECIDED if self.expected - self.seen else 0

    def summary(self, asked: int, beside: int, too_deep: Iterable[str]) -> Iterator[str]:
        """asked: how many recordings there were."""
        yield (
            f"{counted(asked, 'recording')}: {self.judged:,} judged, {self.unjudged:,} could not be judged, "
            f"{self.twice:,} given twice; {counted(self.rows, 'row')}"
        )
        yield from (f"not judged: {error}" for error in self.errors)
        if self.unjudged > len(self.errors):
            yield f"not judged: {self.unjudged - len(self.errors):,} more (kind unjudged in the rows)"
        if self.expected:
            gone, more = len(self.expected) - len(self.seen), len(self.others)
            yield f"{len(self.expected):,} hosts expected: {gone:,} missing; {more:,} came that were not expected"
        if self.ahead:
            yield f"taken in the future, as the recordings say, of {names(self.ahead)}: is a clock wrong?"
        if self.claimed:
            yield f"recordings in several places claim the host name {names(self.claimed)}: each is named after its place"
        if self.posing:
            yield f"recordings elsewhere claim the host name {names(self.posing)}: each is named after its file"
        if beside:
            yield f"{beside:,} other files in these folders are no recordings and were left alone"
        for folder in too_deep:
            yield f"not looked into, too deep: {harmless(folder)}"
