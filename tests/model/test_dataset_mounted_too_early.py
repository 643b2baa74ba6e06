"""Which mounts of fstab need a file system that ``zfs mount -a`` mounts beside them."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Known, Subject, unknown
from auditor.facts import known as seen
from auditor.model.dataset import fstab_too_early
from tests.tables import typed

POINTS = {"tank": "/tank", "tank/db": "/tank/db", "tank/ROOT/a": "/", "tank/ROOT/a/var": "/var", "tank/my": "/my pool"}


def derived(
    *needs: str, lists: tuple[str, ...] = (), systemd: bool = True, lost: str = "", root: str = "tank/ROOT/a"
) -> dict[str, object]:
    """What is too early, by dataset; a text where it is not known; without those of which nothing is."""
    facts = Facts()
    values: dict[str, bool | tuple[str, ...]] = {
        "fstab_needs": needs,
        "systemd": systemd,
        "generated_pools": lists,
        "mount_table": (f"25 1 0:22 / / rw shared:1 - zfs {root} rw", "26 25 0:23 / /sys rw - sysfs sysfs rw"),
    }
    for name, value in values.items():
        facts.put(
            Fact(HOST, name, unknown("lost") if name == lost else seen(typed("host", name, value), "process 1 is init"))
        )
    for name, point in POINTS.items():
        dataset = Subject("dataset", name)
        facts.put(Fact(dataset, "mountpoint", seen(point, "")))
        facts.put(Fact(dataset, "canmount", seen("off" if name == "tank" else "on", "")))
    found = {each.subject.name: each.value for each in fstab_too_early.derive(HOST, facts)}
    assert found.keys() == POINTS.keys()
    told = {name: each.value if isinstance(each, Known) else each.reasons[0].text for name, each in found.items()}
    return {name: each for name, each in told.items() if each}


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (derived(), {}),
        (derived("/srv /srv"), {}),
        (derived("/tank/db /tank/db"), {"tank/db": ("/tank/db",)}),
        (derived("/tank/db/ /tank/db/"), {"tank/db": ("/tank/db/",)}),
        (derived("/export /tank/db/deep/er", "/tank/db/x /tank/db/x"), {"tank/db": ("/export", "/tank/db/x")}),
        (derived("/tank/dbs /tank/dbs"), {}),  # below tank, which canmount=off does not mount
        (derived("/my\\040pool/x /my\\040pool/x"), {"tank/my": ("/my\\040pool/x",)}),
        (derived("/var/tmp /var/tmp", "/boot /boot"), {}),  # of the root, and below it
        (derived("/var/tmp /var/tmp", root="rpool/ROOT/a"), {"tank/ROOT/a/var": ("/var/tmp",)}),
        (derived("/tank/db /tank/db", lists=("tank",)), {}),
        (derived("/tank/db /tank/db", lost="fstab_needs"), dict.fromkeys(POINTS, "lost")),
        (derived("/tank/db /tank/db", lost="generated_pools"), dict.fromkeys(POINTS, "lost")),
        (
            derived("/tank/db /tank/db", systemd=False),
            dict.fromkeys(POINTS, "process 1 is init: in which order it mounts is not looked at"),
        ),
    ],
)
def test_too_early(found: dict[str, object], says: dict[str, object]) -> None:
    assert found == says
