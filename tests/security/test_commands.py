"""The commands that repeat an observation are pasted by root: no path that somebody else named is more than a word of them."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from contextlib import suppress
from itertools import product

import pytest

from auditor import audit, rulebook
from auditor.databases import paths, settings
from auditor.facts import Evidence, Known, Subject
from auditor.host.request import Files
from auditor.judge import policy_file
from auditor.recording.recording import ReplayHost
from auditor.registry import sources
from auditor.text import argument, quoted, starred
from tests import pairs, shared
from tests.folded import for_each
from tests.golden import CANONICAL
from tests.pairs import Pair

ODD = "/srv/$(touch x);touch y {subject}"
DATABASE = Subject("database", "postgres 9")


def commands(value: object) -> list[str]:
    assert isinstance(value, Known)
    return [each.command for each in value.evidence if isinstance(each, Evidence) and each.command]


def test_a_setting_is_found_in_a_file_of_any_name() -> None:
    text = {"/proc/9/cmdline": f"/usr/lib/postgresql/15/bin/postgres\0-D\0{ODD}\0", "/proc/9/environ": ""}
    text[f"/proc/9/root{ODD}/postgresql.conf"] = "fsync = off\n"
    reply = Files(text, errors={f"/proc/9/root{ODD}/postgresql.auto.conf": "no such file"})
    facts = {fact.name: fact.value for fact in settings.database_settings.parse(reply, DATABASE)}
    seen = [each for name in ("fsync", "directories") for each in commands(facts[name])]
    assert [shlex.split(each.replace("{subject}", "pg 9")) for each in seen] == [
        ["grep", "fsync", f"{ODD}/postgresql.conf"],
        ["ls", "-l", ODD],
    ]


def test_the_sizes_of_blocks_are_counted_in_a_folder_of_any_name() -> None:
    reply = Files({f"/proc/9/root{ODD}/base/*/*": "8192 3\n"})
    (fact,) = paths.database_blocks.parse(reply, DATABASE)
    assert shlex.split(commands(fact.value)[0].replace("{subject}", "x"))[3:] == [f"/proc/9/root{ODD}/base/*/*"]
    assert "/base/'*/*" in commands(fact.value)[0]


@pytest.mark.parametrize("word", ["/plain", "a b", "{subject}", "/x/{subject}; touch y #", "\x1b{subject}\u2066'"])
def test_no_name_is_set_into_a_word(word: str) -> None:
    script = f"printf %s {argument(word)}".replace("{subject}", quoted("/x/{subject}; touch y #"))
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode() == word


HOSTILE = "; touch PASTED $(touch PASTED)"


def whole(command: str) -> bool:
    """A shell sees the hostile words as a part of one word, where they are in a command."""
    try:
        words = list(shlex.shlex(command, posix=True, punctuation_chars=True))
    except ValueError:
        return False
    return all(HOSTILE in word for word in words if "PASTED" in word)


def renamed(path: str) -> str:
    """The path with hostile words where a name ends that somebody chose."""
    stem, dot, ending = path.rpartition(".")
    return f"{stem}{HOSTILE}.{ending}" if dot else f"{path}{HOSTILE}"


def inside(path: str) -> str:
    """The same in its last folder."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{HOSTILE}{slash}{name}"


def below(path: str) -> str:
    """The same in a folder of its last folder."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}/{HOSTILE}{slash}{name}"


@for_each("case, how", list(product(pairs.everything(), (renamed, inside, below, str))), ids=lambda case: str(case[0]))
def test_no_path_and_no_name_is_more_than_a_word(case: Pair, how: Callable[[str], str]) -> None:
    """Of all that collectors are seen to make of files and subjects that are called otherwise."""
    subject = Subject(*case.expected["subject"])
    name = f"{subject.name}{HOSTILE}" if how is str and subject.name else subject.name
    reply = case.reply
    if isinstance(reply, Files):
        text, links, errors = (
            {how(path).replace(f"/{subject.name}/", f"/{name}/"): found for path, found in table.items()}
            for table in (reply.text, reply.links, reply.errors)
        )
        reply = Files(text, links, errors, reply.devices, reply.changed)
    with suppress(ValueError):
        for fact in sources()[case.collector].parse(reply, subject._replace(name=name)):
            for command in commands(fact.value):
                assert whole(command.replace("{subject}", quoted(fact.subject.name))), (fact.name, command)


def test_the_policy_of_a_recording_is_a_word() -> None:
    text = (
        '[thresholds]\npool-nearly-full.nearly_full = 85\n[datasets."tank/db"]\nrole = "rebuildable"\nreason = "x"\n'
        '[[waiver]]\nrule = "sync-disabled"\ndataset = "tank/db"\nowner = "ann"\nreason = "lab"\nexpires = 2099-01-01\n'
    )
    past = shared.host(CANONICAL)
    followed = policy_file.parse(text, f"/etc/zaudit.toml{HOSTILE}")
    options = audit.Options.from_words(past.options)._replace(policy=followed)
    seen = audit.look(ReplayHost(past), past.targets, options)
    rules, left_out = rulebook.choose((), (), (), followed)
    report = audit.judge(seen, rules, past.targets, "low", left_out=left_out)
    pieces = [each for _, _, value in seen.facts for each in getattr(value, "evidence", ())]
    pieces += [each for verdict in report.verdicts for each in verdict.evidence]
    found = {each.command for each in pieces if HOSTILE in each.command}
    assert {command.split()[0] for command in found} == {"cat", "sed"}
    assert len(found) == 4
    assert [command for command in found if not whole(command)] == []


def test_stars_stay_stars() -> None:
    assert starred("/a b/*/*") == "'/a b/'*/*"
    assert starred("/a/*") == "/a/*"
