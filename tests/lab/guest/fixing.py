"""In the guest: runs what a report prints as fixes.

    python3 fixing.py FOLDER STEPS

FOLDER/root/report.json is the report, STEPS a JSON list of the steps of a scenario (README.md, key ``fix``). FOLDER/fixed.json
gets what was run, what went wrong, and the check sums of the files of ``load`` before and after.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from auditor.report import report_json

BASH = "set -euo pipefail; . /lab/state.sh; cd /lab/scratch\n"
LOADED = {"bulk", "log", "group"}  # the names that load of state.sh gives its files


class Wrong(Exception):
    """The report does not print what a step expects of it."""


def commands(report: dict[str, Any], step: dict[str, Any]) -> Iterator[str]:
    """What to run: the commands of the failing verdicts of a rule, or the words of the text of its fix that the step names."""
    rule, says = step["rule"], step["says"]
    failing = [
        (finding, verdict)
        for finding, verdict in report_json.unfolded(report)
        if verdict.get("rule", finding["rule"]) == rule and finding["outcome"] == "fail"  # a known bug by its name
    ]
    if not failing:
        raise Wrong(f"{rule} does not fail")
    if says and says not in failing[0][0]["fix"]["text"]:
        raise Wrong(f"the fix of {rule} does not say {says!r}")
    found = [says] if says else list(dict.fromkeys(verdict.get("command") for _, verdict in failing))
    for number, text in enumerate(found):
        if not text:
            raise Wrong(f"the fix of {rule} has no command")
        for word, values in step["put"].items():
            value = values if isinstance(values, str) else values[number]
            text = re.sub(rf"\b{word}\b", value, text)
        yield step["run"].replace("{}", text)
    if step["then"]:
        yield step["then"]


def roots() -> Iterator[Path]:
    """Where datasets are mounted, and what the scenarios mount below /mnt; nothing of a pool that answers nobody."""
    for line in Path("/proc/mounts").read_text().splitlines():
        words = (re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), word) for word in line.split(" "))
        device, path, kind, *_ = words
        state = Path("/proc/spl/kstat/zfs", device.partition("/")[0], "state")
        if (kind == "zfs" and "SUSPENDED" not in state.read_text()) or path.startswith("/mnt/"):
            yield Path(path)


def contents() -> dict[str, str]:
    """Check sums of the files of load, by path; nothing for one that cannot be read."""
    found = {}
    for root in roots():
        for folder, _, names in os.walk(root):
            for path in (Path(folder, name) for name in LOADED & set(names)):
                try:
                    found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
                except OSError:
                    found[str(path)] = ""
    return found


def main() -> None:
    """The program."""
    folder = Path(sys.argv[1])
    report = json.loads((folder / "root" / "report.json").read_text())
    fixed: dict[str, Any] = {"ran": [], "error": "", "before": contents()}
    try:
        for step in json.loads(sys.argv[2]):
            for command in commands(report, step):
                print(f"+ {command}", flush=True)
                fixed["ran"].append(command)
                subprocess.run(["bash", "-c", BASH + command], stdin=subprocess.DEVNULL, check=True, stderr=sys.stdout)
    except Wrong as error:
        fixed["error"] = str(error)
    except subprocess.CalledProcessError as error:
        fixed["error"] = f"{fixed['ran'][-1]!r} ended with {error.returncode}"
    fixed["after"] = contents()
    (folder / "fixed.json").write_text(json.dumps(fixed, indent=1))


if __name__ == "__main__":
    main()
