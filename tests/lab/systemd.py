"""A guest with a real systemd that runs one script beside a zaudit.pyz: what service, key_unit and targets have in common."""

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from .machine import LINES, available
from .run import ROOT, ZAUDIT
from .verify.run import keep
from .vm import VM, clean_up_on_signals

HERE = ROOT / "tests" / "lab"
DISKS, GUEST_S = ["nvme:2G", "nvme:2G", "nvme:1G", "nvme:1G"], 900
Out = Mapping[str, bytes]  # the files that the guest brought back


def command(
    about: str | None,
    script: str,
    problems: Callable[[Out], Iterable[str]],
    more: Iterable[Path] = (),
    figures: Callable[[Out], str] = lambda out: "",
) -> int:
    """The command line of one of them: on each line of OpenZFS, whether all came out as it must. script: SCRIPT.sh here; more:
    files that it needs; figures: what is printed in front of the verdict."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--line", action="append", choices=LINES, help="OpenZFS line (default: all)")
    arguments = parser.parse_args()
    clean_up_on_signals()
    if not ZAUDIT.exists():
        parser.error("zaudit.pyz is missing: run make zipapp")
    right = True
    for line in available(arguments.line):
        out, log = _guest(line, script, more)
        wrong = list(problems(out))
        right = right and not wrong
        print(f"{line}  {figures(out)}{'WRONG' if wrong else 'ok'}", flush=True)
        print("".join(f"       {each}\n" for each in wrong) + (log[-1500:] if wrong else ""), end="", flush=True)
    return 0 if right else 1


def _guest(line: str, script: str, more: Iterable[Path]) -> tuple[Out, str]:
    """What came back, and the log."""
    files: dict[str, str | bytes] = {path.name: path.read_bytes() for path in more}
    files |= {"zaudit.pyz": ZAUDIT.read_bytes(), "unpack.sh": (HERE / "verify" / "unpack.sh").read_bytes()}
    with VM(zfs=line, disks=DISKS, mem="3G", append="labinit=/lab/pid1-systemd") as vm:
        result = vm.start((HERE / f"{script}.sh").read_text(), files).wait(GUEST_S)
    keep(f"{script.replace('_', '-')}-{line}", {**result.out, "log": result.log.encode()})
    return result.out, result.log or result.console
