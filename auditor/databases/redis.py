"""Redis."""

from auditor.databases.engine import Engine

ENGINE = Engine(
    name="redis",
    title="Redis",
    page_bytes=0,
    page_source="Redis manual, Persistence: its files are written from end to end",
    processes=("redis-server",),
    data_options=("--dir",),
    at_home=True,  # redis.conf of 7.0, dir
)
