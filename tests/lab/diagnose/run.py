"""What ``zaudit diagnose`` says of loads whose cause is known.

    python -m tests.lab.diagnose.run [--line 2.3] [--results tests/lab/diagnose/outcomes.json] [NAME...]
    python -m tests.lab.diagnose.run --line 2.3 --overhead
    python -m tests.lab.diagnose.run --kept        boot nothing: what was recorded, judged by the code as it is
    python -m tests.lab.diagnose.run --counters    the same, as if nothing had been traced: what counters alone tell

Exit code: 0 when each came out as causes.toml says, 1 when one did not.
"""

import argparse
import json
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from auditor import audit
from auditor.diagnose import conclusion, observation, watch
from auditor.diagnose.diagnosis import Diagnosis
from auditor.diagnose.watch import NOT_ASKED
from auditor.verify import verification
from tests.lab import outcomes
from tests.lab.machine import CACHE, LINES, available
from tests.lab.verify.run import ZAUDIT, anew, keep, row, told
from tests.lab.vm import VM, clean_up_on_signals

HERE = Path(__file__).parent
DISKS = ["nvme:2G", "nvme:2G", "nvme:1G", "nvme:1G", "nvme:1G!flush"]  # the flushes of the last fail
A_GUEST, CAUSE_S, OVERHEAD_S = 8, 600, 2700
MEANS = 0.10  # by which the mean of a program's own syncs and of the trace may differ


Load = Mapping[str, Any]  # what a load printed (load.py)


class Cause(NamedTuple):
    """As in causes.toml."""

    name: str
    setup: str
    load: str
    outcome: str
    top: str
    says: str = ""
    diagnose: str = ""
    after: str = ""
    report: str = ""
    lines: tuple[str, ...] = LINES


def everything() -> list[Cause]:
    """All causes, in the order of the file."""
    said = tomllib.loads((HERE / "causes.toml").read_text())["cause"]
    return [_cause(each) for each in said]


def _cause(said: dict[str, Any]) -> Cause:
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in said.items()}
    return Cause(**values)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all causes")
    parser.add_argument("--line", action="append", choices=LINES, help="OpenZFS line (default: all)")
    parser.add_argument("--kept", action="store_true", help="boot nothing: judge the recordings of earlier runs")
    parser.add_argument("--counters", action="store_true", help="judge them as if nothing had been traced")
    parser.add_argument("--overhead", action="store_true", help="what it costs the load, in ten alternations, instead")
    parser.add_argument("--results", type=Path, help="also write the outcomes there (tests/lab/diagnose/outcomes.json)")
    arguments = parser.parse_args()
    clean_up_on_signals()
    right = True
    rows = outcomes.read(arguments.results) if arguments.results else []
    before = {(each["line"], each["scenario"]): each for each in rows}
    for line in available(arguments.line):
        if arguments.overhead:
            right = overhead(line) and right
            continue
        chosen = [
            each
            for each in everything()
            if line in each.lines and (not arguments.names or each.name in arguments.names)
            if not arguments.counters or (CACHE / "results" / folder_of(line, each) / "tar.gz").exists()
        ]
        for first in range(0, len(chosen), A_GUEST):
            part = chosen[first : first + A_GUEST]
            if not arguments.kept and not arguments.counters:
                guest(line, part)
            for each in part:
                found = untraced(line, each) if arguments.counters else result(line, each)
                right = right and found["outcome"] == "ok"
                if arguments.kept and (ran := before.get((line, each.name))):
                    found = anew(found, ran)
                if arguments.results:
                    outcomes.add([found], arguments.results)
    return 0 if right else 1


def result(line: str, cause: Cause) -> outcomes.Row:
    """How one came out, printed and as a row."""
    folder = CACHE / "results" / folder_of(line, cause)
    said = list(judged(folder, cause))
    seconds = (folder / "seconds").read_text().strip() if (folder / "seconds").exists() else "0"
    verdict = " ".join(filter(None, (cause.outcome, cause.top)))
    told(line, cause.name, said, verdict, seconds)
    return row(line, cause.name, said, verdict if not said else "", int(seconds))


def folder_of(line: str, cause: Cause) -> str:
    """Where what came back of it is kept, below the results of the cache."""
    return f"diagnose-{line}-{cause.name}"


def untraced(line: str, cause: Cause) -> outcomes.Row:
    """What the counters of the traced load alone tell: right is the same cause, or none."""
    recorded = CACHE / "results" / folder_of(line, cause) / "tar.gz"
    said, verdict = ["no recording is kept"], ""
    if recorded.exists():
        past, text = verification.load(recorded, "diagnosis")
        made = observation.from_text(text)._replace(traced=None, untraced=NOT_ASKED)
        found = conclusion.diagnose(made, audit.replay(past).facts)
        top = found.causes[0].id if found.causes else ""
        verdict = " ".join(filter(None, (found.outcome, top)))
        said = [] if top in (cause.top, "") else [f"{verdict}: {found.answer}"]
    told(line, cause.name, said, verdict, "")
    return row(line, cause.name, said, verdict, 0)


