"""``/sys/module/{zfs,spl}/version``: the release of the kernel modules that are loaded. Absent when they are not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.data import releases
from auditor.facts import HOST, Fact, Facts, Subject, known, word, words
from auditor.host.request import Files, Read, Request

PER = "host"
SUBJECT = "host"
FACTS = {
    "zfs_version": words("version of the loaded zfs module: three numbers, and a mark where it is no release"),
    "zfs_version_text": word("the same with the distribution's suffix"),
    "spl_version": words("version of the loaded spl module, in the same way"),
    "spl_version_text": word("the same with the distribution's suffix"),
}


def request(host: Subject, facts: Facts) -> Request:
    """Both modules."""
    return Read(("/sys/module/zfs/version", "/sys/module/spl/version"))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Two facts a module."""
    for module in ("zfs", "spl"):
        path = f"/sys/module/{module}/version"
        if path in reply.text:
            text = reply.text[path]
            if not text.endswith("\n"):
                raise ValueError(f"{path} is cut off")
            yield from versions(f"{module}_version", text[:-1], f"cat {path}")


def versions(name: str, text: str, command: str) -> Iterator[Fact]:
    """(2, 3, 9) and "2.3.9-0+deb13u1"; (2, 4, 0, "rc1") and "2.4.0-rc1"."""
    if (found := re.match(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?!\d)", text)) is None:
        raise ValueError(f"{text!r} is not a version")
    yield Fact(HOST, name, known(releases.version(text, found[0]), text, command))
    yield Fact(HOST, f"{name}_text", known(text, text, command))
