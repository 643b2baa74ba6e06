"""What power cuts showed of drives (``zaudit powercut``), and what so many of them prove.

Evidence is of one drive with one firmware. Other drives of its model are other units: they are counted, and never summed. Cuts
never show that a drive loses nothing, so what held is still relied on; what was lost once is enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from auditor.data import drives
from auditor.facts import (
    AGAIN,
    HOST,
    DriveCuts,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Spec,
    Subject,
    Unknown,
    is_true,
    unknown,
)
from auditor.model.derivation import catch_missing, derivation, need
from auditor.text import harmless

ENOUGH = 10  # informative cuts; before that no loss proves little
CONFIDENCE = 0.95
NO_LOSS = ("HELD", "TOO FEW CUTS")  # verdicts in which every cut that counts kept all
COMMAND = "zaudit powercut report"
NAMES = ("cuts_held", "lost_flushed", "model_tried", "model_lost")


@derivation(
    "host",
    **{
        "drives_tried": Spec.flag("there are records of drives that power cuts were tried with"),
        "disk.cuts_held": Spec.number(
            "informative power cuts of this drive with this firmware, none of which lost anything"
        ),
        "disk.lost_flushed": Spec.flag("a power cut took data that this drive with this firmware had flushed"),
        "disk.model_tried": Spec.number("drives of its model that power cuts were tried with, it included"),
        "disk.model_lost": Spec.number("those of them that lost flushed data; not this drive with this firmware"),
    },
)
def power_cuts(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Of each disk, from the records of runs on drives: of a run on a pool nobody knows which drive kept it.

    A record that could not be read may be one of a loss. Where a recording was made before zaudit asked for records, there are
    none."""
    read = _read(facts)
    models = dict[str, list[DriveCuts]]()
    for each in facts.get(HOST, "power_cuts").rows(DriveCuts):
        if each.layer == "drive" and each.cuts:
            models.setdefault(_model(each.model), []).append(each)
    seen = tuple(Evidence(_line(each), COMMAND) for mine in models.values() for each in mine[:1])
    yield Fact(host, "drives_tried", Known(True, seen) if models else _nothing(read)[1])
    for disk in facts.subjects("disk"):
        yield from (Fact(disk, *pair) for pair in zip(NAMES, _of(disk, facts, models, read), strict=True))


def _read(facts: Facts) -> Judged:
    """Were all records read? The reasons where one was not."""
    match facts.get(HOST, "power_cuts_read"):
        case Unknown(reasons) if all(each.remedy == AGAIN for each in reasons) or "power_cuts_read" not in facts.of(
            HOST
        ):
            return Known(True, (Evidence("records of power cuts were not asked for"),))
        case Known(False, (first, *_)):
            return unknown(first.text)
        case found:
            return found


def _model(model: str) -> str:
    return drives.normal(model.replace("_", " ")).casefold()


def _of(disk: Subject, facts: Facts, models: dict[str, list[DriveCuts]], read: Judged) -> tuple[Judged, ...]:
    """In the order of NAMES."""
    model, virtual = facts.get(disk, "model"), facts.get(disk, "virtual")
    if is_true(virtual):
        return _nothing(virtual)
    if isinstance(model, Unknown):
        return _nothing(model if models else read)
    mine = models.get(_model(str(model.value)), [])
    if not mine:
        return _nothing(read)
    seen = tuple(dict.fromkeys(Evidence(_line(each), COMMAND) for each in mine))
    own = _cuts_of_drive(disk, facts, mine)
    tried = {each.serial or str(at) for at, each in enumerate(mine)}
    others = {
        each.serial or str(at)
        for at, each in enumerate(mine)
        if each.lost and not (isinstance(own, list) and each in own)
    }
    return (
        _held(own, virtual, read, seen),
        _lost(own, read, seen),
        Known(len(tried), seen),
        Known(len(others), seen) if others or isinstance(read, Known) else read,
    )


def _nothing(known: Judged) -> tuple[Judged, ...]:
    """No record is about it, or about its model; or why nobody knows."""
    if isinstance(known, Unknown):
        return (known,) * len(NAMES)
    return tuple(Known(value, known.evidence) for value in (0, False, 0, 0))


@catch_missing
def _cuts_of_drive(disk: Subject, facts: Facts, mine: Sequence[DriveCuts]) -> list[DriveCuts] | Unknown:
    """Those of this very drive, as it is now: another firmware is another drive."""
    serial = need(facts.get(disk, "serial"))
    name = harmless(str(serial.value)).strip()
    if not name.strip("0 "):
        return unknown(f"{disk} gives no serial number: which records are about it is not known")
    found = [each for each in mine if each.serial == name]
    if not found:
        return []
    firmware = need(facts.get(disk, "firmware"))
    return [each for each in found if each.firmware == harmless(str(firmware.value)).strip()]


def _held(own: list[DriveCuts] | Unknown, virtual: Judged, read: Judged, seen: tuple[Evidence, ...]) -> Judged:
    """None where one of its runs ended otherwise: with a loss, or with damage after what was no power cut. What may be one of
    several virtual disks with one serial number is no drive that could be known again."""
    if isinstance(own, list) and any(each.verdict not in NO_LOSS for each in own):
        return Known(0, seen)
    for each in (own, read, virtual):
        if isinstance(each, Unknown):
            return each
    assert isinstance(own, list)
    return Known(sum(each.cuts for each in own), seen)


def _lost(own: list[DriveCuts] | Unknown, read: Judged, seen: tuple[Evidence, ...]) -> Judged:
    if isinstance(own, list) and any(each.lost for each in own):
        return Known(True, seen)
    return next((each for each in (own, read) if isinstance(each, Unknown)), Known(False, seen))


def _line(each: DriveCuts) -> str:
    return f"{each.model}, firmware {each.firmware}: {each.lost} of {each.cuts} power cuts lost flushed data"


# -- what so many cuts prove ----------------------------------------------------------------------------------------


def bounds(lost: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The exact bounds of a share of which lost of n were seen (Clopper and Pearson, 1934): one-sided where nothing or all was
    lost, else two-sided."""
    if not n:
        return 0.0, 1.0
    error = 1 - confidence
    if lost == 0:
        return 0.0, 1 - error ** (1 / n)
    if lost == n:
        return error ** (1 / n), 1.0
    low = _solve(lambda share: 1 - _at_most(lost - 1, n, share), error / 2)
    return low, _solve(lambda share: 1 - _at_most(lost, n, share), 1 - error / 2)


def _solve(rising: Callable[[float], float], value: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < value else (low, middle)
    return (low + high) / 2


def _at_most(count: int, n: int, share: float) -> float:
    """The chance of no more than count of n."""
    if not 0 < share < 1:
        return float(share <= 0)
    logs = math.log(share), math.log1p(-share)
    first = math.lgamma(n + 1)
    return sum(
        math.exp(first - math.lgamma(each + 1) - math.lgamma(n - each + 1) + each * logs[0] + (n - each) * logs[1])
        for each in range(count + 1)
    )
