"""``make new-rule ID=...`` and ``make new-source NAME=...``: files to fill in, and until then tests fail."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from auditor.recording import archive

FILL = "FILL IN"
ROOT = Path(__file__).resolve().parent.parent

RULE = f'''title      = "{FILL}: what is wrong, as a headline"
severity   = "medium"
subject    = "pool"
harm       = "commits"
expect     = "pool.{FILL.lower().replace(" ", "_")} == 0"
outside    = "{FILL}: why no event brings it about; or, in place of both: elements (auditor/durability/elements.py)"
message    = "{FILL}: what was seen, with {{pool.fact}}"
impact     = "{FILL}: the risk, as a manager reads it."
why        = "{FILL}: what OpenZFS, the kernel or the database does. Sentences."
references = ["{FILL}: a man page, or a file and function at a tag"]
unprovoked = "{FILL}: why the lab cannot make it fail, without a full stop; nothing where a scenario does"

[fix]
command = "zpool status {{subject}}"
text    = "{FILL}: what the command does and what no command can do."
cost    = "safe"

[[example]]
name    = "{FILL}: as it should be"
verdict = "pass"
given   = {{ "pool.{FILL.lower().replace(" ", "_")}" = 0 }}

[[example]]
name    = "{FILL}: as it should not be"
verdict = "fail"
given   = {{ "pool.{FILL.lower().replace(" ", "_")}" = 1 }}

[[example]]
name    = "{FILL}: not seen"
verdict = "unknown"
given   = {{ "pool.{FILL.lower().replace(" ", "_")}" = {{ unknown = "permission denied" }} }}
'''

SOURCE = f'''"""``/sys/...``: {FILL}: what the files say, and where it is written (Linux Documentation/...)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.facts import HOST, Fact, Spec, Subject, known
from auditor.host.request import Files, Read
from auditor.sources.source import source


@source(
    "NAME",
    "host",
    ask=Read(("/sys/{FILL.lower().replace(" ", "_")}",)),
    facts={{"NAME": Spec.number("{FILL}: what it is, and its unit")}},
)
def NAME(reply: Files, host: Subject) -> Iterator[Fact]:
    """Nothing of what is not understood: nobody knows it then."""
    for path, text in reply.text.items():
        if re.fullmatch(r"\\d{{1,15}}\\n", text):
            yield Fact(HOST, "NAME", known(int(text), text.strip(), f"cat {{path}}"))
'''

ANSWER = f"""{{
 "text": {{
  "/sys/{FILL.lower().replace(" ", "_")}": "42\\n"
 }},
 "links": {{}},
 "errors": {{}}
}}
"""

PAIR = f'''{{
 "subject": [
  "host",
  "host",
  ""
 ],
 "source": "{FILL}: recorded on ..., or written after ...",
 "healthy": true,
 "command": "cat /sys/{FILL.lower().replace(" ", "_")}",
 "facts": {{
  "host host": {{
   "NAME": "{FILL}"
  }}
 }}
}}
'''


def rule(id: str) -> dict[str, str]:
    """Path -> text of a new rule. Raises ValueError."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", id):
        raise ValueError(f"{id!r}: lower-case words joined by hyphens (make new-rule ID=log-device-slow)")
    return {f"rules/{id}.toml": RULE}


def source(name: str) -> dict[str, str]:
    """The same of a source: the module, and a pair of what the files say and what it must make of it."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise ValueError(f"{name!r}: lower-case words joined by underscores (make new-source NAME=block_scheduler)")
    texts = {
        f"auditor/sources/{name}.py": SOURCE,
        f"fixtures/commands/{name}.pairs": _archive({"usual.in.json": ANSWER, "usual.json": PAIR}),
    }
    return {path: text.replace("NAME", name) for path, text in texts.items()}


def _archive(members: dict[str, str]) -> str:
    file = io.BytesIO()
    archive.write_text(((name, text.encode()) for name, text in members.items()), file)
    return file.getvalue().decode()


def lay_out(texts: dict[str, str], root: Path = ROOT) -> None:
    """Write them. Raises FileExistsError before anything is written."""
    for path in texts:
        if (root / path).exists():
            raise FileExistsError(f"{path} is there already")
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        print(path)


if __name__ == "__main__":
    try:
        lay_out({"rule": rule, "source": source}[sys.argv[1]](sys.argv[2]))
    except (ValueError, FileExistsError) as error:
        sys.exit(str(error))
