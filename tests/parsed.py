"""What answers come to, where the same ones are looked at again and again."""

from __future__ import annotations

from collections.abc import Callable

from auditor.facts import Facts, Subject
from auditor.gather.answer import Answer
from auditor.host.live import Host
from auditor.host.request import Capture, Files, Read, Run
from auditor.sources.source import Source

AnswerOf = Callable[[Source, Subject, Run | Read, Capture | Files, Host], Answer]


class Parsed:
    """In place of ``answer.answer_of``: keeps what the first reply to a question came to, for whenever it is given again.
    That depends on nothing but the reply and on who asks (``gather/answer.py``)."""

    def __init__(self, original: AnswerOf) -> None:
        self._original = original
        self._kept: dict[tuple[str, Subject, Run | Read, int], tuple[Capture | Files, Answer]] = {}
        self.used = 0

    def __call__(
        self, source: Source, subject: Subject, request: Run | Read, reply: Capture | Files, host: Host
    ) -> Answer:
        key = (source.name, subject, request, host.euid)
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = (reply, self._original(source, subject, request, reply, host))
        if kept[0] != reply:
            return self._original(source, subject, request, reply, host)
        self.used += 1
        facts = Facts()
        facts.put_all(kept[1].facts)  # who stores them may change them
        return kept[1]._replace(facts=facts)
