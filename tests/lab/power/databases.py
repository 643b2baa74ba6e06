"""In the guest: database servers as programs that commit."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, NoReturn

from .commit import Ack, Left

ONCE = threading.Lock()
STARTS_S, BROKEN_S = 240, 40  # on a busy machine; with an error in its log
ENDS = {"socket": ".sock", "pid-file": ".pid", "log-error": ".log"}  # of what MariaDB has outside of its data


class Server:
    """One INSERT a transaction through the client of a server, which runs as USER; a checkpoint after every 40 commits.
    TEMPLATE: an empty database, made once, for that takes half a minute in an emulated machine."""

    USER: ClassVar[str]
    TEMPLATE: ClassVar[Path]
    CHECKPOINT: ClassVar[str]

    def __init__(self, data: Path) -> None:
        self.data = data / self.USER

    @property
    def client(self) -> str:
        """It reads statements and prints rows without a frame."""
        raise NotImplementedError

    @property
    def pid(self) -> str:
        """Of the server."""
        raise NotImplementedError

    def as_user(self, command: str) -> Sequence[str]:
        return ("setpriv", f"--reuid={self.USER}", f"--regid={self.USER}", "--clear-groups", "sh", "-c", command)

    def sh(self, command: str, text: str = "") -> "subprocess.CompletedProcess[str]":
        words = self.as_user(command)
        return subprocess.run(words, cwd="/tmp", capture_output=True, text=True, timeout=300, input=text, check=False)

    def strict(self, command: str) -> None:
        done = self.sh(command)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stdout[-300:]} {done.stderr[-300:]}")

    def query(self, text: str) -> "subprocess.CompletedProcess[str]":
        return self.sh(self.client, text)

    def copy(self, make: str) -> None:
        """make: the command that makes the template."""
        shutil.chown(self.data.parent, self.USER, self.USER)
        with ONCE:
            if not self.TEMPLATE.exists():
                self.strict(make)
        self.strict(f"cp -a {self.TEMPLATE} {self.data}")

    def run(self, ack: Ack) -> NoReturn:
        pipe = subprocess.PIPE
        client = subprocess.Popen(self.as_user(f"exec {self.client}"), stdin=pipe, stdout=pipe, text=True, cwd="/tmp")
        assert client.stdin
        assert client.stdout
        number = 0
        while True:
            client.stdin.write(f"INSERT INTO t VALUES ({number}, '{os.urandom(100).hex()}') RETURNING n;\n")
            client.stdin.flush()
            if client.stdout.readline().strip() != str(number):
                time.sleep(60)
            ack(number)
            number += 1
            if number % 40 == 0:
                client.stdin.write(f"{self.CHECKPOINT}\n")

    def kill(self) -> None:
        """With all its processes, as the kernel does without a word when memory is short."""
        pid = self.pid
        for each in (pid, *Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(each), signal.SIGKILL)
        time.sleep(1)


class Postgres(Server):
    """The WAL in ``log`` when that is apart. settings: more lines of postgresql.conf.

    With each checkpoint a new WAL segment, so that old segments are removed all the time, as on a busy server.
    """

    USER, TEMPLATE = "postgres", Path("/tmp/postgres")
    CHECKPOINT = "DO $$ BEGIN PERFORM pg_switch_wal(); END $$;\nCHECKPOINT;"

    def __init__(self, data: Path, log: Path, settings: str = "") -> None:
        super().__init__(data)
        self.settings, self.log = settings, log / "wal" if log != data else None
        self.bin = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"))), None)

    def start(self) -> "subprocess.CompletedProcess[str]":
        return self.sh(f"{self.bin}/pg_ctl -D {self.data} -w -t 100 -l {self.data}.log start")

    @property
    def client(self) -> str:
        return f"psql -h /tmp -p {self.port} -XqAt -v ON_ERROR_STOP=1 postgres"

    @property
    def pid(self) -> str:
        return (self.data / "postmaster.pid").read_text().split()[0]

    @property
    def port(self) -> int:
        return 5432 + sum(map(ord, str(self.data))) % 1000

    def prepare(self) -> None:
        if self.log:
            shutil.chown(self.log.parent, self.USER, self.USER)
        self.copy(f"{self.bin}/initdb -A trust -k -N --locale=C -D {self.TEMPLATE} --wal-segsize=1")
        if self.log:
            self.strict(f"mv {self.data}/pg_wal {self.log} && ln -s {self.log} {self.data}/pg_wal")
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(
                f"port={self.port}\nlisten_addresses=''\nunix_socket_directories='/tmp'\nmax_wal_size=8MB\nmin_wal_size=2MB\n"
                "shared_buffers=16MB\nmax_connections=10\nwal_init_zero=off\nwal_recycle=off\nautovacuum=off\n"
                f"{self.settings}\n"
            )
        self.start()
        made = self.query("CREATE TABLE t (n bigint PRIMARY KEY, body text); CHECKPOINT;")
        if made.returncode:
            raise RuntimeError(made.stderr)

    def stop(self, *, killed: bool) -> None:
        if killed:
            self.kill()
        else:
            self.sh(f"{self.bin}/pg_ctl -D {self.data} -m fast -t 20 stop")

    def check(self) -> Left:
        left, started = Left(), self.start()
        if started.returncode:
            log = Path(f"{self.data}.log")
            words = log.read_text(errors="replace") if log.exists() else started.stderr
            wrong = [line for line in words.splitlines() if "PANIC" in line or "FATAL" in line]
            left.damage.append(f"PostgreSQL does not start: {(wrong or [started.stdout[-300:]])[-1]}")
            return left
        try:
            return self._read()
        finally:
            self.sh(f"{self.bin}/pg_ctl -D {self.data} -m immediate stop")

    def _read(self) -> Left:
        left = Left()
        rows = self.query("SET enable_indexscan=off; SET enable_indexonlyscan=off; SELECT n FROM t;")
        left.have = {int(word) for word in rows.stdout.split()}
        check = self.query("CREATE EXTENSION IF NOT EXISTS amcheck; SELECT bt_index_check('t_pkey', true);")
        left.damage = [text.strip()[-300:] for text in (rows.stderr, check.stderr) if text.strip()]
        return left


class MariaDB(Server):
    """InnoDB without a binary log. A checkpoint writes all pages of the table; the head of the log follows within a second.
    settings: more options of the server."""

    USER, TEMPLATE = "mysql", Path("/tmp/mariadb")
    CHECKPOINT = "FLUSH TABLES t FOR EXPORT; UNLOCK TABLES;"

    def __init__(self, data: Path, _log: Path, *settings: str) -> None:
        super().__init__(data)
        self.settings = settings
        self.here = Path("/tmp", "-".join(self.data.parts[1:]))  # a socket has a short name

    @property
    def client(self) -> str:
        return f"mariadb --no-defaults --socket={self.here}.sock --user=root -NBn lab"

    @property
    def pid(self) -> str:
        return Path(f"{self.here}.pid").read_text().strip()

    def start(self) -> bool:
        """False where it does not come up; its log says why."""
        Path(f"{self.here}.log").unlink(missing_ok=True)
        words = [f"--datadir={self.data}", *(f"--{name}={self.here}{end}" for name, end in ENDS.items())]
        words += [
            "--skip-networking",
            "--skip-grant-tables",
            "--innodb-buffer-pool-size=16M",
            "--innodb-use-native-aio=0",
        ]
        command = " ".join(
            ("exec /usr/sbin/mariadbd --no-defaults", *words, "--innodb-max-dirty-pages-pct=0", *self.settings)
        )
        server = subprocess.Popen(self.as_user(command), cwd="/tmp", start_new_session=True)
        begun = time.monotonic()
        while server.poll() is None and time.monotonic() - begun < (BROKEN_S if self.errors() else STARTS_S):
            if not self.sh(self.client.removesuffix(" lab"), "SELECT 1;").returncode:
                return True
            time.sleep(0.5)
        server.kill()
        server.wait()
        return False

    def prepare(self) -> None:
        options = "--skip-test-db --innodb-log-file-size=4M"
        self.copy(f"mariadb-install-db --no-defaults --datadir={self.TEMPLATE} {options}")
        self.start()
        made = self.sh(
            self.client.removesuffix(" lab"),
            "CREATE DATABASE lab; CREATE TABLE lab.t (n bigint PRIMARY KEY, body text) ENGINE=InnoDB;",
        )
        if made.returncode:
            raise RuntimeError(made.stderr + Path(f"{self.here}.log").read_text()[-500:])

    def stop(self, *, killed: bool) -> None:
        if killed:
            self.kill()
        else:
            self.sh(f"mariadb-admin --no-defaults --socket={self.here}.sock --user=root --shutdown-timeout=20 shutdown")

    def check(self) -> Left:
        if not self.start():
            return Left(damage=[f"MariaDB does not start: {(*self.errors(), 'no error is in its log')[0]}"])
        left = Left()
        rows = self.query("SELECT n FROM t;")
        left.have = {int(word) for word in rows.stdout.split()}
        state = self.query("CHECK TABLE t EXTENDED;")
        words = [line for line in state.stdout.splitlines() if not line.endswith("\tOK")]
        left.damage = [text.strip()[-300:] for text in (rows.stderr, state.stderr, *words) if text.strip()]
        self.kill()
        return left

    def errors(self) -> list[str]:
        """In its log."""
        log = Path(f"{self.here}.log")
        return (
            [line for line in log.read_text(errors="replace").splitlines() if "[ERROR]" in line] if log.exists() else []
        )
