"""What the NFS server of the kernel exports: /etc/exports, /etc/exports.d and /var/lib/nfs/etab. (man 5 exports, man 8
exportfs)

etab is the table in force, with every option spelt out; the other files are what it is made of at the next start.
OpenZFS writes the shares of its sharenfs property to /etc/exports.d/zfs.exports. That none of these files is there means
that nothing is exported only where files could be read at all: /proc/filesystems is the witness.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, NfsExport, Subject, known, rows
from auditor.host.request import WITNESS, Files, Read
from auditor.text import has_surrogates

PER = "host"
SUBJECT = "host"
FACTS = {
    "nfs_exports": rows(NfsExport, "every export"),
    "nfs_exports_in_force": rows(NfsExport, "every export of the table in force"),
}
ETAB = "/var/lib/nfs/etab"
TABLES = ("/etc/exports", "/etc/exports.d/*.exports", ETAB)

_TOKEN = re.compile(r'"[^"]*"|[^\s"]+')


def request(host: Subject, facts: Facts) -> Read:
    """A few small files."""
    return Read((*TABLES, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """All exports where each of the tables could be read; those in force where that one could."""
    reply.witness()
    if ETAB in reply.text or reply.absent(ETAB):
        now = tuple(dict.fromkeys(exports(reply.text.get(ETAB, ""))))
        yield Fact(HOST, "nfs_exports_in_force", known(now, f"{len(now)} exports", f"cat {ETAB}"))
    if not reply.complete(*TABLES):
        return
    found: dict[NfsExport, None] = {}
    for path, text in sorted(reply.text.items()):
        if path != WITNESS:
            found.update(dict.fromkeys(exports(text)))
    exported = tuple(found)
    text = f"{len(exported)} exports" if exported else "no NFS export"
    yield Fact(HOST, "nfs_exports", known(exported, text, "exportfs -v; cat /etc/exports /etc/exports.d/*.exports"))


def exports(text: str) -> Iterator[NfsExport]:
    """The exports of one file, a client each."""
    if (text and not text.endswith("\n")) or has_surrogates(text):
        raise ValueError("a table of exports is cut off, or no text")
    for line in re.sub(r"\\\n", " ", text).split("\n"):
        tokens = _TOKEN.findall(line.partition("#")[0])
        if not tokens:
            continue
        if not tokens[0].strip('"').startswith("/"):
            raise ValueError(f"not a path: {tokens[0][:40]}")
        path, defaults = re.sub(r"\s", _octal, tokens[0].strip('"')), ""
        clients = 0
        for token in tokens[1:]:
            if token.startswith("-"):
                defaults = token[1:]
                continue
            client, _, options = token.partition("(")
            given = ",".join(each for each in (defaults, options.rstrip(")")) if each)
            clients += 1
            yield NfsExport(path, f"{client or '*'}({given})")
        if not clients:
            yield NfsExport(path, f"*({defaults})")


def _octal(found: re.Match[str]) -> str:
    return f"\\{ord(found[0]):03o}"
