"""What nobody asked of a host that is made of a recorded one is answered as by a healthy host: by the pair of the collector
that says ``"healthy": true``. So a new question needs no entry anywhere, and a host is made again only where it is to be seen.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

from auditor.facts import Facts, Subject
from auditor.gather.walk import LookOptions, gather
from auditor.host.request import UNASKED, Capture, Files, Output, Read, Request, Run
from auditor.recording.recording import Recording, ReplayHost
from auditor.sources import sources
from auditor.sources.source import Source
from tests import pairs


def answered(past: Recording) -> Recording:
    """The recording with an answer to every question that it does not know and that a healthy host has an answer to."""
    host = _Host(past)
    gather(host, past.targets, LookOptions(), host.sources)
    return replace(past, commands={**past.commands, **host.commands}, files={**past.files, **host.files})


def _noting(source: Source, asked: dict[Run | Read, tuple[str, Subject]]) -> Source:
    """The same source, which writes down what it asks."""

    def ask(subject: Subject, facts: Facts) -> Request:
        found = source.request(subject, facts)
        if isinstance(found, Run | Read):
            asked[found] = (source.name, subject)
        return found

    return replace(source, ask=ask)


class _Host(ReplayHost):
    """commands and files: the answers that were missing."""

    def __init__(self, past: Recording) -> None:
        super().__init__(past)
        self.commands: dict[tuple[str, ...], Capture] = {}
        self.files: dict[tuple[str, ...], Files] = {}
        self._asked: dict[Run | Read, tuple[str, Subject]] = {}
        self.sources = {name: _noting(each, self._asked) for name, each in sources().items()}
        self._recorded_run, self._recorded_read = self.run, self.read
        self.run, self.read = self._run, self._read

    def _run(self, request: Run) -> Capture:
        found = self._recorded_run(request)
        pair = self._pair(request) if found.fault == UNASKED else None
        if pair and isinstance(pair.reply, Output):
            out, err = (self._about(request, pair, each) for each in (pair.reply.text, pair.reply.stderr))
            found = Capture(pair.reply.exit, out, err, keep=request.keep)
            self.commands[request.argv] = found
        return found

    def _read(self, request: Read) -> Files:
        found = self._recorded_read(request)
        missing = [path for path, error in found.errors.items() if error == UNASKED]
        pair = self._pair(request) if missing else None
        if pair and isinstance(pair.reply, Files):
            text, links, errors = (
                {path: each for path, each in table.items() if any(fnmatchcase(path, one) for one in missing)}
                for table in (pair.reply.text, pair.reply.links, pair.reply.errors)
            )
            known = {path: error for path, error in found.errors.items() if error != UNASKED}
            found = found._replace(text={**found.text, **text}, links={**found.links, **links}, errors=known | errors)
            self.files[request.patterns] = found
        return found

    def _pair(self, request: Run | Read) -> pairs.Pair | None:
        name, _ = self._asked.get(request, ("", None))
        return next((pair for pair in pairs.of(name) if pair.expected.get("healthy")), None) if name else None

    def _about(self, request: Run, pair: pairs.Pair, text: str) -> bytes:
        """The answer of the pair, of this subject."""
        _, subject = self._asked[request]
        return text.replace(pair.expected["subject"][1], subject.name).encode("utf-8", "surrogateescape")
