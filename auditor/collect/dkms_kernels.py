"""``/var/lib/dkms/zfs``, ``/usr/lib/modules``: for which kernels dkms has installed the zfs module, and for which one could be.

dkms keeps a link ``kernel-KERNEL-ARCHITECTURE`` for each kernel that it has installed a module for (dkms(8); dkms.in
do_install). A kernel for which modules can be built has a link ``build`` to its headers, as Debian, Ubuntu and Fedora package
them (Linux scripts/package/builddeb, Makefile modules_install). Only links are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.request import WITNESS, Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {
    "dkms_zfs_kernels": words("KERNEL-ARCHITECTURE of each kernel that dkms has installed the zfs module for"),
    "kernels_with_headers": words("releases of the installed kernels that modules can be built for"),
}
BUILT, HEADERS = "/var/lib/dkms/zfs/kernel-*", "/usr/lib/modules/*/build"
_NAME = re.compile(r"[\w.+~-]{1,100}", re.ASCII)


def request(host: Subject, facts: Facts) -> Read:
    return Read((BUILT, HEADERS, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """What there is; that there is none, where it could have been seen. Raises ValueError for a name that is no kernel's."""
    reply.witness()
    for fact, pattern in (("dkms_zfs_kernels", BUILT), ("kernels_with_headers", HEADERS)):
        before, after = pattern.split("*")
        found = sorted(
            path.removeprefix(before).removesuffix(after)
            for path in reply.links
            if path.startswith(before) and path.endswith(after)
        )
        if wrong := [each for each in found if not _NAME.fullmatch(each)]:
            raise ValueError(f"{wrong[0][:40]!r} is no release of a kernel")
        if found or reply.complete(pattern):
            yield Fact(HOST, fact, known(tuple(found), ", ".join(found) or "none", f"ls -d {pattern}"))
