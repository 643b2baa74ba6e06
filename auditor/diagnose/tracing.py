"""Histograms of ``zil_commit`` in tracefs, with events and an instance of our own.

Every sync that may write calls zil_commit() (fsync, O_DSYNC, msync, zvols, NFS); with sync=disabled O_DSYNC does too, and
returns at once, and fsync does not (zfs_fsync() of module/zfs/zfs_vnops.c). ``kprobe_events`` is only appended to: O_TRUNC,
as ``>`` of a shell, would remove everybody's events. Each name has the id and start of its process, so that ``zaudit
clean`` knows what a dead one left. Nothing is mounted. Small numbers replace addresses of the kernel. (Linux
Documentation/trace/kprobetrace.rst, histogram.rst)"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from auditor import Stop
from auditor.diagnose.commits import LARGEST, MOST, Histograms
from auditor.diagnose.observation import Tick, TraceTexts
from auditor.host.children.reader import Closing
from auditor.host.owner import UNTOLD, started

ROOT = Path("/sys/kernel/tracing")
LOCKDOWN = Path("/sys/kernel/security/lockdown")
MOUNTS = Path("/proc/self/mountinfo")
PROBES, SYNTHETIC = "kprobe_events", "synthetic_events"
NAME = re.compile(r"zaudit_([0-9]{1,9})_([0-9]{1,18})")
_OURS = re.compile(r"^[pr][0-9]{0,5}:(zaudit_[0-9]{1,9}_[0-9]{1,18})/(\w{1,32}) ", re.MULTILINE)
_MADE = re.compile(r"^(zaudit_[0-9]{1,9}_[0-9]{1,18})(_queue)?\t", re.MULTILINE)
_ZIL = re.compile(r"zil: {1,20}([0-9]{1,20})")
ENTRIES = ("zil_commit", "zil_commit_flags")  # 2.4 has both, where one may or may not be inlined into the other


class CannotTrace(Stop):
    """There is no trace, and why; the diagnosis goes on with counters alone."""


BY_THREAD, ALL = "common_pid.execname,zil", "us.log2"  # keys of two histograms of one event
Look = Callable[[], Histograms]


@contextlib.contextmanager
def tracing() -> Iterator[tuple[Look, Callable[[list[Tick]], TraceTexts]]]:
    """Counts commits within the block. Gives two functions: the histograms of all commits so far, and everything at the
    end; both raise OSError. Raises CannotTrace; nothing is left then, or after an error in the block."""
    refuse()
    name = own_name()
    try:
        try:
            _install(name)
        except OSError as error:
            raise CannotTrace(f"{error.filename or ROOT}: {(error.strerror or 'no').lower()}") from None
        zils: dict[str, str] = {}

        def look() -> Histograms:
            both = _read(_events(ROOT / "instances" / name, f"synthetic/{name}") / "hist")
            return Histograms(_part(both, ALL), _unnamed(_part(both, BY_THREAD), zils))

        yield look, lambda ticks: _all(name, ticks, zils)
    finally:
        with contextlib.suppress(OSError):
            remove(name)


def refuse() -> None:
    """Raises CannotTrace where tracing cannot or must not be done."""
    if os.geteuid():
        raise CannotTrace("only root may trace")
    with contextlib.suppress(OSError):
        if "[confidentiality]" in LOCKDOWN.read_text():
            raise CannotTrace(f"{LOCKDOWN} says confidentiality: the kernel forbids tracing")
    if not any(f" {ROOT} " in line and " - tracefs " in line for line in _read(MOUNTS).splitlines()):
        raise CannotTrace(f"no tracefs is mounted (mount -t tracefs tracefs {ROOT})")
    for file in (PROBES, SYNTHETIC):
        if not (ROOT / file).exists():
            raise CannotTrace(f"{ROOT / file} does not exist: this kernel has no such events")


def own_name() -> str:
    """zaudit_PID_START."""
    return f"zaudit_{os.getpid()}_{started(os.getpid())}"


# -- making -------------------------------------------------------------------------------------------------------


def _install(name: str) -> None:
    """Raises OSError or CannotTrace."""
    if name in left():
        raise CannotTrace(f"{ROOT} has events called {name} already (zaudit clean)")
    probed, _ = (_probe(name, function) for function in ENTRIES)
    if not probed:
        raise CannotTrace("zil_commit cannot be probed: is the OpenZFS module loaded?")
    _append(SYNTHETIC, f"{name} u64 us; u64 zil")
    instance = ROOT / "instances" / name
    instance.mkdir()
    start = "t0=common_timestamp.usecs,t1=common_timestamp.usecs,z=zil"
    _trigger(instance, f"{name}/commit", f"hist:keys=common_pid:{start}:size={MOST}")
    took = f"hist:keys=common_pid:us=common_timestamp.usecs-$t0:onmatch({name}.commit).trace({name},$us,$z):size={MOST}"
    _trigger(instance, f"{name}/done", took)
    _trigger(instance, f"synthetic/{name}", f"hist:keys={BY_THREAD}:vals=us:size={MOST}")
    _trigger(instance, f"synthetic/{name}", f"hist:keys={ALL}:size={MOST}")
    with contextlib.suppress(OSError):
        _queue(name, instance)


def _queue(name: str, instance: Path) -> None:
    """How long a thread took from its commit to its first log block."""
    _append(PROBES, f"p:{name}/issue zil_lwb_write_issue")
    _append(SYNTHETIC, f"{name}_queue u64 us")
    waited = f"q=common_timestamp.usecs-$t1:onmatch({name}.commit).trace({name}_queue,$q)"
    _trigger(instance, f"{name}/issue", f"hist:keys=common_pid:{waited}:size={MOST}")
    _trigger(instance, f"synthetic/{name}_queue", f"hist:keys=common_pid.execname:vals=us:size={MOST}")


def _probe(name: str, function: str) -> bool:
    """Entry and return of a function, as one more place of the same two events: a call within a call is one commit. 4,096
    returns may be outstanding (KRETPROBE_MAXACTIVE_MAX of kernel/trace/trace_kprobe.c)."""
    try:
        _append(PROBES, f"p:{name}/commit {function} zil=$arg1:u64")
        _append(PROBES, f"r4096:{name}/done {function}")
    except OSError:
        return False
    return True


def _append(file: str, line: str) -> None:
    """Raises OSError. Without O_TRUNC and without O_CREAT, in one write()."""
    path = ROOT / file
    with Closing(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)) as descriptor:
        try:
            os.write(descriptor, f"{line}\n".encode())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None


def _events(instance: Path, event: str) -> Path:
    return instance / "events" / event


def _trigger(instance: Path, event: str, trigger: str) -> None:
    _append(str(_events(instance, event).relative_to(ROOT) / "trigger"), trigger)


# -- reading ------------------------------------------------------------------------------------------------------


def _all(name: str, ticks: list[Tick], zils: dict[str, str]) -> TraceTexts:
    instance = ROOT / "instances" / name
    both = _read(_events(instance, f"synthetic/{name}") / "hist")
    queue = _events(instance, f"synthetic/{name}_queue") / "hist"
    ticks = [*ticks[:-1], ticks[-1]._replace(commits=_part(both, ALL))] if ticks else ticks
    waited = _read(queue) if queue.exists() else ""
    return TraceTexts(_unnamed(_part(both, BY_THREAD), zils), tuple(ticks), waited, _missed())


def _part(text: str, keys: str) -> str:
    """A file shows the histograms of all its triggers; the one with these keys."""
    found = (part for part in text.split("# event histogram") if f" hist:keys={keys}:" in part)
    return next(found, "")


def _unnamed(text: str, numbers: dict[str, str]) -> str:
    """Addresses of the kernel become 1, 2, 3, the same each time."""
    return _ZIL.sub(lambda found: f"zil: {numbers.setdefault(found[1], str(len(numbers) + 1))}", text)


def _missed() -> int | None:
    """Third column of kprobe_profile, of events of ours: calls that were not traced."""
    try:
        rows = [line.split() for line in _read(ROOT / "kprobe_profile").splitlines()]
    except OSError:
        return None
    ours = [row[-1] for row in rows if len(row) == 3 and row[0] in ("commit", "done")]
    return sum(map(int, ours)) if len(ours) >= 2 and all(each.isdecimal() for each in ours) else None


def _read(path: Path) -> str:
    with open(path, "rb") as file:
        return file.read(LARGEST).decode("utf-8", "replace")


# -- taking back --------------------------------------------------------------------------------------------------


def left() -> dict[str, bool]:
    """Name of ours in tracefs -> whether the process that made it lives. Empty where there is no tracefs to be read."""
    names: set[str] = set()
    with contextlib.suppress(OSError):
        names |= {each.name for each in (ROOT / "instances").iterdir() if NAME.fullmatch(each.name)}
        names |= {found[1] for found in _OURS.finditer(_read(ROOT / PROBES))}
        names |= {found[1] for found in _MADE.finditer(_read(ROOT / SYNTHETIC))}
    return {
        name: start != "0" and started(int(pid)) in (int(start), UNTOLD)
        for name in sorted(names)
        for _, pid, start in (name.split("_"),)
    }


def remove(name: str) -> None:
    """Everything of this name, in the order in which one thing needs the other; what is gone already is no error. Raises
    OSError for what cannot be removed."""
    assert NAME.fullmatch(name)
    instance = ROOT / "instances" / name
    probed = (f"{name}/{each}" for each in ("issue", "done", "commit", "call"))  # call: of earlier releases
    for event in (f"synthetic/{name}_queue", f"synthetic/{name}", *probed):
        with contextlib.suppress(FileNotFoundError):
            for line in reversed(_read(_events(instance, event) / "trigger").splitlines()):
                if line.startswith("hist:"):
                    _trigger(instance, event, "!" + line.partition(" [")[0])
    with contextlib.suppress(FileNotFoundError):
        instance.rmdir()
    probes = (found[2] for found in _OURS.finditer(_read(ROOT / PROBES)) if found[1] == name)
    for event in dict.fromkeys(probes):  # one with several places goes at once
        with contextlib.suppress(FileNotFoundError):
            _append(PROBES, f"-:{name}/{event}")
    for line in _read(ROOT / SYNTHETIC).splitlines():
        if line.partition("\t")[0] in (name, f"{name}_queue"):
            _append(SYNTHETIC, "!" + line.replace("\t", " "))


def clean() -> Iterator[tuple[str, str]]:
    """Remove what dead processes left; (name, what is wrong, or empty)."""
    for name, alive in left().items():
        if not alive:
            try:
                remove(name)
                yield name, ""
            except OSError as error:
                yield name, f"{error.filename or ROOT}: {error.strerror}"
