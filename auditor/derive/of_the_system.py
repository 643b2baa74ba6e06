"""Datasets on which installers put the system: what is usual there (a root that the initramfs mounts, parts that take no
writes) would be a fault where a database lies.

Boot environments are POOL/ROOT/NAME and what is below it; of two pools all is of the system. (OpenZFS documentation, Getting
Started, Debian, Root on ZFS; truenas/scale-build truenas_install/fhs.py, whose datasets conf, opt and usr are read-only;
truenas/middleware boot.pool_name; ubuntu's zsys-setup, which makes bpool for /boot)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, Unknown, flag, join, known

SUBJECT = "dataset"
FACTS = {
    "of_the_system": flag("its name is that of a boot environment or of a part of one, and no database was seen on it")
}
_NAME = re.compile(r"(?:[^/]+/ROOT|boot-pool|bpool)(?:/.*)?", re.DOTALL)
_YES = known(True, "a boot environment, or a part of one", "zfs list {subject}")
_NO = known(False, "no boot environment")


def derive(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """From the name; a database that lies there is what counts."""
    if not _NAME.fullmatch(dataset.name):
        yield Fact(dataset, "of_the_system", _NO)
        return
    databases = facts.get(HOST, "databases")
    places = [facts.get(each, "datasets") for each in facts.linked(HOST, "databases")]
    if unseen := [each for each in (databases, *places) if isinstance(each, Unknown)]:
        yield Fact(dataset, "of_the_system", join(unseen))  # one may lie there
        return
    here = [each for each in facts.linked(HOST, "databases") if dataset in facts.linked(each, "datasets")]
    text = f"a boot environment by its name, and {here[0]} lies on it" if here else ""
    yield Fact(dataset, "of_the_system", known(False, text) if here else _YES)
