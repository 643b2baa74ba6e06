"""Was it a power cut, could it have shown a lie, and what do so many cuts prove? Arithmetic; the witness's log decides.

A cut is a trial of FLUSH only if the drive lost its power and part of the control stream, which was completed and never
flushed: then its cache was volatile and not empty. Damage to acknowledged data counts whatever the cut was."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from auditor.model.write_cache import CONFIDENCE, ENOUGH, bounds
from auditor.powercut.sectors import CLASSES
from auditor.powercut.wire import Run, Session
from auditor.sources.machine import LONGEST, DriveCuts
from auditor.text import harmless

CutKind = Literal["power", "drive", "reset", "none", "unclear"]
LOST_POWER = frozenset({"power", "drive"})
FLUSHED = tuple(kind for kind in CLASSES if kind != "GONE")  # damage of data; not a drive or folder that is missing
_NVME = "nvme_smart_health_information_log"
POWER_CYCLES, POWER_OFF_RETRACT, UNEXPECTED_LOSS = "12", "192", "174"  # ATA attributes


# -- counters -----------------------------------------------------------------------------------------------------


class Drive(NamedTuple):
    """A drive and its counters. identity: a hash of its serial number. cycles: how often it got power. unsafe: how often it
    lost it without notice. None where it does not say."""

    name: str
    model: str = ""
    firmware: str = ""
    identity: str = ""
    cycles: int | None = None
    unsafe: int | None = None


def parse_counters(text: str) -> dict[str, Any]:
    """cycles, unsafe, model, firmware and serial of ``smartctl -j -x``, as far as it says them. (smartmontools
    ataprint.cpp, nvmeprint.cpp, scsiprint.cpp; NVM Express Base Specification, SMART / Health Information)"""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(told, dict):
        return {}
    nvme = as_object(told.get(_NVME))
    found = {
        "cycles": _number(told.get("power_cycle_count")),
        "unsafe": _number(nvme.get("unsafe_shutdowns")),
        **{key: told[name] for name, key in _WORDS.items() if isinstance(told.get(name), str)},
    }
    rows = map(as_object, _list(as_object(told.get("ata_smart_attributes")).get("table")))
    attributes = {str(row.get("id")): _number(as_object(row.get("raw")).get("value")) for row in rows}
    found["cycles"] = attributes.get(POWER_CYCLES) if found["cycles"] is None else found["cycles"]
    if found["unsafe"] is None:
        found["unsafe"] = attributes.get(UNEXPECTED_LOSS, attributes.get(POWER_OFF_RETRACT))
    return {key: value for key, value in found.items() if value is not None}


_WORDS = {"scsi_revision": "firmware", "model_name": "model", "firmware_version": "firmware", "serial_number": "serial"}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48 else None


class Cut(NamedTuple):
    """What happened to one drive. why: in words."""

    kind: CutKind
    why: str


def classify(
    before: Drive, after: Drive | None, *, same_boot: bool, stopped: bool, orderly: tuple[int, int] = (0, 0)
) -> Cut:
    """orderly: by how much cycles and unsafe go up at an orderly reboot of this drive (``powercut calibrate``)."""
    if stopped:
        return Cut("none", "the run had ended in order")
    if after is None:
        return Cut("unclear", "the drive is not there")
    if before.identity != after.identity:
        return Cut("unclear", "another drive is in its place")
    if before.cycles is None or after.cycles is None:
        return (
            Cut("none", "the host was not restarted") if same_boot else Cut("unclear", "it does not count power cycles")
        )
    cycles = after.cycles - before.cycles
    if same_boot:
        words = f"power cycles {before.cycles} to {after.cycles}, while the host ran"
        return Cut("drive", words) if cycles > 0 else Cut("none", "the host was not restarted")
    if cycles - orderly[0] <= 0:
        return Cut("reset", f"it kept its power: power cycles {before.cycles} to {after.cycles}")
    if before.unsafe is None or after.unsafe is None:
        return Cut("power", f"power cycles {before.cycles} to {after.cycles}; it does not count unsafe shutdowns")
    if after.unsafe - before.unsafe - orderly[1] <= 0:
        return Cut("none", "the drive was shut down in order before its power went")
    return Cut("power", f"unsafe shutdowns {before.unsafe} to {after.unsafe}")


def together(cuts: Sequence[Cut]) -> Cut:
    """Of all drives under a pool: a cut of all of them, or not one that tests the pool."""
    by = {each.kind: each for each in reversed(cuts)}  # the first of each kind
    if not cuts:
        return Cut("unclear", "no drive of this host counts power cycles")
    if by.keys() <= LOST_POWER:
        return Cut("power", cuts[0].why)
    worst = next(by[kind] for kind in ("unclear", "reset", "none") if kind in by)
    return Cut("unclear", f"not every drive lost its power: {worst.why}") if by.keys() & LOST_POWER else worst


# -- trials -------------------------------------------------------------------------------------------------------


class Reach(NamedTuple):
    """How far a stream came. acknowledged: by the witness. found: the newest whole generation after the boot; None where
    not read. missing: slots without their newest acknowledged write; lost: the oldest of these, 0 for none."""

    stream: int
    flushed: bool
    acknowledged: int
    found: int | None
    missing: int
    lost: int

    @property
    def issued(self) -> int:
        """At least so many: what the host sent last dies with it."""
        return max(self.acknowledged, self.found or 0)


class Trial(NamedTuple):
    """One session and what was found after it. damage: class -> how many. examples: in words. control: completed writes
    that should be there, and those that were not."""

    session: int
    cut: Cut
    acknowledged: int
    missing: int
    damage: Mapping[str, int]
    examples: tuple[str, ...]
    control: tuple[int, int]
    streams: tuple[Reach, ...] = ()

    @property
    def worst(self) -> str:
        """The most severe class; empty where nothing is damaged."""
        return next((kind for kind in CLASSES if self.damage.get(kind)), "")

    @property
    def informative(self) -> bool:
        """It could have shown a lie: the drive had a volatile cache with something in it, and lost its power."""
        return self.cut.kind in LOST_POWER and self.control[1] > 0


class Gap(NamedTuple):
    """A session that wrote, did not end in order and was never checked. last: no other wrote after it, so its check may
    come. streams: empty without the witness."""

    session: int
    last: bool
    streams: tuple[Reach, ...]


class Campaign(NamedTuple):
    """What a run came to."""

    run: str
    layer: str
    subject: str
    machine: str
    drives: tuple[Drive, ...]
    trials: tuple[Trial, ...]
    gaps: tuple[Gap, ...]


def campaign(run: Run) -> Campaign:
    """From the witness's log alone; whoever has a copy comes to the same."""
    wrote = [each for each in run.sessions if each.streams]
    checked = _checked(run)
    open_ = [each for each in wrote if each.number not in run.found and not each.stopped]
    gaps = [Gap(each.number, each is wrote[-1], tuple(_reaches(each, ()))) for each in open_]
    machine = run.sessions[0]["machine"] if run.sessions else ""
    return campaign_of(run.run.hex(), machine, checked, gaps, of=[each for each, _ in checked] or wrote)


