"""A host of its own for a test: mount, process and network namespaces in which every tool of zaudit answers from a
recording, with the /sys and the /proc/spl of that recording, and the real zaudit of this checkout as root.

Nothing is installed and nothing outlives it: when the command ends, the kernel ends every process of the namespace.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from auditor.host.request import Capture, Files
from auditor.recording import recording
from auditor.recording.recording import Recording
from auditor.sources import commands

ZAUDIT = (sys.executable, "-I", "-m", "auditor")
HOSTILE = 65534  # nobody's uid
PROCESSES = 1000  # of the namespace have a place in its /proc, more than a check starts
# what a caller may have; each test adds what it is about
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
UNSHARE = ("unshare", "--mount", "--pid", "--net", "--fork", "--kill-child")
# $1: the folder of the host; the rest is the command. DATABASE: whether a server of an unprivileged user runs there, a shell
# by the name of postgres. LIBUDEV: whether libudev can be loaded; it believes no /sys but the kernel's, so without it udevadm
# is asked, which answers from the recording. LOG: whether the log of this machine's kernel is there, which is no part of a
# recording. What runs before the command has a folder in the new /proc, the rest a link to it.
INSIDE = r"""
set -eu
host=$1; shift
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
mount --bind "$host/sbin" /usr/sbin
mount --bind "$host/sys" /sys
if [ -n "$DATABASE" ]; then
    mkdir /run/pg
    cp /bin/sh /run/pg/postgres
    echo 15 >/run/pg/PG_VERSION
    echo 'fsync = off' >/run/pg/postgresql.conf
    mkfifo /run/pg/stop
    echo 'exec 3<>/run/pg/stop; : >/run/pg/ready; read _ <&3' >/run/pg/script
    chown -R 65534:65534 /run/pg
    setpriv --reuid 65534 --regid 65534 --clear-groups /run/pg/postgres /run/pg/script -D /run/pg >/dev/null 2>&1 </dev/null &
    until [ -e /run/pg/ready ]; do sleep 0.01; done
    rm /run/pg/ready /run/pg/stop
fi
mount -t proc proc "$host/proc/.kernel"
for path in "$host"/proc/.kernel/[0-9]*; do
    rm "$host/proc/${path##*/}"; mkdir "$host/proc/${path##*/}"; mount --bind "$path" "$host/proc/${path##*/}"
