"""Which host, which kernel, which distribution, and whether it has an ``/etc/hostid`` (which multihost=on needs)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, flag, known, word, words
from auditor.host.request import Files, Read, Request

PER = "host"
SUBJECT = "host"
FACTS = {
    "hostname": word("its name"),
    "kernel_release": word("release of the running kernel, as uname -r says"),
    "os_name": word("PRETTY_NAME of the distribution"),
    "os_ids": words("ID of the distribution, and those that it is like"),
    "hostid_file": flag("/etc/hostid exists"),
}
_IDS = re.compile(r'^ID(?:_LIKE)?=(["\']?)([a-z0-9._ -]+)\1\n', re.M)  # of both in the order of the file
LINES = {"/proc/sys/kernel/hostname": "hostname", "/proc/sys/kernel/osrelease": "kernel_release"}


def request(host: Subject, facts: Facts) -> Request:
    """Four small files."""
    return Read((*LINES, "/etc/os-release", "/etc/hostid"))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """One line each; os-release is a list of shell assignments. (man 5 os-release)"""
    for path, name in LINES.items():
        if path in reply.text:
            line = re.fullmatch(r"(\S+)\n", reply.text[path])
            if line is None:
                raise ValueError(f"{path} is not one line")
            yield Fact(HOST, name, known(line[1], line[1], f"cat {path}"))
    release = re.search(r'^PRETTY_NAME=(["\']?)(.+)\1\n', reply.text.get("/etc/os-release", ""), re.M)
    if release is not None:
        yield Fact(HOST, "os_name", known(release[2], release[2], "cat /etc/os-release"))
    ids = [found[2] for found in _IDS.finditer(reply.text.get("/etc/os-release", ""))]
    if ids:
        yield Fact(HOST, "os_ids", known(tuple(" ".join(ids).split()), ", ".join(ids), "grep ID /etc/os-release"))
    if "/etc/hostid" in reply.text:
        yield Fact(HOST, "hostid_file", known(True, "/etc/hostid exists", "ls -l /etc/hostid"))
    # that it is not there counts only where files could be read at all
    elif reply.text and reply.errors.get("/etc/hostid", "").startswith("no such file"):
        yield Fact(HOST, "hostid_file", known(False, "no /etc/hostid", "ls -l /etc/hostid"))
