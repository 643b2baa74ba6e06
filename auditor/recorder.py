"""``zaudit-record.py``: asks a host what ``zaudit check`` asks and writes the answers, and can do nothing else. Made of
this module and those that it needs, for a Python that is too old for zaudit (``make recorder``; docs/recordings.md). The
recording is judged where zaudit runs."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from auditor import EXIT_BROKE, EXIT_INTERRUPTED, NO_MEMORY, Stop, __version__, interrupt
from auditor.gather.gatherer import Progress
from auditor.gather.walk import LookOptions, gather
from auditor.host import process
from auditor.host.live import Host, LiveHost
from auditor.host.request import DEADLINE_S
from auditor.interrupt import open_streams, progress
from auditor.recording import archive, recording, redaction
from auditor.recording.recording import Recording, RecordingHost
from auditor.sources import sources
from auditor.text import harmless

USAGE = "zaudit-record.py [TARGET]... -o REC"
WORDS = "Ask everything that zaudit check asks and write the answers to REC; zaudit check --replay REC judges them."


def main(rules: str) -> None:
    """rules: digest of those of this release, for the recording. The process ends here, and what it started with it."""
    sys.dont_write_bytecode = True
    gc.disable()  # as zaudit itself does: a short run that makes a million small objects
    code = 0
    try:
        open_streams()
        interrupt.install(_leave)
        _record(_words(sys.argv[1:]), rules)
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except Exception as error:
        code = _failed(error)
    interrupt.ignore()
    with suppress(OSError):
        sys.stdout.flush()
    _leave(code)


def _failed(error: Exception) -> int:
    """The exit code, after the one line that says what went wrong."""
    code, text = EXIT_BROKE, f"internal error, please report it: {type(error).__name__}: {error}"
    if isinstance(error, Stop):
        code, text = error.exit_code, str(error)
    elif isinstance(error, OSError):
        text = f"{error.filename or ''}: {error.strerror or error}".lstrip(": ")
    elif isinstance(error, MemoryError):
        text = NO_MEMORY
    _say(f"zaudit-record: {text}")
    return code


def _leave(code: int) -> None:
    process.kill_all()
    os._exit(code)


def _words(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(usage=USAGE, description=WORDS, allow_abbrev=False)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="Pools, datasets or paths; all pools without one.")
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="REC", help="Folder, .tar.gz or .zaudit to write."
    )
    parser.add_argument("--redact", action="store_true", help="Replace serials, GUIDs, WWNs and host names.")
    parser.add_argument("--db", metavar="NAME[=DIR|DSN]", help="The database of the target, as of zaudit check.")
    parser.add_argument("--timeout", type=_seconds, default=30.0, metavar="SECONDS", help="Of one command.")
    parser.add_argument("--deadline", type=_seconds, default=DEADLINE_S, metavar="SECONDS", help="Of all; 0: none.")
    parser.add_argument("--consistent", action="store_true", help="Dataset properties in one transaction group.")
    parser.add_argument("--version", action="version", version=f"zaudit-record {__version__}")
    return parser.parse_args(words)


def _seconds(word: str) -> float:
    seconds = float(word)
    if not 0 <= seconds <= 86400:
        raise ValueError(word)
    return seconds


def _record(words: argparse.Namespace, rules: str) -> None:
    """Raises Stop or OSError."""
    archive.possible(words.output)
    wanted = LookOptions(words.consistent)
    wanted = wanted.with_database(words.db) if words.db else wanted
    host = LiveHost(max(words.timeout, 0.1), words.deadline)
    taken = taken_of(host, tuple(words.targets), wanted, rules, progress(words.deadline))
    for left_out in recording.write(redaction.redact(taken, b"") if words.redact else taken, words.output):
        _say(left_out)
    files = sum(len(each.text) for each in taken.files.values())
    _say(f"{words.output}: {len(taken.commands)} commands, {files} files")


def taken_of(
    host: Host, targets: tuple[str, ...], wanted: LookOptions, rules: str, progress: Progress | None = None
) -> Recording:
    """All answers of a host, as ``zaudit record`` keeps them. Raises NothingToAudit."""
    asked = RecordingHost(host)
    gather(asked, targets, wanted, sources(), progress)
    return asked.recording(targets, wanted.words(), __version__, rules)


def _say(text: str) -> None:
    with suppress(OSError):  # where nobody listens the exit code says what came of it
        sys.stderr.write(harmless(text) + "\n")
        sys.stderr.flush()
