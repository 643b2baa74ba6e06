"""In the guest: PostgreSQL as a program that commits."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import NoReturn

from .commit import Ack, Left

TEMPLATE, ONCE = Path("/tmp/template"), threading.Lock()


class Postgres:
    """PostgreSQL through psql, one INSERT a transaction; the WAL in ``log`` when that is apart.

    After every 40 commits a new WAL segment and a CHECKPOINT, so that old segments are removed all the time, as on a busy
    server. settings: more lines of postgresql.conf.
    """

    def __init__(self, data: Path, log: Path, settings: str = "") -> None:
        self.settings = settings
        self.data, self.log = data / "pg", log / "wal" if log != data else None
        self.bin = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"))), None)

    def sh(self, command: str, text: str = "") -> "subprocess.CompletedProcess[str]":
        words = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "sh", "-c", command]
        return subprocess.run(words, cwd="/tmp", capture_output=True, text=True, timeout=300, input=text, check=False)

    def start(self) -> "subprocess.CompletedProcess[str]":
        return self.sh(f"{self.bin}/pg_ctl -D {self.data} -w -t 100 -l {self.data}.log start")

    def psql(self, query: str) -> "subprocess.CompletedProcess[str]":
        return self.sh(f"psql -h /tmp -p {self.port} -XqAt -v ON_ERROR_STOP=1 postgres", query)

    @property
    def port(self) -> int:
        return 5432 + sum(map(ord, str(self.data))) % 1000

    def prepare(self) -> None:
        for folder in {self.data.parent, self.log.parent if self.log else self.data.parent}:
            shutil.chown(folder, "postgres", "postgres")
        with ONCE:  # initdb takes half a minute in an emulated machine
            if not TEMPLATE.exists():
                self._strict(f"{self.bin}/initdb -A trust -k -N --locale=C -D {TEMPLATE} --wal-segsize=1")
        self._strict(f"cp -a {TEMPLATE} {self.data}")
        if self.log:
            self._strict(f"mv {self.data}/pg_wal {self.log} && ln -s {self.log} {self.data}/pg_wal")
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(
                f"port={self.port}\nlisten_addresses=''\nunix_socket_directories='/tmp'\nmax_wal_size=8MB\nmin_wal_size=2MB\n"
                "shared_buffers=16MB\nmax_connections=10\nwal_init_zero=off\nwal_recycle=off\nautovacuum=off\n"
                f"{self.settings}\n"
            )
        self.start()
        made = self.psql("CREATE TABLE t (n bigint PRIMARY KEY, body text); CHECKPOINT;")
        if made.returncode:
            raise RuntimeError(made.stderr)

    def _strict(self, command: str) -> None:
        done = self.sh(command)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stderr}")

    def run(self, ack: Ack) -> NoReturn:
        words = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "psql", "-h", "/tmp", "-p"]
        words += [str(self.port), "-XqAt", "postgres"]
        client = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/tmp")
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
                client.stdin.write("DO $$ BEGIN PERFORM pg_switch_wal(); END $$;\nCHECKPOINT;\n")

    def stop(self, *, killed: bool) -> None:
        """The server; killed: with all its processes, as the kernel does without a word when memory is short."""
        if not killed:
            self.sh(f"{self.bin}/pg_ctl -D {self.data} -m fast -t 20 stop")
            return
        pid = (self.data / "postmaster.pid").read_text().split()[0]
        for each in (pid, *Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(each), signal.SIGKILL)
        time.sleep(1)

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
        rows = self.psql("SET enable_indexscan=off; SET enable_indexonlyscan=off; SELECT n FROM t;")
        left.have = {int(word) for word in rows.stdout.split()}
        check = self.psql("CREATE EXTENSION IF NOT EXISTS amcheck; SELECT bt_index_check('t_pkey', true);")
        left.damage = [text.strip()[-300:] for text in (rows.stderr, check.stderr) if text.strip()]
        return left
