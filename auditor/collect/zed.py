"""``systemctl show zfs-zed.service``: whether the ZFS Event Daemon runs, which tells people and replaces failed disks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, flag, known, word
from auditor.host.request import Output, Request, Run

PER = "host"
SUBJECT = "host"
FACTS = {
    "zed_active": flag("the ZFS Event Daemon runs"),
    "zed_unit_file_state": word(
        "whether it is started at boot: enabled, disabled, masked, ... or empty without a unit"
    ),
}
UNIT = "zfs-zed.service"  # etc/systemd/system/zfs-zed.service.in; zed.service is its alias


def request(host: Subject, facts: Facts) -> Request:
    """Three properties, one a line; exit code 0 for a unit that is not there, too."""
    return Run(("systemctl", "show", "--property=LoadState,ActiveState,UnitFileState", UNIT), package="systemd")


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """All three must be there."""
    found = dict(re.findall(r"^(LoadState|ActiveState|UnitFileState)=(\S*)\n", reply.text, re.M))
    if len(found) != 3:
        raise ValueError("it does not say all three properties")
    load, active, state = found["LoadState"], found["ActiveState"], found["UnitFileState"]
    if active not in ("active", "inactive", "failed", "activating", "deactivating", "reloading"):
        raise ValueError(f"ActiveState={active} is no state of a unit")
    text = f"{UNIT}: " + ("no such unit" if load == "not-found" else f"{active}, {state}")
    yield Fact(HOST, "zed_active", known(active in ("active", "reloading"), text, f"systemctl status {UNIT}"))
    yield Fact(HOST, "zed_unit_file_state", known(state, text, f"systemctl status {UNIT}"))
