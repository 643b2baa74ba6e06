"""The collection for Ansible over ssh, against machines that are network namespaces: each with its own server of ssh, its own
/etc and /run, its own processes, and its own recording; one more does not answer. Skipped without root, namespaces, sshd or
Ansible (apt install iproute2 openssh-server; pip install ansible-core)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fleet.network import HUB, NEEDS, address, ended, inside, network, until
from tests.fleet.test_fleet_ansible import HOSTS, REFUSED, SAID, of_today
from tests.lab.ansible import FAILED, MISSING, UNREACHABLE, Done, Site, key_pair
from tests.lab.run import ROOT

PROGRAMS = ("ansible-playbook", "sshd", "ssh", "ssh-keygen", "unshare")
LACKING = [program for program in PROGRAMS if not shutil.which(program)]
pytestmark = [pytest.mark.slow, NEEDS, pytest.mark.skipif(bool(LACKING), reason=f"not installed: {', '.join(LACKING)}")]

AWAY = (
    "db0"  # the first of the inventory, so that it is the first that Ansible asks to do what one of them does for all
)
ZAUDIT = f"""import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from auditor.__main__ import main
from auditor.recording import recording, redaction
PLACE = "/etc/recording.tar.gz"
match sys.argv[1:]:
    case ["check", *words]:
        sys.argv[1:] = ["check", "--replay", PLACE, *words]
        main()
    case ["record", "-o", place, "--redact", "--"]:
        recording.write(redaction.redact(recording.load(Path(PLACE))), Path(place))
    case words:
        sys.exit(f"not known here: {{words}}")
