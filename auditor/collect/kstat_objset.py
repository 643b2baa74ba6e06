"""``/proc/spl/kstat/zfs/POOL/objset-0x*``: what each mounted dataset has written, and its ZIL (2.2 and later).

An unmounted dataset has no such file. Counted since it was mounted. (OpenZFS module/zfs/dataset_kstats.c)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from auditor.collect import kstat
from auditor.collect.kstat_zil import FACTS as ZIL
from auditor.facts import Fact, Facts, Known, Spec, Subject, known, number, real
from auditor.host.request import Files, Read, Request
from auditor.text import quoted

PER = "target"
SUBJECT = "dataset"
FACTS: dict[str, Spec] = {
    "writes": number("write calls since it was mounted"),
    "nwritten": number("bytes written since it was mounted"),
    "reads": number("read calls since it was mounted"),
    "nread": number("bytes read since it was mounted"),
    **ZIL,
    "zil_counted_s": real("seconds that these counters cover"),
}

STRING = "7"


def request(target: Subject, facts: Facts) -> Request:
    """All datasets of the pool: the files are numbered, not named."""
    return Read((f"{kstat.ROOT}/{target.name.partition('/')[0]}/objset-0x*",))


def parse(reply: Files, target: Subject) -> Iterator[Fact]:
    """The rows of the datasets at and below the target, under their own names. Raises ValueError where not all
    files could be read: whose one is stands in it, and a list that lacks a dataset is none.

    What reads alike is shared, for thousands of datasets.
    """
    files = quoted(f"{kstat.ROOT}/{target.name.partition('/')[0]}") + "/objset-*"
    for path, error in reply.errors.items():
        of_counters = path.startswith(kstat.ROOT) and "/objset-" in path
        if reply.text and of_counters and not error.startswith("no such"):  # as one that was unmounted meanwhile
            raise ValueError(f"{path}: {error}")
    for path, text in sorted(reply.text.items()):
        read = [_read(line, files) for line in kstat.lines(text, path)]
        if not (name := next((what for row, what in read if row == "dataset_name"), "")) or not isinstance(name, str):
            raise ValueError(f"{path} does not name its dataset")
        if name == target.name or name.startswith(target.name + "/"):
            subject = Subject("dataset", name)
            for row, value in read:
                if isinstance(value, Known):
                    yield Fact(subject, row, value)
            yield Fact(subject, "zil_counted_s", _counted(text, path))


def _counted(text: str, path: str) -> Known:
    made, now = (int(str(each.value)) for each in kstat.clocks(text, path))
    seconds = round((now - made) / 1e9, 3)
    return known(seconds, f"counted over {seconds:g} s", f"head -1 {quoted(path)}")


@lru_cache(4096)
def _read(line: str, files: str) -> tuple[str, Known | str]:
    """(row, its value), or the name of the dataset; "" for what is no count or not asked for."""
    row, kind, value = kstat.row(line, files)
    if row == "dataset_name":
        return row, value if kind == STRING else ""
    count = kstat.number(kind, value)
    if count is None or row not in FACTS:
        return row, ""
    return row, known(count, f"{row} {count}", f"grep -w -A30 {{subject}}$ {files} | grep -w {row}")
