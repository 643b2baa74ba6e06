"""What ATA attributes say of power-loss capacitors, by name. Pure; no collector. (smartmontools drivedb.h)

Only names that drivedb gives to a capacitor or to power-loss protection itself count; the number of an attribute means
something else on every make (235 is Power_Loss_Cap_Test on Intel, POR_Recovery_Count on Samsung).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from auditor.collect.device_reply import non_negative

Attribute = Mapping[str, object]


def describe(name: str, attribute: Attribute) -> str:
    """One attribute as a reader recognises it."""
    failed = f", failed {attribute['when_failed']}" if attribute.get("when_failed") else ""
    value, threshold = attribute.get("value", "-"), attribute.get("thresh", "-")
    return f"{name} {value} (threshold {threshold}{failed}), raw {_raw_text(attribute) or '-'}"


def _raw_text(attribute: Attribute) -> str:
    raw = attribute.get("raw")
    return str(raw.get("string", "")).strip() if isinstance(raw, Mapping) else ""


def _raw(attribute: Attribute) -> int | None:
    match = re.match(r"\d+\b", _raw_text(attribute))
    return int(match[0]) if match and len(match[0]) < 20 else None


def _normalized(attribute: Attribute) -> bool | None:
    """Above its threshold and never failed; where the threshold is 0, which nothing falls below, only 100 is good."""
    value, threshold = non_negative(attribute.get("value")), non_negative(attribute.get("thresh"))
    if attribute.get("when_failed"):
        return False
    if value is None or threshold is None or attribute.get("when_failed") != "":
        return None
    if value <= threshold:
        return False
    return True if threshold or value >= 100 else None


def _counts_failures(attribute: Attribute) -> bool | None:
    """PLP_Failure: the raw value counts."""
    raw, normalized = _raw(attribute), _normalized(attribute)
    if raw or normalized is False:
        return False
    return True if raw == 0 else None


def _charge(attribute: Attribute) -> bool | None:
    """SuperCap_Charge_Status: 0 not charged, 1 fully charged, 2 unknown."""
    return {0: False, 1: True}.get(raw) if (raw := _raw(attribute)) is not None else None


def _zero_is_good(attribute: Attribute) -> bool | None:
    """Supercap_Status: raw 0 is good; other raw values are not documented, and say nothing unless it fails."""
    normalized = _normalized(attribute)
    return normalized if normalized is not True or _raw(attribute) == 0 else None


JUDGES: Mapping[str, Callable[[Attribute], bool | None]] = {
    "Power_Loss_Cap_Test": _normalized,
    "Supercap_Status": _zero_is_good,
    "Capacitor_Health": _normalized,
    "SuperCap_Health": _normalized,
    "Capacitor_Life": _normalized,
    "Power_Fail_Health": _normalized,
    "PLP_Failure": _counts_failures,
    "SuperCap_Charge_Status": _charge,
}
