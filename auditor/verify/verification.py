"""A verification on one screen: a trial as numbers, chain and latencies, and the facts of its runs for the rules."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from auditor import Stop, __version__, audit, rulebook
from auditor.data.platforms import ANY, filled
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Reason, Subject, Unknown, known, unknown
from auditor.host import user_files
from auditor.host.live import Host, LiveHost
from auditor.judge.event import Severity
from auditor.judge.finding import RANK, Finding
from auditor.judge.policy import NONE, Policy
from auditor.judge.rule import Rule, digest
from auditor.recording import archive, recording
from auditor.registry import RUN_FACTS
from auditor.report.model import Report
from auditor.screen import note, say
from auditor.text import duration, harmless, size
from auditor.verify import chain, comparison, execution, fio, ledger, place, profile, result, trial
from auditor.verify.comparison import Comparison, Sweep, compare
from auditor.verify.ledger import Actor
from auditor.verify.profile import Profile, Section, size_bytes
from auditor.verify.result import FOREIGN_LOAD, JOB_FILE, Chain, Device, Latency, Run, Verification
from auditor.verify.trial import UNSEEN, Trial

# Whether flushes reach the disks of each leaf. The counters since boot are often too young to tell; a run of thousands of
# syncs is not. Where no setting explains a loss, this leads to the way out (``zpool reopen``).


def leaf_facts(run: Run, seen: Chain, pool: Subject, facts: Facts) -> Iterator[Fact]:
    """``leaf.flushes_reach_disk``: False where one disk lost its flushes in this run; True where each got them, the
    counters since boot left it open, and nothing else flushed it. run: the log run, which the chain followed."""
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
    """Of one disk, where its link says so by flushes; None where it needs none, or was not written to or seen."""
    link = next((each for each in seen.links if each.name == harmless(device.disk)), None)
    if link is None or device.flushes is None or not device.writes or device.volatile is False:
        return None
    text = f"{device.disk}: {device.flushes:,} flushes for {device.writes:,} writes while sync writes were followed"
    evidence = (Evidence(text, f"cat /sys/block/{device.disk}/stat   # fields 16 and 5"),)
    if link.status == "contradicts" and device.volatile:
        return Known(False, evidence)
    return Known(True, evidence) if link.status == "accounts" and device.flushes else None


# Each run of fio is a subject, judged by rules.

# Least honest median of a write and its flush, in microseconds: a flash program takes longer than a volatile buffer, a
# platter has to turn. Generous, so that it is an alarm.
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
            name = run.jobs[0].name if run.jobs else run.name
            # of a run in which fio said nothing, what stands for the log
            section = next((each for each in profile.sections if each.name == name), None) or profile.of("log")
            assert section is not None  # parse() sees to that
            found = dict(_facts(run, section, trial, seen, facts, profile))
            for name in RUN_FACTS:
                if name != "objectives_met":
                    yield Fact(subject, name, found.get(name) or unknown(f"run {run.name}: {_no_fio(run)}"))


def _no_fio(run: Run) -> str:
    return "; ".join(run.faults) or "fio said nothing of it"


def _facts(
    run: Run, section: Section, trial: Trial, seen: Chain, facts: Facts, profile: Profile
) -> Iterator[tuple[str, Judged]]:
    pool = Subject("pool", trial.target.partition("/")[0])
    yield "purpose", known(run.purpose, f"[{run.name}] of {trial.profile}: {section.text or run.purpose}")
    yield "dataset", known(Subject("dataset", trial.target), "")
    yield "pool", known(pool, "")
    yield from _chain_facts(run, seen, facts.get(HOST, "platform").word(ANY))
    yield "fio_ended_well", _ended_well(run)
    if trial.scan == UNSEEN:
        yield "scan_ran", unknown("zpool status did not say whether a scrub or resilver ran meanwhile")
    else:
        text = f"a {trial.scan} runs" if trial.scan else "no scrub or resilver ran"
        yield "scan_ran", known(bool(trial.scan), text, "zpool status")
    yield from _options(section, trial)
    if not run.jobs:
        return
    if others := tuple(chain.foreign(run, trial, facts)):
        yield "foreign_load", known(True, "; ".join(others))
    elif run.zil is None:
        yield "foreign_load", unknown(f"run {run.name}: no kstat of the ZIL could be read before and after it")
    elif unseen := tuple(chain.unwatched(run)):
        yield "foreign_load", Unknown(tuple(map(Reason, unseen)))
    else:
        yield "foreign_load", known(False, "no commits or writes of others were seen")
    job = run.log
    for name, count in (("syncs", job.syncs), ("writes", job.writes), ("reads", job.reads)):
        yield name, known(count, f"fio: {count} {name}")
    yield "seconds", known(job.seconds, f"{job.seconds:.0f} s")
    if missing := [name for name in THROTTLE if name not in run.counters]:  # one of the two says nothing of the other
        lacks = f"{', '.join(missing)} of /proc/spl/kstat/zfs/dmu_tx"
        yield "throttled", unknown(f"{lacks}: not seen before and after the run")
    else:
        held = sum(run.counters[name] for name in THROTTLE)
        yield "throttled", known(held, f"{held} transactions held back meanwhile", "cat /proc/spl/kstat/zfs/dmu_tx")
    yield "thermal_throttled", _thermal(run)
    yield from _latency(run, profile, pool, facts)
    yield from _written(run)


def _chain_facts(run: Run, seen: Chain, platform: str) -> Iterator[tuple[str, Judged]]:
    """Whether it was followed, and the devices that lacked flushes: a crash of the host leaves the drives their power."""
    if run.purpose != "log":
        for name in ("followed", "unflushed"):
            yield name, unknown(f"run {run.name}: only the log run is followed")
        return
    if seen.outcome == "INCONCLUSIVE":
        yield "followed", Unknown(tuple(Reason(each, _remedy(each, platform)) for each in seen.reasons))
        yield "unflushed", Unknown(tuple(map(Reason, seen.reasons)))
        return
    wrong = [link for link in seen.links if link.status == "contradicts"]
    text = "; ".join(f"{link.name}: {link.text}" for link in wrong or seen.links)
    yield "followed", known(seen.outcome == "TRACED", text)
    names, disks = {link.name for link in wrong}, [device.disk for device in run.devices]
    if not names or names & set(ABOVE_DEVICES):
        yield "unflushed", Known((), ())
        return
    named = [disk for disk in disks if harmless(disk) in names]
    found = named if len(named) == len(names) else disks  # a class of vdevs, and the kernel's log, name none
    text = f"flushes of {', '.join(map(harmless, found))} are missing"
    yield "unflushed", known(tuple(Subject("disk", disk) for disk in found), text)


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
    size, percent = section.size(trial.size), int(options.get("buffer_compress_percentage", "0"))
    fallocate, zero = options.get("fallocate", "native (the default)"), options.get("zero_buffers", "0")
    repeats = options.get("refill_buffers", "0") != "1" and options.get("scramble_buffers", "1") == "0"
    for name, value, text in (
        ("sync", section.sync, f"sync by {section.sync}"),
        ("jobs", section.jobs, f"numjobs={section.jobs}"),
        ("depth", section.depth, f"iodepth={section.depth}"),
        ("file_bytes", size, f"{size} bytes of files"),
        ("direct", section.direct, f"direct={int(section.direct)}"),
        ("fallocate", fallocate not in ("none", "0"), f"fallocate={fallocate}"),
        ("zero_buffers", zero == "1", f"zero_buffers={zero}"),
        ("compressible_percent", percent, f"buffer_compress_percentage={percent}"),
        ("repeats_buffers", repeats, "scramble_buffers=0" if repeats else "buffers are changed for each write"),
    ):
        yield name, known(value, f"{text} in [{section.name}] of {trial.profile}")


def _latency(run: Run, profile: Profile, pool: Subject, facts: Facts) -> Iterator[tuple[str, Judged]]:
    latency = run.log.latency
    median = latency.percentile_ns(0.5)
    if median is not None:
        yield "p50_us", known(median / 1000, f"median {duration(median)}, {latency.samples:,} samples")
    yield "floor_us", _floor(pool, facts)
    highest = max((slo.q for slo in profile.slo), default=0.99)
    beyond = latency.beyond(highest)
    text = f"{latency.samples} samples, {beyond} beyond {result.percentile_name(highest)}"
    yield "samples_beyond", known(beyond, text)


def _floor(pool: Subject, facts: Facts) -> Judged:
    """Of the quickest kind of device that commits can land on; unknown while the kind of one of them is."""
    leaves = facts.linked(pool, "zil_leaves")
    if not leaves:
        return unknown(f"on which devices of {harmless(pool.name)} commits land is not known")
    floors: list[tuple[float, str]] = []
    reasons: list[Reason] = []
    for leaf in leaves:
        disks = facts.linked(leaf, "disks")
        if not disks:
            reasons.append(Reason(f"which disk {harmless(leaf.name)} lies on is not known"))
        for disk in disks:
            found = _floor_of(disk, facts)
            if isinstance(found, Unknown):
                reasons += found.reasons
            else:
                floors.append(found)
    return Unknown(tuple(dict.fromkeys(reasons))) if reasons else known(*min(floors, key=lambda each: each[0]))


def _floor_of(disk: Subject, facts: Facts) -> tuple[float, str] | Unknown:
    """Of one disk, and why. What is behind a virtual one is not visible from here."""
    protected = " has power-loss protection: it may answer a flush at once, and truthfully"
    for name, value, floor, text in (
        ("virtual", True, 0.0, " is virtual: what kind of device answers cannot be seen from here"),
        ("hdd", True, FLOOR_US["platter"], " is a hard disk"),
        ("volatile_cache", False, FLOOR_ANY_US, ": no device answers in less"),
        # SATA and SAS cannot declare that a cache is protected
        ("keeps_acknowledged", True, FLOOR_ANY_US, protected),
    ):
        found = facts.get(disk, name)
        if isinstance(found, Unknown):
            return found
        if bool(found.value) is value:
            return (floor, f"{disk}{text}") if floor else unknown(f"{disk}{text}")
    return FLOOR_US["volatile flash"], f"{disk} has a volatile cache that a flush must empty"


def _thermal(run: Run) -> Judged:
    """Whether a drive of the log slowed itself down, by its SMART log (NVM Express Base Specification: thermal management
    temperature transition counts, and minutes above the warning temperature)."""
    nvme = [device.disk for device in run.devices if device.zil and device.disk.startswith("nvme")]
    if not nvme:
        return unknown(f"run {run.name}: no drive of the log counts how often it slowed itself down")
    if missing := [disk for disk in nvme if disk not in run.heat]:
        return unknown(f"nvme smart-log /dev/{missing[0]}: not seen before and after the run", "run as root")
    hot = [disk for disk in nvme if run.heat[disk]]
    text = f"{', '.join(hot)} slowed down" if hot else f"{', '.join(nvme)}: no transition to a thermal state"
    return known(bool(hot), text, f"nvme smart-log /dev/{(hot or nvme)[0]}")


def _written(run: Run) -> Iterator[tuple[str, Judged]]:
    done = [txg for txg in run.txgs if txg.at_s >= 0 and txg.written]
    asked = sum(job.write_bytes for job in run.jobs)
    if len(done) >= 3 and asked:
        share = sum(txg.written for txg in done) / asked
        text = f"transaction groups wrote {share:.2f} bytes for each byte of the jobs"
        yield "written_share", known(round(share, 3), text)
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


def met(latency: Latency) -> Fact:
    """Whether every objective of a run was kept; unknown, with the reasons, where one was not judged."""
    subject = Subject("run", latency.run)
    limits = [each for each in latency.percentiles if each.limit_ns is not None]
    missed = [each for each in limits if each.judgement == "missed"]
    took = {each: "not judged" if each.ns is None else duration(each.ns) for each in limits}
    texts = [f"p{each.q * 100:g} {took[each]}, objective {duration(each.limit_ns or 0)}" for each in missed or limits]
    if missed:
        return Fact(subject, "objectives_met", known(False, "; ".join(texts)))
    if unjudged := [each for each in limits if each.judgement == "not judged"]:
        return Fact(subject, "objectives_met", unknown("; ".join(dict.fromkeys(each.why for each in unjudged))))
    return Fact(subject, "objectives_met", known(True, "; ".join(texts) or "no objective"))


# From a trial to a verification.


class VerifyResult(NamedTuple):
    """The result of ``zaudit verify``. unkept: why its recording could not be written, to be raised after the report."""

    verification: Verification
    report: Report
    sweep: Sweep | None = None
    comparison: Comparison | None = None
    unkept: Exception | None = None


def judge(
    seen: audit.Look,
    trial: Trial,
    chosen: rulebook.Chosen,
    names: Sequence[str],
    threshold: Severity,
    *,
    failed_only: bool = False,
) -> VerifyResult:
    """Everything that follows from a trial; seen gets the facts of the runs. Raises ProfileError."""
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
    first = audit.judge(seen, chosen.rules, names, threshold)
    latencies = tuple(
        result.judge(run, asked.slo, _why_not(run.name, followed, (*first.findings, *first.waived)))
        for run in runs
        if run.purpose != "calls" and run.jobs and run.log.sync != "none"
    )
    for each in latencies:
        seen.facts.replace(met(each))
    found = Verification(
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
    report = audit.judge(seen, chosen.rules, names, threshold, left_out=chosen.left_out, failed_only=failed_only)
    return VerifyResult(found, report, fio.sweep_of(trial.runs))


def _read(facts: Facts, trial: Trial) -> tuple[Profile, tuple[Run, ...], Chain]:
    asked = profile.parse(trial.job_file, trial.profile, ours=trial.profile in profile.names())
    if trial.objectives:
        asked = asked._replace(slo=profile.objectives(trial.objectives))
    runs = tuple(fio.runs(trial, asked, facts))
    log = asked.of("log")
    assert log is not None  # parse() sees to that
    return asked, runs, chain.follow(trial, runs, log, facts)


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


# ``zaudit verify``: from a command line to a verification, live or recorded.


def live(
    request: VerifyRequest, progress: Callable[..., None] | None, steps: execution.Progress | None
) -> VerifyResult | None:
    """Verify on this host; None after a dry run."""
    asked = profile.load(request.profile)
    if request.slo:
        profile.objectives(request.slo)
    options = audit.Options(policy=request.policy)
    chosen = request.chosen or rules(request.policy)
    before = earlier(request.compare) if request.compare else None
    if request.record:
        archive.possible(request.record)
    for left, wrong in place.clean(ledger.call):
        note(f"zaudit: {harmless(left.path)}, left by an earlier run, {wrong or 'was removed'}")
    machine = LiveHost(request.timeout)  # while fio runs no deadline ends what is read: it would spoil the run
    looked_at = LiveHost(request.timeout, request.deadline)
    host: Host = recording.RecordingHost(looked_at) if request.record else looked_at
    seen = audit.look(host, (request.target,), options, progress)
    planned = make_plan(request, asked, seen)
    refused = list(fio.refusals(planned, seen.facts))
    actor = ledger.UNSEEN
    try:
        actor = execution.actor_for(machine, planned)
    except Stop as error:
        refused.append(fio.Refusal(str(error)))
    if request.dry_run:
        say(described(planned, actor, seen, refused, request.despite))
        return None
    if standing := [each for each in refused if each.override not in request.despite or not each.override]:
        override = " (--despite {} overrides it)"
        whys = (each.text + (override.format(each.override) if each.override else "") for each in standing)
        raise Refused(f"not run: {'; '.join(whys)}")
    execution.ready(asked, seen.facts)
    done = execution.run_trial(machine, planned, seen.facts, request.slo, steps)
    unkept = keep(host, request.record, (request.target,), options, chosen.rules, trial.to_text(done))
    for each in done.notes:
        note(f"zaudit: {harmless(each)}")
    given = (request.target,), request.fail_on
    found = judge(seen, done, chosen, *given, failed_only=request.failed_only)._replace(unkept=unkept)
    return found if before is None else found._replace(comparison=compare(before, found.verification))


def replayed(
    path: Path, fail_on: Any, compared: Path | None, policy: Policy | None = None, *, failed_only: bool = False
) -> VerifyResult:
    past, text = load(path, "verification")
    seen = audit.replay(past, policy)
    done = trial.from_text(text)
    found = judge(seen, done, rules(seen.policy), past.targets, fail_on, failed_only=failed_only)
    return found._replace(comparison=compare(earlier(compared), found.verification)) if compared else found


def earlier(path: Path) -> Verification:
    """The result that a new one is compared with: a JSON report, or a recording of a verification."""
    if path.is_file() and not archive.is_archive(path):
        return comparison.load(user_files.read(path, comparison.LARGEST * 4).decode("utf-8", "surrogateescape"))
    return replayed(path, "low", None).verification


def rules(policy: Policy = NONE) -> rulebook.Chosen:
    """All rules, those about runs of fio among them, but what the policy turns off."""
    return rulebook.choose((), (), (), policy, runs=True)


def rendered(found: VerifyResult, format_: str, screen: Mapping[str, Any]) -> str:
    from auditor.verify import verify_page

    parts: dict[str, Any] = {"comparison": found.comparison, "sweep": found.sweep, "zaudit": __version__}
    return verify_page.write(format_, found.verification, found.report, **parts, **screen)


def summary(found: VerifyResult) -> str:
    return f"{found.verification.chain.outcome} (exit code {found.report.exit_code})"


# Arguments and plan of ``zaudit verify``.


class VerifyRequest(NamedTuple):
    target: str
    profile: str
    length: fio.Length = "quick"
    slo: str = ""
    size: str = ""
    limit: str = ""
    despite: tuple[str, ...] = ()
    dry_run: bool = False
    record: Path | None = None
    timeout: float = 30.0
    fail_on: Severity = "low"
    sweep: bool = False
    sweep_size: str = ""
    compare: Path | None = None
    chosen: rulebook.Chosen | None = None
    policy: Policy = NONE
    deadline: float = 0.0
    failed_only: bool = False


class Refused(Stop):
    """A run that would harm or say nothing."""


def make_plan(request: VerifyRequest, asked: Profile, seen: audit.Look) -> fio.Plan:
    if len(seen.roots) != 1:
        raise Refused("one target at a time: each is written to")
    limit = size_bytes(request.limit) if request.limit else fio.LIMIT
    planned = fio.make(seen.roots[0], seen.facts, asked, request.length, request.size, limit)
    if request.sweep:
        if planned.kind != "directory":
            raise Refused("--sweep writes files: it needs a file system")
        amount = size_bytes(request.sweep_size) if request.sweep_size else fio.AMOUNT
        planned = planned._replace(
            sweep=amount,
            steps=(*planned.steps, *fio.sweep_steps(amount, limit)),
            bytes_on_disk=planned.bytes_on_disk + amount,
        )
    elif request.sweep_size:
        raise Refused("--sweep-size says how much --sweep writes: it needs --sweep")
    return planned


def described(
    planned: fio.Plan, actor: Actor, seen: audit.Look, refused: Sequence[fio.Refusal], despite: Sequence[str]
) -> str:
    directory = planned.kind == "directory"
    where = "a new directory .zaudit-ID at its mount point" if directory else "a scratch zvol next to it"
    takes = f"about {planned.seconds // 60} min {planned.seconds % 60} s"
    lines = [
        f"{harmless(planned.dataset)}: {planned.profile.name}, {planned.length}, {takes}",
        f"Proves: {planned.profile.proves}",
        f"Does not: {planned.profile.does_not}",
        f"Writes into {where}, removed afterwards; {size(planned.bytes_on_disk)} of files, "
        f"at most {size(planned.most_bytes)} written.",
        *_wear(planned, seen),
        "",
    ]
    for step in planned.steps:
        job = fio.JOB_FILE if step.purpose == "sweep" else JOB_FILE
        lines += [
            f"# {step.name}: {step.seconds} s",
            f"cd PLACE && {shlex.join(fio.command(planned, step, actor, execution.preloads()))} <{job}",
        ]
    for each in refused:
        overridden = each.override in despite and each.override
        lines.append(f"{'Despite' if overridden else 'Would be refused'}: {each.text}")
    return "\n".join(lines) + "\n"


def _wear(planned: fio.Plan, seen: audit.Look) -> list[str]:
    """The share of one full write of each drive that the run can take: endurance is rated in drive writes a day."""
    pool = Subject("pool", planned.dataset.partition("/")[0])
    disks = dict.fromkeys(
        disk for leaf in seen.facts.linked(pool, "leaves") for disk in seen.facts.linked(leaf, "disks")
    )
    sizes = {disk.name: seen.facts.get(disk, "size_bytes").or_none() for disk in disks}
    shares = [
        f"{harmless(name)} {planned.most_bytes / bytes_:.1%}"
        for name, bytes_ in sizes.items()
        if isinstance(bytes_, int) and bytes_
    ]
    return [f"Wear: at most this share of one full write of the drive: {', '.join(shares)}"] if shares else []


# A verification or a diagnosis in a recording.


def keep(
    host: Host, path: Path | None, targets: tuple[str, ...], options: audit.Options, rules: Iterable[Rule], text: str
) -> Exception | None:
    """Write the answers of a recording host, and the text. Returns the error, to be raised after the report."""
    if not isinstance(host, recording.RecordingHost) or not path:
        return None
    taken = host.recording(targets, options.words(), __version__, digest(rules))
    try:
        for left_out in recording.write(replace(taken, trial=text.encode("utf-8", "surrogateescape")), path):
            note(left_out)
    except (OSError, Stop) as error:
        return error
    return None


def load(path: Path, what: str) -> tuple[recording.Recording, str]:
    """A recording, and the trial in it. what: "diagnosis". Raises RecordingError, also where there is no trial."""
    past = recording.load(path)
    if not past.trial:
        raise recording.RecordingError(f"{path}: no {what} is recorded there (zaudit check --replay audits it)")
    return past, past.trial.decode("utf-8", "surrogateescape")
