"""SQLite: a library, so that there is no server to be found."""

from auditor.databases.engine import Engine

ENGINE = Engine(
    name="sqlite",
    title="SQLite",
    page_bytes=4096,
    page_source="SQLite manual: PRAGMA page_size, 4096 bytes by default since 3.12.0",
    profile="sqlite",
)
