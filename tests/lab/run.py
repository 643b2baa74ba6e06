"""Runs scenarios in guests and says whether zaudit was right.

    python -m tests.lab.run [--line 2.3] [--record] [--kept] [--results FILE] [--minutes N] [--list] [NAME...]

Exit code: 0 when every scenario that ran came out as its file says, 1 when one did not.
"""

import argparse
import json
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from auditor.recording import recording
from auditor.selftest import FILE
from tests.shared import HOSTS

from . import fixed, outcomes, verdict
from . import scenario as scenarios
from .machine import CACHE, LINES, available, image, release
from .scenario import Scenario
from .verdict import Outcome
from .vm import VM, Result, clean_up_on_signals, scratch

ROOT = Path(__file__).resolve().parents[2]
ZAUDIT = ROOT / "zaudit.pyz"
BOOT_S, SCENARIO_S, WIDTH = 120, 1200, 44
KEEP = CACHE / "results"
SELFTEST = "selftest"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all scenarios")
    parser.add_argument("--line", action="append", choices=LINES, help="OpenZFS line (repeat for more; default: all)")
    parser.add_argument(
        "--record", action="store_true", help="also write fixtures/hosts/LINE-NAME.tar.gz, or zaudit selftest's host"
    )
    parser.add_argument(
        "--kept",
        action="store_true",
        help="boot nothing, judge what earlier runs brought back: after an edit of a file",
    )
    parser.add_argument("--results", type=Path, metavar="FILE", help="also add the outcomes to a file (outcomes.py)")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no guest after so many minutes")
    parser.add_argument("--list", action="store_true", help="name the scenarios, run nothing")
    arguments = parser.parse_args()
    known = scenarios.everything()
    if unknown := set(arguments.names) - {each.name for each in known}:
        parser.error(f"no scenario {', '.join(sorted(unknown))}")
    chosen = [each for each in known if not arguments.names or each.name in arguments.names]
    if arguments.list:
        for each in chosen:
            print(f"{each.name:{WIDTH}} {' '.join(each.lines):12} {each.title}")
        return 0
    clean_up_on_signals()
    if not ZAUDIT.exists():
        parser.error("zaudit.pyz is missing: run make zipapp")
    end = time.monotonic() + 60 * arguments.minutes
    work = scratch("run")
    try:
        # the guests and the replays here get the same bytes, whatever is built meanwhile
        run = Run(Path(shutil.copy(ZAUDIT, work)), record=arguments.record)
        for line in available(arguments.line):
            (kept_line if arguments.kept else run_line)(line, chosen, run, end)
    finally:
        shutil.rmtree(work)
    if arguments.results:
        outcomes.add(run.rows, arguments.results)
    print(", ".join(f"{count} {what}" for what, count in run.total.items()))
    return 1 if run.total["wrong"] else 0


@dataclass
class Run:
    """What all scenarios of one command share: the program, and what came out so far."""

    zaudit: Path
    record: bool = False
    total: dict[str, int] = field(default_factory=lambda: {"ok": 0, "wrong": 0, "not run": 0})
    rows: list[outcomes.Row] = field(default_factory=list)


def on_line(line: str, chosen: list[Scenario], run: Run) -> list[Scenario]:
    """The scenarios that this line can have; says why the others are not run."""
    print(f"OpenZFS {release(line)['zfs']}", flush=True)
    for each in chosen:
        if reason := each.not_on.get(line):
            run.total["not run"] += 1
            print(f"{line}  {each.name:{WIDTH}}            not run: {reason}", flush=True)
    return [each for each in chosen if line in each.lines]


def run_line(line: str, chosen: list[Scenario], run: Run, end: float) -> None:
    """All chosen scenarios on one OpenZFS line. No guest begins after ``end`` (time.monotonic)."""
    waiting = scenarios.guests(on_line(line, chosen, run))
    while waiting:
        group = waiting.pop(0)
        if time.monotonic() > end:
            run.total["not run"] += len(group)
            print(f"{line}  not run, no time left: {' '.join(each.name for each in group)}", flush=True)
            continue
        started = time.monotonic()
        result = boot(line, group, run.zaudit)
        done = 0
        for each in group:
            outcome = outcome_of(each, result)
            if outcome is None:
                break
            done += 1
            judge(each, line, outcome, run)
        if done == 0:
            run.total["wrong"] += 1
            tail = (result.log or result.console)[-600:].strip()
            print(f"{line}  {group[0].name:{WIDTH}} {result.seconds:7.1f} s  GUEST DIED: {tail}", flush=True)
        if left := group[max(done, 1) :]:
            waiting.insert(0, left)
        print(
            f"{line}  {'(a guest with ' + str(max(done, 1)) + ')':{WIDTH}} {time.monotonic() - started:7.1f} s",
            flush=True,
        )


