"""The commands that repeat an observation are pasted by root: no path that somebody else named is more than a word of them."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from auditor.collect import database_blocks, database_settings
from auditor.facts import Evidence, Known, Subject
from auditor.host.request import Files
from auditor.text import argument, quoted, starred

ODD = "/srv/$(touch x);touch y {subject}"
DATABASE = Subject("database", "postgres 9")


def commands(value: object) -> list[str]:
    assert isinstance(value, Known)
    return [each.command for each in value.evidence if isinstance(each, Evidence) and each.command]


def test_a_setting_is_found_in_a_file_of_any_name() -> None:
    text = {"/proc/9/cmdline": f"/usr/lib/postgresql/15/bin/postgres\0-D\0{ODD}\0", "/proc/9/environ": ""}
    text[f"/proc/9/root{ODD}/postgresql.conf"] = "fsync = off\n"
    reply = Files(text, errors={f"/proc/9/root{ODD}/postgresql.auto.conf": "no such file"})
    facts = {fact.name: fact.value for fact in database_settings.parse(reply, DATABASE)}
    seen = [each for name in ("fsync", "directories") for each in commands(facts[name])]
    assert [shlex.split(each.replace("{subject}", "pg 9")) for each in seen] == [
        ["grep", "fsync", f"{ODD}/postgresql.conf"],
        ["ls", "-l", ODD],
    ]


def test_the_sizes_of_blocks_are_counted_in_a_folder_of_any_name() -> None:
    reply = Files({f"/proc/9/root{ODD}/base/*/*": "8192 3\n"})
    (fact,) = database_blocks.parse(reply, DATABASE)
    assert shlex.split(commands(fact.value)[0].replace("{subject}", "x"))[3:] == [f"/proc/9/root{ODD}/base/*/*"]
    assert "/base/'*/*" in commands(fact.value)[0]


@pytest.mark.parametrize("word", ["/plain", "a b", "{subject}", "/x/{subject}; touch y #", "\x1b{subject}\u2066'"])
def test_no_name_is_set_into_a_word(word: str) -> None:
    script = f"printf %s {argument(word)}".replace("{subject}", quoted("/x/{subject}; touch y #"))
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode() == word


def test_stars_stay_stars() -> None:
    assert starred("/a b/*/*") == "'/a b/'*/*"
    assert starred("/a/*") == "/a/*"
