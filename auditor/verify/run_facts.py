"""What a verification adds to the facts: each run of fio is a subject, judged by rules like everything else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.data.platforms import ANY, filled
from auditor.facts import HOST, Fact, Facts, Judged, Known, Reason, Subject, Unknown, known, unknown, word_of
from auditor.text import harmless
from auditor.units import duration
from auditor.verify import chain
from auditor.verify.model import FOREIGN_LOAD, Chain, Latency, Slo
from auditor.verify.profile import Profile, Section
from auditor.verify.result import Run
from auditor.verify.specs import FACTS
from auditor.verify.trial import UNSEEN, Trial

# Least median of a write and its flush that such a device can honestly have, in microseconds (knowledge of the drives'
# classes: a flash program takes longer than a volatile buffer, a platter has to turn). Generous, so that it is an alarm.
FLOOR_ANY_US = 10.0
FLOOR_US = {"volatile flash": 150.0, "platter": 1000.0}
ABOVE_DEVICES = ("dataset", "system calls", "fio", "ZIL")  # links of the chain
THROTTLE = ("dmu_tx_dirty_delay", "dmu_tx_dirty_over_max")  # module/zfs/dmu_tx.c: delayed, and stopped


def facts_of(trial: Trial, runs: Sequence[Run], profile: Profile, seen: Chain, facts: Facts) -> Iterator[Fact]:
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
