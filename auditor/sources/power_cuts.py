"""What ``zaudit powercut`` showed of the drives of this host, from its own records (``auditor/powercut/campaign.py``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from auditor.facts import HOST, DriveCuts, Evidence, Fact, Known, Spec, Subject, known
from auditor.host.request import WITNESS, Files, Read
from auditor.sources.source import source
from auditor.text import crowded, harmless

SCHEMA = "zaudit-cuts/1"
RECORDS = "/var/lib/zaudit/cuts/*.json"
COMMAND = "zaudit powercut report"
DRIVES = 64  # of one record
LONGEST = 200  # of a word in it
MOST = 1 << 20  # cuts
LARGEST = 10_000  # records


def keep(text: str) -> str:
    """Of a record what it comes to for each drive, and of that the same again; empty where it cannot be read."""
    try:
        run, found = _record(text)
        document = {"schema": SCHEMA, "campaign": {"run": run}, "evidence": [each._asdict() for each in found]}
    except ValueError:
        return ""
    return json.dumps(document, indent=1) + "\n"


def _record(text: str) -> tuple[str, tuple[DriveCuts, ...]]:
    """Which run it is of (empty: it does not say), and what it comes to for each drive. Raises ValueError for what is no record
    of this version, or says what cannot be."""
    if crowded(text):
        raise ValueError("more values than a record has")
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError("no record of this version")
    found, campaign = document.get("evidence"), document.get("campaign")
    run = campaign.get("run", "") if isinstance(campaign, dict) else ""
    if not isinstance(found, list) or len(found) > DRIVES or not isinstance(run, str) or len(run) > LONGEST:
        raise ValueError("no record of this version")
    return run, tuple(map(_row, found))


def _row(found: object) -> DriveCuts:
    if not isinstance(found, dict):
        raise ValueError("no row of a record")
    values: dict[str, Any] = {name: found.get(name) for name in DriveCuts._fields}
    row = DriveCuts(**values)
    words = (row.layer, row.verdict, row.model, row.firmware, row.serial)
    if not all(isinstance(word, str) and len(word) <= LONGEST and word == harmless(word) for word in words):
        raise ValueError("no word of a record")
    if type(row.cuts) is not int or type(row.lost) is not int or not 0 <= row.lost <= row.cuts <= MOST:
        raise ValueError("no number of cuts")
    return row


@source(
    "power_cuts",
    "host",
    ask=Read((RECORDS, WITNESS), trusted=True),
    keeps={RECORDS: keep},
    facts={
        "power_cuts": Spec.rows(DriveCuts, "what power cuts showed of drives (zaudit powercut)"),
        "power_cuts_read": Spec.flag("all records of power cuts could be read, and only root could have written one"),
    },
)
def power_cuts(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/var/lib/zaudit/cuts``: a record of each run that was checked on this host, or copied there from another one.

    What could be read counts although another record could not: a loss in it is one. Of two records of one run, one is a copy,
    perhaps an older one: the one with more losses and cuts counts."""
    reply.witness()
    records = {path: text for path, text in reply.text.items() if path != WITNESS}
    if len(records) > LARGEST:
        raise ValueError(f"more than {LARGEST} records")
    runs, damaged = dict[str, tuple[DriveCuts, ...]](), list[str]()
    for path in sorted(records):
        try:
            run, each = _record(records[path])
        except ValueError:
            damaged.append(path)
        else:
            runs[run or path] = max(runs.get(run or path, ()), each, key=_weight)
    found = [row for each in runs.values() for row in each]
    whole = reply.complete(RECORDS)
    lines = tuple(Evidence(_line(each), COMMAND) for each in found) or (Evidence("no record of power cuts", COMMAND),)
    if found or whole:
        yield Fact(HOST, "power_cuts", Known(tuple(found), lines))
    if damaged:
        yield Fact(
            HOST, "power_cuts_read", known(False, f"{harmless(damaged[0])} is no record that can be read", COMMAND)
        )
    elif whole:
        text = f"{len(records)} records of power cuts" if records else "no record of power cuts"
        yield Fact(HOST, "power_cuts_read", known(True, text, COMMAND))


def _weight(found: tuple[DriveCuts, ...]) -> tuple[int, int]:
    return sum(each.lost for each in found), sum(each.cuts for each in found)


def _line(each: DriveCuts) -> str:
    return f"{each.model} {each.firmware}, layer {each.layer}: {each.verdict}, {each.lost} of {each.cuts} cuts lost"


SOURCES = (power_cuts,)
