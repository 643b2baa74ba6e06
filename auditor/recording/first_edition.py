"""What recordings of the first edition do not say of themselves: how the lines of long answers were chosen then, and what the
allow-lists of files that may hold passwords were. Nothing is ever added here."""

from __future__ import annotations

# command -> digest of the pattern
CHOSEN: dict[tuple[str, ...], str] = {("zpool", "history"): "e6985e6d9e4a20f9", ("dmesg", "-k"): "8dc5393592ae7229"}

_MYSQL = (
    "datadir innodb_data_home_dir innodb_dedicated_server innodb_doublewrite "
    "innodb_flush_log_at_trx_commit innodb_flush_method innodb_log_group_home_dir innodb_page_size "
    "innodb_undo_directory log_bin sync_binlog "
)
_SETTINGS = {
    "etcd": ("data-dir unsafe-no-fsync wal-dir "),
    "mongodb": ("storage.dbPath storage.journal.enabled "),
    "postgres": (
        "config_file data_directory fsync full_page_writes include include_dir include_if_exists "
        "synchronous_commit temp_tablespaces wal_init_zero wal_recycle wal_sync_method "
    ),
    "redis": ("appendfsync appendonly dir include "),
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
}
_OTHERS = (
    "$ETCD_CONFIG_FILE $ETCD_DATA_DIR $ETCD_UNSAFE_NO_FSYNC $ETCD_WAL_DIR $HOME $MARIADB_GROUP_SUFFIX "
    "$MARIADB_HOME $MYSQL_GROUP_SUFFIX $MYSQL_HOME $PGDATA etcd() mariadbd() mongod() mysqld() postgres() "
    "redis-server() "
)
# after :func:`auditor.databases.configuration.allowed`
KEPT = frozenset(
    (*(f"{engine} {name}" for engine, names in _SETTINGS.items() for name in names.split()), *_OTHERS.split())
)
