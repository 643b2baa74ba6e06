"""etcd: what is known of it. (etcd manual, Configuration options; server/embed/config.go)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from auditor.databases import engine as base
from auditor.databases.engine import Confirms, Engine, Found, InForce, Launch, Line, Promise, Setting, Shape
from auditor.facts import Evidence, Known, Value
from auditor.text import argument

if TYPE_CHECKING:
    from auditor.databases.configuration import Tree

from collections.abc import Sequence

from auditor.facts import Spec


class Etcd(Engine):
    name = "etcd"
    place = 6
    title = "etcd bbolt"
    page_bytes = 4096  # etcd-io/bbolt: that of the operating system, on x86-64
    processes = ("etcd",)
    settings = (
        Setting("unsafe-no-fsync", base.word, "no_fsync", Spec.flag("etcd --unsafe-no-fsync"), "false", base.boolean),
        Setting("data-dir", base.path),
        Setting("wal-dir", base.path),
    )
    files = (("*.yml", base.yaml), ("*.yaml", base.yaml))
    taken_over = ""
    units = ""
    variables: Mapping[str, Shape] = {
        **dict.fromkeys(("ETCD_DATA_DIR", "ETCD_WAL_DIR", "ETCD_CONFIG_FILE"), base.path),
        "ETCD_UNSAFE_NO_FSYNC": base.word,
    }
    data_options = ("data-dir",)
    data_variable = "ETCD_DATA_DIR"
    in_place = ()
    compared = ("no_fsync",)
    omitting: Mapping[str, tuple[Value, ...]] = {"no_fsync": (True,)}
    new_on_empty = "etcd without a log begins a new cluster (server/etcdserver/bootstrap.go)"
    profile = "etcd"

    def arguments(self, given: Sequence[str]) -> list[Line]:
        """As Go's flag reads them: one dash or two."""
        values = {name: (name, base.path) for name in ("data-dir", "wal-dir", "config-file")}
        return base.dashed(given, values, {"unsafe-no-fsync": base.word})

    def wanted(self, launch: Launch) -> list[str]:
        file = _config_file(launch, launch.variables or {})
        return [file] if file else []

    def read(self, launch: Launch, tree: Tree) -> Found:
        """A configuration file replaces both flags and variables. (etcd manual, Configuration file)"""
        if (variables := launch.variables) is None:
            environ = f"/proc/{launch.place}/environ"
            raise ValueError(f"{environ}: {tree.reply.errors.get(environ, 'was not read')}")
        if file := _config_file(launch, variables):
            settings = tree.settings(file, self)
        else:
            of = {name: f"ETCD_{name.replace('-', '_').upper()}" for name in self.known}
            settings = {name: (variables[each], "environment") for name, each in of.items() if each in variables}
            settings |= launch.given
        yield from base.setting_facts(self, settings)
        text = "bbolt pages are those of the system: 4096 bytes on x86-64"
        yield "page_bytes", Known(self.page_bytes, (Evidence(text),))
        if (home := settings.get("data-dir", ("", ""))[0]).startswith("/"):
            log = settings.get("wal-dir", ("", ""))[0] or f"{home}/member/wal"
            seen = Evidence(f"data in {home}, log in {log}", f"ls -l {argument(home)}")
            yield "directories", Known((f"data:{home}", f"log:{log}"), (seen,))

    def promise(self, settings: InForce, synchronous: bool | None) -> Promise:
        no_fsync = settings.flag("no_fsync")
        fsync = base.asks(None if no_fsync is None else not no_fsync, otherwise="never")
        return Promise(True, fsync, fsync)

    def confirms(self, settings: InForce, members: int, *, asynchronous: bool) -> Confirms:
        """A majority has written and synced its log. (etcd manual, Failure modes; server/etcdserver/raft.go)"""
        return Confirms(members // 2 + 1)


def _config_file(launch: Launch, variables: Mapping[str, str]) -> str:
    return launch.given.get("config-file", ("",))[0] or variables.get("ETCD_CONFIG_FILE", "")


ENGINE = Etcd()
