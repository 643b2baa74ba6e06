"""``make lab-verify``: what `zaudit verify` says of pools whose truth is known.

    python -m tests.lab.verify.run [--line 2.3] [NAME...]
    python -m tests.lab.verify.run --line 2.3 --program kill     SIGKILL at ten random moments, then zaudit clean
    python -m tests.lab.verify.run --line 2.3 --program rename   what was made is renamed away, and another has its name
    python -m tests.lab.verify.run --line 2.3 --program ratio    latency beside that of bare fio on the same job, at once
    python -m tests.lab.verify.run --line 2.3 --program turns    the same, each alone on the pool
    python -m tests.lab.verify.run --kept                        boot nothing: what was recorded, judged by the code as it is

Exit code: 0 when each case came out as cases.toml says, 1 when one did not.
"""

import argparse
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from auditor.verify import verification
from tests.lab import outcomes
from tests.lab.machine import CACHE, LINES, available, release
from tests.lab.verify import case as cases
from tests.lab.verify.case import HERE, Case, Returned, problems
from tests.lab.vm import VM, clean_up_on_signals

ZAUDIT = HERE.parents[2] / "zaudit.pyz"
RESULTS, OUTCOMES = CACHE / "results", HERE / "outcomes.json"
DISKS = ["nvme:2G", "nvme:2G", "nvme:1G", "nvme:1G"]
SETS = {  # name -> the disks of a guest. wide: one whose flushes fail, six SCSI disks with a write cache and six without
    "few": DISKS,
    "wide": [*DISKS, "nvme:1G!flush", *["scsi:512M"] * 6, *["scsi:512M:write-cache=off"] * 6],
    "many": [*["nvme:1G"] * 2, *["scsi:192M"] * 48],
}
A_GUEST, CASE_S, PROGRAM_S, WIDTH = 6, 1200, 1800, 36
PROGRAMS = ("kill", "rename", "ratio", "turns")
SOURCES = (".py", ".toml", ".fio", ".json")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all cases")
    parser.add_argument("--line", action="append", choices=LINES, help="OpenZFS line (default: all)")
    parser.add_argument("--program", choices=PROGRAMS, help="run this instead of the cases")
    parser.add_argument("--kept", action="store_true", help="boot nothing: judge the recordings of earlier runs")
    parser.add_argument("--results", type=Path, help="also write the outcomes there (tests/lab/verify/outcomes.json)")
    arguments = parser.parse_args()
    known = cases.everything()
    if unknown := set(arguments.names) - {case.name for case in known}:
        parser.error(f"no case {', '.join(sorted(unknown))}")
    if not arguments.kept and not _fresh():
        parser.error("zaudit.pyz is missing or older than the code: run make zipapp")
    clean_up_on_signals()
    version()
    right = True
    for line in available(arguments.line):
        chosen = [
            each for each in known if line in each.lines and (not arguments.names or each.name in arguments.names)
        ]
        found: Iterable[outcomes.Row]
        if arguments.program:
            found = [program(line, arguments.program)]
        elif arguments.kept:
            found = kept(line, chosen, outcomes.read(arguments.results or OUTCOMES))
        else:
            found = ran(line, chosen)
        for each in found:  # one by one: what came out is kept, whatever becomes of the next guest
            right = right and each["outcome"] == "ok"
            if arguments.results:
                outcomes.add([each], arguments.results)
    return 0 if right else 1


def _fresh() -> bool:
    root = HERE.parents[2]
    newest = max(
        path.stat().st_mtime for folder in cases.CODE for path in (root / folder).rglob("*") if path.suffix in SOURCES
    )
    return ZAUDIT.exists() and ZAUDIT.stat().st_mtime >= newest


version = cache(cases.version)


def row(line: str, name: str, said: Sequence[str], verdict: str, seconds: int) -> outcomes.Row:
    """One row of outcomes.json. said: what is wrong; version: the code that ran; judged: the code that judged it last."""
    now = version()  # as it was when this began: nobody knows what was changed meanwhile
    return {
        "line": line,
        **release(line),
        "scenario": name,
        "outcome": "wrong" if said else "ok",
        "verdict": verdict,
        "said": list(said),
        "seconds": seconds,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "version": now,
        "judged": now,
    }


def told(line: str, name: str, said: Sequence[str], verdict: str, seconds: object) -> None:
    print(f"{line}  {name:{WIDTH}} {seconds:>4} s  {'WRONG' if said else verdict}", flush=True)
    for sentence in said:
        print(f"       {sentence}", flush=True)


# -- cases --------------------------------------------------------------------------------------------------------


def needed(case: Case, line: str) -> Path | None:
    """The file that a case needs beside zaudit, or None."""
    if not case.needs:
        return None
    return CACHE / case.needs.format(kernel=release(line)["kernel"])


