"""The command blocks of the documents, run in order as they are printed: ``python -m tests.documents [DOCUMENT...]`` (root).

Each document gets a fresh root: a layer over this machine in which nothing of zaudit was ever written but the folders that a
package makes, and which is gone afterwards. There ``zaudit`` is the program of this checkout on a host whose answers were
recorded today, HOST: it answers a check, a record and whatever else asks a host; everything else is as it is. A command
has to end with 0, or with an exit code of findings where it has such; CLAIMS say more of some.

A comment in the line before a block says what differs, each in its own line:

    <!-- not run: REASON -->                  the block
    <!-- not run, "WORDS", "WORDS": REASON -->  its lines in which such words are
    <!-- before: COMMAND -->                  what the reader has at hand by then
    <!-- file: PATH -->                       the block is that file, and only its syntax is looked at
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from auditor.recording import recording, redaction
from tests import shared

ROOT = Path(__file__).resolve().parent.parent
HERE = "/srv/host.zaudit"  # in the root
HOST = "2.4-healthy-physical-protected-cache"
DOCUMENTS = (
    "README.md",
    *sorted(f"docs/{each.name}" for each in (ROOT / "docs").glob("*.md")),
    "contrib/ansible/zaudit/README.md",
)
BIN = ROOT / ".venv" / "bin"
FINDINGS = frozenset({0, 10, 11, 12, 13, 14})
CANNOT = 77

# what a sentence of the document says of a command that begins so: (exit code, what it prints)
CLAIMS: dict[tuple[str, str], tuple[int, str]] = {
    ("docs/nightly.md", "zaudit baseline accept"): (0, r"exit code 0"),
    ("docs/nightly.md", "zaudit baseline update"): (0, r"(?m)^db1: nothing new   \(exit code 0\)$"),
    ("docs/usage.md", "zaudit diff"): (0, r""),
    ("docs/usage.md", "zaudit selftest"): (0, r""),
    ("docs/fleet.md", "zaudit fleet judge"): (0, r""),
    ("docs/formats.md", "zaudit show /var/lib/zaudit/report.json --format nagios"): (0, r"\AZAUDIT OK"),
}
_MARK = re.compile(r"<!-- (not run|before|file)((?:, \"[^\"]+\")*): (.+) -->")

FAKE = """#!/bin/sh
# zaudit on a host whose answers were recorded: {host}
case "$1 $2" in
    *" --help"*) ;;
    record\\ *) shift; cd {checkout} && exec {python} -m tests.documents --record {host} "$OLDPWD" "$@" ;;
    check\\ *|plan\\ *|checklist\\ *|"baseline accept"|"baseline update"|"advise db"|"advise log")
        case " $* " in *" --replay "*) ;; *) set -- "$@" --replay {host} ;; esac ;;
