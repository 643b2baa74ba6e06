"""``/etc/zfs/zed.d``: whom the ZFS Event Daemon tells of a failure. (OpenZFS cmd/zed/zed.d/zed.rc, zed-functions.sh
zed_notify; man 8 zed)

Of zed.rc is kept which of the settings that name somebody are set, and not to what: they are addresses and tokens. A script
that OpenZFS did not bring may tell anybody.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, known, word
from auditor.host import zed_settings
from auditor.host.request import WITNESS, Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {"zed_tells": word("whom the ZFS Event Daemon can tell", "nobody", "somebody", "unknown script")}
SCRIPTS = f"{zed_settings.FOLDER}*.sh"
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


def request(host: Subject, facts: Facts) -> Read:
    return Read((zed_settings.PATH, SCRIPTS, WITNESS))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """Both the scripts and the settings must have been seen."""
    reply.witness()
    if not reply.complete(SCRIPTS) or not (zed_settings.PATH in reply.text or reply.absent(zed_settings.PATH)):
        return
    scripts = {path.rpartition("/")[2] for path in (*reply.text, *reply.links) if path.endswith(".sh")}
    given = set(reply.text.get(zed_settings.PATH, "").split())
    ways = [way for way in zed_settings.WAYS if given.issuperset(way)]
    if own := sorted(scripts - STOCK):
        tells, text = "unknown script", f"{own[0]} is no script of OpenZFS"
    elif not scripts & {*NOTIFIES}:
        tells, text = "nobody", f"none of {', '.join(NOTIFIES)} is in {zed_settings.FOLDER}"
    elif ways:
        tells, text = "somebody", f"{', '.join(ways[0])} is set in zed.rc"
    else:
        tells, text = "nobody", "zed.rc names no address and no service"
    yield Fact(HOST, "zed_tells", known(tells, text, f"grep ^ZED_ {zed_settings.PATH}; ls {zed_settings.FOLDER}"))
