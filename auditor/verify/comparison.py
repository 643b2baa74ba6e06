"""Several runs next to each other: before and after, and the sweep over amounts written for one sync. Arithmetic."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from statistics import NormalDist, median
from typing import Any, Literal, NamedTuple

from auditor import codec
from auditor.codec import CodecError, short
from auditor.text import VALUES, crowded, size, valid_unicode
from auditor.verify.result import LEAST_BEYOND, Histogram, Run, Verification, together

# The result of a verification as one JSON document, which ``--compare`` reads again.

SCHEMA = "zaudit-verify/1"
LARGEST = 64 * 2**20  # characters of a document that is read; a run of an hour has a tenth of them


def document(verification: Verification) -> dict[str, Any]:
    """The verification as JSON data, after ``zaudit schema verify``. Bytes that were not UTF-8 are spelt out."""
    return {"schema": SCHEMA, "verification": codec.plain(verification, valid_unicode)}


def load(text: str) -> Verification:
    """The verification in a document; other members are ignored. Raises CodecError."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(members := dict(pairs)) != len(pairs):
            raise CodecError("an object has the same member twice")
        return members

    if len(text) > LARGEST:
        raise CodecError(f"longer than {LARGEST >> 20} MiB: not a result of zaudit verify")
    if crowded(text):
        raise CodecError(f"more than {VALUES:,} values: not a result of zaudit verify")
    try:
        data = json.loads(text, object_pairs_hook=unique)
    except CodecError:
        raise
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else short(str(error))
        raise CodecError(f"not JSON: {why}") from None
    if not isinstance(data, dict) or "schema" not in data:
        raise CodecError('no "schema" in it: not a result of zaudit verify')
    if data["schema"] != SCHEMA:
        raise CodecError(f"not a result of zaudit verify, or one of a newer release: this zaudit reads {SCHEMA}")
    if "verification" not in data:
        raise CodecError('"verification" is missing')
    return codec.load(Verification, data["verification"], "verification")


# Before and after: is a percentile slower or faster by more than noise?
#
# Syncs are not independent: what delays one (a transaction group, a neighbour) delays the next hundred. A test that counts
# samples calls noise a change. Hence, per percentile q:
#
# 1. Cut a run into at most 12 blocks of at least one transaction group (and 5 s, zfs_txg_timeout), each one observation
# (batch means, Schmeiser 1982: more than 30 gain little). The share of syncs above the percentile is a ratio of two sums
# over blocks; its standard error is that of cluster sampling (ratio estimate), with Student's t for blocks - 1.
#
# 2. Read the interval of that share back through the distribution: that is the interval of the percentile (Woodruff 1952,
# Confidence Intervals for Medians and Other Position Measures). It need not be symmetric. It has no upper end where the
# share may be smaller than the samples can show.
#
# 3. Both intervals, in logarithms, give that of the ratio after/before (MOVER: Zou and Donner 2008).
#
# The level is 95 % for all percentiles of all runs together (Bonferroni). Below 5 % nothing counts as a difference: that is
# three buckets of fio's histogram. One run each cannot show what differs between runs as a whole (another place on the
# disks, another neighbour); the reports say so.

Change = Literal["slower", "faster", "within noise", "cannot tell"]
COMPARED = (0.5, 0.95, 0.99, 0.999)
LEAST_BLOCKS = 6  # a quick run has seven
MOST_BLOCKS = 12
BLOCK_S = 5.0  # at least: zfs_txg_timeout, the rhythm that makes neighbours alike
LEAST_RATIO = 1.05
ERROR = 0.05  # chance that a comparison of two equal pools names any difference


class Row(NamedTuple):
    """One percentile of one run. before_ns, after_ns: None without enough samples. ratio: after/before, between low and
    high; high None: no upper end. why: of "cannot tell"."""

    run: str
    q: float
    before_ns: int | None
    after_ns: int | None
    ratio: float | None
    low: float | None
    high: float | None
    change: Change
    why: str = ""


