"""A host on which something is wrong, or made wrong: file systems that are not there, too few descriptors, too little memory,
tools that misbehave, a caller's environment, an end at any moment. Nothing that failed or could not be told may pass, and
nothing that zaudit started may outlive it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from auditor.host.live import ENVIRONMENT
from auditor.report import report_json
from tests.security import namespaces
from tests.security.namespaces import ZAUDIT, FakeHost
from tests.security.prove import RECORDED
from tests.shared import briefly

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(namespaces.missing()), reason=namespaces.missing() or "-"),
]
CHECK = (*ZAUDIT, "check", "tank", "--format", "json", "-vv")
Found = set[tuple[str, str]]


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return namespaces.lay_out(RECORDED, tmp_path / "host")


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> tuple[FakeHost, Found]:
    """A host on which nothing is wrong, and what failed or is unknown there."""
    host = namespaces.lay_out(RECORDED, tmp_path_factory.mktemp("usual") / "host")
    good, bad = verdicts(host.run(CHECK).stdout)
    assert len(good) > 50
    assert len(bad) > 5
    return host, bad - good  # of known bugs some are ruled out and some are not


def verdicts(report: bytes) -> tuple[Found, Found]:
    """(what passed, what failed or is unknown) as (rule, subject)."""
    document = json.loads(report)
    good = {(each["rule"], _subject(each)) for each in report_json.spread(document["passes"], document["names"])}
    bad = {(each["rule"], _subject(at)) for each, at in report_json.unfolded(document)}
    return good, bad


def _subject(entry: Mapping[str, Any]) -> str:
    return " ".join((entry["kind"], entry["name"], entry.get("pool", "")))


def shell(before: str) -> tuple[str, ...]:
    """CHECK after a piece of shell."""
    return ("sh", "-c", f'{before}\nexec "$@"', "sh", *CHECK)


@pytest.mark.parametrize(
    ("what", "hidden", "codes"),
    briefly(
        [
            (CHECK, ("/sys",), {3, *range(10, 15)}),
            (shell("ulimit -n 12"), (), {2, *range(10, 15)}),
            (shell("exec <&-"), (), {*range(10, 15)}),
            (CHECK, ("/proc",), {3, *range(10, 15)}),
            (CHECK, ("/sys", "/proc"), {3}),
            (CHECK, ("/etc",), {*range(10, 15)}),
            (CHECK, ("/usr/sbin", "/dev/kmsg"), {3, *range(10, 15)}),
            (shell("ulimit -n 32"), (), {2, *range(10, 15)}),
            (shell("ulimit -v 2500000"), (), {2, *range(10, 15)}),
            (shell("ulimit -f 0"), (), {*range(10, 15)}),
            (shell("mkdir /run/gone; cd /run/gone; rmdir /run/gone"), (), {*range(10, 15)}),
            (shell("umask 777"), (), {*range(10, 15)}),
            (shell("ulimit -s 256"), (), {*range(10, 15)}),
        ],
        quick=1,
    ),
)
def test_what_is_missing_makes_no_verdict_better(usual: Any, what: Any, hidden: Any, codes: set[int]) -> None:
    host, bad = usual
    done = host.run(what, hidden=hidden)
    assert done.returncode in codes, done.stderr[-300:]
    assert b"Traceback" not in done.stderr
    assert b"internal error" not in done.stderr
    if done.returncode >= 10:
        improved = verdicts(done.stdout)[0] & bad
        assert not improved


# Runs zaudit as a child, sends it the signal of the first argument (after so many seconds, and not before the file is there
# that is named), and says what came of it, which processes it has left, and how much memory the largest took (KiB).
DRIVER = r"""
import json, os, resource, subprocess, sys, time
number, moment, mark = json.loads(sys.argv[1])
child = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
while mark and not os.path.exists(mark) and child.poll() is None:
    time.sleep(0.01)
if number:
    time.sleep(moment)
    child.send_signal(number)
out, err = child.communicate()
for _ in range(50):  # what was ended may still be on its way
    left = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
            with open(f"/proc/{name}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if int(name) not in (1, os.getpid()) and words and state != "Z":
            left.append(words)
    if not left:
        break
    time.sleep(0.1)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps([child.returncode, out.decode(errors="replace"), err.decode(errors="replace")[-500:], left, peak]))
