"""Units of systemd that have to do with ZFS. (man 5 systemd.unit)"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Spec, Subject, Unknown, known
from auditor.host.request import WITNESS, Command, Files, Output, Read, Run, Skip, command
from auditor.sources.source import keep_nothing, source
from auditor.text import unescaped

PATH = "/etc/zfs/zpool.cache"
DAMAGED = "?\n"  # which no pool is called
_ORDER = {"\0\0": ">", "\0\1": "<"}  # of the first two bytes: NV_ENCODE_NATIVE, and the byte order
_HEAD = 12  # they and two spare ones; version; flags
_WORD = 4
_PAIR = (
    16  # of native ones: size of the whole, of the name, spare, number of elements, type; then the name, ended by a NUL
)
_LIST, _LISTS = 19, 20
_POOL = re.compile(r"[A-Za-z][A-Za-z0-9_.: -]{0,255}")  # module/zcommon/zfs_namecheck.c pool_namecheck


def keep_pool_cache(text: str) -> str:
    """A line for each pool; of what ends before it should, or is nothing of the kind, :data:`DAMAGED`. What was kept is kept
    again."""
    order = _ORDER.get(text[:2])
    found = _packed(text.encode("utf-8", "surrogateescape"), order) if order else text.splitlines()
    whole = found is not None and all(map(_POOL.fullmatch, found))
    return "".join(f"{each}\n" for each in found or ()) if whole else DAMAGED


def _packed(data: bytes, order: str) -> list[str] | None:
    """The pairs of a list within stand behind the pair that holds it, and four zeroes end each list."""
    found, at, lists = [], _HEAD, 1
    while lists and at + _WORD <= len(data):
        (size,) = struct.unpack_from(f"{order}I", data, at)
        if size == 0:
            at, lists = at + _WORD, lists - 1
            continue
        if size < _PAIR or at + size > len(data):
            return None
        length, _, elements, kind = struct.unpack_from(f"{order}HHII", data, at + _WORD)
        name, nul = data[at + _PAIR : at + _PAIR + length][:-1], data[at + _PAIR + length - 1 : at + _PAIR + length]
        if nul != b"\0" or _PAIR + length > size:
            return None
        if lists == 1:
            found.append(name.decode("ascii", "replace"))
        lists += {_LIST: 1, _LISTS: elements}.get(kind, 0)
        at += size
    return found if not lists and at == len(data) else None


FOLDER = "/run/systemd/generator/"
BOUND = "BindsTo="
UNIT = re.compile(r"zfs-load-key@([\w:.\\-]{1,255})\.service", re.ASCII)


def keep_mount_unit(text: str) -> str:
    """Its lines ``BindsTo=UNIT...`` with units that load keys. What was kept is kept again."""
    rows = (line.removeprefix(BOUND).split() for line in text.split("\n") if line.startswith(BOUND))
    bound = ([each for each in row if UNIT.fullmatch(each)] for row in rows)
    return "".join(f"{BOUND}{' '.join(each)}\n" for each in bound if each)


def encryption_root(instance: str) -> str:
    """Its name, of which systemd has made the instance of a unit: a dash stands for each slash. (man 1 systemd-escape)"""
    return unescaped(instance.replace("-", "/"))


FIRST = "/proc/1/comm"
FOLDERS = ("/etc/systemd/system/*", "/usr/lib/systemd/system/*")
LINKS = tuple(f"{folder}.{how}/zfs*" for folder in FOLDERS for how in ("wants", "requires"))
OWN = "/etc/systemd/system/zfs*"
LISTS = "/etc/zfs/zfs-list.cache/*"
_LINK = re.compile(r"/(?:etc|usr/lib)/systemd/system/([^/]+)\.(?:wants|requires)/([^/]+)")


@source(
    "boot_units",
    "host",
    ask=Read((FIRST, *LINKS, OWN, PATH, LISTS, WITNESS)),
    keeps={PATH: keep_pool_cache, **dict.fromkeys((*FOLDERS, LISTS), keep_nothing)},
    facts={
        "systemd": Spec.flag("the first process is systemd"),
        "zfs_units_wanted": Spec.words("UNIT WANTED of units for ZFS that another one wants or requires"),
        "zfs_units_masked": Spec.words("units for ZFS that are masked"),
        "cached_pools": Spec.words("the pools of /etc/zfs/zpool.cache"),
        "generated_pools": Spec.words("pools whose file systems zfs-mount-generator mounts"),
    },
)
def boot(reply: Files, host: Subject) -> Iterator[Fact]:
    """What imports and mounts pools when systemd starts the host: its enabled units for ZFS, the pools of the cache file,
    and those on a list of the generator of mounts.

    A link in a folder of the unit that wants it enables a unit, a link to /dev/null masks it. Only names are read. Absence
    counts only where files could be read at all. (man 5 systemd.unit; OpenZFS etc/systemd/system; man 8
    zfs-mount-generator)"""
    reply.witness()
    if FIRST in reply.text:
        name = reply.text[FIRST].removesuffix("\n")
        if not re.fullmatch(r"[!-~]{1,15}", name):
            raise ValueError(f"{FIRST} holds no name of a program")
        yield Fact(HOST, "systemd", known(name == "systemd", f"process 1 is {name[:40]}", f"cat {FIRST}"))
    seen = sorted({*reply.links, *reply.text})
    if reply.complete(*LINKS):
        wanted = tuple(f"{found[1]} {found[2]}" for each in seen if (found := _LINK.fullmatch(each)))
        text = ", ".join(each.partition(" ")[2] for each in wanted) or "no unit for ZFS is enabled"
        yield Fact(HOST, "zfs_units_wanted", known(wanted, text, "systemctl list-unit-files 'zfs*'"))
    if reply.complete(OWN):
        masked = tuple(path.rpartition("/")[2] for path in seen if reply.links.get(path) == "/dev/null")
        yield Fact(HOST, "zfs_units_masked", known(masked, ", ".join(masked) or "none is masked", f"ls -l {OWN}"))
    path = PATH
    if path in reply.text:
        if reply.text[path] == DAMAGED:
            raise ValueError(f"{path} is damaged")
        pools = tuple(reply.text[path].splitlines())
        yield Fact(HOST, "cached_pools", known(pools, f"in it: {', '.join(pools) or 'nothing'}", f"zdb -CU {path}"))
    elif reply.absent(path):
        yield Fact(HOST, "cached_pools", known((), f"no {path}", f"ls {path}"))
    if reply.complete(LISTS):
        folder = LISTS.removesuffix("*")
        pools = tuple(each.removeprefix(folder) for each in seen if each.startswith(folder))
        yield Fact(HOST, "generated_pools", known(pools, ", ".join(pools) or "no list", f"ls {folder}"))


UNITS, PARTS = "/etc/systemd/system/zfs*", "/etc/systemd/system/zfs*.d/*"
_UNIT = re.compile(r"/etc/systemd/system/(zfs[^/]*?)(?:\.d/[^/]+)?")


@source(
    "unit_changes",
    "host",
    ask=Read((UNITS, PARTS, WITNESS)),
    facts={"zfs_units_changed": Spec.words("units for ZFS with something in /etc/systemd/system, masks left out")},
)
def changes(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/etc/systemd/system``: the units for ZFS that an administrator or a platform has changed there, where all names
    could be seen. A file counts in place of the package's, one in NAME.d besides it; masks are those of ``boot_units``. A
    separate question, which recordings of that one do not answer. (man 5 systemd.unit, "Unit File Load Path")"""
    reply.witness()
    if reply.complete(UNITS, PARTS):
        paths = [path for path in (*reply.text, *reply.links) if reply.links.get(path) != "/dev/null"]
        changed = tuple(sorted({found[1] for path in paths if (found := _UNIT.fullmatch(path))}))
        text = f"{', '.join(changed) or 'nothing'} of ZFS in /etc/systemd/system"
        yield Fact(HOST, "zfs_units_changed", known(changed, text, f"ls -d {UNITS} {PARTS}"))