def kept_line(line: str, chosen: list[Scenario], run: Run, _end: float) -> None:
    """All chosen scenarios as earlier runs left them in the cache. What another zaudit said does not replay."""
    for each in on_line(line, chosen, run):
        folder = KEEP / f"{line}-{each.name}"
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        if files:
            judge(each, line, Outcome(json.loads(files["outcome.json"]), files), run)
        else:
            run.total["not run"] += 1
            print(f"{line}  {each.name:{WIDTH}}            not run: nothing was kept", flush=True)


def boot(line: str, group: list[Scenario], zaudit: Path) -> Result:
    """One guest that goes through a group."""
    files: dict[str, str | bytes] = {
        "zaudit.pyz": zaudit.read_bytes(),
        "plan.json": json.dumps([each.plan(line) for each in group]),
    }
    refuse = CACHE / "modules" / f"refuse_flush-{release(line)['kernel']}.ko"  # verify/README.md
    if refuse.exists():
        files["refuse_flush.ko"] = refuse.read_bytes()
    script = "exec python3 /lab/stage.py"
    if group[0].module_of:
        for module in modules(group[0].module_of, line):
            files[module.name] = module.read_bytes()
        script = f"modprobe -r zfs && insmod spl.ko && insmod zfs.ko || exit 1\n{script}"
    with VM(zfs=line, disks=group[0].disks, mem="3G") as vm:
        return vm.start(script, files).wait(BOOT_S + SCENARIO_S * len(group))


def modules(other: str, line: str) -> list[Path]:
    """The kernel modules of another line for the kernel of this one."""
    kernel = (image(line) / "versions").read_text().split()[3]
    version = (image(other) / "versions").read_text().split()[1]
    return sorted((CACHE / "modules" / f"{version}-{kernel}").glob("*.ko"))


def outcome_of(each: Scenario, result: Result) -> Outcome | None:
    """What came back of one scenario, None when the guest did not get to its end."""
    prefix = f"{each.name}/"
    files = {name.removeprefix(prefix): data for name, data in result.out.items() if name.startswith(prefix)}
    return Outcome(json.loads(files["outcome.json"]), files) if "outcome.json" in files else None


def judge(each: Scenario, line: str, outcome: Outcome, run: Run) -> None:
    """Print the line of one scenario; keep what came back in the cache, and as a fixture when asked."""
    if why := outcome.facts.get("not_run"):
        run.total["not run"] += 1
        print(f"{line}  {each.name:{WIDTH}} {why}", flush=True)
        return
    wrong = [*verdict.problems(each, line, outcome, run.zaudit), *fixed.problems(each, line, outcome)]
    run.total["wrong" if wrong else "ok"] += 1
    row = outcomes.row(each, line, release(line), outcome, wrong)
    run.rows.append({**row, "fixed": fixed.rules_of(each, line, outcome)})
    kept = KEEP / f"{line}-{each.name}"
    shutil.rmtree(kept, ignore_errors=True)
    verdict.write(outcome.files, "", kept)
    print(
        f"{line}  {each.name:{WIDTH}} {outcome.facts['seconds']:7.1f} s  {'ok' if not wrong else 'WRONG'}", flush=True
    )
    for sentence in wrong:
        print(f"       {sentence}", flush=True)
    if run.record and not wrong and each.name == SELFTEST:
        keep_as_fixture(outcome, "root", ROOT / "auditor" / "data" / FILE)
    elif run.record and not wrong and each.exit_code != 3:
        keep_as_fixture(outcome, "root", HOSTS / f"{line}-{each.name}")
        if (nobody := HOSTS / f"{line}-{each.name}-nobody").exists():  # two are enough
            keep_as_fixture(outcome, "nobody", nobody)


def keep_as_fixture(outcome: Outcome, user: str, case: Path) -> None:
    """The recording of a user's run; python -m tests.golden says afterwards what it comes to."""
    prefix = f"{user}/recording/"
    members = {name.removeprefix(prefix): data for name, data in outcome.files.items() if name.startswith(prefix)}
    recording.write(recording.parse(case.name, members), case)


if __name__ == "__main__":
    sys.exit(main())
