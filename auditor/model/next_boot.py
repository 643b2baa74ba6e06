"""What the next boot does: which pools it imports and mounts, what the initrd holds, and which module parameters it sets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from auditor.data import releases
from auditor.data.platforms import ANY, HOSTID, OPTIONS, filled, initrd_paths
from auditor.data.releases import Tunable
from auditor.databases import ENGINES
from auditor.databases.paths import MountedFrom
from auditor.facts import HOST, Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, known, unknown
from auditor.model.derivation import Missing, catch_missing, derivation, every, evidence, gaps, numbers
from auditor.model.kernels import newer
from auditor.text import harmless, unit_escaped, utc


def root_datasets(facts: Facts) -> tuple[str, ...]:
    """The datasets that are mounted at /, by the host's table of mounts. (man 5 proc_pid_mountinfo)"""
    return _mounted_at_root(facts.get(HOST, "mount_table").words())


@lru_cache(maxsize=8)  # asked for each pool, of a table with all datasets
def _mounted_at_root(table: tuple[str, ...]) -> tuple[str, ...]:
    rows = (line.split(" ") for line in table)
    return tuple(
        row[row.index("-") + 2].replace("\\040", " ")
        for row in rows
        if len(row) > 4 and row[4] == "/" and "-" in row and row[row.index("-") + 1 :][:1] == ["zfs"]
    )


CACHE, SCAN, MOUNT = "zfs-import-cache.service", "zfs-import-scan.service", "zfs-mount.service"
TARGET, TARGET_SINCE = "zfs-import.target", (0, 7, 4)
# of OpenZFS and its packages; none of these starts the target by what stands in it
PLAIN = re.compile(
    r"zfs(?:\.target|-(?:import-cache|import-scan|mount|share|zed|load-module|volume-wait)\.service|-volumes\.target"
    r"|-(?:scrub|trim)[^/]*)"
)


