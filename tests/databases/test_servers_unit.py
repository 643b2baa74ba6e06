"""The service of a server that was found, from its process to the verdict; and what a user of the host can do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from auditor import audit
from auditor.databases import servers
from auditor.facts import AGAIN, HOST, Fact, Facts, Known, Subject, Unknown, known
from auditor.gather import walk
from auditor.gather.gatherer import Gatherer, fill
from auditor.host.request import Capture, Run
from auditor.judge.verdict import judge
from auditor.model.database import databases
from auditor.model.next_boot import service_start
from auditor.recording.recording import ReplayHost, load
from auditor.registry import sources
from auditor.sources import units
from tests.databases.test_servers import STAT, Machine
from tests.shared import HOSTS, rules

(RULE,) = (each for each in rules() if each.id == "service-starts-unmounted")
ETCD = "/usr/bin/etcd\0--data-dir\0/var/lib/etcd/default\0"
ROOT = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
MOUNTS = f"{ROOT}40 22 0:50 / /var/lib/etcd rw - zfs tank/etcd rw\n41 22 0:51 / /home rw - zfs tank/home rw\n"
SHOWN = (
    "MainPID={pid}\nExecStart={{ path=/usr/bin/etcd ; argv[]=/usr/bin/etcd $ARGS ; ignore_errors=no ; pid={pid} }}\nId={unit}\n"
    "Requires=sysinit.target system.slice -.mount\nRequisite=\nBindsTo=\nRequiredBy=\nWantedBy=multi-user.target\nBoundBy=\n"
    "TriggeredBy=\nRequiresMountsFor=/var/lib/etcd\nLoadState=loaded\nFragmentPath=/lib/systemd/system/{unit}\n"
    "NeedDaemonReload=no\n\nId=local-fs.target\nRequires=\nBindsTo=\nLoadState=loaded\n\n"
    "Id=var-lib-etcd.mount\nLoadState=loaded\nFragmentPath=\n"
)
NOTHING, ASSERTED = "a(sbbsi) 0\n", 'a(sbbsi) 1 "AssertPathIsMountPoint" false false "/var/lib/etcd" 1\n'


@dataclass
class Systemd(Machine):
    """Of these services this one answers: UNIT -> its main process."""

    services: Mapping[str, str] = field(default_factory=dict)
    asserts: str = NOTHING
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, request: Run) -> Capture:
        self.asked.append(request.argv)
        if request.argv[:2] == ("systemctl", "show") and request.argv[3] in self.services:
            unit = request.argv[3]
            return Capture(0, SHOWN.format(unit=unit, pid=self.services[unit]).encode())
        if request.argv[0] == "busctl":
            return Capture(0, (NOTHING + self.asserts).encode())
        return super().run(request)


def process(number: int, group: str, mounts: str = MOUNTS, cmdline: str = ETCD) -> dict[str, str]:
    here = f"/proc/{number}"
    return {
        f"{here}/stat": STAT.format(number, "etcd", 1),
        f"{here}/cmdline": cmdline,
        f"{here}/environ": "",
        f"{here}/maps": "/usr/lib/x86_64-linux-gnu/libc.so.6\n",
        f"{here}/mountinfo": mounts,
        f"{here}/cgroup": f"0::{group}\n",
        **{
            f"{here}/root{data}/member/{each}": ""
            for data in ("/var/lib/etcd/default", "/home/mallory/etcd")
            for each in ("snap/db", "wal/0.wal")
        },
    }


def seen(machine: Systemd, of_host: str = MOUNTS) -> Facts:
    facts = Facts(1.7e9)
    for name in ("connected_engine", "database_connection"):
        facts.put(Fact(HOST, name, known("", "--db")))
    pool = Subject("pool", "tank")
    facts.put(Fact(HOST, "pools", known((pool,), "tank")))
    facts.put(Fact(pool, "datasets", known(tuple(Subject("dataset", f"tank/{each}") for each in ("etcd", "home")), "")))
    for name, value in (
        ("all_processes", True),
        ("systemd", True),
        ("generated_pools", ()),
        ("cached_pools", ("tank",)),
    ):
        facts.put(Fact(HOST, name, known(value, name)))
    facts.put(Fact(HOST, "mount_table", known(tuple(of_host.splitlines()), "")))
    gatherer = Gatherer(machine, sources())
    for collector in ("database_processes", "database_sql"):
        gatherer.ask(collector, [HOST], facts)
    walk.look_at_databases(gatherer, facts, Facts())
    fill(gatherer, facts)
    gatherer.close()
    facts.put_all(list(databases.derive(HOST, facts)))
    for each in list(facts.subjects("database")):
        facts.put_all(list(service_start.derive(each, facts)))
    return facts


def machine(*processes: dict[str, str], services: Mapping[str, str], asserts: str = NOTHING) -> Systemd:
    first = {"/proc/1/stat": STAT.format(1, "systemd", 0)}
    files = {path: text for each in (first, *processes) for path, text in each.items()}
    return Systemd(files, {}, services=services, asserts=asserts)


def outcomes(facts: Facts) -> dict[str, tuple[str, str]]:
    told = judge([RULE], facts)
    return {
        each.subject.name: (each.outcome, each.message or " ".join(reason.text for reason in each.reasons))
        for each in told
        if each.subject.kind == "database"
    }


SERVICE = "/system.slice/etcd.service"


def test_a_service_that_waits_for_nothing() -> None:
    host = machine(process(7, SERVICE), services={"etcd.service": "7"})
    facts = seen(host)
    assert facts.get(Subject("database", "etcd 7"), "mounted_from").or_none() == (("/var/lib/etcd", "tank/etcd"),)
    outcome, message = outcomes(facts)["etcd 7"]
    assert (outcome, message) == ("fail", "etcd 7: etcd.service starts without /var/lib/etcd, too")
    told = [argv[3:] for argv in host.asked if argv[0] == "systemctl"]
    assert told == [("etcd.service", "local-fs.target", "var-lib-etcd.mount")]


def test_an_assertion_holds_it() -> None:
    host = machine(process(7, SERVICE), services={"etcd.service": "7"}, asserts=ASSERTED)
    assert outcomes(seen(host))["etcd 7"][0] == "pass"


def test_a_service_may_see_its_folder_mounted_once_more() -> None:
    """ProtectSystem=strict with ReadWritePaths=: a bind mount of its folder in its own table."""
    own = f"{MOUNTS}60 40 0:50 /default /var/lib/etcd/default rw - zfs tank/etcd rw\n"
    host = machine(process(7, SERVICE, own), services={"etcd.service": "7"})
    facts = seen(host)
    assert facts.get(Subject("database", "etcd 7"), "mounted_from").or_none() == (("/var/lib/etcd", "tank/etcd"),)
    assert outcomes(facts)["etcd 7"][0] == "fail"


def test_what_the_host_mounts_elsewhere_is_not_decided() -> None:
    host = machine(process(7, SERVICE), services={"etcd.service": "7"})
    outcome, why = outcomes(seen(host, of_host=ROOT))["etcd 7"]
    assert outcome == "unknown"
    assert "not so where the host's first process looks" in why


FAKE = ETCD.replace("/var/lib/etcd/default", "/home/mallory/etcd")
GROUPS = (
    "/user.slice/user-1000.slice/session-3.scope",
    "/user.slice/user-1000.slice/user@1000.service/app.slice/etcd.service",
    "/machine.slice/libpod-1.scope/system.slice/etcd.service",
    "/lxc.payload.1/system.slice/etcd.service",
)


def test_a_user_says_nothing_of_the_services_of_the_host() -> None:
    """By a process that has the name of a server, in a session, a service or a container of his own, whatever it says of its
    files; nor does it hide the server of the administrator."""
    for data in (FAKE, ETCD):
        for group in GROUPS:
            host = machine(process(7, SERVICE), process(66, group, cmdline=data), services={"etcd.service": "7"})
            found = outcomes(seen(host))
            assert found["etcd 7"][0] == "fail"
            assert found.get("etcd 66", ("not applicable",))[0] == "not applicable"
            assert not [argv for argv in host.asked if argv[0] == "systemctl" and argv[3] != "etcd.service"]


def test_a_job_of_cron_is_not_the_service_of_cron() -> None:
    host = machine(
        process(7, SERVICE),
        process(66, "/system.slice/cron.service"),
        services={"etcd.service": "7", "cron.service": "512"},
    )
    found = outcomes(seen(host))
    assert found["etcd 7"][0] == "fail"
    assert found["etcd 66"][0] == "unknown"
    assert "process 66 is not the main process of cron.service" in found["etcd 66"][1]


def test_a_process_that_moved_or_ended_meanwhile() -> None:
    """Its number may be that of another one by now: what the service says of its own main process decides."""
    host = machine(process(7, "/system.slice/other.service"), services={"other.service": "8"})
    assert outcomes(seen(host))["etcd 7"][0] == "unknown"
    gone = {path: text for path, text in process(7, SERVICE).items() if not path.endswith("/cgroup")}
    outcome, why = outcomes(seen(machine(gone, services={"etcd.service": "7"})))["etcd 7"]
    assert (outcome, "/proc/7/cgroup" in why) == ("unknown", True)


def test_names_that_are_none() -> None:
    for group in ("/system.slice/-H.service", "/system.slice/a b.service", f"/system.slice/{'x' * 65536}.service"):
        host = machine(process(7, group), services={"etcd.service": "7"})
        facts = seen(host)
        assert outcomes(facts)["etcd 7"][0] == "unknown"
        assert host.asked == [] or all(argv[0] not in ("systemctl", "busctl") for argv in host.asked)
        why = facts.get(Subject("database", "etcd 7"), "unit")
        assert isinstance(why, Unknown)
        assert len(why.reasons[0].text) < 300


def test_a_name_with_characters_that_mean_something_elsewhere() -> None:
    """Characters of a name that mean something on the bus and to the shell."""
    odd = "a\\x2db@c:d.e_f.service"
    assert not re.search(r"\W", servers.label(odd))
    host = machine(process(7, f"/system.slice/{odd}"), services={odd: "7"})
    assert outcomes(seen(host))["etcd 7"] == ("fail", f"etcd 7: {odd} starts without /var/lib/etcd, too")


def test_a_server_that_is_named_and_does_not_run_is_asked_nothing() -> None:
    database = Subject("database", "etcd self")
    assert not isinstance(servers.unit_start.request(database, Facts()), Run)
    facts = Facts()
    facts.put(Fact(database, "process", known("self", "--db")))
    facts.put_all(list(service_start.derive(database, facts)))
    starts = facts.get(database, "starts_at_boot")
    assert isinstance(starts, Known)
    assert starts.value is False


def test_an_older_recording_is_to_be_made_again() -> None:
    """Of a host whose databases were seen when nobody asked for their services."""
    past = load(HOSTS / "2.3-db-postgres-healthy")
    files = {
        patterns: each._replace(text={**each.text, units.FIRST: "systemd\n"}) if units.FIRST in each.text else each
        for patterns, each in past.files.items()
    }
    facts = audit.look(
        ReplayHost(replace(past, files=files)), past.targets, audit.Options.from_words(past.options)
    ).facts
    facts.replace(Fact(HOST, "all_processes", known(True, "pid:[4026531836]")))
    (told,) = (each for each in judge([RULE], facts) if each.subject.kind == "database")
    assert told.outcome == "unknown"
    assert {reason.remedy for reason in told.reasons} == {AGAIN}
