"""/etc/samba/smb.conf: shares that ignore the flushes of their clients. (man 5 smb.conf: strict sync)

"yes" is the default since Samba 4.7.0; a share has the value of [global] unless it says otherwise, and so have the
usershares that OpenZFS makes of the sharesmb property. Names of sections and parameters are read without regard to case
and spaces. That the file is not there means that nothing is shared only where files could be read at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, SmbShare, Subject, flag, known, rows
from auditor.host.request import WITNESS, Files, Read
from auditor.text import has_surrogates

PER = "host"
SUBJECT = "host"
FACTS = {
    "smb_shares_without_sync": rows(SmbShare, "every share with strict sync = no"),
    "smb_global_without_sync": flag("strict sync = no holds for all shares that do not say otherwise"),
}
PATH = "/etc/samba/smb.conf"
NO, YES = ("no", "false", "0", "off"), ("yes", "true", "1", "on")
ELSEWHERE = ("include", "configbackend", "registryshares", "copy", "configfile")  # what these say is not in this file


def request(host: Subject, facts: Facts) -> Read:
    """One file, and one that is always there."""
    return Read((PATH, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Both facts; raises ValueError where the file says that it is not all."""
    reply.witness()
    if PATH not in reply.text:
        if reply.absent(PATH):
            yield Fact(HOST, "smb_shares_without_sync", known((), f"no {PATH}", f"ls {PATH}"))
            yield Fact(HOST, "smb_global_without_sync", known(False, f"no {PATH}", f"ls {PATH}"))
        return
    sections = _sections(reply.text[PATH])
    others = sorted({name for section in sections.values() for name in section if name in ELSEWHERE})
    if others:
        raise ValueError(f"{PATH} leads elsewhere ({', '.join(others)}); ask testparm -sv")
    general = not _yes(sections.get("global", {}).get("strictsync", "yes"))
    command = f"grep -i 'strict sync' {PATH}"
    shares = tuple(
        SmbShare(name, section["path"])
        for name, section in sections.items()
        if name != "global" and "path" in section and not _yes(section.get("strictsync", "no" if general else "yes"))
    )
    yield Fact(
        HOST,
        "smb_shares_without_sync",
        known(shares, ", ".join(map("=".join, shares)) or "no share with strict sync = no", command),
    )
    text = "[global] strict sync = no" if general else "strict sync is yes by default"
    yield Fact(HOST, "smb_global_without_sync", known(general, text, command))


def _yes(value: str) -> bool:
    if value.lower() not in NO + YES:
        raise ValueError(f"{PATH}: strict sync = {value[:40]!r} is neither yes nor no")
    return value.lower() in YES


def _sections(text: str) -> dict[str, dict[str, str]]:
    """Section -> parameter -> value; the last one counts."""
    if (text and not text.endswith("\n")) or has_surrogates(text):
        raise ValueError(f"{PATH} is cut off, or no text")
    found: dict[str, dict[str, str]] = {}
    here = found.setdefault("global", {})
    for raw in re.sub(r"\\\n", "", text).split("\n"):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            here = found.setdefault(line[1 : line.find("]")].strip().lower(), {})
        elif "=" in line:
            name, _, value = line.partition("=")
            here[re.sub(r"\s", "", name).lower()] = value.strip()
    return found
