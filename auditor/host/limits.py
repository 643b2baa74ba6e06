"""How much zaudit takes in, and how long it waits. Over a bound there is a reason in place of the answer, not a part of it."""

from __future__ import annotations

OUTPUT_BYTES = 128 << 20
"""Of what one command prints, on both streams together."""
LINE_BYTES = 64 << 10
"""Of a line of a history of which only some lines are kept. (OpenZFS: a record of zpool history has 8 KiB at most,
HIS_MAX_RECORD_LEN of include/sys/fs/zfs.h)"""
HALF_BYTES = 64 << 10
"""Of each stream that are kept of a command that gave no answer."""
ANSWERS_BYTES = 512 << 20
"""Of all answers of one run together."""
AT_ONCE = 32
"""Questions that are open beside each other; a host with 24 drives has 150."""
AFTER_KILL_S = 2.0
"""In which a command that was killed is waited for: a suspended pool leaves processes in uninterruptible sleep."""
DEADLINE_S = 900.0
"""Of a whole run, unless --deadline says otherwise."""
