"""What is being asked, for somebody who waits for the answer."""

from __future__ import annotations

import shlex

from auditor.facts import HOST, Subject
from auditor.gather.by_name import ByName
from auditor.host.request import Read, Run


def of(title: str, request: Run | Read, subject: Subject, datasets: int, again: ByName | None) -> str:
    """``properties of 2,000 datasets of tank (zfs get)``. datasets: of the target, 0 where they are not counted. again: where
    they are asked about some at a time. title: of the source, else the command or the file is shown."""
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
