"""Brings about every event of zaudit's table, and writes down what each one took.

    python -m tests.lab.power.events [--line 2.3] [--drives N] [--minutes N] [--seed 1] [--results FILE] [--list] [NAME...]

One guest for each few settings of matrix.toml. zaudit looks at it; then:

process      the programs, in folders of their own, are killed while they commit; the guest goes on and reads
crash        the machine is gone at one moment, the drives live on: their media with their caches
power        the same moment: the media without the caches
power+log    the same, and the first log device is blank
power+drive  the same, and the first drive that is not a log device is blank
drive        that drive is taken away while the programs commit; 4 s later they end in order, the pool is exported and
             imported from what is left

Of crash, power and the two behind it a second guest says what is left. One row a setting and event is added to events.json.gz,
with what zaudit said of it; settings that have theirs are not run again.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..machine import LINES, available
from ..vm import clean_up_on_signals
from . import matrix
from .cut import RUN_S, Cut, Listener, State, bases, bench, row, show, verify
from .guest import ZAUDIT, guest_files, guest_plan, predict
from .matrix import Setting
from .results import EVENTS, read, write

DRIVES_PER_GUEST = 6
DYING_TIMEOUT = 400
SNAPSHOTS = {"crash": "alive", "power": "dead", "power+log": "dead", "power+drive": "dead"}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="settings of matrix.toml (default: all)")
    parser.add_argument("--line", action="append", choices=LINES, help="OpenZFS line (repeat for more; default: all)")
    parser.add_argument("--drives", type=int, default=DRIVES_PER_GUEST, help="most drives of a guest")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="start no trial after so many minutes")
    parser.add_argument("--again", action="store_true", help="also what has been run")
    parser.add_argument(
        "--results", type=Path, default=EVENTS, metavar="FILE", help="default: tests/lab/events.json.gz"
    )
    parser.add_argument("--list", action="store_true", help="show the guests, run nothing")
    arguments = parser.parse_args()
    clean_up_on_signals()
    end, complete = time.monotonic() + 60 * arguments.minutes, True
    for line in available(arguments.line):
        ran = {row["setting"] for row in read(arguments.results) if row["line"] == line}
        wanted = [
            each
            for each in matrix.everything()
            if each.events and line in each.lines and (not arguments.names or each.name in arguments.names)
            if arguments.again or each.name not in ran
        ]
        for group in matrix.guests(wanted, arguments.drives):
            names = ", ".join(each.name for each in group)
            if arguments.list or time.monotonic() > end or not matrix.offers(line, group[0].needs):
                complete = False
                print(f"{line}: not run: {names}")
            else:
                complete &= trial(line, group, arguments.seed, arguments.results)
    return 0 if complete else 1


def trial(line: str, settings: Sequence[Setting], seed: int, results: Path) -> bool:
    """All events of these settings, added to the results; False when they came to nothing."""
    started = time.monotonic()
    names = " ".join(each.name for each in settings)
    chance = random.Random(f"{seed}/{line}/events/{names}")
    with bench(line, settings, f"{seed}") as (vm, server, files):
        plan = {**guest_plan(line, settings), "look": True, "events": True}
        vm.start("python3 -m power.stage run", guest_files(plan))
        owners = [setting.name for setting in settings for _ in setting.drives]
        with vm.connect("ack") as port:
            heard = Listener(vm, port, owners)
            now = _stopped(heard, server, chance.uniform(*RUN_S))
            port.sendall(b"DIE\n")
            heard.listen(DYING_TIMEOUT, lambda: len(_answers(heard)) == 2)
        answers, committed = _answers(heard), heard.commits()
        server.kill()
        before = vm.result()
        if now is None or len(answers) < 2:
            print(f"{line}: {len(answers)} answers from {names}\n{before.log[-2500:]}{before.console[-800:]}")
        if now is None or not answers:
            return False
        states = {event: _state(event, settings) for event in SNAPSHOTS}
        states = {event: state for event, state in states.items() if state.slots}
        left, after = verify(line, settings, plan, files, list(states.values()))
        said = predict(line, before, settings, vm.dir, "events")
    found = {
        "process": answers[0],
        **dict(zip(states, left, strict=False)),
        **({"drive": answers[1]} if answers[1:] else {}),
    }
    rows = []
    for event in (each for each in matrix.EVENTS if each in found):
        for slot, setting in enumerate(settings):
            if event in setting.events and (state := found[event].get(setting.name)):
                count = {"process": state.get("acknowledged", 0), "drive": committed[slot]}.get(
                    event, now.commits[slot]
                )
                rows.append(
                    {**row(line, setting, seed, state, count), "event": event, "zaudit": said.get(setting.name)}
                )
                show(rows[-1], state["words"])
    write(rows, results)
    print(f"{line}: {len(rows)} rows in {time.monotonic() - started:.0f} s", flush=True)
    if len(left) < len(states):
        print(f"{after.log[-1500:]}{after.console[-800:]}")
    return len(left) == len(states) and len(answers) == 2


def _stopped(heard: Listener, server: Any, pause: float) -> Cut | None:
    """The moment of crash and power cut; None where no program ever committed."""
    if not heard.until_commits():
        return None
    heard.listen(pause)
    return heard.stop(server, "dead,alive")


def _state(event: str, settings: Sequence[Setting]) -> State:
    """The media of an event, of the settings where it can happen."""
    slots = [slot for slot, setting in enumerate(settings) if event in setting.events]
    gone = {
        base + away for slot, base in enumerate(bases(settings)) if (away := settings[slot].away(event)) is not None
    }
    return State(SNAPSHOTS[event], frozenset(gone), tuple(slots))


def _answers(heard: Listener) -> list[dict[str, Any]]:
    """What the guest said in JSON so far: of the programs that were killed, of the pools with a dead drive."""
    whole = heard.data[: heard.data.rfind(b"\n") + 1]
    return [json.loads(line) for line in whole.split(b"\n") if line.startswith(b"{")]


if __name__ == "__main__":
    if not ZAUDIT.exists():
        sys.exit(f"{ZAUDIT.name} is missing: run make zipapp")
    sys.exit(main())
