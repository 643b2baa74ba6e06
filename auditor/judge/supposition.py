"""What somebody supposes of a host, as changes of facts: ``tank/db sync=standard``.

==================================  ================================================================================
DATASET PROPERTY=VALUE              as zfs set; children inherit it unless they have a value of their own
POOL PROPERTY=VALUE                 as zpool set
zfs PARAMETER=VALUE                 of the loaded module
modprobe.d PARAMETER=VALUE          with which the module is loaded at the next boot
DATABASE SETTING=VALUE              the database as the page names it, or its engine; in force and in its files
DATABASE restart                    what its files say is in force
DATABASE files agree                its files say what is in force
DISK model=MODEL                    another drive, new, in its place
DISK write_cache=write back         how the kernel treats its cache
DISK gone                           the drive is dead
POOL add log mirror MODEL MODEL     a log device of two new drives
host release=2.4.4                  that release of OpenZFS, as it was published, with its commands
==================================  ================================================================================

The facts are changed after they were collected and before anything is derived from them: rules, table and severity follow.
What the walk over a host itself finds out (who mounts a dataset, which program drops flushes) stays as it was recorded, and
what was not known stays unknown.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count
from typing import NamedTuple, cast

from auditor import EXIT_USAGE, Stop
from auditor.data import drives, releases
from auditor.databases import ENGINES
from auditor.databases.engine import Setting, boolean, word
from auditor.facts import (
    DATA,
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Kind,
    Known,
    Spec,
    Subject,
    Unknown,
    Value,
    is_true,
    known,
    unknown,
)
from auditor.model.database import UNSAID
from auditor.model.next_boot import ON_THE_LINE
from auditor.text import harmless, near

Registry = Mapping[tuple[Kind, str], Spec]

INHERITED = (
    *("sync", "logbias", "recordsize", "primarycache", "secondarycache", "checksum", "compression", "dedup", "copies"),
    *("atime", "relatime", "redundant_metadata", "special_small_blocks", "snapdir", "direct", "readonly"),
)
OWN = ("quota", "refquota", "reservation", "refreservation", "canmount", "volsize")  # of one dataset alone
OF_FILE_SYSTEMS = frozenset({"recordsize", "atime", "relatime", "canmount", "quota", "refquota", "snapdir", "direct"})
OF_VOLUMES = frozenset({"volsize"})
POOL = ("failmode", "multihost", "autotrim", "autoreplace", "cachefile")
DISK = ("model", "write_cache")
PARAMETERS = re.compile(r"(zfs|zil|zio|zvol|spa|spl|l2arc|metaslab)_\w+", re.ASCII)
OPEN: Mapping[str, re.Pattern[str]] = {  # words that no closed list of the facts has (zfsprops.7)
    "checksum": re.compile("on|off|fletcher[24]|sha256|noparity|sha512|skein|edonr|blake3"),
    "compression": re.compile(
        "on|off|lz4|lzjb|zle|gzip(-[1-9])?|zstd(-[1-9]|-1[0-9])?|zstd-fast(-([1-9]|[1-9]0|100|500|1000))?"
    ),
    "dedup": re.compile("on|off|verify|(sha256|sha512|skein|blake3)(,verify)?|edonr,verify"),
}
BOUNDS = {"copies": (1, 3), "recordsize": (512, 1 << 24)}
SIZE = re.compile(r"([0-9]{1,19})([KMGTP]?)(i?B)?", re.IGNORECASE | re.ASCII)
FLUSH_METHOD = Setting("innodb_flush_method", word, "flush_method", Spec.word(""), parse=str.upper)
BINLOG = Setting("sync_binlog", word, "sync_binlog", Spec.number(""), parse=int)
REDO = Setting("redo_log", word, "redo_log", Spec.flag("ALTER INSTANCE"), parse=boolean)
DOUBLEWRITE = ("OFF", "ON", "DETECT_ONLY", "DETECT_AND_RECOVER", "FAST")
SHOWN = 6  # names, where none is similar
GUARDS = ("ON", "DETECT_AND_RECOVER", "FAST")
BESIDES: Mapping[str, tuple[Setting, ...]] = {  # settings that their readers take together with others
    "postgres": (Setting("full_page_writes", word, "torn_page_guard", Spec.flag(""), parse=boolean),),
    "mysql": (FLUSH_METHOD, BINLOG, REDO),
    "mariadb": (FLUSH_METHOD, BINLOG),
}


SUPPOSED = "supposed: "  # begins the evidence
BOOT = "modprobe.d"
VERBS = ("gone", "restart", "files agree")


class SuppositionError(Stop, ValueError):
    """A supposition that is not understood, or about something that is not there."""

    exit_code = EXIT_USAGE


class Change(NamedTuple):
    """subject: the words before the property. name, value: PROPERTY=VALUE; of a verb its name, and what stands behind it."""

    text: str
    subject: str
    name: str
    value: str
    verb: bool = False


def parse(text: str) -> Change:
    """The form alone; whether there is such a subject, :func:`suppose` sees. No name of ZFS has an equals sign."""
    plain = text.strip()
    pool, mirror, models = plain.partition(" add log mirror ")
    if mirror and pool and models.strip() and "=" not in pool:
        return Change(plain, pool, "add log mirror", models.strip(), verb=True)
    for verb in VERBS:
        if (who := plain.removesuffix(f" {verb}")) != plain and who and "=" not in who:
            return Change(plain, who, verb, "", verb=True)
    head, equals, value = plain.partition("=")
    subject, _, name = head.rpartition(" ")
    if not equals or not subject.strip() or not name or not value:
        raise SuppositionError(
            f"{text!r} is no supposition: SUBJECT PROPERTY=VALUE (tank/db sync=standard; zfs zil_nocacheflush=0; postgres "
            "fsync=on; host release=2.4.4), DISK gone, DATABASE restart, DATABASE files agree, or POOL add log mirror MODEL "
            "MODEL"
        )
    return Change(plain, subject.strip(), name, value)


def check(template: str, kind: Kind, registry: Registry) -> None:
    """Of a fix, before its places are filled in: is there such a property, and can it have this value? kind: of {subject}."""
    change = parse(template)
    places: dict[str, Kind] = {"{subject}": kind, "{origin}": "dataset", "{pool}": "pool", "zfs": "host", BOOT: "host"}
    if (change.name, places.get(change.subject)) == ("files agree", "database"):
        return
    if change.verb or change.subject not in places:
        raise SuppositionError(f"sets: {template!r} begins with one of {', '.join(places)}, and sets a property")
    about = places[change.subject]
    if about == "database":
        every = [_setting(name, change) for name in ENGINES if change.name in _settings(name)]
        if not every:
            raise SuppositionError(f"sets: no database has a setting {change.name}")
        return
    if change.name not in properties(about):
        raise SuppositionError(f"sets: {about} has no {change.name}{near(change.name, properties(about))}")
    if "{" not in change.value:
        _value(about, change, registry)


def suppose(
    facts: Facts, changes: Iterable[Change], registry: Registry, derived: Collection[tuple[Kind, str]]
) -> Facts:
    """A copy of the facts with these changes, from left to right. derived: not copied. Raises SuppositionError."""
    host = _Host(facts.copy(), registry)
    for each in changes:
        host.change(each)
    return host.facts.copy(derived)


def _settings(engine: str) -> dict[str, Setting]:
    found = {each.name: each for each in (*ENGINES[engine].settings, *BESIDES.get(engine, ())) if each.fact}
    if engine in ("mysql", "mariadb"):
        found["innodb_doublewrite"] = Setting("innodb_doublewrite", word, "doublewrite", Spec.word("", *DOUBLEWRITE))
    return found


def properties(kind: Kind) -> tuple[str, ...]:
    of: dict[Kind, tuple[str, ...]] = {"dataset": (*INHERITED, *OWN), "pool": POOL, "disk": DISK}
    return tuple(releases.load_tunables()) if kind == "host" else of.get(kind, ())


def _value(kind: Kind, change: Change, registry: Registry) -> Value:
    """The value in the type of the fact. Raises SuppositionError with the near matches."""
    name, text = change.name, change.value
    if kind == "pool" and name == "cachefile":
        return {"none": "none", "/etc/zfs/zpool.cache": "default", "default": "default"}.get(text, "other")
    if kind == "disk":
        return _one_of(change, ("write back", "write through"))
    if pattern := OPEN.get(name):
        if not pattern.fullmatch(text):
            raise SuppositionError(f"{change.text}: {name} is never {harmless(text)}")
        return text
    spec = registry["host" if kind == "host" else kind, name]
    if spec.values:
        return _one_of(change, spec.values)
    return text if spec.type is str else _size(change)


def _one_of(change: Change, allowed: Collection[str]) -> str:
    if change.value not in allowed:
        words = ", ".join(allowed)
        raise SuppositionError(
            f"{change.text}: {change.name} is one of {words}, not {harmless(change.value)}{near(change.value, allowed)}"
        )
    return change.value


def _size(change: Change) -> int:
    text = change.value
    if text == "none" and change.name in OWN:
        return 0
    found = SIZE.fullmatch(text)
    if not found:
        raise SuppositionError(f"{change.text}: {harmless(text)} is no number, nor one with K, M, G, T or P")
    size = int(found[1]) << 10 * (" KMGTP".index(found[2].upper()) if found[2] else 0)
    least, most = BOUNDS.get(change.name, (0, (1 << 63) - 1))
    if not least <= size <= most or (change.name == "recordsize" and size & (size - 1)):
        raise SuppositionError(f"{change.text}: {change.name} cannot be {harmless(text)}")
    return size


def _setting(engine: str, change: Change) -> Value:
    setting = _settings(engine)[change.name]
    try:
        value = setting.parse(change.value.upper() if setting.fact == "doublewrite" else change.value)
        if setting.spec.values and value not in setting.spec.values:
            raise ValueError
    except ValueError:
        words = f": one of {', '.join(setting.spec.values)}" if setting.spec.values else ""
        raise SuppositionError(f"{change.text}: {change.name} is never {harmless(change.value)}{words}") from None
    return value


class _Host:
    """Changes the facts of a host, which are its own copy."""

    def __init__(self, facts: Facts, registry: Registry) -> None:
        self.facts, self._registry = facts, registry

    def change(self, change: Change) -> None:
        """Raises SuppositionError."""
        if change.verb:
            act: dict[str, tuple[Kind, Callable[[Subject, Change], None]]] = {
                "gone": ("disk", self._gone),
                "restart": ("database", self._restart),
                "files agree": ("database", self._agree),
                "add log mirror": ("pool", self._add_log),
            }
            kind, verb = act[change.name]
            verb(self._named(change, (kind,))[0], change)
        elif (change.subject, change.name) == ("host", "release"):
            self._release(change)
        else:
            self._set(change)

    # -- who is meant --------------------------------------------------------------------------------------------------

    def _named(self, change: Change, kinds: Collection[Kind]) -> list[Subject]:
        """The subjects of these kinds that the words mean. Raises SuppositionError where there is none."""
        who = change.subject
        found = [each for kind in kinds for each in self.facts.subjects(kind) if who in _names_of(each)]
        engines = [each for each in self.facts.subjects("database") if each.name.partition(" ")[0] == who]
        if "database" in kinds and not any(each.kind == "database" for each in found):
            if len(engines) > 1:
                names = ", ".join(harmless(each.name) for each in engines)
                raise SuppositionError(f"{change.text}: which {who}? There are {names}")
            found += engines
        if not found:
            there = [name for kind in kinds for each in self.facts.subjects(kind) for name in _names_of(each)]
            hint = f"; there is {', '.join(map(harmless, there[:SHOWN]))}" if there else ""
            hint = near(who, dict.fromkeys(there)) or hint
            raise SuppositionError(f"{change.text}: no {' or '.join(kinds)} {harmless(who)} was seen{hint}")
        return found

    # -- PROPERTY=VALUE ------------------------------------------------------------------------------------------------

    def _set(self, change: Change) -> None:
        name = change.name
        called_zfs = (each for kind in ("dataset", "pool") for each in self.facts.subjects(kind) if each.name == "zfs")
        if change.subject == "zfs" and (PARAMETERS.fullmatch(name) or not any(called_zfs)):
            return self._parameter(change)
        if change.subject == BOOT and PARAMETERS.fullmatch(name):
            return self._boot_option(change)
        found = self._named(change, ("dataset", "pool", "disk", "database"))
        for subject in found:
            if subject.kind == "database" and name in _settings(subject.name.partition(" ")[0]):
                return self._of_database(subject, change)
            if subject.kind != "database" and name in properties(subject.kind):
                return self._of(subject, change)
        names = [name for each in found for name in _can_be_supposed(each)]
        there = near(name, names) or f"; there are {', '.join(names)}"
        raise SuppositionError(
            f"{change.text}: {harmless(name)} cannot be supposed of {harmless(change.subject)}{there}"
        )

    def _of(self, subject: Subject, change: Change) -> None:
        match subject.kind, change.name:
            case "dataset", _:
                self._of_dataset(subject, change)
            case "disk", "model":
                self._new_drive(
                    subject, change, _model(change, change.value), self.facts.get(subject, "transport").word()
                )
                for leaf in self._leaves(subject):
                    self._put_all(leaf, WORKING, change)  # it has resilvered, without errors
            case "disk", _:
                self._put(subject, "sysfs_write_cache", _value("disk", change, self._registry), change)
                self._count_again(subject, change)
            case _:
                self._put(subject, change.name, _value(subject.kind, change, self._registry), change)

    def _of_dataset(self, dataset: Subject, change: Change) -> None:
        """Children that have no value of their own inherit it. What could not be read of a child stays unknown."""
        name, value = change.name, _value("dataset", change, self._registry)
        kind = self.facts.get(dataset, "type").word()
        if (kind == "volume" and name in OF_FILE_SYSTEMS) or (kind == "filesystem" and name in OF_VOLUMES):
            raise SuppositionError(f"{change.text}: a {kind} has no {name}")
        again = f"zfs get {name} {{subject}}"
        shown = f"{name}={change.value}"
        self.facts.replace(Fact(dataset, name, known(value, f"{shown}, supposed (local)", again)))
        if name in OWN:
            return
        inherited = known(value, f"{shown}, supposed, inherited from {dataset.name}", again, dataset.name)
        for each in list(self.facts.subjects("dataset")):
            if each.name.startswith(f"{dataset.name}/") and self._inherits(each, name, dataset.name):
                self.facts.replace(Fact(each, name, inherited))

    def _inherits(self, dataset: Subject, name: str, above: str) -> bool:
        """Does it get this property from that dataset, or past it from one above?"""
        match self.facts.get(dataset, name):
            case Known(evidence=(Evidence(text, _, origin), *_)):
                return f"{above}/".startswith(f"{origin}/") if origin else text.endswith("(default)")
        return False

    def _parameter(self, change: Change) -> None:
        name = change.name
        read = [
            each for each, value in self.facts.of(HOST).items() if PARAMETERS.fullmatch(each) and _is_parameter(value)
        ]
        there = dict.fromkeys((*read, *releases.load_tunables()))
        if name not in there:
            raise SuppositionError(
                f"{change.text}: the zfs module has no parameter {harmless(name)}{near(name, there)}"
            )
        value, before = _value("host", change, self._registry), self.facts.get(HOST, name)
        self._put(HOST, name, value, change)
        if name == "zfs_nocacheflush" and value == 0 and not (isinstance(before, Known) and before.value == 0):
            for disk in list(self.facts.subjects("disk")):
                self._count_again(disk, change)

    def _boot_option(self, change: Change) -> None:
        """As the last one on the kernel's command line, so that no older initramfs is in doubt. What could not be read stays
        unknown."""
        if change.name not in releases.load_tunables():
            raise SuppositionError(f"{change.text}: no known parameter{near(change.name, releases.load_tunables())}")
        value, options = _value("host", change, self._registry), self.facts.get(HOST, "zfs_boot_options")
        if isinstance(options, Known):
            pairs = zip(options.words(), options.evidence, strict=False)
            others = [(word, seen) for word, seen in pairs if not word.startswith(f"{change.name}=")]
            others.append((f"{change.name}={value}", Evidence(f"{SUPPOSED}{change.text}", ON_THE_LINE)))
            words, seen = zip(*others, strict=True)
            self.facts.replace(Fact(HOST, "zfs_boot_options", Known(words, seen)))

    def _count_again(self, disk: Subject, change: Change) -> None:
        """What the kernel has counted since boot says nothing of flushes that are sent from now on."""
        why = unknown(f"counted before it was supposed: {change.text}", "zaudit verify")
        self.facts.replace(Fact(disk, "flushes", why))

    def _of_database(self, database: Subject, change: Change) -> None:
        engine = database.name.partition(" ")[0]
        value = _setting(engine, change)
        changed = {_settings(engine)[change.name].fact: value}
        if "doublewrite" in changed:
            changed["torn_page_guard"] = value in GUARDS
        for fact, each in changed.items():
            self._put(database, fact, each, change)
        compared = {name: _spelt(each) for name, each in changed.items() if name in ENGINES[engine].compared}
        for listed in ("in_force", "configured"):
            self._list(database, listed, compared, change)

    def _restart(self, database: Subject, change: Change) -> None:
        """What its files do not say stays as it is. Where nobody read them, what the server says now is no answer; what is
        supposed is in them, too."""
        said = self.facts.get(database, "configured")
        if isinstance(said, Unknown) and is_true(self.facts.get(database, "live")):
            for name in (*_pairs(self.facts.get(database, "in_force")), "in_force"):
                now = self.facts.get(database, name)
                if not isinstance(now, Known) or not now.evidence[0].text.startswith(SUPPOSED):
                    self.facts.replace(Fact(database, name, said))
        files = {name: each for name, each in _pairs(said).items() if each != UNSAID}
        if files:
            for name, spelt in files.items():
                kind = self._registry["database", name].type
                value = spelt == "on" if kind is bool else int(spelt) if kind is int and spelt.isdigit() else spelt
                self._put(database, name, value, change)
            self._list(database, "in_force", files, change)

    def _agree(self, database: Subject, change: Change) -> None:
        self._list(database, "configured", _pairs(self.facts.get(database, "in_force")), change)

    def _list(self, database: Subject, listed: str, changed: Mapping[str, str], change: Change) -> None:
        """in_force: by the server; configured: in its files."""
        if isinstance(found := self.facts.get(database, listed), Known):
            pairs = sorted({**_pairs(found), **changed}.items())
            self._put(database, listed, tuple(f"{name} = {each}" for name, each in pairs), change)

    # -- other changes -------------------------------------------------------------------------------------------------

    def _release(self, change: Change) -> None:
        """Its commands and its modules of all kernels come with it, and its defaults of what nobody has set."""
        numbers = change.value.split(".")
        if len(numbers) != 3 or not all(each.isdecimal() and len(each) <= 4 for each in numbers):
            raise SuppositionError(f"{change.text}: name a release, as in host release=2.4.4")
        wanted = tuple(map(int, numbers))
        if why := releases.nature(wanted):
            raise SuppositionError(f"{change.text}: {why}. Name a release, as in host release=2.4.4")
        if wanted[:2] not in (*releases.LINES, *releases.ENDED):
            lines = ", ".join(map(releases.spelt, releases.LINES))
            raise SuppositionError(
                f"{change.text}: OpenZFS has no line {releases.spelt(wanted[:2])}; zaudit knows {lines}"
            )
        match self.facts.get(HOST, "zfs_version"):
            case Known((int(), *_) as before):
                self._new_defaults(tuple(each for each in before if isinstance(each, int)), wanted, change)
        for name in ("zfs_version", "zfs_userland_version"):
            if name == "zfs_version" or isinstance(self.facts.get(HOST, name), Known):
                self._put(HOST, name, wanted, change)
                self._put(HOST, f"{name}_text", change.value, change)
        files = (row.split(" ") for row in self.facts.get(HOST, "zfs_module_versions").words())
        if after := tuple(f"{path} {change.value} {kernel}" for path, _, kernel in files):
            self._put(HOST, "zfs_module_versions", after, change)

    def _new_defaults(self, old: releases.Release, new: releases.Release, change: Change) -> None:
        for name, each in releases.load_tunables().items():
            now, before, after = self.facts.get(HOST, name), each.default(old), each.default(new)
            if isinstance(now, Known) and str(now.value) == before != after and after:
                self._put(HOST, name, int(after) if isinstance(now.value, int) else after, change)

    def _gone(self, disk: Subject, change: Change) -> None:
        """OpenZFS has noticed it: the leaf is REMOVED, its vdev and pool are in the state that follows."""
        leaves = self._leaves(disk)
        if not leaves:
            raise SuppositionError(f"{change.text}: no device of a pool is on {harmless(disk.name)}")
        for leaf in leaves:
            self._put(leaf, "device_present", False, change)
            self._put(leaf, "state", "REMOVED", change)
            pool = Subject("pool", leaf.within)
            for vdev in self.facts.linked(leaf, "vdev"):
                legs = self.facts.linked(vdev, "leaves")
                gone = sum(self.facts.get(leg, "state").word() not in ("ONLINE", "DEGRADED") for leg in legs)
                tolerated = self.facts.get(vdev, "failures_tolerated")
                if not isinstance(tolerated, Known):
                    for name in ("state", "suspended"):
                        self.facts.replace(Fact(vdev if name == "state" else pool, name, tolerated))
                    continue
                dead = gone > cast(int, tolerated.value)
                self._put(vdev, "state", "UNAVAIL" if dead else "DEGRADED", change)
                needed = self.facts.get(vdev, "allocation_class").word("normal") in DATA
                self._pool_state(pool, dead=dead and needed, change=change)

    def _pool_state(self, pool: Subject, *, dead: bool, change: Change) -> None:
        if is_true(self.facts.get(pool, "suspended")):
            return
        for name in ("state", "health", "list_health", "kstat_state"):
            if isinstance(self.facts.get(pool, name), Known):
                state = "UNAVAIL" if name == "state" else "SUSPENDED"
                self._put(pool, name, state if dead else "DEGRADED", change)
        self._put(pool, "suspended", dead, change)

    def _add_log(self, pool: Subject, change: Change) -> None:
        """A mirror of two new drives, attached by NVMe, as large as need be."""
        models = _models(change)
        names = {each.name for each in self.facts.linked(pool, "vdevs")}
        vdev = Subject("vdev", next(name for i in count() if (name := f"mirror-{i}") not in names), pool.name)
        leaves = []
        for model in models:
            number = next(i for i in count(1) if not self.facts.of(Subject("disk", f"new{i}")))
            disk = Subject("disk", f"new{number}")
            leaf = Subject("leaf", disk.name, pool.name)
            self._new_drive(disk, change, model, "nvme")
            bus = f"/devices/pciffff:00/ffff:{number:02x}:00.0"  # each at a controller of its own
            self._put(disk, "sysfs_path", f"{bus}/nvme/{disk.name}", change)
            place: dict[str, Value] = {"vdev": vdev, "pool": pool, "node": disk.name, "nodes": (disk.name,)}
            self._put_all(leaf, {**WORKING, **NEW_LEAF, **place, "disks": (disk,)}, change)
            leaves.append(leaf)
        self._put_all(vdev, {**NEW_VDEV, "pool": pool, "leaves": tuple(leaves)}, change)
        first = next(iter(self.facts.linked(pool, "vdevs")), vdev)
        self.facts.replace(Fact(vdev, "ashift", self.facts.get(first, "ashift")))
        for name, more in (("vdevs", (vdev,)), ("leaves", tuple(leaves))):
            self._put(pool, name, (*self.facts.linked(pool, name), *more), change)

    def _new_drive(self, disk: Subject, change: Change, model: str, transport: str) -> None:
        """Nothing of the old one is left but where it is attached."""
        attached = {name: self.facts.get(disk, name) for name in ("sysfs_path", "lies_on", "dm_targets")}
        for name in list(self.facts.of(disk)):
            self.facts.replace(Fact(disk, name, unknown(f"supposed: {change.text}, without an answer of that drive")))
        for name, value in attached.items():
            if isinstance(value, Known):
                self.facts.replace(Fact(disk, name, value))
        named: dict[str, Value] = {"smart_model": model, "smart_serial": f"the new {disk.name}"}
        self._put_all(disk, {**NEW_DRIVE, **named}, change)
        if transport:
            self._put(disk, "transport", transport, change)

    def _leaves(self, disk: Subject) -> list[Subject]:
        return [leaf for leaf in self.facts.subjects("leaf") if disk in self.facts.linked(leaf, "disks")]

    # -- facts ---------------------------------------------------------------------------------------------------------

    def _put(self, subject: Subject, name: str, value: Value, change: Change) -> None:
        self.facts.replace(Fact(subject, name, known(value, f"{SUPPOSED}{change.text}")))

    def _put_all(self, subject: Subject, values: Mapping[str, Value], change: Change) -> None:
        for name, value in values.items():
            self._put(subject, name, value, change)


def _names_of(subject: Subject) -> tuple[str, ...]:
    return (subject.name, f"/dev/{subject.name}") if subject.kind == "disk" else (subject.name,)


def _can_be_supposed(subject: Subject) -> tuple[str, ...]:
    engine = subject.name.partition(" ")[0]
    return tuple(_settings(engine)) if subject.kind == "database" and engine in ENGINES else properties(subject.kind)


def _spelt(value: Value) -> str:
    """As the lists of what is configured spell it."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value) or UNSAID


