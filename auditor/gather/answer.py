"""What one answer yields: facts, and a reason for each that it does not give. Every failure becomes Unknown(reason) here
and where what is left is filled, and nowhere else."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from auditor.facts import AGAIN, HOST, ROOT, Fact, Facts, Kind, Reason, Subject, Unknown, unknown
from auditor.host import kmsg, libraries, sql
from auditor.host.live import Host
from auditor.host.request import UNASKED, Capture, Files, Output, Read, Reply, Run
from auditor.sources.source import Source
from auditor.text import harmless

DEFECT = "zaudit failed on this answer: "
REPORT_IT = "please report it"


class Answer(NamedTuple):
    """What came of one question: facts, and (beside or instead of them) why the rest is not known. unasked: the question,
    where a recording says nothing of it, or of a part of it. part: it gave no answer, or not all of it."""

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
                return Answer(Facts(), Unknown((unasked(text),)), unasked=text)
            if fault := fault_of(request, capture, text, host.euid):
                return Answer(_of_a_part(source, subject, capture, text), Unknown((fault,)), part=True)
            assert capture.exit is not None
            said = Output(
                decoded(capture.stdout), text, capture.exit, decoded(capture.stderr), capture.lacks, capture.columns
            )
            missing = unknown(f"{text}: does not report it", root_if(host, said.stderr))
            facts = {name.rpartition(".")[2] for name in source.facts}
            if any(_of_word(source, each) not in facts for each in capture.lacks):  # more than properties and columns
                missing = Unknown((unasked(older),))
        case Read(), Files() as said:
            text = request.patterns[0]
            lost = tuple(f"{text} ({each})" for each in said.unkept if _concerns(each, subject))
            missing = unread(said._replace(unkept=lost), text, host)
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
            return Answer(Facts(), Unknown((unasked(older),)), unasked=older)
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
    said = Output(decoded(capture.stdout), text, 0, "", capture.lacks, capture.columns)
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


def _of_word(source: Source, word: str) -> str:
    """What a property or column is called among the facts."""
    return source.words.get(word, word)


def _lacking(source: Source, found: Facts, lacks: Sequence[str], older: str) -> Iterator[Fact]:
    """The facts that an older question did not ask for, of all that its answer is about."""
    names = {_of_word(source, word) for word in lacks}
    why = Unknown((unasked(older),))
    for fact in source.facts if names else ():
        kind, _, bare = fact.rpartition(".")
        if bare in names:
            yield from (Fact(each, bare, why) for each in list(found.subjects(cast(Kind, kind or source.subject))))


# -- reasons: why there is no answer ----------------------------------------------------------------------------------
# Why there is no answer, in one sentence that names the command or the file, with the shortest remedy.

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
    if argv[0] == libraries.LZC_NAME:
        return harmless(f"zfs program -n {' '.join(map(shlex.quote, argv[1:3]))} ...")
    if argv[0] == kmsg.NAME:
        return f"{kmsg.PATH} ({argv[1]})"
    return harmless(" ".join(map(_short, argv)))


def _short(word: str) -> str:
    return ",".join(word.split(",")[:2]) + ",..." if word.count(",") > 3 else shlex.quote(word)


def decoded(data: bytes) -> str:
    """What a command printed."""
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
        return unasked(text)
    if capture.fault:
        return Reason(f"{text}: {capture.fault}", _longer(capture.fault), lost=True)
    if capture.exit is not None and capture.exit in request.accept:
        return None
    if lacks := _LACKS.search(decoded(capture.stderr)):
        ways = [f"pip install 'zaudit[{request.extra}]'"] if request.extra else []
        ways += [f"apt install {request.package}"] if request.package else []
        return Reason(f"{text}: Python's {lacks[1]} is not installed", " or ".join(ways))
    said = [line.strip() for line in decoded(capture.stderr + b"\n" + capture.stdout).splitlines()]
    # nvme-cli 2 puts its error into {"error": ...} and may print its usage before it: the line that says why comes first
    said = [line for line in said if line.strip("{}[],")]
    said.sort(key=lambda line: not _DENIED.search(line))
    why = harmless(said[0])[:200] if said else f"exit code {capture.exit}"
    if capture.exit is not None and capture.exit < 0:
        why = f"killed by signal {-capture.exit} ({why})"
    needs_root = euid != 0 and (_DENIED.search(decoded(capture.stderr + capture.stdout)) or (capture.exit or 0) < 0)
    return Reason(f"{text}: {why}", ROOT if needs_root else "", lost=not _STABLE.search(why))


def _longer(fault: str) -> str:
    """The option that gives an answer more time, where it did not come in time."""
    return "--deadline" if "the deadline of" in fault else "--timeout" if fault.startswith("no answer") else ""


def unasked(text: str) -> Reason:
    """Of a question that the zaudit which made the recording did not know."""
    return Reason(f"{text}: {UNASKED}", AGAIN)


def unread(files: Files, text: str, host: Host) -> Unknown:
    """Why a fact is missing after files were read: what could not be read, else that they do not say."""
    older = tuple(unasked(harmless(each)) for each in (*files.unasked(), *files.unkept)[:1])
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
# How much one answer may be, before anything parses it: from a live host and from a recording alike.

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
