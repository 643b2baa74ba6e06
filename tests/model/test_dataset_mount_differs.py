"""How a dataset is mounted otherwise than the next boot mounts it, and a database in the folder of one that is not mounted."""

from __future__ import annotations

from auditor.facts import HOST, Fact, Facts, Known, Subject, Value, known
from auditor.model.dataset import mount_differs
from tests.folded import for_each

DB, COPY, SERVER = Subject("dataset", "tank/db"), Subject("dataset", "tank/copy"), Subject("database", "postgres 612")
ROOT = "1 0 8:1 / / rw - ext4 /dev/sda1 rw"


def found(
    point: str = "/srv/db",
    canmount: str = "on",
    at: str = "/srv/db",
    fstab: tuple[str, ...] = (),
    copy: str = "none",
    home: str = "",
    lost: str = "",
) -> dict[str, str]:
    """Of tank/db: fact -> its value, or why it is not known."""
    row = f"41 1 0:51 / {at} rw,relatime shared:5 - zfs tank/db rw,xattr"
    there: dict[str, Value] = {
        "mount_table": (ROOT, row) if at else (ROOT,),
        "fstab_zfs": fstab,
        "database_processes": (SERVER,),
    }
    facts = Facts()
    facts.put_all(Fact(HOST, name, known(value, "")) for name, value in there.items() if name != lost)
    for dataset, name, value in (
        (DB, "mountpoint", point),
        (DB, "canmount", canmount),
        (COPY, "mountpoint", copy),
        (COPY, "canmount", "on"),
        (SERVER, "data_directory", home),
    ):
        facts.add(dataset)
        if name != lost:
            facts.put(Fact(dataset, name, known(value, "")))
    told = {each.name: each.value for each in mount_differs.derive(HOST, facts) if each.subject == DB}
    return {name: str(each.value) if isinstance(each, Known) else each.reasons[0].text for name, each in told.items()}


@for_each(
    "how, hazard, text",
    [
        ({}, "none", ""),
        ({"at": ""}, "none", ""),
        ({"point": "none"}, "by hand", "mountpoint=none, mounted at /srv/db by hand or by a program"),
        ({"point": "legacy"}, "by hand", "mountpoint=legacy, mounted at /srv/db by hand or by a program"),
        ({"point": "legacy", "fstab": ("/srv/db",)}, "none", ""),
        ({"point": "legacy", "at": "/"}, "none", ""),
        ({"point": "legacy", "at": "/var/lib/kubelet/pods/7/volumes/db"}, "none", ""),
        ({"canmount": "noauto"}, "by hand", "canmount=noauto, mounted at /srv/db"),
        ({"canmount": "noauto", "fstab": ("/srv/db",)}, "none", ""),  # zfsutil, as NixOS writes it
        (
            {
                "canmount": "noauto",
                "point": "/var/lib/lxd/storage-pools/a/containers/c",
                "at": "/var/lib/lxd/storage-pools/a/containers/c",
            },
            "none",
            "",
        ),
        (
            {
                "canmount": "noauto",
                "point": "/var/lib/docker/volumes/pg/_data",
                "at": "/var/lib/docker/volumes/pg/_data",
            },
            "by hand",
            "canmount=noauto, mounted at /var/lib/docker/volumes/pg/_data",
        ),
        ({"point": "/", "canmount": "noauto", "at": "/"}, "none", ""),
        ({"point": "/srv/new"}, "elsewhere", "mountpoint=/srv/new, mounted at /srv/db"),
        ({"copy": "/srv/db"}, "twice", "tank/copy has the same mountpoint=/srv/db"),
        ({"point": "/srv/my db", "at": "/srv/my\\040db"}, "none", ""),
        ({"point": "/var/lib/docker", "at": "/var/lib/docker"}, "none", ""),
        (
            {"point": "/var/lib/docker/volumes/pg/_data", "at": "/var/lib/docker/volumes/pg/_data"},
            "container",
            "mountpoint=/var/lib/docker/volumes/pg/_data is in the folder of a manager of containers, "
            "which starts without it",
        ),
    ],
)
def test_what_the_next_boot_does_otherwise(how: dict[str, object], hazard: str, text: str) -> None:
    told = found(**how)  # type: ignore[arg-type]
    assert (told["mount_hazard"], told["mount_differs"]) == (hazard, text)


def test_a_database_in_the_folder_of_one_that_is_not_mounted() -> None:
    assert found(at="", home="/srv/db/16/main")["database_below"] == "postgres 612"
    assert found(at="", home="/srv/dbx")["database_below"] == ""
    assert found(at="", home="/srv/db/copy/main", copy="/srv/db/copy")["database_below"] == ""  # that is the other one


@for_each("lost", ["database_processes", "data_directory", "mountpoint", "canmount"])
def test_a_database_whose_folder_or_mount_point_nobody_saw_may_run_there(lost: str) -> None:
    assert lost in found(at="", home="/srv/db/16/main", lost=lost)["database_below"]


def test_without_the_mounts_of_the_host_nothing_is_said() -> None:
    assert "mount_table" in found(lost="mount_table")["mount_differs"]