def _pairs(found: Judged) -> dict[str, str]:
    return dict(each.split(" = ", 1) for each in found.words())


def _is_parameter(value: Judged) -> bool:
    """Was it read as a parameter of a module?"""
    return isinstance(value, Known) and value.evidence[0].command.startswith("cat /sys/module/")


def _model(change: Change, words: str) -> str:
    """A model that drives.toml knows."""
    model = drives.normal(words)
    if not drives.match(model):
        there = [each for drive in drives.load() for each in drive.examples]
        raise SuppositionError(f"{change.text}: drives.toml knows no model {harmless(words)}{near(words, there)}")
    return model


def _models(change: Change) -> tuple[str, str]:
    """Two, of several words each: in quotes, or the same one twice."""
    try:
        words = shlex.split(change.value)
    except ValueError:
        words = []
    half = len(words) // 2
    if len(words) != 2 and words[:half] != words[half:]:
        raise SuppositionError(f"{change.text}: name two models, each in quotes where it has spaces")
    return _model(change, " ".join(words[:half])), _model(change, " ".join(words[half:]))


ZERO = dict.fromkeys(("read_errors", "write_errors", "checksum_errors"), 0)
WORKING: Mapping[str, Value] = {
    **ZERO,
    "state": "ONLINE", "device_present": True, "resilvering": False, "being_replaced": False, "note": "", "slow_ios": 0,
}  # fmt: skip
NEW_LEAF: Mapping[str, Value] = {
    "allocation_class": "log", "type": "disk", "block_size_non_native": False, "layers": (), "stack_write_cache": (),
    "dm_targets": (), "crypt_raises_blocks": False, "redundant_below": False, "lies_on": (), "below": "",
}  # fmt: skip
NEW_VDEV: Mapping[str, Value] = {
    **ZERO,
    "allocation_class": "log", "type": "mirror", "state": "ONLINE", "note": "", "allocating": True, "parity": 0, "legs": 2,
    "used_percent": 0, "asize_bytes": 1 << 37,
}  # fmt: skip
NEW_DRIVE: Mapping[str, Value] = {  # healthy, with its newest firmware and a volatile cache, and flushes reach it
    "slaves": (), "partitions": (), "lies_on": (), "sysfs_write_cache": "write back", "fua": True, "rotational": False,
    "removable": False, "logical_block_bytes": 512, "physical_block_bytes": 512, "writes": 20, "write_sectors": 160,
    "write_ms": 20, "flush_ms": 20, "flushes": 20, "smart_firmware": "(the newest)", "smart_passed": True,
    "smart_write_cache": True, "smart_percent_used": 0, "smart_media_errors": 0, "smart_temperature_c": 30,
    "smart_temperature_limit_c": 0, "smart_self_test_result": 0, "smart_pending_sectors": 0,
    "smart_offline_uncorrectable": 0, "smart_available_spare_percent": 100, "smart_available_spare_threshold_percent": 10,
    "nvme_vwc_present": True, "nvme_write_cache": True, "nvme_critical_warning": 0, "nvme_backup_failed": False,
    "nvme_spare_low": False, "nvme_media_read_only": False, "nvme_reliability_degraded": False, "nvme_percent_used": 0,
    "nvme_media_errors": 0, "nvme_available_spare_percent": 100, "nvme_available_spare_threshold_percent": 10,
}  # fmt: skip
