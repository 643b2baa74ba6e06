"""Answers that lost something and look whole: a line, a key, the rest after a line; or that are for another subject.

Deterministic: of many lines and keys some are taken, evenly spread.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from auditor.host.request import Capture, Files
from auditor.selftest.faults import Fault, as_bytes, of_text

# One look only, and no end mark: of a line that is lost from these nothing else tells. The kernel forgets its log; the others
# are files that people write, which end where they end.
ONE_LOOK = frozenset(
    {
        *("kernel_log", "modprobe", "samba_conf", "nfs_exports", "trim_timers"),
        *("database_process", "database_includes", "database_settings", "database_sql"),
    }
)
TEMPORARY = of_text(
    "temporary readonly", lambda text: text.replace(b"\treadonly\toff\tdefault\n", b"\treadonly\ton\ttemporary\n")
)


def of_answers(answers: Sequence[Capture | Files], most: int) -> Iterator[Fault]:
    """Losses of one collector's answers: at most so many lines gone, cuts after a line, and keys gone."""
    texts = [text for answer in answers for text in _texts(answer)]
    lines = max((text.count(b"\n") for text in texts), default=0)
    for at in _spread(lines, most):
        yield of_text(f"line {at + 1} lost", lambda text, at=at: _without_line(text, at))  # type: ignore[misc]
        yield of_text(f"cut after line {at}", lambda text, at=at: b"".join(text.splitlines(True)[:at]))  # type: ignore[misc]
    keys = max((len(list(_places(_document(text)))) for text in texts), default=0)
    for at in _spread(keys, most):
        yield of_text(f"key {at + 1} lost", lambda text, at=at: _without_key(text, at))  # type: ignore[misc]


def of_another(answer: Capture) -> Fault:
    """The answer of another subject, whole."""
    return Fault("an answer for another", lambda _: answer, lambda files: files)


def _texts(answer: Capture | Files) -> list[bytes]:
    return [answer.stdout] if isinstance(answer, Capture) else list(map(as_bytes, answer.text.values()))


def _spread(count: int, most: int) -> list[int]:
    return sorted({(2 * i + 1) * count // (2 * most) for i in range(most)}) if count > most else list(range(count))


def _without_line(text: bytes, at: int) -> bytes:
    lines = text.splitlines(True)
    return b"".join(lines[:at] + lines[at + 1 :])


def _document(text: bytes) -> Any:
    if text.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """(what holds it, its key) of everything in a document, those that are lists or objects first: rows and sections."""
    inner = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    for key, value in inner:
        if isinstance(value, dict | list):
            yield node, key
            yield from _places(value)


def _without_key(text: bytes, at: int) -> bytes:
    document = _document(text)
    for i, (holder, key) in enumerate(_places(document)):
        if i == at:
            del holder[key]
            return json.dumps(document).encode() + b"\n"
    return text
