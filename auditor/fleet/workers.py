"""Recordings judged in many processes at once, on this machine or on a cluster."""

from __future__ import annotations

import gc
import hashlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from auditor import Stop, __version__, audit, rulebook
from auditor.facts import Facts
from auditor.fleet import store
from auditor.judge.finding import Finding
from auditor.judge.policy_file import parse as parsed_policy
from auditor.recording import archive, recording
from auditor.report import report_json
from auditor.report.formats import exchange
from auditor.report.report_reader import parse_report
from auditor.rulebook import Chosen
from auditor.text import harmless, is_url

# One recording as rows: what ``zaudit check --replay REC --format jsonl`` says, and what a fleet is asked for besides.

ROWS = 10_000  # findings of one host: more is no host, and would be a flood in a store
LISTED = 20  # drive models and remedies of a finding
WORD = 200  # characters of one of them
LONGEST, WHOLE = 4 << 20, 64 << 20  # bytes of a row, and of all of a host: the report reads lines of up to 16 MiB
SAID = 500  # of an error
POLICIES = 8  # whose rules are kept, for recordings that bring their own

Row = dict[str, Any]


class How(NamedTuple):
    """By what a fleet is judged; it can be sent to other processes. folders: of own rules. policy: text of the one that
    replaces those of the recordings, with its path; without a path, each follows its own."""

    folders: tuple[str, ...] = ()
    policy: str = ""
    policy_path: str = ""


OURS = How()


def judge_recording(name: str, how: How = OURS) -> list[Row]:
    """The rows of one recording: of kind ``report``, then its findings, the worst first; or one of kind ``unjudged`` with
    the error. Never raises. name: a folder, a .tar.gz, or a URL where fsspec is installed; each row has it as
    ``recording``."""
    try:
        return _judged(name, how)
    except Stop as error:
        return [unjudged(name, str(error))]
    except OSError as error:
        return [unjudged(name, error.strerror or str(error))]
    except MemoryError:
        return [unjudged(name, "not enough memory to judge it")]
    except Exception as error:
        return [unjudged(name, f"internal error, please report it: {type(error).__name__}: {error}")]


def unjudged(name: str, error: str) -> Row:
    for prefix in (name, str(Path(name))):  # of a URL the second has one slash less
        error = error.removeprefix(f"{prefix}: ")
    return {**common("unjudged"), "recording": harmless(name), "error": harmless(error)[:SAID]}


def missing(host: str) -> Row:
    return {**common("missing"), "name": harmless(host), "error": "it was expected, and there is no recording of it"}


def common(kind: str) -> Row:
    """What each row has that is not of a report."""
    return {"schema": exchange.LINES, "kind": kind, "zaudit": __version__}


def lines(rows: list[Row]) -> str:
    return "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows)


def judge_lines(name: str, how: How) -> str:
    """:func:`judge_recording` as text, which is what goes from process to process."""
    return lines(judge_recording(name, how))


@lru_cache(maxsize=POLICIES)
def chosen(folders: tuple[str, ...], policy: str, path: str, pages: str = "") -> Chosen:
    """The rules, read once a process. Raises RuleError or PolicyError."""
    followed = parsed_policy(policy, path)._replace(pages=pages) if path else audit.NONE
    return rulebook.choose(tuple(map(Path, folders)), (), (), followed)


def _judged(name: str, how: How) -> list[Row]:
    content = _members(name)
    digest = _digest(content)
    past = recording.parse(name, content)
    options = audit.Options.from_words(past.options)
    if how.policy_path:
        options = options._replace(policy=parsed_policy(how.policy, how.policy_path))
    rules, left_out = chosen(how.folders, options.policy.text, options.policy.path, options.policy.pages)
    seen = audit.look(recording.ReplayHost(past), past.targets, options)
    report = audit.judge(seen, rules, past.targets, "low", left_out=left_out)
    if len(report.findings) + len(report.waived) > ROWS:
        return [unjudged(name, f"more than {ROWS:,} findings")]
    first, *found = exchange.rows(parse_report(report_json.document(report)))
    common = {"recording": harmless(name), "openzfs": first["openzfs"]}
    whole = {**first, **common, "digest": digest, "findings": len(found)}
    more = (_more(each, report.facts) for each in (*report.findings, *report.waived))
    rows = [whole, *({**row, **common, **extra} for row, extra in zip(found, more, strict=True))]
    sizes = [len(json.dumps(row, ensure_ascii=True)) for row in rows]
    if max(sizes) > LONGEST or sum(sizes) > WHOLE:
        return [unjudged(name, "rows that are too long: names as no host has them")]
    return rows