def ran(line: str, chosen: Sequence[Case]) -> Iterator[outcomes.Row]:
    """Run cases in guests, a few in each."""
    able = []
    for case in chosen:
        path = needed(case, line)
        if path is not None and not path.exists():
            print(f"{line}  {case.name:{WIDTH}} not run: {path} is missing (tests/lab/verify/README.md)", flush=True)
        else:
            able.append(case)
    for name in SETS:
        alike = [case for case in able if case.disks == name]
        for first in range(0, len(alike), A_GUEST):
            yield from guest(line, alike[first : first + A_GUEST])


def guest(line: str, chosen: Sequence[Case]) -> Iterator[outcomes.Row]:
    """One guest that goes through some cases."""
    files: dict[str, str | bytes] = {
        "zaudit.pyz": ZAUDIT.read_bytes(),
        "unpack.sh": (HERE / "unpack.sh").read_bytes(),
    }
    for number, case in enumerate(chosen):
        words = {
            "CASE_SETUP": case.setup,
            "CASE_ARGUMENTS": " ".join(case.arguments),
            "CASE_AFTER": case.after,
        }
        files[f"plan-{number}-{case.name}"] = "".join(f"{key}={shlex.quote(value)}\n" for key, value in words.items())
        if path := needed(case, line):
            files[path.stem.partition("-")[0] + path.suffix] = path.read_bytes()
    started = time.monotonic()
    with VM(zfs=line, disks=SETS[chosen[0].disks], mem="3G") as vm:
        result = vm.start((HERE / "verify.sh").read_text(), files).wait(120 + CASE_S * len(chosen))
    for number, case in enumerate(chosen):
        prefix = f"{number}-{case.name}."
        out = {name.removeprefix(prefix): data for name, data in result.out.items() if name.startswith(prefix)}
        died = [f"the guest died: {(result.log or result.console)[-400:]}"]
        said = list(problems(case, out)) if "seconds" in out else died
        keep(f"verify-{line}-{case.name}", out)
        seconds = out.get("seconds", b"").decode().strip()
        told(line, case.name, said, case.outcome, seconds or "?")
        yield row(line, case.name, said, case.outcome if not said else "", int(seconds or 0))
    print(f"{line}  (a guest with {len(chosen)}) {time.monotonic() - started:.0f} s", flush=True)


def keep(name: str, out: Returned) -> None:
    """What came back, in the cache."""
    folder = RESULTS / name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for member, data in out.items():
        (folder / member).write_bytes(data)


def kept(line: str, chosen: Sequence[Case], rows: Sequence[outcomes.Row]) -> Iterator[outcomes.Row]:
    """Judge the recordings of earlier runs with the code as it is; what was wrong while it ran (left behind) stays wrong."""
    before = {(each["line"], each["scenario"]): each for each in rows}
    for case in chosen:
        folder = RESULTS / f"verify-{line}-{case.name}"
        if not (folder / "tar.gz").exists():
            print(f"{line}  {case.name:{WIDTH}} no recording is kept", flush=True)
            continue
        out = {path.name: path.read_bytes() for path in folder.iterdir()}
        try:
            found = verification.replayed(folder / "tar.gz", "low", None)
            out["json"] = verification.rendered(found, "json", {}).encode()
        except Exception as error:  # whatever it is, it is what came out
            out["json"] = repr(error).encode()
        said = list(problems(case, out))
        seconds = out.get("seconds", b"?").decode().strip()
        told(line, case.name, said, case.outcome, seconds)
        if old := before.get((line, case.name)):
            new = row(line, case.name, said, case.outcome if not said else "", old["seconds"])
            yield anew(new, old)


def anew(found: outcomes.Row, ran: outcomes.Row) -> outcomes.Row:
    """The row of a recording that is judged again: it ran when it ran, by the code of that time."""
    return {**found, "date": ran["date"], "version": ran["version"]}


# -- programs -----------------------------------------------------------------------------------------------------


def program(line: str, name: str) -> outcomes.Row:
    """One script in a guest of its own; prints what it prints. Its last line is the verdict."""
    files = {"zaudit.pyz": ZAUDIT.read_bytes()}
    files |= {each: (HERE / each).read_bytes() for each in ("unpack.sh", "pairs.sh", "pairs.py")}
    started = time.monotonic()
    with VM(zfs=line, disks=DISKS, mem="3G") as vm:
        result = vm.start((HERE / f"{name}.sh").read_text(), files).wait(PROGRAM_S)
    text = result.log.strip()
    print(f"OpenZFS {line}\n{text}", flush=True)
    keep(f"verify-{line}-{name}", {**result.out, "log": text.encode()})
    verdict = next((each for each in reversed(text.splitlines()) if each.startswith(f"{name}: ")), "")
    said = [] if result.rc == 0 and verdict else [verdict or f"no verdict: {text[-300:]}"]
    seconds = round(time.monotonic() - started)
    told(line, name, said, verdict, seconds)
    return row(line, name, said, verdict, seconds)


if __name__ == "__main__":
    sys.exit(main())
