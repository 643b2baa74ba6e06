"""contrib/systemd and contrib/zed in a guest with a real systemd, beside a pool with sync=disabled.

    python -m tests.lab.service [--line 2.3]

Its sandbox gives zaudit.service mounts of its own, where nothing can be written to; what it finds must be what a check beside
it finds, and nothing more may be undecided. A property that is set must lead to one audit, whose report knows it; 200 snapshots
to none. Exit code: 0 when all of it came out so, 1 when not.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from .run import ROOT
from .systemd import command

CONTRIB = (*(ROOT / "contrib" / "systemd").iterdir(), ROOT / "contrib" / "zed" / "zaudit.sh")
SOON_S = 15  # from a change to the start of the audit


def figures(out: Mapping[str, bytes]) -> str:
    """How long it took."""
    seconds, audits = out.get("changed", b"? ?").decode().split()
    return f"{seconds} s from a property to {audits} audit, "


def problems(out: Mapping[str, bytes]) -> Iterator[str]:
    """What is not as it must be. out: the files that the guest brought back."""
    names = ("mounts", "service", "modes", "changed", "snapshots", "beside.json", "inside.json", "after.json")
    if missing := [name for name in names if name not in out]:
        yield f"did not come back: {', '.join(missing)}"
        return
    mounts = out["mounts"].decode().split()
    if len(mounts) < 6 or "ro" not in mounts[5].split(","):
        yield f"a sandbox has no mounts of its own, so that nothing is shown by this: {mounts}"
    beside, inside, after = (json.loads(out[f"{name}.json"]) for name in ("beside", "inside", "after"))
    if "sync-disabled" not in rules(inside, "fail"):
        yield "the sandbox hides sync=disabled"
    if other := rules(inside, "fail") ^ rules(beside, "fail"):
        yield f"fails inside or beside alone: {', '.join(sorted(other))}"
    if unseen := rules(inside, "unknown") - rules(beside, "unknown"):
        yield f"the sandbox leaves undecided: {', '.join(sorted(unseen))}"
    if "sync-disabled" in rules(after, "fail"):
        yield "the audit after the change knows nothing of it"
    service = dict(row.split("=", 1) for row in out["service"].decode().split())
    if service != {"Result": "success", "ExecMainStatus": "14"}:
        yield f"the service says {service}"
    if out["modes"].decode().split("\n")[:2] != ["600 root", "750 root"]:
        yield f"modes and owners of the report and its folder: {out['modes'].decode()!r}"
    seconds, audits = map(int, out["changed"].split())
    if audits != 1 or seconds > SOON_S:
        yield f"a property led to {audits} audits, the first after {seconds} s"
    if int(out["snapshots"]):
        yield f"200 snapshots led to {int(out['snapshots'])} audits"


def rules(report: Mapping[str, Any], outcome: str) -> set[str]:
    """Those with such an outcome: fail or unknown."""
    return {each["rule"] for each in report["findings"] if each["outcome"] == outcome}


if __name__ == "__main__":
    sys.exit(command(__doc__, "service", problems, CONTRIB, figures))