class Comparison(NamedTuple):
    """before, after: what was compared, in words. differs: why nothing is compared; then there are no rows. notes: what to
    know next to the rows."""

    before: str
    after: str
    differs: tuple[str, ...]
    notes: tuple[str, ...]
    rows: tuple[Row, ...]


def compare(before: Verification, after: Verification) -> Comparison:
    """Percentile by percentile, where both answer the same question; else what differs."""
    names = _called(before), _called(after)
    if differs := tuple(_differs(before, after)):
        return Comparison(*names, differs, (), ())
    both = [(old, new) for old, new in _pairs(before, after) if _judged(before, old) and _judged(after, new)]
    # the level is shared by what can be judged, so that a run which cannot be costs the others nothing
    level = 1 - ERROR / max(len(both) * len(COMPARED), 1)
    rows = tuple(
        _row(old, new, q, level, _unfit_runs(before, old, "before") or _unfit_runs(after, new, "after"))
        for old, new in both
        for q in COMPARED
    )
    return Comparison(*names, (), tuple(_notes(before, after, both)), rows)


# -- may they be compared ----------------------------------------------------------------------------------------------


def _differs(before: Verification, after: Verification) -> Iterator[str]:
    for what, one, other in (
        ("profile", before.profile, after.profile),
        ("length", before.length, after.length),
        ("size of the files", str(before.size), str(after.size)),
    ):
        if one != other:
            yield f"the {what}: {one} before, {other} after"
    if before.job_file != after.job_file:
        yield f"the text of the profile {before.profile}"
    pairs = _pairs(before, after)
    for old_run, new_run in pairs:
        old_words, new_words = _options(old_run), _options(new_run)
        for word in sorted(old_words.keys() | new_words.keys()):
            if old_words.get(word) != new_words.get(word):
                one, other = old_words.get(word, "not given"), new_words.get(word, "not given")
                yield f"{word} of run {old_run.name}: {one} before, {other} after"
        yield from _jobs_differ(old_run, new_run)
    if not pairs:
        yield "the runs: none of them is in both"


def _options(run: Run) -> dict[str, str]:
    """What was asked of fio, without where: its options but those with a path."""
    words: dict[str, str] = {}
    job = ""
    for word in run.argv[1:]:
        option, _, value = word.partition("=")
        if option == "--name":
            job = f" of job {value}"
        elif value and "/" not in value:
            words[f"{option}{job}"] = value
    return words


def _jobs_differ(before: Run, after: Run) -> Iterator[str]:
    """A run of fixed time may write more, and one of fixed size may end sooner; one that does neither is another job."""
    if [job.name for job in before.jobs] != [job.name for job in after.jobs]:
        yield f"the jobs of run {before.name}"
        return
    for old, new in zip(before.jobs, after.jobs, strict=True):
        where = f"job {old.name} of run {before.name}"
        if old.sync != new.sync:
            yield f"{where}: synced by {old.sync} before, by {new.sync} after"
        if _apart(old.write_bytes / max(old.writes, 1), new.write_bytes / max(new.writes, 1)):
            yield f"the size of a write of {where}"
        if _apart(old.seconds, new.seconds) and _apart(old.write_bytes, new.write_bytes):
            yield (
                f"{where}: {old.seconds:.0f} s and {old.write_bytes >> 20:,} MiB before, "
                f"{new.seconds:.0f} s and {new.write_bytes >> 20:,} MiB after"
            )


def _apart(one: float, other: float) -> bool:
    """By more than a fifth."""
    return max(one, other) > 1.2 * min(one, other)


def _unfit_runs(verification: Verification, run: Run, when: str) -> str:
    """Why no latency of a run may be compared, or empty."""
    if verification.chain.outcome == "CONTRADICTED":
        return f"{when}: the chain is CONTRADICTED, these are not latencies of stable storage"
    return next(
        (f"{when}: {each.why_not}" for each in verification.latencies if each.run == run.name and each.why_not), ""
    )


