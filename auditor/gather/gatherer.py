"""Puts the questions of the sources to one host, as many at once as it takes, and keeps what came of each."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import cast

from auditor.data import platforms
from auditor.facts import HOST, Facts, Kind, Subject, Unknown, unknown
from auditor.gather import answer
from auditor.gather.answer import Answer, ByName
from auditor.gather.layers import covers, pool_of
from auditor.host.live import Host
from auditor.host.process import Workers
from auditor.host.request import Capture, Files, Read, Run, Skip
from auditor.sources.source import Per, Source

# how many were answered, how many asked, what has been waited for longest, and for how many seconds
Progress = Callable[[int, int, str, float], None]


class Gatherer:
    """Asks one host. sources: the first that gives a fact counts. answers: by source and subject, in no order;
    :meth:`settle` stores them in that of the sources and subjects."""

    def __init__(self, host: Host, sources: Mapping[str, Source], progress: Progress | None = None) -> None:
        self.host = host
        self.sources = sources
        self.withheld: Mapping[str, str] = {}  # program -> why it must not run here
        self._order = {name: number for number, name in enumerate(sources)}
        self.progress = progress
        self.platform = platforms.ANY  # in whose words remedies are
        self.answers: dict[tuple[str, Subject], Answer] = {}
        self._asked = self._done = 0
        self._questions: dict[tuple[str, Subject], Run | Read] = {}  # whose answers are not stored yet
        self._workers: Workers[tuple[str, Subject], Capture | Files] = Workers(host.at_once)
        self._told: dict[tuple[str, Subject], Answer] = {}  # and not stored yet
        # that nobody has answered yet, in the order in which they were asked: when that was
        self._open: dict[tuple[str, Subject], float] = {}
        # of those that are asked again of less at a time: how far that is, and what is asked next
        self._again: dict[tuple[str, Subject], tuple[answer.ByName, Generator[Run, Capture, Capture]]] = {}
        self._datasets: dict[Subject, int] = {}  # below a target, as far as they are listed

    def ask(self, name: str, subjects: Iterable[Subject], facts: Facts) -> None:
        """Put one source's question for each subject; does not wait."""
        for subject in subjects:
            key = (name, subject)
            if key not in self._questions and key not in self.answers:
                request = self.sources[name].request(subject, facts)
                if isinstance(request, Run) and (why := self.withheld.get(request.argv[0])):
                    request = Skip(why)
                if isinstance(request, Skip):
                    self.answers[key] = Answer(Facts(), unknown(request.reason, request.remedy), request.applies)
                else:
                    self._asked += 1
                    self._questions[key] = request
                    self._open[key] = time.monotonic()
                    self._put(key, request)

    def settle(self, facts: Facts, names: Sequence[str] | None = None) -> None:
        """Wait for the answers of these sources (all, when None) and store them; the first that gives a fact counts."""
        wanted = (key for key in self._questions if names is None or key[0] in names)
        keys = sorted(wanted, key=lambda key: (self._order[key[0]], key[1]))
        for key in keys:
            while key not in self._told:
                self._take(*self._workers.ended(self._tell))
            answer = self._told.pop(key)
            del self._questions[key]
            facts.merge(answer.facts, adds=self.sources[key[0]].adds)
            self.answers[key] = answer._replace(facts=Facts())

    def close(self) -> None:
        """Put no more questions to the host."""
        self._workers.abandon()

    @property
    def unasked(self) -> tuple[str, ...]:
        """The questions, or parts of them, that a recording does not know."""
        return tuple(sorted({answer.unasked for answer in self.answers.values() if answer.unasked}))

    def failure(self, name: str, subject: Subject) -> Unknown | None:
        answer = self.answers.get((name, subject))
        return answer.failure if answer else None

    def in_part(self, name: str, subject: Subject) -> bool:
        """Whether a question was not answered to the end."""
        answer = self.answers.get((name, subject))
        return answer is not None and answer.part

    def _answer(self, request: Run | Read) -> Capture | Files:
        return self.host.run(request) if isinstance(request, Run) else self.host.read(request)

    def _put(self, key: tuple[str, Subject], request: Run | Read) -> None:
        if self.host.at_once > 1:
            self._workers.start(key, partial(self._answer, request))
        else:
            self._take(key, self._answer(request))

    def _take(self, key: tuple[str, Subject], reply: Capture | Files) -> None:
        """An answer, or a step to one: behind all that was asked meanwhile the next is put."""
        while isinstance(then := self._next(key, reply), Run):
            if self.host.at_once > 1:
                self._workers.start(key, partial(self._answer, then))
                return
            reply = self._answer(then)
        self._hear(key, then)

    def _next(self, key: tuple[str, Subject], reply: Capture | Files) -> Run | Capture | Files:
        """What is to be asked before the question is answered, or its answer."""
        request = self._questions[key]
        try:
            if key in self._again and isinstance(reply, Capture):
                return self._again[key][1].send(reply)
            if isinstance(request, Run) and isinstance(reply, Capture) and answer.asks_again(request, reply):
                again = answer.ByName(request, reply)
                self._again[key] = (again, steps := again.steps())
                return next(steps)
        except StopIteration as answered:
            del self._again[key]
            whole: Capture = answered.value
            return whole
        return reply

    def _hear(self, key: tuple[str, Subject], reply: Capture | Files) -> None:
        name, subject = key
        told = answer.answer_of(self.sources[name], subject, self._questions[key], reply, self.host)
        self._told[key] = told._replace(failure=told.failure and of_platform(told.failure, self.platform))
        self._done += 1
        del self._open[key]
        if name == "zfs_list":
            self._datasets[subject] = sum(1 for _ in told.facts.subjects("dataset"))
        self._tell()

    def _tell(self) -> None:
        if not self.progress:
            return
        key, began = next(iter(self._open.items()), (("", HOST), 0.0))
        if not key[0]:
            self.progress(self._done, self._asked, "", 0.0)
            return
        again = self._again[key][0] if key in self._again else None
        what = question_text(
            self.sources[key[0]].title, self._questions[key], key[1], self._datasets.get(key[1], 0), again
        )
        self.progress(self._done, self._asked, what, time.monotonic() - began)


