"""The table of engines: whatever spells an engine spells those of the table."""

from __future__ import annotations

import re

import pytest

from auditor import audit
from auditor.commands._options import with_database
from auditor.databases import ENGINES, SERVERS, servers, settings
from auditor.databases.engine import Engine
from auditor.databases.redis import Redis
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known
from auditor.judge import policy_file
from auditor.model.database import named_database
from auditor.verify import profile
from tests import shared
from tests.fake import CommandLine


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_can_be_named(name: str) -> None:
    assert with_database(audit.Options(), name).wanted.database == name
    assert audit.Options.from_words({"database": name}).wanted.database == name
    policy_file.parse(f'[datasets."tank/db"]\nrole = "both"\ndatabase = "{name}"\n', "zaudit.toml")
    assert name in policy_file.DATASETS
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


def test_an_engine_that_lacks_anything_cannot_be_made() -> None:
    declared = [each for each in Engine.__annotations__ if not hasattr(Engine, each)]
    assert {"name", "processes", "settings", "in_place", "omitting", "new_on_empty"} <= set(declared)
    for name in declared:
        parts = {each: part for each, part in vars(Redis).items() if each != name and not each.startswith("__")}
        with pytest.raises(TypeError, match=name):
            type("Lacking", (Engine,), parts)()
    with pytest.raises(TypeError, match="abstract"):
        type("Mute", (Engine,), {each: vars(Redis)[each] for each in declared})()
    with pytest.raises(TypeError, match="guard"):
        type("Torn", (Redis,), {"in_place": ("*.ibd",)})()


@pytest.mark.parametrize("engine", [each for each in ENGINES.values() if each.processes], ids=lambda each: each.name)
def test_every_server_is_judged_by_a_rule_and_asked_for_by_its_unit(engine: Engine) -> None:
    """One that no rule names would be found, listed and never judged."""
    named = [each.id for each in shared.rules() if f"'{engine.name}'" in (each.when.source if each.when else "")]
    assert named
    server = engine.processes[0]
    start = f"ExecStart={{ path=/usr/bin/{server} ; argv[]=/usr/bin/{server} ; ignore_errors=no ; }}"
    assert re.match(servers.FIRST, start) is None
    assert re.match(servers.FIRST, start.replace(server, "another")) is not None


@pytest.mark.parametrize("engine", [each for each in ENGINES.values() if each.processes], ids=lambda each: each.name)
def test_what_settings_promise_is_open_until_they_are_known(engine: Engine) -> None:
    class Nothing:
        def flag(self, name: str) -> bool | None:
            return None

        def word(self, name: str) -> str | None:
            return None

        def number(self, name: str) -> int | None:
            return None

    found = engine.promise(Nothing(), None)
    assert found.log is None
    assert set(engine.omitting) <= set(settings.SETTINGS_FACTS)
