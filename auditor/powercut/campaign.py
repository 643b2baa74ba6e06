"""The host's side of a run: what stands against it, a session, the check after the boot, and the record of both."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from auditor import EXIT_BROKE, EXIT_NOTHING, Stop, __version__, codec
from auditor.host import user_files
from auditor.host.children.reader import Closing
from auditor.host.live import Host
from auditor.host.request import Run as Question
from auditor.host.trust import held
from auditor.powercut import proof, target, witness
from auditor.powercut.proof import Campaign, Drive, DriveTrial, Gap
from auditor.powercut.sectors import Layout, Receipts, Remains, check, mark_of
from auditor.powercut.target import PROFILES, Folder, Medium, Partition, TargetError
from auditor.powercut.wire import NO_RUN, Kind, Run, Session, encoded, runs, streams_of
from auditor.powercut.writer import Link, Writer, child
from auditor.sources.machine import CUTS_SCHEMA
from auditor.text import harmless
from auditor.verify import ledger, place
from auditor.verify.ledger import PlaceError

STATE, CALIBRATION, CUTS, LOCK = "powercut.json", "powercut-reboot.json", "cuts", "powercut.lock"
LONGEST = 16 << 20  # bytes of a file of ours
LARGEST = 10_000  # runs
EXAMPLES = 5  # of each stream, in words
MACHINE = Path("/etc/machine-id")
BLOCK = Path("/sys/block")
DISK = re.compile(r"nvme\d+n\d+|sd[a-z]+")


class NoRun(Stop):
    """There is nothing to check or to go on with."""

    exit_code = EXIT_NOTHING


class Refused(Stop):
    """Why nothing is begun."""


class Full(Stop):
    """Nothing can be written where a run is to write."""

    exit_code = EXIT_BROKE


class State(NamedTuple):
    """The run of this host, as it is on disk. folder: id of its place in the ledger, or empty. uuid: PARTUUID of raw.
    session: the last one that wrote, 0 before the first; checked: it was."""

    run: str
    host: str
    port: int
    key: str
    target: str
    raw: str
    profile: str
    writers: int
    folder: str = ""
    uuid: str = ""
    session: int = 0
    checked: bool = True

    @property
    def layer(self) -> str:
        """What its result may be used for."""
        return "pool" if self.target else "drive"


# -- what is kept here --------------------------------------------------------------------------------------------


def load_state() -> State:
    """Raises NoRun, and PlaceError where others could have changed it."""
    document = _read(ledger.folder() / STATE)
    if document is None:
        raise NoRun("no run on this host: begin one with zaudit powercut start")
    return codec.load(State, document, STATE)


def save_state(state: State) -> None:
    """It is on the disk then, as far as that keeps its word."""
    user_files.replace(ledger.folder() / STATE, json.dumps(codec.plain(state)).encode())


def _read(path: Path) -> Any:
    """A JSON file of ours; None where there is none."""
    if not path.exists():
        return None
    try:
        return json.loads(user_files.read(path, LONGEST, trusted=True))
    except (OSError, ValueError, RecursionError) as error:
        raise PlaceError(f"{path}: {getattr(error, 'strerror', '') or 'it is damaged'}") from None


def record_of(run: str) -> Path:
    """Where the results of a run are kept on this host."""
    return ledger.folder() / CUTS / f"{run}.json"


class Record(NamedTuple):
    """Of a run, on this host. tried: the drives of each session, which nobody else is told."""

    campaign: Campaign
    tried: tuple[DriveTrial, ...]


def load_record(path: Path) -> Campaign | None:
    """What was found so far. Raises PlaceError, CodecError."""
    found = _load_record(path)
    return found.campaign if found else None


def _load_record(path: Path) -> Record | None:
    document = _read(path)
    if not isinstance(document, dict):
        return None
    if document.get("schema") != CUTS_SCHEMA:
        raise PlaceError(f"{path} is of a later version of zaudit")
    return codec.load(Record, document, str(path))


def _keep(found: Campaign, layer: str, tried: Sequence[DriveTrial]) -> None:
    """layer: of the state of this host. ``zaudit check`` reads the evidence by drive."""
    path, session = record_of(found.run), found.trials[0].session
    path.parent.mkdir(mode=0o700, exist_ok=True)
    before = _load_record(path) or Record(found, ())
    trials = (*(each for each in before.campaign.trials if each.session != session), *found.trials)
    drives = (*(each for each in before.tried if each.session != session), *tried)
    whole = Record(before.campaign._replace(trials=trials), drives)
    evidence = codec.plain(proof.evidence(layer, trials, drives))
    document = {"schema": CUTS_SCHEMA, **codec.plain(whole), "evidence": evidence}
    user_files.replace(path, json.dumps(document, indent=1).encode())


# -- the host -----------------------------------------------------------------------------------------------------


def machine() -> str:
    """A hash that tells this host from others, and nothing more."""
    try:
        name = MACHINE.read_bytes()
    except OSError:
        name = os.uname().nodename.encode()
    return hashlib.sha256(b"zaudit powercut" + name).hexdigest()[:16]


def disks() -> list[str]:
    """All drives of this host that may count power cycles."""
    with contextlib.suppress(OSError):
        return sorted(each for each in os.listdir(BLOCK) if DISK.fullmatch(each))
    return []


def look_at(host: Host, names: Iterable[str], key: bytes) -> Iterator[tuple[Drive, str]]:
    """What drives are and count now, each with its serial number, which is for this host alone."""
    for name in names:
        if not re.fullmatch(r"[a-z][a-z0-9]{0,30}", name):
            continue
        answer = host.run(Question(("smartctl", "-j", "-x", f"/dev/{name}")))
        told = proof.parse_counters(answer.stdout.decode("utf-8", "replace"))
        serial = str(told.pop("serial", ""))
        identity = hmac.digest(key, serial.encode(), hashlib.sha256).hex()[:16] if serial else ""
        words = {name: each for name, each in told.items() if name in Drive._fields}
        yield Drive(name, identity=identity, **words), serial


def under(state: State) -> list[str]:
    """The kernel's names of the drives that a run is about."""
    if state.target:
        return target.disks_below(target.folder_of(state.target))
    with target.partition(state.raw, write=False) as found:
        return [found.disk]