def of(sources: Mapping[str, Source], per: str) -> list[str]:
    """Names of the sources that are asked per this kind of subject."""
    return [name for name, source in sources.items() if per == source.per]


def of_platform(failure: Unknown, platform: str) -> Unknown:
    """The same, with what is not installed in words of a platform."""
    if not any("apt install " in each.remedy for each in failure.reasons):
        return failure
    return Unknown(tuple(each._replace(remedy=platforms.installed(each.remedy, platform)) for each in failure.reasons))


def question_text(title: str, request: Run | Read, subject: Subject, datasets: int, again: ByName | None) -> str:
    """``properties of 2,000 datasets of tank (zfs get)``. title: of the source, else the command or the file. datasets: of
    the target, 0 where not counted. again: where they are asked about some at a time."""
    if isinstance(request, Read):
        source = f"{request.patterns[0]} and others" if len(request.patterns) > 1 else request.patterns[0]
    else:
        source = " ".join(word for word in request.argv[:2] if not word.startswith("-"))
    if not title:
        return source if isinstance(request, Read) else " ".join(map(shlex.quote, request.argv[:6]))
    many = f"{datasets:,} datasets" if datasets > 1 else "the datasets"
    if again and again.put:
        many = f"{again.put:,} of {again.of:,} datasets" if again.of else many
    said = title.replace("{datasets}", many)
    return f"{said} ({source})" if subject == HOST else f"{said} {subject.name} ({source})"


def fill(gatherer: Gatherer, facts: Facts) -> None:
    """Every missing fact becomes Unknown, with the reason of the first of its sources that applies to the subject."""
    roots: dict[Subject, dict[Subject, None]] = {}  # by pool: of many pools no dataset is compared with all roots
    for name, subject in gatherer.answers:
        if gatherer.sources[name].per == "target":
            roots.setdefault(pool_of(subject), {})[subject] = None
    alone = {subject for name, subject in gatherer.answers if gatherer.sources[name].per == "dataset"}
    for of_kind, names_of in _sources(tuple(gatherer.sources.items())).items():
        pers = dict.fromkeys(gatherer.sources[name].per for name in names_of)
        known: dict[tuple[Subject, ...], dict[str, Unknown]] = {}  # of all datasets below one root alike
        for subject in [HOST] if of_kind == "host" else list(facts.subjects(of_kind)):
            asked = {  # datasets that were not asked about are alike
                per: HOST if per == "dataset" and subject not in alone else _asked(per, subject, roots) for per in pers
            }
            if (reasons := known.get(key := tuple(asked.values()))) is None:
                reasons = known[key] = _reasons(gatherer, names_of, asked)
            present = facts.of(subject)
            facts.put_of(subject, {fact: why for fact, why in reasons.items() if fact not in present})


@cache
def _sources(sources: tuple[tuple[str, Source], ...]) -> Mapping[Kind, Mapping[str, list[str]]]:
    """Kind -> source -> the facts of this kind that it can give."""
    found: dict[Kind, dict[str, list[str]]] = {}
    for name, source in sources:
        for fact in source.facts:
            kind, _, bare = fact.rpartition(".")
            found.setdefault(cast(Kind, kind or source.subject), {}).setdefault(name, []).append(bare)
    return found


def _reasons(gatherer: Gatherer, names_of: Mapping[str, list[str]], asked: Mapping[Per, Subject]) -> dict[str, Unknown]:
    """Fact -> why it is not known, by the first of the sources that apply. asked: by what a question is about."""
    found = []
    for name, names in names_of.items():
        answer = gatherer.answers.get((name, asked[gatherer.sources[name].per]))
        why = (answer.failure if answer else None) or unknown(f"zaudit did not ask {name.replace('_', ' ')}")
        found.append((not (answer and answer.applies), why, names))
    reasons: dict[str, Unknown] = {}
    for _, why, facts in sorted(found, key=lambda each: each[0]):
        for fact in facts:
            reasons.setdefault(fact, why)
    return reasons


def _asked(per: Per, subject: Subject, roots: Mapping[Subject, Iterable[Subject]]) -> Subject:
    """The subject that a source was asked about to learn of this one."""
    match per:
        case "host":
            return HOST
        case "pool":
            return pool_of(subject)
        case "target":
            mine = roots.get(pool_of(subject), ())
            inside = (root for root in mine if covers(root, subject) or covers(subject, root))
            return max(inside, key=lambda root: len(root.name), default=subject)
        case _:
            return subject
