"""Recordings judged on the workers of Dask: those of a cluster, or processes of this machine."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from auditor.errors import Stop
from auditor.fleet.judging import How, judged_lines, lines, unjudged
from auditor.fleet.workers import Bounds

AHEAD = 8  # recordings that a worker may be ahead of one that takes long


class NoCluster(Stop):
    """No Dask, or no scheduler at the address."""


def judged(names: Iterable[str], how: How, bounds: Bounds, address: str = "") -> Iterator[str]:
    """The lines of each recording, in the order of the names. address: of a scheduler; empty: a cluster of so many processes
    here. A recording on a worker that dies is judged by another one; Dask gives up after the third. Raises NoCluster."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise NoCluster("--engine dask needs Dask (pip install 'zaudit[dask]')") from None
    local: Any = None
    try:
        if not address:
            local = LocalCluster(n_workers=bounds.jobs, threads_per_worker=1, dashboard_address=None)
        client = Client(local or address, timeout=20)
    except (OSError, ValueError) as error:
        raise NoCluster(f"Dask at {address or 'this machine'}: {error}") from None
    try:
        yield from _judged(client, iter(names), how, bounds)
    finally:
        client.close()
        if local:
            local.close()


def _judged(client: Any, names: Iterator[str], how: How, bounds: Bounds) -> Iterator[str]:
    most = max(sum(client.nthreads().values()), bounds.jobs) * AHEAD
    under_way: deque[tuple[str, Any]] = deque()
    while True:
        for name in islice(names, most - len(under_way)):
            under_way.append((name, client.submit(judged_lines, name, how, pure=False)))
        if not under_way:
            return
        name, future = under_way.popleft()
        try:
            yield str(future.result(timeout=bounds.seconds * AHEAD))
        except Exception as error:  # of the scheduler, of a worker, of pickling: all of it is a row
            future.cancel()
            yield lines([unjudged(name, f"{type(error).__name__}: {error}")])
