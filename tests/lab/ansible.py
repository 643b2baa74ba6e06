"""The collection contrib/ansible/zaudit, over ssh, against a guest with OpenZFS and a host that does not answer.

    python -m tests.lab.ansible [--line 2.3]

Audits and records twice: the second time nothing is changed, and the recording judges as the report does. The gate lets the
host through, refuses it once sync=disabled is set there, and lets it through when that is taken back. Needs Ansible (pip
install ansible-core) and ssh on this host. Exit code: 0 when all of it came out so, 1 when not.
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import scenario
from .machine import LINES, LabError, available
from .run import ROOT, ZAUDIT
from .vm import VM, clean_up_on_signals, scratch

STATE = next(each for each in scenario.everything() if each.name == "healthy-mirrored-slog")
Variables = Mapping[str, Mapping[str, object]]  # name of a host -> its variables
BOOT_S, PLAY_S = 300, 900
UNREACHABLE, FAILED, MISSING = 4, 2, 10  # exit codes of ansible-playbook, and of zaudit fleet judge
SERVER = """
mkdir -p -m 700 /root/.ssh && mv key.pub /root/.ssh/authorized_keys && chmod 600 /root/.ssh/authorized_keys host
mkdir -p /run/sshd && ip link set eth0 up && ip address add 10.0.2.15/24 dev eth0
/usr/sbin/sshd -f /dev/null -h /lab/host -o Subsystem="sftp internal-sftp"
while [ ! -e /lab/over ]; do sleep 1; done
"""


@dataclass(frozen=True)
class Done:
    """A play. recap: host -> what is counted of it (ok, changed, unreachable, failed)."""

    code: int
    text: str
    recap: dict[str, dict[str, int]]

    def all(self, what: str) -> dict[str, int]:
        """Hosts of which it is counted -> how often."""
        return {host: counts[what] for host, counts in self.recap.items() if counts.get(what)}


def recap(text: str) -> dict[str, dict[str, int]]:
    """What a play counted at its end."""
    return {
        host: {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", counts)}
        for host, counts in re.findall(r"^(\S+)\s+: (ok=.*)$", text, re.M)
    }


def key_pair(path: Path) -> str:
    """A new one, at path and path.pub; its public half."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path.with_name(f"{path.name}.pub").read_text()


class Site:
    """What an administrator has: an inventory, the folder's key, the keys of servers, the collection.

    hosts: name -> variables of each. everywhere: variables of all. known: lines for ssh's file of keys that are known.
    before: words before each command, such as those that enter a network namespace."""

    def __init__(
        self,
        folder: Path,
        hosts: Variables,
        everywhere: Mapping[str, object],
        known: str = "",
        before: Sequence[str] = (),
    ) -> None:
        self.folder, self.hosts, self.before = folder, hosts, before
        shutil.copytree(ROOT / "contrib/ansible/zaudit", folder / "ansible_collections/zaudit/zaudit")
        (folder / "known").write_text(known)
        own = {f"zaudit_{name}": f"{folder}/{name}" for name in ("reports", "recordings")}
        inventory = {"hosts": hosts, "vars": {"ansible_ssh_private_key_file": f"{folder}/key", **own, **everywhere}}
        (folder / "hosts.json").write_text(json.dumps({"all": inventory}))
        self.around = os.environ | {
            "HOME": str(folder), "ANSIBLE_COLLECTIONS_PATH": str(folder), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_TIMEOUT": "60",
            "ANSIBLE_SSH_ARGS": f"-F none -o UserKnownHostsFile={folder}/known -o ControlMaster=auto -o ControlPersist=60s",
        }  # fmt: skip

    def run(self, program: str, *words: str) -> Done:
        """ansible or ansible-playbook."""
        argv = [*self.before, program, "-i", "hosts.json", *words]
        done = subprocess.run(
            argv, cwd=self.folder, env=self.around, capture_output=True, text=True, timeout=PLAY_S, check=False
        )
        return Done(done.returncode, done.stdout + done.stderr, recap(done.stdout))

    def play(self, name: str, *words: str) -> Done:
        """One of the collection, with its time and what Ansible counted."""
        started = time.monotonic()
        done = self.run("ansible-playbook", f"zaudit.zaudit.{name}", *words)
        counted = "; ".join(
            f"{host} {' '.join(f'{k}={v}' for k, v in each.items() if v)}" for host, each in done.recap.items()
        )
        print(
            f"      {' '.join((name, *words)):20} {time.monotonic() - started:6.1f} s  exit code {done.code}  {counted}",
            flush=True,
        )
        return done

    def command(self, text: str) -> str:
        """Of an administrator of db1; what it printed."""
        done = self.run("ansible", "db1", "-m", "command", "-a", text)
        if done.code:
            raise LabError(f"lab: {text}: {done.text[-600:]}")
        return done.text

    def judged(self, *zaudit: str) -> tuple[int, dict[str, str]]:
        """What ``zaudit fleet judge`` says of the recordings that were brought here: its exit code, host -> standing, or kind
        of the row. zaudit: words for Python."""
        (self.folder / "hosts").write_text("".join(f"{host}\n" for host in self.hosts))
        argv = [
            sys.executable,
            *zaudit,
            "fleet",
            "judge",
            "recordings",
            "--inventory",
            "hosts",
            "-q",
            "-o",
            "rows.jsonl",
        ]
        done = subprocess.run(argv, cwd=self.folder, env=self.around | {"PYTHONPATH": str(ROOT)}, check=False)
        rows = map(json.loads, (self.folder / "rows.jsonl").read_text().splitlines())
        said = {row["name"]: row.get("standing", row["kind"]) for row in rows if row["kind"] != "finding"}
        return done.returncode, said

    def standings(self) -> dict[str, str]:
        """What each of the reports says that were brought here."""
        return {path.stem: json.loads(path.read_text())["standing"] for path in (self.folder / "reports").iterdir()}

    def standing(self) -> str:
        """What the report of db1 says."""
        return self.standings()["db1"]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--line", action="append", choices=LINES, help="OpenZFS line (default: all)")
    arguments = parser.parse_args()
    clean_up_on_signals()
    if missing := [each for each in ("ansible-playbook", "ssh", "ssh-keygen") if not shutil.which(each)]:
        parser.error(f"{', '.join(missing)}: not found (pip install ansible-core; apt install openssh-client)")
    if not ZAUDIT.exists():
        parser.error("zaudit.pyz is missing: run make zipapp")
    right = True
    for line in available(arguments.line):
        print(f"{line}  ansible", flush=True)
        wrong = list(on(line))
        right = right and not wrong
        print("".join(f"       {sentence}\n" for sentence in wrong) or f"{line}  ok", flush=True)
    return 0 if right else 1