@derivation(
    "pool",
    imported_at_boot=Spec.flag("something that is enabled imports it when the host starts"),
    scanned_at_boot=Spec.flag("all pools that are found on any device are imported when the host starts, and so is it"),
    mounted_at_boot=Spec.flag("something that is enabled mounts its file systems when the host starts"),
)
def pool_at_boot(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether a pool comes back by itself when the host starts: imported, and its file systems mounted.

    The initramfs imports the pool of the root file system; zfs-import-cache.service those of the cache file; where that is
    empty or missing, zfs-import-scan.service all that it finds; or a unit for the pool (Proxmox VE, NixOS, guides for a
    boot pool). zfs-mount.service or the generator mounts. Other ways of a site are not seen. (OpenZFS
    etc/systemd/system/zfs-import-cache.service.in, zfs-import-scan.service.in: ConditionFileNotEmpty; zfs-mount.service.in)

    Since 0.7.4 zfs-mount.service comes after zfs-import.target and not after the units that import: where nothing starts
    that target it does not wait for them. Hosts with older or handmade links are so. (OpenZFS commits 1c4f5e7d92,
    5c2552c564: systemd zfs-import.target and documentation; systemd.unit.5 After=)"""
    units = reached(facts)
    yield Fact(pool, "scanned_at_boot", _scanned(units, facts))
    yield Fact(pool, "imported_at_boot", _root(pool, facts) or _imported(pool, units, facts))
    yield Fact(pool, "mounted_at_boot", _mounted(pool, units, facts))


@catch_missing
def reached(facts: Facts) -> Judged:
    """The units for ZFS that are started at boot: wanted by one that is none of them, or by one of these; and not masked."""
    systemd, wanted, masked = facts.values(HOST, "systemd", "zfs_units_wanted", "zfs_units_masked")
    if not systemd.value:
        return unknown(f"{systemd.evidence[0].text}: what it starts is not looked at")
    pairs = [each.partition(" ")[::2] for each in wanted.words()]
    found, off = set[str](), {*masked.words()}
    while new := {unit for by, unit in pairs if not by.startswith("zfs") or by in found} - found - off:
        found |= new
    return Known(tuple(sorted(found)), (*wanted.evidence, *masked.evidence))


def root_source(facts: Facts) -> Known | None:
    """The dataset of the root file system, where it is one of ZFS."""
    table = facts.get(HOST, "mount_table")
    found = root_datasets(facts)
    return Known(found[0], table.evidence) if found and isinstance(table, Known) else None


def _root(pool: Subject, facts: Facts) -> Known | None:
    found = root_source(facts)
    return Known(True, found.evidence) if found and str(found.value).partition("/")[0] == pool.name else None


@catch_missing
def _scanned(units: Judged, facts: Facts) -> Judged:
    """The scan is for hosts without a cache file, and takes whatever it finds."""
    units = units.need()
    if SCAN not in units.words():
        return Known(False, units.evidence)
    cached = facts.need(HOST, "cached_pools")
    return Known(not cached.value, (*units.evidence, *cached.evidence))


@catch_missing
def _imported(pool: Subject, units: Judged, facts: Facts) -> Judged:
    units = units.need()
    started = units.words()
    name = unit_escaped(pool.name)
    if {f"zfs-import@{name}.service", f"zfs-import-{name}.service"} & {*started}:
        return Known(True, units.evidence)
    cached = facts.need(HOST, "cached_pools")
    pools = cached.words()
    comes = (CACHE in started and pool.name in pools) or (SCAN in started and not pools)
    return Known(comes, (*units.evidence, *cached.evidence))


@catch_missing
def _mounted(pool: Subject, units: Judged, facts: Facts) -> Judged:
    lists = facts.get(HOST, "generated_pools")
    if isinstance(lists, Known) and pool.name in lists.words():
        return Known(True, lists.evidence)
    units = units.need()
    if MOUNT in units.words():
        return _after_import(pool, units, facts)
    return Known(False, (*units.evidence, *lists.need().evidence))


@catch_missing
def _after_import(pool: Subject, units: Known, facts: Facts) -> Judged:
    """That zfs-mount.service waits for the import of the pool; true also of one that nothing is seen to import."""
    requires = facts.get(HOST, "fstab_requires")
    masked = facts.get(HOST, "zfs_units_masked").words()
    started = {*units.words(), *(each for each in requires.words() if each not in masked)}
    root = _root(pool, facts)
    if TARGET in started or root or not {CACHE, SCAN} & started:
        return Known(True, (root or units).evidence)
    if not _imported(pool, units, facts).need().value:
        return Known(True, units.evidence)
    version = facts.get(HOST, "zfs_userland_version")
    if isinstance(version, Known) and numbers(version) < TARGET_SINCE:
        return Known(True, (*units.evidence, *version.evidence))
    others = (facts.get(HOST, name) for name in ("mount_table", "zfs_units_changed", "generated_pools"))
    found = every((units, version, requires, *others))
    if doubt := _doubt(units, facts):
        return unknown(f"no link starts {TARGET}, but {doubt}")
    return Known(False, evidence(*found))


def _doubt(units: Known, facts: Facts) -> str:
    """What may start the target, or import the pool before it."""
    own, lists = (facts.get(HOST, name).words() for name in ("zfs_units_changed", "generated_pools"))
    if others := [each for each in units.words() if not PLAIN.fullmatch(each)]:
        return f"what {others[0]} does is not looked at"
    if own:
        return f"what {own[0]} says in /etc/systemd/system is not looked at"
    if lists:  # each mount that it makes wants the target, but of what the initramfs has imported
        return f"zfs-mount-generator may start it, for {lists[0]}"
    return "the initramfs may import all pools, as the root file system is on OpenZFS" if root_source(facts) else ""


class Times(NamedTuple):
    """When the content of a file was changed, and when anything of it was: seconds since 1970."""

    content: int
    changed: int


@derivation(
    "host",
    root_on_zfs=Spec.flag("the root file system is on ZFS"),
    initrd_outdated=Spec.words("files that were changed after the initrd that should hold them was written"),
)
def initrd(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether the initrd that starts next, where the root file system is on ZFS, holds what was installed and set since.

    It holds copies of the zfs module, modprobe.d and /etc/hostid. Only its time is looked at: what is newer cannot be in
    it. Of the newest kernels with a zfs module: one of them starts next by default. (mkinitramfs(8), dracut(8); OpenZFS
    contrib/initramfs/hooks/zfs.in)"""
    yield Fact(HOST, "root_on_zfs", _root_on_zfs(facts))
    yield Fact(HOST, "initrd_outdated", _outdated(facts))


@catch_missing
def options_in_doubt(facts: Facts) -> Unknown | None:
    """Why the options of modprobe.d may not be those with which the module is loaded at the next boot; None where they are.

    A file below /usr that gave an option once, and is gone since, is not seen."""
    # NixOS builds an initrd with every configuration, and puts it where no other system has its own
    if not _root_on_zfs(facts).need().value or "nixos" in facts.get(HOST, "os_ids").words():
        return None
    times, initrds = _initrds(facts)
    options = facts.get(HOST, "zfs_boot_options")
    files = [each.command.removeprefix("cat ") for each in options.evidence] if isinstance(options, Known) else []
    if elsewhere := [path for path in files if path.endswith(".conf") and path not in times]:
        return unknown(f"{elsewhere[0]}: whether it was changed after the initrd was written was not looked at")
    for initrd in initrds.values():
        for path in times:
            if path.startswith(OPTIONS) and max(times[path]) > times[initrd].content:
                text = f"{initrd} was written before {path} was changed: it may hold other options"
                return unknown(text, filled("{rebuild}", facts.get(HOST, "platform").word(ANY)))
    return None


@catch_missing
def _root_on_zfs(facts: Facts) -> Judged:
    return Known(root_source(facts) is not None, facts.need(HOST, "mount_table").evidence)


@catch_missing
def _outdated(facts: Facts) -> Judged:
    """By the times of content; where only other times are later, as of a file that a package brought, it is not known."""
    times, initrds = _initrds(facts)
    options = facts.need(HOST, "zfs_boot_options")
    files = {each.command.removeprefix("cat ") for each in options.evidence}  # those with options of the zfs module
    held = [(HOSTID, *_modules(facts, kernel), *sorted(files)) for kernel in initrds]
    held_in = zip(held, initrds.values(), strict=True)
    pairs = [(path, initrd) for paths, initrd in held_in for path in paths if path in times]
    late = [(path, initrd) for path, initrd in pairs if times[path].content > times[initrd].content]
    if late:
        return Known(tuple(path for path, _ in late), tuple(_dates(path, initrd, times) for path, initrd in late))
    if missing := [path for kernel in initrds for path in _modules(facts, kernel) if path not in times]:
        return unknown(f"{missing[0]}, which modules.dep names, is not there")
    for path, initrd in pairs:
        if times[path].changed > times[initrd].content:
            return unknown(f"{path} came or was changed after {initrd} was written: whether that holds it is not known")
    return Known((), tuple(_dates(path, initrd, times) for path, initrd in pairs))


def _initrds(facts: Facts) -> tuple[Mapping[str, Times], Mapping[str, str]]:
    """The times, and for each of the newest kernels its initrd."""
    found, modules = facts.values(HOST, "initrd_times", "zfs_modules")
    rows = [line.split(" ", 2) for line in found.words()]
    times = {path: Times(int(content), int(changed)) for content, changed, path in rows}
    kernels = [each.partition(" ")[0] for each in modules.words()]
    initrds: dict[str, str] = {}
    for kernel in kernels:
        if any(newer(each, kernel) for each in kernels):
            continue
        there = [name for name in initrd_paths(kernel) if name in times]
        if len(there) != 1:
            why = f"{len(there) or 'no'} initrd of {kernel} found at {', '.join(there or initrd_paths(kernel))}"
            raise Missing(unknown(why))
        initrds[kernel] = there[0]
    if not initrds:
        raise Missing(unknown("no kernel with a zfs module was found"))
    return times, initrds


def _modules(facts: Facts, kernel: str) -> list[str]:
    pairs = [each.partition(" ")[::2] for each in facts.get(HOST, "zfs_modules").words()]
    return [path for name, path in pairs if name == kernel]


SECONDS = "%Y-%m-%d %H:%M:%S"


def _dates(path: str, initrd: str, times: Mapping[str, Times]) -> Evidence:
    text = f"{path} is of {utc(times[path].content, SECONDS)}, {initrd} of {utc(times[initrd].content, SECONDS)}"
    return Evidence(text, f"stat -L -c '%y %z %n' {path} {initrd}")


LOSES_COMMITS = ("zfs_nocacheflush", "zil_nocacheflush", "zil_replay_disable")
ON_THE_LINE = "cat /proc/cmdline"  # the evidence of an option of the command line
OTHERS = "all others at their defaults; some have separate rules"


class Boot(NamedTuple):
    """options: of modprobe.d and the command line, one evidence each. doubt: why those of modprobe.d may be others then."""

    options: Judged
    doubt: Unknown | None


@derivation(
    "host",
    **{f"{name}_boot": Spec.number(f"{name} after the next boot") for name in LOSES_COMMITS},
    boot_options_losing=Spec.words("those of these that are not 0 then, as NAME=VALUE"),
    tunables_changed=Spec.words(
        "parameters that are not at their default, without those that have a rule or that are meant to be set"
    ),
    tunables_risky=Spec.words("those of them that can cost data"),
    tunables_drifting=Spec.words("parameters that the next boot sets to another value than they have now"),
)
def parameters(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Module parameters: as they are, as the next boot will set them, and what the release would have them be.

    The value after the next boot is that of modprobe.d or the kernel's command line, else the default; where the module is
    loaded from an initramfs that may hold older files than modprobe.d, that of the command line or none. What a service writes
    to /sys later is not seen. A list that is not empty may be short of parameters that could not be read."""
    table = releases.load_tunables()
    release = facts.get(HOST, "release")
    boot = Boot(facts.get(HOST, "zfs_boot_options"), options_in_doubt(facts))
    defaults = {name: _default(each, release) for name, each in table.items()}
    later = {name: _as_number(_boot(table[name], defaults[name], boot)) for name in LOSES_COMMITS}
    for name, value in later.items():
        yield Fact(HOST, f"{name}_boot", value)
    losing = [(f"{name}={each.value}", each) for name, each in later.items() if isinstance(each, Known) and each.value]
    seen = tuple(piece for _, each in losing for piece in each.evidence)
    yield Fact(HOST, "boot_options_losing", Known(tuple(text for text, _ in losing), seen))
    there = [each for name, each in table.items() if not isinstance(release, Known) or not _lacking(each, release)]
    ruled = [each for each in there if each.changed in ("low", "medium")]
    yield Fact(HOST, "tunables_changed", _list((_change(each, defaults[each.name], facts) for each in ruled), OTHERS))
    risky = [each for each in ruled if each.changed == "medium"]
    yield Fact(HOST, "tunables_risky", _list((_change(each, defaults[each.name], facts) for each in risky), OTHERS))
    drifts = (_drift(each, defaults[each.name], boot, facts) for each in there if each.name not in LOSES_COMMITS)
    yield Fact(HOST, "tunables_drifting", _list(drifts, "the next boot changes none"))


@catch_missing
def _default(tunable: Tunable, release: Judged) -> Judged:
    release = release.need()
    if why := _untold(tunable, release):
        return unknown(why, releases.REMEDY)
    if _lacking(tunable, release):
        return unknown(f"{tunable.name}: OpenZFS {releases.spelt(numbers(release))} has no such parameter")
    value = tunable.default(numbers(release))
    return Known(value, (Evidence(f"{tunable.name}={value} by default", "man 4 zfs"),))


def _untold(tunable: Tunable, release: Known) -> str:
    """Why a version that is no release may have this default or that."""
    version = release.value if isinstance(release.value, tuple) else ()
    since = (step[:2] if step[2:] == (0,) else step for step, _ in tunable.steps)
    return next((why for each in since if (why := releases.untold(version, each))), "")


def _lacking(tunable: Tunable, release: Known) -> bool:
    return not _untold(tunable, release) and not tunable.default(numbers(release))


@catch_missing
def _boot(tunable: Tunable, default: Judged, boot: Boot) -> Judged:
    options = boot.options.need()
    for option, seen in zip(options.words(), options.evidence, strict=False):
        name, _, value = str(option).partition("=")
        if name == tunable.name:
            return boot.doubt if boot.doubt and seen.command != ON_THE_LINE else Known(value, (seen,))
    return boot.doubt or default


@catch_missing
def _as_number(found: Judged) -> Judged:
    found = found.need()
    try:
        return Known(int(str(found.value), 0), found.evidence)
    except ValueError:
        return unknown(f"{found.evidence[0].text}: not a number")


def _same(a: object, b: object) -> bool:
    try:
        return int(str(a), 0) == int(str(b), 0)
    except ValueError:
        return str(a) == str(b)


@catch_missing
def _change(tunable: Tunable, default: Judged, facts: Facts) -> Judged | None:
    """What is not at its default; None where it is."""
    now, default = every((facts.get(HOST, tunable.name), default))
    if _same(now.value, default.value):
        return None
    text = f"{tunable.name}={now.value}, by default {default.value} ({tunable.means})"
    return Known(f"{tunable.name}={now.value}", (Evidence(text, now.evidence[0].command),))


@catch_missing
def _drift(tunable: Tunable, default: Judged, boot: Boot, facts: Facts) -> Judged | None:
    """What the next boot changes; None where it does not."""
    now, later = every((facts.get(HOST, tunable.name), _boot(tunable, default, boot)))
    if _same(now.value, later.value):
        return None
    return Known(f"{tunable.name}={now.value} becomes {later.value}", (*now.evidence, *later.evidence))


def _list(each: Iterable[Judged | None], none: str) -> Judged:
    """What was found; without any, the reasons of what could not be looked at."""
    found = [one for one in each if one is not None]
    if known := [one for one in found if isinstance(one, Known)]:
        return Known(tuple(str(one.value) for one in known), evidence(*known))
    missing = gaps(found)
    return Unknown.join(missing) if missing else Known((), (Evidence(none, "grep . /sys/module/zfs/parameters/*"),))


# -- the services of databases ----------------------------------------------------------------------------------------

SETS = ("unit_requires", "unit_bound", "unit_looks_at", "mount_files", "local_requires")
BOUNDS = "sysinit.target"  # without which an ordinary service does not start; it gives way to emergency.target
MOUNTPOINT = ("ConditionPathIsMountPoint=", "AssertPathIsMountPoint=")
# what may be required and says nothing of a mount
_OTHERS = (".slice", ".socket", ".mount", ".device")
_TARGETS = ("sysinit", "basic", "local-fs", "remote-fs", "network", "network-online", "nss-lookup", "nss-user-lookup",
            "time-sync", "multi-user", "zfs", "zfs-import", "zfs-volumes")  # fmt: skip
_OF_ZFS = (MOUNT, CACHE, "zfs-import-scan.service", "zfs-load-key.service")


class Start(NamedTuple):
    """What is known of a service. lasting: mount units that a file makes. runs: another program, which may look anywhere."""

    unit: str
    requires: frozenset[str]
    bound: frozenset[str]
    paths: tuple[str, ...]
    looks: frozenset[str]
    lasting: frozenset[str]
    local: frozenset[str]
    runs: str


@derivation(
    "database",
    starts_at_boot=Spec.flag("a service of systemd starts it when the host starts"),
    unguarded=Spec.words("mount points of ZFS below its files without which its service starts, too"),
    begins_anew=Spec.flag("on an empty folder it, or its service, begins a new database"),
)
def service_start(database: Subject, facts: Facts) -> Iterator[Fact]:
    """Whether the service of a database waits for the file systems of ZFS that its files are on, and what the database makes of
    the empty folder that is there where one of them was not mounted.

    Ordinary services start after local-fs.target, and zfs-mount.service before it: that is an order, and holds nothing back
    where the pool was not imported (zfs mount -a then has nothing to do, and succeeds) or a mount failed. What holds a service
    back is a mount unit that a file makes, which it requires (RequiresMountsFor=, Requires=, BindsTo=) or without which the
    host does not get so far; a condition or assertion that the place is a mount point; mountpoint(1) before it starts; or the
    units that import and mount, required together. RequiresMountsFor= of what ``zfs mount -a`` mounts holds nothing back:
    systemd knows no such mount when the host starts.

    The initramfs mounts the root file system; whether also what lies below it by its name depends on which one it is (that of
    initramfs-tools does, that of dracut only what it needs itself).

    What is on no file system of ZFS itself is not among the mount points. (man 5 systemd.unit; systemd 257 src/core/unit.c,
    units/sysinit.target, units/local-fs.target; OpenZFS 2.4.4 etc/systemd/system/zfs-mount.service.in,
    zfs-import-cache.service.in; man 8 zfs-mount-generator)"""
    yield Fact(database, "starts_at_boot", _starts(database, facts))
    yield Fact(database, "unguarded", _unguarded(database, facts))
    yield Fact(database, "begins_anew", _begins_anew(database, facts))


@catch_missing
def _starts(database: Subject, facts: Facts) -> Judged:
    if facts.get(database, "process").or_none() == "self":
        return Known(False, (Evidence("it does not run"),))
    unit = facts.need(database, "unit")
    if not unit.value:
        return Known(False, unit.evidence)
    starts = facts.need(database, "unit_starts")
    return Known(starts.value, (*unit.evidence, *starts.evidence))


@catch_missing
def _start(database: Subject, facts: Facts) -> Start:
    facts.values(database, *SETS, "unit", "unit_mounts_for", "unit_runs_else")
    requires, bound, looks, lasting, local = (frozenset(map(str, facts.get(database, each).words())) for each in SETS)
    paths = tuple(map(str, facts.get(database, "unit_mounts_for").words()))
    unit, runs = (facts.get(database, each).word() for each in ("unit", "unit_runs_else"))
    return Start(unit, requires, bound, paths, looks, lasting, local, runs)


def _unguarded(database: Subject, facts: Facts) -> Judged:
    """Unknown where none is known to be, and one may be."""
    places, start = facts.get(database, "mounted_from"), _start(database, facts)
    if holes := gaps((places, start)):
        return Unknown.join(holes)
    assert isinstance(start, Start)
    roots = root_datasets(facts)
    bare, holes, seen = list[str](), list[Unknown](), list[Evidence]()
    for point, dataset in places.rows(MountedFrom):
        if point == "/":
            seen.append(Evidence(f"{dataset} is the root file system", "findmnt /"))
            continue
        match _held(point, dataset, start, database, facts):
            case str() as how:
                seen.append(Evidence(f"{start.unit} is held back without {point}: {how}", _shown(start)))
            case Unknown() as why:
                holes.append(why)
            case _ if any(dataset.startswith(f"{root}/") for root in roots):
                holes.append(unknown(f"whether the initramfs mounts {dataset} with the root file system is not seen"))
            case _:
                bare.append(point)
    if bare:
        text = f"nothing holds {start.unit} back without {' and '.join(map(harmless, bare))}"
        return known(tuple(bare), text, _shown(start))
    nothing = Evidence("none of its files is on a file system of ZFS")
    return Unknown.join(holes) if holes else Known((), tuple(seen) or (nothing,))


def _shown(start: Start) -> str:
    return f"systemctl show -p Requires,BindsTo,RequiresMountsFor,ExecStartPre {start.unit}"


def _held(point: str, dataset: str, start: Start, database: Subject, facts: Facts) -> str | Unknown | None:
    """What holds the service back without this mount; None: nothing does."""
    unit = f"{unit_escaped(point.strip('/'))}.mount"
    covered = any(f"{path.rstrip('/')}/".startswith(f"{point}/") for path in start.paths)
    if unit in start.lasting and unit in start.local and BOUNDS in start.requires:
        return f"local-fs.target requires {unit}"
    if unit in start.bound or (unit in start.requires and (unit in start.lasting or not covered)):
        return f"it requires {unit}"
    if point in start.looks:
        return f"mountpoint {point}"
    by = _by_service(dataset, start, facts)
    if isinstance(by, str):
        return by
    conditions = facts.get(database, "unit_conditions")
    stated = tuple(map(str, conditions.words()))
    if met := next((each for each in stated if each.startswith(MOUNTPOINT) and _path(each) == point), ""):
        return met
    return _doubt_of_start(point, dataset, start, [by, conditions], stated, facts, covered)


def _doubt_of_start(
    point: str,
    dataset: str,
    start: Start,
    vain: Sequence[Judged | None],
    stated: Sequence[str],
    facts: Facts,
    covered: bool,
) -> Unknown | None:
    """Why it is not known whether anything holds the service back; None: nothing does. vain: what was looked at before."""
    holes = gaps(vain)
    for each in stated:
        if f"{_path(each)}/".startswith(f"{point}/"):  # an older copy may lie below the mount, where nobody sees it
            why = f"{start.unit} has {harmless(each)}: whether that holds without the mount is not seen"
            holes.append(unknown(why))
    if start.runs:
        holes.append(unknown(f"{start.unit} runs {harmless(start.runs)}, which may look for {harmless(point)}"))
    if odd := sorted(each for each in start.requires if not (each.endswith(_OTHERS) or _says_nothing(each))):
        holes.append(unknown(f"{start.unit} requires {harmless(odd[0])}, which may wait for {harmless(point)}"))
    if covered:
        lists = facts.get(HOST, "generated_pools")
        if isinstance(lists, Unknown):
            holes.append(lists)
        elif dataset.partition("/")[0] in lists.words():
            why = f"{lists.evidence[0].text}: the unit of {harmless(point)} is made of it when the host starts"
            holes.append(unknown(why))
    return Unknown.join(holes) if holes else None


def _path(condition: str) -> str:
    return condition.partition("=")[2].rstrip("/")


def _says_nothing(unit: str) -> bool:
    if unit.endswith(".target"):
        return unit.removesuffix(".target") in _TARGETS
    return unit in _OF_ZFS or unit.startswith(("zfs-import@", "zfs-import-", "zfs-mount@", "zfs-load-key@"))


@catch_missing
def _by_service(dataset: str, start: Start, facts: Facts) -> str | Unknown | None:
    """The units that import the pool and mount the dataset, where the service requires both, or the one that mounts just it
    or what it lies below (Debian's zfs-mount@, zfs mount -R); None: none does. zfs-mount.service alone has no fault to find
    where no pool is there."""
    parts = dataset.split("/")
    if (own := f"zfs-mount@{unit_escaped(dataset)}.service") in start.requires:
        return f"it requires {own}"
    above = ("/".join(parts[:end]) for end in range(1, len(parts)))
    by = next((each for name in above if (each := f"zfs-mount@{unit_escaped(name)}.service") in start.requires), "")
    name, needed = unit_escaped(parts[0]), [facts.get(Subject("dataset", dataset), "canmount")]
    if not by and MOUNT in start.requires:
        imports = (f"zfs-import@{name}.service", f"zfs-import-{name}.service")
        by = next((each for each in imports if each in start.requires), "")
        if not by and CACHE in start.requires:
            by = CACHE
            needed.append(facts.get(HOST, "cached_pools"))
    if not by:
        return None
    mounts, *cached = every(needed)
    held = mounts.word() == "on" and all(parts[0] in each.words() for each in cached)
    return f"it requires {by}{'' if by.startswith('zfs-mount@') else f' and {MOUNT}'}" if held else None


@catch_missing
def _begins_anew(database: Subject, facts: Facts) -> Judged:
    """Of a server that lays out nothing by itself: its service may."""
    name = str(facts.need(database, "engine").value)
    if not ENGINES[name].processes:
        return unknown(f"what {name} makes of an empty folder is not known to zaudit")
    if why := ENGINES[name].new_on_empty:
        return Known(True, (Evidence(why),))
    prepares, runs = facts.values(database, "unit_prepares", "unit_runs_else")
    if prepares.value:
        return Known(True, prepares.evidence)
    if runs.value:
        return unknown(f"{runs.evidence[0].text}, which may lay out an empty folder")
    return Known(False, (Evidence(f"{name} does not start on an empty folder", ""), *prepares.evidence))
