"""What make new-rule and make new-source lay out fails until it is filled in, and then is a rule, and a source."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from auditor import selftest as law
from auditor.facts import HOST, Known
from auditor.host.request import Files
from auditor.judge import rule_file
from auditor.judge.rule import RuleError
from auditor.recording import archive
from auditor.registry import registry
from auditor.sources.source import Source
from tests import scaffold


def test_a_new_rule_is_an_error_until_it_is_filled_in() -> None:
    (text,) = scaffold.rule("log-device-slow").values()
    with pytest.raises(RuleError, match=r"fill_in: no collector or derivation provides pool\.fill_in"):
        rule_file.load("log-device-slow", "x", text.encode(), registry())
    filled = text.replace("pool.fill_in", "pool.capacity_percent").replace("pool.fact", "pool.capacity_percent")
    rule = rule_file.load("log-device-slow", "x", filled.encode(), registry())
    assert [law.run_example(rule, each, registry()).outcome for each in rule.examples] == ["pass", "fail", "unknown"]


def test_a_new_source_fails_its_pair_until_it_is_filled_in(tmp_path: Path) -> None:
    scaffold.lay_out(scaffold.source("block_scheduler"), tmp_path)
    source = runpy.run_path(str(tmp_path / "auditor/sources/block_scheduler.py"))["block_scheduler"]
    assert isinstance(source, Source)
    assert source.name == "block_scheduler"
    pair = archive.read(tmp_path / "fixtures/commands/block_scheduler.pairs")
    reply = Files(**json.loads(pair["usual.in.json"]))
    (fact,) = source.parse(reply, HOST)
    wanted = json.loads(pair["usual.json"])["facts"]["host host"]
    assert isinstance(fact.value, Known)
    assert {fact.name: fact.value.value} != wanted == {"block_scheduler": scaffold.FILL}
    with pytest.raises(FileExistsError, match="is there already"):
        scaffold.lay_out(scaffold.source("block_scheduler"), tmp_path)


@pytest.mark.parametrize("name", ["", "Log", "../x", "a/b", "x.toml", "-a"])
def test_a_name_is_no_path(name: str) -> None:
    for make in (scaffold.rule, scaffold.source):
        with pytest.raises(ValueError, match="lower-case words joined by"):
            make(name)


def test_nothing_is_left_to_be_filled_in() -> None:
    root = scaffold.ROOT
    found = (path for folder in ("rules", "auditor", "fixtures/commands") for path in (root / folder).rglob("*"))
    kinds = (".toml", ".py", ".pairs")
    assert [path for path in found if path.suffix in kinds and scaffold.FILL in path.read_text(errors="ignore")] == []
