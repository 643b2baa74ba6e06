"""MySQL and MariaDB."""

from auditor.databases.engine import Engine

ENGINE = Engine(
    name="mysql",
    title="MySQL InnoDB",
    page_bytes=16384,
    page_source="MySQL manual: innodb_page_size, 16 KiB by default",
    processes=("mysqld",),
    data_options=("--datadir", "-h"),
    at_home=True,  # sql/mysqld.cc my_setwd
    profile="mysql-innodb",
)
MARIADB = ENGINE._replace(
    name="mariadb",
    title="MariaDB InnoDB",
    page_source="MariaDB manual: innodb_page_size, 16 KiB by default",
    processes=("mariadbd",),
)