esac
exec {program} "$@"
"""

# a layer over / , and one over the checkout where that is another file system; both gone with the namespace
INSIDE = r"""
set -e
scratch=$1 checkout=$2 script=$3
mount -t tmpfs tmpfs "$scratch"
mkdir "$scratch"/up "$scratch"/work "$scratch"/up2 "$scratch"/work2 "$scratch"/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/up,workdir=$scratch/work" "$scratch/root"
cp "$script" "$scratch/script"; cp "$script.zaudit" "$scratch/zaudit"
install -D "$script.host.zaudit" "$scratch/up/srv/host.zaudit"
root=$scratch/root
mkdir -p "$root$checkout"
mount -t overlay overlay -o "lowerdir=$checkout,upperdir=$scratch/up2,workdir=$scratch/work2" "$root$checkout"
rm -rf "$root"/var/lib/zaudit "$root"/etc/zaudit
install -d -m 750 "$root"/var/lib/zaudit  # as a package leaves them
install -d "$root"/etc/zaudit/conf.d
install -m 755 "$scratch/zaudit" "$root/usr/local/bin/zaudit"
install -m 755 "$scratch/script" "$root/usr/local/bin/run-document"
mount --rbind /dev "$root/dev"; mount -t proc proc "$root/proc"; mount -t tmpfs -o mode=1777 tmpfs "$root/run"
cd "$root"
exec chroot . /bin/bash -c "cd '$checkout' && exec run-document" </dev/null
"""


class Block(NamedTuple):
    """One block of a document: marks are (kind, words, text)."""

    document: str
    line: int
    text: str
    marks: tuple[tuple[str, tuple[str, ...], str], ...]

    def mark(self, kind: str) -> Iterator[tuple[tuple[str, ...], str]]:
        return ((words, text) for found, words, text in self.marks if found == kind)


class Command(NamedTuple):
    """reason: why it is not run, or empty."""

    block: Block
    line: int
    text: str
    reason: str


def blocks(document: str, text: str) -> Iterator[Block]:
    """Those with commands, in order. Raises ValueError for a comment that is no mark of a block."""
    marks: list[tuple[str, tuple[str, ...], str]] = []
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if found := _MARK.fullmatch(line):
            marks.append((found[1], tuple(re.findall(r'"([^"]+)"', found[2])), found[3]))
        elif line == "```sh":
            body = []
            for _, each in lines:
                if each == "```":
                    break
                body.append(each)
            yield Block(document, number, "\n".join(body) + "\n", tuple(marks))
            marks = []
        elif marks:
            raise ValueError(f"{document}:{number}: {marks[0][0]} stands before no block")


def commands(block: Block) -> Iterator[Command]:
    """Of a block: a line each, with those that it goes on in."""
    whole = next((text for words, text in block.mark("not run") if not words), "")
    if block.text.startswith("#!"):
        path = next((text for _, text in block.mark("file")), "/tmp/script")
        text = f"mkdir -p {Path(path).parent} && cat >{path} <<'END-OF-FILE' && sh -n {path}\n{block.text}END-OF-FILE"
        yield Command(block, block.line + 1, text, whole)
        return
    number = block.line
    text = ""
    for line in block.text.splitlines():
        number += 1
        text += line
        if line.endswith("\\"):
            text += "\n"
        elif text.strip() and not text.lstrip().startswith("#"):
            some = (why for words, why in block.mark("not run") if any(each in text for each in words))
            yield Command(block, number, text, whole or next(some, ""))
            text = ""
        else:
            text = ""


def script(found: Sequence[Block]) -> str:
    """What runs them, and says before each where it stands and after each how it ended."""
    lines = ["#!/bin/bash", "exec 2>&1"]
    for block in found:
        lines += (f"{{ {text}; }} >/dev/null || echo '@@before {block.line}'" for _, text in block.mark("before"))
        for each in commands(block):
            if not each.reason:
                lines += [f"echo '@@begin {each.line}'", each.text, f'echo "@@end {each.line} $?"']
    return "\n".join(lines) + "\n"


def run(document: str) -> tuple[int, list[str], list[str]]:
    """(How many commands ran, what was not run and why, what went wrong)."""
    found = list(blocks(document, (ROOT / document).read_text()))
    told = [each for block in found for each in commands(block)]
    skipped = [
        f"{document}:{each.line}: {each.text.split('#')[0].strip()[:60]}: {each.reason}" for each in told if each.reason
    ]
    due = [each for each in told if not each.reason]
    if not due:
        return 0, skipped, []
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "script")
        path.write_text(script(found))
        Path(scratch, "script.zaudit").write_text(
            FAKE.format(host=HERE, program=BIN / "zaudit", python=BIN / "python", checkout=ROOT)
        )
        recording.write(replace(shared.host(HOST), taken=time.time()), Path(scratch, "script.host.zaudit"))
        Path(scratch, "layer").mkdir()
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "bash", "-c", INSIDE, "bash",
             str(Path(scratch, "layer")), str(ROOT), str(path)],
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
    return len(due), skipped, list(_faults(document, due, done.stdout, done.stderr))


def _faults(document: str, due: Sequence[Command], printed: str, errors: str) -> Iterator[str]:
    for line in re.findall(r"@@before (\d+)", printed):
        yield f"{document}:{line}: what is to be there before failed"
    for each in due:
        found = re.search(rf"(?s)@@begin {each.line}\n(.*?)@@end {each.line} (\d+)\n", printed)
        where = f"{document}:{each.line}: {each.text.split('#')[0].strip()[:90]}"
        if not found:
            yield f"{where}: did not end\n{printed[-500:]}{errors[-500:]}"
            continue
        said, status = found[1], int(found[2])
        claim = next(
            (claim for (name, begins), claim in CLAIMS.items() if name == document and each.text.startswith(begins)),
            None,
        )
        allowed = {claim[0]} if claim else FINDINGS if re.search(r"\bzaudit\b", each.text) else {0}
        if status not in allowed:
            yield f"{where}: ended with {status}\n{said[-600:]}"
        elif claim and not re.search(claim[1], said):
            yield f"{where}: does not print {claim[1]!r}\n{said[-600:]}"


def record(host: str, folder: str, words: Sequence[str]) -> int:
    """``zaudit record`` on the host whose answers were recorded."""
    found = recording.load(Path(host))
    recording.write(
        redaction.redact(found) if "--redact" in words else found, Path(folder, words[words.index("-o") + 1])
    )
    return 0


def possible() -> bool:
    """Whether a layer can be put over this machine."""
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "script").write_text("#!/bin/sh\n")
        Path(scratch, "script.zaudit").touch()
        Path(scratch, "script.host.zaudit").touch()
        Path(scratch, "layer").mkdir()
        words = ["unshare", "--mount", "--pid", "--fork", "--propagation", "private", "bash", "-c", INSIDE, "bash",
                 str(Path(scratch, "layer")), str(ROOT), str(Path(scratch, "script"))]  # fmt: skip
        try:
            return subprocess.run(words, capture_output=True, check=False, timeout=60).returncode == 0
        except OSError:
            return False


def main(documents: Sequence[str]) -> int:
    if documents[:1] == ["--record"]:
        return record(documents[1], documents[2], documents[3:])
    if not possible():
        print("documents.py: needs root, unshare and overlay", file=sys.stderr)
        return CANNOT
    passed = failed = skipped = 0
    for document in documents or DOCUMENTS:
        ran, aside, faults = run(document)
        passed, failed, skipped = passed + ran - len(faults), failed + len(faults), skipped + len(aside)
        for each in aside:
            print(f"NOT RUN: {each}")
        for each in faults:
            print(f"FAILED: {each}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