COMMAND = "systemctl --failed 'zfs*'"
_ROW = re.compile(r"([\w@.:\\-]{1,255}) +loaded +failed +failed( .*)?", re.ASCII)
# of OpenZFS (zfs-scrub-weekly@POOL), Debian and Ubuntu, zfs-auto-snapshot, zfs_autobackup, NixOS
_UPKEEP = re.compile(r"zfs[-_](?:scrub|trim|auto|snap|repl|backup|prune|send|sync)")


def show(properties: str, *names: str, others: str = "") -> Command:
    """``systemctl show`` of these properties, of units of these names. others: of what other names, too."""
    pattern = re.compile("|".join(filter(None, (*map(re.escape, names), others))), re.ASCII)
    return command("systemctl show", properties, pattern, lists=("--property",))


def listed(state: str, *names: str) -> Command:
    """``systemctl list-units`` of units of these names that are in this state."""
    options, pattern = f"--state={state} --plain --no-legend", re.compile("|".join(map(re.escape, names)))
    return command("systemctl list-units", options, pattern, apart="--type --state --all")


def asked(*names: str) -> Run:
    return Run(("systemctl", "list-units", "--state=failed", "--plain", "--no-legend", *names), package="systemd")


def rows(reply: Output) -> tuple[str, ...]:
    """The names; none where none failed. Raises ValueError for another line."""
    found = [_ROW.fullmatch(line.strip()) for line in reply.text.splitlines()]
    if not all(found):
        raise ValueError("a line that names no failed unit")
    return tuple(row[1] for row in found if row)


