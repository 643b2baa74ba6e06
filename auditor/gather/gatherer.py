"""Puts the questions of the collectors to one host, as many at once as it takes, and keeps what came of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import ModuleType

from auditor.data import platforms
from auditor.facts import HOST, Facts, Reason, Subject, Unknown, unknown
from auditor.gather import answer
from auditor.gather.answer import Answer
from auditor.host.live import Host
from auditor.host.request import Capture, Files, Read, Request, Run, Skip
from auditor.host.running import Workers

Progress = Callable[[int, int, str], None]  # how many were answered, how many asked, what is waited for


class Gatherer:
    """Asks one host. collectors: those first whose word counts. answers: by collector and subject, in no order;
    :meth:`settle` stores them in that of the collectors and subjects."""

    def __init__(self, host: Host, collectors: Mapping[str, ModuleType], progress: Progress | None = None) -> None:
        self.host = host
        self.collectors = collectors
        self.withheld: Mapping[str, str] = {}  # program -> why it must not run here
        self._order = {name: number for number, name in enumerate(collectors)}
        self.progress: Progress = progress or (lambda done, total, what: None)
        self.platform = platforms.ANY  # in whose words remedies are
        self.answers: dict[tuple[str, Subject], Answer] = {}
        self._asked = self._done = 0
        self._questions: dict[tuple[str, Subject], Run | Read] = {}  # whose answers are not stored yet
        self._workers: Workers[tuple[str, Subject], Capture | Files] = Workers(host.at_once)
        self._told: dict[tuple[str, Subject], Answer] = {}  # and not stored yet
        self._open: dict[
            tuple[str, Subject], None
        ] = {}  # that nobody has answered yet, in the order in which they were asked

    def ask(self, name: str, subjects: Iterable[Subject], facts: Facts) -> None:
        """Put one collector's question for each subject; does not wait."""
        for subject in subjects:
            key = (name, subject)
            if key not in self._questions and key not in self.answers:
                request = self._allowed(self.collectors[name].request(subject, facts))
                if isinstance(request, Skip):
                    self.answers[key] = Answer(Facts(), unknown(request.reason, request.remedy), request.applies)
                else:
                    self._asked += 1
                    self._questions[key] = request
                    self._open[key] = None
                    if self.host.at_once > 1:
                        self._workers.start(key, partial(self._answer, request))
                    else:
                        self._hear(key, self._answer(request))

    def withhold(self, programs: Iterable[str], why: str) -> None:
        """Run none of these programs from now on, for this reason."""
        self.withheld = dict.fromkeys(programs, why)

    def _allowed(self, request: Request) -> Request:
        why = self.withheld.get(request.argv[0]) if isinstance(request, Run) else None
        return Skip(why) if why else request

    def settle(self, facts: Facts, names: Sequence[str] | None = None) -> None:
        """Wait for the answers of these collectors (all, when None) and store them by collector and subject: the first that
        knows a fact is the one that counts."""
        wanted = (key for key in self._questions if names is None or key[0] in names)
        keys = sorted(wanted, key=lambda key: (self._order[key[0]], key[1]))
        while not all(key in self._told for key in keys):
            self._hear(*self._workers.ended())
        for key in keys:
            answer = self._told.pop(key)
            del self._questions[key]
            facts.merge(answer.facts)
            self.answers[key] = answer._replace(facts=Facts())

    def close(self) -> None:
        """Put no more questions to the host."""
        self._workers.abandon()

    @property
    def unasked(self) -> tuple[str, ...]:
        """The questions, or parts of them, that a recording does not know."""
        return tuple(sorted({answer.unasked for answer in self.answers.values() if answer.unasked}))

    def failure(self, name: str, subject: Subject) -> Unknown | None:
        """Why a question failed, if it did."""
        answer = self.answers.get((name, subject))
        return answer.failure if answer else None

    def in_part(self, name: str, subject: Subject) -> bool:
        """Whether a question was not answered to the end."""
        answer = self.answers.get((name, subject))
        return answer is not None and answer.part

    def _answer(self, request: Run | Read) -> Capture | Files:
        return self.host.run(request) if isinstance(request, Run) else self.host.read(request)

    def _hear(self, key: tuple[str, Subject], reply: Capture | Files) -> None:
        name, subject = key
        told = answer.answer_of(self.collectors[name], subject, self._questions[key], reply, self.host)
        self._told[key] = told._replace(failure=told.failure and in_words(told.failure, self.platform))
        self._done += 1
        del self._open[key]
        self.progress(self._done, self._asked, self._waiting())

    def _waiting(self) -> str:
        """What is waited for longest, in words."""
        name, subject = next(iter(self._open), ("", HOST))
        of_what = "" if subject == HOST else f" of {subject.name}"
        return f"waiting for {name.replace('_', ' ')}{of_what}" if name else ""


def of(collectors: Mapping[str, ModuleType], per: str) -> list[str]:
    """Names of the collectors that are asked per this kind of subject."""
    return [name for name, module in collectors.items() if per == module.PER]


def in_words(failure: Unknown, platform: str) -> Unknown:
    """The same, with what is not installed in words of a platform."""
    if not any("apt install " in each.remedy for each in failure.reasons):
        return failure
    return Unknown(tuple(Reason(each.text, platforms.installed(each.remedy, platform)) for each in failure.reasons))
