"""Whether a hot spare can stand in: its size and its sectors beside what a disk of each vdev holds."""

from __future__ import annotations

import pytest

from auditor.derive import spare_fit
from auditor.facts import Fact, Facts, Known, Subject, known, unknown

TANK, SPARE, DISK = Subject("pool", "tank"), Subject("leaf", "sdx", "tank"), Subject("disk", "sdx")
TB = 10**12


def unfit(
    kind: str,
    asize: int,
    size: int,
    sector: int = 512,
    ashift: int = 12,
    leaves: int = 2,
    lost: str = "",
    spare: str = "disk",
    state: str = "AVAIL",
) -> tuple[object, ...] | str:
    vdev = Subject("vdev", f"{kind}-0", "tank")
    legs = tuple(Subject("leaf", f"sd{i}", "tank") for i in range(leaves))
    facts = Facts()
    for subject, name, value in (
        (TANK, "spare_leaves", (SPARE,)),
        (TANK, "data_vdevs", (vdev,)),
        (vdev, "type", kind),
        (vdev, "leaves", legs),
        (vdev, "ashift", ashift),
        (vdev, "asize_bytes", asize),
        (SPARE, "type", spare),
        (SPARE, "disks", (DISK,)),
        (SPARE, "state", state),
        (SPARE, "device_present", True),
        (DISK, "size_bytes", size),
        (DISK, "logical_block_bytes", sector),
    ):
        facts.put(Fact(subject, name, unknown("lost") if name == lost else known(value, name)))
    (found,) = [each.value for each in spare_fit.derive(TANK, facts)]
    if isinstance(found, Known):
        assert isinstance(found.value, tuple)
        return found.value
    return found.reasons[0].text


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (unfit("mirror", 2 * TB, 3 * TB), ()),
        (unfit("mirror", 2 * TB, TB), (f"sdx has {TB} bytes, and a disk of mirror-0 {2 * TB}",)),
        (unfit("mirror", 2 * TB, 2 * TB), "sdx is hardly as large as a disk of mirror-0"),
        (unfit("raidz2", 6 * TB, 2 * TB, leaves=6), ()),
        (unfit("raidz2", 6 * TB, TB // 2, leaves=6), (f"sdx has {TB // 2} bytes, and a disk of raidz2-0 {TB}",)),
        (unfit("mirror", TB, 2 * TB, 4096, 9), ("sdx has sectors of 4096 bytes, and mirror-0 writes blocks of 512",)),
        (unfit("mirror", TB, 2 * TB, 4096, 12), ()),
        (unfit("draid1", 4 * TB, TB, spare="dspare", lost="disks"), ()),
        (unfit("mirror", TB, 2 * TB, state="INUSE"), ()),
        (unfit("mirror", TB, 2 * TB, state="UNAVAIL"), ("sdx is UNAVAIL",)),
        (unfit("mirror", TB, 2 * TB, state="UNAVAIL", lost="disks"), ("sdx is UNAVAIL",)),
        (unfit("mirror", TB, 2 * TB, lost="state"), "lost"),
        (unfit("mirror", 2 * TB, TB, lost="state"), (f"sdx has {TB} bytes, and a disk of mirror-0 {2 * TB}",)),
        (unfit("mirror", TB, 2 * TB, lost="device_present"), "lost"),
        (unfit("mirror", TB, 2 * TB, lost="type"), "lost"),
        (unfit("mirror", TB, 2 * TB, lost="asize_bytes"), "lost"),
        (unfit("mirror", TB, 2 * TB, lost="disks"), "lost"),
        (unfit("mirror", TB, 2 * TB, lost="spare_leaves"), "lost"),
    ],
)
def test_a_spare(found: tuple[object, ...] | str, says: tuple[object, ...] | str) -> None:
    assert found == says
