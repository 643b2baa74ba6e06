"""From a plan to a trial: make the place, run every step in it, remove it, whatever happens."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from auditor.data.platforms import ANY, filled
from auditor.errors import EXIT_NOTHING, Stop
from auditor.facts import HOST, Facts, Known, Subject, word_of
from auditor.host.live import Host
from auditor.host.request import Read, Run
from auditor.sources import mounts
from auditor.text import harmless
from auditor.verify import fio_output, place, run, scratch, sweeping, tools, witnesses
from auditor.verify.actor import CALLER, ROOT, Actor, PlaceError
from auditor.verify.held import Held, Replaced
from auditor.verify.ledger import Place
from auditor.verify.plan import Plan
from auditor.verify.profile import Profile
from auditor.verify.trial import UNSEEN, Ran, Trial

MOUNTS = "/proc/self/mountinfo"
VOLUME_NAME = 256  # ZFS_MAX_DATASET_NAME_LEN
BLKZNAME = 2 << 30 | VOLUME_NAME << 16 | 0x12 << 8 | 125  # _IOR(0x12, 125, char[256])
COPIED = ("volblocksize", "sync", "logbias", "compression", "checksum", "dedup", "primarycache", "copies")


class CannotVerify(Stop):
    """Nothing can be run here; the text says why, and what helps."""

    exit_code = EXIT_NOTHING


NEEDED = (("fio", "fio"), ("setpriv", "util-linux"), *((tool, "coreutils") for tool in ("env", "mkdir", "rm", "rmdir")))


def ready(profile: Profile, facts: Facts) -> str:
    """What ``fio --version`` says. facts: of the host, in whose words it is said what is missing. Raises CannotVerify."""
    for tool, package in NEEDED:
        _, why = tools.find(tool)
        if why == tools.MISSING:
            way = filled(f"{{package:{package}}}", word_of(facts.get(HOST, "platform"), ANY))
            raise CannotVerify(f"{tool} is not installed ({way})")
        if why:
            raise CannotVerify(f"{tool}: {why}")
    code, said = tools.call(("fio", "--version"))
    try:
        if code or fio_output.version(said) < fio_output.OLDEST:
            oldest = ".".join(map(str, fio_output.OLDEST))
            raise CannotVerify(f"{said.strip() or 'fio'} is too old: {profile.name} needs fio {oldest} or newer")
    except fio_output.FioError as error:
        raise CannotVerify(str(error)) from None
    return said.strip()


def trial(host: Host, plan: Plan, facts: Facts, objectives: str, progress: run.Progress | None, *, keep: bool) -> Trial:
    """Carry out a plan. Raises CannotVerify, PlaceError or Interrupted; the place is gone then, unless keep says otherwise."""
    version = ready(plan.profile, facts)
    pool = Subject("pool", plan.dataset.partition("/")[0])
    counters = (*witnesses.patterns(pool.name, witnesses.disks(pool, facts)), *witnesses.elsewhere(pool, facts))
    patterns = [*counters, *_smart(host, pool, facts)]
    notes, landed = [], ""
    done: list[Ran] = []
    scan = _scan(host, pool)
    with run.interruptible():
        made = _make(host, plan, facts)
        try:
            with place.hold(made) as here:
                landed = _where(host, here)
                try:
                    if landed == made.dataset:
                        done += _steps(host, plan, here, patterns, progress)
                finally:
                    if not keep and made.kind == "directory":
                        _emptied(here)
        finally:
            if keep:
                notes.append(f"{made.path} was kept; zaudit clean removes it")
            else:
                notes += _remove(made)
    return Trial(
        target=plan.dataset,
        dataset=made.dataset,
        landed=landed,
        place=made.path,
        profile=plan.profile.name,
        job_file=plan.profile.text,
        length=plan.length,
        objectives=objectives,
        size=plan.size,
        fio=version,
        preload=run.preloaded(),
        runs=tuple(done),
        scan=_scanned(scan, _scan(host, pool)),
        notes=tuple(notes),
    )


def _steps(host: Host, plan: Plan, here: Held, patterns: list[str], progress: run.Progress | None) -> Iterator[Ran]:
    """Until all are done, or one came out in a way that leaves nothing for the next."""
    left = plan.most_bytes
    for what in plan.steps:
        if what.purpose == "calls" and not tools.found("strace"):
            continue
        job = plan.profile.text
        if what.purpose == "sweep":
            job = sweeping.job_file(plan.sweep)
            here.remove(sweeping.FILE)
        ran = run.step(host, plan, what._replace(limit=left), here, job, patterns, progress)
        yield ran
        left -= _written(ran)
        if ran.exit != 0 or ran.fault or left <= 0:
            return


def _emptied(here: Held) -> None:
    """Its files are removed wherever the directory lies by now; what is wrong is told when it is to be removed itself."""
    with contextlib.suppress(PlaceError, OSError):
        here.empty()


def _written(ran: Ran) -> int:
    """Bytes that a run of fio wrote, as it says itself; nothing where it said nothing, since then it is the last one."""
    try:
        return sum(job.write_bytes for job in fio_output.jobs(fio_output.documents(ran.stdout)[-1], {}))
    except fio_output.FioError:
        return 0


def _smart(host: Host, pool: Subject, facts: Facts) -> list[str]:
    """The SMART logs of the NVMe drives that commits land on; root alone may ask for them."""
    disks = {disk.name for leaf in facts.linked(pool, "zil_leaves") for disk in facts.linked(leaf, "disks")}
    return [f"{witnesses.SMART}{disk}" for disk in sorted(disks) if disk.startswith("nvme") and host.euid == 0]


def actor(host: Host, plan: Plan) -> Actor:
    """Who fio is to run as. Raises CannotVerify or PlaceError where it cannot be run."""
    if plan.kind == "zvol":
        return CALLER if os.geteuid() else ROOT
    return place.owner(_mount_point(host, plan.dataset))


def _make(host: Host, plan: Plan, facts: Facts) -> Place:
    dataset = Subject("dataset", plan.dataset)
    if plan.kind == "dataset":
        return place.dataset(plan.dataset, actor(host, plan), plan.properties, tools.call)
    if plan.kind == "directory":
        return place.directory(_mount_point(host, plan.dataset), plan.dataset)
    own = {name: facts.get(dataset, name) for name in COPIED}
    properties = [(name, str(value.value)) for name, value in own.items() if isinstance(value, Known)]
    return place.zvol(plan.dataset, plan.bytes_on_disk, properties, tools.call)


def _remove(made: Place) -> Iterator[str]:
    """What is to be said of it."""
    try:
        place.remove(made, tools.call)
    except Replaced as error:  # it is of no use any more, and the runs say so
        yield str(error)
    except PlaceError as error:
        raise CannotVerify(f"what zaudit created could not be removed: {error} (zaudit clean tries again)") from None


def _mount_point(host: Host, dataset: str) -> str:
    """Where the dataset is mounted in this mount namespace: the property mountpoint may say something else."""
    table = mounts.mounts(host.read(Read((MOUNTS,))).text.get(MOUNTS, ""))
    where = [mount.mount_point for mount in table if mount.fstype == "zfs" and mount.source == dataset]
    if not where:
        raise CannotVerify(f"{harmless(dataset)} is not mounted here")
    return where[0]


def _where(host: Host, here: Held) -> str:
    """The dataset that is held; of a scratch one its name counts only while it is its own."""
    made = here.place
    name = _volume(here.device) if made.kind == "zvol" else _landed(host, here.folder)
    if made.kind == "directory" or name != made.dataset or scratch.there(made, tools.call):
        return name
    return f"another dataset called {name}"


def _landed(host: Host, folder: int) -> str:
    """The file system on which a file in a folder really lies: by its device number, which no mount above it hides."""
    table = mounts.mounts(host.read(Read((MOUNTS,))).text.get(MOUNTS, ""))
    number = os.fstat(folder).st_dev
    for mount in reversed(table):
        if mount.major_minor == f"{os.major(number)}:{os.minor(number)}":
            return mount.source if mount.fstype == "zfs" else f"{mount.fstype} ({mount.source})"
    return ""


def _volume(device: int) -> str:
    """The zvol that was opened, as its driver says (BLKZNAME of include/sys/fs/zfs.h, which udev's zvol_id asks too): what
    fio opens, whatever the name of a node is. Empty where it does not say so."""
    name = bytearray(VOLUME_NAME)
    with contextlib.suppress(OSError):
        fcntl.ioctl(device, BLKZNAME, name)
    return name.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _scan(host: Host, pool: Subject) -> str | None:
    """What ``zpool status`` says of scans: one that began, ended or ran between two looks changes it. None: no answer."""
    answer = host.run(Run(("zpool", "status", pool.name)))
    said = answer.stdout.decode("utf-8", "replace")
    if answer.exit != 0 or "config:" not in said:
        return None
    lines = said.partition("  scan: ")[2].partition("config:")[0].splitlines()
    return " ".join(line.strip() for line in lines)


def _scanned(before: str | None, after: str | None) -> str:
    """scrub or resilver, when one was under way at some time between; else empty, or UNSEEN."""
    if before is None or after is None:
        return UNSEEN
    if before == after and "in progress" not in after:
        return ""
    return "resilver" if "resilver" in after + before and "scrub" not in after else "scrub"
