"""What is kept of the files from which targets are made anew when the host starts: the devices and files that initiators are
given. Names and passwords of initiators, which stand beside them, are left out.

(man 5 saveconfig.json: storage_objects with plugin, name and dev, to which the luns of targets refer as
/backstores/PLUGIN/NAME; nvmetcli, nvmet/nvme.py dump: subsystems, namespaces, device, path)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

# as rtslib has it, as Debian packs it; and as nvmetcli has it
LIO, LIO_OF_DEBIAN, NVME = (
    "/etc/target/saveconfig.json",
    "/etc/rtslib-fb-target/saveconfig.json",
    "/etc/nvmet/config.json",
)
PATHS = (LIO, LIO_OF_DEBIAN, NVME)
DAMAGED = "?\n"
_PATH = re.compile(r"/[^\x00-\x1f\x7f]{0,4095}")


def kept(text: str) -> str:
    """A line for each device or file; of what is no such configuration :data:`DAMAGED`. What was kept is kept again."""
    try:
        new = text.lstrip().startswith("{")
        found = [*_offered(json.loads(text))] if new else text.removesuffix("\n").split("\n") if text else []
    except (ValueError, RecursionError):
        return DAMAGED
    whole = all(isinstance(each, str) and _PATH.fullmatch(each) for each in found)
    return "".join(f"{each}\n" for each in dict.fromkeys(found)) if whole else DAMAGED


def _offered(settings: Any) -> Iterator[Any]:
    """Raises ValueError where a part of it has another form."""
    backstores = _tables(settings.get("storage_objects", []))
    groups = [group for target in _tables(settings.get("targets", [])) for group in _tables(target.get("tpgs", []))]
    given = {unit.get("storage_object") for group in groups for unit in _tables(group.get("luns", []))}
    for each in backstores:
        if "dev" in each and f"/backstores/{each.get('plugin')}/{each.get('name')}" in given:  # one in memory has none
            yield each["dev"]
    for subsystem in _tables(settings.get("subsystems", [])):
        for namespace in _tables(subsystem.get("namespaces", [])):
            yield from (device.get("path") for device in _tables([namespace.get("device")]))


def _tables(found: Any) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError("not a list of tables")
    return found