def on(line: str) -> Iterator[str]:
    """What is wrong on a line."""
    folder = scratch("ansible")
    try:
        port, closed = ports()
        key_pair(folder / "key")
        known = f"[127.0.0.1]:{port} {key_pair(folder / 'host')}"
        everywhere = {
            "ansible_host": "127.0.0.1", "ansible_user": "root", "ansible_python_interpreter": "/usr/bin/python3",
            "zaudit_pyz": str(ZAUDIT),
        }  # fmt: skip
        site = Site(folder, {"db1": {"ansible_port": port}, "db2": {"ansible_port": closed}}, everywhere, known)
        files = {name: (folder / name).read_bytes() for name in ("key.pub", "host")}
        script = f"set -euo pipefail; . /lab/state.sh\n{STATE.setup}\n{SERVER}"
        with VM(zfs=line, disks=STATE.disks, mem="3G", ssh=port) as vm:
            vm.start(script, files)
            if answers(vm, port):
                yield from plays(site)
            else:
                yield f"no server of ssh within {BOOT_S} s: {vm.result().log[-600:]}"
    finally:
        shutil.rmtree(folder)


def plays(site: Site) -> Iterator[str]:
    """The plays one after the other, and what is not as it should be."""
    first, again = site.play("audit"), site.play("audit")
    yield from unless(first.recap["db1"]["changed"] > 0, "the first audit put nothing there", first)
    for each in (first, again):
        yield from unless((each.code, each.recap["db2"]["unreachable"]) == (UNREACHABLE, 1), "db2 answered", each)
        yield from unless(each.recap["db1"]["failed"] == 0, "the audit failed", each)
    yield from unless(again.recap["db1"]["changed"] == 0, "the second audit changed something", again)
    fact = site.run("ansible", "db1", "-m", "setup", "-a", "filter=ansible_local")
    yield from unless(f'"standing": "{site.standing()}"' in fact.text, "the answer is no local fact", fact)
    yield from recorded(site)
    yield from gated(site)
    left = site.command("find /tmp /var/tmp /root -name *zaudit*")
    if "/" in left.partition(">>")[2]:
        yield f"left behind: {left}"


def recorded(site: Site) -> Iterator[str]:
    """The recording comes, says what the report says, and the other host is missing."""
    for number in range(2):
        done = site.play("record")
        yield from unless(done.recap["db1"]["failed"] == 0, "recording failed", done)
        yield from unless(
            number == 0 or done.recap["db1"]["changed"] == 0, "the second recording changed something", done
        )
    code, said = site.judged(str(ZAUDIT))
    if (code, said) != (MISSING, {"db1": site.standing(), "db2": "missing"}):
        yield f"fleet judge: {code}, {said}, and the report says {site.standing()}"


def gated(site: Site) -> Iterator[str]:
    """The gate opens, closes and opens."""
    for words in (("-l", "db1"), ("-l", "db1", "--check")):
        done = site.play("gate", *words)
        yield from unless(done.code == 0, "a healthy host was refused", done)
    site.command("zfs set sync=disabled tank/db")
    done = site.play("gate", "-l", "db1")
    yield from unless(
        (done.code, done.recap["db1"]["failed"], site.standing()) == (FAILED, 1, "lost"),
        "a host that loses commits went on",
        done,
    )
    yield from unless(
        "A CRASH OR POWER CUT LOSES ACKNOWLEDGED COMMITS (lost;" in done.text, "the gate does not say why", done
    )
    site.command("zfs inherit sync tank/db")
    done = site.play("gate", "-l", "db1")
    yield from unless(done.code == 0, "a host that was mended was refused", done)


def unless(true: bool, sentence: str, done: Done) -> Iterator[str]:
    if not true:
        yield f"{sentence}: exit code {done.code}, {done.recap}\n{done.text[-800:]}"


def ports() -> tuple[int, int]:
    """Two that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


def answers(vm: VM, port: int) -> bool:
    """Once the guest's server says what it is."""
    end = time.monotonic() + BOOT_S
    while time.monotonic() < end and vm.proc is not None and vm.proc.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as connection:
                if connection.recv(4) == b"SSH-":
                    return True
        except OSError:
            pass
        time.sleep(0.5)
    return False


if __name__ == "__main__":
    sys.exit(main())
