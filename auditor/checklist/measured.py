"""What a verification says of a line: the links of its chain, and what else it must have shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from auditor.checklist.model import UNMEASURED, Said
from auditor.data.checklists import Line
from auditor.text import harmless, quoted
from auditor.units import duration
from auditor.verify.result import KERNEL_LOG, Run, Verification, together

UPPER = ("dataset", "system calls", "fio", "ZIL")  # links above the devices
ALONE = ("dataset", "system calls", "fio")  # links that no load of others touches
SLOWER = 2.0  # times the median of the first third of a run: slower than that, its end is another
LEAST = 100  # syncs of a third, below which nothing is said of it
LONG, STANDARD = frozenset({"ten minutes", "p99.9"}), frozenset({"two minutes", "log and data"})  # parts that need it


class Verified(NamedTuple):
    """A verification of the same target. profiles: of the engines of the databases that were seen there, by their name."""

    found: Verification
    profiles: Mapping[str, str]

    @property
    def log(self) -> Run | None:
        """The run that stands for the log, where fio said something in it."""
        return next((each for each in self.found.runs if each.purpose == "log" and each.jobs), None)


def command(target: str, parts: tuple[str, ...] = ()) -> str:
    """What makes a verification that can show these parts, the shortest one."""
    length = " --long" if LONG & {*parts} else " --standard" if STANDARD & {*parts} else ""
    return f"zaudit verify {quoted(target)}{length} --record verify.tar.gz"


def told(line: Line, seen: Verified | None, target: str) -> Iterator[Said]:
    """One saying a link and a part. Without a verification one that says so."""
    again = command(target, line.verify)
    if seen is None:
        if line.links or line.verify:
            yield Said("open", "verify", UNMEASURED, again)
        return
    for each in line.links:
        yield _link(each, seen.found, again)
    for each in line.verify:
        said = PARTS[each](seen)
        yield said if said.do or said.answer == "yes" else said._replace(do=again)


def _link(name: str, found: Verification, again: str) -> Said:
    """The worst of the links of this name. Those that a load of others can add to need a chain that was followed whole."""
    chain = found.chain
    below = [each for each in chain.links if each.name not in (*UPPER, KERNEL_LOG)]
    links = below if name == "devices" else [each for each in chain.links if each.name == name]
    for each in links:
        if each.status == "contradicts":
            text = f"{harmless(each.name)}: {harmless(each.text)}"
            return Said("no", "verify", text, "zaudit explain fsync-not-followed", "", "critical")
    for each in links:
        if each.status == "unseen":
            return Said("open", "verify", f"{harmless(each.name)}: {harmless(each.text)}", again)
    if not links:
        return Said("open", "verify", f"{name}: not followed", again)
    if name not in ALONE and chain.outcome != "TRACED":
        why = harmless(chain.reasons[0]) if chain.reasons else "another link lost syncs"
        return Said("open", "verify", f"{name}: {chain.outcome}: {why}", again)
    return Said("yes", "verify", "; ".join(f"{harmless(each.name)}: {harmless(each.text)}" for each in links))


# -- parts --------------------------------------------------------------------------------------------------------


def _lasted(seconds: float, words: str) -> Callable[[Verified], Said]:
    def part(seen: Verified) -> Said:
        log = seen.log
        if log is None:
            return _open("fio said nothing of the run of the log")
        text = f"the run of the log lasted {log.log.seconds:.0f} s"
        return Said("yes", "verify", text) if log.log.seconds >= seconds - 1 else _open(f"{text}, not {words}")

    return part


def _open(text: str) -> Said:
    return Said("open", "verify", text)


def _tail(seen: Verified) -> Said:
    """p99.9 of the run of the log, with samples enough, of syncs that mean something."""
    log = seen.log
    latency = next((each for each in seen.found.latencies if log and each.run == log.name), None)
    if latency is None:
        return _open("no latency of the log was measured")
    if latency.why_not:
        return _open(f"latency is not judged: {harmless(latency.why_not)}")
    found = next((each for each in latency.percentiles if each.q == 0.999), None)
    if found is None or found.ns is None:
        return _open(f"p99.9: {harmless(found.why) if found else 'not counted'}")
    return Said("yes", "verify", f"p99.9 {duration(found.ns)}, {found.beyond} samples beyond it")


def _steady(seen: Verified) -> Said:
    """The last third of the run against the first: drives that write to a quick buffer first end slower than they began."""
    log = seen.log
    pieces = log.timeline if log else ()
    third = len(pieces) // 3
    first, last = (together(each.syncs for each in some) for some in (pieces[:third], pieces[len(pieces) - third :]))
    began, ended = first.percentile_ns(0.5), last.percentile_ns(0.5)
    if log is None or min(first.samples, last.samples) < LEAST or not began or not ended:
        return _open("too few syncs to tell its end from its beginning")
    text = f"a median sync took {duration(began)} in the first third of the run, {duration(ended)} in the last"
    if ended <= SLOWER * began:
        return Said("yes", "verify", text)
    return Said("no", "verify", text, "Find what fills or heats up: zpool iostat -vl 1, smartctl -x", "", "medium")


def _log_and_data(seen: Verified) -> Said:
    there = {each.purpose for each in seen.found.runs if each.jobs}
    if missing := [each for each in ("log", "data") if each not in there]:
        return _open(f"{' and '.join(missing)} not measured")
    names = ", ".join(f"{harmless(each.name)} ({each.purpose})" for each in seen.found.runs if each.jobs)
    return Said("yes", "verify", f"measured apart: {names}")


def _profile(seen: Verified) -> Said:
    """Whether it wrote as the databases of the target do."""
    wrote = harmless(seen.found.profile)
    if not seen.profiles:
        again = f"zaudit checklist {quoted(seen.found.target)} --db NAME=DIR"
        return _open(f"it wrote as {wrote}; which database runs here was not seen")._replace(do=again)
    if seen.found.profile.endswith(".fio"):
        text = f"whether {wrote} writes as {', '.join(seen.profiles)} does"
        return Said("open", "person", text, "ask whoever wrote it")
    if other := [engine for engine, profile in seen.profiles.items() if profile != seen.found.profile]:
        text = f"it wrote as {wrote}, and {', '.join(other)} runs here"
        return _open(text)._replace(do=_as(seen.found.target, seen.profiles[other[0]]))
    return Said("yes", "verify", f"it wrote as {wrote}, and {', '.join(seen.profiles)} runs here")


def _as(target: str, profile: str) -> str:
    return (
        f"zaudit verify {quoted(target)} --profile {profile} --record verify.tar.gz" if profile else "ask for a profile"
    )


def _witnesses(seen: Verified) -> Said:
    log = seen.log
    if log is None:
        return _open("fio said nothing of the run of the log")
    missing = [
        what
        for what, there in (
            ("the devices of the log", any(each.zil and each.flushes is not None for each in log.devices)),
            ("transaction groups", bool(log.txgs)),
            ("the throttle", bool(log.counters)),
            ("latencies", bool(log.latency.samples)),
        )
        if not there
    ]
    if missing or log.faults:
        return _open(f"not seen: {', '.join([*missing, *map(harmless, log.faults)])}")
    devices = ", ".join(harmless(each.disk) for each in log.devices)
    text = f"{devices}; {len(log.txgs)} transaction groups; {log.log.cpu_percent:.0f} % of a core"
    return Said("yes", "verify", text)


PARTS: dict[str, Callable[[Verified], Said]] = {
    "two minutes": _lasted(120, "two minutes"),
    "ten minutes": _lasted(600, "ten minutes"),
    "p99.9": _tail,
    "steady": _steady,
    "log and data": _log_and_data,
    "profile": _profile,
    "witnesses": _witnesses,
}
