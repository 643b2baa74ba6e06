"""The entry of ``zaudit``, ``python -m auditor`` and ``zaudit.pyz``.

``--version`` alone is answered before anything else is imported: out of a zip archive the imports are most of the time.
"""

import gc
import os
import sys

from auditor import __version__


def main() -> None:
    """Answer ``--version``, or hand over to the command line.

    The process ends there and then: the interpreter would take a tenth of a second to let go of the facts of 10,000
    datasets one by one, and might wait for a thread that hangs in the kernel.
    """
    if sys.argv[1:] == ["--version"]:
        print(f"zaudit {__version__}")
        return
    gc.disable()  # a short run that makes a million small objects and no cycles to speak of
    from auditor.cli import run

    try:
        run()
    except SystemExit as done:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(done.code if isinstance(done.code, int) else int(done.code is not None))


if __name__ == "__main__":
    main()
