"""What Python had not yet at 3.6, for modules that :mod:`tests.recorder.lower` has rewritten. Runs on any Python from 3.6 on.

Each is what the standard library of Python 3.11 has under its name, as far as the recorder uses it.
"""

from __future__ import annotations

import collections.abc
import functools
import gzip
import os
import queue
import re as plain
import signal
import tempfile
import time
from typing import Any


class Cell:
    """A variable that an expression sets: ``x := value``."""

    def __init__(self, *value: Any) -> None:
        if value:
            self.v = value[0]

    def set(self, value: Any) -> Any:
        self.v = value
        return value


def either(a: Any, b: Any) -> Any:
    """``a | b``, also of dicts (3.9), and of types for isinstance() (3.10)."""
    if isinstance(a, collections.abc.Mapping) and isinstance(b, collections.abc.Mapping):
        whole = dict(a)
        whole.update(b)
        return whole
    if isinstance(a, (type, tuple)) and (b is None or isinstance(b, (type, tuple))):
        return (a if isinstance(a, tuple) else (a,)) + (b if isinstance(b, tuple) else (b,))
    return a | b


def grown(a: Any, b: Any) -> Any:
    """``a |= b``, also of dicts."""
    if isinstance(a, dict):
        a.update(b)
        return a
    a |= b
    return a


def without_prefix(text: Any, prefix: Any) -> Any:
    return text[len(prefix) :] if text.startswith(prefix) else text[:]


def without_suffix(text: Any, suffix: Any) -> Any:
    return text[: -len(suffix)] if suffix and text.endswith(suffix) else text[:]


def is_ascii(text: Any) -> bool:
    return all(ord(each) < 128 for each in text) if isinstance(text, str) else all(each < 128 for each in text)


def is_sequence(value: Any) -> bool:
    """What a pattern of several may match."""
    return isinstance(value, collections.abc.Sequence) and not isinstance(value, (str, bytes, bytearray))


def in_step(*each: Any) -> Any:
    """``zip(strict=True)``."""
    nothing = object()
    iterators = [iter(one) for one in each]
    while iterators:
        values = tuple([next(one, nothing) for one in iterators])
        missing = [value is nothing for value in values]
        if all(missing):
            return
        if any(missing):
            raise ValueError("zip() arguments of different lengths")
        yield values


def cache(function: Any) -> Any:
    return functools.lru_cache(maxsize=None)(function)


