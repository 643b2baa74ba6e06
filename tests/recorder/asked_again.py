"""What zaudit's own modules say, or those of a zaudit-record.py, as JSON; runs on any Python from 3.6 on.

``python asked_again.py hosts RECORDER HOST...``: what a recording of the answers comes to that each recorded host gives, plain
and redacted. ``... read RECORDER PATTERN...``: the files of this host that the patterns name. RECORDER: a file, or "-" for
zaudit's own modules.
"""

import gc
import hashlib
import json
import sys
from pathlib import Path


def hosts(folders):  # type: ignore[no-untyped-def]
    from auditor.gather.walk import LookOptions
    from auditor.recorder import taken_of
    from auditor.recording import recording, redaction

    found = {}
    for folder in folders:
        past = recording.load(Path(folder))
        said = {name: past.options.get(name, "") for name in ("database", "directory", "connection")}
        wanted = LookOptions(past.options.get("consistent") == "yes", **said)
        taken = taken_of(recording.ReplayHost(past), past.targets, wanted, "rules")
        for kind, each in (("plain", taken), ("redacted", redaction.redact(taken, b"key"))):
            digest = hashlib.sha256()
            for name, data in recording.members(each):
                digest.update(b"%d %d " % (len(name), len(data)) + name.encode() + data)
            found[Path(folder).name.replace(".zaudit", "").replace(".tar.gz", "") + " " + kind] = digest.hexdigest()
    return found


def read(patterns):  # type: ignore[no-untyped-def]
    from auditor.host.live import LiveHost
    from auditor.host.request import Read

    found = LiveHost(20).read(Read(tuple(patterns)))
    parts = {name: dict(getattr(found, name)) for name in ("text", "links", "errors", "devices")}
    return dict(parts, changed=sorted(found.changed))


if __name__ == "__main__":
    gc.disable()  # as zaudit and its recorder do
    recorder = sys.argv[2]
    if recorder != "-":
        exec(compile(Path(recorder).read_text(encoding="utf-8"), recorder, "exec"), {"__name__": "parts"})
    said = {"hosts": hosts, "read": read}[sys.argv[1]](sys.argv[3:])  # type: ignore[no-untyped-call]
    json.dump(said, sys.stdout, indent=1, sort_keys=True)
