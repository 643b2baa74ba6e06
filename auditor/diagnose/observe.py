"""Looks at the load of a pool for some seconds: the witnesses before and after, and the kernel's histograms meanwhile."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator

from auditor.diagnose import counters, histograms
from auditor.diagnose import tracing as trace
from auditor.diagnose.observation import Observation, Process, Tick, Traced
from auditor.facts import Facts, Subject
from auditor.host.live import Host
from auditor.host.request import Read
from auditor.verify import kmsg, run
from auditor.verify.run import Progress

NOT_ASKED = "--no-trace"
THREADS = "/proc/*/task/*/schedstat"
MOST = 256  # threads whose names are asked for, those with the most commits
_WITHIN = (
    (
        re.compile(r"/(?:docker-|libpod-|cri-containerd-|crio-)([0-9a-f]{12})[0-9a-f]{52}(?:\.scope)?(?:/|$)"),
        "container {}",
    ),
    (re.compile(r"/docker/([0-9a-f]{12})[0-9a-f]{52}(?:/|$)"), "container {}"),
    (re.compile(r"/lxc(?:\.payload)?[./]([\w.-]{1,64})(?:/|$)"), "container {}"),
    (re.compile(r"/machine\.slice/machine-qemu\\x2d[0-9]{1,9}\\x2d([\w.-]{1,64})\.scope"), "guest {}"),
    (re.compile(r"/qemu\.slice/([0-9]{1,9})\.scope"), "guest {}"),
    (re.compile(r"/system\.slice/([\w.@-]{1,64})\.service"), "{}.service"),
)


def observe(
    host: Host, target: str, pool: Subject, facts: Facts, seconds: float, progress: Progress | None, *, traced: bool
) -> Observation:
    """Raises Interrupted when a signal came; nothing is left then."""
    patterns = counters.patterns(pool, facts)
    began = _waits(host)
    with run.interruptible(), kmsg.listening() as logged, _tracing(traced) as (look, end, why):
        before = run.moment(host, patterns)
        ticks = list(_ticks(seconds, look, progress))
        found = end(ticks) if end else None
        after = run.moment(host, patterns)
        return Observation(
            target, pool.name, before, after, found, why, tuple(_processes(host, found, began)), logged()
        )


@contextlib.contextmanager
def _tracing(
    wanted: bool,
) -> Iterator[tuple[trace.Look | None, Callable[[list[Tick]], Traced] | None, str]]:
    """Without a trace: why there is none."""
    with contextlib.ExitStack() as stack:
        why = "" if wanted else NOT_ASKED
        look, end = None, None
        if wanted:
            try:
                look, end = stack.enter_context(trace.tracing())
            except trace.CannotTrace as error:
                why = str(error)
        yield look, end, why


def _ticks(seconds: float, look: trace.Look | None, progress: Progress | None) -> Iterator[Tick]:
    """One a second."""
    started = time.monotonic()
    number = 0
    while (done := time.monotonic() - started) < seconds:
        if progress:
            progress("looking at the commits", done, seconds)
        number += 1
        time.sleep(max(min(started + number, started + seconds) - time.monotonic(), 0.0))
        if look:
            yield Tick(time.time(), look())


# -- who ----------------------------------------------------------------------------------------------------------


def _waits(host: Host) -> dict[int, int]:
    """Thread -> nanoseconds that it was ready and had no CPU, second column. (Documentation/scheduler/sched-stats.rst)"""
    found = {}
    for path, text in host.read(Read((THREADS,))).text.items():
        cells = text.split()
        if len(cells) == 3 and cells[1].isdecimal():
            found[int(path.split("/")[4])] = int(cells[1])
    return found


def _processes(host: Host, found: Traced | None, began: dict[int, int]) -> Iterator[Process]:
    """Those that committed, as far as they still run."""
    if found is None:
        return
    try:
        threads = sorted(histograms.threads(found.commits), key=lambda each: -each.commits)
    except ValueError:
        return
    ended = _waits(host)
    for pid, name in list({each.pid: each.name for each in threads}.items())[:MOST]:
        group = host.read(Read((f"/proc/{pid}/cgroup",))).text.get(f"/proc/{pid}/cgroup", "")
        waited = ended[pid] - began[pid] if pid in began and ended.get(pid, -1) >= began[pid] else None
        yield Process(pid, name, "", within(group), waited)


def within(group: str) -> str:
    """The container, guest or service of a control group, empty where none is told."""
    for pattern, words in _WITHIN:
        if found := pattern.search(group):
            return words.format(found[1])
    return ""
