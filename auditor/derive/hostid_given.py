"""Whether the kernel's command line gives another host id than /etc/hostid.

Where /etc/hostid could not be read, or a recording does not tell it, nothing is known: then what such a recording has of the
command line may be less than what stood there, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import every
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, flag, unknown, words_of

SUBJECT = "host"
FACTS = {"hostid_overridden": flag("the kernel's command line gives another id than /etc/hostid, or zero")}
NEEDS = ("host.hostids", "host.command_line_hostids")


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Any that differs counts. One that is the file's read from the other end does where the host is not big-endian, which few
    are and nothing here says."""
    found = every(facts.get(HOST, name.partition(".")[2]) for name in NEEDS)
    if isinstance(found, Unknown):
        yield Fact(HOST, "hostid_overridden", found)
        return
    own, given = found
    other = {*words_of(given)} - {*words_of(own)}
    if not other and {*words_of(given)} - {*words_of(own)[:1]}:
        text = f"{given.evidence[0].text}, which is that of /etc/hostid on a big-endian host alone"
        yield Fact(HOST, "hostid_overridden", unknown(text, "od -A n -t x4 /etc/hostid"))
        return
    yield Fact(HOST, "hostid_overridden", Known(bool(other), (*given.evidence, *own.evidence)))
