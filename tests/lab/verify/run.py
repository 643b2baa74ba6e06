"""``make lab-verify``: what `zaudit verify` says of pools whose truth is known.

    python -m tests.lab.verify.run [--line 2.3] [NAME...]
    python -m tests.lab.verify.run --line 2.3 --program kill     SIGKILL at ten random moments, then zaudit clean
    python -m tests.lab.verify.run --line 2.3 --program ratio    latency beside that of bare fio on the same job

Exit code: 0 when each case came out as cases.toml says, 1 when one did not.
"""

import argparse
import json
import shlex
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.lab.machine import CACHE, LINES
from tests.lab.vm import VM, clean_up_on_signals

HERE = Path(__file__).parent
ZAUDIT = HERE.parents[2] / "zaudit.pyz"
LIBRARY = CACHE / "libeatmydata.so"
DISKS = ["nvme:2G", "nvme:2G", "nvme:1G", "nvme:1G"]
A_GUEST, CASE_S, WIDTH = 6, 420, 36


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all cases")
    parser.add_argument("--line", action="append", choices=LINES, help="OpenZFS line (default: all)")
    parser.add_argument("--program", choices=("kill", "ratio"), help="run this instead of the cases")
    arguments = parser.parse_args()
    cases = tomllib.loads((HERE / "cases.toml").read_text())["case"]
    if unknown := set(arguments.names) - {case["name"] for case in cases}:
        parser.error(f"no case {', '.join(sorted(unknown))}")
    if not ZAUDIT.exists():
        parser.error("zaudit.pyz is missing: run make zipapp")
    clean_up_on_signals()
    wrong = 0
    if arguments.program:
        return max(program(line, arguments.program) for line in arguments.line or LINES)
    for line in arguments.line or LINES:
        chosen = [
            case
            for case in cases
            if line in case.get("lines", LINES) and (not arguments.names or case["name"] in arguments.names)
        ]
        if not LIBRARY.exists():
            for case in [case for case in chosen if "libeatmydata" in case["setup"]]:
                print(f"{line}  {case['name']:{WIDTH}} not run: {LIBRARY} is missing (apt-get download libeatmydata1)")
                chosen.remove(case)
        for first in range(0, len(chosen), A_GUEST):
            wrong += guest(line, chosen[first : first + A_GUEST])
    return min(wrong, 1)


def program(line: str, name: str) -> int:
    """One script in a guest of its own; prints what it prints."""
    files = {"zaudit.pyz": ZAUDIT.read_bytes(), "unpack.sh": (HERE / "unpack.sh").read_bytes()}
    with VM(zfs=line, disks=DISKS, mem="3G") as vm:
        result = vm.start((HERE / f"{name}.sh").read_text(), files).wait(1500)
    print(f"OpenZFS {line}\n{result.log.strip()}", flush=True)
    return 0 if result.rc == 0 else 1


def guest(line: str, cases: list[dict[str, Any]]) -> int:
    """One guest that goes through some cases; how many came out wrong."""
    files: dict[str, str | bytes] = {
        "zaudit.pyz": ZAUDIT.read_bytes(),
        "unpack.sh": (HERE / "unpack.sh").read_bytes(),
    }
    if LIBRARY.exists():
        files["libeatmydata.so"] = LIBRARY.read_bytes()
    for number, case in enumerate(cases):
        words = {
            "CASE_SETUP": case["setup"],
            "CASE_ARGUMENTS": " ".join(case.get("arguments", ())),
            "CASE_AFTER": case.get("after", ""),
        }
        files[f"plan-{number}-{case['name']}"] = "".join(
            f"{key}={shlex.quote(value)}\n" for key, value in words.items()
        )
    started = time.monotonic()
    with VM(zfs=line, disks=DISKS, mem="3G") as vm:
        result = vm.start((HERE / "verify.sh").read_text(), files).wait(120 + CASE_S * len(cases))
    wrong = 0
    for number, case in enumerate(cases):
        prefix = f"{number}-{case['name']}."
        out = {name.removeprefix(prefix): data for name, data in result.out.items() if name.startswith(prefix)}
        said = (
            list(problems(case, out))
            if "seconds" in out
            else [f"the guest died: {(result.log or result.console)[-400:]}"]
        )
        wrong += bool(said)
        keep(f"verify-{line}-{case['name']}", out)
        seconds = out.get("seconds", b"?").decode().strip()
        print(f"{line}  {case['name']:{WIDTH}} {seconds:>4} s  {'WRONG' if said else case['outcome']}", flush=True)
        for sentence in said:
            print(f"       {sentence}", flush=True)
    print(f"{line}  (a guest with {len(cases)}) {time.monotonic() - started:.0f} s", flush=True)
    return wrong


def problems(case: dict[str, Any], out: dict[str, bytes]) -> Iterator[str]:
    """What is not as the case says."""
    if left := out.get("left", b"").decode().split():
        yield f"left behind: {', '.join(left)}"
    try:
        chain = json.loads(out["json"])["verification"]["chain"]
    except (KeyError, ValueError):
        errors = [out.get(name, b"").decode(errors="replace").strip()[-300:] for name in ("exit", "err", "setup")]
        yield f"no report: {' | '.join(errors)}"
        return
    names = dict(line.split() for line in out.get("names", b"").decode().splitlines())
    texts = [f"{link['name']}: {link['text']}" for link in chain["links"]] + chain["reasons"]
    if chain["outcome"] != case["outcome"]:
        yield f"{chain['outcome']}, not {case['outcome']}: {' | '.join(texts)}"
        return
    if "link" in case:
        link = case["link"].format_map(names)
        contradicting = [each for each in chain["links"] if each["status"] == "contradicts"]
        texts = [each["text"] for each in contradicting if each["name"] == link]
        if not texts:
            yield f"{', '.join(each['name'] for each in contradicting)} contradicts, not {link}"
    if "says" in case and not any(case["says"] in text for text in texts):
        yield f"no word of {case['says']!r}: {' | '.join(texts)}"


def keep(name: str, out: dict[str, bytes]) -> None:
    """What came back, in the cache."""
    folder = CACHE / "results" / name
    folder.mkdir(parents=True, exist_ok=True)
    for member, data in out.items():
        (folder / member).write_bytes(data)


if __name__ == "__main__":
    sys.exit(main())
