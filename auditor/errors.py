"""What ends zaudit with one sentence and an exit code, instead of a report. Every package raises its own kind of it."""

from __future__ import annotations

import errno

EXIT_BROKE, EXIT_USAGE, EXIT_NOTHING, EXIT_INTERRUPTED = 1, 2, 3, 130
NO_MEMORY = "not enough memory (see ulimit -v, and the limit of a container)"
DISK = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
)  # a disk that is full or fails: no fault of the words


class Stop(Exception):
    """The text is one sentence for the user. exit_code: of the command."""

    exit_code = EXIT_USAGE
