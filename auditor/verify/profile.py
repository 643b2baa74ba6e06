"""Profiles: fio's own job files. Each says in its comments what it proves, what it does not, and what each section is for.

Ours is ``profiles/NAME.fio``. Any job file will do that names its files ``zaudit.…`` (filename_format). zaudit reads the
comments ``; proves: ...``, ``; does not: ...``, ``; source: ...``, ``; slo: p99=5ms p99.9=25ms`` in the head (a line that
begins with two or more spaces continues the one above), and ``; purpose: log`` in a section. fio expands
``${ZAUDIT_DIRECTORY}``, ``${ZAUDIT_RUNTIME}`` and ``${ZAUDIT_SIZE}`` from its environment, so every job file also runs
without zaudit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_args

from auditor import Stop
from auditor.host import user_files
from auditor.registry import Purpose
from auditor.verify.result import Slo

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

OURS = "profiles"
MOST = 1 << 20  # bytes; fio's own job files have a few thousand
PURPOSES: tuple[str, ...] = get_args(Purpose)
HEAD = ("proves", "does not", "source", "slo")

# What a job file may say. Everything else is refused: fio can run commands, open any path and trim devices.
ALLOWED = frozenset(
    """
    description stonewall new_group group_reporting ioengine rw readwrite bs blocksize bssplit blocksize_range bsrange
    size filesize io_size fsync fdatasync sync direct buffered iodepth numjobs thread nrfiles file_service_type openfiles
    time_based runtime ramp_time startdelay loops thinktime thinktime_blocks rate rate_iops rate_process overwrite
    file_append create_on_open fallocate buffer_compress_percentage buffer_compress_chunk refill_buffers zero_buffers
    scramble_buffers randrepeat randseed random_generator random_distribution norandommap percentage_random rwmixread
    rwmixwrite rwmixcycle iodepth_batch iodepth_batch_submit iodepth_low directory filename_format create_fsync
    create_serialize invalidate end_fsync fsync_on_close offset_increment offset allrandrepeat unique_filename flow
    flow_id significant_figures percentile_list dedupe_percentage
    """.split()  # noqa: SIM905 (sixty words in quotation marks are no list to read)
)
KINDS = ("read", "write", "randread", "randwrite", "rw", "readwrite", "randrw")
ENGINES = ("psync", "sync", "pvsync", "pvsync2", "vsync", "libaio", "posixaio", "io_uring", "mmap")
DIRECTORY = "${ZAUDIT_DIRECTORY}"
LONGEST = 1000  # characters of a line: fio reads lines in pieces of 4096, and takes the second piece for another line
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,60}")  # of a section: fio makes it a part of the names of its files
FILE_FORMAT = "zaudit.$jobname.$jobnum.$filenum"
FILES = re.compile(r"zaudit\.(?:[A-Za-z0-9_.-]|\$(?:jobname|jobnum|filenum))*")  # what zaudit finds again, and removes
NUMBERS = ("fsync", "fdatasync", "numjobs", "iodepth", "nrfiles", "buffer_compress_percentage")


class Section(NamedTuple):
    """One job of the file, with what [global] gives it. options: option -> value, a bare option has the value "1"."""

    name: str
    purpose: str
    text: str
    options: Mapping[str, str]

    @property
    def sync(self) -> str:
        """How it asks for stable storage: dsync, sync, fdatasync, fsync or none."""
        flag = self.options.get("sync", "0").lower()
        if flag in ("dsync", "sync", "1"):
            return "dsync" if flag == "dsync" else "sync"
        for name in ("fdatasync", "fsync"):
            if int(self.options.get(name, "0")):
                return name
        return "none"

    @property
    def every(self) -> int:
        """Writes between two syncs; 0 without."""
        return 1 if self.sync in ("dsync", "sync") else int(self.options.get(self.sync, "0"))

    @property
    def jobs(self) -> int:
        return int(self.options.get("numjobs", "1"))

    @property
    def depth(self) -> int:
        return int(self.options.get("iodepth", "1"))

    @property
    def direct(self) -> bool:
        return self.options.get("direct", "0") == "1" or self.options.get("buffered", "1") == "0"

    @property
    def writes(self) -> bool:
        return "write" in self.kind or self.kind == "rw" or self.kind == "randrw"

    @property
    def kind(self) -> str:
        return self.options.get("rw", self.options.get("readwrite", "read")).partition(":")[0]

    def size(self, given: int) -> int:
        """Bytes that all its jobs may take on disk. given: what ${ZAUDIT_SIZE} stands for."""
        text = self.options.get("size") or self.options.get("filesize") or "0"
        each = given if text == "${ZAUDIT_SIZE}" else size_bytes(text)
        return each * self.jobs


class Profile(NamedTuple):
    """One job file. slo: empty where its latency is not judged unless the user says by what."""

    name: str
    text: str
    proves: str
    does_not: str
    source: str
    slo: tuple[Slo, ...]
    sections: tuple[Section, ...]

    def of(self, purpose: str) -> Section | None:
        return next((each for each in self.sections if each.purpose == purpose), None)


def names() -> list[str]:
    return sorted(path.name.removesuffix(".fio") for path in _ours().iterdir() if path.name.endswith(".fio"))


def _ours() -> Traversable:
    from importlib.resources import files

    return files("auditor.verify") / OURS


def load(name: str) -> Profile:
    """One of ours by name, or a job file by path. Raises ProfileError."""
    own = not (name.endswith(".fio") or "/" in name)
    try:
        data = (_ours() / f"{name}.fio").read_bytes() if own else user_files.read(Path(name), MOST)
        text = data.decode("utf-8")
    except FileNotFoundError:
        raise ProfileError(f"no profile {name}; there are {', '.join(names())}, or the path of a job file") from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ProfileError(f"{name}: {why}") from None
    try:
        return parse(text, name, ours=own)
    except ProfileError as error:
        raise ProfileError(f"{name}: {error}") from None


def parse(text: str, name: str, *, ours: bool = False) -> Profile:
    """A job file. One that is not ours need say nothing of itself; its first section with syncs stands for the log."""
    head, bodies = _read(text)
    common, parsed = bodies.pop("global", ({}, {}))[0], []
    for section, (options, said) in bodies.items():
        merged = {option: value for option, (value, _) in {**common, **options}.items()}
        _check(merged, {option: line for option, (_, line) in {**common, **options}.items()})
        parsed.append(Section(section, said.get("purpose", ""), said.get("text", ""), merged))
    if not parsed:
        raise ProfileError("there is no job in it")
    for each in parsed:
        if each.purpose not in PURPOSES and (ours or each.purpose):
            raise ProfileError(f"the purpose of a section is one of {', '.join(PURPOSES)}")
    if not any(each.purpose == "log" for each in parsed):
        first = next((i for i, each in enumerate(parsed) if each.sync != "none"), 0)
        parsed = [
            each._replace(purpose="log" if i == first else each.purpose or "data") for i, each in enumerate(parsed)
        ]
    if ours and (missing := [word for word in HEAD[:3] if not head.get(word)]):
        raise ProfileError(f"its head does not say: {', '.join(missing)}")
    return Profile(
        name=name,
        text=text,
        proves=head.get("proves", "what the author of this job file had in mind"),
        does_not=head.get("does not", "anything about another pattern of writes"),
        source=head.get("source", ""),
        slo=_slo(head),
        sections=tuple(parsed),
    )


def _slo(head: Mapping[str, str]) -> tuple[Slo, ...]:
    try:
        return objectives(head["slo"]) if "slo" in head else ()
    except ProfileError:
        raise ProfileError("slo: an objective is a percentile and a time, such as p99=5ms") from None


def objectives(text: str) -> tuple[Slo, ...]:
    """``p99=5ms,p99.9=25ms`` (commas or spaces). Raises ProfileError."""
    found = []
    for part in re.split(r"[,\s]+", text.strip()):
        percentile, equals, limit = part.partition("=")
        if not equals:
            raise ProfileError(f"{part!r}: an objective is a percentile and a time, such as p99=5ms")
        found.append(Slo(share(percentile), nanoseconds(limit)))
    return tuple(sorted(found))


Body = tuple[dict[str, tuple[str, int]], dict[str, str]]


def _read(text: str) -> tuple[dict[str, str], dict[str, Body]]:
    """(head, section -> (options with their lines, comments)), as parse_jobs_ini() of fio's init.c reads it. Any file may
    be named here: an error has the number of the line, and no content."""
    head: dict[str, str] = {}
    bodies: dict[str, Body] = {}
    said, last = head, ""
    options: dict[str, tuple[str, int]] | None = None
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if len(line) > LONGEST:
            raise ProfileError(f"line {number} is longer than {LONGEST} characters")
        if CONTROL.search(stripped):
            raise ProfileError(f"line {number} holds a control character")
        if stripped.startswith((";", "#")):
            last = _comment(stripped[1:], said, last)
            continue
        stripped = re.split("[;#]", stripped)[0].rstrip()  # fio ends an option there (strip_blank_end() of parse.c)
        if stripped.startswith("[") and stripped.endswith("]"):
            name = stripped[1:-1]
            if not NAME.fullmatch(name):
                raise ProfileError(f"line {number}: a section is named with letters, digits, spaces and _ . -")
            if name in bodies:
                raise ProfileError(f"line {number}: this section appears twice")
            options, said, last = {}, {}, ""
            bodies[name] = (options, said)
        elif stripped:
            if options is None:
                raise ProfileError(f"line {number}: an option comes before the first section")
            option, equals, value = stripped.partition("=")
            options[option.strip()] = (value.strip() if equals else "1", number)
    return head, bodies


def _comment(text: str, said: dict[str, str], last: str) -> str:
    """Take up ``key: value`` or what goes on with it; returns the key that the next line may go on with."""
    if last and text.startswith("   "):
        said[last] += f" {text.strip()}"
        return last
    key, colon, value = text.strip().partition(":")
    if not colon or key not in (*HEAD, "purpose", "text"):
        return ""
    said[key] = value.strip()
    return key


def _check(options: Mapping[str, str], lines: Mapping[str, int]) -> None:
    def wrong(option: str, why: str) -> ProfileError:
        return ProfileError(f"line {lines[option]}: {option}: {why}")

    if stray := sorted(options.keys() - ALLOWED):
        if "dsync" in stray:
            raise wrong("dsync", "fio has no such option (it is sync=dsync)")
        raise ProfileError(f"line {min(lines[each] for each in stray)}: a job may not have this option here")
    if options.get("directory", DIRECTORY) != DIRECTORY:
        raise wrong("directory", f"only {DIRECTORY}; zaudit writes only into its own directory")
    if "filename_format" not in options:
        raise ProfileError(f"put filename_format={FILE_FORMAT} into [global], or one like it")
    if not FILES.fullmatch(options["filename_format"]):
        raise wrong("filename_format", f"put filename_format={FILE_FORMAT} into [global], or one like it")
    if options.get("ioengine", "psync") not in ENGINES:
        raise wrong("ioengine", f"one of {', '.join(ENGINES)}")
    kind = "rw" if "rw" in options else "readwrite"
    if options.get(kind, "read").partition(":")[0] not in KINDS:
        raise wrong(kind, f"one of {', '.join(KINDS)}")
    for option in NUMBERS:
        if not re.fullmatch("[0-9]{1,9}", options.get(option, "0")):
            raise wrong(option, "it must be a number")
    for option, value in options.items():
        if (
            "$" in value
            and value not in (DIRECTORY, "${ZAUDIT_RUNTIME}", "${ZAUDIT_SIZE}")
            and option != "filename_format"
        ):
            raise wrong(option, "no variable but ZAUDIT_DIRECTORY, _RUNTIME and _SIZE")


# Sizes, times and percentiles as people write them on a command line and in a job file.

SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ns|us|µs|ms|s)")
POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
LARGEST_SIZE = 2.0**62
NANOSECONDS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


class ProfileError(Stop, ValueError):
    """A job file, size or objective that cannot be used, and why."""


def size_bytes(text: str) -> int:
    """Bytes of ``8k``, ``64m``, ``1g`` (powers of 1024, as fio has it by default). Raises ProfileError."""
    found = SIZE.fullmatch(text.strip())
    if not found:
        raise ProfileError(f"{text!r} is not a size such as 8k, 64m or 1g")
    return _whole(found[1], 1024 ** POWERS[found[2].lower()])


def _whole(number: str, times: int) -> int:
    """Their product, in 64 bits. Raises ProfileError."""
    product = float(number) * times
    if product > LARGEST_SIZE:
        raise ProfileError(f"{number[:20]} is too large")
    return int(product)


def nanoseconds(text: str) -> int:
    """Of ``5ms``, ``800us``, ``1s``. Raises ProfileError."""
    found = TIME.fullmatch(text.strip())
    if not found:
        raise ProfileError(f"{text!r} is not a time such as 800us, 5ms or 1s")
    return _whole(found[1], NANOSECONDS[found[2]])


def share(percentile: str) -> float:
    """0.99 of ``p99`` or ``99``, 0.999 of ``p99.9``. Raises ProfileError."""
    try:
        q = float(percentile.strip().removeprefix("p")) / 100
    except ValueError:
        q = 0.0
    if not 0 < q < 1:
        raise ProfileError(f"{percentile!r} is not a percentile such as p99 or p99.9")
    return round(q, 9)
