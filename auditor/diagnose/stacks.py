"""Who waits for a commit, from the stacks of threads: a separate process takes them, and they are counted here."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import subprocess
import time
from collections.abc import Iterator

from auditor.diagnose.commits import FEW
from auditor.diagnose.diagnosis import Stacked, Waiter
from auditor.diagnose.observation import KERNEL, Counted, Observation, Stacks, Waited
from auditor.facts import HOST, Facts, is_true
from auditor.host import child
from auditor.host.children.stack_reader import MOST_REST
from auditor.sources import kstat
from auditor.text import duration
from auditor.verify import trial

# Which threads wait in zil_commit(), seen now and then in their stacks: where tracing is not possible, and zaudit is root.
#
# The mean number of those that wait, divided by the commits per second, is how long one takes (Little's law: L = λW). It says
# too little: a thread that runs has no stack to be seen. A separate process looks (``stack_reader``), since the stack of a
# process can let its reader wait; if it is silent for too long it is killed, and what made it wait is passed over with
# everything else of that user. Nothing on the host is changed. (Linux fs/proc/base.c proc_pid_stack, lock_trace)

STARTS_S = 5.0  # in which it has to begin
SILENT_S, ATTEMPTS = 3.0, 8  # what makes its reader wait for longer is passed over; so often
MOST = 4096  # threads that are told apart
LONGEST = 1 << 20  # bytes of answers that are heard at once
_LINE = re.compile(
    rb"(?:(?P<pass>P) ([0-9]{1,12}) ([0-9]{1,7}) ([01])|(?P<stack>T) ([0-9]{1,10}) ([0-9]{1,10})"
    rb"|(?P<waits>H) ([0-9]{1,10}) ([0-9]{1,10}) ([01]) ((?:[0-9a-f]{2}){0,64})|(?P<cannot>X) (.{1,200}))"
)


@contextlib.contextmanager
def sampling() -> Iterator[Sampler]:
    """While it lasts, somebody looks, as far as the sampler is heard (``hear``) now and then."""
    sampler = Sampler()
    try:
        yield sampler
    finally:
        sampler.end()


class Sampler:
    """Adds up what the process says that looks. A pass counts when it is done."""

    def __init__(self) -> None:
        self._hits: dict[tuple[int, int, bool, str], int] = {}
        self._passes = self._most = 0
        self._cut = False
        self._passed_over: list[str] = []
        self._why: list[str] = []
        self._attempts = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._start()

    def _start(self) -> None:
        self._rest, self._pass, self._reads = b"", list[tuple[int, int, bool, str]](), ("", "")
        self._heard = time.monotonic() + STARTS_S
        self._attempts += 1
        code = f"{child.source('stack_reader')}\nrun()\n"
        try:
            self._child = child.start(code, self._passed_over)
        except OSError as error:
            self._child = None
            self._why.append(f"who looks at stacks cannot be started: {error.strerror}")
            return
        assert self._child.stdout
        fcntl.fcntl(self._child.stdout, fcntl.F_SETFL, os.O_NONBLOCK)

    def hear(self) -> None:
        """What was said since. Where nothing was for too long, another one goes on."""
        if self._child is None:
            return
        assert self._child.stdout
        try:
            data = self._child.stdout.read(LONGEST)
        except OSError:
            data = None
        if data:
            self._heard = time.monotonic()
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._line(line)
        elif data == b"":
            self._end_of_it("who looks at stacks ended early")
        elif time.monotonic() - self._heard > SILENT_S and not child.runs(self._child):
            process, user = self._reads
            self._passed_over += [
                each for each in (f"p{process}", f"u{user}" if user != "0" else "") if process and each
            ]
            if process:
                whose = f"of user {user}" if user != "0" else f"{process}"
                self._why.append(
                    f"the process{'es' if user != '0' else ''} {whose} let the reader of their stacks wait"
                )
            self._end_of_it("")
            if self._attempts < ATTEMPTS:
                self._start()
            else:
                self._why.append("the stacks of too many processes could not be read")

    def _line(self, line: bytes) -> None:
        found = _LINE.fullmatch(line)
        if found is None:
            self._end_of_it("who looks at stacks said what is not understood")
        elif found["pass"]:
            self._passes += 1
            self._most = max(self._most, int(found[3]))
            self._cut = self._cut or found[4] == b"1"
            for each in self._pass:
                if each in self._hits or len(self._hits) < MOST:
                    self._hits[each] = self._hits.get(each, 0) + 1
                else:
                    self._cut = True
            self._pass = []
            self._reads = ("", "")
            self._heard = time.monotonic() + int(found[2]) / 1e6 * MOST_REST
        elif found["stack"]:
            self._heard = time.monotonic()
            self._reads = (found[6].decode(), found[7].decode())
        elif found["waits"]:
            name = bytes.fromhex(found[12].decode()).decode("utf-8", "surrogateescape")
            self._pass.append((int(found[9]), int(found[10]), found[11] == b"1", name))
        else:
            self._end_of_it(os.fsdecode(found[14]).lower())

    def _end_of_it(self, why: str) -> None:
        if why:
            self._why.append(why)
        reader, self._child = self._child, None
        if reader:
            if reader.stdout:
                reader.stdout.close()
            child.end(reader, kill=True)

    def end(self) -> None:
        """Nothing of it is left running, unless a file system holds it."""
        self.hear()
        self._end_of_it("")

    def stacks(self) -> Stacks:
        """Everything so far."""
        waits = tuple(
            Waited(thread, process, name, kernel, hits)
            for (thread, process, kernel, name), hits in sorted(
                self._hits.items(), key=lambda each: (-each[1], each[0])
            )
        )
        why = [*self._why, *(["not every thread was looked at each time"] if self._cut else [])]
        return Stacks(self._passes, self._most, waits, tuple(dict.fromkeys(why)))


# How long a commit takes, and who waits for it, by samples of stacks. Pure.

# 17 and 27 % on OpenZFS 2.3.9 beside what the program counted itself, where those that wait for a CPU were left out
TOO_LITTLE = "which say up to 30% too little"


def stacked(seen: Observation, counted: Counted, facts: Facts) -> Stacked | None:
    """None where nobody looked at stacks."""
    if seen.stacks is None:
        return None
    found, known = seen.stacks, {each.pid: each for each in seen.processes}
    mine = {*seen.named.threads} if seen.named else set()
    waits = [each for each in found.waits if each.hits > 0]
    samples = sum(each.hits for each in waits)
    waiting = samples / found.passes if found.passes > 0 else 0.0
    commits = _commits(seen)
    why = _why_not(found, samples, commits, facts)
    mean = None if why or not commits else waiting * counted.seconds * 1e9 / commits
    waiters = tuple(
        Waiter(
            pid=each.thread,
            name=each.name,
            role=KERNEL if each.kernel else known[each.thread].role if each.thread in known else "",
            within=known[each.thread].within if each.thread in known else "",
            samples=each.hits,
            part=each.hits / samples,
            own=each.thread in mine,
        )
        for each in waits
    )
    return Stacked(found.passes, samples, waiting, mean, why, waiters)


def _commits(seen: Observation) -> int | None:
    """Of all pools, as stacks are, with those that found the ZIL suspended, which are counted apart. (OpenZFS module/zfs/zil.c
    zil_kstats_global_update(), zil_commit(); include/sys/zil.h ZIL_STAT_INCR)"""
    grown = trial.grown(*(trial.table(each, trial.ZIL_PATH) for each in (seen.before, seen.after)))
    commits = grown.get("zil_commit_count")
    return None if commits is None else commits + grown.get("zil_commit_suspend_count", 0)


def _why_not(found: Stacks, samples: int, commits: int | None, facts: Facts) -> str:
    """Why no mean is told, empty where one is."""
    if found.faults:
        return found.faults[0]
    if not is_true(facts.get(HOST, "all_processes")):
        return "only the processes of this container are seen"
    if commits is None:
        return f"{kstat.ROOT}/zil does not count commits here"
    if found.passes < FEW:
        return f"{found.passes} looks are too few for a mean"
    if commits < FEW or samples < FEW:
        return f"{samples} samples of {commits} commits are too few for a mean"
    return ""


def sentence(found: Stacked) -> str:
    """about 20 ms each by 412 samples of stacks, which say up to 30 % too little; empty where no mean is told."""
    if found.mean_ns is None:
        return ""
    return f"about {duration(found.mean_ns)} each by {found.samples:,} samples of stacks, {TOO_LITTLE}"


def share(found: Stacked) -> str:
    """Of the waiting that is of the process that was named."""
    mine = [each for each in found.waiters if each.own]
    return f"{sum(each.part for each in mine):.0%} of the waiting for commits by {found.samples:,} samples of stacks"