def _notes(before: Verification, after: Verification, both: Sequence[tuple[Run, Run]]) -> Iterator[str]:
    for what, old, new in (
        ("dataset", before.dataset, after.dataset),
        ("version of fio", before.fio, after.fio),
        ("verdict of the chain", before.chain.outcome, after.chain.outcome),
    ):
        if old != new:
            yield f"The {what} differs: {old} before, {new} after."
    compared = {old.name for old, _ in both}
    for when, verification in (("before", before), ("after", after)):
        alone = [run.name for run in verification.runs if run.name not in compared]
        if alone:
            yield f"Not compared, {when} alone or without a latency: {', '.join(alone)}."
    yield (
        "One run each cannot show how much runs differ on an unchanged pool; a difference that matters is worth a "
        "second pair."
    )


def _called(verification: Verification) -> str:
    return f"{verification.dataset}, {verification.profile} {verification.length}"


def _pairs(before: Verification, after: Verification) -> list[tuple[Run, Run]]:
    later = {run.name: run for run in reversed(after.runs)}
    return [(run, later[run.name]) for run in before.runs if run.name in later]


def _judged(verification: Verification, run: Run) -> bool:
    """Whether a run says anything of latency: not one under strace."""
    return bool(run.latency.samples) and any(each.run == run.name for each in verification.latencies)


def _row(before: Run, after: Run, q: float, level: float, unfit: str) -> Row:
    old, new = before.latency.judged(q), after.latency.judged(q)
    untold = Row(before.name, q, old, new, None, None, None, "cannot tell", unfit)
    if unfit:
        return untold
    if old is None or new is None:
        fewest = min(before.latency.beyond(q), after.latency.beyond(q))
        return untold._replace(why=f"{fewest} samples lie beyond it, {LEAST_BEYOND} are needed")
    ratio = new / max(old, 1)
    one, other = interval(before, q, level), interval(after, q, level)
    if isinstance(one, str) or isinstance(other, str):
        return untold._replace(ratio=ratio, why=one if isinstance(one, str) else str(other))
    low, high = ratio_between(old, one, new, other)
    change: Change = "within noise"
    if low > 1 and ratio >= LEAST_RATIO:
        change = "slower"
    elif high < 1 and ratio <= 1 / LEAST_RATIO:
        change = "faster"
    return Row(before.name, q, old, new, ratio, low, None if math.isinf(high) else high, change)


def interval(run: Run, q: float, level: float) -> tuple[float, float] | str:
    """The interval of a percentile in nanoseconds (the upper end may be infinite), or why it is unknown."""
    parts = blocks(run)
    if len(parts) < LEAST_BLOCKS:
        return f"{len(parts)} pieces of a transaction group or {BLOCK_S:g} s each, {LEAST_BLOCKS} are needed"
    whole = together(parts)
    at = whole.percentile_ns(q)
    if at is None or whole.beyond(q) < LEAST_BEYOND:
        return f"{whole.beyond(q)} samples of the timeline lie beyond it, {LEAST_BEYOND} are needed"
    count, samples = len(parts), whole.samples
    above = [part.share_above(at) * part.samples for part in parts]
    share = sum(above) / samples
    squares = sum((each - share * part.samples) ** 2 for each, part in zip(above, parts, strict=True))
    error = math.sqrt(squares * count / (count - 1)) / samples
    reach = student(1 - (1 - level) / 2, count - 1) * max(error, math.sqrt(share * (1 - share) / samples))
    low = whole.percentile_ns(max(q - reach, 0.0)) or at
    high = whole.percentile_ns(q + reach) if q + reach < 1 - 1 / samples else None
    return float(low), math.inf if high is None else float(high)


def blocks(run: Run) -> list[Histogram]:
    """The timeline in pieces of equal length, each at least a transaction group and BLOCK_S; a short rest is left out."""
    slices = [each for each in run.timeline if each.to_s > each.at_s >= 0]
    if not slices:
        return []
    born = sorted(txg.at_s for txg in run.txgs)
    gaps = [later - earlier for earlier, later in pairwise(born) if later > earlier]
    longest_slice = max(each.to_s - each.at_s for each in slices)
    end = max(each.to_s for each in slices)
    length = max(BLOCK_S, median(gaps) if gaps else BLOCK_S, longest_slice, end / MOST_BLOCKS)
    pieces: dict[int, list[Histogram]] = {}
    for each in slices:
        piece = int((each.at_s + each.to_s) / 2 / length)
        if (piece + 1) * length <= end + longest_slice / 2:
            pieces.setdefault(piece, []).append(each.syncs)
    return [histogram for _, part in sorted(pieces.items()) if (histogram := together(part)).samples]


