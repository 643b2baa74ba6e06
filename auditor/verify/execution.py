"""From a plan to a trial: a place is made, fio runs in it with the rights of its owner, and it is removed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from auditor import EXIT_INTERRUPTED, EXIT_NOTHING, Stop, interrupt
from auditor.data.platforms import ANY, filled
from auditor.facts import HOST, Facts, Known, Subject
from auditor.host import owner, trust
from auditor.host.live import ENVIRONMENT, Host
from auditor.host.process import Time, within
from auditor.host.request import Read, Run
from auditor.sources import mounts
from auditor.text import harmless
from auditor.verify import fio, ledger, place
from auditor.verify import trial as verify_trial
from auditor.verify.fio import ENV, IDLE_S, Plan, Step, command
from auditor.verify.ledger import CALLER, ROOT, Actor, Place, PlaceError
from auditor.verify.place import OpenPlace, ReplacedPlace
from auditor.verify.profile import Profile
from auditor.verify.trial import UNSEEN, FioRun, Reading, Trial

# Starts fio in the held place, with the rights of its owner, and reads the witnesses around it.
#
# No other user can reach what fio reads or prints: the job file is its standard input, a sealed file in memory; its output
# and that of strace go into such files; it starts in the held folder, wherever that lies by now.

SLACK_S = 90.0  # what laying out files, starting and ending may take next to the run itself
POLL_S = 0.25
WRITTEN_S = 10.0  # more than a busy host needs for a thousand of them
TXGS_EVERY_S = 60.0  # the kernel keeps the last 100
MOST = 128 << 20  # bytes that fio or strace may print
PROCESSES = 1000  # whose writing is counted: who owns the place can make fio start a chain of them as long as he likes
PRELOADS = ("LD_PRELOAD", "LD_LIBRARY_PATH")
PRELOAD_FILE = "/etc/ld.so.preload"
PROGRAMS = ("setpriv", "strace", ENV, "fio")  # words of a command line that become absolute paths
SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
CHANGED = "the place was changed while fio ran, so that what it measured says nothing"

Progress = Callable[[str, float, float], None]  # what runs, seconds done, seconds in all


class Interrupted(Stop):
    """SIGINT, SIGTERM or SIGHUP came; what was made is removed. number: of the signal."""

    exit_code = EXIT_INTERRUPTED

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}; what was made is removed")
        self.number = number


def preloads() -> tuple[str, ...]:
    return tuple(f"{name}={os.environ[name]}" for name in PRELOADS if name in os.environ)


def preloaded() -> str:
    """What the environment or the system puts under every program: fio runs with it, as the user's programs do."""
    words = [os.environ[name] for name in PRELOADS[:1] if os.environ.get(name)]
    with contextlib.suppress(OSError):
        words += Path(PRELOAD_FILE).read_text(errors="replace").split()
    return " ".join(words)


def reading(host: Host, patterns: Sequence[str]) -> Reading:
    at, up = time.time(), time.clock_gettime(time.CLOCK_MONOTONIC_RAW)  # as gethrtime() of the SPL
    files = host.read(Read(tuple(pattern for pattern in patterns if pattern.startswith("/"))))
    asked = {key: host.run(each) for key in patterns if (each := verify_trial.question(key))}
    said = {key: answer.stdout.decode("utf-8", "replace") for key, answer in asked.items()}
    return Reading(at, up, {**files.text, **said}, dict(files.errors))


def step(
    host: Host, plan: Plan, what: Step, here: OpenPlace, job: str, patterns: Sequence[str], progress: Progress | None
) -> FioRun:
    """Idle for a moment, run fio once, and read the witnesses before, between and after. job: text of its job file. Where
    the place was changed meanwhile, nothing printed counts: fio may have written elsewhere."""
    idle, history = reading(host, patterns), list[str]()
    groups = Read(tuple(pattern for pattern in patterns if pattern.endswith("/txgs")))
    if what.purpose not in ("warm", "calls", "sweep"):
        _wait(IDLE_S, "idle before " + what.name, progress)
    with (
        _unnamed("trace") as trace, _unnamed("out") as out, _unnamed("err") as err, _job(job) as given,
        verify_trial.listening() as logged,
    ):  # fmt: skip
        before = reading(host, patterns)
        argv = command(plan, what, here.actor, preloads(), where := trust.by(trace.fileno()))
        inherited = [trace.fileno()] if what.purpose == "calls" else []
        inherited += [here.device] if here.device >= 0 else []
        began = time.time()
        process = subprocess.Popen(
            [ledger.require(word) if word in PROGRAMS else word for word in argv],
            stdin=given,
            stdout=out,
            stderr=err,
            cwd=trust.by(here.folder),
            env=ENVIRONMENT,
            pass_fds=inherited,
            start_new_session=True,
        )
        try:
            limited, fault = _watch(
                process, what, (out, err, trace), lambda: history.extend(host.read(groups).text.values()), progress
            )
        finally:
            if process.poll() is None:
                owner.end(process, kill=True)
        ended = time.time()
        history += host.read(groups).text.values()
        after = reading(host, patterns)
        wrong = here.changed()
        return FioRun(
            name=what.name,
            purpose=what.purpose,
            sections=what.sections,
            argv=tuple("TRACE" if word == where else word for word in argv),
            idle=idle,
            before=before,
            after=after,
            began=began,
            ended=ended,
            exit=process.returncode,
            stdout="" if wrong else _text(out),
            stderr=_text(err),
            fault=f"{CHANGED}: {wrong}" if wrong else fault,
            strace=_text(trace) if what.purpose == "calls" and not wrong else None,
            txgs=tuple(history),
            limited=limited,
            logged=logged(),
        )


