"""No fact is words joined by a mark and taken apart again: a name that others choose may hold any mark."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from auditor import audit, registry
from auditor.facts import Facts, Unknown
from auditor.gather.answer import DEFECT
from auditor.host.request import Capture, Files
from auditor.recording.recording import Recording, ReplayHost
from tests import shared
from tests.golden import HOSTS

AUDITOR = Path(audit.__file__).parent
APART = ("split", "rsplit", "partition", "rpartition", "splitlines")
OURS = "a name of a fact or property, which is ours"
OUTSIDE = "text as the kernel, a tool or an administrator writes it, by the rules of its format"
NUMBERS = "what stands before the mark, or behind the last one, is a number or one of a few words: no name reaches it"
LEFT = "a fact of several words, all of them chosen by root; a row is still to be made of it"
TAKEN_APART = {
    "model/database.py: held.pairs()": NUMBERS,
    "model/database.py: each.partition(' = ')": "a setting has a name of ours before it",
    "model/release.py: judged[kind].pairs()": NUMBERS,
    "model/release.py: trace.split()": LEFT,
    "model/flushes.py: disk.name.rpartition('n')": NUMBERS,
    "model/database.py: database.name.split()": "an engine is before the first blank",
    "model/next_boot.py: each.partition(' ')": LEFT,
    "model/next_boot.py: line.split(' ', 2)": LEFT,
    "model/fault_log.py: faults.pairs()": OURS,
    "model/fault_log.py: found.pairs()": NUMBERS,
    "model/next_boot.py: line.split(' ')": OUTSIDE,
    "model/kernels.py: name.rpartition('-')": OUTSIDE,
    "model/kernels.py: each.split(' ', 1)": LEFT,
    "model/kernels.py: row.split(' ')": LEFT,
    "model/pool.py: found.pairs()": NUMBERS,
    "model/write_cache.py: batteries.pairs()": NUMBERS,
    "model/release.py: ' '.join(BUGS[bug]['references']).split()": OURS,
    "model/dataset.py: client.partition('(')": OUTSIDE,
    "model/dataset.py: client.partition('(')[2].removesuffix(')').split(',')": OUTSIDE,
    "model/dataset.py: each.partition('=')": OUTSIDE,
    "model/dataset.py: re.split('[,:;()\\\\s]+', sharenfs.word())": OUTSIDE,
    "model/dataset.py: sharenfs.split(',')": OUTSIDE,
    "model/dataset.py: str(line).partition(' - zfs ')": OUTSIDE,
    "model/dataset.py: str(line).partition(' - zfs ')[2].partition(' ')": OUTSIDE,
    "model/pool.py: log.pairs()": NUMBERS,
    "model/pool.py: each.split()": NUMBERS,
    "model/database.py: line.partition(' ')": NUMBERS,
    "model/next_boot.py: str(option).partition('=')": LEFT,
    "model/dataset.py: line.split(' ')": OUTSIDE,
    "model/pool.py: each.rpartition(' ')": NUMBERS,
    "model/pool.py: each.rpartition(' ')[0].partition('#')": OUTSIDE,
    "model/pool.py: newest.rpartition(' ')": NUMBERS,
    "model/release.py: alike.reasons[0].remedy.rpartition('; or ')": OURS,
    "model/release.py: each.split()": OURS,
    "model/release.py: part.partition(': ')": OURS,
    "model/release.py: reference.split('; ')": OURS,
    "model/release.py: row.partition(' ')": NUMBERS,
    "model/stores.py: (reading.word(leaf, 'stack') or 'what is').split(', ')": OURS,
    "model/whole_host.py: each.partition(' = ')": OURS,
    "model/whole_host.py: name.split(' ')": "an engine is before the first blank",
    "model/next_boot.py: condition.partition('=')": LEFT,
    "gather/answer.py: decode(capture.stderr + b'\\n' + capture.stdout).splitlines()": OUTSIDE,
    "gather/answer.py: subject.name.partition(' ')": "an engine is before the first blank",
    "gather/answer.py: word.split(',')": OURS,
    "gather/answer.py: _words(self._request)[-1].split(',')": OURS,
    "gather/answer.py: reply.stderr.decode('utf-8', 'replace').strip().partition('\\n')": OUTSIDE,
    "gather/layers.py: each.pairs()": NUMBERS,
    "gather/layers.py: listed.stdout.decode('utf-8', 'replace').splitlines()": OUTSIDE,
    "gather/layers.py: name.partition(mark)": OUTSIDE,
    "gather/users.py: name.partition('-')": "LIO, SCST, tgt or NVMe is before the first hyphen",
    "gather/users.py: str(uuid.value).partition('-')": OUTSIDE,
    "gather/users.py: where.partition(',')": NUMBERS,
    "gather/walk.py: said.partition('=')": "of the command line",
    "gather/witnesses.py: each.partition(' ')": NUMBERS,
    "gather/witnesses.py: each.rpartition(' ')": NUMBERS,
    "gather/witnesses.py: each.split(' ', 4)": NUMBERS,
    "gather/witnesses.py: event.rpartition(' ')": NUMBERS,
    "gather/witnesses.py: name.rpartition('=')": NUMBERS,
    "gather/witnesses.py: table.pairs()": NUMBERS,
}


def taken_apart() -> Iterator[str]:
    """Where facts are used: what takes a text apart by another mark than that of paths, names of datasets and our own names."""
    for path in sorted(each for folder in ("gather", "model") for each in (AUDITOR / folder).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            mark = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
            if (name in APART and mark not in ("/", ".")) or name == "pairs" or ast.unparse(node)[:9] == "re.split(":
                yield f"{path.parent.name}/{path.name}: {ast.unparse(node)}"


def test_what_takes_a_text_apart_is_known() -> None:
    """A new one is of a fact that should be a table (``rows`` of auditor/facts.py), or has a reason."""
    found, expected = {*taken_apart()}, {*TAKEN_APART}
    assert sorted(found - expected) == []
    assert sorted(expected - found) == []


def test_a_table_is_read_by_its_rows() -> None:
    """words() and pairs() of one would make texts of its rows."""
    tables = {name for (_, name), spec in registry.registry().items() if spec.row}
    assert {"zfs_labels", "guest_files", "symlinks"} <= tables
    wrong = [
        f"{path.name}: {ast.unparse(node)}"
        for path in sorted(AUDITOR.rglob("*.py"))
        if re.search(r"\.(words|pairs|word)\b", text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("words", "pairs", "word")
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and inner.value in tables
    ]
    assert wrong == []


MARKS = (" x", "=x", ",x", "'x", '"x', " -> x", "\\x", " = x y z")
NAMES = {
    "nodes": r"(?m)^(N: \S+)$",
    "links": r"(?m)^(S: .+)$",
    "labels": r"(?m)^(E: (?:ID_FS_LABEL|DM_NAME|ID_SERIAL|ID_MODEL)=.+)$",
}


def with_names(past: Recording, which: str, mark: str) -> Recording:
    """The host, with a mark in each name of a block device, link to one, or label."""

    def renamed(argv: tuple[str, ...], each: Capture) -> Capture:
        if argv[0] != "udevadm":
            return each
        text = each.stdout.decode("utf-8", "surrogateescape")
        text = re.sub(NAMES[which], lambda found: found[1] + mark, text)
        return each._replace(stdout=text.encode("utf-8", "surrogateescape"))

    def linked(each: Files) -> Files:
        pairs = ((path, f"{to}{mark}") if path.startswith("/dev/") else (path, to) for path, to in each.links.items())
        return each._replace(links=dict(pairs)) if which == "links" else each

    commands = {argv: renamed(argv, each) for argv, each in past.commands.items()}
    return replace(past, commands=commands, files={patterns: linked(each) for patterns, each in past.files.items()})


def defects(facts: Facts) -> list[str]:
    found = (each.value for each in facts)
    return [
        reason.text for each in found if isinstance(each, Unknown) for reason in each.reasons if DEFECT in reason.text
    ]


@pytest.mark.parametrize(("mark", "which"), shared.briefly(product(MARKS, NAMES), quick=3))
def test_marks_in_names_of_devices_and_labels_end_no_audit(which: str, mark: str) -> None:
    names = HOSTS.names()
    at = [*NAMES].index(which) + MARKS.index(mark)
    for name in {*names[at % 8 :: 8], "composed-proxmox-ve-9"}:
        past = shared.earlier(name)
        try:
            seen = ReplayHost(with_names(past, which, mark))
            look = audit.look(seen, past.targets, audit.Options.from_words(past.options))
        except audit.NothingToAudit:
            continue
        assert defects(look.facts) == [], name
        audit.judge(look, shared.audited(), past.targets, "low")
