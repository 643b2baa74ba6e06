"""A volume that LIO offers, in a guest with a real systemd: is it offered after the next start?

    python -m tests.lab.targets [--line 2.3]

First nothing is saved; then a file has it and its unit is not enabled; then it is. Of the file nothing but paths may be in a
recording. Exit code: 0 when all of it came out so, 1 when not.
"""

import io
import json
import sys
import tarfile
from collections.abc import Iterator, Mapping

from .service import rules
from .systemd import command

RECORDED = "recording.tar.gz"
RULE = "targets-not-at-next-boot"
EXPECTED: Mapping[str, str] = {"unsaved": "fail", "disabled": "fail", "enabled": "pass"}  # when: outcome


def problems(out: Mapping[str, bytes]) -> Iterator[str]:
    """What is not as it must be. out: the files that the guest brought back."""
    if missing := [name for name in (*(f"{when}.json" for when in EXPECTED), RECORDED) if name not in out]:
        yield f"did not come back: {', '.join(missing)}"
        return
    for when, expected in EXPECTED.items():
        report = json.loads(out[f"{when}.json"])
        found = next((each for each in ("fail", "unknown") if RULE in rules(report, each)), "pass")
        if found != expected:
            yield f"{when}: {found}, not {expected}"
    with tarfile.open(fileobj=io.BytesIO(out[RECORDED])) as archive:
        files = [archive.extractfile(each) for each in archive if each.isfile()]
        texts = [file.read() for file in files if file]
    saved = [text for text in texts if b"saveconfig.json" in text and b"/dev/zvol/tank/v" in text]
    if not saved or any(b"chap-secret" in text for text in texts):
        yield f"the recording has {len(saved)} answers with what is saved, or the password of an initiator"


if __name__ == "__main__":
    sys.exit(command(__doc__, "targets", problems))