def _checked(run: Run) -> list[tuple[Session, dict[str, Any]]]:
    return [(each, run.found[each.number]) for each in run.sessions if each.number in run.found]


def campaign_of(
    run: str,
    machine: str,
    checked: Sequence[tuple[Session, Mapping[str, Any]]],
    gaps: Sequence[Gap],
    of: Sequence[Session],
) -> Campaign:
    """Of sessions and what was found after each. of: the first of these says what it is about."""
    manifest = of[0].manifest if of else {}
    layer, subject = (_word(manifest.get(key)) for key in ("layer", "subject"))
    trials = tuple(_trial(session, found) for session, found in checked)
    return Campaign(run, layer, subject, machine, tuple(drives(manifest.get("drives"))), trials, tuple(gaps))


def _trial(session: Session, found: Mapping[str, Any]) -> Trial:
    left = [each for each in _list(found.get("streams")) if isinstance(each, dict)]
    flushed = [each for each in left if each.get("flushed") is not False]
    control = [each for each in left if each.get("flushed") is False]
    damage = Counter[str]()
    for each in flushed:
        counts = as_object(each.get("damage")).items()
        damage.update({kind: _number(count) or 0 for kind, count in counts if kind in CLASSES})
    damage.update(["GONE"] if found.get("gone") else [])
    examples = [_word(text) for each in flushed for text in _list(each.get("examples"))]
    return Trial(
        session.number,
        cut_of(session, found),
        sum(each.newest - len(each.failed) for each in session.streams.values() if each.layout.flushed),
        _sum(flushed, "missing"),
        damage,
        tuple(examples[:5]) or ((_word(found["gone"]),) if found.get("gone") else ()),
        (_sum(control, "checked"), _sum(control, "missing")),
        tuple(_reaches(session, left)),
    )