"""


def driven(
    host: FakeHost, *argv: str, number: int = 0, moment: float = 0.0, mark: str = ""
) -> tuple[int, str, str, list[str], int]:
    """(exit code, standard output, standard error, processes that are left, KiB at most)."""
    done = host.run((sys.executable, "-IS", "-c", DRIVER, json.dumps([number, moment, mark]), *argv))
    assert done.returncode == 0, done.stderr
    code, out, err, left, peak = json.loads(done.stdout)
    return code, out, err, left, peak


@pytest.mark.parametrize(
    ("number", "moment"), briefly([(15, 0.0), (2, 0.2), (1, 0.0), (15, 0.2), (2, 0.0), (1, 0.2)], quick=2)
)
def test_a_signal_ends_it_while_tools_run(host: FakeHost, number: int, moment: float) -> None:
    mark = str(host.folder / "mark")
    host.tool("nvme", f'echo >{mark}\nsleep 30\nexec "$REAL" "$@"')
    code, out, err, left, _ = driven(host, *CHECK, "--timeout", "60", number=number, moment=moment, mark=mark)
    assert (code, out, left) == ({15: 143, 2: 130, 1: 129}[number], "", [])
    assert "Traceback" not in err


@pytest.mark.parametrize("moment", [0.02, 0.1])
def test_a_signal_ends_it_while_it_starts(host: FakeHost, moment: float) -> None:
    host.tool("nvme", "sleep 30")
    code, _, _, left, _ = driven(host, *CHECK, "--timeout", "60", number=15, moment=moment)
    assert code in (143, -15)  # before its own handler is there, the signal itself ends it
    assert left == []


@pytest.mark.parametrize(
    ("tool", "script"),
    briefly(
        [
            ("smartctl", "trap '' TERM INT HUP\nfor i in 1 2 3 4 5; do (trap '' TERM; sleep 900) & done\nsleep 900"),
            ("nvme", "setsid sleep 900 &\nexit 0"),
            ("nvme", "setsid sh -c 'sleep 900 & sleep 900' >/dev/null 2>&1 </dev/null &\nsleep 900"),
            ("zpool", "kill -STOP $$"),
        ],
        quick=1,
    ),
)
def test_what_a_tool_leaves_behind_is_ended(usual: Any, host: FakeHost, tool: str, script: str) -> None:
    host.tool(tool, script)
    code, out, err, left, _ = driven(host, *CHECK, "--timeout", "2")
    assert code in (3, *range(10, 15)), err
    assert left == []
    if code != 3:
        assert not verdicts(out.encode())[0] & usual[1]


@pytest.mark.parametrize(
    ("tool", "script"),
    briefly(
        [
            ("nvme", "head -c 150000000 /dev/zero >&2"),
            (
                "zpool",
                '[ "$1" != status ] || { head -c 1000000000 /dev/zero | tr "\\0" x; exit 0; }\nexec "$REAL" "$@"',
            ),
            ("zpool", '[ "$1" != history ] || exec yes "2026-01-01.00:00:00 zpool create tank"\nexec "$REAL" "$@"'),
        ],
        quick=0,
    ),
)
def test_what_a_tool_prints_is_bounded(host: FakeHost, tool: str, script: str) -> None:
    host.tool(tool, script)
    code, _, err, left, peak = driven(host, *CHECK, "--timeout", "20")
    assert code in range(10, 15), err
    assert left == []
    assert peak < 1 << 20  # KiB


@pytest.mark.slow
def test_half_an_answer_and_a_tool_that_dies_make_no_verdict_better(usual: Any, host: FakeHost) -> None:
    for script in ("kill -SEGV $$", '"$REAL" "$@" | head -c 1000', "exit 0"):
        host.tool("zpool", f'[ "$1" != status ] || {{ {script}; exit 0; }}\nexec "$REAL" "$@"')
        done = host.run(CHECK)
        assert done.returncode in range(10, 15)
        assert not verdicts(done.stdout)[0] & usual[1], script


def test_a_tool_gets_nothing_of_the_environment_of_the_caller(host: FakeHost) -> None:
    host.tool("zpool", f'tr "\\0" "\\n" </proc/$$/environ >{host.folder}/environment\nexec "$REAL" "$@"')
    foreign = {
        **dict.fromkeys(("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "BASH_ENV", "ENV"), "/nowhere"),
        **dict.fromkeys(
            ("LD_LIBRARY_PATH", "LD_AUDIT", "GCONV_PATH", "ZPOOL_SCRIPTS_PATH", "IFS", "TMPDIR"), "/nowhere"
        ),
    }
    # the harness itself must not see them
    words = ("env", *(f"{name}={value}" for name, value in foreign.items() if name != "LD_AUDIT"), *CHECK)
    assert host.run(words).returncode in range(10, 15)
    lines = (host.folder / "environment").read_text().splitlines()
    got = dict(line.partition("=")[::2] for line in lines if not line.startswith("ZAUDIT_"))  # a mark of zaudit's own
    assert got == ENVIRONMENT
