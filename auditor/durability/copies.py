"""Where the copies of what was written to one dataset are, and which of them an event leaves.

Copies are in the memory of the process, in the memory of the host, and in the intent log. Each counts only while the pool keeps
its data, and the log only where the next import finds it and replays it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from auditor.durability.answers import SAFE, Answer, Rank, all_of, any_of, either, holds, lost, relies, settle, unknown
from auditor.durability.host import Dataset, Event, Host, Pool, Vdev
from auditor.durability.legs import Legs

Class = Literal["data", "normal", "log"]  # data: all that the pool cannot do without


class Copies:
    """Of one host, with what was found already."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.legs = Legs(host, self._leg_keeps, self._leg_opens)
        self._known: dict[tuple[object, ...], Answer] = {}
        self._touched: dict[tuple[str, Class], dict[str, list[Vdev]]] = {}

    def keeps(self, name: str, event: Event, left: Answer, asked: Answer, reaches: Answer) -> Answer:
        """left: the program has called write(2); asked: its request arrives here; reaches: write(2) does."""
        dataset = self.host.datasets.get(name)
        pool = self.host.pools.get(dataset.pool) if dataset else None
        if dataset is None or pool is None:
            # nothing is kept of what has not left the process
            certain = event.process and (event.memory or not event.stops)
            return all_of((unknown("dataset", name), left)) if certain else unknown("dataset", name)
        bases = [self.data(pool, event), self.key(dataset, event)]
        if dataset.claimed and (
            event.stops or event.device
        ):  # these records have no other copy, whatever is written now
            bases.append(self.log(dataset, event))
        if not event.process:
            return all_of(bases)
        if event.memory:
            copies = [lost("event", "host memory")]
        elif event.stops:
            copies = [self.unmounted(dataset)]
        else:
            copies = [left]
        if event.stops:
            logged = self.logged(dataset, asked, reaches)
            copies.append(all_of((left, logged, self.log(dataset, event))))
        return all_of((*bases, any_of(*copies)))

    def unmounted(self, dataset: Dataset) -> Answer:
        """An orderly stop writes all: unmount, remount and a zvol's last close wait for the txg (zfs_vfsops.c zfs_sync(),
        zfsvfs_teardown(); zvol.c zvol_shutdown_zv())."""
        if dataset.unmounts is None:
            return relies("shutdown", dataset.name, "unmount")
        return holds(dataset.unmounts, "unmount", dataset.name)

    def logged(self, dataset: Dataset, asked: Answer, reaches: Answer) -> Answer:
        """Is it in the log? With sync=always, all that reached zfs_write() or zvol_write() is, whether anybody asked or not
        (zfs_vnops.c zfs_write(), zvol_os.c zvol_write())."""
        match dataset.sync:
            case "standard":
                return asked
            case "always":
                return any_of(asked, reaches)
            case "disabled":
                return all_of((asked, lost("commit", dataset.name)))
        return all_of((any_of(asked, reaches), unknown("commit", dataset.name)))

    def log(self, dataset: Dataset, event: Event) -> Answer:
        """Is what is in the log found and replayed? An indirect record points to a block on a data vdev, which is needed, too
        (zil.c zil_lwb_commit(), WR_INDIRECT)."""
        pool = self.host.pools[dataset.pool]
        block = self._class(pool, "data", event, old=False) if dataset.indirect is not False else SAFE
        pointed = settle(dataset.indirect, lambda: block, SAFE, "indirect", dataset.name)
        if dataset.direct is not False:
            unflushed = self._keep(pool.data, event, lost("direct", dataset.name))
            pointed = all_of((pointed, settle(dataset.direct, lambda: unflushed, SAFE, "direct", dataset.name)))
        placed = self._once(lambda: self._placed(pool, event), pool, "placed", event)
        sound = holds(dataset.sound, "defect", dataset.name)
        return all_of((placed, pointed, sound, self.replayed(dataset, event)))

    def replayed(self, dataset: Dataset, event: Event) -> Answer:
        """A missing log vdev drops the logs of all datasets, wherever their blocks are: `zpool import -m` sets SPA_LOG_CLEAR,
        and zil_claim() then empties each header (spa.c, zil.c; the same in 2.1.11 and 2.4.4)."""
        replays = holds(dataset.replays, "replay", dataset.name)
        return all_of((replays, self.logs_present(self.host.pools[dataset.pool], event)))

    def logs_present(self, pool: Pool, event: Event) -> Answer:
        return self._once(lambda: all_of(self.legs.vdev_opens(vdev, event) for vdev in pool.log), pool, "opens", event)

    def key(self, dataset: Dataset, event: Event) -> Answer:
        """Without its key a dataset is unavailable, not lost: whoever has the key is relied on."""
        if not event.stops or dataset.key == "available":
            return SAFE
        if dataset.key == "absent":
            return relies("key", dataset.name, "key")
        return lost("key", dataset.name) if dataset.key else unknown("key", dataset.name)

    def data(self, pool: Pool, event: Event) -> Answer:
        """Does the pool keep its transaction groups? One that works does, unless the kernel stops or a device goes."""
        if pool.works and not event.stops and not event.device:
            return SAFE
        return self._class(pool, "data", event, old=True)

    def whole(self, pool: Pool, event: Event) -> Answer:
        """Is the pool there, be it of an earlier moment? One that lies on datasets with sync=disabled of one other pool goes
        back with that to one moment, in the order in which it wrote."""
        kept, names = self.data(pool, event), {leg.on for vdev in pool.data for leg in vdev.legs}
        layers = {self.host.store(name).cache for vdev in pool.data for leg in vdev.legs for name in leg.layers}
        below = [self.host.datasets[name] for name in names if name in self.host.datasets]
        pools = {each.pool for each in below}
        unsynced = len(below) == len(names) and {each.sync for each in below} == {"disabled"}
        lower = [self.host.pools[name] for name in pools if name in self.host.pools]
        if not unsynced or len(pools) > 1 or layers > {"none"} or not lower or pool.name in self.host.circles:
            return kept
        return any_of(kept, all_of((self.data(lower[0], event), *(self.key(each, event) for each in below))))

    def _class(self, pool: Pool, which: Class, event: Event, old: bool) -> Answer:
        """Each vdev must keep it. Where a drive goes, only its vdevs are evaluated again: none becomes better for it."""
        if pool.name in self.host.circles:
            return unknown("circle", pool.name) if event.stops or event.device else SAFE
        if not self._struck(pool, which, event.device):
            event = event.harm
        return self._once(lambda: self._class_keeps(pool, which, event, old), pool, which, event, old)

    def _class_keeps(self, pool: Pool, which: Class, event: Event, old: bool) -> Answer:
        sent = holds(pool.txg_flush, "txg flush", pool.name) if old else holds(pool.zil_flush, "zil flush", pool.name)
        if not event.device:
            return self._keep(_vdevs(pool, which), event, sent, old)
        struck = self._keep(self._struck(pool, which, event.device), event, sent, old)
        return all_of((self._class(pool, which, event.harm, old), struck))

    def _struck(self, pool: Pool, which: Class, drive: str) -> Iterable[Vdev]:
        """Vdevs that may lose something with a drive: one that shares a physical drive may take any."""
        alone = not drive or self.host.store(drive).alone
        return self.touched(pool, which).get(drive, ()) if alone else _vdevs(pool, which)

    def _once(self, find: Callable[[], Answer], pool: Pool, *what: object) -> Answer:
        known = (pool.name, *what)
        if known not in self._known:
            self._known[known] = find()
        return self._known[known]

    def _keep(self, vdevs: Iterable[Vdev], event: Event, sent: Answer, old: bool = False) -> Answer:
        return all_of(self.legs.vdev_keeps(vdev, event, sent, old) for vdev in vdevs)

    def touched(self, pool: Pool, which: Class) -> dict[str, list[Vdev]]:
        """Drive -> vdevs of this class that lie on it."""
        if (pool.name, which) not in self._touched:
            found = self._touched[pool.name, which] = {}
            for vdev in _vdevs(pool, which):
                for drive in dict.fromkeys(drive for leg in vdev.legs for drive in self.legs.drives(leg)):
                    found.setdefault(drive, []).append(vdev)
        return self._touched[pool.name, which]

    def _placed(self, pool: Pool, event: Event) -> Answer:
        """Do the log blocks survive where they lie?"""
        normal = self._class(pool, "normal", event, old=False)
        if pool.special and pool.special_logs is not False:
            special = self._filled(pool, pool.special, pool.special_room, normal, event)
            normal = settle(pool.special_logs, lambda: special, normal, "log class", pool.name)
        return self._filled(pool, pool.log, pool.log_room, normal, event)

    def _filled(self, pool: Pool, vdevs: Iterable[Vdev], room: bool | None, after: Answer, event: Event) -> Answer:
        """A class that can fill adds the next one as a promise; a vdev that accepts no writes gets none."""
        certain, possible = list[Answer](), list[Answer]()
        for vdev in vdevs:
            writes = self.legs.vdev_writes(vdev)
            if writes.rank is not Rank.LOST:
                kept = self._keep((vdev,), event, holds(pool.zil_flush, "zil flush", pool.name))
                sure = writes.rank is Rank.SAFE
                (certain if sure else possible).append(kept if sure else either(kept, SAFE, "present", vdev.name))
        if not certain and not possible:
            return after
        here = all_of((*certain, *possible))
        if room is False:
            here = all_of((here, after))
        elif room is None:
            here = all_of((here, any_of(after, relies("room", pool.name, "room"))))
        return here if certain else either(here, after, "present", pool.name)

    def _leg_keeps(self, name: str, event: Event, reached: Answer) -> Answer:
        """A leg on a dataset: its flush is an fsync there (vdev_file.c vdev_file_io_start(); loop and zvol pass it on)."""
        return self._circle(name) or self.keeps(name, event, SAFE, reached, SAFE)

    def _leg_opens(self, name: str, event: Event) -> Answer:
        dataset = self.host.datasets.get(name)
        pool = self.host.pools.get(dataset.pool) if dataset else None
        if dataset is None or pool is None:
            return unknown("dataset", name)
        return self._circle(name) or all_of((self.data(pool, event), self.key(dataset, event)))

    def _circle(self, name: str) -> Answer | None:
        dataset = self.host.datasets.get(name)
        return unknown("circle", dataset.pool) if dataset and dataset.pool in self.host.circles else None


def _vdevs(pool: Pool, which: Class) -> tuple[Vdev, ...]:
    return pool.data if which == "data" else pool.normal if which == "normal" else pool.log
