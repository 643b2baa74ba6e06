"""Shares: what NFS and Samba servers do with the flushes of their clients."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, NfsExport, SmbShare, Subject, flag, known, rows
from auditor.host.request import WITNESS, Files, Read
from auditor.sources.source import source
from auditor.text import has_surrogates

ETAB = "/var/lib/nfs/etab"
TABLES = ("/etc/exports", "/etc/exports.d/*.exports", ETAB)


_TOKEN = re.compile(r'"[^"]*"|[^\s"]+')


@source(
    "nfs_exports",
    "host",
    ask=Read((*TABLES, WITNESS)),
    facts={
        "nfs_exports": rows(NfsExport, "every export"),
        "nfs_exports_in_force": rows(NfsExport, "every export of the table in force"),
    },
)
def nfs(reply: Files, host: Subject) -> Iterator[Fact]:
    """What the NFS server of the kernel exports: /etc/exports, /etc/exports.d and /var/lib/nfs/etab. (man 5 exports, man 8
    exportfs)

    etab is the table in force, with every option spelt out; the other files are what it is made of at the next start.
    OpenZFS writes the shares of its sharenfs property to /etc/exports.d/zfs.exports. That none of these files is there means
    that nothing is exported only where files could be read at all: /proc/filesystems is the witness.

    All exports where each of the tables could be read; those in force where that one could.
    """
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


PATH = "/etc/samba/smb.conf"
NO, YES = ("no", "false", "0", "off"), ("yes", "true", "1", "on")
ELSEWHERE = ("include", "configbackend", "registryshares", "copy", "configfile")  # what these say is not in this file


@source(
    "samba_conf",
    "host",
    ask=Read((PATH, WITNESS)),
    facts={
        "smb_shares_without_sync": rows(SmbShare, "every share with strict sync = no"),
        "smb_global_without_sync": flag("strict sync = no holds for all shares that do not say otherwise"),
    },
)
def samba(reply: Files, host: Subject) -> Iterator[Fact]:
    """/etc/samba/smb.conf: shares that ignore the flushes of their clients. (man 5 smb.conf: strict sync)

    "yes" is the default since Samba 4.7.0; a share has the value of [global] unless it says otherwise, and so have the
    usershares that OpenZFS makes of the sharesmb property. Names of sections and parameters are read without regard to case
    and spaces. That the file is not there means that nothing is shared only where files could be read at all.

    Both facts; raises ValueError where the file says that it is not all.
    """
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


SOURCES = (nfs, samba)