def _reaches(session: Session, left: Iterable[Mapping[str, Any]]) -> Iterator[Reach]:
    """left: what a check says of each stream; nothing where there was none."""
    found = {_number(each.get("stream")): each for each in left}
    for number, stream in sorted(session.streams.items()):
        newest, missing, lost = (_number(found.get(number, {}).get(key)) for key in ("newest", "missing", "lost"))
        yield Reach(number, stream.layout.flushed, stream.newest, newest, missing or 0, lost or 0)


def cut_of(session: Session, found: Mapping[str, Any]) -> Cut:
    """What the counters of the drives before and after say."""
    same_boot = session["boot"] == found.get("boot")
    after = {each.name: each for each in drives(found.get("drives"))}
    orderly = {
        name: (_number(each[0]) or 0, _number(each[1]) or 0)
        for name, each in as_object(session.manifest.get("orderly")).items()
        if isinstance(each, list) and len(each) == 2
    }
    state = {"same_boot": same_boot, "stopped": session.stopped}
    cuts = [
        classify(each, after.get(each.name), **state, orderly=orderly.get(each.name, (0, 0)))
        for each in drives(session.manifest.get("drives"))
    ]
    if not cuts and (session.stopped or same_boot):
        return Cut("none", "the run had ended in order" if session.stopped else "the host was not restarted")
    return together(cuts)


def drives(value: object) -> Iterable[Drive]:
    """Those of a document; what is none is left out."""
    for each in _list(value):
        if isinstance(each, dict) and each.get("name"):
            words = {key: _word(each.get(key)) for key in ("name", "model", "firmware", "identity")}
            yield Drive(**words, cycles=_number(each.get("cycles")), unsafe=_number(each.get("unsafe")))


def as_object(value: object) -> dict[str, Any]:
    """Itself, where it is an object of a document; else nothing."""
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _word(value: object) -> str:
    return harmless(value)[:200] if isinstance(value, str) else ""


