"""A source: one thing that is asked of a host, with all that zaudit knows of it.

The parser of an answer is a function; its decorator says the rest. A module has as many as belong together and lists them in
``SOURCES``; ``catalog.py`` lists the modules::

    @source("block_scheduler", "host", ask=Read(("/sys/block/*/queue/scheduler",)), facts={...})
    def scheduler(reply: Files, host: Subject) -> Iterator[Fact]:
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from auditor.facts import Fact, Facts, Kind, Spec, Subject
from auditor.host.request import NOTHING, Read, Request, Run

Per = Literal["host", "pool", "disk", "database", "target"]
Ask = Callable[[Subject, Facts], Request]
Parse = Callable[[Any, Subject], Iterable[Fact]]
Form = Literal["text", "json", "line"]


@dataclass(frozen=True, eq=False)
class Source:
    """name: under which its answers and their pairs (``fixtures/commands``) are found.
    per: the kind of subject that one question is about; a target is a dataset with all below it.
    subject: the kind that its facts are about, where their names do not say it (``leaf.path``).
    facts: name -> what it is, of every fact that it can yield.
    ask: the question, or what makes it for a subject, from the facts that are known by then; a :class:`Skip` says why not.
    parse: yields facts, or returns a store of them where they are hundreds of thousands; pure. It raises ValueError on an
    answer that it does not understand, and nothing else, whatever it is given (``gather`` calls any other exception a defect of
    zaudit). It never runs, catches or yields "unknown": what it leaves out becomes unknown in ``gather``, with a reason that
    names the command.
    after: sources whose word counts before that of this one, where both know a fact.
    form: "json" where an answer may be one long line of JSON, "line" where it is one long line of something else; else no line
    may be longer than 64 KiB (``gather/bounds.py``).
    part: an answer that is cut off anywhere is not wrong: what came before a time-out is parsed, too.
    adds: False where an answer may name subjects that are not there: only facts of those that others found are taken.
    words: word of the question -> fact, where a fact is not called as the property or column that it comes from.
    title: what it asks for, in the words of somebody who waits for it; else the command or the file is shown.
    """

    name: str
    per: Per
    subject: Kind
    facts: Mapping[str, Spec]
    ask: Request | Ask
    parse: Parse
    after: tuple[str, ...]
    form: Form
    part: bool
    adds: bool
    words: Mapping[str, str]
    title: str

    def request(self, subject: Subject, facts: Facts) -> Request:
        """What to ask about a subject."""
        return self.ask(subject, facts) if callable(self.ask) else self.ask


def source(
    name: str,
    per: Per,
    *,
    ask: Run | Read | Ask,
    facts: Mapping[str, Spec],
    subject: Kind | None = None,
    after: tuple[str, ...] = (),
    form: Form = "text",
    part: bool = False,
    adds: bool = True,
    words: Mapping[str, str] = NOTHING,
    title: str = "",
) -> Callable[[Parse], Source]:
    """Makes a source of its parser. subject: that of the question where left out, of a target datasets."""
    about: Kind = subject or ("dataset" if per == "target" else per)
    return lambda parse: Source(name, per, about, facts, ask, parse, after, form, part, adds, words, title)