@source(
    "failed_units",
    "host",
    ask=lambda _, __: asked("zfs*"),
    runs=(listed("failed", "zfs*"),),
    facts={
        "zfs_units_failed": Spec.words("units of ZFS that failed at the start of the host, and were not started again"),
        "zfs_upkeep_failed": Spec.words("units zfs* for scrubs, trims, snapshots or replicas whose last run failed"),
    },
)
def failed(reply: Output, host: Subject) -> Iterator[Fact]:
    """``systemctl list-units --state=failed``: units of ZFS that failed since the host started: an import, a mount over files
    that somebody wrote first, a scrub or a snapshot. (man 1 systemctl; OpenZFS etc/systemd/system)"""
    units = rows(reply)
    if strange := [each for each in units if not each.startswith("zfs")]:
        raise ValueError(f"{strange[0][:40]} is no unit of ZFS")
    upkeep = tuple(each for each in units if _UPKEEP.match(each))
    start = tuple(each for each in units if each not in upkeep)
    for name, found in (("zfs_units_failed", start), ("zfs_upkeep_failed", upkeep)):
        yield Fact(HOST, name, known(found, ", ".join(found) or "none of these units failed", COMMAND))


NAMES = ("sanoid*", "syncoid*", "zrepl*", "znapzend*", "pyznap*", "zettarepl*", "zpool-*", "pvesr*")


@source(
    "failed_upkeep",
    "host",
    ask=lambda _, __: asked(*NAMES),
    runs=(listed("failed", *NAMES),),
    facts={
        "upkeep_tools_failed": Spec.words("units of programs for snapshots, replicas and scrubs whose last run failed")
    },
)
def failed_upkeep(reply: Output, host: Subject) -> Iterator[Fact]:
    """``systemctl list-units --state=failed``: programs that make snapshots and replicas or scrub, and failed when they ran
    last.

    Each is known by the names of its units: sanoid and syncoid (jimsalterjrs/sanoid packages), zrepl, znapzend, pyznap,
    zettarepl (TrueNAS), pvesr (Proxmox VE storage replication), zpool-* (NixOS zpool-trim, Ubuntu's scrubs). Raises ValueError
    for an unexpected unit."""
    units = rows(reply)
    if strange := [each for each in units if not each.startswith(tuple(name[:-1] for name in NAMES))]:
        raise ValueError(f"{strange[0][:40]} is unexpected")
    said = ", ".join(units) or "none of these units failed"
    yield Fact(HOST, "upkeep_tools_failed", known(units, said, "systemctl --failed"))


MOUNT_UNITS = f"{FOLDER}*.mount"


