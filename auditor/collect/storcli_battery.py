"""``storcli64 /call show all``: the battery or CacheVault behind the cache of each MegaRAID or PERC controller.

``BBU_Info`` and ``Cachevault_Info`` are lists with a ``State``; a controller without either has neither. (Broadcom,
StorCLI Reference Manual)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from auditor.collect.raid_drivers import unless
from auditor.collect.storcli_volumes import controllers, storcli
from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.request import Output, Run, Skip

PER = "host"
SUBJECT = "host"
FORM = "json"
FACTS = {
    "storcli_batteries": words(
        "CONTROLLER=STATE of the battery or CacheVault of each controller; none where it has none"
    )
}
KEYS = ("BBU_Info", "Cachevault_Info")


def request(host: Subject, facts: Facts) -> Run | Skip:
    return unless(facts, "megaraid_sas") or storcli("/call", "show", "all")


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """One fact; raises ValueError for a controller of which too little is said to conclude from absence."""
    found = []
    for controller, data in controllers(reply.text):
        if "Basics" not in data or "HwCfg" not in data:
            raise ValueError(f"controller {controller}: not all of it")
        rows: list[object] = []
        for key in KEYS:
            if isinstance(listed := data.get(key), list):
                rows += listed
        states = [str(row.get("State", "unknown")) for row in rows if isinstance(row, Mapping)]
        found += [f"{controller}={state}" for state in states or ["none"]]
    if not found:
        raise ValueError("no controller answered")
    yield Fact(HOST, "storcli_batteries", known(tuple(found), ", ".join(found), "storcli64 /call show all"))
