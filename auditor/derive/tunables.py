"""Module parameters: as they are, as the next boot will set them, and what the release would have them be.

The value after the next boot is that of modprobe.d or the kernel's command line, else the default; where the module is
loaded from an initramfs that may hold older files than modprobe.d, that of the command line or none. What a service writes
to /sys later is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from auditor.data import releases, tunables
from auditor.data.tunables import Tunable
from auditor.derive.initrd import options_in_doubt
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    join,
    number,
    unknown,
    words,
    words_of,
)

SUBJECT = "host"
LOSES_COMMITS = ("zfs_nocacheflush", "zil_nocacheflush", "zil_replay_disable")
DURABILITY = (
    *LOSES_COMMITS,
    "zfs_recover",
    "zfs_txg_timeout",
    "zfs_no_scrub_io",
    "zfs_scan_ignore_errors",
    "zfs_multihost_fail_intervals",
    "zfs_zil_saxattr",
    "zfs_dmu_offset_next_sync",
    "zfs_bclone_enabled",
    "zfs_dio_enabled",
    "zfs_vdev_direct_write_verify",
    "zfs_send_corrupt_data",
    "zfs_max_missing_tvds",
    "zvol_use_blk_mq",
)
FACTS = {
    **{f"{name}_boot": number(f"{name} after the next boot") for name in DURABILITY},
    **{f"{name}_default": number(f"{name} as this release has it by default") for name in DURABILITY},
    "tunables_changed": words(
        "parameters that are not at their default, without those that have a rule or that are meant to be set"
    ),
    "tunables_risky": words("those of them that can cost data"),
    "tunables_drifting": words("parameters that the next boot sets to another value than they have now"),
}
ON_THE_LINE = "cat /proc/cmdline"  # the evidence of an option of the command line
OTHERS = "all others at their defaults; some have rules of their own"


class Boot(NamedTuple):
    """options: of modprobe.d and the command line, one evidence each. doubt: why those of modprobe.d may be others then."""

    options: Judged
    doubt: Unknown | None


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """All of FACTS. A list that is not empty may be short of parameters that could not be read."""
    table = tunables.load()
    release = facts.get(HOST, "release")
    boot = Boot(facts.get(HOST, "zfs_boot_options"), options_in_doubt(facts))
    defaults = {name: _default(each, release) for name, each in table.items()}
    for name in DURABILITY:
        default = defaults[name]
        yield Fact(HOST, f"{name}_default", _as_number(default))
        yield Fact(HOST, f"{name}_boot", _as_number(_boot(table[name], default, boot)))
    there = [each for name, each in table.items() if not isinstance(release, Known) or not _lacking(each, release)]
    ruled = [each for each in there if each.changed in ("low", "medium")]
    yield Fact(HOST, "tunables_changed", _listed((_change(each, defaults[each.name], facts) for each in ruled), OTHERS))
    risky = [each for each in ruled if each.changed == "medium"]
    yield Fact(HOST, "tunables_risky", _listed((_change(each, defaults[each.name], facts) for each in risky), OTHERS))
    steady = [each for each in there if each.name not in LOSES_COMMITS]
    yield Fact(
        HOST,
        "tunables_drifting",
        _listed((_drift(each, defaults[each.name], boot, facts) for each in steady), "the next boot changes none"),
    )


def _numbers(release: Known) -> tuple[int, ...]:
    return (
        tuple(int(part) for part in release.value if isinstance(part, int)) if isinstance(release.value, tuple) else ()
    )


def _default(tunable: Tunable, release: Judged) -> Judged:
    if isinstance(release, Unknown):
        return release
    if why := _untold(tunable, release):
        return unknown(why, releases.REMEDY)
    if _lacking(tunable, release):
        return unknown(f"{tunable.name}: OpenZFS {releases.spelt(_numbers(release))} has no such parameter")
    value = tunable.default(_numbers(release))
    return Known(value, (Evidence(f"{tunable.name}={value} by default", "man 4 zfs"),))


def _untold(tunable: Tunable, release: Known) -> str:
    """Why a version that is no release may have this default or that."""
    version = release.value if isinstance(release.value, tuple) else ()
    since = (step[:2] if step[2:] == (0,) else step for step, _ in tunable.steps)
    return next((why for each in since if (why := releases.untold(version, each))), "")


def _lacking(tunable: Tunable, release: Known) -> bool:
    return not _untold(tunable, release) and not tunable.default(_numbers(release))


def _boot(tunable: Tunable, default: Judged, boot: Boot) -> Judged:
    if isinstance(boot.options, Unknown):
        return boot.options
    for option, seen in zip(words_of(boot.options), boot.options.evidence, strict=False):
        name, _, value = str(option).partition("=")
        if name == tunable.name:
            return boot.doubt if boot.doubt and seen.command != ON_THE_LINE else Known(value, (seen,))
    return boot.doubt or default


def _as_number(found: Judged) -> Judged:
    if isinstance(found, Unknown):
        return found
    try:
        return Known(int(str(found.value), 0), found.evidence)
    except ValueError:
        return unknown(f"{found.evidence[0].text}: not a number")


def _same(a: object, b: object) -> bool:
    """0x10 is 16."""
    try:
        return int(str(a), 0) == int(str(b), 0)
    except ValueError:
        return str(a) == str(b)


def _change(tunable: Tunable, default: Judged, facts: Facts) -> Judged | None:
    """What is not at its default; None where it is."""
    now = facts.get(HOST, tunable.name)
    if isinstance(now, Unknown) or isinstance(default, Unknown):
        return join([each for each in (now, default) if isinstance(each, Unknown)])
    if _same(now.value, default.value):
        return None
    text = f"{tunable.name}={now.value}, by default {default.value} ({tunable.means})"
    return Known(f"{tunable.name}={now.value}", (Evidence(text, now.evidence[0].command),))


def _drift(tunable: Tunable, default: Judged, boot: Boot, facts: Facts) -> Judged | None:
    """What the next boot changes; None where it does not."""
    now, later = facts.get(HOST, tunable.name), _boot(tunable, default, boot)
    if isinstance(now, Unknown) or isinstance(later, Unknown):
        return join([each for each in (now, later) if isinstance(each, Unknown)])
    if _same(now.value, later.value):
        return None
    return Known(f"{tunable.name}={now.value} becomes {later.value}", (*now.evidence, *later.evidence))


def _listed(each: Iterable[Judged | None], none: str) -> Judged:
    """What was found; without any, the reasons of what could not be looked at."""
    found = [one for one in each if one is not None]
    known = [one for one in found if isinstance(one, Known)]
    if known:
        return Known(tuple(str(one.value) for one in known), tuple(line for one in known for line in one.evidence))
    missing = [one for one in found if isinstance(one, Unknown)]
    return join(missing) if missing else Known((), (Evidence(none, "grep . /sys/module/zfs/parameters/*"),))
