"""What one answer yields: facts, and a reason for each that it does not give. Every failure becomes Unknown(reason) here
and where what is left is filled, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from auditor.facts import HOST, Fact, Facts, Kind, Reason, Subject, Unknown, unknown
from auditor.gather import bounds
from auditor.gather.reasons import command_line, decoded, fault_of, root_if, unasked, unread
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
    if too_much := bounds.over(said, source.form):
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
    if bounds.over(said, source.form):
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
