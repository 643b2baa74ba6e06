"""A key that was loaded by hand, in a guest with a real systemd whose zfs-mount-generator has made the mounts.

    python -m tests.lab.key_unit [--line 2.3]

systemd unmounts what nobody uses with the next daemon-reload, what is mounted by hand at once, and what is in use when that
ends; zaudit must say so before, and nothing of it once the unit of the key has been started, after which all stays mounted.
Exit code: 0 when all of it came out so, 1 when not.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from .service import rules
from .systemd import command

RULE, ROOTS = "key-unit-not-started", ("tank/busy", "tank/idle")
# when: which of the two are mounted
MOUNTED = {
    "created": ROOTS,
    "reloaded": ("tank/busy",),
    "by-hand": ("tank/busy",),
    "closed": (),
    "started": ROOTS,
}


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
    sys.exit(command(__doc__, "key_unit", problems))
