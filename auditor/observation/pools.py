"""Pools, vdevs and legs, from facts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import get_args

from auditor.durability.host import WORKING, Leg, Pool, State, Vdev
from auditor.facts import DATA, HOST, Facts, Subject
from auditor.model.vdev import resilver_unmarked
from auditor.observation.reading import Reading, both, opposite, zero
from auditor.observation.stores import RAM_DISKS, RAM_FILES, Stores

PARITY = {"raidz1": 1, "raidz2": 2, "raidz3": 3}
BLOCK_IN_MEMORY = ("loop", "zvol")
ERRORS = ("read_errors", "write_errors", "checksum_errors")
SPECIAL_LOGS = (2, 4)  # zio_alloc_zil() asks the special class from here on


class Pools:
    """Of one host. stores: what its legs lie on. The next boot changes nothing of them but module parameters."""

    def __init__(self, facts: Facts) -> None:
        self._reading = Reading(facts)
        self.stores = Stores(self._reading)
        self._found: dict[Subject, Pool] = {}

    def pool(self, pool: Subject, reading: Reading) -> Pool:
        """reading: of now, or of the next boot."""
        if pool not in self._found:
            self._found[pool] = self._pool(pool)
        zil, zfs = (zero(reading.parameter(f"{each}_nocacheflush")) for each in ("zil", "zfs"))
        return replace(self._found[pool], zil_flush=both(zil, zfs), txg_flush=zfs)

    def _pool(self, pool: Subject) -> Pool:
        reading = self._reading
        classes: dict[str, list[Vdev]] = {"normal": [], "special": [], "dedup": [], "log": []}
        unmarked = resilver_unmarked(pool, reading.facts)
        for each in reading.links(pool, "vdevs") or ():
            which = reading.word(each, "allocation_class")
            vdev = self._vdev(each)
            classes.get(which or "normal", classes["normal"]).append(_resilvering(vdev) if unmarked else vdev)
        if not classes["normal"]:  # nobody could list them
            classes["normal"] = [Vdev(str(pool), (Leg(str(pool), (f"the devices of {pool}",), state=None),))]
        if reading.links(pool, "vdevs") is None:
            unseen = f"the log of {pool}"
            classes["log"] = [Vdev(unseen, (Leg(unseen, (f"the log devices of {pool}",), state=None),))]
        if any(vdev.tolerates for each in DATA for vdev in classes[each]):
            self._each_may_die(vdev for each in classes.values() for vdev in each)
        line = reading.line()
        normal, special, dedup, log = map(tuple, classes.values())
        return Pool(
            pool.name,
            normal,
            special,
            dedup,
            log,
            special_logs=None if line is None else line >= SPECIAL_LOGS,
            log_room=self._room(pool),
            special_room=None,
            imports=opposite(reading.flag(pool, "hostid_mismatch")),
            works=reading.word(pool, "state") in WORKING and reading.flag(pool, "suspended") is False,
        )

    def _each_may_die(self, vdevs: Iterable[Vdev]) -> None:
        """Who builds a mirror or raidz of virtual disks or LUNs says that each of them can go; a pool on one of them relies on
        what is below."""
        found = self.stores.found
        for name in (drive for vdev in vdevs for leg in vdev.legs for drive in leg.drives):
            if name in found and found[name].party in ("hypervisor", "target"):
                found[name] = replace(found[name], redundant=False)

    def _room(self, pool: Subject) -> bool | None:
        """Of a log that holds all that may be logged before OpenZFS slows its writers down (zfs_wrlog_data_max); it is
        never known to be full."""
        size, most = self._reading.number(pool, "log_bytes"), self._reading.number(HOST, "zfs_wrlog_data_max")
        return True if size is not None and most is not None and size > most else None

    def _vdev(self, vdev: Subject) -> Vdev:
        reading = self._reading
        leaves = reading.links(vdev, "leaves")
        kind = reading.word(vdev, "type")
        name = str(vdev)
        if not leaves:
            return Vdev(name, (Leg(name, (f"the devices of {vdev}",), state=None),))
        legs = tuple(self._leg(leaf) for leaf in leaves)
        if kind in PARITY or kind == "draid":
            columns = _columns(legs, reading.number(vdev, "width") or len(legs) - self._stand_ins(leaves))
            parity = PARITY.get(kind or "", reading.number(vdev, "parity") or 0)
            return Vdev(name, columns, len(columns) - parity)
        return Vdev(name, legs, 1)

    def _stand_ins(self, leaves: Iterable[Subject]) -> int:
        """Distributed spares in use, and new disks of replacements that run."""
        kinds = [self._reading.word(leaf, "type") == "dspare" for leaf in leaves]
        replaced = [self._reading.flag(leaf, "being_replaced") for leaf in leaves]
        return sum(kinds) + sum(map(bool, replaced)) // 2

    def _leg(self, leaf: Subject) -> Leg:
        reading = self._reading
        counts = [reading.number(leaf, each) for each in ERRORS]
        clean = False if any(counts) else None if None in counts else True
        leg = Leg(
            str(leaf),
            state=self._state(leaf),
            in_sync=opposite(reading.flag(leaf, "resilvering")),
            clean=clean,
            opens=self._outlives_restart(leaf),
        )
        kind = reading.word(leaf, "type")
        if kind == "dspare":
            return leg  # spread over the other drives of its vdev
        disks = reading.links(leaf, "disks")
        behind = disks[0] if disks and reading.word(disks[0], "transport") in BLOCK_IN_MEMORY else None
        if kind == "file" or behind:
            return self._in_memory(leaf, behind, leg)
        if not disks:
            name = f"the drives of {leaf}"
            self.stores.about[name] = {leaf: None}
            return replace(leg, drives=(name,))
        found = [self.stores.disk(disk) for disk in disks]
        layers = dict.fromkeys(each for above, _ in found for each in above)
        drives = tuple(dict.fromkeys(each for _, below in found for each in below))
        redundant = len(drives) > 1 and reading.flag(leaf, "redundant_below")
        needed = len(drives) - 1 if redundant else None
        return replace(leg, drives=drives, layers=(*self.stores.above(leaf), *layers), needed=needed)

    def _outlives_restart(self, leaf: Subject) -> bool | None:
        """False in memory of this host with no place to be written back to: no restart leaves anything of it. Of one that is
        missing its state decides."""
        reading = self._reading
        if self._state(leaf) not in (None, *WORKING):
            return True
        kind, below = reading.word(leaf, "type"), reading.word(leaf, "below")
        disks = reading.links(leaf, "disks")
        made = [reading.word(disk, "transport") for disk in disks or ()]
        if below in RAM_FILES or any(each in RAM_DISKS for each in made):
            return False
        if kind == "dspare":
            return True
        if kind == "file" or any(each in BLOCK_IN_MEMORY for each in made):
            return True if below or reading.links(leaf, "lies_on") else None
        return True if made and all(made) else None

    def _in_memory(self, leaf: Subject, disk: Subject | None, leg: Leg) -> Leg:
        """A file, a loop device or a zvol: on a dataset of this host, or on another file system."""
        reading = self._reading
        datasets = reading.links(leaf, "lies_on")
        on = datasets[0].name if datasets else ""
        if datasets is None:
            return replace(leg, on=f"what holds {leaf}")
        layers, drives = self.stores.memory(leaf, disk, reading.word(leaf, "below"), on)
        through = set(reading.words(leaf, "layers") or ()) <= {"partition", *BLOCK_IN_MEMORY}
        if disk and (not through or reading.flag(leaf, "flushes_reach_disk") is False):
            layers = (*self.stores.above(leaf), *layers)
        return replace(leg, layers=layers, drives=drives, on=on)

    def _state(self, leaf: Subject) -> State | None:
        """A device that is gone, though OpenZFS has not noticed, is gone: the next import cannot open it."""
        found = self._reading.word(leaf, "state")
        if found == "FAULTED" and "external device fault" in (self._reading.word(leaf, "note") or ""):
            return "FORCED"
        if self._reading.flag(leaf, "device_present") is False and found in ("ONLINE", "DEGRADED"):
            return "UNAVAIL"
        return next((state for state in get_args(State) if state == found), None)


def _resilvering(vdev: Vdev) -> Vdev:
    """A resilver runs, and no leaf says that it is the one: as many as the vdev can lose may lack data."""
    legs = (leg if at < vdev.needed else replace(leg, in_sync=None) for at, leg in enumerate(vdev.legs))
    return replace(vdev, legs=tuple(legs))


def _columns(legs: tuple[Leg, ...], width: int) -> tuple[Leg, ...]:
    """A disk and what replaces it, or the spare in its place, are one column: where there are more leaves than columns, the
    worst ones are those that another stands in for."""
    if len(legs) <= width:
        return legs
    worst_first = sorted(legs, key=lambda leg: (leg.state in WORKING, leg.in_sync is not False, bool(leg.clean)))
    spare = set(worst_first[: len(legs) - width])
    return tuple(leg for leg in legs if leg not in spare)
