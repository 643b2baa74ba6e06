"""What a source may ask of a host, and what it gets back. (``auditor/sources/source.py``) No I/O here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import NamedTuple

NOTHING: Mapping[str, str] = MappingProxyType({})
_FILESYSTEMS = re.compile(r"(?:(?:nodev)?\t[\w.-]{1,64}\n)+")  # fs/filesystems.c filesystems_proc_show
UNANSWERED = ("no answer within ", "not read: ")  # how an error begins of a file of a process that lets its reader wait
WITNESS = "/proc/filesystems"  # always there: a collector that concludes from absence asks for it, too
UNASKED = (
    "not in the recording"  # the fault of a question, or the error of a pattern, that nobody asked when it was made
)


class Run(NamedTuple):
    """A command. argv[0] is a bare name, looked up in a fixed PATH; never a shell.

    package: its Debian package, for the reason when it is not installed; extra: of zaudit that brings the same. accept:
    exit codes with a valid answer (smartctl's is a bit mask). also: other names of the same tool. keep: of a long history
    keep only lines with this regular expression; first: of the first line with this one, keep that match at least, which
    tells how far the history goes back. part: keep more than the beginning of what it printed before it was given up.
    halved: where it is late it is asked again of less (``gather/answer.py``), which half of the rest of the deadline is
    spared for. free_text: others choose its values: contradicted datasets are asked about one by one, and an answer that
    was given up counts for nothing."""

    argv: tuple[str, ...]
    package: str = ""
    accept: frozenset[int] = frozenset({0})
    also: tuple[str, ...] = ()
    keep: str = ""
    extra: str = ""
    first: str = ""
    part: bool = False
    halved: bool = False
    free_text: bool = False


ANY = re.compile(r".*", re.DOTALL)
NAME = re.compile(r"[^-].*", re.DOTALL)  # of a pool or dataset
DEVICE = re.compile(r"/dev/[^-].*")
NOTHING_ELSE = re.compile("(?!)")


class Command(NamedTuple):
    """Which command lines a source may run, and what makes them another question.

    begins: the first words. options: others that may follow; others: what else may, by whole words. Properties, columns and
    options of form are not what a question is about (``recording/lookup.py``). apart: options that make it another
    question, with their value if any. valued: options whose value is the next word. lists: those whose value is a list with
    commas; PROPERTIES for the first word that is no option. named: all words after so many are such a list, of at least
    one. table: it prints properties of datasets, a cell between tabs."""

    begins: tuple[str, ...]
    options: frozenset[str] = frozenset()
    others: re.Pattern[str] = NOTHING_ELSE
    apart: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    named: int = 0
    table: bool = False

    def begins_as(self, argv: tuple[str, ...]) -> bool:
        """Whether a command line has these first words."""
        return argv[: len(self.begins)] == self.begins

    def permits(self, argv: tuple[str, ...]) -> bool:
        """Whether it is one of these command lines."""
        rest = argv[len(self.begins) :]
        return (
            self.begins_as(argv)
            and (not self.named or len(rest) > self.named)
            and all(each in self.options or self.others.fullmatch(each) for each in rest)
        )


PROPERTIES = ""  # a list that stands where no option does


def command(
    begins: str,
    options: str = "",
    others: re.Pattern[str] = NOTHING_ELSE,
    *,
    apart: str = "",
    valued: str = "",
    lists: Iterable[str] = (),
    table: bool = False,
) -> Command:
    """The same, with its words in one text."""
    return Command(
        tuple(begins.split()),
        frozenset(options.split()),
        others,
        frozenset(apart.split()),
        frozenset(valued.split()),
        frozenset(lists),
        table=table,
    )


class Read(NamedTuple):
    """Files: glob patterns with ``*`` (no ``**``) for files and symbolic links under /sys, /proc, /etc, /run and /dev.

    Below /proc/PID/root the rights of that process count. owner: the folder whose owner's rights count below
    /proc/self/root. blocks: of files below such a root read only the sizes of their blocks, of those with more than one,
    and how many have not. trusted: an error for what others than root and this user could have put there, removed or
    changed (``host/trust.py``); of files of the machine."""

    patterns: tuple[str, ...]
    owner: str = ""
    blocks: bool = False
    trusted: bool = False


class Skip(NamedTuple):
    """Not asked, and why: "not an NVMe device". applies: False where the question has no meaning for this subject."""

    reason: str
    remedy: str = ""
    applies: bool = True


Request = Run | Read | Skip


class Capture(NamedTuple):
    """What a command did. exit: None when it did not end by itself. fault: why there is no answer ("not installed", "timed
    out after 30 s", UNASKED, ...), or empty. keep: with which its lines were chosen. lacks: properties, columns and options
    that today's question has and the recorded one had not. columns: those that it had, where they differ."""

    exit: int | None
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float = 0.0
    fault: str = ""
    keep: str = ""
    lacks: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


class Output(NamedTuple):
    """A command's answer: text (UTF-8, surrogateescape for the rest) and the command as typed. lacks, columns: as of a
    :class:`Capture`; a parser that concludes from absence, or counts columns, looks at them first."""

    text: str
    command: str
    exit: int = 0
    stderr: str = ""
    lacks: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


class Files(NamedTuple):
    """Files as they were read. text: path -> content; of sizes of blocks, pattern -> ``SIZE FILES`` on a line each. links:
    path of a symbolic link -> its target (as readlink gives it). errors: path -> what went wrong ("permission denied").

    devices: path of a folder of others, or of a link to one -> its device, ``MAJOR:MINOR``, and BARRED behind it where the
    process may not write in it; of /proc/PID/fd/N that names a path, NEITHER, GENERIC (of SCSI, /dev/sgN), ``HOW BLOCK
    MAJOR:MINOR`` or ``HOW FILE MAJOR:MINOR TYPE`` (HOW r or w). changed: below the root directory of a process, links and
    folders too, path -> seconds from the start of that process to its last change (ctime). unkept: words of today's
    allow-lists that the recording had not."""

    text: Mapping[str, str]
    links: Mapping[str, str] = NOTHING
    errors: Mapping[str, str] = NOTHING
    devices: Mapping[str, str] = NOTHING
    changed: Mapping[str, float] = MappingProxyType({})
    unkept: tuple[str, ...] = ()

    def unasked(self) -> tuple[str, ...]:
        """The patterns of which the recording says nothing, because nobody asked then."""
        return tuple(pattern for pattern, error in self.errors.items() if error == UNASKED)

    def absent(self, pattern: str) -> bool:
        """Whether the answer to this pattern is that there is no such file."""
        return self.errors.get(pattern, "").startswith("no such file")

    def complete(self, *patterns: str) -> bool:
        """Whether each of these patterns was answered and nothing that it names was kept back: silence about a pattern does
        not mean that there is no such file."""
        found = (*self.text, *self.links, *(path for path in self.errors if self.absent(path)))
        kept_back = (path for path in self.errors if not self.absent(path))
        return all(any(fnmatchcase(path, pattern) for path in found) for pattern in patterns) and not any(
            fnmatchcase(path, pattern) for path in kept_back for pattern in patterns
        )

    def witness(self) -> None:
        """Raises ValueError where nothing shows that files could be read at all."""
        if not _FILESYSTEMS.fullmatch(self.text.get(WITNESS, "")):
            raise ValueError(f"{WITNESS} was not read")

    def lines(self, path: str) -> list[str]:
        """The lines of one file; raises KeyError when it was not read."""
        return self.text[path].splitlines()

    def check_below(self, *folders: str) -> None:
        """Raises ValueError where something below one of these folders is there and was not read."""
        for path, error in self.errors.items():
            if path.startswith(folders) and not error.startswith("no such"):
                raise ValueError(f"{path}: {error}")


Reply = Output | Files


# How much zaudit takes in, and how long it waits. Over a bound stands a reason in place of the answer, never silently less.

MIB = 1 << 20

FILE_BYTES = 4 * MIB  # of one file of the machine
MACHINE_BYTES = 128 * MIB  # of the machine's own files in one question; a member of a recording may have as much
MACHINE_ENTRIES = 1_000_000  # of one folder of the machine: /proc has 4 million processes at most, a pool its datasets

# of files that belong to others, which one of them may have made for zaudit to stumble over: each of their lines is looked
# at, and 4 MiB of the shortest lines take seconds; an honest configuration has some kilobytes
OTHERS_FILE_BYTES = 1 * MIB  # of one file
QUESTION_BYTES = 4 * MIB  # in one question
USER_BYTES = 8 * MIB  # in all questions about processes of one user
QUESTION_FILES = 1_000  # that are opened in one question
FOLDER_ENTRIES = 10_000  # of one folder
DATA_ENTRIES = 100_000  # of one folder with data files, of which the sizes of blocks alone are asked

# of the process that reads them
READER_BYTES = 256 * MIB  # its address space
READER_CPU_S = 10
READER_DESCRIPTORS = 32

# of database servers that run: how many are looked at one by one
SERVERS_OF_A_USER = 10
SERVERS = 40

# of commands and of a whole run
OUTPUT_BYTES = 128 << 20
"""Of what one command prints, on both streams together."""
HISTORY_BYTES = 1 << 30
"""The same of a history of which only some lines are kept, and none of the others held. (OpenZFS: zpool history is a ring of
1 GiB at most, spa_history_create_obj() of module/zfs/spa_history.c)"""
LINE_BYTES = 64 << 10
"""Of a line of a history of which only some lines are kept. (OpenZFS: a record of zpool history has 8 KiB at most,
HIS_MAX_RECORD_LEN of include/sys/fs/zfs.h)"""
HALF_BYTES = 64 << 10
"""Of each stream that are kept of a command that gave no answer."""
PART_BYTES = 16 << 20
"""The same of one of which a part is an answer, too: zfs get of 10,000 datasets."""
ANSWERS_BYTES = 512 << 20
"""Of all answers of one run together."""
AT_ONCE = 32
"""Questions that are open at the same time; a host with 24 drives has 150."""
AFTER_KILL_S = 2.0
"""In which a command that was killed is waited for: a suspended pool leaves processes in uninterruptible sleep."""
DEADLINE_S = 900.0
"""Of a whole run, unless --deadline says otherwise."""