"""
SERVER = """HostKey /etc/ssh/host
AuthorizedKeysFile /etc/ssh/authorized
PasswordAuthentication no
UsePAM no
Subsystem sftp internal-sftp
SetEnv TMPDIR=/run/tmp
"""
OF_ETC = [f"/etc/{name}" for name in ("alternatives", "group", "ld.so.cache", "localtime", "nsswitch.conf")]
START = """mount --bind "$1/etc" /etc && mount --bind "$1/run" /run && hostname "$2"
exec "$3" -D -e -f /etc/ssh/sshd_config"""
OWN = ("unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")  # all ends with its first process


def machine(folder: Path, key: str) -> str:
    """Make the files of a machine, where root may log in with the key: its /etc has none of the secrets of this one's, and /run
    has all that is written elsewhere. Its own public key."""
    for name in ("etc/ssh", "run/root", "run/sshd", "run/tmp"):
        (folder / name).mkdir(parents=True)
    subprocess.run(["cp", "-a", *filter(os.path.exists, OF_ETC), folder / "etc"], check=True)
    users = [line for line in Path("/etc/passwd").read_text().splitlines() if not line.startswith("root:")]
    (folder / "etc/passwd").write_text("\n".join(["root:x:0:0:root:/run/root:/bin/sh", *users, ""]))
    (folder / "etc/shadow").write_text("root:*:20000:0:99999:7:::\n")
    ssh = folder / "etc/ssh"
    (ssh / "sshd_config").write_text(SERVER)
    (ssh / "authorized").write_text(key)
    return key_pair(ssh / "host")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """The administrator's machine has the bridge. (The names of the tests are short as the path of ssh's socket must be.)"""
    (tmp_path / "zaudit.pyz").write_text(ZAUDIT)
    made, key = of_today(tmp_path / "made"), key_pair(tmp_path / "key")
    known = ""
    with ExitStack() as left:
        for number, (name, inner) in enumerate(zip(HOSTS, left.enter_context(network(len(HOSTS))), strict=True)):
            known += f"{address(number)} {machine(tmp_path / name, key)}"
            shutil.copy(made / f"{name}.tar.gz", tmp_path / name / "etc/recording.tar.gz")
            argv = inside(inner, *OWN, "sh", "-euc", START, "sh", tmp_path / name, name, shutil.which("sshd"))
            log = left.enter_context((tmp_path / name / "log").open("wb"))
            server = subprocess.Popen(argv, stderr=log, start_new_session=True)
            left.enter_context(ended(server, signal.SIGTERM))
            until(lambda: b"Server listening" in (tmp_path / name / "log").read_bytes(), server)  # noqa: B023
        hosts = {AWAY: {"ansible_host": address(len(HOSTS)), "ansible_ssh_retries": 0}}
        hosts |= {name: {"ansible_host": address(number)} for number, name in enumerate(HOSTS)}
        everywhere = {
            "ansible_user": "root", "ansible_python_interpreter": sys.executable,
            "zaudit_pyz": f"{tmp_path}/zaudit.pyz", "zaudit_path": "/etc/zaudit.pyz",
            "zaudit_command": [sys.executable, "-I", "/etc/zaudit.pyz"],
        }  # fmt: skip
        yield Site(tmp_path, hosts, everywhere, known, inside(HUB, *OWN))


def facts(site: Site) -> dict[str, str]:
    """What the local fact of each machine says."""
    paths = {name: site.folder / name / "etc/ansible/facts.d/zaudit.fact" for name in HOSTS}
    return {name: json.loads(path.read_text())["standing"] for name, path in paths.items() if path.exists()}


def left_behind(site: Site) -> list[Path]:
    """Files of zaudit in the folders of the machines for what passes."""
    return [path for name in HOSTS for path in (site.folder / name / "run").rglob("*") if "zaudit" in path.name]


def played(site: Site, *words: str) -> Done:
    """A play in which one host cannot be reached, and none of the others fails but where the gate is closed."""
    done = site.play(*words)
    assert (done.code, done.all("unreachable")) == (UNREACHABLE, {AWAY: 1})
    assert done.all("failed") == (REFUSED if "gate" in words else {})
    return done


def test_audit(site: Site) -> None:
    """The second changes nothing; the gate of another play opens by the local fact, and by that alone."""
    assert played(site, "audit").all("changed").keys() >= HOSTS.keys()
    assert site.standings() == facts(site) == SAID
    assert played(site, "audit").all("changed") == {}
    (site.folder / "upgrade.yml").write_text("- hosts: all\n  gather_facts: false\n  roles: [zaudit.zaudit.gate]\n")
    assert site.run("ansible-playbook", "upgrade.yml").all("failed") == REFUSED
    (site.folder / "db1/etc/ansible/facts.d/zaudit.fact").unlink()
    done = site.run("ansible-playbook", "upgrade.yml", "-l", "db1")
    assert (done.code, "zaudit has not judged db1" in done.text) == (FAILED, True)


def test_record(site: Site) -> None:
    """The second changes nothing; the host that is away is missing, also where it has a recording of yesterday."""
    played(site, "record")
    shutil.copy(site.folder / "recordings/db1.tar.gz", site.folder / f"recordings/{AWAY}.tar.gz")
    assert played(site, "record").all("changed") == {}
    assert site.judged("-m", "auditor") == (MISSING, SAID | {AWAY: "missing"})
    assert left_behind(site) == []
    played(site, "record", "--check")
    assert len(list((site.folder / "recordings").iterdir())) == len(HOSTS)


def test_gate(site: Site) -> None:
    """With --check the same hosts are let through, and nothing is written; where zaudit is not yet, none is."""
    done = site.play("gate", "--check")
    assert (done.code, done.all("failed")) == (UNREACHABLE, dict.fromkeys(HOSTS, 1))
    assert "A CRASH OR POWER CUT LOSES ACKNOWLEDGED COMMITS (lost; the report is " in played(site, "gate").text
    assert site.standings() == facts(site) == SAID
    shutil.rmtree(site.folder / "reports")
    for name in HOSTS:
        shutil.rmtree(site.folder / name / "etc/ansible")
    played(site, "gate", "--check")
    assert (facts(site), (site.folder / "reports").exists()) == ({}, False)
