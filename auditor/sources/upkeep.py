"""What looks after pools: ZED and whom it tells, and what trims."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, Unknown, flag, known, word, words, words_of
from auditor.host.request import WITNESS, Files, Output, Read, Run, Skip
from auditor.sources.source import keep_nothing, source
from auditor.sources.units import show
from auditor.text import unescaped

FOLDER = "/etc/zfs/zed.d/"
PATH = f"{FOLDER}zed.rc"
WAYS = (  # what each way needs
    ("ZED_EMAIL_ADDR",),
    ("ZED_EMAIL",),  # before 0.7, and still taken for ZED_EMAIL_ADDR
    ("ZED_PUSHBULLET_ACCESS_TOKEN",),
    ("ZED_SLACK_WEBHOOK_URL",),
    ("ZED_PUSHOVER_TOKEN", "ZED_PUSHOVER_USER"),
    ("ZED_NTFY_TOPIC",),
    ("ZED_GOTIFY_URL", "ZED_GOTIFY_APPTOKEN"),
)
_NAMES = frozenset(name for way in WAYS for name in way)
_SET = re.compile(r"(?:export )?(ZED_[A-Z_]{1,40})=(\S?\S?)")


def keep_zed_rc(text: str) -> str:
    """A line for each; the last assignment counts. What was kept is kept again."""
    found: dict[str, bool] = {}
    for line in text.splitlines():
        bare = line.strip(" \t")
        if match := _SET.match(bare):
            found[match[1]] = match[2] not in ("", '""', "''") and not match[2].startswith("#")
        elif bare in _NAMES:
            found[bare] = True
    return "".join(f"{name}\n" for name in sorted(found) if found[name] and name in _NAMES)


PROPERTIES = "--property=LoadState,ActiveState,UnitFileState"
UNIT = "zfs-zed.service"  # etc/systemd/system/zfs-zed.service.in; zed.service is its alias


@source(
    "zed",
    "host",
    ask=Run(("systemctl", "show", PROPERTIES, UNIT), package="systemd"),
    runs=(show(PROPERTIES, UNIT),),
    facts={"zed_active": flag("the ZFS Event Daemon runs")},
)
def zed(reply: Output, host: Subject) -> Iterator[Fact]:
    """``systemctl show zfs-zed.service``: whether the ZFS Event Daemon runs, which tells people and replaces failed disks.

    All three must be there.
    """
    found = dict(re.findall(r"^(LoadState|ActiveState|UnitFileState)=(\S*)\n", reply.text, re.M))
    if len(found) != 3:
        raise ValueError("it does not say all three properties")
    load, active, state = found["LoadState"], found["ActiveState"], found["UnitFileState"]
    if active not in ("active", "inactive", "failed", "activating", "deactivating", "reloading"):
        raise ValueError(f"ActiveState={active} is no state of a unit")
    text = f"{UNIT}: " + ("no such unit" if load == "not-found" else f"{active}, {state}")
    yield Fact(HOST, "zed_active", known(active in ("active", "reloading"), text, f"systemctl status {UNIT}"))


SCRIPTS = f"{FOLDER}*.sh"
NOTIFIES = ("statechange-notify.sh", "generic-notify.sh")  # of a device that fails
STOCK = frozenset(
    {
        *("all-debug.sh", "all-syslog.sh", "checksum-notify.sh", "checksum-spare.sh", "data-notify.sh"),
        *("deadman-slot_off.sh", "deadman-sync-slot_off.sh", "generic-notify.sh"),
        *("history_event-zfs-list-cacher.sh", "io-notify.sh", "io-spare.sh", "pool_import-led.sh"),
        *("pool_import-sync-led.sh", "resilver.finish-notify.sh", "resilver_finish-notify.sh"),
        *("resilver_finish-start-scrub.sh", "scrub_finish-notify.sh", "statechange-led.sh"),
        *("statechange-notify.sh", "statechange-slot_off.sh", "statechange-sync-led.sh"),
        *("statechange-sync-slot_off.sh", "trim_finish-notify.sh", "vdev_attach-led.sh"),
        *("vdev_attach-sync-led.sh", "vdev_clear-led.sh", "vdev_clear-sync-led.sh", "zed-functions.sh"),
    }
)


@source(
    "zed_rc",
    "host",
    ask=Read((PATH, SCRIPTS, WITNESS)),
    keeps={PATH: keep_zed_rc, f"{FOLDER}*": keep_nothing},
    facts={"zed_tells": word("whom the ZFS Event Daemon can tell", "nobody", "somebody", "unknown script")},
)
def zed_rc(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/etc/zfs/zed.d``: whom the ZFS Event Daemon tells of a failure. (OpenZFS cmd/zed/zed.d/zed.rc, zed-functions.sh
    zed_notify; man 8 zed)

    Of zed.rc is kept which of the settings that name somebody are set, and not to what: they are addresses and tokens. A script
    that OpenZFS did not bring may tell anybody.

    Both the scripts and the settings must have been seen.
    """
    reply.witness()
    if not reply.complete(SCRIPTS) or not (PATH in reply.text or reply.absent(PATH)):
        return
    scripts = {path.rpartition("/")[2] for path in (*reply.text, *reply.links) if path.endswith(".sh")}
    given = set(reply.text.get(PATH, "").split())
    ways = [way for way in WAYS if given.issuperset(way)]
    if own := sorted(scripts - STOCK):
        tells, text = "unknown script", f"{own[0]} is no script of OpenZFS"
    elif not scripts & {*NOTIFIES}:
        tells, text = "nobody", f"none of {', '.join(NOTIFIES)} is in {FOLDER}"
    elif ways:
        tells, text = "somebody", f"{', '.join(ways[0])} is set in zed.rc"
    else:
        tells, text = "nobody", "zed.rc names no address and no service"
    yield Fact(HOST, "zed_tells", known(tells, text, f"grep ^ZED_ {PATH}; ls {FOLDER}"))


