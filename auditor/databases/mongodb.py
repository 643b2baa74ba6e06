"""MongoDB."""

from auditor.databases.engine import Engine

ENGINE = Engine(
    name="mongodb",
    title="MongoDB WiredTiger",
    page_bytes=32768,
    page_source="WiredTiger manual: leaf_page_max, 32 KiB by default",
    processes=("mongod",),
    data_options=("--dbpath",),
    profile="mongodb",
)
