"""What a diagnosis says of a line: what the load that is there told while it was watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from auditor.checklist.model import UNWATCHED, Said
from auditor.data.checklists import Line
from auditor.diagnose.diagnosis import Cause, Diagnosis
from auditor.text import harmless, quoted
from auditor.units import duration

OF_THE_LOG = ("slow-log-leg", "log-device-shared", "past-the-slog")  # causes that speak against log devices
FAILS = (
    "suspended",
    "device-hung",
    "device-fails",
    "txg-hangs",
    "fallback",
)  # beside which no log block shows what a log does
PART = 0.05  # of the commits: a thread that makes fewer is not one of several sessions
LONGER = " --seconds 300"


def command(target: str, more: str = "") -> str:
    """What makes a diagnosis."""
    return f"zaudit diagnose {quoted(target)}{more} --record diagnose.tar.gz"


def told(line: Line, found: Diagnosis | None, target: str) -> Iterator[Said]:
    """One saying a part. Without a diagnosis one that says so."""
    if not line.diagnose:
        return
    if found is None:
        yield Said("open", "diagnose", UNWATCHED, command(target))
        return
    for each in line.diagnose:
        said = PARTS[each](found)
        yield said._replace(do=command(target, LONGER)) if said.answer == "open" and not said.do else said


def _open(text: str) -> Said:
    return Said("open", "diagnose", text)


def _no(cause: Cause, *, grave: bool) -> Said:
    fix = harmless(cause.fix) or f"zaudit explain {cause.rule}"
    return Said("no", "diagnose", harmless(cause.text), fix, cause.rule, "critical" if grave else "medium")


def _untraced(found: Diagnosis) -> Said | None:
    """What to say where no commit was timed; None where they were."""
    if found.outcome == "NOBODY COMMITS":
        return _open("nobody committed meanwhile")
    if found.outcome == "NOT DURABLE":
        return _open(harmless(found.answer))
    if found.traced is None or found.mean_ns is None:
        return _open(harmless(next(iter(found.reasons), "how long a commit takes was not seen")))
    return None


def _durable(found: Diagnosis) -> Said:
    if found.outcome == "NOT DURABLE":
        return _no(found.causes[0], grave=True)
    if not found.commits:
        return _open("nobody committed meanwhile" if found.commits == 0 else "whether anybody commits was not seen")
    return Said("yes", "diagnose", f"the ZIL counted {found.commits:,} commits in {found.seconds:.0f} s")


def _several(found: Diagnosis) -> Said:
    if said := _untraced(found):
        return said
    busy = [each for each in found.committers if each.commits >= PART * (found.traced or 0)]
    if len(busy) < 2:
        return _open("one thread alone committed meanwhile")
    return Said(
        "yes", "diagnose", f"{len(busy)} threads, {found.traced:,} commits, {duration(found.mean_ns or 0.0)} each"
    )


def _log_devices(found: Diagnosis) -> Said:
    for cause in found.causes:
        if cause.id in OF_THE_LOG:
            return _no(cause, grave=False)
    if failing := next((each for each in found.causes if each.id in FAILS), None):
        return _open(harmless(failing.text))
    legs = [each for each in found.devices if each.log]
    if found.outcome not in ("NOTHING STANDS OUT", "CAUSE"):
        return _open(harmless(found.answer))
    if found.reasons:
        return _open(harmless(found.reasons[0]))
    if not legs or any(each.kind != "log" or each.block_ns is None for each in legs):
        return _open("how long log blocks took on the log devices was not seen")
    took = ", ".join(f"{harmless(each.device)} {duration(each.block_ns or 0.0)}" for each in legs)
    return Said("yes", "diagnose", f"a log block takes: {took}")


def _tail(found: Diagnosis) -> Said:
    if said := _untraced(found):
        return said
    ns = found.latency.judged(0.99)
    if ns is None:
        return _open(f"{found.latency.samples:,} commits are too few for p99")
    return Said("yes", "diagnose", f"p99 at most {duration(ns)} of {found.latency.samples:,} commits")


def _nothing(found: Diagnosis) -> Said:
    if found.outcome == "NOTHING STANDS OUT":
        return Said("yes", "diagnose", harmless(found.answer))
    if found.outcome in ("CAUSE", "NOT DURABLE") and found.causes:
        return _no(found.causes[0], grave=found.outcome == "NOT DURABLE")
    return _open(harmless(found.answer))


PARTS: dict[str, Callable[[Diagnosis], Said]] = {
    "durable": _durable,
    "several": _several,
    "log devices": _log_devices,
    "tail": _tail,
    "nothing stands out": _nothing,
}