def _members(name: str) -> Mapping[str, bytes]:
    if is_url(name):
        return archive.unpacked(io.BytesIO(store.content(name)), Path(name))
    return archive.read(Path(name))


def _digest(content: Mapping[str, bytes]) -> str:
    """Of what is in a recording, be it a folder or an archive."""
    whole = hashlib.sha256()
    for name in sorted(content):
        whole.update(f"{name}\0{len(content[name])}\0".encode())
        whole.update(content[name])
    return whole.hexdigest()


def _more(finding: Finding, facts: Facts) -> Row:
    """models: of the drives that it is about; remedies: what would decide it."""
    subjects = [verdict.subject for verdict in finding.verdicts if verdict.subject.kind in ("disk", "leaf")]
    disks = (disk for each in subjects for disk in ((each,) if each.kind == "disk" else facts.linked(each, "disks")))
    models = (facts.get(disk, "model").word("unknown") for disk in disks)
    remedies = (reason.remedy for reason in finding.reasons if reason.remedy)
    return {"models": list(_few(models)), "remedies": list(_few(remedies))}


def _few(words: Iterator[str]) -> list[str]:
    return [harmless(word)[:WORD] for word in dict.fromkeys(words)][:LISTED]


# A process that judges one recording after the other, bounded in memory; the caller bounds its time. Started with
# :mod:`subprocess`: Dask's workers are daemons, which :mod:`multiprocessing` allows no children.

MEMORY = 3 << 30  # bytes of address space; a recording is 256 MiB at most, and its text as much again
TRIES = 2  # of a recording whose process died: something else may have killed it
IDLE = 600.0  # seconds
_CODE = "import sys; sys.path[:] = sys.argv[2:]; from auditor.fleet.workers import run; run(int(sys.argv[1]))"


class Child:
    """The process; it is started when it is first given something, and again when it is given something after its end."""

    def __init__(self, how: How) -> None:
        self._how = how
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection
        self._lock = threading.Lock()
        self._closed = False

    def judge(self, name: str, seconds: float) -> str:
        """The lines of one recording, whatever becomes of the process. Raises OSError where none can be started."""
        status = ""
        for _ in range(TRIES):
            self._start()
            with suppress(OSError):  # a process that is gone shows at the other end, too
                self._pipe.send((self._how, name))
            if not self._pipe.poll(seconds):
                self.end()
                return lines([unjudged(name, f"not judged within {seconds:g} s")])
            try:
                return self._pipe.recv_bytes().decode()
            except (EOFError, OSError):
                status = self._died()
        return lines([unjudged(name, f"the process that judged it died {TRIES} times ({status})")])

    def end(self) -> None:
        """Kill the process, if there is one, and wait for its end."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._pipe.close()
            self._process = None

    def close(self) -> None:
        """From another thread: what is judged ends now, and nothing is begun any more."""
        with self._lock:
            self._closed = True
            if self._process:
                self._process.kill()

    def _start(self) -> None:
        with self._lock:
            if self._closed:
                raise CancelledError
            if self._process is None:
                self._pipe, theirs = Pipe()
                with theirs:
                    flags = ("-I", *(("-B",) if sys.dont_write_bytecode else ()))
                    argv = (sys.executable, *flags, "-c", _CODE, str(theirs.fileno()), *sys.path)
                    self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),))

    def _died(self) -> str:
        """How it ended; it has closed its end of the pipe."""
        process = self._process
        assert process is not None
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
        self.end()
        code = process.returncode
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def run(number: int) -> None:
    """In the process: names come through this descriptor, lines go back, until the other end closes or is idle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal means the parent, which ends us
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    least = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (least if soft == resource.RLIM_INFINITY else min(soft, least), hard))
    pipe = Connection(number)
    with suppress(EOFError, OSError):
        while pipe.poll(IDLE):
            how, name = pipe.recv()
            pipe.send_bytes(judge_lines(name, how).encode())
            if not gc.get_freeze_count():
                gc.freeze()  # rules and modules stay: nothing looks through them for cycles again


