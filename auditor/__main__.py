"""The entry of ``zaudit``, ``python -m auditor`` and ``zaudit.pyz``.

``--version`` alone is answered before anything else is imported: out of a zip archive the imports are most of the time.

What is imported later comes from where Python and zaudit are installed, and not from the folder in which root happens to
stand: ``python -m`` puts that one first. What Python itself does before this module runs cannot be changed here: PYTHONPATH,
PYTHONHOME and the user's site-packages are not looked at with ``python3 -I`` only. (man 1 python3, -I and -P)
"""

from __future__ import annotations

import gc
import os
import sys

from auditor import EXIT_BROKE, EXIT_INTERRUPTED, EXIT_USAGE, NO_MEMORY, __version__
from auditor.interrupt import open_streams

TYPE_CHECKING = False  # as typing has it, which is slow to import
if TYPE_CHECKING:
    from typing import TextIO


def main() -> None:
    """Answer ``--version``, or hand over to the command line. The process ends at once, with what it started: to free the
    facts of 10,000 datasets takes a tenth of a second, and a thread may hang in the kernel."""
    code, text = 0, ""
    _import_no_strangers()
    try:
        open_streams()
        if sys.argv[1:] == ["--version"]:
            text = f"zaudit {__version__}\n"
        else:
            _run()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    except KeyboardInterrupt:  # before the command line is there to see it
        code = EXIT_INTERRUPTED
    except OSError as error:  # a module cannot be read: too few descriptors
        code = EXIT_USAGE
        _written(sys.stderr, f"zaudit: {error.filename or ''}: {error.strerror}\n")
    except MemoryError:  # nor imported
        code = EXIT_USAGE
        _written(sys.stderr, f"zaudit: {NO_MEMORY}\n")
    if interrupt := sys.modules.get("auditor.interrupt"):
        interrupt.ignore()
    _kill_children()
    os._exit(_print(text, code))


def _import_no_strangers() -> None:
    """Nothing from the caller's folder, and no compiled file is left next to a module."""
    sys.dont_write_bytecode = True
    home = os.path.dirname(os.path.dirname(__file__))  # a checkout or zaudit.pyz may be first, too
    if not sys.flags.safe_path and sys.path and sys.path[0] != home:
        del sys.path[0]


def _run() -> None:
    gc.disable()  # a short run that makes a million small objects and no cycles to speak of
    from auditor import interrupt

    try:
        interrupt.install(_leave)
    except RuntimeError:
        _written(sys.stderr, "zaudit: no thread can be started (see ulimit -u and -v, and the limits of a container)\n")
        sys.exit(EXIT_USAGE)
    from auditor.cli import run

    run()


def _leave(code: int) -> None:
    """In place of a main thread that hangs."""
    _kill_children()
    os._exit(code)


def _kill_children() -> None:
    if started := sys.modules.get("auditor.host.process"):
        started.kill_all()


def _print(text: str, code: int) -> int:
    """The exit code, once everything is written; not 0 where it did not arrive."""
    wrong = _written(sys.stdout, text)
    if wrong and not isinstance(wrong, BrokenPipeError) and not code:
        _written(sys.stderr, f"zaudit: standard output: {wrong.strerror}\n")
    _written(sys.stderr, "")
    return code or (EXIT_BROKE if wrong else 0)


def _written(stream: TextIO, text: str) -> OSError | None:
    """What goes wrong when this, and what waits to be written, is written."""
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        return error
    return None


if __name__ == "__main__":
    main()