def standing(state: State, host: Host, production: Sequence[str]) -> list[target.Hazard]:
    """What stands against a run. Raises Stop where the target itself cannot be used."""
    drives = [each for each, _ in look_at(host, under(state), NO_RUN)]
    return list(target.hazards(target.pools(), production, drives))


def describe(state: State, host: Host, production: Sequence[str]) -> tuple[str, list[target.Hazard]]:
    """(what would be written, what stands against it and what so many cuts prove; the hazards)."""
    found = standing(state, host, production)
    profile = PROFILES[state.profile]
    size = state.writers * profile.slots * profile.sectors >> 11
    lines = []
    if state.target:
        where = target.folder_of(state.target)
        lines.append(f"writes {state.writers} files, {size} MiB in all, into a new folder below {harmless(where.path)}")
    if state.raw:
        with target.partition(state.raw, write=False) as raw:
            layouts = target.raw_layouts(raw, "0" * 32, state.writers, control_only=bool(state.target))
            total = sum(layout.size for layout, _ in layouts) >> 20
            lines.append(f"overwrites {total} MiB of {harmless(state.raw)} on {raw.disk}, from its first MiB on")
    else:
        why = "no cut shows that the drive's cache held anything, so none counts as a trial"
        lines.append(f"no control stream (--raw): {why}")
    lines += [
        *(f"hazard: {each.text}" for each in found),
        "before the first cut: put the witness on another circuit, and have a way in without this host",
        "set the firmware to power on after AC loss",
        "a cut can kill a drive: in a test of 2013 one of fifteen died after 136 cuts (Zheng and others, FAST '13)",
        *(
            f"{proof.cuts_for(share)} informative cuts without a loss prove: fewer than {share:.0%} of such cuts lose (95 %)"
            for share in (0.1, 0.05, 0.01)
        ),
    ]
    for rate in (10, 100, 1000):
        words = ", ".join(f"{proof.window(rate, ms / 1000):.0%} at {ms} ms" for ms in (1, 10, 50))
        lines.append(
            f"chance to expose a drive that ignores flushes, at {rate} commits/s, by its write-back time: {words}"
        )
    return "\n".join(lines) + "\n", found