def _watch(
    process: subprocess.Popen[bytes],
    what: Step,
    printed: Sequence[IO[bytes]],
    now_and_then: Callable[[], None],
    progress: Progress | None,
) -> tuple[bool, str]:
    """Until it ends, or has to be: whether that was for its limit of bytes, and what else went wrong."""
    limited = False
    started = last = time.monotonic()
    while process.poll() is None:
        now = time.monotonic()
        if progress:
            progress(what.name, now - started, what.seconds)
        if not limited and not within_limit(process.pid, what.limit):
            limited = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGINT)  # fio ends in order and prints what it has
        if any(os.fstat(each.fileno()).st_size > MOST for each in printed):
            return limited, f"fio printed more than {MOST >> 20} MiB"
        if now - started > what.seconds + SLACK_S:
            return limited, f"fio did not end within {what.seconds + SLACK_S:.0f} s"
        if now - last > TXGS_EVERY_S:
            last = now
            now_and_then()
        time.sleep(POLL_S)
    return limited, ""


def _wait(seconds: float, what: str, progress: Progress | None) -> None:
    started = time.monotonic()
    while (done := time.monotonic() - started) < seconds:
        if progress:
            progress(what, done, seconds)
        time.sleep(POLL_S)


def _unnamed(name: str) -> IO[bytes]:
    """A file in memory. A process of another user that holds it can open it again by its descriptor, as strace does."""
    return os.fdopen(os.memfd_create(f"zaudit-{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), "w+b")


@contextlib.contextmanager
def _job(text: str) -> Iterator[IO[bytes]]:
    """The job file as standard input: sealed, so that fio reads what was judged (fcntl(2), file sealing)."""
    with _unnamed("job") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALS)
        file.seek(0)
        yield file


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(MOST).decode("utf-8", "replace")


def within_limit(pid: int, limit: int) -> bool:
    """Whether a process wrote no more bytes. The owner of the place can make the question hang: that counts as more."""
    return within(Time.of(WRITTEN_S), lambda: written(pid) <= limit, lambda why: False)


def written(pid: int) -> int:
    """Bytes that a process and its children have written (proc(5), wchar of /proc/PID/io); 0 where that is not to be read."""
    total, seen, left = 0, 0, [pid]
    while left and seen < PROCESSES:
        process, seen = left.pop(), seen + 1
        with contextlib.suppress(OSError, ValueError):
            for line in Path(f"/proc/{process}/io").read_text().splitlines():
                if line.startswith("wchar:"):
                    total += int(line.split()[1])
            left += map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())
    return total


# From a plan to a trial: make the place, run every step in it, remove it, whatever happens.

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
        if why := ledger.find(tool)[1]:
            way = filled(f"{{package:{package}}}", facts.get(HOST, "platform").word(ANY))
            raise CannotVerify(f"{tool} is not installed ({way})" if why == ledger.MISSING else f"{tool}: {why}")
    code, said = ledger.call(("fio", "--version"))
    try:
        if code or fio.version(said) < fio.OLDEST:
            oldest = ".".join(map(str, fio.OLDEST))
            raise CannotVerify(f"{said.strip() or 'fio'} is too old: {profile.name} needs fio {oldest} or newer")
    except fio.FioError as error:
        raise CannotVerify(str(error)) from None
    return said.strip()


