"""Whether the service of a database is held back without its file systems: what holds it, what may, and whose service it is."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.databases import servers
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, known, unknown
from auditor.host.process import Lines
from auditor.host.request import Output, Request, Run, Skip
from auditor.judge.verdict import judge
from auditor.model.next_boot import service_start
from tests.folded import for_each
from tests.shared import rules
from tests.tables import typed

DATABASE, DATASET = Subject("database", "etcd 7"), Subject("dataset", "tank/etcd")
(RULE,) = (each for each in rules() if each.id == "service-starts-unmounted")
MOUNT = "srv-etcd.mount"
PLAIN: dict[str, Any] = {
    "process": "7",
    "engine": "etcd",
    "unit": "etcd.service",
    "unit_starts": True,
    "mounted_from": ("/srv/etcd -> tank/etcd",),
    "unit_requires": ("sysinit.target", "system.slice", "-.mount"),
    "unit_bound": (),
    "unit_mounts_for": ("/var/tmp",),
    "unit_looks_at": (),
    "unit_prepares": (),
    "unit_runs_else": "",
    "mount_files": (),
    "local_requires": (),
    "unit_conditions": (),
}
TABLE = "28 1 259:18 / / rw,relatime - ext4 /dev/nvme4n1p2 rw"


def seen(*, table: str = TABLE, **more: Any) -> Facts:
    """A service that waits for nothing, but for what is given."""
    facts = Facts(0.0)
    host: dict[str, Any] = {
        "all_processes": True,
        "systemd": True,
        "mount_table": (table,),
        "cached_pools": ("tank",),
        "generated_pools": (),
    }
    host |= {name: more.pop(name) for name in [*more] if name in host}
    for name, value in host.items():
        facts.put(Fact(HOST, name, value if isinstance(value, Unknown) else known(value, name)))
    canmount = more.pop("canmount", "on")
    facts.put(Fact(DATASET, "canmount", canmount if isinstance(canmount, Unknown) else known(canmount, "canmount")))
    for name, value in (PLAIN | more).items():
        facts.put(
            Fact(DATABASE, name, value if isinstance(value, Unknown) else known(typed("database", name, value), name))
        )
    facts.put(Fact(HOST, "databases", known((DATABASE,), "")))
    facts.put_all(list(service_start.derive(DATABASE, facts)))
    return facts


def outcome(**more: Any) -> str:
    return next(each.outcome for each in judge([RULE], seen(**more)) if each.subject == DATABASE)


def found(name: str, **more: Any) -> Judged:
    return seen(**more).get(DATABASE, name)


def test_nothing_holds_it() -> None:
    assert outcome() == "fail"
    assert found("unguarded") == known(
        ("/srv/etcd",),
        "nothing holds etcd.service back without /srv/etcd",
        "systemctl show -p Requires,BindsTo,RequiresMountsFor,ExecStartPre etcd.service",
    )


HELD: dict[str, dict[str, Any]] = {
    "generated and required": {"unit_requires": (MOUNT,), "mount_files": (MOUNT,), "unit_mounts_for": ("/srv/etcd/a",)},
    "required by name": {"unit_requires": (MOUNT,)},
    "bound": {"unit_requires": (MOUNT,), "unit_bound": (MOUNT,), "unit_mounts_for": ("/srv/etcd",)},
    "the host does not get so far": {"mount_files": (MOUNT,), "local_requires": (MOUNT,)},
    "mountpoint": {"unit_looks_at": ("/srv/etcd",)},
    "condition": {"unit_conditions": ("ConditionPathIsMountPoint=/srv/etcd",)},
    "condition with a slash": {"unit_conditions": ("ConditionPathIsMountPoint=/srv/etcd/",)},
    "assertion": {"unit_conditions": ("ConditionPathExists=/etc/etcd", "AssertPathIsMountPoint=/srv/etcd")},
    "import and mount": {"unit_requires": ("zfs-mount.service", "zfs-import-cache.service")},
    "its own import": {"unit_requires": ("zfs-mount.service", "zfs-import-tank.service"), "cached_pools": ()},
    "mount of one": {"unit_requires": ("zfs-mount@tank-etcd.service",)},
    "mount of one above": {"unit_requires": ("zfs-mount@tank.service",)},
    "the root file system": {"mounted_from": ("/ -> tank/etcd",)},
    "nothing of it on ZFS": {"mounted_from": ()},
    "held, whatever else runs": {"unit_looks_at": ("/srv/etcd",), "unit_runs_else": "/opt/x"},
    "held, though no bus": {"unit_looks_at": ("/srv/etcd",), "unit_conditions": unknown("no bus")},
}
BARE: dict[str, dict[str, Any]] = {
    "ordered alone": {"unit_requires": ("sysinit.target", "local-fs.target", "zfs.target", "zfs-mount.service")},
    "mounts that systemd does not know": {"unit_mounts_for": ("/srv/etcd",)},
    "generated and not required": {"mount_files": (MOUNT,)},
    "a failing local-fs.target without sysinit.target": {
        "mount_files": (MOUNT,),
        "local_requires": (MOUNT,),
        "unit_requires": (),
    },
    "the mount of now, for which no file is there": {"local_requires": (MOUNT,)},
    "another place": {"unit_conditions": ("AssertPathIsMountPoint=/srv", "ConditionPathIsMountPoint=/srv/etcd2")},
    "not cached": {"unit_requires": ("zfs-mount.service", "zfs-import-cache.service"), "cached_pools": ("other",)},
    "another dataset": {"unit_requires": ("zfs-mount@tank-etc.service",)},
    "one of two": {"mounted_from": ("/srv/etcd -> tank/etcd", "/srv/wal -> tank/wal"), "unit_looks_at": ("/srv/etcd",)},
    "one, while another may be held": {
        "mounted_from": ("/srv/etcd -> tank/etcd", "/srv/wal -> tank/wal"),
        "unit_conditions": ("ConditionPathExists=/srv/wal/0.wal",),
    },
    "not on": {"unit_requires": ("zfs-mount.service", "zfs-import-cache.service"), "canmount": "noauto"},
}
OPEN: dict[str, dict[str, Any]] = {
    "turned round": {"unit_conditions": ("!ConditionPathIsMountPoint=/srv/etcd",)},
    "one of several": {"unit_conditions": ("|ConditionPathIsMountPoint=/srv/etcd", "|ConditionPathExists=/x")},
    "a file that may be below, too": {"unit_conditions": ("ConditionPathExists=/srv/etcd/member",)},
    "the folder itself": {"unit_conditions": ("ConditionDirectoryNotEmpty=/srv/etcd",)},
    "no bus": {"unit_conditions": unknown("busctl: not installed")},
    "a script of the site": {"unit_runs_else": "/usr/local/bin/wait-for-zfs"},
    "a service of the site": {"unit_requires": ("sysinit.target", "pools-ready.service")},
    "a target of the site": {"unit_requires": ("sysinit.target", "pools-ready.target")},
    "a list that the generator has not read": {"unit_mounts_for": ("/srv/etcd",), "generated_pools": ("tank",)},
    "below the root file system": {"table": TABLE.replace("ext4 /dev/nvme4n1p2", "zfs tank")},
    "whether the pool is cached": {
        "unit_requires": ("zfs-mount.service", "zfs-import-cache.service"),
        "cached_pools": unknown("/etc/zfs/zpool.cache: permission denied"),
    },
    "whether it is to be mounted": {"unit_requires": ("zfs-mount@tank.service",), "canmount": unknown("not read")},
    "not asked": {"unit_requires": unknown("systemctl: not in the recording", "record again")},
    "the wrong process": {"unit_starts": unknown("process 7 is not the main process of cron.service")},
    "no control group": {"unit": unknown("/proc/7/cgroup: permission denied")},
    "where it is mounted": {"mounted_from": unknown("not seen")},
}
NOT_ASKED: dict[str, dict[str, Any]] = {
    "of a user or container": {"unit": "", "unit_starts": unknown("no service of the host starts it")},
    "nothing pulls it in": {"unit_starts": False},
    "it does not run": {"process": "self", "unit": unknown("it is no process")},
    "another init": {"systemd": False},
    "zaudit in a container": {"all_processes": False},
}


@for_each("case", [(outcome, name) for outcome, table in (
    ("pass", HELD), ("fail", BARE), ("unknown", OPEN), ("not applicable", NOT_ASKED)
) for name in table], ids=lambda case: case[1])  # fmt: skip
def test_case(case: tuple[str, str]) -> None:
    tables = {"pass": HELD, "fail": BARE, "unknown": OPEN, "not applicable": NOT_ASKED}
    assert outcome(**tables[case[0]][case[1]]) == case[0]


@pytest.mark.parametrize("engine", ["etcd", "mongodb", "redis"])
def test_these_begin_anew_by_themselves(engine: str) -> None:
    assert outcome(engine=engine) == "fail"


@pytest.mark.parametrize("engine", ["postgres", "mysql", "mariadb"])
def test_these_refuse_where_their_service_lays_out_nothing(engine: str) -> None:
    assert outcome(engine=engine) == "pass"
    assert outcome(engine=engine, unit_prepares=("/usr/bin/mysqld_pre_systemd",)) == "fail"
    assert outcome(engine=engine, unit_runs_else="/nix/store/x-unit-script-postgresql-pre-start") == "unknown"
    assert outcome(engine=engine, unit_prepares=unknown("not asked")) == "unknown"


def test_of_another_engine_it_is_not_known() -> None:
    assert outcome(engine="sqlite") == "unknown"


def test_names_that_systemd_escapes() -> None:
    point, unit = "/srv/d\u00fc b/e-1", "srv-d\\xc3\\xbc\\x20b-e\\x2d1.mount"
    assert servers.mount_unit(point) == unit
    held = {"unit_requires": (unit,), "mount_files": (unit,), "unit_mounts_for": (point,)}
    assert outcome(mounted_from=(f"{point} -> tank/x y",), **held) == "pass"
    assert outcome(mounted_from=("/srv/d -> tank/x y",), **held) == "fail"


# -- the questions ----------------------------------------------------------------------------------------------------


def asked(**more: Any) -> Request:
    return servers.unit_start.request(DATABASE, seen(**more))


def test_what_is_asked() -> None:
    request = asked(mounted_from=("/srv/a-b -> tank/x", "/srv/a-b -> tank/y", "/ -> rpool/ROOT"))
    assert isinstance(request, Run)
    assert request.argv[3:] == ("etcd.service", "local-fs.target", "srv-a\\x2db.mount")
    bus = servers.unit_conditions.request(DATABASE, seen(unit="postgresql@17-main.service"))
    assert isinstance(bus, Run)
    assert bus.argv[3] == "/org/freedesktop/systemd1/unit/postgresql_4017_2dmain_2eservice"


@pytest.mark.parametrize(
    ("more", "why", "applies"),
    [
        ({"unit": ""}, "no service of the host", False),
        ({"unit": unknown("denied", "run as root")}, "denied", True),
        ({"mounted_from": unknown("unseen")}, "unseen", True),
        ({"mounted_from": tuple(f"/srv/{i} -> tank/{i}" for i in range(60))}, "60 mounts", True),
        ({"mounted_from": (f"/{'x' * 300} -> tank/x",)}, "of which systemd makes another", True),
        ({"mounted_from": (f"/{'-' * 80}/x -> tank/x",)}, "of which systemd makes another", True),
    ],
)
def test_what_is_not_asked(more: dict[str, Any], why: str, applies: bool) -> None:
    request = asked(**more)
    assert isinstance(request, Skip)
    assert why in request.reason
    assert request.applies is applies


SERVICE = (
    "MainPID=7\nExecStartPre={{ path=/opt/wait ; argv[]=/opt/wait {} ; ignore_errors=no ; pid=0 }}\n"
    "ExecStart={{ path=/usr/bin/etcd ; argv[]=/usr/bin/etcd --password=secret ; ignore_errors=no ; pid=7 }}\n"
    "Id=etcd.service\nRequires={}\nRequisite=\nBindsTo=\nRequiredBy=\nWantedBy=multi-user.target\nBoundBy=\nTriggeredBy=\n"
    "RequiresMountsFor=\nLoadState=loaded\nFragmentPath=\nNeedDaemonReload=no\n\nId=local-fs.target\nRequires=\nBindsTo=\n"
)


def test_nothing_is_kept_of_what_it_runs() -> None:
    """And what is kept says the same."""
    text = SERVICE.format("--token=secret", "sysinit.target")
    lines = Lines(servers.KEEP, servers.FIRST)
    kept = (lines.of(text.encode()) + lines.end()).decode()
    assert "secret" not in kept
    assert "ExecStart=" not in kept
    whole, less = (list(servers.unit_start.parse(Output(each, "systemctl"), DATABASE)) for each in (text, kept))
    assert whole == less
    assert ("unit_runs_else", "/opt/wait") in [
        (name, value.value) for _, name, value in less if isinstance(value, Known)
    ]


def test_a_line_without_an_end_is_no_answer() -> None:
    lines = Lines(servers.KEEP, servers.FIRST)
    with pytest.raises(ValueError, match="a line of more than"):
        lines.of(b"Requires=" + b"x" * (64 << 10))


def test_a_command_line_over_several_lines_makes_no_property() -> None:
    """An argument may hold a line end: what stands behind it is taken for a property, and then told twice."""
    forged = "x\nRequires=srv-etcd.mount"
    with pytest.raises(ValueError, match="told twice"):
        list(servers.unit_start.parse(Output(SERVICE.format(forged, "sysinit.target"), "systemctl"), DATABASE))