def stored(stores: Iterable[Path]) -> list[Run]:
    """The runs of witnesses. Of one in several stores the one with most checks counts, and then the longest."""
    found: dict[bytes, Run] = {}
    for store in stores:
        with held(str(store)) as folder:
            for _, run in runs(folder, LONGEST << 10):
                before = found.setdefault(run.run, run)
                if (len(run.found), run.size) > (len(before.found), before.size):
                    found[run.run] = run
    return [found[each] for each in sorted(found)]


def collect() -> list[Campaign]:
    """The runs of this host, with the session that waits for its check."""
    kept = (load_record(each) for each in user_files.list_trusted(ledger.folder() / CUTS, ".json", LARGEST))
    found = {each.run: each for each in kept if each}
    with contextlib.suppress(NoRun):
        state = load_state()
        if not state.checked:
            new = Campaign(state.run, state.layer, state.target or state.raw, machine(), (), (), ())
            waits = Gap(state.session, True, ())
            found[state.run] = found.get(state.run, new)._replace(gaps=(waits,))
    return [found[each] for each in sorted(found)]


# -- a session ----------------------------------------------------------------------------------------------------


def write(state: State, key: bytes, host: Host, say: Callable[[str], object]) -> int:
    """A session of writing, until a signal or the power ends it: the exit code. Raises Stop before anything is written."""
    if not state.checked:
        raise Refused("a session waits for its check: zaudit powercut check (or: zaudit powercut resume)")
    drives = [each for each, _ in look_at(host, under(state), key)]
    with contextlib.ExitStack() as stack:
        raw = stack.enter_context(target.partition(state.raw)) if state.raw else None
        if raw and state.uuid and raw.uuid != state.uuid:
            raise TargetError(f"{harmless(state.raw)} is another partition than before: its PARTUUID is {raw.uuid}")
        state = state._replace(uuid=raw.uuid if raw else "")
        folder = stack.enter_context(place.hold(_place(state))) if state.target else None
        link = Link(
            (state.host, state.port), key, bytes.fromhex(state.run), {"boot": ledger.boot_id(), "machine": machine()}
        )
        stack.callback(link.close)
        if link.known.get("session", 0) != state.session:
            raise Refused("the witness knows another session than this host as the last one: begin a new run")
        mark = mark_of(link.run, link.session)
        layouts = list(_layouts(state, mark, raw))
        manifest = {
            "layer": state.layer,
            "subject": harmless(state.target or state.raw),
            "profile": state.profile,
            "zaudit": __version__,
            "kernel": os.uname().release,
            "streams": [codec.plain(layout) for layout, _, _ in layouts],
            "drives": [codec.plain(each) for each in drives],
            "orderly": _orderly(),
            "seed": secrets.randbits(32),
        }

        def media() -> list[Medium]:
            if folder:
                target.become(folder.actor)
            return [
                Medium(raw.fd, layout, flush)
                if raw and on_raw
                else target.create(folder.folder if folder else -1, layout, flush)
                for layout, flush, on_raw in layouts
            ]

        def fill(ended: Callable[[], bool]) -> None:
            try:
                for each in media():
                    if ended():
                        raise Refused("ended before the first commit: nothing waits for a check")
                    each.fill()
                if folder:
                    os.fsync(folder.folder)
            except OSError as error:
                where = harmless(state.target or state.raw)
                raise Full(f"{where}: {error.strerror}: nothing was committed, nothing waits for a check") from None

        def work(ended: Callable[[], bool]) -> None:
            files = media()
            link.send(Kind.OPEN, encoded(manifest))
            link.settle()
            say(
                f"session {link.session} writes to {manifest['subject']}: cut the power when you like; Ctrl-C ends it in order"
            )
            writer = Writer(link, files, int(str(manifest["seed"])))
            writer.run(ended)
            link.send(Kind.STOP)
            link.settle()
            say(f"ended in order after {writer.commits:,} commits: this was no cut")

        if code := child(fill):
            return code
        save_state(state._replace(session=link.session, checked=False))  # from here on there is something to check
        return child(work)