UNITS = "/etc/systemd/system/*.wants/zfs-trim-*"
CRON = "/etc/cron.d/zfsutils-linux"
_TIMER = re.compile(r"zfs-trim-(?:weekly|monthly)@(.+)\.timer")


@source(
    "trim_timers",
    "host",
    ask=Read((UNITS, CRON, WITNESS)),
    facts={
        "trim_timers": words("pools with a zfs-trim timer that is enabled"),
        "trim_cron": flag("Debian's job trims pools of NVMe drives once a month"),
    },
)
def trim_timers(reply: Files, host: Subject) -> Iterator[Fact]:
    """Which pools are trimmed on a schedule: OpenZFS' systemd timers, and Debian's monthly cron job. (man 8 zpool-trim,
    PERIODIC TRIM; Debian zfsutils-linux /usr/lib/zfs-linux/trim)

    Debian's job trims pools that lie on NVMe drives only, unless their property org.debian:periodic-trim says otherwise.
    That there is no timer counts only where files could be read at all: /proc/filesystems is the witness.

    Instance names are pool names, escaped as systemd does it ("-" stands for "/", which no pool has).
    """
    reply.witness()
    links = [path.rpartition("/")[2] for path in sorted((*reply.links, *reply.text))]
    timers = [found[1] for name in links if (found := _TIMER.fullmatch(name))]
    if timers or reply.complete(UNITS):
        pools = tuple(dict.fromkeys(map(unescaped, timers)))
        text = ", ".join(pools) or "no zfs-trim timer is enabled"
        yield Fact(HOST, "trim_timers", known(pools, text, "systemctl list-timers 'zfs-trim-*'"))
    if CRON in reply.text:
        active = any(
            "zfs-linux/trim" in line and not line.lstrip().startswith("#") for line in reply.text[CRON].split("\n")
        )
        yield Fact(HOST, "trim_cron", known(active, "zfs-linux/trim" if active else "no trim in it", f"cat {CRON}"))
    elif reply.absent(CRON):
        yield Fact(HOST, "trim_cron", known(False, f"no {CRON}", f"ls {CRON}"))


TIMER = "/etc/systemd/system/timers.target.wants/zpool-trim.timer"


def _ask_trim_nixos(host: Subject, facts: Facts) -> Read | Skip:
    """Only of NixOS."""
    ids = facts.get(HOST, "os_ids")
    if isinstance(ids, Unknown):
        return Skip("whether this is NixOS is not known")
    if "nixos" in words_of(ids):
        return Read((TIMER, WITNESS))
    return Skip("this is not NixOS", applies=False)


@source(
    "trim_nixos",
    "host",
    ask=_ask_trim_nixos,
    facts={"trim_nixos": flag("the timer with which NixOS trims all pools is enabled")},
)
def trim_nixos(reply: Files, host: Subject) -> Iterator[Fact]:
    """``zpool-trim.timer``: NixOS trims all pools by a unit of its own. (nixpkgs nixos/modules/tasks/filesystems/zfs.nix,
    services.zfs.trim)

    That there is no such link counts only where files could be read at all.
    """
    reply.witness()
    there = TIMER in reply.text or TIMER in reply.links
    if there or reply.absent(TIMER):
        text = "zpool-trim.timer is enabled" if there else "zpool-trim.timer is not enabled"
        yield Fact(HOST, "trim_nixos", known(there, text, "systemctl list-timers zpool-trim"))


SOURCES = (zed, zed_rc, trim_timers, trim_nixos)