class cached_property:
    """An attribute that is worked out once."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        value = owner.__dict__[self.function.__name__] = self.function(owner)
        return value


# -- dataclasses ----------------------------------------------------------------------------------------------------------


class field:
    """A default that is made anew for each."""

    def __init__(self, default_factory: Any) -> None:
        self.default_factory = default_factory


def dataclass(**_: Any) -> Any:
    """With fields by position or name; whoever changes one is no user of ours."""

    def made(kind: Any) -> Any:
        names = list(kind.__annotations__)

        def start(self: Any, *values: Any, **named: Any) -> None:
            given = dict(zip(names, values))  # noqa: B905 (older than strict)
            given.update(named)
            for name in names:
                default = getattr(kind, name, None)
                if name not in given:
                    given[name] = default.default_factory() if isinstance(default, field) else getattr(kind, name)
            if set(given) != set(names):
                raise TypeError("unknown field of " + kind.__name__)
            self.__dict__.update(given)

        kind.__init__ = start
        return kind

    return made


def replace(value: Any, **changes: Any) -> Any:
    return type(value)(**dict(value.__dict__, **changes))


# -- the standard library ---------------------------------------------------------------------------------------------------

SimpleQueue = getattr(queue, "SimpleQueue", queue.Queue)
BadGzipFile = getattr(gzip, "BadGzipFile", OSError)
MFD_CLOEXEC = getattr(os, "MFD_CLOEXEC", 1)
CLOCK_BOOTTIME = 7  # linux/time.h


def time_ns() -> int:
    return time.time_ns() if hasattr(time, "time_ns") else int(time.time() * 1e9)


def clock_gettime_ns(clock: int) -> int:
    return time.clock_gettime_ns(clock) if hasattr(time, "time_ns") else int(time.clock_gettime(clock) * 1e9)


def memfd_create(name: str, flags: int = 0) -> int:
    """A file without a name."""
    if hasattr(os, "memfd_create"):
        return int(os.memfd_create(name, flags))
    with tempfile.TemporaryFile(dir="/dev/shm") as file:
        return os.dup(file.fileno())


class scanned:
    """``os.scandir()``, also of a descriptor (3.7)."""

    def __init__(self, path: Any) -> None:
        old = isinstance(path, int) and os.scandir not in os.supports_fd
        self.entries: Any = map(_Named, os.listdir(path)) if old else os.scandir(path)

    def __enter__(self) -> Any:
        return self.entries

    def __exit__(self, *error: Any) -> None:
        if hasattr(self.entries, "close"):
            self.entries.close()


class _Named:
    def __init__(self, name: str) -> None:
        self.name = name


def real_path(path: str, strict: bool = False) -> str:
    """``os.path.realpath``: strict (3.10) raises FileNotFoundError for what is not there, and OSError for a circle of links."""
    real = os.path.realpath(path)
    if strict:
        os.stat(path)
    return real


def set_wakeup_fd(number: int, warn_on_full_buffer: bool = False) -> int:
    return signal.set_wakeup_fd(number)


# -- regular expressions ----------------------------------------------------------------------------------------------------


HEAD = plain.compile(r"\(\?(?:P<\w+>|<[=!]|[:=!]|[aimsx]+:)")  # of a group that is no plain one
WHOLE = plain.compile(r"\(\?(?:P=\w+|[aimsx]+)\)")
TIMES = plain.compile(r"[*+?]|\{\d+(?:,\d*)?\}|\{,\d+\}")
CLASS = plain.compile(r"\[\^?\]?(?:[^]\\]|\\.)*\]", plain.DOTALL)


def atomic(pattern: str) -> str:
    """A pattern without possessive quantifiers (3.11): ``X++`` as ``(?=(?P<n>X+))(?P=n)``, which gives back as little. X is a
    character, escape, class or group."""
    out: list[str] = []
    starts: list[int] = []  # where in out the groups begin that are open
    last = at = count = 0  # last: where in out begins what may be repeated
    while at < len(pattern):
        token = _token(pattern, at)
        at += len(token)
        if token[0] == "(" and token[-1:] != ")":
            starts.append(len(out))
        elif token == ")":
            last = starts.pop()
        elif TIMES.match(token):
            mark = pattern[at : at + 1]
            at += mark in ("+", "?") and mark != ""
            if mark == "+":
                if plain.search(r"\\[1-9]", pattern):
                    raise ValueError("groups are counted anew, and this names one by its number: " + pattern)
                count += 1
                out[last:] = [f"(?=(?P<_p{count}>{''.join(out[last:])}{token}))(?P=_p{count})"]
                continue
            token += "?" * (mark == "?")
        else:
            last = len(out)
        out.append(token)
    return "".join(out)


def _token(pattern: str, at: int) -> str:
    """What begins here: an escape, a class, a quantifier, the head of a group, or one character."""
    if pattern[at] == "\\":
        return pattern[at : at + 2]
    for kind in (WHOLE, HEAD, TIMES, CLASS):
        found = kind.match(pattern, at)
        if found:
            return str(found.group())
    return pattern[at]


class _Match:
    """A match whose groups have the numbers that the pattern gave them."""

    def __init__(self, found: Any, numbers: Any) -> None:
        self._found, self._numbers = found, numbers

    def _own(self, group: Any) -> Any:
        return self._numbers[group] if isinstance(group, int) else group

    def __getitem__(self, group: Any) -> Any:
        return self._found.group(self._own(group))

    def group(self, *groups: Any) -> Any:
        return self._found.group(*[self._own(each) for each in groups or (0,)])

    def groups(self, default: Any = None) -> Any:
        every = self._found.groups(default)
        return tuple([every[number - 1] for number in self._numbers[1:]])

    def groupdict(self, default: Any = None) -> Any:
        every = self._found.groupdict(default)
        return {name: every[name] for name in every if not name.startswith("_p")}

    def start(self, group: Any = 0) -> Any:
        return self._found.start(self._own(group))

    def end(self, group: Any = 0) -> Any:
        return self._found.end(self._own(group))

    def span(self, group: Any = 0) -> Any:
        return self._found.span(self._own(group))


class _Pattern:
    """A pattern that had possessive quantifiers."""

    def __init__(self, written: Any, flags: int) -> None:
        self.pattern = written
        self._compiled: Any = plain.compile(_like(written, atomic(_text(written))), flags)
        ours = {number for name, number in self._compiled.groupindex.items() if name.startswith("_p")}
        self._numbers = [each for each in range(self._compiled.groups + 1) if each not in ours]

    def _of(self, found: Any) -> Any:
        return found and _Match(found, self._numbers)

    def match(self, *words: Any) -> Any:
        return self._of(self._compiled.match(*words))

    def fullmatch(self, *words: Any) -> Any:
        return self._of(self._compiled.fullmatch(*words))

    def search(self, *words: Any) -> Any:
        return self._of(self._compiled.search(*words))

    def finditer(self, *words: Any) -> Any:
        return map(self._of, self._compiled.finditer(*words))

    def findall(self, *words: Any) -> Any:
        every = [each.groups(words[0][:0]) or (each[0],) for each in self.finditer(*words)]
        return [each if len(each) > 1 else each[0] for each in every]

    def sub(self, new: Any, text: Any) -> Any:
        if callable(new):
            return self._compiled.sub(lambda found: new(self._of(found)), text)
        numbered = plain.sub(
            r"\\(?:g<)?(\d+)>?", lambda found: f"\\g<{self._numbers[int(found.group(1))]}>", _text(new)
        )
        return self._compiled.sub(_like(new, numbered), text)

    def split(self, text: Any) -> Any:
        """Of a pattern without groups."""
        parts, at = [], 0
        for found in self.finditer(text):
            parts.append(text[at : found.start()])
            at = found.end()
        return [*parts, text[at:]]


def _text(pattern: Any) -> str:
    return pattern.decode("latin-1") if isinstance(pattern, bytes) else str(pattern)


def _like(pattern: Any, text: str) -> Any:
    return text.encode("latin-1") if isinstance(pattern, bytes) else text


class re:
    """The module, with patterns as Python 3.11 reads them."""

    ASCII, DOTALL, IGNORECASE, MULTILINE, VERBOSE = (
        plain.ASCII, plain.DOTALL, plain.IGNORECASE, plain.MULTILINE, plain.VERBOSE,
    )  # fmt: skip
    I, M, X = IGNORECASE, MULTILINE, VERBOSE  # noqa: E741 (as the module has it)
    error, escape, Pattern, Match = plain.error, staticmethod(plain.escape), object, object

    @staticmethod
    @cache
    def compile(pattern: Any, flags: Any = 0) -> Any:
        possessive = atomic(_text(pattern)) != _text(pattern)
        return _Pattern(pattern, flags) if possessive else plain.compile(pattern, flags)

    @staticmethod
    def match(pattern: Any, text: Any, flags: Any = 0) -> Any:
        return re.compile(pattern, flags).match(text)

    @staticmethod
    def fullmatch(pattern: Any, text: Any, flags: Any = 0) -> Any:
        return re.compile(pattern, flags).fullmatch(text)

    @staticmethod
    def search(pattern: Any, text: Any, flags: Any = 0) -> Any:
        return re.compile(pattern, flags).search(text)

    @staticmethod
    def finditer(pattern: Any, text: Any, flags: Any = 0) -> Any:
        return re.compile(pattern, flags).finditer(text)

    @staticmethod
    def findall(pattern: Any, text: Any, flags: Any = 0) -> Any:
        return re.compile(pattern, flags).findall(text)

    @staticmethod
    def sub(pattern: Any, new: Any, text: Any, flags: Any = 0) -> Any:
        return re.compile(pattern, flags).sub(new, text)

    @staticmethod
    def split(pattern: Any, text: Any, maxsplit: int = 0, flags: Any = 0) -> Any:
        found = re.compile(pattern, flags)
        return found.split(text, maxsplit) if maxsplit else found.split(text)
