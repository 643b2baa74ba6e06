"""What one answer yields: facts, and a reason for each that it does not give. Failures become Unknown(reason) here and in
:func:`auditor.gather.gatherer.fill`, nowhere else."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import NamedTuple, cast

from auditor.facts import AGAIN, HOST, ROOT, Fact, Facts, Kind, Reason, Subject, Unknown, unknown
from auditor.host import builtin, sql
from auditor.host.live import Host
from auditor.host.request import UNASKED, Capture, Files, Output, Read, Reply, Run
from auditor.sources import zfs
from auditor.sources.source import Source
from auditor.text import harmless

DEFECT = "zaudit failed on this answer: "
REPORT_IT = "please report it"


class Answer(NamedTuple):
    """What came of one question: facts, and why others are unknown. unasked: the question, where a recording lacks it or a
    part of it. part: it gave no answer, or not all of it."""

    facts: Facts
    failure: Unknown | None = None
    applies: bool = True
    unasked: str = ""
    part: bool = False


def answer_of(source: Source, subject: Subject, request: Run | Read, reply: Capture | Files, host: Host) -> Answer:
    """Parse what came, and turn whatever went wrong into a reason."""
    said: Reply
    match request, reply:
        case Run(), Capture() as capture:
            text = command_line(request.argv)
            older = f"{text} ({', '.join(capture.lacks)})" if capture.lacks else ""
            if capture.fault == UNASKED:
                return Answer(Facts(), Unknown((unasked_reason(text),)), unasked=text)
            if fault := fault_of(request, capture, text, host.euid):
                return Answer(_of_a_part(source, subject, capture, text), Unknown((fault,)), part=True)
            assert capture.exit is not None
            said = Output(
                decode(capture.stdout), text, capture.exit, decode(capture.stderr), capture.lacks, capture.columns
            )
            missing = unknown(f"{text}: does not report it", root_if(host, said.stderr))
            facts = {name.rpartition(".")[2] for name in source.facts}
            if any(
                source.words.get(each, each) not in facts for each in capture.lacks
            ):  # more than properties and columns
                missing = Unknown((unasked_reason(older),))
        case Read(), Files() as said:
            text = request.patterns[0]
            lost = tuple(f"{text} ({each})" for each in said.unkept if _concerns(each, subject))
            missing = unread_reasons(said._replace(unkept=lost), text, host)
            older = ", ".join(map(harmless, (*said.unasked(), *lost)[:1]))
            if older and not (said.text or said.links or said.devices):
                return Answer(Facts(), missing, unasked=older)
        case _:
            raise TypeError(f"{reply} is no answer to {request}")
    if too_much := over(said, source.form):
        return Answer(Facts(), unknown(f"{text}: {too_much}"))
    try:
        found = _parsed(source, said, subject)
        found.put_all(list(_lacking(source, found, getattr(said, "lacks", ()), older)))
        return Answer(found, missing, unasked=older)
    except ValueError as error:  # what a parser says of an answer that it does not understand
        if older:  # it was understood by those who asked for less
            return Answer(Facts(), Unknown((unasked_reason(older),)), unasked=older)
        why = harmless(str(error) or type(error).__name__)[:200]
        remedy = missing.reasons[0].remedy or root_if(host, why)
        whole = f"{text}: {why if remedy else f'output not understood: {why}'}"
        return Answer(Facts(), Unknown((Reason(whole, remedy, lost=True),)))
    except Exception as error:  # a mistake of ours, which must not end the audit of all the rest
        why = harmless(f"{type(error).__name__}: {error}")[:200]
        return Answer(Facts(), unknown(f"{text}: {DEFECT}{why}", REPORT_IT))


def _concerns(word: str, subject: Subject) -> bool:
    """Whether a word of an allow-list has to do with it: a name of servers with the host, settings with a server."""
    return word.endswith("()") if subject == HOST else word.startswith((f"{subject.name.partition(' ')[0]} ", "$"))


def _of_a_part(source: Source, subject: Subject, capture: Capture, text: str) -> Facts:
    """What a command said before it was given up, where its parser leaves out what is cut off."""
    if not (capture.fault and capture.stdout and source.part):
        return Facts()
    said = Output(decode(capture.stdout), text, 0, "", capture.lacks, capture.columns)
    if over(said, source.form):
        return Facts()
    try:
        return _parsed(source, said, subject)
    except ValueError:  # not even its beginning is an answer
        return Facts()


def _parsed(source: Source, said: Reply, subject: Subject) -> Facts:
    found = source.parse(said, subject)
    if isinstance(found, Facts):
        return found
    store = Facts()
    store.put_all(found)
    return store


def _lacking(source: Source, found: Facts, lacks: Sequence[str], older: str) -> Iterator[Fact]:
    """The facts that an older question did not ask for, of all that its answer is about."""
    names = {source.words.get(word, word) for word in lacks}
    why = Unknown((unasked_reason(older),))
    for fact in source.facts if names else ():
        kind, _, bare = fact.rpartition(".")
        if bare in names:
            yield from (Fact(each, bare, why) for each in list(found.subjects(cast(Kind, kind or source.subject))))


# -- reasons: why there is no answer ----------------------------------------------------------------------------------

_LACKS = re.compile(r"ModuleNotFoundError: No module named '(\w+)'")
_DENIED = re.compile(r"permission denied|operation not permitted|must be (run as )?root|superuser|EACCES|EPERM", re.I)
# of an error: it will be the same tomorrow. (sd_booted(3); errno(3) ENOTTY, EOPNOTSUPP, ENOENT; getopt(3))
_STABLE = re.compile(
    r"not been booted with systemd|inappropriate ioctl|not supported|unsupported|no such file"
    r"|(unrecognized|invalid|unknown) option",
    re.I,
)


def command_line(argv: Sequence[str]) -> str:
    """A command as a user would type it; a program and a long list of properties are not spelt out."""
    if argv[0] == sql.NAME and len(argv) == 3:
        return harmless(f"--db {argv[1]}={argv[2]}")
    if argv[0] == builtin.LZC_NAME:
        return harmless(f"zfs program -n {' '.join(map(shlex.quote, argv[1:3]))} ...")
    if argv[0] == builtin.KMSG:
        return f"{builtin.KMSG_PATH} ({argv[1]})"
    short = (",".join(word.split(",")[:2]) + ",..." if word.count(",") > 3 else shlex.quote(word) for word in argv)
    return harmless(" ".join(short))


def decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def root_if(host: Host, stderr: str) -> str:
    """The remedy of an error message that asks for more rights."""
    return ROOT if host.euid != 0 and _DENIED.search(stderr) else ""


def fault_of(request: Run, capture: Capture, text: str, euid: int) -> Reason | None:
    """Why a command gave no answer, or None when it did."""
    if capture.fault == "not installed":
        return Reason(
            f"{request.argv[0]} is not installed", f"apt install {request.package}" if request.package else ""
        )
    if capture.fault == UNASKED:
        return unasked_reason(text)
    if capture.fault:
        return Reason(f"{text}: {capture.fault}", _longer(capture.fault), lost=True)
    if capture.exit is not None and capture.exit in request.accept:
        return None
    if lacks := _LACKS.search(decode(capture.stderr)):
        ways = [f"pip install 'zaudit[{request.extra}]'"] if request.extra else []
        ways += [f"apt install {request.package}"] if request.package else []
        return Reason(f"{text}: Python's {lacks[1]} is not installed", " or ".join(ways))
    said = [line.strip() for line in decode(capture.stderr + b"\n" + capture.stdout).splitlines()]
    # nvme-cli 2 puts its error into {"error": ...} and may print its usage before it: the line that says why comes first
    said = [line for line in said if line.strip("{}[],")]
    said.sort(key=lambda line: not _DENIED.search(line))
    why = harmless(said[0])[:200] if said else f"exit code {capture.exit}"
    if capture.exit is not None and capture.exit < 0:
        why = f"killed by signal {-capture.exit} ({why})"
    needs_root = euid != 0 and (_DENIED.search(decode(capture.stderr + capture.stdout)) or (capture.exit or 0) < 0)
    return Reason(f"{text}: {why}", ROOT if needs_root else "", lost=not _STABLE.search(why))


def _longer(fault: str) -> str:
    """The option that gives an answer more time, where it did not come in time."""
    return "--deadline" if "the deadline of" in fault else "--timeout" if fault.startswith("no answer") else ""


def unasked_reason(text: str) -> Reason:
    """Of a question that the zaudit which made the recording did not know."""
    return Reason(f"{text}: {UNASKED}", AGAIN)


def unread_reasons(files: Files, text: str, host: Host) -> Unknown:
    """Why a fact is missing after files were read: what could not be read, else that they do not say it."""
    older = tuple(unasked_reason(harmless(each)) for each in (*files.unasked(), *files.unkept)[:1])
    trouble = {path: error for path, error in files.errors.items() if error not in ("no such file", UNASKED)}
    absent = {path: error for path, error in files.errors.items() if "*" not in path and not older}
    reasons = tuple(
        Reason(
            f"{harmless(path)}: {error}",
            ROOT if host.euid != 0 and _DENIED.search(error) else _longer(error),
            lost=not _STABLE.search(error),
        )
        for path, error in sorted((trouble or absent).items())[:3]
    )
    return Unknown((*older, *reasons)) if older or reasons else unknown(f"{text}: does not say")


# -- bounds: how much one answer may be -------------------------------------------------------------------------------

MIB = 1 << 20
BYTES = 128 * MIB  # of one answer, all its files together: zfs get of 100,000 datasets has less
FILES = 200_000  # and links, and reasons why there is none: an objset kstat for each dataset
LINES = 4_000_000
LINE = 1 << 16  # characters; the longest that is honest is a mount of many layers, with 4 KiB
ONE_LINE = 4 * MIB  # characters, where a command puts all on one line: of 4,000 multipath disks less than 1 MiB
JSON = 16 * MIB  # characters of JSON, which may all stand on one line; 2,000 disks of zpool status -j have 2 MiB
DEPTH = 64  # of JSON: smartctl nests 8
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)


def over(said: Reply, form: str) -> str:
    """Which bound an answer is over, in words; empty for one that may be parsed. form: "text", "json" or "line"."""
    if isinstance(said, Output):
        texts = [said.text, said.stderr]
    else:
        texts = list(said.text.values())
        names = len(said.text) + len(said.links) + len(said.errors)
        if names > FILES:
            return f"{names} files, and zaudit reads {FILES} at most"
    size = sum(map(len, texts))
    if size > BYTES:
        return f"{size >> 20} MiB, and zaudit reads {BYTES >> 20} MiB at most"
    if sum(text.count("\n") for text in texts) > LINES:
        return f"more than {LINES} lines"
    return next(
        filter(None, (_of_json(each) if form == "json" and "{" in each else _of_lines(each, form) for each in texts)),
        "",
    )


def _of_lines(text: str, form: str) -> str:
    """A NUL ends a line as well: /proc/PID/cmdline has no other."""
    longest = ONE_LINE if form == "line" else LINE
    if "\0" in text:
        text = text.replace("\0", "\n")
    at = 0
    while len(text) - at > longest:
        end = text.rfind("\n", at, at + longest + 1)
        if end < 0:
            return f"a line of more than {longest >> 10} KiB"
        at = end + 1
    return ""


def _of_json(text: str) -> str:
    if len(text) > JSON:
        return f"{len(text) >> 20} MiB of JSON, and zaudit reads {JSON >> 20} MiB at most"
    depth = 0
    for found in _BRACKETS.finditer(text):
        mark = found[0]
        depth += (mark in "[{") - (mark in "]}")
        if depth > DEPTH:
            return f"JSON nested deeper than {DEPTH}"
    return ""


# ``zfs get`` that is asked again of some datasets by their names: of all where it was given up, and of those about which it
# contradicts itself.
#
# zfs opens all datasets below its argument before it prints the first row (OpenZFS cmd/zfs/zfs_iter.c zfs_for_each(), alike
# from 2.1 to 2.4): one that is given up has said nothing. With names and without -r it opens those alone. The dataset at
# the top comes first, which shows whether anything answers; then twice as many with each command, those nearest to the top
# first. So no more is lost at the end than what was answered. The answers alone decide which command comes next: a
# recording holds them all.
#
# A value that others choose may hold lines that look like rows of any dataset (:mod:`auditor.sources.zfs`). In the answer
# about one dataset they can only be its own. So contradicted datasets are asked about one by one, and one that contradicts
# itself even then is asked for the other properties. An answer that was given up counts for nothing: the lines that would
# contradict may be missing.

RECURSIVE = "-r"
COLUMNS = "-o"  # behind it stand the columns, the properties and the names
MOST = 128  # datasets of one command: 32 KiB of names, and a process for so many costs nothing
ALONE = 64  # datasets that are asked about one by one: a mount point of 4 KiB can name as many
LATE = "no answer"  # how the fault begins of a command that had its time
CONTRADICTED = ("the rows", "contradict each other")
SEVERAL = ("a value", "has several lines, which are taken for no rows")
BEFORE_DEADLINE = f"{LATE} before"


class ByName:
    """One question that is asked again. of: number of datasets, 0 while unknown; put: how many were asked about."""

    def __init__(self, request: Run, reply: Capture) -> None:
        self._request = request
        self._late = reply._replace(stdout=b"") if request.free_text and reply.fault else reply
        self._said: list[Capture] = []
        self._contradicted: dict[str, None] = {}
        self._several: dict[str, None] = {}
        self._why = ""
        self.of = self.put = 0

    def steps(self) -> Generator[Run, Capture, Capture]:
        """What to ask next, until it returns the answer: as if the question had been answered, where it was for all
        datasets; else why not, with what is known of the others."""
        if _late(self._request, self._late):
            reply = yield from self._in_groups()
        else:
            reply = self._believed(self._late, _named(self._request))
        return (yield from self._one_by_one(reply)) if self._contradicted else reply

    def _in_groups(self) -> Generator[Run, Capture, Capture]:
        target = self._request.argv[-1]
        first = yield self._about((target,))
        if first.fault or first.exit != 0:  # then nothing else will be answered
            return self._late
        self._heard(first, (target,))
        question = zfs.datasets.request(Subject("dataset", target), Facts())
        assert isinstance(question, Run)
        listed = yield question
        names = _names(listed, target)
        if names is None:
            self._why = f"the names of those below it: {harmless(listed.fault) or 'not understood'}"
            return self._answer()
        self.of = 1 + len(names)
        yield from self._all(names)
        return self._answer()

    def _all(self, names: Sequence[str]) -> Generator[Run, Capture, None]:
        at, many, most, silent = 0, 2, MOST, False
        while at < len(names):
            reply = yield self._about(some := tuple(names[at : at + many]))
            if _whole(reply):
                self._heard(reply, some)
                at, many, silent = at + len(some), min(2 * many, most), False
                continue
            over = not reply.fault.startswith(LATE) or reply.fault.startswith(BEFORE_DEADLINE)
            if many > 1 and not over:
                many = most = max(many // 4, 1)
                continue
            self._why = reply.fault or f"exit code {reply.exit}"
            if over or silent:  # one that is not answered is left out; after two in a row nothing would be
                return
            at, silent = at + 1, True

    def _one_by_one(self, reply: Capture) -> Generator[Run, Capture, Capture]:
        rows = [reply.stdout]
        for name in list(self._contradicted)[:ALONE]:
            own = yield self._about((name,))
            if own.fault:
                continue
            del self._contradicted[name]
            rows.append(self._believed(own, {name}.__contains__).stdout)  # nothing of one that is not there
            if name in self._contradicted and (rest := self._without_free_text()):
                other = yield self._about((name,), rest)
                rows.append(other.stdout if _whole(other) else b"")
        why = [
            f"{text[0]} of {_some(names)} {text[1]}"
            for names, text in ((self._contradicted, CONTRADICTED), (self._several, SEVERAL))
            if names
        ]
        return reply._replace(stdout=b"".join(rows), fault=reply.fault or "; ".join(why))

    def _about(self, names: Sequence[str], properties: str = "") -> Run:
        *words, all_properties = _words(self._request)
        kept = (word for word in words if word != RECURSIVE)
        return self._request._replace(argv=(*kept, properties or all_properties, *names), halved=False)

    def _without_free_text(self) -> str:
        """The other properties; empty where there is only the one that ends a dataset."""
        names = _words(self._request)[-1].split(",")
        others = [name for name in names if name not in zfs.FREE_TEXT]
        return ",".join(others) if len(others) > 1 else ""

    def _heard(self, reply: Capture, names: Sequence[str]) -> None:
        """zfs names each dataset that it could not open, as one that was destroyed meanwhile, and says the rest."""
        self._said.append(self._believed(reply, frozenset(names).__contains__))
        self.put += len(names)
        if reply.exit != 0:
            self._why = harmless(reply.stderr.decode("utf-8", "replace").strip().partition("\n")[0])[:200]

    def _believed(self, reply: Capture, named: Callable[[str], bool]) -> Capture:
        """The rows that nothing in it contradicts, without values of several lines: they could look like rows."""
        if not self._request.free_text:
            return reply
        every, contradicted = _records(reply, named)
        self._contradicted |= dict.fromkeys(sorted(contradicted))
        plain = {name: mine for name, mine in every.items() if name not in contradicted}
        several = {name: None for name, mine in plain.items() if any("\n" in row for _, row in mine)}
        self._several |= several
        rows = (f"{name}\t{row}\n" for name, mine in plain.items() for _, row in mine if "\n" not in row)
        return reply._replace(stdout="".join(rows).encode("utf-8", "surrogateescape"))

    def _answer(self) -> Capture:
        rows = b"".join(each.stdout for each in self._said)
        seconds = sum(each.seconds for each in (self._late, *self._said))
        if not self._why and self.put == self.of:
            return self._said[0]._replace(stdout=rows, seconds=seconds)
        of = f" of {self.of:,}" if self.of else ""
        fault = f"{self._late.fault}; by name {self.put:,}{of} were asked about: {self._why}"
        return self._late._replace(stdout=max(rows, self._late.stdout, key=len), seconds=seconds, fault=fault)


def asks_again(request: Run, reply: Capture) -> bool:
    """Whether a question is to be asked again so."""
    if not request.free_text:
        return _late(request, reply)
    return bool(reply.fault) or (reply.exit == 0 and bool(_records(reply, _named(request))[1]))


def _late(request: Run, reply: Capture) -> bool:
    """Whether it had its time, and there is more of it."""
    return request.halved and reply.fault.startswith(LATE) and not reply.fault.startswith(BEFORE_DEADLINE)


def _some(names: Iterable[str]) -> str:
    first, *more = map(harmless, names)
    return f"{first} and {len(more):,} more" if more else first


def _words(request: Run) -> tuple[str, ...]:
    """A question without the names of datasets."""
    return request.argv[: request.argv.index(COLUMNS) + 3]


def _named(request: Run) -> Callable[[str], bool]:
    names = request.argv[len(_words(request)) :]
    if RECURSIVE in request.argv:
        return lambda name: name == names[0] or name.startswith(names[0] + "/")
    return frozenset(names).__contains__


def _records(reply: Capture, named: Callable[[str], bool]) -> tuple[dict[str, list[tuple[str, str]]], set[str]]:
    """As zfs.records(); nothing of what is not understood."""
    try:
        return zfs.records(reply.stdout.decode("utf-8", "surrogateescape"), named)
    except ValueError:
        return {}, set()


def _whole(reply: Capture) -> bool:
    """Whether it ended by itself, with a record that is whole: with 1 where it could not open some (cmd/zfs/zfs_main.c)."""
    return not reply.fault and reply.exit in (0, 1) and reply.stdout[-1:] in (b"", b"\n")


def _names(listed: Capture, target: str) -> list[str] | None:
    """All below the target, those nearest to it first; None where they could not be listed."""
    if listed.fault or listed.exit != 0:
        return None
    said = Output(listed.stdout.decode("utf-8", "surrogateescape"), "")
    try:
        every = {fact.subject.name: None for fact in zfs.datasets.parse(said, Subject("dataset", target))}
    except ValueError:
        return None
    return sorted((name for name in every if name != target), key=lambda name: name.count("/"))