@source(
    "mount_units",
    "host",
    ask=Read((MOUNT_UNITS, WITNESS)),
    keeps={f"{FOLDER}*": keep_mount_unit},
    facts={
        "keys_bound": Spec.words("encryption roots whose unit zfs-load-key@ the mount of a file system is bound to")
    },
)
def key_mounts(reply: Files, host: Subject) -> Iterator[Fact]:
    """Mounts of encrypted file systems that zfs-mount-generator has made: which encryption roots' units they are bound to.

    systemd stops a mount that is bound to a unit which is not active. (man 5 systemd.unit, BindsTo=; OpenZFS
    etc/systemd/system-generators/zfs-mount-generator.c) One, where all units were read."""
    reply.witness()
    if not reply.complete(MOUNT_UNITS):
        return
    lines = [line.removeprefix(BOUND) for text in reply.text.values() for line in text.splitlines() if BOUND in line]
    found = [UNIT.fullmatch(unit) for line in lines for unit in line.split(" ")]
    roots = tuple(sorted({encryption_root(each[1]) for each in found if each}))
    yield Fact(HOST, "keys_bound", known(roots, ", ".join(roots) or "none", f"grep {BOUND}zfs-load-key {MOUNT_UNITS}"))


KEY_UNITS = "zfs-load-key@*"
_ACTIVE = re.compile(r"(\S{1,300}) +loaded +active +\w+( .*)?", re.ASCII)


def _ask_keys(host: Subject, facts: Facts) -> Run | Skip:
    bound = facts.get(HOST, "keys_bound")
    if isinstance(bound, Unknown):
        return Skip("which mounts are bound to the units of keys is not known")
    if not bound.words():
        return Skip("no mount is bound to a unit of a key", applies=False)
    command = ("systemctl", "list-units", "--state=active", "--plain", "--no-legend", KEY_UNITS)
    return Run(command, package="systemd")


@source(
    "key_units",
    "host",
    ask=_ask_keys,
    runs=(listed("active", KEY_UNITS),),
    facts={"key_units_active": Spec.words("encryption roots whose unit zfs-load-key@ is active")},
)
def keys(reply: Output, host: Subject) -> Iterator[Fact]:
    """``systemctl list-units --state=active``: the units that have loaded a key, as far as systemd knows. (man 1 systemctl)

    A key that was loaded by hand is loaded for OpenZFS, and its unit is not active. Raises ValueError for another line than
    that of an active unit of a key."""
    rows = [_ACTIVE.fullmatch(line.strip()) for line in reply.text.splitlines()]
    units = [UNIT.fullmatch(row[1]) if row else None for row in rows]
    roots = tuple(encryption_root(each[1]) for each in units if each)
    if len(roots) < len(rows):
        raise ValueError("a line that names no active unit of a key")
    text = ", ".join(roots) or "no unit of a key is active"
    yield Fact(HOST, "key_units_active", known(roots, text, "systemctl list-units 'zfs-load-key@*'"))


# What looks after pools: ZED and whom it tells, and what trims.

ZED_FOLDER = "/etc/zfs/zed.d/"
ZED_RC = f"{ZED_FOLDER}zed.rc"
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
ZED = "zfs-zed.service"  # etc/systemd/system/zfs-zed.service.in; zed.service is its alias


@source(
    "zed",
    "host",
    ask=Run(("systemctl", "show", PROPERTIES, ZED), package="systemd"),
    runs=(show(PROPERTIES, ZED),),
    facts={"zed_active": Spec.flag("the ZFS Event Daemon runs")},
)
def zed(reply: Output, host: Subject) -> Iterator[Fact]:
    """``systemctl show zfs-zed.service``: whether the ZFS Event Daemon runs, which tells people and replaces failed disks.

    All three must be there."""
    found = dict(re.findall(r"^(LoadState|ActiveState|UnitFileState)=(\S*)\n", reply.text, re.M))
    if len(found) != 3:
        raise ValueError("it does not say all three properties")
    load, active, state = found["LoadState"], found["ActiveState"], found["UnitFileState"]
    if active not in ("active", "inactive", "failed", "activating", "deactivating", "reloading"):
        raise ValueError(f"ActiveState={active} is no state of a unit")
    text = f"{ZED}: " + ("no such unit" if load == "not-found" else f"{active}, {state}")
    yield Fact(HOST, "zed_active", known(active in ("active", "reloading"), text, f"systemctl status {ZED}"))


