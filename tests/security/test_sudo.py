"""The one line of sudoers that docs/usage.md gives lets a user run one check as root, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.fake import CommandLine
from tests.folded import for_each
from tests.golden import CANONICAL, HOSTS

NOBODY = 65534
USAGE = Path(__file__).parents[2] / "docs" / "usage.md"
LINE = re.compile(r"^%dba ALL=\(root\) NOPASSWD: (/usr/bin/zaudit) (check tank/db)$", re.MULTILINE)
MISSING = [name for name in ("sudo", "visudo", "unshare", "setpriv") if shutil.which(name) is None]
with_sudo = pytest.mark.skipif(
    bool(MISSING) or os.geteuid() != 0,
    reason=f"{', '.join(MISSING)}: not installed" if MISSING else "another user becomes root: needs root",
)
# what sudo leaves of a caller's environment (man 5 sudoers, env_keep and env_check; sudo -V as root), with odd values
KEPT = {
    "TERM": "dumb", "COLORTERM": "x", "LANG": "tr_TR.UTF-8", "LANGUAGE": "tr", "LC_ALL": "C", "LC_CTYPE": "x", "LINGUAS": "x",
    "TZ": "XYZ-13", "COLORS": "x", "DISPLAY": ":7", "HOSTNAME": "db9", "KRB5CCNAME": "x", "LS_COLORS": "x", "PS1": "x",
    "PS2": "x", "XAUTHORITY": "/x", "XAUTHORIZATION": "/x", "XDG_CURRENT_DESKTOP": "x", "MAIL": "/x", "LOGNAME": "x",
    "USER": "x", "SUDO_USER": "x", "SUDO_UID": "7", "SUDO_GID": "7", "SUDO_COMMAND": "x", "PATH": "/x:/usr/bin:/bin",
}  # fmt: skip
STOPPED = {
    "ZAUDIT_STATE": "/x", "ZAUDIT_DEADLINE": "0.1", "ZAUDIT_POLICY": "/x", "XDG_STATE_HOME": "/x", "TMPDIR": "/x", "HOME": "/x",
    "PYTHONPATH": "/x", "PYTHONHOME": "/x", "PYTHONSTARTUP": "/x", "LD_PRELOAD": "", "LD_LIBRARY_PATH": "/x",
    "PGHOST": "x", "PGSERVICEFILE": "/x", "BASH_ENV": "/x", "ENV": "/x", "IFS": "x", "COLUMNS": "20",
}  # fmt: skip


def test_what_sudo_leaves_of_the_environment_changes_nothing(
    zaudit: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("check", "--replay", HOSTS / CANONICAL, "--format", "json")
    plain = zaudit(*words)
    for name, value in KEPT.items():
        monkeypatch.setenv(name, value)
    assert zaudit(*words)[:2] == plain[:2]


def test_two_words_in_one_are_no_command(zaudit: CommandLine) -> None:
    """To sudo they are the same words."""
    assert zaudit("check tank/db").code == 2


class Sudoers:
    """A /etc/sudoers of its own with the line of the page, for nobody, and a zaudit that tells how it was called."""

    def __init__(self, folder: Path) -> None:
        found = LINE.search(USAGE.read_text())
        assert found, "the page gives the line"
        self.called, self.zaudit = folder / "called", folder / "zaudit"
        self.zaudit.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" >{self.called}\nexec /usr/bin/env -0 >{self.called}.environment\n'
        )
        self.zaudit.chmod(0o755)
        line = found[0].replace("%dba", f"#{NOBODY}").replace(found[1], str(self.zaudit))
        self.file = folder / "sudoers"
        self.file.write_text(f"Defaults env_reset\n{line}\n")
        self.file.chmod(0o440)

    def sudo(self, words: Sequence[str], environment: Mapping[str, str] = {}) -> list[str]:
        """The words that zaudit was started with; none where it was not."""
        self.called.unlink(missing_ok=True)
        script = (
            f'mount --bind {self.file} /etc/sudoers || exit 77; cd /; exec setpriv --reuid {NOBODY} --regid {NOBODY} \
            --clear-groups /usr/bin/env "$@"'
        )
        sudo = [*(f"{name}={value}" for name, value in environment.items()), str(shutil.which("sudo")), "-n", *words]
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", *sudo],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 77 or "unshare failed" in done.stderr or "effective uid is not 0" in done.stderr:
            pytest.skip(f"sudo cannot be tried here: {done.stderr.strip()}")
        return self.called.read_text().splitlines() if self.called.exists() else []


@pytest.fixture
def sudoers() -> Iterator[Sudoers]:
    place = Path(tempfile.mkdtemp(prefix="zaudit-test-"))  # everybody can get there
    place.chmod(0o755)
    yield Sudoers(place)
    shutil.rmtree(place)


HOSTILE = (
    (),
    ("check",),
    ("check", "tank"),
    ("check", "tank/db", "tank/db"),
    ("check", "tank/db/child"),
    ("check", "tank/db", "-o", "/etc/cron.d/x"),
    ("check", "-o", "/etc/cron.d/x", "tank/db"),
    ("check", "--record", "/etc/x", "tank/db"),
    ("check", "tank/db", "--format", "json=/etc/x"),
    ("check", "tank/db", "--policy", "/home/x"),
    ("check", "tank/db", "--rules", "/home/x"),
    ("baseline", "update", "/etc/shadow", "tank/db"),
    ("check", "--replay", "/etc/shadow"),
    ("check", "tank/db", "--db", "postgres=postgresql://x@localhost/x"),
    ("check", "tank/db", "--verify"),
    ("check", "tank/db\n-o", "/etc/x"),
    ("check", "tank/*"),
    ("-q", "check", "tank/db"),
    ("alert", "x", "--hook", "/home/x/hook"),
    ("clean",),
    ("powercut", "start", "tank/db", "--witness", "x", "--key", "/home/x/key"),
    ("powercut", "witness", "--cut", "/home/x/cut", "--key", "/home/x/key"),
    ("record", "tank/db", "-o", "/etc/x"),
    ("verify", "tank/db"),
)


@pytest.mark.slow
@with_sudo
def test_the_line_is_one(sudoers: Sudoers) -> None:
    subprocess.run(["visudo", "-c", "-f", str(sudoers.file)], check=True, capture_output=True)
    assert sudoers.sudo((str(sudoers.zaudit), "check", "tank/db")) == ["check", "tank/db"]
    assert sudoers.sudo((str(sudoers.zaudit), "check tank/db")) == ["check tank/db"]


@pytest.mark.slow
@with_sudo
@for_each("words", HOSTILE)
def test_nothing_else_is_run(words: tuple[str, ...], sudoers: Sudoers) -> None:
    assert sudoers.sudo((str(sudoers.zaudit), *words)) == []


@pytest.mark.slow
@with_sudo
@for_each(
    "words", [("-u", "#1"), ("-g", "#1"), ("-E",), ("-D", "/tmp"), ("-R", "/"), ("ZAUDIT_STATE=/x",), ("-C", "9")]
)
def test_nor_in_another_way(words: tuple[str, ...], sudoers: Sudoers) -> None:
    assert sudoers.sudo((*words, str(sudoers.zaudit), "check", "tank/db")) == []


@pytest.mark.slow
@with_sudo
def test_what_it_leaves_of_the_environment(sudoers: Sudoers) -> None:
    given = {**STOPPED, **{name: value for name, value in KEPT.items() if not name.startswith("SUDO_")}}
    assert sudoers.sudo((str(sudoers.zaudit), "check", "tank/db"), given)
    text = Path(f"{sudoers.called}.environment").read_text()
    found = dict(each.partition("=")[::2] for each in text.split("\0") if each)
    through = {name for name, value in given.items() if found.get(name) == value}
    assert through <= KEPT.keys()
    assert found.keys() <= KEPT.keys() | {"HOME", "SHELL", "PWD", "OLDPWD", "SHLVL", "_"}
