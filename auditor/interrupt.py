"""The signals that end the program end it through its clean-up, at any moment but within a deferred block. And its standard
streams."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread, main_thread
from types import FrameType, TracebackType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Python hears a signal between two steps of its main thread. One that hangs in a system call (a report on a file system that
# does not answer) never comes to its next step.
HEARD_S = 3.0
# The main thread gets the signal again and again: it ends a call that waits, but not one that begins a moment later.
NUDGED_S = 0.2
# The watching thread looks for a signal that no thread took. One for the process goes to the main thread, and stays there where
# a file system does not answer (FUSE, a dead NFS server): such a call ends only with the process (TASK_KILLABLE), and until
# then no handler runs, not even the one in C that wakes others.
LOOKED_S = 0.5
TOLD_S = 1.0  # for the last line on standard error, which may be on the file system that does not answer
AGAIN_S = 1.0  # the end of a block's time is reported again: an error while Python calls a __del__ is lost


class TooLate(BaseException):
    """The time of a block is over. No Exception, which a parser might take for a fault of what it reads."""


class _Deferred:
    """``with interrupt.deferred:`` a short block that a signal does not break; it comes at the end."""

    def __init__(self) -> None:
        self.inside = False
        self.came = 0

    def __enter__(self) -> None:
        self.inside = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.inside = False
        if number := self.came:
            self.came = 0
            _end(number)


def _exit(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


deferred = _Deferred()
_heard: list[int] = []  # signals that another handler took, after which the program continues
_late: list[tuple[str, int]] = []  # the message and the exit code where the time of a block is over
_errors: list[Callable[[int], BaseException]] = [_exit]  # the last one is raised
_raised: list[tuple[type[BaseException], int]] = []  # by the last signal, and its number


def install(leave: Callable[[int], None]) -> None:
    """From now on; an ignored signal stays ignored, as under nohup. leave: ends the process with an exit code, from another
    thread, where the main thread does not hear the signal."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _signalled)
    if (
        signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    ):  # every command would seem to end with 0, zfs destroy as well
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    sys.unraisablehook = partial(_send_again, writer)
    Thread(target=_watch, args=(reader, leave), daemon=True).start()


@contextmanager
def within(seconds: float, text: str, code: int) -> Iterator[None]:
    """A block of the main thread with a limit of time, whatever it does; 0: none. Raises TooLate(text). code: of the
    process where the main thread hangs."""
    if not seconds:
        yield
        return
    _late[:] = [(text, code)]
    signal.signal(signal.SIGALRM, _signalled)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)  # it may be over before the next line
        yield
    finally:
        _late.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


@contextmanager
def raising(error: Callable[[int], BaseException]) -> Iterator[None]:
    """A block in which a signal raises this error, and whose clean-up is waited for even if the main thread hangs."""
    before = {number: signal.getsignal(number) for number in ENDING}
    _errors.append(error)
    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, _signalled)
        yield
    finally:
        _errors.pop()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def waiting() -> Iterator[None]:
    """A part of such a block that waits for others: its time does not count."""
    left = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *left)


def ignore() -> None:
    """What cleans up is not to be interrupted."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def heard(number: int) -> None:
    """For another handler, which continues after the signal: the main thread gets it no more."""
    _heard.append(number)


def _signalled(number: int, _: FrameType | None) -> None:
    if deferred.inside:
        deferred.came = number
    else:
        _end(number)


def _end(number: int) -> None:
    if number == signal.SIGALRM:
        if not _late:
            return  # the block has just come to its end
        raise TooLate(_late[0][0])
    ignore()
    error = _errors[-1](number)
    _raised[:] = [(type(error), number)]
    raise error


def _send_again(writer: int, lost: sys.UnraisableHookArgs) -> None:
    """Python discards an error that a __del__ or the callback of a weak reference raises, and imports have such callbacks.
    The thread that watches sends that signal again; the alarm repeats. (docs.python.org, sys.unraisablehook)"""
    if _raised and lost.exc_type is _raised[0][0]:
        number = _raised.pop()[1]
        signal.signal(number, _signalled)
        os.write(writer, bytes([number]))
    elif lost.exc_type is not TooLate:
        sys.__unraisablehook__(lost)


def _watch(reader: int, leave: Callable[[int], None]) -> None:
    """Wait for a signal, and then for the main thread to hear it, which changes its handler."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {*ENDING, signal.SIGALRM})  # here alone, so that sigpending() shows them
    while True:
        number, until = _next(reader), time.monotonic() + HEARD_S
        time.sleep(NUDGED_S)
        if number in _heard:
            _heard.remove(number)
            continue
        while signal.getsignal(number) == _signalled:
            if time.monotonic() > until and _errors == [_exit]:
                leave(_told(number))
            if number != signal.SIGALRM:  # which comes again by itself
                signal.pthread_kill(main_thread().ident or 0, number)
            time.sleep(NUDGED_S)


def _next(reader: int) -> int:
    """A signal that a handler in C has noted, or that waits for one for longer than it takes to call it."""
    before: set[signal.Signals] = set()
    while not select.select([reader], [], [], NUDGED_S if before else LOOKED_S)[0]:
        waiting = signal.sigpending()
        if stuck := waiting & before:
            return int(min(stuck))
        before = waiting
    return os.read(reader, 1)[0]


def _told(number: int) -> int:
    """The exit code, in place of a main thread that hangs, after what it would have said."""
    if number != signal.SIGALRM or not _late:
        return 128 + number
    text, code = _late[0]
    line = Thread(target=_write, args=(f"zaudit: {text}\n",), daemon=True)
    line.start()
    line.join(TOLD_S)
    return code


def _write(line: str) -> None:
    with suppress(OSError):
        os.write(2, line.encode())


# -- the standard streams -----------------------------------------------------------------------------------------------
# A program may be started without one of them; and the line of progress on one.

PATIENCE_S = 2.0  # before seconds are counted


def open_streams() -> None:
    """The null device in place of each closed standard stream: else the next opened file takes its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (the lowest free number, which is its own)


def shows_progress() -> bool:
    """Whether standard error is a terminal on which a line can be written over."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def progress(deadline_s: float = 0.0) -> Callable[[int, int, str, float], None] | None:
    """Writes one line on standard error while commands run: done, asked, what is waited for and how long, and how long that
    may still take. On a terminal only. deadline_s: of all together, from now on; 0 is none."""
    if not shows_progress():
        return None
    from auditor.text import harmless

    ends = time.monotonic() + deadline_s
    written = ""

    def show(done: int, asked: int, what: str, seconds: float) -> None:
        nonlocal written
        waits = f", {seconds:.0f} s" if seconds >= PATIENCE_S else ""
        if waits and deadline_s:
            waits += f", at most {max(ends - time.monotonic(), 0):.0f} s more"
        head = f"{done}/{asked} "
        room = max(_columns() - 1 - len(head) - len(waits), 10)
        said = harmless(what)
        said = said if len(said) <= room else said[: room - 3] + "..."
        line = head + said + waits
        if line != written:
            end = "\r\x1b[K" if done >= asked else ""
            sys.stderr.write(f"\r\x1b[K{line}{end}")
            sys.stderr.flush()
            written = line

    return show


def _columns() -> int:
    """Of the terminal on standard error; 80 where it does not know."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
