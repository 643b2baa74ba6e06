"""A key that was loaded by hand, in a guest with a real systemd whose zfs-mount-generator has made the mounts.

    python -m tests.lab.key_unit [--line 2.3]

systemd unmounts what nobody uses with the next daemon-reload, what is mounted by hand at once, and what is in use when that
ends; zaudit must say so before, and nothing of it once the unit of the key has been started, after which all stays mounted.
Exit code: 0 when all of it came out so, 1 when not.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from .machine import LINES, available
from .run import ROOT, ZAUDIT
from .service import DISKS, GUEST_S, rules
from .verify.run import keep
from .vm import VM, clean_up_on_signals

HERE = ROOT / "tests" / "lab"
RULE, ROOTS = "key-unit-not-started", ("tank/busy", "tank/idle")
# when: which of the two are mounted
MOUNTED = {
    "created": ROOTS,
    "reloaded": ("tank/busy",),
    "by-hand": ("tank/busy",),
    "closed": (),
    "started": ROOTS,
}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--line", action="append", choices=LINES, help="OpenZFS line (default: all)")
    arguments = parser.parse_args()
    clean_up_on_signals()
    if not ZAUDIT.exists():
        parser.error("zaudit.pyz is missing: run make zipapp")
    right = True
    for line in available(arguments.line):
        out, log = guest(line)
        wrong = list(problems(out))
        right = right and not wrong
        print(f"{line}  {'WRONG' if wrong else 'ok'}", flush=True)
        print("".join(f"       {each}\n" for each in wrong) + (log[-1500:] if wrong else ""), end="", flush=True)
    return 0 if right else 1


def guest(line: str) -> tuple[Mapping[str, bytes], str]:
    """What came back, and the log."""
    files: dict[str, str | bytes] = {
        "zaudit.pyz": ZAUDIT.read_bytes(),
        "unpack.sh": (HERE / "verify" / "unpack.sh").read_bytes(),
    }
    with VM(zfs=line, disks=DISKS, mem="3G", append="labinit=/lab/pid1-systemd") as vm:
        result = vm.start((HERE / "key_unit.sh").read_text(), files).wait(GUEST_S)
    keep(f"key-unit-{line}", {**result.out, "log": result.log.encode()})
    return result.out, result.log or result.console


def problems(out: Mapping[str, bytes]) -> Iterator[str]:
    """What is not as it must be. out: the files that the guest brought back."""
    if missing := [name for name in (*MOUNTED, "before.json", "after.json") if name not in out]:
        yield f"did not come back: {', '.join(missing)}"
        return
    for when, expected in MOUNTED.items():
        mounted = tuple(sorted(out[when].decode().split()))
        if mounted != expected:
            yield f"{when}: {mounted} are mounted, not {expected}"
    before, after = (json.loads(out[f"{name}.json"]) for name in ("before", "after"))
    if (where := places(before)) != ROOTS:
        yield f"while the key's unit is not active, {RULE} fails on {where}"
    if RULE in rules(after, "fail") | rules(after, "unknown"):
        yield f"{RULE} does not pass once the unit is active"


def places(report: Mapping[str, Any]) -> tuple[str, ...]:
    """The datasets on which the rule fails."""
    found = [each["where"] for each in report["findings"] if each["rule"] == RULE and each["outcome"] == "fail"]
    return tuple(sorted(name for where in found for name in where.split(", ")))


if __name__ == "__main__":
    sys.exit(main())
