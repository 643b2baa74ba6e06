"""``/etc/cron.d/middlewared``: the jobs with which TrueNAS scrubs its pools, which no other system has.
(auditor/host/scrub_jobs.py)"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known, words
from auditor.host import scrub_jobs
from auditor.host.request import WITNESS, Files, Read, Skip

PER = "host"
SUBJECT = "host"
FACTS = {"scrub_jobs": words("pools that a job of TrueNAS scrubs")}


def request(host: Subject, facts: Facts) -> Read | Skip:
    """Only where the kernel is that of TrueNAS, as it calls itself: 6.12.33-production+truenas."""
    match facts.get(HOST, "kernel_release"):
        case Known(str() as release) if "truenas" in release:
            return Read((scrub_jobs.PATH, WITNESS))
        case Known():
            return Skip("this is not TrueNAS", applies=False)
        case Unknown():
            return Skip("the release of the kernel is not known, which would say whether this is TrueNAS")


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """That there is no such file counts only where files could be read at all."""
    reply.witness()
    if scrub_jobs.PATH in reply.text or reply.absent(scrub_jobs.PATH):
        pools = scrub_jobs.pools(reply.text.get(scrub_jobs.PATH, ""))
        text = f"jobs scrub {', '.join(pools)}" if pools else "no job of TrueNAS scrubs a pool"
        yield Fact(HOST, "scrub_jobs", known(pools, text, f"grep pool.scrub.run {scrub_jobs.PATH}"))