def ratio_between(
    before: float, first: tuple[float, float], after: float, second: tuple[float, float]
) -> tuple[float, float]:
    """The interval of after/before from that of each (MOVER on logarithms); the upper end may be infinite."""
    old, old_low, old_high = (math.log(max(each, 1.0)) for each in (before, *first))
    new, new_low, new_high = (math.log(max(each, 1.0)) for each in (after, *second))
    down = math.hypot(new - new_low, old_high - old)
    up = math.hypot(new_high - new, old - old_low)
    return math.exp(new - old - down), math.inf if math.isinf(up) else math.exp(new - old + up)


def student(p: float, freedom: int) -> float:
    """The quantile p of Student's t: expansion 26.7.5 of Abramowitz and Stegun, within 1 % from 7 degrees on to 99.9 %."""
    x = NormalDist().inv_cdf(p)
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    added: float = sum(term / freedom ** (i + 1) for i, term in enumerate(terms))
    return x + added


# ``--sweep``: what a sync costs, and above which amount group commit no longer pays.
#
# Each trial writes the same amount with a sync at the end only, and every 100 MiB, 10 MiB ... 16 KiB. Each sync adds its
# own time. The knee is the interval at which the syncs take as long as the writing: the whole takes twice as long as "at
# the end". Below it a session waits for syncs, above it for bytes.
#
# Trials scatter. A step lies above the knee only when its fastest trial takes more than twice the slowest one "at the end",
# below only when its slowest takes less than twice the fastest. Between the two the knee is a range.

LEAST_TRIALS = 3
TIMES = 2.0  # of "at the end", where the syncs take as long as the writing
SCATTER = 1.5  # slowest over fastest "at the end", beyond which nothing is founded on it
INTERVALS = tuple(size << 10 for size in (100 * 1024, 10 * 1024, 1024, 256, 64, 16))  # bytes


class Step(NamedTuple):
    """The amount once a trial. every: bytes between two fdatasyncs; 0: one at the end; None: never. seconds: of each
    trial."""

    every: int | None
    seconds: tuple[float, ...]

    @property
    def median_s(self) -> float:
        return median(self.seconds)


class Sweep(NamedTuple):
    """amount: bytes written in each trial. steps: in the order never, at the end, then ever more often."""

    amount: int
    steps: tuple[Step, ...]


class Knee(NamedTuple):
    """between: bytes from a step clearly below the knee to one clearly above it, (smaller, larger). The smaller is 0 when
    no step reached the knee, the larger None when all did. at: best guess between them, by the medians. sync_ms: what one
    sync adds. worth: how many times faster the largest interval is than the smallest. why_not: why between is None."""

    between: tuple[int, int | None] | None
    at: int | None
    sync_ms: float | None
    worth: float | None
    says: tuple[str, ...]
    why_not: str = ""


def find(sweep: Sweep) -> Knee:
    ends = [step for step in sweep.steps if step.every == 0]
    steps = sorted((step for step in sweep.steps if step.every), key=lambda step: -(step.every or 0))  # longest first
    if why_not := _unfit_sweep(sweep, ends, steps):
        return Knee(None, None, None, None, (f"The knee cannot be named: {why_not}.",), why_not)
    end, shortest = ends[0], steps[-1]
    # on every step from "small" on even the fastest trial is above the knee, up to "large" even the slowest is below it
    above = list(takewhile(lambda step: min(step.seconds) > TIMES * max(end.seconds), reversed(steps)))
    below = list(takewhile(lambda step: max(step.seconds) < TIMES * min(end.seconds), steps))
    between = above[-1].every or 0 if above else 0, below[-1].every if below else None
    at, worth, sync_ms = _crossing(end, steps), shortest.median_s / steps[0].median_s, None
    if shortest.every and min(shortest.seconds) > max(end.seconds):  # else what a sync adds is lost in the scatter
        sync_ms = (shortest.median_s - end.median_s) / (sweep.amount / shortest.every) * 1e3
    says = (_where(between, steps), *_worth(sweep.amount, end, steps, at, sync_ms, worth))
    return Knee(between, at, sync_ms, worth, says)


