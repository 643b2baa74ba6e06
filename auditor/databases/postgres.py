"""PostgreSQL."""

from auditor.databases.engine import Engine

ENGINE = Engine(
    name="postgres",
    title="PostgreSQL",
    page_bytes=8192,
    page_source="PostgreSQL manual, Preset Options: block_size, 8192 bytes unless built otherwise",
    processes=("postgres",),
    data_options=("-D", "--data_directory", "-cdata_directory"),
    data_variable="PGDATA",
    at_home=True,  # src/backend/utils/init/miscinit.c ChangeToDataDir
    profile="postgres",
)