def run_trial(host: Host, plan: Plan, facts: Facts, objectives: str, progress: Progress | None) -> Trial:
    """Carry out a plan. Raises CannotVerify, PlaceError or Interrupted; the place is gone then."""
    version = ready(plan.profile, facts)
    pool = Subject("pool", plan.dataset.partition("/")[0])
    counters = (
        *verify_trial.patterns(pool.name, verify_trial.disks(pool, facts)),
        *verify_trial.elsewhere(pool, facts),
    )
    smart = {disk.name for leaf in facts.linked(pool, "zil_leaves") for disk in facts.linked(leaf, "disks")}
    patterns = [*counters]  # and, for root, the SMART logs of the NVMe drives that commits land on
    patterns += [f"{verify_trial.SMART}{disk}" for disk in sorted(smart) if disk.startswith("nvme") and not host.euid]
    notes, landed = list[str](), ""
    done: list[FioRun] = []
    scan = _scan(host, pool)
    with interrupt.raising(Interrupted):
        made = _make(host, plan, facts)
        try:
            with place.hold(made) as here:
                landed = _where(host, here)
                try:
                    if landed == made.dataset:
                        done += _steps(host, plan, here, patterns, progress)
                finally:
                    if made.kind == "directory":
                        with contextlib.suppress(PlaceError, OSError):  # what is wrong is told by _remove()
                            here.empty()  # wherever the directory lies by now
        finally:
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
        preload=preloaded(),
        runs=tuple(done),
        scan=_scanned(scan, _scan(host, pool)),
        notes=tuple(notes),
    )


def _steps(host: Host, plan: Plan, here: OpenPlace, patterns: list[str], progress: Progress | None) -> Iterator[FioRun]:
    """Until all are done, or one came out in a way that leaves nothing for the next."""
    left = plan.most_bytes
    for what in plan.steps:
        if what.purpose == "calls" and ledger.find("strace")[1]:
            continue
        job = plan.profile.text
        if what.purpose == "sweep":
            job = fio.sweep_job_file(plan.sweep)
            here.remove(fio.FILE)
        ran = step(host, plan, what._replace(limit=left), here, job, patterns, progress)
        yield ran
        left -= _written(ran)
        if ran.exit != 0 or ran.fault or left <= 0:
            return


def _written(ran: FioRun) -> int:
    """Bytes that a run of fio wrote, as it says itself; nothing where it said nothing, since then it is the last one."""
    try:
        return sum(job.write_bytes for job in fio.jobs_of(fio.documents(ran.stdout)[-1], {}))
    except fio.FioError:
        return 0


def actor_for(host: Host, plan: Plan) -> Actor:
    """Who fio is to run as. Raises CannotVerify or PlaceError where it cannot be run."""
    if plan.kind == "zvol":
        return CALLER if os.geteuid() else ROOT
    return place.owner(_mount_point(host, plan.dataset))


def _make(host: Host, plan: Plan, facts: Facts) -> Place:
    dataset = Subject("dataset", plan.dataset)
    if plan.kind == "directory":
        return place.directory(_mount_point(host, plan.dataset), plan.dataset)
    own = {name: facts.get(dataset, name) for name in COPIED}
    properties = [(name, str(value.value)) for name, value in own.items() if isinstance(value, Known)]
    return place.zvol(plan.dataset, plan.bytes_on_disk, properties, ledger.call)


def _remove(made: Place) -> Iterator[str]:
    try:
        place.remove(made, ledger.call)
    except ReplacedPlace as error:  # it is of no use any more, and the runs say so
        yield str(error)
    except PlaceError as error:
        raise CannotVerify(f"what zaudit created could not be removed: {error} (zaudit clean tries again)") from None


def _mounts(host: Host) -> Sequence[mounts.Mount]:
    return mounts.mounts(host.read(Read((MOUNTS,))).text.get(MOUNTS, ""))


def _mount_point(host: Host, dataset: str) -> str:
    """Where the dataset is mounted in this mount namespace: the property mountpoint may say something else."""
    where = [mount.mount_point for mount in _mounts(host) if mount.fstype == "zfs" and mount.source == dataset]
    if not where:
        raise CannotVerify(f"{harmless(dataset)} is not mounted here")
    return where[0]


def _where(host: Host, here: OpenPlace) -> str:
    """The dataset that is held; of a scratch one its name counts only while it is its own."""
    made = here.place
    name = _volume(here.device) if made.kind == "zvol" else _landed(host, here.folder)
    if made.kind == "directory" or name != made.dataset or ledger.there(made, ledger.call):
        return name
    return f"another dataset called {name}"


def _landed(host: Host, folder: int) -> str:
    """The file system on which a file in a folder really lies: by its device number, which no mount above it hides."""
    number = os.fstat(folder).st_dev
    for mount in reversed(_mounts(host)):
        if mount.major_minor == f"{os.major(number)}:{os.minor(number)}":
            return mount.source if mount.fstype == "zfs" else f"{mount.fstype} ({mount.source})"
    return ""


def _volume(device: int) -> str:
    """The zvol behind an open device, as its driver names it (BLKZNAME of include/sys/fs/zfs.h, as udev's zvol_id asks):
    independent of the node's name. Empty where it does not say."""
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
    """scrub or resilver, when one ran at some time between; else empty, or UNSEEN."""
    if before is None or after is None:
        return UNSEEN
    if before == after and "in progress" not in after:
        return ""
    return "resilver" if "resilver" in after + before and "scrub" not in after else "scrub"