# Recordings judged in processes, a thread for each. One that exhausts memory or time, or dies, is a row that says so.

AHEAD = 8  # recordings a process may be ahead of one that takes long, whose rows come first


def processors() -> int:
    return len(os.sched_getaffinity(0))


class Bounds(NamedTuple):
    """jobs: processes. seconds: for one recording."""

    jobs: int = 1
    seconds: float = 120.0


def judge_all(names: Iterable[str], how: How, bounds: Bounds) -> Iterator[str]:
    """The lines of each recording, in the order of the names, whichever is done first. Close it, and the processes end."""
    children = [Child(how) for _ in range(bounds.jobs)]
    idle = SimpleQueue[Child]()
    for each in children:
        idle.put(each)

    def one(name: str) -> str:
        child = idle.get()
        try:
            return child.judge(name, bounds.seconds)
        finally:
            idle.put(child)

    threads = ThreadPoolExecutor(bounds.jobs)
    try:
        for _, future in _in_order(lambda name: threads.submit(one, name), iter(names), bounds.jobs * AHEAD):
            yield future.result()
    finally:
        for each in children:
            each.close()
        threads.shutdown(cancel_futures=True)
        for each in children:
            each.end()


def _in_order(submit: Callable[[str], Any], names: Iterator[str], most: int) -> Iterator[tuple[str, Any]]:
    """Each name with its future. most: that are under way at once."""
    under_way: deque[tuple[str, Any]] = deque()
    while True:
        under_way.extend((name, submit(name)) for name in islice(names, most - len(under_way)))
        if not under_way:
            return
        yield under_way.popleft()


# Recordings judged on the workers of Dask: each has a bounded process of ours judge them.

PATIENCE = 20.0  # seconds, for a scheduler to answer
_OWN = threading.local()  # child: the process of a thread of a worker; how: by what it judges


class NoCluster(Stop):
    """No Dask, no scheduler at the address, or a cluster that ended before the recordings did."""


def judge_by_dask(names: Iterable[str], how: How, bounds: Bounds, address: str = "") -> Iterator[str]:
    """The lines of each recording, in the order of the names. address: of a scheduler; empty: a cluster of so many
    processes here. Another worker judges the recording of one that died; Dask gives up after the fourth. Raises
    NoCluster."""
    try:
        import distributed
    except ImportError:
        raise NoCluster("--engine dask needs Dask (pip install 'zaudit[dask]')") from None
    dask: Any = distributed  # what it says of its own types depends on its release
    where = f"Dask at {address or 'this machine'}"
    local: Any = None
    try:
        if not address:
            local = dask.LocalCluster(n_workers=bounds.jobs, threads_per_worker=1, dashboard_address=None)
        client = dask.Client(local or address, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise NoCluster(f"{where}: {error}") from None
    try:
        yield from _judged_by_dask(client, iter(names), how, bounds, where)
    finally:
        client.close()
        if local:
            local.close()


def on_a_worker(name: str, how: How, seconds: float, zaudit: str) -> str:
    """The lines of one recording. Raises NoCluster where the worker has a different zaudit from the caller."""
    if zaudit != __version__:
        raise NoCluster(f"a worker has zaudit {__version__}, and not {zaudit}")
    if getattr(_OWN, "how", None) != how:
        if there := getattr(_OWN, "child", None):
            there.end()
        _OWN.how, _OWN.child = how, Child(how)
    child: Child = _OWN.child
    return child.judge(name, seconds)


def _judged_by_dask(client: Any, names: Iterator[str], how: How, bounds: Bounds, where: str) -> Iterator[str]:
    from distributed import KilledWorker

    def submit(name: str) -> Any:
        return client.submit(on_a_worker, name, how, bounds.seconds, __version__, pure=False)

    for name, future in _in_order(submit, names, max(sum(client.nthreads().values()), bounds.jobs) * AHEAD):
        try:
            yield str(future.result(timeout=bounds.seconds * TRIES * AHEAD))
        except KilledWorker as error:
            yield lines([unjudged(name, f"the workers that judged it died ({error})")])
        except Stop as error:
            raise NoCluster(f"{where}: {error}") from None
        except Exception as error:  # of no recording: the scheduler, the network, or a worker without zaudit
            said = str(error) or "no worker answered in time"
            raise NoCluster(f"{where}: {type(error).__name__}: {said}"[:SAID]) from None
