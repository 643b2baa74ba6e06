"""etcd."""

from auditor.databases.engine import Engine

ENGINE = Engine(
    name="etcd",
    title="etcd bbolt",
    page_bytes=4096,
    page_source="etcd-io/bbolt: the page size is that of the operating system, 4096 bytes on x86-64",
    processes=("etcd",),
    data_options=("--data-dir", "-data-dir"),
    data_variable="ETCD_DATA_DIR",
    profile="etcd",
)
