"""A verification on one screen: a trial as numbers, chain and latencies, and the facts of its runs for the rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from auditor import audit
from auditor.data.platforms import ANY, filled
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Reason, Subject, Unknown, known, unknown, word_of
from auditor.judge.finding import RANK, Finding
from auditor.judge.policy import LeftOut
from auditor.judge.rule import Rule, Severity
from auditor.model.run import FACTS
from auditor.report.model import Report
from auditor.text import duration, harmless
from auditor.verify import chain, fio, profile, result
from auditor.verify.comparison import Comparison, Sweep, compare
from auditor.verify.profile import Profile, Section
from auditor.verify.result import FOREIGN_LOAD, Chain, Device, Latency, Run, Slo, Verification
from auditor.verify.trial import UNSEEN, Trial

# What a run shows of each leaf: whether flushes reach its disks. The counters since boot are often too young to tell; a run
# that made thousands of syncs is not, and where no setting explains a loss, this is what names the way out (``zpool reopen``).


def leaf_facts(run: Run, seen: Chain, pool: Subject, facts: Facts) -> Iterator[Fact]:
    """``leaf.flushes_reach_disk``: False where one disk lost its flushes in this run, True where each was seen to get them and
    the counters since boot left it open, and nobody else was seen to flush it. run: the log run, which the chain followed."""
    foreign = [reason for reason in seen.reasons if reason.startswith(FOREIGN_LOAD)]
    shown = {device.disk: _shown(device, seen) for device in run.devices}
    shared = {disk for disk in shown if any(f"flushes of {harmless(disk)} " in reason for reason in foreign)}
    for name in dict.fromkeys(leaf for device in run.devices for leaf in device.leaves):
        leaf = Subject("leaf", name, pool.name)
        found = [shown.get(disk.name) for disk in facts.linked(leaf, "disks")]
        lost = tuple(piece for each in found if each and each.value is False for piece in each.evidence)
        if lost:
            yield Fact(leaf, "flushes_reach_disk", Known(False, lost))
        elif shared & {disk.name for disk in facts.linked(leaf, "disks")}:
            continue
        elif found and all(found) and isinstance(facts.get(leaf, "flushes_reach_disk"), Unknown):
            got = tuple(piece for each in found if each for piece in each.evidence)
            yield Fact(leaf, "flushes_reach_disk", Known(True, got))


def _shown(device: Device, seen: Chain) -> Known | None:
    """Of one disk, where its link says so by flushes; None where it needs none, was not written to or was not seen."""
    link = next((each for each in seen.links if each.name == harmless(device.disk)), None)
    if link is None or device.flushes is None or not device.writes or device.volatile is False:
        return None
    text = f"{device.disk}: {device.flushes:,} flushes for {device.writes:,} writes while sync writes were followed"
    evidence = (Evidence(text, f"cat /sys/block/{device.disk}/stat   # fields 16 and 5"),)
    if link.status == "contradicts" and device.volatile:
        return Known(False, evidence)
    return Known(True, evidence) if link.status == "accounts" and device.flushes else None


# What a verification adds to the facts: each run of fio is a subject, judged by rules like everything else.

# Least median of a write and its flush that such a device can honestly have, in microseconds (knowledge of the drives'
# classes: a flash program takes longer than a volatile buffer, a platter has to turn). Generous, so that it is an alarm.
FLOOR_ANY_US = 10.0
FLOOR_US = {"volatile flash": 150.0, "platter": 1000.0}
ABOVE_DEVICES = ("dataset", "system calls", "fio", "ZIL")  # links of the chain
THROTTLE = ("dmu_tx_dirty_delay", "dmu_tx_dirty_over_max")  # module/zfs/dmu_tx.c: delayed, and stopped


def run_facts(trial: Trial, runs: Sequence[Run], profile: Profile, seen: Chain, facts: Facts) -> Iterator[Fact]:
    """The facts of every run but that under strace, and the link to them. (objectives_met: :func:`met`)"""
    subjects = [Subject("run", run.name) for run in runs if run.purpose != "calls"]
    yield Fact(HOST, "runs", Known(tuple(subjects), ()))
    for run in runs:
        if run.purpose != "calls":
            subject = Subject("run", run.name)
            section = _section(run, profile)
            found = dict(_facts(run, section, trial, seen, facts, profile))
            for name in FACTS:
                if name != "objectives_met":
                    yield Fact(subject, name, found.get(name) or unknown(f"run {run.name}: {_no_fio(run)}"))


def _section(run: Run, profile: Profile) -> Section:
    """What the first job of a run does; of a run in which fio said nothing, what stands for the log."""
    name = run.jobs[0].name if run.jobs else run.name
    found = next((each for each in profile.sections if each.name == name), None) or profile.of("log")
    assert found is not None  # parse() sees to that
    return found


def _no_fio(run: Run) -> str:
    return "; ".join(run.faults) or "fio said nothing of it"


def _facts(
    run: Run, section: Section, trial: Trial, seen: Chain, facts: Facts, profile: Profile
) -> Iterator[tuple[str, Judged]]:
    pool = Subject("pool", trial.target.partition("/")[0])
    yield "purpose", known(run.purpose, f"[{run.name}] of {trial.profile}: {section.text or run.purpose}")
    yield "dataset", known(Subject("dataset", trial.target), "")
    yield "pool", known(pool, "")
    yield "followed", _followed(run, seen, word_of(facts.get(HOST, "platform"), ANY))
    yield "unflushed", _unflushed(run, seen)
    yield "fio_ended_well", _ended_well(run)
    yield "scan_ran", _scan(trial)
    yield "foreign_load", _foreign(run, trial, facts)
    yield from _options(section, trial)
    if not run.jobs:
        return
    job = run.log
    for name, count in (("syncs", job.syncs), ("writes", job.writes), ("reads", job.reads)):
        yield name, known(count, f"fio: {count} {name}")
    yield "seconds", known(job.seconds, f"{job.seconds:.0f} s")
    yield "throttled", _throttled(run)
    yield "thermal_throttled", _thermal(run, facts)
    yield from _latency(run, profile, pool, facts)
    yield from _written(run)


def _throttled(run: Run) -> Judged:
    """Both ways in which the throttle holds a transaction back: one of the two alone says nothing of the other."""
    if missing := [name for name in THROTTLE if name not in run.counters]:
        return unknown(f"{', '.join(missing)} of /proc/spl/kstat/zfs/dmu_tx: not seen before and after the run")
    count = sum(run.counters[name] for name in THROTTLE)
    return known(count, f"{count} transactions held back meanwhile", "cat /proc/spl/kstat/zfs/dmu_tx")


def _scan(trial: Trial) -> Judged:
    if trial.scan == UNSEEN:
        return unknown("zpool status did not say whether a scrub or resilver ran meanwhile")
    return known(bool(trial.scan), f"a {trial.scan} runs" if trial.scan else "no scrub or resilver ran", "zpool status")


def _foreign(run: Run, trial: Trial, facts: Facts) -> Judged:
    if not run.jobs:
        return unknown(f"run {run.name}: {_no_fio(run)}")
    if others := tuple(chain.foreign(run, trial, facts)):
        return known(True, "; ".join(others))
    if run.zil is None:
        return unknown(f"run {run.name}: no kstat of the ZIL could be read before and after it")
    if unseen := tuple(chain.unwatched(run)):
        return Unknown(tuple(map(Reason, unseen)))
    return known(False, "no commits or writes of others were seen")


def _followed(run: Run, seen: Chain, platform: str) -> Judged:
    if run.purpose != "log":
        return unknown(f"run {run.name}: only the log run is followed")
    if seen.outcome == "INCONCLUSIVE":
        return Unknown(tuple(Reason(each, _remedy(each, platform)) for each in seen.reasons))
    wrong = [link for link in seen.links if link.status == "contradicts"]
    return known(seen.outcome == "TRACED", "; ".join(f"{link.name}: {link.text}" for link in wrong or seen.links))


def _unflushed(run: Run, seen: Chain) -> Judged:
    """What a device did not flush survives a crash of the host, which leaves the drives their power."""
    if run.purpose != "log":
        return unknown(f"run {run.name}: only the log run is followed")
    if seen.outcome == "INCONCLUSIVE":
        return Unknown(tuple(map(Reason, seen.reasons)))
    wrong = {link.name for link in seen.links if link.status == "contradicts"}
    if not wrong or wrong & set(ABOVE_DEVICES):
        return Known((), ())
    disks = [device.disk for device in run.devices]
    named = [disk for disk in disks if harmless(disk) in wrong]
    found = named if len(named) == len(wrong) else disks  # a class of vdevs, and the kernel's log, name none
    return known(
        tuple(Subject("disk", disk) for disk in found), f"flushes of {', '.join(map(harmless, found))} are missing"
    )


def _remedy(reason: str, platform: str) -> str:
    if "strace is not installed" in reason:
        return filled("{package:strace}", platform)
    if reason.startswith(FOREIGN_LOAD):
        return "repeat when the pool is quiet"
    return "run as root" if "run as root" in reason or "ermission denied" in reason else ""


def _ended_well(run: Run) -> Judged:
    if not run.jobs:
        return known(False, _no_fio(run))
    bad = [f"{job.name}: error {job.error}" for job in run.jobs if job.error]
    bad += [f"{job.name}: {job.short_writes} short writes" for job in run.jobs if job.short_writes]
    return known(not bad and not run.faults, "; ".join([*bad, *run.faults]) or "fio ended without an error")


def _options(section: Section, trial: Trial) -> Iterator[tuple[str, Judged]]:
    options = section.options
    where = f"[{section.name}] of {trial.profile}"

    def said(value: bool | int | str, text: str) -> Known:
        return known(value, f"{text} in {where}")

    size = section.size(trial.size)
    yield "sync", said(section.sync, f"sync by {section.sync}")
    yield "jobs", said(section.jobs, f"numjobs={section.jobs}")
    yield "depth", said(section.depth, f"iodepth={section.depth}")
    yield "file_bytes", said(size, f"{size} bytes of files")
    yield "direct", said(section.direct, f"direct={int(section.direct)}")
    reserved = options.get("fallocate", "native") not in ("none", "0")
    yield "fallocate", said(reserved, f"fallocate={options.get('fallocate', 'native (the default)')}")
    yield (
        "zero_buffers",
        said(options.get("zero_buffers", "0") == "1", f"zero_buffers={options.get('zero_buffers', '0')}"),
    )
    percent = int(options.get("buffer_compress_percentage", "0"))
    yield "compressible_percent", said(percent, f"buffer_compress_percentage={percent}")
    repeats = options.get("refill_buffers", "0") != "1" and options.get("scramble_buffers", "1") == "0"
    yield "repeats_buffers", said(repeats, "scramble_buffers=0" if repeats else "buffers are changed for each write")


def _latency(run: Run, profile: Profile, pool: Subject, facts: Facts) -> Iterator[tuple[str, Judged]]:
    latency = run.log.latency
    median = latency.percentile_ns(0.5)
    if median is not None:
        yield "p50_us", known(median / 1000, f"median {duration(median)}, {latency.samples:,} samples")
    yield "floor_us", _floor(pool, facts)
    highest = max((slo.q for slo in profile.slo), default=0.99)
    beyond = latency.beyond(highest)
    text = f"{latency.samples} samples, {beyond} beyond {Slo(highest, 0).name}"
    yield "samples_beyond", known(beyond, text)


def _floor(pool: Subject, facts: Facts) -> Judged:
    """Of the quickest kind of device that commits can land on; unknown while the kind of one of them is."""
    leaves = facts.linked(pool, "zil_leaves")
    if not leaves:
        return unknown(f"on which devices of {harmless(pool.name)} commits land is not known")
    floors: list[Known] = []
    reasons: list[Reason] = []
    for leaf in leaves:
        disks = facts.linked(leaf, "disks")
        if not disks:
            reasons.append(Reason(f"which disk {harmless(leaf.name)} lies on is not known"))
        for disk in disks:
            found = _floor_of(disk, facts)
            if isinstance(found, Known):
                floors.append(found)
            else:
                reasons += found.reasons
    return Unknown(tuple(dict.fromkeys(reasons))) if reasons else min(floors, key=_value)


def _floor_of(disk: Subject, facts: Facts) -> Judged:
    """Of one disk. What stands behind a virtual one, nobody can see from here."""
    virtual, hdd, volatile = (facts.get(disk, name) for name in ("virtual", "hdd", "volatile_cache"))
    if isinstance(virtual, Unknown):
        return virtual
    if virtual.value:
        return unknown(f"{disk} is virtual: what kind of device answers cannot be seen from here")
    if isinstance(hdd, Unknown):
        return hdd
    if hdd.value:
        return known(FLOOR_US["platter"], f"{disk} is a hard disk")
    if isinstance(volatile, Unknown):
        return volatile
    if not volatile.value:
        return known(FLOOR_ANY_US, f"{disk}: no device answers in less")
    keeps = facts.get(disk, "keeps_acknowledged")
    if isinstance(keeps, Unknown):
        return keeps
    if keeps.value:  # SATA and SAS cannot declare that a cache is protected
        return known(FLOOR_ANY_US, f"{disk} has power-loss protection: it may answer a flush at once, and truthfully")
    return known(FLOOR_US["volatile flash"], f"{disk} has a volatile cache that a flush must empty")


def _thermal(run: Run, facts: Facts) -> Judged:
    """Whether a drive that commits landed on has slowed itself down, by the counters of its SMART log (NVM Express Base
    Specification: thermal management temperature transition counts, and minutes above the warning temperature)."""
    nvme = [device.disk for device in run.devices if device.zil and device.disk.startswith("nvme")]
    if not nvme:
        return unknown(f"run {run.name}: no drive of the log counts how often it slowed itself down")
    if missing := [disk for disk in nvme if disk not in run.heat]:
        return unknown(f"nvme smart-log /dev/{missing[0]}: not seen before and after the run", "run as root")
    hot = [disk for disk in nvme if run.heat[disk]]
    text = f"{', '.join(hot)} slowed down" if hot else f"{', '.join(nvme)}: no transition to a thermal state"
    return known(bool(hot), text, f"nvme smart-log /dev/{(hot or nvme)[0]}")


def _value(each: Known) -> float:
    assert isinstance(each.value, float)
    return each.value


def _written(run: Run) -> Iterator[tuple[str, Judged]]:
    done = [txg for txg in run.txgs if txg.at_s >= 0 and txg.written]
    asked = sum(job.write_bytes for job in run.jobs)
    if len(done) >= 3 and asked:
        share = sum(txg.written for txg in done) / asked
        yield (
            "written_share",
            known(round(share, 3), f"transaction groups wrote {share:.2f} bytes for each byte of the jobs"),
        )
    else:
        yield "written_share", unknown(f"run {run.name}: fewer than three transaction groups that wrote were seen")
    zil = run.zil
    if zil is None or zil.slog_bytes is None or zil.normal_bytes is None:
        yield "slog_share", unknown(f"run {run.name}: the ZIL's payload was not counted")
    else:
        payload = zil.slog_bytes + zil.normal_bytes + (zil.indirect_bytes or 0)
        share = zil.slog_bytes / payload if payload else 0.0
        others = f"{zil.normal_bytes} elsewhere, {zil.indirect_bytes or 0} as pointers"
        text = f"{zil.slog_bytes} bytes of the log on the SLOG, {others}"
        yield "slog_share", known(round(share, 3), text)


def _took(ns: int | None) -> str:
    return "not judged" if ns is None else duration(ns)


def met(latency: Latency) -> Fact:
    """Whether every objective of a run was kept; unknown, with the reasons, where one was not judged."""
    subject = Subject("run", latency.run)
    limits = [each for each in latency.percentiles if each.limit_ns is not None]
    missed = [each for each in limits if each.judgement == "missed"]
    texts = [f"p{each.q * 100:g} {_took(each.ns)}, objective {_took(each.limit_ns)}" for each in missed or limits]
    if missed:
        return Fact(subject, "objectives_met", known(False, "; ".join(texts)))
    if unjudged := [each for each in limits if each.judgement == "not judged"]:
        return Fact(subject, "objectives_met", unknown("; ".join(dict.fromkeys(each.why for each in unjudged))))
    return Fact(subject, "objectives_met", known(True, "; ".join(texts) or "no objective"))


# A verification on one screen: what a trial saw, made into numbers, a chain, findings and latencies.


class VerifyResult(NamedTuple):
    """What ``zaudit verify`` found. sweep, comparison: where they were asked for. unkept: why its recording could not be
    written, to be raised once the report is out."""

    verification: Verification
    report: Report
    sweep: Sweep | None = None
    comparison: Comparison | None = None
    unkept: Exception | None = None


def judge(
    seen: audit.Look,
    trial: Trial,
    rules: Sequence[Rule],
    names: Sequence[str],
    threshold: Severity,
    *,
    left_out: Sequence[LeftOut] = (),
    failed_only: bool = False,
) -> VerifyResult:
    """Everything that follows from a trial. Adds the facts of the runs to what was seen. left_out, failed_only: as in
    :func:`auditor.audit.judge`. Raises ProfileError."""
    asked, runs, followed = _read(seen.facts, trial)
    seen.facts.put_all(run_facts(trial, runs, asked, followed, seen.facts))
    pool = Subject("pool", trial.dataset.partition("/")[0])
    for run in runs:
        if run.purpose == "log":
            for fact in leaf_facts(run, followed, pool, seen.facts):
                seen.facts.replace(fact)
        if run.purpose != "calls":
            subject = Subject("run", run.name)
            seen.facts.replace(Fact(subject, "objectives_met", unknown(f"run {run.name}: its latency is not judged")))
    first = audit.judge(seen, rules, names, threshold)
    latencies = tuple(
        result.judge(run, asked.slo, _why_not(run.name, followed, (*first.findings, *first.waived)))
        for run in _timed(runs)
    )
    for each in latencies:
        seen.facts.replace(met(each))
    found = _verification(seen, trial, asked, runs, followed, latencies)
    report = audit.judge(seen, rules, names, threshold, left_out=left_out, failed_only=failed_only)
    return VerifyResult(found, report, fio.sweep_of(trial.runs), _with_and_without(seen, trial))


WITH = "with the SLOG (logbias=latency)"
WITHOUT = "past the SLOG, as far as OpenZFS allows (logbias=throughput: the data goes to the data vdevs, pointers to the SLOG)"


def _with_and_without(seen: audit.Look, trial: Trial) -> Comparison | None:
    """Of --ab slog. What stands against judging a latency does not stand against saying which of two is longer, as long as
    both were traced."""
    if trial.without is None:
        return None
    sides = [_unjudged(seen, each) for each in (trial, trial.without)]
    return compare(*sides)._replace(before=WITH, after=WITHOUT)


def _unjudged(seen: audit.Look, trial: Trial) -> Verification:
    asked, runs, followed = _read(seen.facts, trial)
    why_not = _why_not("", followed, ())
    latencies = tuple(result.judge(run, (), why_not) for run in _timed(runs))
    return _verification(seen, trial, asked, runs, followed, latencies)._replace(dataset=trial.target)


def _read(facts: Facts, trial: Trial) -> tuple[Profile, tuple[Run, ...], Chain]:
    asked = profile.parse(trial.job_file, trial.profile, ours=trial.profile in profile.names())
    if trial.objectives:
        asked = asked._replace(slo=profile.objectives(trial.objectives))
    runs = tuple(fio.runs(trial, asked, facts))
    log = asked.of("log")
    assert log is not None  # parse() sees to that
    return asked, runs, chain.follow(trial, runs, log, facts)


def _timed(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.purpose != "calls" and run.jobs and run.log.sync != "none"]


def _verification(
    seen: audit.Look,
    trial: Trial,
    asked: Profile,
    runs: tuple[Run, ...],
    followed: Chain,
    latencies: tuple[Latency, ...],
) -> Verification:
    return Verification(
        target=trial.target,
        dataset=trial.dataset,
        place=trial.place,
        profile=trial.profile,
        length=trial.length,
        taken=seen.facts.now,
        chain=followed,
        runs=runs,
        latencies=latencies,
        proves=asked.proves,
        does_not=asked.does_not,
        fio=trial.fio,
        job_file=trial.job_file,
        size=trial.size,
    )


def _why_not(run: str, followed: Chain, findings: Sequence[Finding]) -> str:
    """Why the latency of a run is not judged, in one sentence; empty when it is."""
    if followed.outcome == "CONTRADICTED":
        return result.MEANINGLESS
    if followed.outcome == "INCONCLUSIVE":
        return "it could not be seen whether a sync means anything"
    for finding in findings:
        harm, failed = finding.rule.harm, finding.failed
        if harm in ("commits", "corruption") and failed and RANK[finding.severity] >= RANK["high"]:
            return f"{finding.rule.id} stands: durability first"
        if harm == "measurement" and failed and any(verdict.subject.name == run for verdict in finding.verdicts):
            return f"{finding.rule.id}: this run says nothing of latency"
    return ""
