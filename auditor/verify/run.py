"""The only module of zaudit that writes: it starts fio in the place that was made for it, and reads the witnesses around it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from auditor.errors import EXIT_INTERRUPTED, Stop
from auditor.host.live import ENVIRONMENT, PATH, Host
from auditor.host.request import Read, Run
from auditor.verify import witnesses
from auditor.verify.place import Place
from auditor.verify.plan import ENV, IDLE_S, Plan, Step, command
from auditor.verify.trial import Moment, Ran

SLACK_S = 90.0  # what laying out files, starting and ending may take beside the run itself
POLL_S = 0.25
TXGS_EVERY_S = 60.0  # the kernel keeps the last 100
PRELOADS = ("LD_PRELOAD", "LD_LIBRARY_PATH")
PRELOAD_FILE = "/etc/ld.so.preload"

Progress = Callable[[str, float, float], None]  # what runs, seconds done, seconds in all


class Interrupted(Stop):
    """SIGINT, SIGTERM or SIGHUP came; what was made is removed. number: of the signal."""

    exit_code = EXIT_INTERRUPTED

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}; what was made is removed")
        self.number = number


class Tools(NamedTuple):
    """Absolute paths; empty where not installed."""

    fio: str
    strace: str
    setpriv: str
    zpool: str
    env: str


def tools() -> Tools:
    """What is installed, in the fixed PATH of zaudit."""
    return Tools(*map(_tool, Tools._fields))


def _tool(name: str) -> str:
    return next((path for where in PATH if os.access(path := f"{where}/{name}", os.X_OK)), "")


def preloaded() -> str:
    """What the environment or the system puts under every program: fio runs with it, as the user's programs do."""
    words = [os.environ[name] for name in PRELOADS[:1] if os.environ.get(name)]
    with contextlib.suppress(OSError):
        words += Path(PRELOAD_FILE).read_text(errors="replace").split()
    return " ".join(words)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turns signals that end a program into :class:`Interrupted`, so that what was made is removed."""

    def interrupt(number: int, _: object) -> None:
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)  # cleaning up is not to be interrupted
        raise Interrupted(number)

    before = {each: signal.signal(each, interrupt) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def zfs(argv: tuple[str, ...]) -> tuple[int, str]:
    """Run a zfs command that makes or destroys a scratch zvol: (exit code, what it printed)."""
    path = _tool(argv[0])
    if not path:
        return 127, f"{argv[0]} is not installed"
    try:
        done = subprocess.run((path, *argv[1:]), env=ENVIRONMENT, capture_output=True, timeout=60, cwd="/", check=False)
    except subprocess.TimeoutExpired:
        return 124, f"{argv[0]} did not answer in 60 s"
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


def moment(host: Host, patterns: Sequence[str]) -> Moment:
    """The witnesses now."""
    at, up = time.time(), time.clock_gettime(time.CLOCK_MONOTONIC_RAW)  # as gethrtime() of the SPL
    files = host.read(Read(tuple(pattern for pattern in patterns if pattern.startswith("/"))))
    smart = {}
    for key in patterns:
        if key.startswith(witnesses.SMART):
            asked = Run(("nvme", "smart-log", f"/dev/{key.removeprefix(witnesses.SMART)}", "-o", "json"))
            smart[key] = host.run(asked).stdout.decode("utf-8", "replace")
    return Moment(at, up, {**files.text, **smart}, dict(files.errors))


def step(host: Host, plan: Plan, what: Step, place: Place, patterns: Sequence[str], progress: Progress | None) -> Ran:
    """Be idle for a moment, run fio once, and read the witnesses before, between and after."""
    trace = ""
    if what.purpose == "calls":
        descriptor, trace = tempfile.mkstemp(prefix="zaudit-strace-")
        os.close(descriptor)
    try:
        idle = moment(host, patterns)
        if what.purpose not in ("warm", "calls", "sweep"):
            _wait(IDLE_S, "idle before " + what.name, progress)
        before = moment(host, patterns)
        ran = _fio(host, plan, what, place, trace, progress, patterns)
        after = moment(host, patterns)
        ran = ran._replace(idle=idle, before=before, after=after)
        if trace:
            ran = ran._replace(strace=Path(trace).read_text(errors="replace"))
        return ran
    finally:
        if trace:
            os.unlink(trace)


def _wait(seconds: float, what: str, progress: Progress | None) -> None:
    started = time.monotonic()
    while (done := time.monotonic() - started) < seconds:
        if progress:
            progress(what, done, seconds)
        time.sleep(POLL_S)


def _fio(
    host: Host, plan: Plan, what: Step, place: Place, trace: str, progress: Progress | None, patterns: Sequence[str]
) -> Ran:
    found = tools()
    argv = command(plan, what, trace)
    paths = {"fio": found.fio, "strace": found.strace, "setpriv": found.setpriv, ENV: found.env}
    own = {name: os.environ[name] for name in PRELOADS if name in os.environ}
    txgs = [pattern for pattern in patterns if pattern.endswith("/txgs")]
    history: list[str] = []
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, _iostat(found, plan, what) as iostat:
        began = time.time()
        process = subprocess.Popen(
            [paths.get(word, word) for word in argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=place.path,
            env={**ENVIRONMENT, **own},
            start_new_session=True,
        )
        limited, fault = False, ""
        started = looked = time.monotonic()
        try:
            while process.poll() is None:
                now = time.monotonic()
                if progress:
                    progress(what.name, now - started, what.seconds)
                if not limited and written(process.pid) > what.limit:
                    limited = True
                    _signal(process, signal.SIGINT)  # fio ends in order and prints what it has
                if now - started > what.seconds + SLACK_S and not fault:
                    fault = f"fio did not end within {what.seconds + SLACK_S:.0f} s"
                    _signal(process, signal.SIGKILL)
                    break
                if now - looked > TXGS_EVERY_S:
                    looked = now
                    history += host.read(Read(tuple(txgs))).text.values()
                time.sleep(POLL_S)
        finally:
            _end(process)
        ended = time.time()
        history += host.read(Read(tuple(txgs))).text.values()
        nothing = Moment(0.0, 0.0, {}, {})
        return Ran(
            name=what.name,
            purpose=what.purpose,
            sections=what.sections,
            argv=argv if not trace else tuple("TRACE" if word == trace else word for word in argv),
            idle=nothing,
            before=nothing,
            after=nothing,
            began=began,
            ended=ended,
            exit=process.returncode,
            stdout=_text(out),
            stderr=_text(err),
            fault=fault,
            txgs=tuple(history),
            iostat=iostat(),
            limited=limited,
        )


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(256 << 20).decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Nothing of it is left, or it hangs in the kernel and cannot be waited for."""
    if process.poll() is None:
        _signal(process, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def written(pid: int) -> int:
    """Bytes that a process and its children have written (proc(5), wchar of /proc/PID/io); 0 where that is not to be read."""
    total = 0
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/io").read_text().splitlines():
            if line.startswith("wchar:"):
                total = int(line.split()[1])
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            total += written(int(child))
    return total


@contextlib.contextmanager
def _iostat(found: Tools, plan: Plan, what: Step) -> Iterator[Callable[[], str]]:
    """``zpool iostat`` over the time of a run, beside it: not needed for a verdict, and good to have when one is doubted."""
    if not found.zpool or what.purpose in ("warm", "calls", "sweep"):
        yield lambda: ""
        return
    pool = plan.dataset.partition("/")[0]
    argv = (found.zpool, "iostat", "-Hpvyl", pool, str(max(what.seconds - 1, 1)), "1")
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        try:
            yield lambda: _text(out) if process.poll() is not None else ""
        finally:
            _end(process)