def _sum(rows: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(_number(each.get(key)) or 0 for each in rows)


# -- what it proves -----------------------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """word: a class of damage, HELD, TOO FEW CUTS, NOT TESTED or NO CUT. n: trials that count; lost: of these. low, high:
    bounds of the share of such cuts that lose something, with 95 %."""

    word: str
    cuts: int
    n: int
    lost: int
    low: float
    high: float
    why: str


def judge(trials: Sequence[Trial]) -> Verdict:
    """What the trials of one drive or pool prove. Damage is never outweighed by trials that held."""
    cuts = [each for each in trials if each.cut.kind in LOST_POWER]
    damaged = [each for each in trials if each.worst]
    counting = [each for each in cuts if each.informative or each.worst]
    lost = sum(bool(each.worst) for each in counting)
    low, high = bounds(lost, len(counting))

    def verdict(word: str, why: str) -> Verdict:
        return Verdict(word, len(cuts), len(counting), lost, low, high, why)

    if damaged:
        word = next(kind for kind in CLASSES if any(each.damage.get(kind) for each in damaged))
        kinds = ", ".join(sorted({each.cut.kind for each in damaged} - LOST_POWER))
        return verdict(word, f"also where the drive kept its power ({kinds})" if kinds else "")
    if not cuts:
        whys = sorted({each.cut.why for each in trials})
        return verdict("NO CUT", "; ".join(whys[:3]) or "nothing was checked")
    if not counting:
        survived = [each for each in cuts if each.control[0]]
        why = (
            f"every unflushed write survived in {len(survived)} of {len(cuts)} cuts: the cache was empty or is protected"
            if survived
            else "no control stream: nothing shows that the cache held anything"
        )
        return verdict("NOT TESTED", why)
    if len(counting) < ENOUGH:
        return verdict("TOO FEW CUTS", f"{len(counting)} of {ENOUGH} informative cuts")
    return verdict("HELD", "")


def cuts_for(share: float, confidence: float = CONFIDENCE) -> int:
    """Informative cuts without a loss after which the share of such cuts that lose is below this."""
    return math.ceil(math.log(1 - confidence) / math.log1p(-share))


def window(rate: float, half_life_s: float) -> float:
    """The chance that a cut loses an acknowledged commit, at a rate of commits a second, of a drive that ignores flushes
    and writes back half of its cache in half_life_s: 1 - prod(1 - 2^(-i / (rate half_life)))."""
    if rate <= 0 or half_life_s <= 0:
        return 0.0
    kept, number = 1.0, 1
    while (there := 2 ** (-number / (rate * half_life_s))) > 1e-12 and kept > 1e-12:
        kept *= 1 - there
        number += 1
    return 1 - kept


# -- what zaudit check makes of it ----------------------------------------------------------------------------------


class DriveTrial(NamedTuple):
    """The drive of a session. serial: empty where it may be another one afterwards. The serial number stays on the host;
    from the log of a witness there is a hash in its place."""

    session: int
    model: str
    firmware: str
    serial: str


def tried(session: int, before: Iterable[Drive], after: Iterable[tuple[Drive, str]]) -> Iterator[DriveTrial]:
    """The drives of a session. One that changed, or has another firmware, is not identified."""
    now = {each.name: (each, serial) for each, serial in after}
    for each in before:
        found, serial = now.get(each.name, (each, ""))
        same = (each.identity, each.model, each.firmware) == (found.identity, found.model, found.firmware)
        words = (each.model, each.firmware, serial if same else "")
        yield DriveTrial(session, *(harmless(word)[:LONGEST].strip() for word in words))


def evidence(layer: str, trials: Sequence[Trial], drives: Sequence[DriveTrial]) -> tuple[DriveCuts, ...]:
    """What the trials of each drive with each firmware come to. A run may go on with another drive, or after an update."""
    by = dict[DriveTrial, list[Trial]]()
    for each in drives:
        mine = [trial for trial in trials if trial.session == each.session]
        by.setdefault(each._replace(session=0), []).extend(mine)
    found = []
    for drive, mine in by.items():
        lost = sum(each.cut.kind in LOST_POWER and any(map(each.damage.get, FLUSHED)) for each in mine)
        verdict = judge(mine)
        words = (drive.model, drive.firmware, drive.serial)
        found += [DriveCuts(layer, verdict.word, verdict.n, lost, *words)] if mine else []
    return tuple(found)


class Entry(NamedTuple):
    """What a run says of one drive, for others, without naming drive or host. log: SHA-256 of the first log_bytes of the
    witness's log, from which all of it can be computed again."""

    model: str
    firmware: str
    verdict: str
    informative_cuts: int
    lost: int
    run: str
    log: str
    log_bytes: int


def entries(run: Run) -> list[Entry]:
    """Of the layer drive alone, and of drives that reported the same serial number before and after."""
    found = campaign(run)
    seen = [
        one
        for session, left in _checked(run)
        for one in tried(
            session.number,
            drives(session.manifest.get("drives")),
            ((each, each.identity) for each in drives(left.get("drives"))),
        )
    ]
    cuts = evidence(found.layer, found.trials, seen) if found.layer == "drive" else ()
    log = (found.run, f"sha256:{run.digest}", run.size)
    named = (each for each in cuts if each.serial and each.model)
    return [Entry(each.model, each.firmware, each.verdict, each.cuts, each.lost, *log) for each in named]