done
mount --rbind "$host/proc" /proc
for path in $(ls -d /usr/lib/*/libudev.so.1 /usr/lib64/libudev.so.1 2>/dev/null); do
    [ -n "$LIBUDEV" ] || mount --bind /dev/null "$(readlink -f "$path")"
done
[ -n "$LOG" ] || [ ! -e /dev/kmsg ] || mount --bind /dev/null /dev/kmsg
for path in $HIDDEN; do
    if [ -d "$path" ]; then mount -t tmpfs -o ro tmpfs "$path"; else mount --bind /dev/null "$path"; fi
done
cd /
status=0
"$@" || status=$?
exit $status
"""
# a tool: a shell that knows by itself what was recorded of these arguments; it is started fifty times in a check, and may start
# nothing itself (tests/security/strace.py)
TOOL = b"""#!/bin/sh
IFS='\x1f'
case "$*" in
%s
*) echo 'not in the recording' >&2; exit 1;;
esac
"""
ANSWER = b"%s) printf -- %s; %sexit %d;;"


@cache
def missing() -> str:
    """Why this machine cannot have such a host, or empty."""
    if os.geteuid() != 0:
        return "needs root for namespaces"
    if shutil.which("unshare") is None:
        return "needs unshare (util-linux)"
    tried = subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/usr/sbin"], capture_output=True, check=False)
    return f"this machine grants no namespaces: {tried.stderr.decode().strip()}" if tried.returncode else ""


@dataclass(frozen=True)
class FakeHost:
    """One that :func:`lay_out` made; folder: of its own, which holds sbin, sys and proc."""

    folder: Path

    def command(self, argv: Sequence[str]) -> list[str]:
        """The words that run a command in it."""
        return [*UNSHARE, "sh", "-c", INSIDE, "host", str(self.folder), *argv]

    def run(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str] = {},
        *,
        hidden: Sequence[str] = (),
        database: bool = False,
        libudev: bool = False,
        log: bool = False,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command in it to its end. hidden: places that are empty there. database: whether a server runs there.
        libudev: whether it can be loaded, which then finds no disk. log: whether the kernel's log is there."""
        _fresh_proc(self.folder)
        return subprocess.run(
            self.command(argv),
            env={
                **ENVIRONMENT,
                **environment,
                "HIDDEN": " ".join(hidden),
                "DATABASE": "yes" if database else "",
                "LIBUDEV": "yes" if libudev else "",
                "LOG": "yes" if log else "",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )

    def tool(self, name: str, script: str) -> None:
        """Put a shell script in the place of a tool; "$REAL" is the tool that answers from the recording."""
        path = self.folder / "sbin" / name
        real = path.with_name(f".{name}")
        if not real.exists():
            path.rename(real)
        path.write_text(f"#!/bin/sh\nREAL=/usr/sbin/.{name}\n{script}\n")
        path.chmod(0o755)


def lay_out(recorded: Path, folder: Path) -> FakeHost:
    """A host that answers from a recording, below a folder that root alone may write."""
    past = recording.load(recorded)
    for name in ("sbin", "sys", "spl"):
        (folder / name).mkdir(parents=True)
    _lay_out_tools(past, folder)
    for files in past.files.values():
        _lay_out_files(files, "/sys/", folder / "sys")
        _lay_out_files(files, "/proc/spl/", folder / "spl")
    _lay_out_proc(folder)
    # what pip compiles when it installs: Python would write it at the first start, before zaudit can tell it not to
    subprocess.run([*ZAUDIT, "--version"], stdout=subprocess.DEVNULL, check=True)
    return FakeHost(folder)


def _lay_out_tools(past: Recording, folder: Path) -> None:
    for tool in dict.fromkeys(each.begins[0] for each in commands()):
        answers = [_answer(argv[1:], each) for argv, each in past.commands.items() if argv[0] == tool]
        path = folder / "sbin" / tool
        path.write_bytes(TOOL % b"\n".join(filter(None, answers)))
        path.chmod(0o755)


def _answer(arguments: tuple[str, ...], capture: Capture) -> bytes:
    """The branch for these arguments; none where the recording has no answer."""
    if capture.exit is None:
        return b""
    told = b"printf -- %s >&2; " % _format(capture.stderr) if capture.stderr else b""
    words = os.fsencode("\x1f".join(arguments)).replace(b"'", rb"'\''")
    return ANSWER % (b"'%s'" % words, _format(capture.stdout), told, capture.exit)


def _format(data: bytes) -> bytes:
    """For printf of a shell."""
    plain = re.sub(rb"[^ -~\n]|[\\'%]", lambda each: b"%%" if each[0] == b"%" else b"\\%03o" % ord(each[0]), data)
    return b"'%s'" % plain


def _lay_out_files(files: Files, below: str, root: Path) -> None:
    for path, text in files.text.items():
        if path.startswith(below):
            file = root / path.removeprefix(below)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode("utf-8", "surrogateescape"))
    for path, target in files.links.items():
        link = root / path.removeprefix(below)
        if path.startswith(below) and not link.exists() and not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)


def _lay_out_proc(folder: Path) -> None:
    """/proc/spl beside the kernel's own /proc, which nothing can be mounted over piece by piece: each name is a link to it."""
    proc = folder / "proc"
    (proc / ".kernel").mkdir(parents=True)
    names = {name for name in os.listdir("/proc") if not name.isdigit()} - {"spl"}
    for name in (*names, *map(str, range(1, PROCESSES))):
        (proc / name).symlink_to(f".kernel/{name}")
    shutil.copytree(folder / "spl", proc / "spl", symlinks=True)


def _fresh_proc(folder: Path) -> None:
    """As laid out, again: what ran before the last command has left its folders."""
    with os.scandir(folder / "proc") as entries:
        for process in [each.path for each in entries if each.name.isdigit() and not each.is_symlink()]:
            os.rmdir(process)
            os.symlink(f".kernel/{os.path.basename(process)}", process)
