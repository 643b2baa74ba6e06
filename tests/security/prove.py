"""That ``zaudit check`` and ``zaudit record`` change nothing, shown call by call: ``python -m tests.security.prove``.

A whole run as root under ``strace -f`` on a host of fake tools (:mod:`tests.security.namespaces`), called with a PATH of
traps. The same judgement goes over the real tools in the lab (tests/lab/read_only.py).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from auditor.host.live import PATH, permitted
from tests.security import namespaces, strace
from tests.security.namespaces import ZAUDIT, FakeHost
from tests.security.strace import Permitted, Seen

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "hosts" / "2.3-healthy-mirrored-slog"
# whatever is looked for in the caller's PATH is found there first, and leaves a mark
TRAPS = (
    "gcc",
    "cc",
    "ld",
    "ldconfig",
    "objdump",
    "sh",
    "python3",
    "zfs",
    "zpool",
    "zdb",
    "nvme",
    "smartctl",
    "udevadm",
    "env",
)


def missing() -> str:
    """Why the proof cannot be had on this machine, or empty."""
    return namespaces.missing() or ("" if shutil.which("strace") else "needs strace")


def traps(folder: Path) -> tuple[str, Path]:
    """(a PATH that begins with a folder of traps, the file in which each leaves its mark)."""
    mark = folder / "mark"
    (folder / "traps").mkdir(parents=True)
    for name in TRAPS:
        path = folder / "traps" / name
        path.write_text(f'#!/bin/sh\necho "$0 $*" >>{mark}\nexit 1\n')
        path.chmod(0o755)
    return f"{folder / 'traps'}:/usr/sbin:/usr/bin:/sbin:/bin", mark


def run(host: FakeHost, words: Sequence[str], folder: Path, name: str, *, libudev: bool = False) -> tuple[int, Seen]:
    """(exit code, what was seen) of zaudit with these words and ``-o NAME`` in a folder of its own, under strace. What lies
    in that folder afterwards and what a trap caught are problems as well."""
    output, traced = folder / "output", folder / "traced"
    output.mkdir(parents=True)
    traced.mkdir()
    path, mark = traps(folder)
    # -E: of the caller; the harness has a PATH of its own
    argv = [*strace.command(traced), "-E", f"PATH={path}", *ZAUDIT, *words, "-o", str(output / name)]
    done = host.run(argv, database=True, libudev=libudev, log=True)
    seen = strace.read(strace.files(traced), Permitted(ZAUDIT, permitted, PATH, str(output)))
    seen.problems += (
        [f"a trap in the caller's PATH: {line}" for line in mark.read_text().splitlines()] if mark.exists() else []
    )
    seen.problems += [f"left beside the output: {each.name}" for each in output.iterdir() if each.name != name]
    return done.returncode, seen


def table(title: str, seen: Seen) -> Iterator[str]:
    """The proof, for a reader."""
    yield f"{title}: {seen.processes} processes and threads, {seen.calls} system calls judged"
    yield f"  files opened to read           {seen.opened - seen.opened_for_writing.total()}"
    yield f"  files opened for writing       {seen.opened_for_writing.total()}"
    yield from (f"    {count:5} {of}: {path}" for (of, path), count in seen.opened_for_writing.most_common())
    yield f"  folders and names made, moved or removed (all in the folder of the output)   {seen.in_the_output.total()}"
    yield from (f"    {count:5} {name}" for name, count in seen.in_the_output.most_common())
    yield f"  sockets                        {seen.sockets.total()}"
    yield from (f"    {count:5} {of}: {what}" for (of, what), count in seen.sockets.most_common())
    yield f"  ioctl                          {seen.ioctls.total()}"
    requests = sorted({(request, node) for _, node, request in seen.ioctls})
    for request, node in requests:
        count = sum(each for (_, at, what), each in seen.ioctls.items() if (what, at) == (request, node))
        yield f"    {count:5} {request} {node}".rstrip()
    yield f"  programs started               {seen.executed.total()}"
    yield from (f"    {count:5} {path}" for path, count in sorted(seen.executed.items()))
    yield f"  what could change something    {len(seen.problems)}"
    yield from (f"    {problem}" for problem in dict.fromkeys(seen.problems))


def main() -> int:
    """Print it. Exit code 1 where something could change something, 77 where it cannot be had on this machine."""
    if why := missing():
        print(f"NOT RUN: that zaudit changes nothing is not proved here: {why}")
        return 77
    wrong = False
    with tempfile.TemporaryDirectory(prefix="zaudit-prove-") as name:
        folder = Path(name)
        host = namespaces.lay_out(RECORDED, folder / "host")
        for words, output in ((("check",), "report.txt"), (("record",), "recording.tar.gz")):
            code, seen = run(host, words, folder / words[0], output)
            print("\n".join(table(f"zaudit {' '.join(words)} -o {output} (exit code {code})", seen)), end="\n\n")
            wrong = wrong or bool(seen.problems)
    print(
        "zaudit CAN CHANGE something"
        if wrong
        else "Nothing but the output is written, and nothing but the tools is started."
    )
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