def _layouts(state: State, mark: str, raw: Partition | None) -> Iterator[tuple[Layout, str, bool]]:
    """(stream, how it flushes, whether it lies on the partition)."""
    if state.target:
        profile = PROFILES[state.profile]
        for number in range(state.writers):
            yield target.layout_of(profile, mark, number), profile.flush, False
    if raw:
        for layout, flat in target.raw_layouts(raw, mark, state.writers, control_only=bool(state.target)):
            yield layout, flat.flush, True


def _place(state: State) -> ledger.Place:
    found = next((each for each in ledger.places() if each.id == state.folder and each.run == state.run), None)
    if found is None:
        raise PlaceError("the folder of this run is not on record any more: begin a new run")
    return found


def _mounted(found: ledger.Place, *, gone: bool) -> ledger.Place:
    """Raises Refused where its pool or dataset only needs an import or mount, TargetError where it did not come back. gone:
    the user says that the pool does not import any more."""
    if not found.dataset:
        return found
    pool = harmless(found.dataset.partition("/")[0])
    if ledger.call(("zpool", "list", "-H", "-o", "name", "--", found.dataset.partition("/")[0]))[0]:
        if gone:
            raise TargetError(f"pool {pool} does not import any more")
        raise Refused(
            f"pool {pool} is not imported: zpool import {pool}, then check. Where it does not import any more: "
            "zaudit powercut check --gone"
        )
    code, text = ledger.call(("zfs", "list", "-H", "-o", "mounted", "--", found.dataset))
    if code:
        raise TargetError(f"{harmless(found.dataset)}: {harmless(text.strip())}")
    if text.strip() != "yes":
        raise Refused(f"{harmless(found.dataset)} is not mounted: mount it first, then check")
    return found


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """No other process of this host writes or checks meanwhile. Raises Refused."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with Closing(os.open(ledger.folder() / LOCK, flags, 0o600)) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused("a run of this host still writes: end it first (Ctrl-C, or the cut)") from None
        yield


def forget() -> None:
    """A session that waits for its check waits no more; what was found before stays."""
    with alone():
        (ledger.folder() / STATE).unlink(missing_ok=True)


def begin(state: State) -> State:
    """A new run, with its folder; the one before must have been checked. Raises Stop."""
    with contextlib.suppress(NoRun):
        before = load_state()
        if not before.checked:
            raise Refused("a session of an earlier run waits for its check: zaudit powercut check")
        for each in [each for each in ledger.places() if each.run == before.run]:
            place.remove(each, ledger.call)
    state = state._replace(run=secrets.token_hex(16))
    if state.target:
        where: Folder = target.folder_of(state.target)
        made = place.directory(where.path, where.dataset, state.run)
        state = state._replace(folder=made.id)
    save_state(state)
    return state


# -- after the boot -----------------------------------------------------------------------------------------------


def examine(state: State, key: bytes, host: Host, *, gone: bool = False) -> Campaign:
    """Check the last session, tell the witness, keep the record. gone: an absent pool did not come back. Raises Stop."""
    if not state.session:
        raise NoRun("this run has not written yet: zaudit powercut start")
    hello = {"boot": ledger.boot_id(), "machine": machine(), "checks": True}
    link = Link((state.host, state.port), key, bytes.fromhex(state.run), hello)
    try:
        known = link.known
        if known.get("session") != state.session:
            raise Refused(
                f"the witness has session {harmless(str(known.get('session', 'none'))[:20])} as the last one that wrote, this "
                f"host {state.session}: nothing is judged by another session's log (zaudit clean --powercut forgets this one)"
            )
        acknowledged = witness.acknowledged(known)
        left, lack = _left(state, acknowledged, gone=gone)
        manifest = known.get("manifest")
        before = list(proof.drives(manifest.get("drives") if isinstance(manifest, dict) else None))
        there = (each.name for each in before if (BLOCK / each.name).exists())
        drives = list(look_at(host, there, key))
        found = {
            "session": state.session,
            "boot": ledger.boot_id(),
            "gone": lack,
            "drives": [codec.plain(each) for each, _ in drives],
            "streams": [_summary(each) for each in left],
        }
        link.send(Kind.FOUND, encoded(found))
        link.send(Kind.STOP)
        link.settle()
    finally:
        link.close()
    session = Session(state.session, {"boot": known.get("boot"), "machine": machine()}, proof.as_object(manifest))
    session.stopped = known.get("stopped") is True
    session.streams = streams_of(session.manifest, mark_of(bytes.fromhex(state.run), state.session))
    for number, stream in session.streams.items():
        stream.newest = acknowledged.get(number, Receipts()).newest
        stream.failed = set(acknowledged.get(number, Receipts()).failed)
    result = proof.campaign_of(state.run, machine(), [(session, found)], (), of=[session])
    _keep(result, state.layer, list(proof.tried(state.session, before, drives)))
    save_state(state._replace(checked=True))
    whole = load_record(record_of(state.run))
    assert whole
    return whole


def _left(state: State, acknowledged: dict[int, Receipts], *, gone: bool = False) -> tuple[list[Remains], str]:
    """What is left of each stream, and what did not come back, in words."""
    mark = mark_of(bytes.fromhex(state.run), state.session)
    made = _place(state) if state.target else None
    left: list[Remains] = []
    try:
        with contextlib.ExitStack() as stack:
            raw = stack.enter_context(target.partition(state.raw, write=False)) if state.raw else None
            if raw and raw.uuid != state.uuid:
                raise TargetError(f"{harmless(state.raw)} is another partition than the one that was written")
            folder = stack.enter_context(place.hold(_mounted(made, gone=gone))) if made else None
            for layout, flush, on_raw in _layouts(state, mark, raw):
                if on_raw:
                    assert raw
                    medium = Medium(raw.fd, layout, flush)
                else:
                    assert folder
                    medium = target.open_file(folder.folder, layout)
                    stack.callback(os.close, medium.fd)
                left.append(check(layout, acknowledged.get(layout.stream, Receipts()), medium.read))
    except target.Unusable:
        raise
    except (TargetError, PlaceError) as error:
        return left, str(error)
    except PermissionError as error:
        raise Refused(
            f"{harmless(state.target or state.raw)}: {error.strerror}: run it as the user who began"
        ) from None
    except OSError as error:
        return left, f"{harmless(state.target or state.raw)}: {error.strerror}"
    return left, ""


def _summary(left: Remains) -> dict[str, Any]:
    examples = [
        f"{each.kind}: stream {each.stream}, slot {each.slot}: {each.expected} was acknowledged; there is: {each.found}"
        for each in left.damage[:EXAMPLES]
    ]
    return {
        **{name: getattr(left, name) for name in ("stream", "flushed", "checked", "missing", "newest")},
        "lost": min((each.expected for each in left.damage if each.acknowledged), default=0),
        "damage": Counter(each.kind for each in left.damage),
        "examples": examples,
    }


def calibrate(host: Host) -> str:
    """What an orderly reboot moves: before it, note the counters; after it, keep the difference. In words."""
    path = ledger.folder() / CALIBRATION
    before = proof.as_object(_read(path))
    now = {each.name: each for each, _ in look_at(host, disks(), NO_RUN) if each.cycles is not None}
    if not now:
        raise Refused("no drive of this host shows a count of power cycles (smartctl, as root)")
    if before.get("boot") in (None, ledger.boot_id()) or "counters" not in before:
        noted = {name: [each.identity, each.cycles, each.unsafe or 0] for name, each in now.items()}
        user_files.replace(path, json.dumps({"boot": ledger.boot_id(), "counters": noted}).encode())
        return f"noted {len(noted)} drives: reboot this host in order now, then run zaudit powercut calibrate again"
    moved = {}
    for name, each in now.items():
        match before["counters"].get(name):
            case [identity, int(cycles), int(unsafe)] if identity == each.identity:
                moved[name] = [(each.cycles or 0) - cycles, (each.unsafe or 0) - unsafe]
    user_files.replace(path, json.dumps({"boot": ledger.boot_id(), "moved": moved}).encode())
    words = ", ".join(
        f"{name} {cycles} power cycles and {unsafe} unsafe shutdowns" for name, (cycles, unsafe) in moved.items()
    )
    return f"an orderly reboot moves: {words or 'nothing that is known'}"


def _orderly() -> dict[str, Any]:
    return proof.as_object(proof.as_object(_read(ledger.folder() / CALIBRATION)).get("moved"))
