"""The database's view, beside the kernel's: types alone."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """Something that was counted. counted: None where it is not known; mean_ns: None where it is not timed; why: why either is
    missing, or empty."""

    what: str
    counted: int | None
    mean_ns: float | None
    why: str


class Wait(NamedTuple):
    """What backends waited for. mean: how many at a moment; most: at once."""

    what: str
    mean: float
    most: int


class View(NamedTuple):
    """engine: PostgreSQL; server: "postgres 1234", as the audit calls it, or empty. rows: the database's; first: the sentence
    about the row that is compared with the kernel's; kernel: commits by its processes, None where they were not seen. waits: of
    backends at work, active of them at a moment. settings: NAME = VALUE that decide what is counted. unseen: what could not
    be told, and why. commands: that show the same again."""

    engine: str
    server: str
    first: str
    rows: tuple[Row, ...]
    kernel: Row | None
    waits: tuple[Wait, ...]
    active: float
    settings: tuple[str, ...]
    unseen: tuple[str, ...]
    commands: tuple[str, ...]
