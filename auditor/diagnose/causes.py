"""What stands out, the gravest first: each found by what was counted, or by comparing what should be alike. Pure.

Nothing here is called slow by itself, for nobody knows what the drive promises: a leg is slow beside the other legs of its
vdev, a transaction group beside zfs_txg_timeout. A healthy pool gives no cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from auditor.diagnose import log_causes as log
from auditor.diagnose import pool_causes as pool
from auditor.diagnose.model import Cause
from auditor.diagnose.seen import Seen

FINDERS: tuple[Callable[[Seen], Iterator[Cause]], ...] = (
    pool.suspended, pool.failing, pool.unfinished, pool.fallbacks, pool.always, log.slow_log_leg, log.shared,
    log.past_the_slog, log.slow_data_leg, pool.throttled, log.alone, pool.scanning, pool.long_groups, pool.forced_groups,
    pool.starved, pool.memory, pool.full, log.on_special,
)  # fmt: skip
OF_THE_ZIL = (pool.fallbacks, pool.always, log.past_the_slog, log.alone)  # rest on what the ZIL counted


def causes(seen: Seen) -> tuple[Cause, ...]:
    """All that stand out."""
    return tuple(cause for finder in FINDERS if not (seen.mixed and finder in OF_THE_ZIL) for cause in finder(seen))
