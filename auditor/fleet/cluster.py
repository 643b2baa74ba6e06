"""Recordings judged on the workers of Dask: those of a cluster, or processes of this machine. Each worker has a process of
ours judge them, with the bounds that it has on one machine: no recording takes a worker's memory."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from auditor import __version__
from auditor.errors import Stop
from auditor.fleet.child import TRIES, Child
from auditor.fleet.judging import SAID, How, lines, unjudged
from auditor.fleet.workers import Bounds

PATIENCE = 20.0  # seconds, for a scheduler to answer
AHEAD = 8  # recordings that a worker may be ahead of one that takes long
_OWN = threading.local()  # child: the process of a thread of a worker; how: by what it judges


class NoCluster(Stop):
    """No Dask, no scheduler at the address, or a cluster that ended before the recordings did."""


def judged(names: Iterable[str], how: How, bounds: Bounds, address: str = "") -> Iterator[str]:
    """The lines of each recording, in the order of the names. address: of a scheduler; empty: a cluster of so many processes
    here. A recording on a worker that dies is judged by another one; Dask gives up after the fourth. Raises NoCluster."""
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
        yield from _judged(client, iter(names), how, bounds, where)
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
    return child.judged(name, seconds)


def _judged(client: Any, names: Iterator[str], how: How, bounds: Bounds, where: str) -> Iterator[str]:
    from distributed import KilledWorker

    most = max(sum(client.nthreads().values()), bounds.jobs) * AHEAD
    under_way: deque[tuple[str, Any]] = deque()
    while True:
        for name in islice(names, most - len(under_way)):
            asked = client.submit(on_a_worker, name, how, bounds.seconds, __version__, pure=False)
            under_way.append((name, asked))
        if not under_way:
            return
        name, future = under_way.popleft()
        try:
            yield str(future.result(timeout=bounds.seconds * TRIES * AHEAD))
        except KilledWorker as error:
            yield lines([unjudged(name, f"the workers that judged it died ({error})")])
        except Stop as error:
            raise NoCluster(f"{where}: {error}") from None
        except (
            Exception
        ) as error:  # no recording makes one: it is the scheduler, the network, or a worker without zaudit
            said = str(error) or "no worker answered in time"
            raise NoCluster(f"{where}: {type(error).__name__}: {said}"[:SAID]) from None
