"""What is being asked, for somebody who waits for the answer."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from auditor.facts import HOST, Subject
from auditor.gather.by_name import ByName
from auditor.host.request import Read, Run

# Of what takes long on a large host: collector -> what it asks for. Of all else the command or the file is said.
WORDS: Mapping[str, str] = {
    "zfs_get": "properties of {datasets} of",
    "zfs_get_text": "mount points and shares of {datasets} of",
    "zfs_get_ancestors": "properties of the datasets above",
    "zfs_channel_program": "properties at one moment of {datasets} of",
    "zfs_list": "names of the datasets of",
    "zpool_status": "state of",
    "zpool_status_paths": "devices of",
    "zpool_get": "properties of",
    "zpool_get_vdev": "properties of the vdevs of",
    "zpool_history": "history of",
    "zpool_history_internal": "history of what ran by itself on",
    "zpool_events_all": "events of the pools",
    "kstat_objset": "counters of {datasets} of",
    "smartctl": "health of",
    "nvme_smart_log": "health of",
}


def of(name: str, request: Run | Read, subject: Subject, datasets: int, again: ByName | None) -> str:
    """``properties of 2,000 datasets of tank (zfs get)``. datasets: of the target, 0 where they are not counted. again: where
    they are asked about some at a time."""
    if isinstance(request, Read):
        source = f"{request.patterns[0]} and others" if len(request.patterns) > 1 else request.patterns[0]
    else:
        source = " ".join(word for word in request.argv[:2] if not word.startswith("-"))
    if name not in WORDS:
        return source if isinstance(request, Read) else " ".join(map(shlex.quote, request.argv[:6]))
    many = f"{datasets:,} datasets" if datasets > 1 else "the datasets"
    if again and again.put:
        many = f"{again.put:,} of {again.of:,} datasets" if again.of else many
    said = WORDS[name].replace("{datasets}", many)
    return f"{said} ({source})" if subject == HOST else f"{said} {subject.name} ({source})"
