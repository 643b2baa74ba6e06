"""Why there is no answer, in one sentence that names the command or the file, with the shortest remedy."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from auditor.facts import AGAIN, ROOT, Reason, Unknown, unknown
from auditor.host import kmsg, libraries, sql
from auditor.host.live import Host
from auditor.host.request import UNASKED, Capture, Files, Run
from auditor.text import harmless

_LACKS = re.compile(r"ModuleNotFoundError: No module named '(\w+)'")
_DENIED = re.compile(r"permission denied|operation not permitted|must be (run as )?root|superuser|EACCES|EPERM", re.I)
# of an error: it will be the same tomorrow. (sd_booted(3); errno(3) ENOTTY, EOPNOTSUPP, ENOENT; getopt(3))
_STABLE = re.compile(
    r"not been booted with systemd|inappropriate ioctl|not supported|unsupported|no such file"
    r"|(unrecognized|invalid|unknown) option",
    re.I,
)


def command_line(argv: Sequence[str]) -> str:
    """A command as a user would type it; a program and a long list of properties are not spelt out."""
    if argv[0] == sql.NAME and len(argv) == 3:
        return harmless(f"--db {argv[1]}={argv[2]}")
    if argv[0] == libraries.LZC_NAME:
        return harmless(f"zfs program -n {' '.join(map(shlex.quote, argv[1:3]))} ...")
    if argv[0] == kmsg.NAME:
        return f"{kmsg.PATH} ({argv[1]})"
    return harmless(" ".join(map(_short, argv)))


def _short(word: str) -> str:
    return ",".join(word.split(",")[:2]) + ",..." if word.count(",") > 3 else shlex.quote(word)


def decoded(data: bytes) -> str:
    """What a command printed."""
    return data.decode("utf-8", "surrogateescape")


def root_if(host: Host, stderr: str) -> str:
    """The remedy of an error message that asks for more rights."""
    return ROOT if host.euid != 0 and _DENIED.search(stderr) else ""


def fault_of(request: Run, capture: Capture, text: str, euid: int) -> Reason | None:
    """Why a command gave no answer, or None when it did."""
    if capture.fault == "not installed":
        return Reason(
            f"{request.argv[0]} is not installed", f"apt install {request.package}" if request.package else ""
        )
    if capture.fault == UNASKED:
        return unasked(text)
    if capture.fault:
        return Reason(f"{text}: {capture.fault}", _longer(capture.fault), lost=True)
    if capture.exit is not None and capture.exit in request.accept:
        return None
    if lacks := _LACKS.search(decoded(capture.stderr)):
        ways = [f"pip install 'zaudit[{request.extra}]'"] if request.extra else []
        ways += [f"apt install {request.package}"] if request.package else []
        return Reason(f"{text}: Python's {lacks[1]} is not installed", " or ".join(ways))
    said = [line.strip() for line in decoded(capture.stderr + b"\n" + capture.stdout).splitlines()]
    # nvme-cli 2 puts its error into {"error": ...} and may print its usage before it: the line that says why comes first
    said = [line for line in said if line.strip("{}[],")]
    said.sort(key=lambda line: not _DENIED.search(line))
    why = harmless(said[0])[:200] if said else f"exit code {capture.exit}"
    if capture.exit is not None and capture.exit < 0:
        why = f"killed by signal {-capture.exit} ({why})"
    needs_root = euid != 0 and (_DENIED.search(decoded(capture.stderr + capture.stdout)) or (capture.exit or 0) < 0)
    return Reason(f"{text}: {why}", ROOT if needs_root else "", lost=not _STABLE.search(why))


def _longer(fault: str) -> str:
    """The option that gives an answer more time, where it did not come in time."""
    return "--deadline" if "the deadline of" in fault else "--timeout" if fault.startswith("no answer") else ""


def unasked(text: str) -> Reason:
    """Of a question that the zaudit which made the recording did not know."""
    return Reason(f"{text}: {UNASKED}", AGAIN)


def unread(files: Files, text: str, host: Host) -> Unknown:
    """Why a fact is missing after files were read: what could not be read, else that they do not say."""
    older = tuple(unasked(harmless(each)) for each in (*files.unasked(), *files.unkept)[:1])
    trouble = {path: error for path, error in files.errors.items() if error not in ("no such file", UNASKED)}
    absent = {path: error for path, error in files.errors.items() if "*" not in path and not older}
    reasons = tuple(
        Reason(
            f"{harmless(path)}: {error}",
            ROOT if host.euid != 0 and _DENIED.search(error) else _longer(error),
            lost=not _STABLE.search(error),
        )
        for path, error in sorted((trouble or absent).items())[:3]
    )
    return Unknown((*older, *reasons)) if older or reasons else unknown(f"{text}: does not say")
