"""``/proc/spl/kstat/zfs/POOL/objset-0x*``: what each mounted dataset has written, and its ZIL (2.2 and later).

An unmounted dataset has no such file. Counted since it was mounted. (OpenZFS module/zfs/dataset_kstats.c)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from auditor.collect import kstat
from auditor.collect.kstat_zil import FACTS as ZIL
from auditor.collect.request import Files, Read, Request
from auditor.facts import Fact, Facts, Known, Spec, Subject, known, number
from auditor.text import quoted

PER = "target"
SUBJECT = "dataset"
FACTS: dict[str, Spec] = {
    "writes": number("write calls since it was mounted"),
    "nwritten": number("bytes written since it was mounted"),
    "reads": number("read calls since it was mounted"),
    "nread": number("bytes read since it was mounted"),
    **ZIL,
}


def request(target: Subject, facts: Facts) -> Request:
    """All datasets of the pool: the files are numbered, not named."""
    return Read((f"{kstat.ROOT}/{target.name.partition('/')[0]}/objset-0x*",))


def parse(reply: Files, target: Subject) -> Iterator[Fact]:
    """The rows of the datasets at and below the target, under their own names.

    What reads alike is shared, for thousands of datasets.
    """
    files = quoted(f"{kstat.ROOT}/{target.name.partition('/')[0]}") + "/objset-*"
    for path, text in sorted(reply.text.items()):
        rows = kstat.rows(text, path)
        kind, name = rows.get("dataset_name", ("", ""))
        if kind != "7":
            raise ValueError(f"{path} does not name its dataset")
        if name == target.name or name.startswith(target.name + "/"):
            subject = Subject("dataset", name)
            for row, cell in rows.items():
                if row in FACTS and (value := _known(row, cell, files)):
                    yield Fact(subject, row, value)


@lru_cache(4096)
def _known(row: str, cell: tuple[str, str], files: str) -> Known | None:
    """The value of a row; cell: its type and what is printed."""
    count = kstat.number(*cell)
    command = f"grep -w -A30 {{subject}}$ {files} | grep -w {row}"
    return None if count is None else known(count, f"{row} {count}", command)
