"""What a question is about, so that its answer is found although another release of zaudit asked it in other words.

A command is about its tool, its verb and what else it names: a pool, a disk, the options that make it another question. It
is not about the properties and columns that it lists, or options of form: an answer to fewer of them serves, and says what
it lacks. Files are asked for pattern by pattern. What chooses the lines of an answer is part of the question: lines that
were not kept may have been there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from auditor.databases import configuration
from auditor.host import builtin
from auditor.host.children.reader import matches
from auditor.host.request import PROPERTIES, UNASKED, Capture, Files, Read, Run
from auditor.sources import commands

COLUMNS = "-o"
GLOB = "*"
# how a channel program was spelt before it had a name, with the program behind it
PROGRAM = ("python3", "-I", "-c")
_OF_DATABASES = re.compile(r"/proc/(?:\d+|self)/(?:environ|cmdline|root/.+)|/proc/\*/stat")
COMPARED = (
    200_000_000  # characters of patterns and paths of a recording, which may be anybody's: then nothing more was asked
)


class Question(NamedTuple):
    """A command, taken apart. lists: option -> its words. options: the others."""

    about: tuple[str, ...]
    lists: Mapping[str, tuple[str, ...]]
    options: frozenset[str]

    def lacks(self, wanted: Question) -> tuple[str, ...] | None:
        """What the other asks for and this one does not; None where this is no answer to it at all."""
        missing = sorted(wanted.options - self.options)
        for name, words in wanted.lists.items():
            mine = self.lists.get(name, ())
            if words and not set(words) & set(mine):
                return None
            missing += (word for word in words if word not in mine)
        return tuple(missing)


def question(argv: tuple[str, ...]) -> Question:
    """Any command, also as an older zaudit spelt it. Of a tool that no source runs every word counts; an option that no
    source knows may add to an answer, and not change its meaning."""
    if argv[:3] == PROGRAM:
        argv = (builtin.LZC_NAME, *argv[4:])
    form = next((each for each in commands() if each.begins_as(argv)), None)
    if form is None:
        return Question(argv, {}, frozenset())
    about, lists, options = list(form.begins), dict[str, tuple[str, ...]](), set[str]()
    words = iter(argv[len(form.begins) :])
    for word in words:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            if PROPERTIES in form.lists and PROPERTIES not in lists:
                lists[PROPERTIES] = tuple(word.split(","))
            else:
                about.append(word)
        elif word in form.valued or equals:
            value = value if equals else next(words, "")
            if name in form.lists:
                lists[name] = tuple(value.split(","))
            elif name in form.apart:
                about += (name, value)
        elif word in form.apart:
            about.append(word)
        else:
            options.add(word)
    if form.named:
        named = len(form.begins) + form.named
        about, lists[PROPERTIES] = about[:named], tuple(about[named:])
    return Question(tuple(about), lists, frozenset(options))


class Answers:
    """The answers of a recording, found by what they are about. allowed: what was kept of files that may hold passwords."""

    def __init__(
        self,
        commands: Mapping[tuple[str, ...], Capture],
        files: Mapping[tuple[str, ...], Files],
        allowed: frozenset[str],
    ) -> None:
        self._unkept = tuple(sorted(configuration.allow_list() - allowed))
        self._commands, self._files = answers(commands), files
        self._left = COMPARED

    @cached_property
    def _about(self) -> dict[tuple[str, ...], list[tuple[Question, Capture]]]:
        """Needed where a question was put in other words only."""
        found: dict[tuple[str, ...], list[tuple[Question, Capture]]] = {}
        for argv, capture in self._commands.items():
            asked = question(argv)
            found.setdefault(asked.about, []).append((asked, capture))
        return found

    @cached_property
    def _patterns(self) -> dict[str, list[Files]]:
        found: dict[str, list[Files]] = {}
        for patterns, answer in self._files.items():
            for pattern in patterns:
                found.setdefault(pattern, []).append(answer)
        return found

    @cached_property
    def _wide(self) -> dict[int, list[str]]:
        """Those with a star, by how many parts they have."""
        found: dict[int, list[str]] = {}
        for each in self._patterns:
            if GLOB in each:
                found.setdefault(each.count("/"), []).append(each)
        return found

    def run(self, request: Run) -> Capture:
        """The answer that lacks least, with what it lacks."""
        found = self._commands.get(request.argv) or self._nearest(request)
        if not found or not _chosen_alike(found, request):
            return Capture(None, fault=UNASKED)
        return found

    def _nearest(self, request: Run) -> Capture | None:
        wanted = question(request.argv)
        found: list[tuple[int, bool, Capture]] = []
        for asked, capture in self._about.get(wanted.about, ()):
            if (lacks := asked.lacks(wanted)) is not None:
                columns = asked.lists.get(COLUMNS, ())
                columns = () if columns == wanted.lists.get(COLUMNS, ()) else columns
                capture = capture._replace(lacks=lacks, columns=columns)
                found.append((len(lacks), capture.exit not in request.accept, capture))
        return min(found, key=lambda each: each[:2])[2] if found else None

    def read(self, request: Read) -> Files:
        """What was read of each pattern, whichever question asked for it."""
        found = self._files.get(request.patterns) or self._by_pattern(request)
        return found._replace(unkept=self._unkept) if any(map(_OF_DATABASES.match, request.patterns)) else found

    def _by_pattern(self, request: Read) -> Files:
        text, links, errors = dict[str, str](), dict[str, str](), dict[str, str]()
        devices, changed, merged = dict[str, str](), dict[str, float](), set[int]()
        for pattern in request.patterns:
            asked, answer = self._asked(pattern)
            here, to, mine = (self._of(each, pattern) for each in (answer.text, answer.links, answer.errors))
            if self._left < 0:
                errors[pattern] = UNASKED
                continue
            text |= here
            links |= to
            if id(answer) not in merged:
                merged.add(id(answer))
                devices |= answer.devices
                changed |= answer.changed
            if asked in answer.errors:
                mine[pattern] = answer.errors[asked]
            # of a wider pattern it is not told what is no file, and neither are folders
            elif asked != pattern and not (here or to or mine):
                mine[pattern] = UNASKED
            errors |= mine
        return Files(text, links, errors, devices, changed)

    def _of(self, answers: Mapping[str, str], pattern: str) -> dict[str, str]:
        """Those of the paths that a pattern means; none where too many were compared."""
        if GLOB not in pattern:
            return {pattern: answers[pattern]} if pattern in answers else {}
        self._left -= sum(map(len, answers))
        return {path: each for path, each in answers.items() if meant(path, pattern)} if self._left >= 0 else {}

    def _asked(self, pattern: str) -> tuple[str, Files]:
        """(the pattern that was asked for: this one or a wider one, its answer: of several one that was given)."""
        wide = [pattern]
        if pattern not in self._patterns:
            alike = self._wide.get(pattern.count("/"), [])
            self._left -= sum(map(len, alike))
            wide = [each for each in alike if meant(pattern, each)] if self._left >= 0 else []
        found = [(each, answer) for each in wide for answer in self._patterns[each]]
        self._left -= len(found)
        found.sort(key=lambda each: each[0] in each[1].errors)
        return found[0] if found else (pattern, Files({}, errors={pattern: UNASKED}))


def meant(path: str, pattern: str) -> bool:
    """Whether a path is one of those that a pattern means; a star is no more than a part of a name."""
    if GLOB not in pattern:
        return path == pattern
    if path.count("/") != pattern.count("/") or not path.startswith(pattern.partition(GLOB)[0]):
        return False
    pairs = zip(path.split("/"), pattern.split("/"), strict=True)
    return all(matches(name, part) if GLOB in part else name == part for name, part in pairs)


def _chosen_alike(capture: Capture, request: Run) -> bool:
    """Whether its lines were chosen as they would be chosen now."""
    if not request.keep or capture.exit not in request.accept:
        return True
    return capture.keep == request.keep or (not capture.keep and CHOSEN.get(request.argv[:2]) == _digest(request.keep))


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()[:16]


# What recordings of the first edition do not report: how the lines of long answers were chosen then, and the allow-lists of
# files that may hold passwords. Nothing is ever added here.

# command -> digest of the pattern
CHOSEN: dict[tuple[str, ...], str] = {("zpool", "history"): "e6985e6d9e4a20f9", ("dmesg", "-k"): "8dc5393592ae7229"}

_MYSQL = (
    "datadir innodb_data_home_dir innodb_dedicated_server innodb_doublewrite "
    "innodb_flush_log_at_trx_commit innodb_flush_method innodb_log_group_home_dir innodb_page_size "
    "innodb_undo_directory log_bin sync_binlog "
)
_SETTINGS = {
    "etcd": ("data-dir unsafe-no-fsync wal-dir "),
    "mongodb": ("storage.dbPath storage.journal.enabled "),
    "postgres": (
        "config_file data_directory fsync full_page_writes include include_dir include_if_exists "
        "synchronous_commit temp_tablespaces wal_init_zero wal_recycle wal_sync_method "
    ),
    "redis": ("appendfsync appendonly dir include "),
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
}
_OTHERS = (
    "$ETCD_CONFIG_FILE $ETCD_DATA_DIR $ETCD_UNSAFE_NO_FSYNC $ETCD_WAL_DIR $HOME $MARIADB_GROUP_SUFFIX "
    "$MARIADB_HOME $MYSQL_GROUP_SUFFIX $MYSQL_HOME $PGDATA "
)
# after :func:`auditor.databases.configuration.allow_list`
KEPT = frozenset(
    (*(f"{engine} {name}" for engine, names in _SETTINGS.items() for name in names.split()), *_OTHERS.split())
)


# How older recordings asked for the kernel's log: dmesg with other options each. Now /dev/kmsg is read. Such a recording
# does not say whether dmesg read /dev/kmsg or syslog(2), where a user's lines look like the kernel's: a line of dmesg may
# add a finding and removes none. Nothing is ever added here.

_LEVELS = "emerg,alert,crit,err,warn,notice,info"
# command -> the question of now
ASKED: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("dmesg", "--kernel"): (builtin.KMSG, "disks"),
    ("dmesg", "--facility=kern"): (builtin.KMSG, "hangs"),
    ("dmesg", "--facility=kern", f"--level={_LEVELS}"): (builtin.KMSG, "faults"),
    ("dmesg", "--facility=kern", f"--level={_LEVELS},debug"): (builtin.KMSG, "traces"),
    ("dmesg", "--facility=kern", "--level=debug,info,notice,warn,err,crit,alert,emerg"): (builtin.KMSG, "buses"),
}
FIRST = b"dmesg\n"  # the line before such an answer, where a live one says which records it holds


def answers(commands: Mapping[tuple[str, ...], Capture]) -> dict[tuple[str, ...], Capture]:
    """What a recording holds, with what dmesg said as the answer to today's question, where that was not asked itself."""
    found = {ASKED[argv]: _answer(each) for argv, each in commands.items() if argv in ASKED}
    return {**found, **commands}


def _answer(said: Capture) -> Capture:
    if said.fault == "not installed":
        return said._replace(fault="dmesg was not installed")
    return said._replace(stdout=FIRST + said.stdout) if said.exit == 0 else said
