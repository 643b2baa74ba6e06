"""etcd: what is known of it. (etcd manual, Configuration options; server/embed/config.go)"""

from __future__ import annotations

from collections.abc import Sequence

from auditor.databases.engine import Engine, Line, Setting, boolean, path, word
from auditor.databases.forms import dashed, yaml
from auditor.facts import flag


def arguments(given: Sequence[str]) -> list[Line]:
    """As Go's flag reads them: one dash or two."""
    values = {name: (name, path) for name in ("data-dir", "wal-dir", "config-file")}
    return dashed(given, values, {"unsafe-no-fsync": word})


ENGINE = Engine(
    name="etcd",
    title="etcd bbolt",
    page_bytes=4096,
    page_source="etcd-io/bbolt: the page size is that of the operating system, 4096 bytes on x86-64",
    processes=("etcd",),
    settings=(
        Setting("unsafe-no-fsync", word, "no_fsync", flag("etcd --unsafe-no-fsync"), "false", boolean),
        Setting("data-dir", path),
        Setting("wal-dir", path),
    ),
    files=(("*.yml", yaml), ("*.yaml", yaml)),
    arguments=arguments,
    variables={"ETCD_DATA_DIR": path, "ETCD_WAL_DIR": path, "ETCD_CONFIG_FILE": path, "ETCD_UNSAFE_NO_FSYNC": word},
    data_options=("data-dir",),
    data_variable="ETCD_DATA_DIR",
    compared=("no_fsync",),
    profile="etcd",
)
