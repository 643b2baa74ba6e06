"""``/sys/kernel/config/nvmet``: namespaces that this host offers by NVMe over Fabrics. (Linux drivers/nvme/target/configfs.c)

Its initiators are always told of a volatile cache. A flush of theirs is one of the block device, where that has a cache, or an
fsync of the file, whatever buffered_io says: that chooses between O_DIRECT and the page cache. So what lies on them is as
stable as the dataset is. (admin-cmd.c nvmet_execute_identify_ctrl vwc, io-cmd-bdev.c nvmet_bdev_execute_flush, io-cmd-file.c
nvmet_file_flush)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Evidence, Fact, Facts, Known, Subject, TargetUnit, rows
from auditor.host.request import WITNESS, Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {"nvme_targets": rows(TargetUnit, "each namespace that is enabled")}
ROOT = "/sys/kernel/config/nvmet/subsystems/"
PATHS, ENABLED = (f"{ROOT}*/namespaces/*/{name}" for name in ("device_path", "enable"))
_PATH = re.compile(rf"({ROOT}([^/]+)/namespaces/(\d+))/device_path")
_NAME = re.compile(r"[\w.:-]{1,223}", re.ASCII)  # of an NQN (NVM Express Base Specification, 4.7 NVMe Qualified Names)


def request(host: Subject, facts: Facts) -> Read:
    return Read((PATHS, ENABLED, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Raises ValueError where one of these files could not be read."""
    reply.witness()
    for path, error in reply.errors.items():
        if path.startswith(ROOT) and not error.startswith("no such"):
            raise ValueError(f"{path}: {error}")
    if not all(reply.complete(each) for each in (PATHS, ENABLED)):
        return
    found: dict[TargetUnit, Evidence] = {}
    for path, text in sorted(reply.text.items()):
        if (match := _PATH.fullmatch(path)) and reply.text.get(f"{match[1]}/enable", "1\n") == "1\n":
            name = f"NVMe-{match[2] if _NAME.fullmatch(match[2]) else 'unnamed'}/{match[3]}"
            if (file := text.removesuffix("\n")).startswith("/"):
                seen = Evidence(
                    f"namespace {match[3]} of {match[2]}: {file}", f"grep . {ROOT}*/namespaces/*/device_path"
                )
                found[TargetUnit(name, "keeps", file)] = seen
    none = Evidence("no namespace is offered by NVMe over Fabrics", f"ls {ROOT}")
    yield Fact(HOST, "nvme_targets", Known(tuple(found), tuple(found.values()) or (none,)))
