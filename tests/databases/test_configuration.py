"""What is kept of command lines, environments and files: every setting that a parser asks for, and nothing else."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from types import FrameType
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from auditor.databases import ENGINES, settings
from auditor.databases.configuration import form
from auditor.databases.engine import ARGUMENT, DOUBT, LINE, LINES, LONGEST, WITHHELD, Engine, Setting
from auditor.facts import Fact, Known, Subject
from auditor.host import sql
from auditor.host.live import allowed_part
from auditor.host.request import Files
from tests.folded import for_each

SECRET = "S3CRET"
FILES = {"postgres": "postgresql.conf", "mysql": "my.cnf", "mariadb": "my.cnf", "mongodb": "mongod.conf",
         "etcd": "etcd.yml", "redis": "redis.conf", "valkey": "valkey.conf"}  # fmt: skip
SERVERS = [each for each in ENGINES.values() if each.processes]
SETTINGS = [(engine, each) for engine in SERVERS for each in engine.settings]


def configuration(engine: str, text: str) -> str:
    found = allowed_part(f"/proc/9/root/etc/{FILES[engine]}", text)
    assert found is not None
    return found


def command_line(*words: str) -> list[str]:
    found = allowed_part("/proc/9/cmdline", "".join(f"{each}\0" for each in words))
    assert found is not None
    assert found.endswith("\0")
    return found[:-1].split("\0")


def value_of(setting: Setting) -> str:
    return next(each for each in ("/srv/db", "on") if setting.shape(each))


def spelt(engine: Engine, name: str, value: str) -> str:
    match FILES[engine.name].rpartition(".")[2]:
        case "cnf":
            return f"{name}={value}"
        case "yml":
            return f"{name}: {value}"
        case _:
            return {**dict.fromkeys(("redis", "valkey"), f"{name} {value}"), "mongodb": f"{name}: {value}"}.get(
                engine.name, f"{name} = {value}"
            )


@pytest.mark.parametrize(("engine", "setting"), SETTINGS, ids=[f"{e.name}-{s.name}" for e, s in SETTINGS])
def test_the_line_of_every_setting_is_kept_and_says_the_same(engine: Engine, setting: Setting) -> None:
    line = spelt(engine, setting.name, value_of(setting))
    assert configuration(engine.name, f"{line}\n") == f"{line}\n"
    reader, known = form(FILES[engine.name]) or pytest.fail("no form")
    (read, _) = reader(f"{line}\n", known)
    assert (read.kind, read.name, read.value) == ("setting", setting.name, value_of(setting))
    assert known[setting.name] is setting.shape


def test_the_server_itself_is_asked_for_settings_of_the_table_and_its_own_release() -> None:
    """Those that a file cannot set stand in no file."""
    text = sql.script()
    for engine in ("postgres", "mysql"):
        assert [each.name for each in ENGINES[engine].settings if each.fact and f"'{each.name}'" not in text] == []


def test_every_file_of_an_engine_is_read_in_its_own_form() -> None:
    for engine in SERVERS:
        found = form(FILES[engine.name])
        assert found is not None
        assert found[0] in [form for pattern, form in engine.files if fnmatchcase(FILES[engine.name], pattern)]
        assert engine.known.items() <= found[1].items()
    assert allowed_part("/proc/9/root/etc/shadow", "root:x\n") is None


# -- nothing else is kept ---------------------------------------------------------------------------------------------

HIDDEN = [
    ("mongodb", "security:\n  ldap:\n    bind:\n      queryPassword: {0}\n      \"queryPassword2\": {0}\n"),
    ("mongodb", "security:\n  cert: |\n    -----BEGIN PRIVATE KEY-----\n    {0}\n\n    {0}: {0}\n"),
    ("mongodb", "security:\n  keyFile:\n    {0}\n"),
    ("mongodb", "security:\n  - {0}\n"),
    ("mongodb", "security:\n- {0}\n- storage: {0}\n"),
    ("mongodb", "{{password: {0}}}\n"),
    ("mongodb", "storage: {{dbPath: /srv, password: {0}}}\n"),
    ("mongodb", "storage:\n  dbPath: /srv\n    {0}\n"),
    ("mongodb", "storage:\n  dbPath:\n    {0}\n"),
    ("mongodb", "storage:\n  dbPath: |\n    {0}\n"),
    ("mongodb", "storage:\n  dbPath: '{0}={0}'\n"),
    ("mongodb", 'a: "b\nstorage:\n  dbPath: /{0}\n"\n'),
    ("mongodb", "a: {{\nstorage: {{dbPath: /{0}}}\n}}\n"),
    ("mongodb", "# {0}\nstorage: # {0}\n  dbPath: /srv # {0}\n"),
    ("mongodb", "storage:\n  {0}: 1\n  *{0}\n"),
    ("etcd", "initial-cluster-token: {0}\npassword: {0}\n{0}\n"),
    ("postgres", "ssl_passphrase_command = 'echo {0}'\nprimary_conninfo = 'host=a password={0}'\n"),
    ("postgres", "fsync = off # {0}\n#{0}\n[{0}]\ndir {0}\n{0}\n-----BEGIN {0}\n{0}:$6$x:1:0:99999:7:::\n"),
    ("postgres", "data_directory = 'host=a password={0}'\nfsync = 'off {0}'\ninclude = 'x\\n{0}'\nfsync '{0}\n"),
    ("mysql", "[client]\npassword={0}\n[{0}]\n[mysqld]\ninit_connect=\"SET PASSWORD='{0}'\"\ninnodb_{0}=1\n"),
    ("mysql", "[mysqld]\nwsrep_sst_auth=root:{0}\nsync_binlog=0 # {0}\nsync_binlog='0 {0}'\n!{0} /x\n! {0}\nlog_{0}\n"),
    ("mysql", "[mysqld]\ndatadir=mysql://root:{0}@db1/x\nlog_bin='{0} = '\n;{0}\n"),
    ("redis", "requirepass {0}\nmasterauth {0}\nuser default on >{0}\n\"requirepass\" {0}\ndir /srv {0}\nappendonly yes {0}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("engine", "text"), HIDDEN)
def test_no_secret_of_a_file_is_kept(engine: str, text: str) -> None:
    text = text.format(SECRET)
    found = configuration(engine, text)
    assert SECRET not in found
    assert configuration(engine, found) == found
    for name in FILES.values():  # under whatever name it lies there, or is linked to
        if name.rpartition(".")[2] != FILES[engine].rpartition(".")[2] or "dbPath: /S" not in text:
            assert SECRET not in (allowed_part(f"/proc/9/root/etc/{name}", text) or "")


LINES_OF_COMMANDS = [
    ("mysqld", "-p{0}", "--init-connect=SET PASSWORD='{0}'", "--password", "{0}", "--user={0}", "--datadir=a={0}"),
    ("mysqld", "--plugin-load={0}", "--loose-wsrep-sst-auth={0}", "{0}", "-u{0}", "-u", "{0}", "--datadir", "x={0}"),
    ("redis-server", "--requirepass", "{0}", "--masterauth", "{0}", "--user", "default", ">{0}"),
    ("redis-server 127.0.0.1:6379 {0}", "", ""),
    ("mongod", "--sslPEMKeyPassword", "{0}", "--setParameter", "ldapQueryPassword={0}", "--ldapQueryPassword={0}"),
    (
        "postgres",
        "-c",
        "primary_conninfo=host=a password={0}",
        "-cssl_passphrase_command=echo {0}",
        "-h{0}",
        "-k",
        "{0}",
    ),
    ("postgres", "--primary_conninfo=password={0}", "-D", "/srv/x={0}", "-ic", "a={0}", "--", "-D", "{0}", "-Z{0}"),
    ("etcd", "--initial-cluster-token", "{0}", "--name={0}", "--listen-client-urls=https://u:{0}@h", "-x={0}"),
    ("python3", "-c", "{0}", "--config", "/srv/{0}"),
    ("-{0}", "mysqld", "--datadir=/srv/{0}"),
    ("password={0}/postgres", "-D", "/srv"),
]


@pytest.mark.parametrize("words", LINES_OF_COMMANDS)
def test_no_secret_of_a_command_line_is_kept(words: tuple[str, ...]) -> None:
    found = command_line(*(each.format(SECRET) for each in words))
    assert SECRET not in " ".join(found)
    title = words[0].format(SECRET).partition(" ")[2]  # of which the length is kept
    assert found == [WITHHELD] or len(found) == len(words) + bool(title) + len(title)
    assert command_line(*found) == found


def test_an_environment_of_very_many_variables_is_withheld() -> None:
    """As many short ones as fit into the file take a hundred MiB to part; and which of them counts nobody can tell."""
    kept = allowed_part("/proc/9/environ", "PGDATA=/srv/pg\0" + "a\0" * 5000)
    assert kept is not None
    assert f"PGDATA={WITHHELD}\0" in kept
    assert kept.count("=") == kept.count(WITHHELD) > 5
    assert allowed_part("/proc/9/environ", kept) == kept
    with pytest.raises(ValueError, match="withheld"):
        settled("etcd", cmdline="etcd\0", environ="a\0" * 5000)


def test_no_secret_of_an_environment_is_kept() -> None:
    given = (
        f"ETCD_ROOT_PASSWORD={SECRET}\0PGPASSWORD={SECRET}\0HOME=password={SECRET}\0PGDATA=a\n{SECRET}\0{SECRET}\0=\0"
    )
    assert allowed_part("/proc/9/environ", given) == f"HOME={WITHHELD}\0PGDATA={WITHHELD}\0"


WORDS = ["storage", "dbPath", "journal", "enabled", "fsync", "sync_binlog", "datadir", "dir", "include", "data-dir", "loose-",
         "skip-", "[mysqld]", "!include", ":", ": ", "=", " ", "  ", "\t", "\n", "\n  ", "'", '"', "\\", "#", "{", "}", "- ",
         "|", "&a", "/srv", "on", "0", "---", "-", "(withheld)", "\r", "\x0b", "\u2028", "é"]  # fmt: skip


def texts() -> st.SearchStrategy[str]:
    return st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=40).map("".join)


@given(engine=st.sampled_from(list(FILES)), text=texts())
def test_whatever_a_file_says_only_lines_of_known_settings_are_kept(engine: str, text: str) -> None:
    found = configuration(engine, text)
    assert configuration(engine, found) == found
    reader, known = form(FILES[engine]) or pytest.fail("no form")
    lines = reader(text, known)
    assert "\n".join(each.text for each in lines) == found
    assert len(lines) == text.count("\n") + 1
    for line in lines:
        match line.kind:
            case "setting":
                name = line.name.removeprefix("!").removesuffix("dir")
                assert any(each.startswith(name) for each in (*known, "include")), line
                value = line.value
                assert value in (WITHHELD, "(skipped)") or len(value) <= LONGEST, line
                assert value in (WITHHELD, "(skipped)") or (value.isprintable() and "=" not in value), line
                rest = line.text.replace(value, "").replace(line.name, "")
                assert all(not each.isalnum() for each in rest.replace("skip_", "")), line
            case "group":
                assert line.text == f"[{line.name}]"
            case "doubt":
                assert line == DOUBT
            case "other":
                assert line.text in ("", "#")


@given(
    server=st.sampled_from([process for each in SERVERS for process in each.processes]),
    words=st.lists(st.one_of(texts().map(lambda each: each.replace("\0", "")), st.sampled_from(
        ["-D", "-c", "-F", "--datadir", "--config", "-h", "--dbpath", "-iF", "--", "--sync-bin", "--dir", "-f", "--log-bin"]
    )), max_size=8),
)  # fmt: skip
def test_whatever_a_command_line_says_its_words_are_kept_in_their_places(server: str, words: list[str]) -> None:
    found = command_line(server, *words)
    assert len(found) == len(words) + 1
    assert command_line(*found) == found
    engine = next(each for each in SERVERS if server in each.processes)
    for line in engine.arguments(words):
        if line.kind == "other" and line.text not in (ARGUMENT, ""):  # an option before its value
            assert line.text.startswith("-")
            assert line.text.lstrip("-").replace("-", "").replace("_", "").isalpha()
        assert len(line.value) <= LONGEST
        assert "=" not in line.value


@given(text=texts(), secret=st.from_regex(r"[A-Z]{12}", fullmatch=True), engine=st.sampled_from(list(FILES)))
def test_a_word_that_is_no_path_and_no_value_is_nowhere(text: str, secret: str, engine: str) -> None:
    """In front of a password there is always a name; none of these is one of ours."""
    assume("\\" not in text)
    for line in (f"password{text}={secret}!", f"x: {secret}!", f"masterauth {secret}!", f"'{secret}'!", f"{secret}!"):
        assert secret not in configuration(engine, f"{text}\n{line}\n")


# -- what is withheld is not "not set" --------------------------------------------------------------------------------

PROC = "/proc/9"
BASE: dict[str, dict[str, str]] = {
    "postgres": {"cmdline": "postgres\0-D\0/srv\0", "root/srv/postgresql.auto.conf": ""},
    "mysql": {"cmdline": "mysqld\0--defaults-file=/etc/my.cnf\0", "environ": "", "root/srv/mysqld-auto.cnf": "{}"},
    "mariadb": {"cmdline": "mariadbd\0--defaults-file=/etc/my.cnf\0", "environ": ""},
    "mongodb": {"cmdline": "mongod\0-f\0/etc/mongod.conf\0"},
    "etcd": {"cmdline": "etcd\0--config-file\0/etc/etcd.yml\0", "environ": ""},
    "redis": {"cmdline": "redis-server *:6379\0"},
    "valkey": {"cmdline": "valkey-server *:6379\0"},
}
PLACE = {"postgres": "srv/postgresql.conf", "redis": "etc/redis/redis.conf",
         "valkey": "etc/valkey/valkey.conf"}  # fmt: skip
FIRST = {"mysql": "[mysqld]\n", "mariadb": "[mysqld]\n", "redis": "dir /srv\n", "valkey": "dir /srv\n"}


def settled(engine: str, text: str = "", **more: str) -> dict[str, Any]:
    """What a server of this engine is found to do whose file says this, as it is read from the host."""
    place = f"root/{PLACE.get(engine, f'etc/{FILES[engine]}')}"
    files = {**BASE[engine], place: FIRST.get(engine, "") + text, **more}
    said = {
        f"{PROC}/{name}": kept
        for name, each in files.items()
        if (kept := allowed_part(f"{PROC}/{name}", each)) is not None
    }
    errors = {f"{PROC}/root/srv/aria_log_control": "no such file"}
    links = {f"{PROC}/cwd": "/srv", f"{PROC}/exe": "/usr/sbin/x"}
    facts = settings.database_settings.parse(Files(said, links, errors), Subject("database", f"{engine} 9"))
    return {fact.name: fact.value.value for fact in facts if isinstance(fact, Fact) and isinstance(fact.value, Known)}


def test_two_settings_that_were_filtered_and_taken_for_the_default() -> None:
    assert settled("postgres", "temp_tablespaces = 'fast'\n")["temp_tablespaces"] == ("fast",)
    assert settled("postgres")["temp_tablespaces"] == ()
    assert settled("mysql", "loose-sync_binlog=0\n")["sync_binlog"] == 0
    assert settled("mysql")["sync_binlog"] == 1
    with pytest.raises(ValueError, match="sync_binlo may be short for sync_binlog"):
        settled("mysql", "sync_binlo=0\n")


IN_DOUBT = [
    ("mysql", "maximum-sync_binlog=0\n"),
    ("mysql", "s=0\n"),
    ("mysql", "loose-skip-innodb-doub\n"),
    ("mysql", "plugin-innodb-flush=0\n"),
    ("mysql", "!includes /etc/x.cnf\n"),
    ("mysql", "sync_binlog='0 '0\n"),
    ("mysql", "a=" + "x" * LINE + "\n"),
    ("mysql", "sync_binlog=" + "0" * 70 + "\n"),
    ("mysql", "datadir=/srv/password=x\n"),
    ("postgres", "fsync = off off\n"),
    ("postgres", "fsync: off\n"),
    ("postgres", "fsync = 'of\\146'\n"),
    ("postgres", "x = 'a\n"),
    ("postgres", "include = 'a=b.conf'\n"),
    ("postgres", "include = 'redis.conf'\n"),
    ("postgres", "#" * (LINE + 1) + "\n"),
    ("postgres", "\n" * (LINES + 1)),
    ("mongodb", "storage: {journal: {enabled: false}}\n"),
    ("mongodb", "storage: &a\n  journal:\n    enabled: false\n"),
    ("mongodb", "<<: *a\n"),
    ("mongodb", '"stor\\x61ge":\n  journal:\n    enabled: false\n'),
    ("mongodb", "storage:\n  journal:\n    enabled: true\n      false\n"),
    ("mongodb", "__rest: http://x\n"),
    ("mongodb", "storage:\n  journal:\n    enabled:\n      __exec: x\n"),
    ("mongodb", "a: b\n---\nstorage:\n  journal:\n    enabled: false\n"),
    ("mongodb", "storage:\n\tjournal:\n"),
    ("mongodb", "systemLog:\n  path: '/x\nstorage:\n  journal:\n    enabled: false\n"),
    ("etcd", "Unsafe-No-Fsync: true\n"),
    ("etcd", "? unsafe-no-fsync\n: true\n"),
    ("mongodb", "systemLog:\n  path:\n    - &a {x:\nstorage:\n  journal:\n    enabled: false\n"),
    ("mongodb", "systemLog: !x 'y\nstorage:\n  journal:\n    enabled: false\n"),
    ("redis", '"appendonly" no\n'),
    ("redis", "appendonly yes no\n"),
    ("redis", "include /etc/redis/more.conf\n"),
]  # fmt: skip


@pytest.mark.parametrize(("engine", "text"), IN_DOUBT, ids=[f"{engine}-{text[:30]!r}" for engine, text in IN_DOUBT])
def test_what_may_be_a_setting_leaves_nothing_known(engine: str, text: str) -> None:
    assert settled(engine)
    with pytest.raises(
        ValueError,
        match=r"withheld|could not be told|may be short|which was not read|was not read|not read from a file",
    ):
        settled(engine, text)


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("mysql", ["--sync-binlo=0"]),
        ("mysql", ["--maximum-sync-binlog", "0"]),
        ("mysql", ["--defaults-f=/x"]),
        ("mysql", ["-p" + SECRET]),
        ("mysql", ["--datadir", "x=y"]),
        ("postgres", ["-Zx"]),
        ("postgres", ["-c", "config_file=a=b"]),
        ("postgres", ["-iFF"]),
        ("mongodb", ["--dbpath"]),
        ("mongodb", ["-f/etc/mongod.conf"]),
        ("redis", ["-"]),
        ("redis", ["--dir"]),
        ("etcd", ["--data-dir=a=b"]),
    ],
)
def test_a_command_line_in_doubt_leaves_nothing_known(engine: str, words: list[str]) -> None:
    line = BASE[engine]["cmdline"] + "".join(f"{each}\0" for each in words)
    with pytest.raises(ValueError, match=r"withheld|could not be told|may be short"):
        settled(engine, cmdline=line)


def test_a_file_that_is_kept_as_that_of_another_engine_leaves_nothing_known() -> None:
    """By its name it would be: all that stands in it is a comment there."""
    more = {"root/srv/redis.conf": "fsync = off\n"}
    assert allowed_part(f"{PROC}/root/srv/redis.conf", "fsync = off\n") == "#\n"
    with pytest.raises(ValueError, match="not read from a file of this name"):
        settled("postgres", "include 'redis.conf'\n", **more)
    assert settled("postgres", "include 'more.conf'\n", **{"root/srv/more.conf": "fsync = off\n"})["fsync"] is False


def test_a_command_line_of_another_program_or_without_end_is_withheld() -> None:
    for line in ("python3\0-m\0postgres\0", "mysqld\0", f"postgres\0{'x' * 65536}\0", "postgres\0" + "x\0" * 4097):
        with pytest.raises(ValueError, match="withheld"):
            settled("postgres", cmdline=line)


def test_settings_as_the_servers_take_them() -> None:
    assert settled("mysql", "sync_binlog=0#x\n")["sync_binlog"] == 0
    assert settled("mysql", cmdline=BASE["mysql"]["cmdline"] + "--sync-binlog\x000\0")["sync_binlog"] == 0
    assert settled("mysql", "[client]\n\v[mysqld]\nsync_binlog=0\n")["sync_binlog"] == 0
    assert settled("mysql", "log-bin\nSKIP-LOG-BIN\n")["sync_binlog"] == 1
    assert settled("mysql", "enable-log-bin\ninnodb_page_size=8k\n")["page_bytes"] == 8192
    for text, kind in (("enable-innodb-doublewrite=0", "OFF"), ("skip_innodb_doublewrite='0'", "ON"), ("", "ON")):
        assert settled("mysql", f"{text}\n")["doublewrite"] == kind
    assert settled("mysql", "disable-log-bin=0\nsync_binlog=0\n")["sync_binlog"] == 0
    assert settled("mysql", "disable-log-bin=OFF\nsync_binlog=0\n")["sync_binlog"] == 1
    static = '"mysql_server_static_options": {"innodb_page_size": {"Value": "4096"}}'
    kept_on = f'{{"mysql_server": {{"sync_binlog": {{"Value": "0"}}, {static}}}}}'
    persisted = settled("mysql", **{"root/srv/mysqld-auto.cnf": kept_on})
    assert (persisted["sync_binlog"], persisted["page_bytes"]) == (0, 4096)
    assert settled("postgres", "fsync=off#\n")["fsync"] is False
    assert settled("postgres", "x = 'a\x0bfsync = off'\n")["fsync"] is True
    assert settled("postgres", "x = 'it''s'\nFSYNC 'off'\n")["fsync"] is False
    assert settled("postgres", cmdline="postgres\0-iF\0-D/srv\0")["fsync"] is False
    assert settled("postgres", cmdline="postgres\0-p\x005432\0-cfsync=off\0-D\0/srv\0")["fsync"] is False
    assert settled("mongodb", "---\n'storage':\n  \"journal\":\n    enabled: 'false' # why\n")["journal"] is False
    assert settled("mongodb", "storage.journal.enabled: false\n")["journal"] is False
    assert settled("mongodb", "net:\n  x: [1, 'a']\n  y: |\n    don't: '\n  z: it's\n")["journal"] is True
    assert settled("mongodb", cmdline="mongod\0-dbpath\0/srv\0--nojournal\0")["journal"] is False
    assert settled("etcd", "name: 'x'\nunsafe-no-fsync: true\n")["no_fsync"] is True
    assert settled("etcd", cmdline="etcd\0", environ="ETCD_UNSAFE_NO_FSYNC=true\0")["no_fsync"] is True
    assert settled("mysql", cmdline=BASE["mysql"]["cmdline"] + "-W2\0-uroot\0-u\0-h\0")["sync_binlog"] == 1
    assert settled("redis", "APPENDONLY yes\n")["appendonly"] is True
    assert settled("redis", cmdline="redis-server\0--appendonly\0yes\0")["appendonly"] is True


def test_a_hidden_file_counts_where_the_server_includes_it() -> None:
    """As MariaDB 10.11 does, which reads .x.cnf; PostgreSQL passes over .x.conf."""
    inside = {"root/etc/mysql/conf.d/.x.cnf": "[mysqld]\nsync_binlog=0\n"}
    assert settled("mysql", "!includedir /etc/mysql/conf.d/\n", **inside)["sync_binlog"] == 0
    inside = {"root/srv/conf.d/.x.conf": "fsync = off\n", "root/srv/conf.d/y.conf": "wal_recycle = off\n"}
    found = settled("postgres", "include_dir = 'conf.d'\n", **inside)
    assert (found["fsync"], found["wal_recycle"]) == (True, False)


# -- bounded ----------------------------------------------------------------------------------------------------------

HOSTILE = [
    "-key",
    "\t",
    " ",
    "'",
    '"',
    "''",
    "\\",
    "#",
    "a",
    "=",
    ":",
    "{",
    "[",
    "- ",
    "\n",
    "\n ",
    "\n\t",
    "a:\n",
    "'\n",
    "#\n",
    "---\n",
    "storage:\n",
    "storage:\n  dbPath: /a\n   b\n",
    "s=\n",
    "loose-",
    "x='",
    "dir \n",
    "!a\n",
    "\x00",
    "-F\0",
    "--x\0",
]


def steps(path: str, text: str) -> int:
    """How many lines of Python it takes to read a file."""
    count = 0

    def step(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += 1
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        allowed_part(path, text)
    finally:
        sys.settrace(before)
    return count


def hostile() -> list[tuple[str, str]]:
    paths = (
        *(f"/proc/9/root/{name}" for name in (*FILES.values(), "mysqld-auto.cnf")),
        "/proc/9/cmdline",
        "/proc/9/environ",
    )
    return list(itertools.product(paths, HOSTILE))


@pytest.mark.slow
@for_each("path, unit", hostile())
def test_twice_as_much_takes_no_more_than_twice_as_long(path: str, unit: str) -> None:
    """By the steps of the program, not by the clock. No regular expression is used, which would hide its own."""
    first = "mysqld\0--datadir=" if path.endswith("cmdline") else "sync_binlog="
    one, two = (steps(path, first + unit * count) for count in (200, 400))
    assert two <= 2.2 * one + 200


def code(function: Any) -> Iterator[Any]:
    """Of a function, of those inside it, and of those of its module that it calls."""
    waiting, seen = [function.__code__], set()
    while waiting:
        found = waiting.pop()
        if found not in seen:
            seen.add(found)
            yield found
            waiting += [each for each in found.co_consts if hasattr(each, "co_names")]
            names = (function.__globals__.get(name) for name in found.co_names)
            waiting += [each.__code__ for each in names if hasattr(each, "__code__")]


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_no_regular_expression_reads_what_others_wrote(engine: Engine) -> None:
    readers = [engine.arguments, *(read for _, read in engine.files)]
    assert [each.co_name for reader in readers for each in code(reader) if "re" in each.co_names] == []
