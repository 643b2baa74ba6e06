"""An initrd that was written before what it has to hold; and that its options are then not those of modprobe.d."""

from __future__ import annotations

import pytest

from auditor.data.platforms import initrd_paths
from auditor.facts import HOST, Fact, Facts, Known, Value, known, unknown
from auditor.model.next_boot import initrd, options_in_doubt, parameters

OLD, NEW = "6.12.48+deb13-amd64", "6.12.57+deb13-amd64"
CONF = "/etc/modprobe.d/zfs.conf"
OTHER = "/etc/modprobe.d/vfio.conf"
ROOT = ("41 28 0:51 / / rw,relatime shared:1 - zfs rpool/ROOT rw",)
ELSEWHERE = ("28 1 259:18 / / rw,relatime - ext4 /dev/nvme4n1p2 rw",)
WRITTEN = 1_763_700_000
BEFORE, AFTER = WRITTEN - 9, WRITTEN + 9


def module(kernel: str) -> str:
    return f"/usr/lib/modules/{kernel}/updates/dkms/zfs.ko.xz"


NO_DATE = 999_999_999_999  # after the year 9999


def times(**changed: tuple[int, int]) -> tuple[str, ...]:
    """Of a host where all is well, but what is named: initrd, module, conf, other, folder, hostid."""
    all_of = {
        "initrd": (WRITTEN, WRITTEN), "old": (BEFORE, BEFORE), "module": (BEFORE, BEFORE), "conf": (BEFORE, BEFORE),
        "other": (BEFORE, BEFORE), "folder": (BEFORE, BEFORE), "hostid": (BEFORE, WRITTEN),
    }  # fmt: skip
    paths = {
        "initrd": f"/boot/initrd.img-{NEW}", "old": f"/boot/initrd.img-{OLD}", "module": module(NEW), "conf": CONF,
        "other": OTHER, "folder": "/etc/modprobe.d", "hostid": "/etc/hostid",
    }  # fmt: skip
    told = {**all_of, **changed}
    return tuple(f"{told[name][0]} {told[name][1]} {paths[name]}" for name in told if told[name] != (0, 0))


GONE = 0, 0
LATER, CAME_LATER = (AFTER, AFTER), (BEFORE, AFTER)


def told(found: tuple[str, ...], table: tuple[str, ...] = ROOT, lost: str = "", ids: str = "debian") -> Facts:
    facts = Facts()
    values: list[tuple[str, Value]] = [
        ("mount_table", table),
        ("initrd_times", found),
        ("zfs_modules", (f"{OLD} {module(OLD)}", f"{NEW} {module(NEW)}")),
        ("os_ids", (ids,)),
    ]
    for name, value in values:
        facts.put(Fact(HOST, name, unknown("lost") if name == lost else known(value, name)))
    facts.put(Fact(HOST, "zfs_boot_options", known(("zfs_txg_timeout=9",), "options", f"cat {CONF}")))
    return facts


def judged(facts: Facts, name: str) -> object:
    value = next(each.value for each in initrd.derive(HOST, facts) if each.name == name)
    return value.value if isinstance(value, Known) else value.reasons[0].text


@pytest.mark.parametrize(
    ("found", "outdated"),
    [
        (times(), ()),
        (times(module=LATER), (module(NEW),)),
        (times(conf=LATER), (CONF,)),
        (times(hostid=LATER), ("/etc/hostid",)),
        (times(hostid=GONE), ()),
        (times(conf=(NO_DATE, NO_DATE)), (CONF,)),
        (times(other=LATER, folder=LATER), ()),  # has nothing of the zfs module in it
        (times(old=LATER), ()),  # does not start next
    ],
)
def test_which_files_are_newer(found: tuple[str, ...], outdated: tuple[str, ...]) -> None:
    assert judged(told(found), "initrd_outdated") == outdated


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (times(module=CAME_LATER), "whether that holds it is not known"),
        (times(hostid=CAME_LATER), "whether that holds it is not known"),
        (times(module=GONE), "is not there"),
        (times(initrd=GONE), f"no initrd of {NEW} found"),
        ((*times(), f"{AFTER} {AFTER} /boot/initramfs-{NEW}.img"), f"2 initrd of {NEW} found"),
    ],
)
def test_what_times_do_not_tell(found: tuple[str, ...], why: str) -> None:
    assert why in str(judged(told(found), "initrd_outdated"))


@pytest.mark.parametrize("lost", ["initrd_times", "zfs_modules"])
def test_what_was_not_seen(lost: str) -> None:
    assert judged(told(times(module=LATER), lost=lost), "initrd_outdated") == "lost"


def test_where_the_root_file_system_is() -> None:
    assert judged(told(times()), "root_on_zfs") is True
    assert judged(told(times(), ELSEWHERE), "root_on_zfs") is False
    assert judged(told(times(), lost="mount_table"), "root_on_zfs") == "lost"


@pytest.mark.parametrize(
    ("facts", "certain"),
    [
        (told(times()), True),
        (told(times(module=LATER, hostid=LATER)), True),  # no options
        (told(times(conf=LATER)), False),
        (told(times(other=CAME_LATER)), False),  # it may have had options of the module
        (told(times(folder=LATER)), False),  # so may one that is gone
        (told(times(initrd=GONE)), False),
        (told(times(conf=LATER), ELSEWHERE), True),
        (told(times(conf=LATER), ids="nixos"), True),
        (told(times(), lost="initrd_times"), False),
        (told(times(), lost="mount_table"), False),
    ],
)
def test_whether_the_options_are_those_of_the_next_boot(facts: Facts, certain: bool) -> None:
    assert (options_in_doubt(facts) is None) is certain


def test_the_command_line_counts_whatever_the_initrd_holds() -> None:
    facts = told(times(conf=LATER))
    facts.replace(Fact(HOST, "zfs_boot_options", known(("zil_replay_disable=1",), "zfs.", "cat /proc/cmdline")))
    facts.put(Fact(HOST, "release", known((2, 4, 4), "2.4.4")))
    values = {each.name: each.value for each in parameters.derive(HOST, facts)}
    assert values["zil_replay_disable_boot"].value == 1  # type: ignore[union-attr]
    assert not isinstance(values["zfs_nocacheflush_boot"], Known)


def test_options_of_a_file_whose_times_were_not_asked_for() -> None:
    facts = told(times())
    facts.replace(
        Fact(HOST, "zfs_boot_options", known(("zil_replay_disable=0",), "options", "cat /usr/lib/modprobe.d/z.conf"))
    )
    assert "/usr/lib/modprobe.d/z.conf" in str(options_in_doubt(facts))


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("6.18.1-arch1-1", "/boot/initramfs-linux.img"),
        ("6.12.58-1-lts", "/boot/initramfs-linux-lts.img"),
        ("5.14.0-570.12.1.el9_6.x86_64", "/boot/initramfs-5.14.0-570.12.1.el9_6.x86_64.img"),
    ],
)
def test_names(kernel: str, name: str) -> None:
    assert name in initrd_paths(kernel)
