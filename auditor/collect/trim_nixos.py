"""``zpool-trim.timer``: NixOS trims all pools by a unit of its own. (nixpkgs nixos/modules/tasks/filesystems/zfs.nix,
services.zfs.trim)"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, Unknown, flag, known, words_of
from auditor.host.request import WITNESS, Files, Read, Skip

PER = "host"
SUBJECT = "host"
FACTS = {"trim_nixos": flag("the timer with which NixOS trims all pools is enabled")}
TIMER = "/etc/systemd/system/timers.target.wants/zpool-trim.timer"


def request(host: Subject, facts: Facts) -> Read | Skip:
    """Only of NixOS."""
    ids = facts.get(HOST, "os_ids")
    if isinstance(ids, Unknown):
        return Skip("whether this is NixOS is not known")
    if "nixos" in words_of(ids):
        return Read((TIMER, WITNESS))
    return Skip("this is not NixOS", applies=False)


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """That there is no such link counts only where files could be read at all."""
    reply.witness()
    there = TIMER in reply.text or TIMER in reply.links
    if there or reply.absent(TIMER):
        text = "zpool-trim.timer is enabled" if there else "zpool-trim.timer is not enabled"
        yield Fact(HOST, "trim_nixos", known(there, text, "systemctl list-timers zpool-trim"))
