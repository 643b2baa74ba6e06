"""What reads alike is told once: the verdicts of 10,000 datasets in a report for programs, and how they are read again.

A name stands once, in ``names`` of the report; verdicts that differ in nothing but their subject are one, whose ``names`` are
places in that list, as the kernel writes lists of processors: ``0-3,7``. Where there are several, ``{subject}`` in a text
stands for the name, and in a command for the name as a shell needs it. :func:`unfolded` also reads the first edition, in which
each subject has a verdict of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from auditor.text import quoted

SUBJECT = "{subject}"
MOST = 4_000_000  # verdicts of a report that is read
ROOM = 512 << 20  # characters of the names that are set into their texts: anybody can want a megabyte a million times
PART = 32  # characters for which a piece of evidence counts
Group = dict[str, Any]


class Names:
    """The names of a report, each once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def place(self, name: str) -> int:
        return self._places.setdefault(name, len(self._places))


def spelt(places: Iterable[int]) -> str:
    """0-3,7"""
    runs: list[list[int]] = []
    for each in sorted(places):
        if runs and runs[-1][1] == each - 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def places(text: str, count: int) -> Iterator[int]:
    """The other way round; raises ValueError for what is no place among so many."""
    for first, last in runs(text, count):
        yield from range(first, last + 1)


def runs(text: str, count: int) -> Iterator[tuple[int, int]]:
    """The first and last place of each run. Raises ValueError."""
    for run in text.split(","):
        first, dash, last = run.partition("-")
        if not text.isascii() or not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{text[:40]!r} is no list of names")
        end = int(last or first)
        if end >= count or int(first) > end:
            raise ValueError(f"{run[:40]!r} is none of {count} names")
        yield int(first), end


def folded(verdicts: Iterable[Mapping[str, Any]], names: Names) -> list[Group]:
    """Equal verdicts as one, in the order of the first of each. verdicts: with name, and {subject} for it."""
    groups: dict[object, tuple[Mapping[str, Any], list[str]]] = {}
    for each in verdicts:
        key = _frozen({name: value for name, value in each.items() if name != "name"})
        groups.setdefault(key, (each, []))[1].append(each["name"])
    return [_group(first, members, names) for first, members in groups.values()]


def _group(first: Mapping[str, Any], members: Sequence[str], names: Names) -> Group:
    rest = {key: value for key, value in first.items() if key not in ("kind", "name")}
    if len(members) == 1:  # nobody need set anything in
        rest = _spell(rest, members[0])
    return {"kind": first["kind"], "names": spelt(map(names.place, members)), **rest}


def _frozen(value: Any) -> object:
    if isinstance(value, Mapping):
        return tuple((key, _frozen(each)) for key, each in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _spell(verdict: Mapping[str, Any], name: str) -> dict[str, Any]:
    """With the name in place of {subject}."""
    return {key: _set_in(key, value, name, quoted(name)) for key, value in verdict.items()}


def _set_in(key: str, value: Any, name: str, in_shell: str) -> Any:
    match value:
        case str():
            return value.replace(SUBJECT, in_shell if key == "command" else name) if SUBJECT in value else value
        case list():
            return [{part: _set_in(part, text, name, in_shell) for part, text in each.items()} for each in value]
        case _:
            return value


def unfolded(document: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """(finding, a verdict of it) for each subject of what was found or is waived. Raises KeyError, TypeError, AttributeError or
    ValueError for what is no report."""
    names = document.get("names", [])
    told, room = 0, Room()
    for finding in (*document["findings"], *document.get("waived", ())):
        for verdict in spread(finding["verdicts"] if "verdicts" in finding else finding["subjects"], names, room):
            if (told := told + 1) > MOST:
                raise ValueError(f"more than {MOST:,} verdicts")
            yield finding, verdict


class Room:
    """How much may still be made of a report by telling apart what it tells once."""

    def __init__(self) -> None:
        self._left = ROOM

    def take(self, size: int) -> None:
        """Raises ValueError where there is not so much."""
        self._left -= size
        if self._left < 0:
            raise ValueError("a verdict of many subjects says more than a report does")


def spread(
    verdicts: Iterable[Mapping[str, Any]], names: Sequence[Any], room: Room | None = None
) -> Iterator[Mapping[str, Any]]:
    """A verdict for each subject, with its name; in the first edition they are so. Raises ValueError."""
    room = room or Room()
    for verdict in verdicts:
        if "names" not in verdict:
            yield verdict
            continue
        rest = {key: value for key, value in verdict.items() if key != "names"}
        parts = sum(len(value) for value in rest.values() if isinstance(value, list))
        marks = sum(map(_marks, rest.values()))
        for place in places(verdict["names"], len(names)):
            name = str(names[place])
            room.take(PART * parts + marks * len(quoted(name) if marks else ""))
            yield {**_spell(rest, name), "name": name}


def _marks(value: Any) -> int:
    match value:
        case str():
            return value.count(SUBJECT)
        case list():
            return sum(text.count(SUBJECT) for each in value for text in each.values() if isinstance(text, str))
        case _:
            return 0