def overhead(line: str) -> bool:
    """Whether a load takes as long while it is looked at; prints what came out, pair by pair."""
    beside = [HERE.parent / "verify" / name for name in ("unpack.sh", "pairs.py")]
    given = [ZAUDIT, HERE / "load.py", HERE / "overhead.py", *beside]
    with VM(zfs=line, disks=DISKS[:4], mem="3G") as vm:
        done = vm.start((HERE / "overhead.sh").read_text(), {path.name: path.read_bytes() for path in given}).wait(
            OVERHEAD_S
        )
    keep(f"diagnose-{line}-overhead", {**done.out, "log": done.log.encode()})
    print(f"OpenZFS {line}\n{done.log.strip() or done.console[-600:]}", flush=True)
    return done.rc == 0


def guest(line: str, chosen: Sequence[Cause]) -> None:
    """One guest that goes through some causes; what came back is kept."""
    files: dict[str, str | bytes] = {
        "zaudit.pyz": ZAUDIT.read_bytes(),
        "unpack.sh": (HERE.parent / "verify" / "unpack.sh").read_bytes(),
        "load.py": (HERE / "load.py").read_bytes(),
    }
    for number, each in enumerate(chosen):
        words = {
            "CASE_SETUP": each.setup,
            "CASE_LOAD": each.load,
            "CASE_AFTER": each.after,
            "CASE_DIAGNOSE": each.diagnose,
        }
        files[f"plan-{number}-{each.name}"] = "".join(f"{key}={shlex.quote(value)}\n" for key, value in words.items())
    with VM(zfs=line, disks=DISKS, mem="3G") as vm:
        result = vm.start((HERE / "diagnose.sh").read_text(), files).wait(120 + CAUSE_S * len(chosen))
    for number, each in enumerate(chosen):
        prefix = f"{number}-{each.name}."
        out = {name.removeprefix(prefix): data for name, data in result.out.items() if name.startswith(prefix)}
        keep(folder_of(line, each), {**out, "log": result.log.encode()})


def judged(folder: Path, cause: Cause) -> Iterator[str]:
    """What is wrong with what came back."""
    if not (folder / "tar.gz").exists():
        yield "no recording came back"
        return
    out = {path.name: path.read_bytes() for path in folder.iterdir()}
    if out["left"].strip():
        yield f"left behind: {out['left'].decode()!r}"
    if b"zaudit_" not in out.get("between", b"zaudit_"):
        yield "it was killed, and left nothing that could be cleaned"
    found = watch.replayed(folder / "tar.gz").diagnosis
    names = dict(row.split() for row in out["names"].decode().splitlines())
    for words in cause.report.strip().splitlines():
        if words not in out["report"].decode():
            yield f"not printed: {words}"
    yield from problems(cause, found, names)
    loads = []
    for name, data in sorted(out.items()):
        if name.startswith("load-") and data:
            try:
                loads.append(json.loads(data))
            except ValueError:  # it died
                yield f"{name}: {data.decode(errors='replace')[-300:]}"
    if any("syncs" not in load for load in loads):
        yield "its load is an older one, which printed no syncs"
        return
    yield from counts(found, loads)


def problems(cause: Cause, found: Diagnosis, names: Mapping[str, str]) -> Iterator[str]:
    """Where the diagnosis says something else than the cause."""
    top = found.causes[0].id if found.causes else ""
    if (found.outcome, top) != (cause.outcome, cause.top):
        yield f"{found.outcome}, top {top or 'none'}: {found.answer} {found.reasons}"
    if cause.says.format(**names) not in found.answer:
        yield f"not said: {cause.says}: {found.answer}"


def counts(found: Diagnosis, loads: Sequence[Load]) -> Iterator[str]:
    """Where the mean of a program's own syncs while it looked, less what one of a file in memory takes it, is off by more than
    a tenth of what the kernel traced of it, and where the count of one whose syncs all came meanwhile is off by more than
    one."""
    for load in loads:
        own, traced = during(found, load), [each for each in found.committers if each.pid in threads(load)]
        number = sum(each.commits for each in traced)
        if own and number:
            measured, mean = (
                fmean(own) - nothing(load),
                sum(each.mean_ns * each.commits for each in traced) / number / 1e3,
            )
            if abs(mean - measured) > MEANS * measured:
                yield f"process {load['pid']}: traced {mean:.0f} us, measured {measured:.0f} us itself"
        if load["whole"]:
            made = sum(map(len, load["syncs"].values()))
            for what, count in (("traced", found.traced), ("counted by the ZIL", found.commits)):
                if count is None or abs(count - made) > 1:
                    yield f"{count} commits {what}, {made} made"


def threads(load: Load) -> set[int]:
    """Those that commit."""
    return set(map(int, load["syncs"]))


def during(found: Diagnosis, load: Load) -> list[float]:
    """What each sync took that ended while it looked, microseconds."""
    ended = found.taken + found.seconds
    return [us for syncs in load["syncs"].values() for at, us in syncs if found.taken <= at <= ended]


def nothing(load: Load) -> float:
    """What its syncs of a file in memory took on the average, microseconds; an older load made none."""
    return fmean([us for each in load.get("nothing", {}).values() for us in each] or [0.0])


if __name__ == "__main__":
    sys.exit(main())