SCRIPTS = f"{ZED_FOLDER}*.sh"
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
    ask=Read((ZED_RC, SCRIPTS, WITNESS)),
    keeps={ZED_RC: keep_zed_rc, f"{ZED_FOLDER}*": keep_nothing},
    facts={"zed_tells": Spec.word("whom the ZFS Event Daemon can tell", "nobody", "somebody", "unknown script")},
)
def zed_rc(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/etc/zfs/zed.d``: whom the ZFS Event Daemon tells of a failure. (OpenZFS cmd/zed/zed.d/zed.rc, zed-functions.sh
    zed_notify; man 8 zed) Of zed.rc is kept which settings name somebody, not their addresses and tokens. A script that is
    not OpenZFS's may tell anybody. Known where both scripts and settings were seen."""
    reply.witness()
    if not reply.complete(SCRIPTS) or not (ZED_RC in reply.text or reply.absent(ZED_RC)):
        return
    scripts = {path.rpartition("/")[2] for path in (*reply.text, *reply.links) if path.endswith(".sh")}
    given = set(reply.text.get(ZED_RC, "").split())
    ways = [way for way in WAYS if given.issuperset(way)]
    if own := sorted(scripts - STOCK):
        tells, text = "unknown script", f"{own[0]} is no script of OpenZFS"
    elif not scripts & {*NOTIFIES}:
        tells, text = "nobody", f"none of {', '.join(NOTIFIES)} is in {ZED_FOLDER}"
    elif ways:
        tells, text = "somebody", f"{', '.join(ways[0])} is set in zed.rc"
    else:
        tells, text = "nobody", "zed.rc names no address and no service"
    yield Fact(HOST, "zed_tells", known(tells, text, f"grep ^ZED_ {ZED_RC}; ls {ZED_FOLDER}"))


TRIM_TIMERS = "/etc/systemd/system/*.wants/zfs-trim-*"
CRON = "/etc/cron.d/zfsutils-linux"
_TIMER = re.compile(r"zfs-trim-(?:weekly|monthly)@(.+)\.timer")


@source(
    "trim_timers",
    "host",
    ask=Read((TRIM_TIMERS, CRON, WITNESS)),
    facts={
        "trim_timers": Spec.words("pools with a zfs-trim timer that is enabled"),
        "trim_cron": Spec.flag("Debian's job trims pools of NVMe drives once a month"),
    },
)
def trim_timers(reply: Files, host: Subject) -> Iterator[Fact]:
    """Which pools are trimmed on a schedule: OpenZFS' systemd timers, and Debian's monthly cron job, which trims pools of
    NVMe drives unless org.debian:periodic-trim says otherwise. (man 8 zpool-trim, PERIODIC TRIM; Debian zfsutils-linux
    /usr/lib/zfs-linux/trim) Absence counts only where files could be read at all."""
    reply.witness()
    links = [path.rpartition("/")[2] for path in sorted((*reply.links, *reply.text))]
    timers = [found[1] for name in links if (found := _TIMER.fullmatch(name))]
    if timers or reply.complete(TRIM_TIMERS):
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
    ids = facts.get(HOST, "os_ids")
    if isinstance(ids, Unknown):
        return Skip("whether this is NixOS is not known")
    if "nixos" in ids.words():
        return Read((TIMER, WITNESS))
    return Skip("this is not NixOS", applies=False)


@source(
    "trim_nixos",
    "host",
    ask=_ask_trim_nixos,
    facts={"trim_nixos": Spec.flag("the timer with which NixOS trims all pools is enabled")},
)
def trim_nixos(reply: Files, host: Subject) -> Iterator[Fact]:
    """``zpool-trim.timer``: NixOS trims all pools by a unit of its own. (nixpkgs nixos/modules/tasks/filesystems/zfs.nix,
    services.zfs.trim)

    That there is no such link counts only where files could be read at all."""
    reply.witness()
    there = TIMER in reply.text or TIMER in reply.links
    if there or reply.absent(TIMER):
        text = "zpool-trim.timer is enabled" if there else "zpool-trim.timer is not enabled"
        yield Fact(HOST, "trim_nixos", known(there, text, "systemctl list-timers zpool-trim"))
