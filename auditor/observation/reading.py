"""Facts as fields of the model read them: a value, or None where it is not known."""

from __future__ import annotations

from typing import NamedTuple

from auditor.facts import HOST, Facts, Known, Subject, value_of


class Reading(NamedTuple):
    """next_boot: read what the next boot puts in force, where that is a fact of its own."""

    facts: Facts
    next_boot: bool = False

    def flag(self, subject: Subject, name: str) -> bool | None:
        found = value_of(self.facts.get(subject, name))
        return found if isinstance(found, bool) else None

    def word(self, subject: Subject, name: str) -> str | None:
        found = value_of(self.facts.get(subject, name))
        return found if isinstance(found, str) else None

    def number(self, subject: Subject, name: str) -> int | None:
        found = value_of(self.facts.get(subject, name))
        return found if isinstance(found, int) else None

    def words(self, subject: Subject, name: str) -> tuple[str, ...] | None:
        found = self.facts.get(subject, name)
        return found.words() if isinstance(found, Known) else None

    def links(self, subject: Subject, name: str) -> tuple[Subject, ...] | None:
        found = self.facts.get(subject, name)
        return self.facts.linked(subject, name) if isinstance(found, Known) else None

    def none(self, subject: Subject, name: str) -> bool | None:
        """Is nothing in this list?"""
        found = self.words(subject, name)
        return None if found is None else not found

    def parameter(self, name: str) -> int | None:
        """Of the zfs module."""
        return self.number(HOST, f"{name}_boot" if self.next_boot else name)

    def line(self) -> tuple[int, int] | None:
        """The release line of the loaded module: (2, 4)."""
        match self.facts.get(HOST, "zfs_version"):
            case Known((int(major), int(minor), *_)):
                return major, minor
        return None


def opposite(value: bool | None) -> bool | None:
    return None if value is None else not value


def both(first: bool | None, second: bool | None) -> bool | None:
    """Kleene's *and*."""
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def zero(value: int | None) -> bool | None:
    return None if value is None else value == 0
