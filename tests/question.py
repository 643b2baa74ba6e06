"""What sources ask, where a test knows whether that is a command or files."""

from __future__ import annotations

from auditor.facts import HOST, Facts, Subject
from auditor.host.request import Read, Run
from auditor.sources.source import Source


def run(source: Source, subject: Subject = HOST, facts: Facts | None = None) -> Run:
    request = source.request(subject, facts or Facts())
    assert isinstance(request, Run)
    return request


def patterns(source: Source, subject: Subject = HOST, facts: Facts | None = None) -> tuple[str, ...]:
    request = source.request(subject, facts or Facts())
    assert isinstance(request, Read)
    return request.patterns
