"""What is kept of files that say more than zaudit asks: configuration, environment and command lines hold passwords.

Everything here happens before anything is parsed, stored or recorded.
"""

from __future__ import annotations

import re

# name of the process -> name of the database
SERVERS = {
    "postgres": "postgres",
    "mysqld": "mysql",
    "mariadbd": "mariadb",
    "mongod": "mongodb",
    "etcd": "etcd",
    "redis-server": "redis",
}
PROCESS_ROOT = re.compile(r"/proc/(?:\d+|self)/root/")
CONFIGURATION = re.compile(r"(?:[\w.@#-]+\.(?:conf|cnf|ya?ml)|PG_VERSION)")
_ENVIRON, _MAPS, _CMDLINE = (re.compile(rf"/proc/\d+/{name}") for name in ("environ", "maps", "cmdline"))
_STATUS = re.compile(r"/proc/\d+/status")
_STAT, _NAMED = re.compile(r"/proc/[\w-]+/stat"), re.compile(r"\d+ \((.*)\) ", re.DOTALL)
_VARIABLES = re.compile(
    r"(?:HOME|PGDATA|ETCD_(?:DATA_DIR|WAL_DIR|CONFIG_FILE|UNSAFE_NO_FSYNC)|M(?:YSQL|ARIADB)_(?:HOME|GROUP_SUFFIX)"
    r"|LD_PRELOAD)="
)
_SECRET = re.compile(r"(--?[\w-]*(?:pass|auth|secret|token|cred|key)[\w-]*=).+", re.IGNORECASE | re.DOTALL)
# lines of postgresql.conf, my.cnf and redis.conf that a rule or the way to a file depends on
_SETTING = re.compile(
    r"\s*(?:\[|!include|include(?:_if_exists|_dir)?\b|fsync\b|synchronous_commit\b|full_page_writes\b|wal_(?:sync_method"
    r"|recycle|init_zero)\b|data_directory\b|config_file\b|dir\s|append(?:only|fsync)\b|datadir\b|sync[_-]binlog\b"
    r"|(?:loose[_-])?(?:skip[_-]|disable[_-]|enable[_-])?(?:innodb|log[_-]bin)[\w-]*\s*(?:=|$))",
    re.IGNORECASE,
)
_YAML = re.compile(r"(\s*[\w.-]+:)\s+\S.*")
_YAML_KEPT = re.compile(r"\s*(?:dbPath|enabled|data-dir|wal-dir|unsafe-no-fsync):")


def told(path: str, text: str) -> str | None:
    """The part of a file that is kept, or None: nothing of it. Lines of a configuration that are left out become comments:
    their number stays."""
    if _STAT.fullmatch(path):  # of processes only database servers, and the first, which shows that they can be seen
        name = _NAMED.match(text)
        return text if name is None or name[1] in SERVERS or path == "/proc/1/stat" else None
    if _STATUS.fullmatch(path):  # who runs it
        return "".join(f"{line}\n" for line in text.splitlines() if line.startswith("Uid:"))
    if _ENVIRON.fullmatch(path):
        return "".join(f"{each}\0" for each in text.split("\0") if _VARIABLES.match(each))
    if _MAPS.fullmatch(path):  # the names of the files alone
        names = {fields[5] for line in text.splitlines() if len(fields := line.split(maxsplit=5)) == 6}
        return "".join(f"{name}\n" for name in sorted(names))
    if _CMDLINE.fullmatch(path):
        return "\0".join(_SECRET.sub(r"\1", each) for each in text.split("\0"))
    if PROCESS_ROOT.match(path) and not path.endswith("/mysqld-auto.cnf"):  # JSON, in which secrets are encrypted
        keep = _of_yaml if path.endswith((".yml", ".yaml", "/mongod.conf")) else _of_settings
        return "\n".join(map(keep, text.split("\n")))
    return text


def _of_settings(line: str) -> str:
    if not line.strip() or _SETTING.match(line):
        return line
    return "#"


def _of_yaml(line: str) -> str:
    if _YAML_KEPT.match(line) or not (found := _YAML.fullmatch(line)):
        return "" if line.lstrip().startswith(("-", "#")) else line
    return found[1]
