"""The table of engines: whatever spells an engine spells those of the table."""

from __future__ import annotations

import pytest

from auditor import audit
from auditor.commands._options import with_database
from auditor.databases import ENGINES, SERVERS
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known
from auditor.judge import policy_file, policy_sketch
from auditor.model.database import named_database
from auditor.verify import profile
from tests.fake import CommandLine


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_can_be_named(name: str) -> None:
    assert with_database(audit.Options(), name).database == name
    assert audit.Options.from_words({"database": name}).database == name
    policy_file.parse(f'[datasets."tank/db"]\nrole = "both"\ndatabase = "{name}"\n', "zaudit.toml")
    assert name in policy_sketch.DATASETS
    assert name in named_database.facts["db_engine"].values


def test_what_no_profile_writes_like_is_refused_before_anything_is_written(zaudit: CommandLine) -> None:
    for name in (each.name for each in ENGINES.values() if not each.profile):
        done = zaudit("check", "tank/db", "--db", name, "--verify")
        assert done.code == 2
        assert f"there is no profile of {name} yet" in done.err
    assert {each.profile for each in ENGINES.values()} - {""} <= set(profile.names())


def test_an_engine_without_pages_has_no_size_of_one() -> None:
    for name, engine in ENGINES.items():
        facts = Facts()
        facts.put(Fact(HOST, "database", known(name, "--db")))
        found = {each.name: each.value for each in named_database.derive(Subject("dataset", "tank"), facts)}
        assert found["db_named"] == Known(True, found["db_named"].evidence)  # type: ignore[union-attr]
        assert isinstance(found["db_page_bytes"], Known if engine.page_bytes else Unknown), name


def test_a_process_is_of_one_engine() -> None:
    assert len(SERVERS) == sum(len(each.processes) for each in ENGINES.values())
    assert all(len(process) <= 15 for process in SERVERS)  # the kernel keeps no more of a name