def _unfit_sweep(sweep: Sweep, ends: Sequence[Step], steps: Sequence[Step]) -> str:
    if sweep.amount <= 0:
        return "no amount was written"
    if any(not math.isfinite(each) or each <= 0 for step in sweep.steps for each in step.seconds):
        return "a trial took no time"
    if len(ends) != 1 or len(steps) < 2 or len({step.every for step in steps}) != len(steps):
        return "it needs one step with a sync at the end and two with others between"
    if few := [step for step in (*ends, *steps) if len(step.seconds) < LEAST_TRIALS]:
        return f"{named(few[0].every)} was tried {len(few[0].seconds)} times, {LEAST_TRIALS} are needed"
    fastest, slowest = min(ends[0].seconds), max(ends[0].seconds)
    if slowest / fastest > SCATTER:
        return (
            f"the trials with one sync at the end took from {fastest:.3g} to {slowest:.3g} s: "
            "something else was at work on the pool"
        )
    return ""


def _crossing(end: Step, steps: Sequence[Step]) -> int | None:
    """Where the syncs, by the medians, take as long as the writing, interpolated in logarithms; None when not enclosed."""
    limit = (TIMES - 1) * end.median_s
    for large, small in pairwise(steps):
        below, above = large.median_s - end.median_s, small.median_s - end.median_s
        if below < limit <= above:
            low, high = math.log(small.every or 1), math.log(large.every or 1)
            # a step that adds nothing measurable founds no slope: then one sync costs the same, however long the interval
            slope = (high - low) / math.log(above / below) if below > 0 else 1.0
            return round(math.exp(min(low + slope * math.log(above / limit), high)))
    return None


def _where(between: tuple[int, int | None], steps: Sequence[Step]) -> str:
    small, large = between
    if large is None and small == steps[0].every:
        return f"No knee: even a sync every {size(small)} takes more time than the writing."
    if small == 0 and large == steps[-1].every:
        return f"No knee down to a sync every {size(large or 0)}: writing takes more time than the syncs."
    if large is None:
        return f"The knee lies above a sync every {size(small)}; where, the trials scatter too much to tell."
    if small == 0:
        return f"The knee lies below a sync every {size(large)}; where, the trials scatter too much to tell."
    return (
        f"The knee lies between a sync every {size(large)} and every {size(small)}: from there on the syncs take longer than "
        "the writing."
    )


def _worth(
    amount: int, end: Step, steps: Sequence[Step], at: int | None, sync_ms: float | None, worth: float
) -> list[str]:
    longest, shortest = steps[0].every or 0, steps[-1].every or 0
    if sync_ms is None:
        return [
            f"A sync every {size(shortest)} costs no time that stands out of the scatter: group commit is worth nothing."
        ]
    says = []
    if at is not None:
        says.append(
            f"By the medians it is near {size(at)}: commits of many sessions that share a sync are nearly free up to that "
            "amount together."
        )
    says.append(
        f"One sync adds {sync_ms:.3g} ms: a session that syncs every {size(shortest)} reaches at most "
        f"{1e3 / sync_ms:,.0f} commits/s, and {amount / shortest / steps[-1].median_s:,.0f} with the writing."
    )
    says.append(
        f"Group commit is worth up to {worth:.1f} times: {size(amount)} took {steps[-1].median_s:.3g} s with a sync every "
        f"{size(shortest)}, {steps[0].median_s:.3g} s every {size(longest)}, {end.median_s:.3g} s with one at the end."
    )
    return says


def named(every: int | None) -> str:
    """never, at the end, every 64 KiB."""
    return "never" if every is None else f"every {size(every)}" if every else "at the end"
