"""What is kept of the files from which targets are made anew when the host starts: the devices and files that initiators are
given. Names and passwords of initiators, which stand beside them, are left out.

(man 5 saveconfig.json: storage_objects with plugin, name and dev, to which the luns of the groups of targets refer as
/backstores/PLUGIN/NAME; nvmetcli, nvmet/nvme.py dump: subsystems with namespaces that are enabled and have a device with a
path, and ports that name subsystems)
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
UNOFFERED = "unoffered "  # in front of what is made anew, and given to nobody
_PATH = re.compile(rf"(?:{UNOFFERED})?/[^\x00-\x1f\x7f]{{0,4095}}")


def kept(text: str) -> str:
    """A line for each device or file; of what is no such configuration :data:`DAMAGED`. What was kept is kept again."""
    try:
        new = text.lstrip().startswith("{")
        found = [*_offered(json.loads(text))] if new else text.removesuffix("\n").split("\n") if text else []
    except (ValueError, TypeError, RecursionError):
        return DAMAGED
    whole = all(isinstance(each, str) and _PATH.fullmatch(each) for each in found)
    return "".join(f"{each}\n" for each in dict.fromkeys(found)) if whole else DAMAGED


def _offered(settings: Any) -> Iterator[Any]:
    """Raises ValueError where a part of it has another form."""
    groups = [group for target in _tables(settings.get("targets", [])) for group in _tables(target.get("tpgs", []))]
    units = [unit for group in groups if group.get("enable", True) for unit in _tables(group.get("luns", []))]
    given = {each for each in (unit.get("storage_object") for unit in units) if isinstance(each, str)}
    for each in _tables(settings.get("storage_objects", [])):
        if "dev" in each:  # one in memory has none
            yield _marked(each["dev"], f"/backstores/{each.get('plugin')}/{each.get('name')}" in given)
    ports = _tables(settings.get("ports", []))
    named = {str(each) for port in ports for each in port.get("subsystems", [])}
    for subsystem in _tables(settings.get("subsystems", [])):
        for space in _tables(subsystem.get("namespaces", [])):
            (device,) = _tables([space.get("device")])
            yield _marked(device.get("path"), bool(space.get("enable")) and subsystem.get("nqn") in named)


def _marked(path: Any, offered: bool) -> Any:
    return path if offered or not isinstance(path, str) else f"{UNOFFERED}{path}"


def _tables(found: Any) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError("not a list of tables")
    return found
