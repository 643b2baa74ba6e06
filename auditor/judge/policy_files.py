"""A policy of several files, /etc/zaudit/zaudit.toml and /etc/zaudit/conf.d/*.toml: one text, which a recording keeps as it
keeps that of one file. A line before each says which file begins::

    #= file: /etc/zaudit/conf.d/10-storage.toml

No file outranks another: what two of them decide is an error that names both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from auditor.judge import policy_file
from auditor.judge.policy import FILE, Policy, PolicyError

FOLDER = "/etc/zaudit/conf.d"
HOME = "/etc/zaudit"  # what a policy of several files is called


def joined(files: Sequence[tuple[str, str]]) -> str:
    """One text of (path, text) of each. Raises PolicyError for a text that looks like more files than one."""
    for path, text in files:
        if any(line.startswith(FILE) for line in text.split("\n")):
            raise PolicyError(f"{path}: a line that begins with {FILE.strip()!r}")
    return "".join(f"{FILE}{path}\n{text.rstrip(chr(10))}\n" for path, text in files)


def parse(text: str, path: str) -> Policy:
    """A policy from the text of one file, or of several. Raises PolicyError with path, line and cause."""
    if not text.startswith(FILE):
        return policy_file.parse(text, path)
    found = [_moved(policy_file.parse(part, name), above) for name, above, part in _parts(text)]
    whole = Policy(path=path, text=text)
    return whole._replace(
        datasets=_one(whole, "dataset", [(each.dataset, each.line, each) for one in found for each in one.datasets]),
        rules=dict(_one(whole, "rule", [(id, of[1], (id, of)) for one in found for id, of in one.rules.items()])),
        thresholds=dict(
            _one(
                whole,
                "thresholds of",
                [
                    (id, min(each.line for each in of.values()), (id, of))
                    for one in found
                    for id, of in one.thresholds.items()
                ],
            )
        ),
        waivers=_one(whole, "waiver", [(each.title, each.line, each) for one in found for each in one.waivers]),
        answers=_one(whole, "answer", [(each.title, each.line, each) for one in found for each in one.answers]),
    )


def _parts(text: str) -> Iterator[tuple[str, int, str]]:
    """(path, lines above its first, text) of each file."""
    lines = text.split("\n")
    heads = [number for number, line in enumerate(lines) if line.startswith(FILE)]
    for head, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        yield lines[head].removeprefix(FILE), head + 1, "\n".join(lines[head + 1 : end])


def _moved(policy: Policy, above: int) -> Policy:
    """The same, its lines counted in the whole text; what shows a line still names its own file."""
    return policy._replace(
        datasets=tuple(each._replace(line=each.line + above) for each in policy.datasets),
        rules={id: (setting, line + above) for id, (setting, line) in policy.rules.items()},
        thresholds={
            id: {name: each._replace(line=each.line + above) for name, each in of.items()}
            for id, of in policy.thresholds.items()
        },
        waivers=tuple(each._replace(line=each.line + above) for each in policy.waivers),
        answers=tuple(each._replace(line=each.line + above) for each in policy.answers),
    )


def _one(whole: Policy, what: str, entries: Sequence[tuple[str, int, Any]]) -> tuple[Any, ...]:
    """The entries, of which no two may be about the same. Raises PolicyError."""
    first: dict[str, int] = {}
    for name, line, _ in entries:
        if name in first:
            raise PolicyError(f"{whole.where(line)}: {what} {name} is also decided in {whole.where(first[name])}")
        first[name] = line
    return tuple(entry for _, _, entry in entries)
