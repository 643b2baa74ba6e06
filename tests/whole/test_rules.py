"""Every rule file: its examples give their verdicts, and its prose keeps to the house style."""

from __future__ import annotations

import ast
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor import data, rulebook
from auditor import selftest as law
from auditor.data import TableError, durability
from auditor.data.durability import ROWS
from auditor.durability.repairs import ELEMENTS
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, known, unknown
from auditor.judge import rule_file
from auditor.judge.rule import RuleError, digest, events_of
from auditor.judge.rule_file import load, load_folder
from auditor.judge.verdict import ROUTES, fill, judge
from auditor.registry import registry
from auditor.report import phrases
from tests import incidents, rule_format, shared
from tests.first_rules import THE_FIRST
from tests.folded import for_each
from tests.renamed import passed_through

RULES = shared.rules()
QUICK = {rule.id: rule for rule in rulebook.load(examples=False)}

PLAIN = (
    *("id", "title", "severity", "elements", "answer", "outside", "subject", "harm", "origin", "impact", "why"),
    *("references", "conflicts"),
)
LONGEST = 140  # characters of a line
EXAMPLES = [(rule, case) for rule in RULES for case in rule.examples]
# links that may lead nowhere, and why a rule may go over them all the same
MAY_BE_NONE = {
    "pools": "an audit without a pool ends before anything is judged",
    "datasets": "of a pool or a database: that there is none means that there is none to go wrong",
    "data_datasets": "a database whose files are all elsewhere, which database.off_zfs says",
    "ancestors": "the root dataset of a pool has none",
    "lies_on": "a drive lies on no dataset",
    "databases": "a host without one; unknown where the processes were not seen",
    "log_leaves": "a pool without a log vdev",
    "unflushed": "a run that lost syncs above its devices, which loses more",
}


@for_each("rule, case", EXAMPLES, ids=lambda pair: f"{pair[0].id}: {pair[1].name}")
def test_example(rule: Any, case: Any) -> None:
    verdict = law.run_example(rule, case, registry())
    assert verdict.outcome == case.verdict, verdict.reasons or verdict.evidence
    if case.severity:
        assert verdict.severity == case.severity


@for_each("rule", RULES, ids=lambda rule: rule.id)
def test_prose(rule: Any) -> None:
    for text in (rule.impact, rule.fix.text):
        assert text[0].isupper() or text[0].isdigit() or text.split()[0] in ("fsync",), text
        assert text.endswith((".", "?", ")")), text
    assert re.search(r"[.)]\s*$", rule.why), rule.why
    assert rule.subject in ROUTES


@for_each("rule", RULES, ids=lambda rule: rule.id)
def test_with_nothing_known_no_rule_passes(rule: Any) -> None:
    """The one law, for each rule by itself."""
    from auditor.judge.rule import Example

    verdict = law.run_example(rule, Example("nothing known", {}, "unknown", None), registry())
    assert verdict.outcome == "unknown"


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the tables and rules, which are read in place of ours."""
    here = Path(shutil.copytree(data.HERE, tmp_path / "auditor" / "data", ignore=shutil.ignore_patterns(data.COMPILED)))
    monkeypatch.setattr(data, "HERE", here)
    monkeypatch.setattr(data, "RULES", Path(shutil.copytree(data.RULES, tmp_path / "rules")))
    monkeypatch.setattr(data, "text", lambda name: (here / name).read_text())
    forget()
    yield here
    monkeypatch.undo()
    forget()


def forget() -> None:
    for each in (data._compiled, data.table, data.rules, data.heads):
        each.cache_clear()


def read() -> dict[str, Any]:
    """Every table, with nothing in mind."""
    forget()
    return {**{each.name: data.table(each.name) for each in data.HERE.glob("*.toml")}, "rules": data.rules()}


def test_what_is_compiled_is_what_is_written(copied: Path) -> None:
    written = {path.name: tomllib.loads(path.read_text()) for path in copied.glob("*.toml")}
    rules = {path.stem: tomllib.loads(path.read_text()) for path in data.RULES.glob("*.toml")}
    assert read() == {**written, "rules": rules}, "without the compiled file"
    (copied / data.COMPILED).write_text(data.compiled(installed=False))
    assert read() == {**written, "rules": rules}
    (copied / data.COMPILED).write_text(data.compiled(installed=True))
    for path in (*copied.glob("*.toml"), *data.RULES.glob("*.toml")):
        path.write_text("what is not read")
    assert read() == {**written, "rules": rules}


@pytest.mark.parametrize("where", ["rules/atime-on.toml", "auditor/data/builds.toml"])
def test_what_was_compiled_of_other_sources_is_not_read(copied: Path, where: str) -> None:
    (copied / data.COMPILED).write_text(data.compiled(installed=False))
    changed = data.RULES.parent / where
    changed.write_text("[new]\n")
    found = read()
    assert (found["rules"]["atime-on"] if "rules" in where else found[changed.name]) == {"new": {}}


@pytest.mark.parametrize("text", [None, "", "{", "[]", "null", '{"rules": {}}', '{"sources": "1", "rules": {}}'])
def test_a_compiled_file_that_is_missing_or_damaged(copied: Path, text: str | None) -> None:
    """The sources are read, and an installation without them says what to do."""
    if text is not None:
        (copied / data.COMPILED).write_text(text)
    assert len(read()["rules"]) == len([*data.RULES.glob("*.toml")])
    if text is None or not text.startswith('{"'):
        shutil.rmtree(data.RULES)
        with pytest.raises(TableError, match="install zaudit again"):
            read()


def test_an_installed_zaudit_has_no_rule_but_those_that_were_compiled(copied: Path) -> None:
    """Also where another package has a folder of that name next to it."""
    text = data.compiled(installed=True) + data.packed({"rules": {"atime-on": {}}, "rules/atime-on": {}})
    (copied / data.COMPILED).write_text(text)
    assert read()["rules"] == {"atime-on": {}}


def test_setup_puts_the_compiled_file_into_what_is_installed() -> None:
    text = (data.RULES.parent / "setup.py").read_text()
    assert "data.COMPILED).write_text(data.compiled(installed=True))" in text


def test_what_is_retired_is_no_rule_and_names_one_or_a_way_of_its_own() -> None:
    written = tomllib.loads(data.text(data.RETIRED))
    assert not written.keys() & QUICK.keys()
    assert {entry["successor"] for entry in written.values() if "successor" in entry} <= QUICK.keys()
    assert [id for id, sentence in data.retired().items() if not sentence.startswith(f"{id} is retired: ")] == []


@for_each("path", rule_format.FILES, ids=lambda path: path.stem)
def test_every_file_is_laid_out_alike(path: Path) -> None:
    """python -m tests.rule_format does it."""
    text = rule_format.laid_out(path)
    assert path.read_text() == text
    assert [line for line in text.split("\n") if len(line) > LONGEST] == []


def test_layout_changes_no_rule() -> None:
    for id, table in data.rules().items():
        again = tomllib.loads(rule_format.rule(table))
        assert rule_file.from_table(id, "", again, registry()).fix
        assert digest([rule_file.trusted(id, "", again, registry(), {}, whole=dict)]) == digest([QUICK[id]])
        assert again["example"] == table["example"]


def test_every_file_is_a_rule_and_no_other() -> None:
    assert {rule.id for rule in load_folder(data.RULES, registry())} == data.rules().keys()


@for_each("rule", RULES, ids=lambda rule: rule.id)
def test_the_rule_of_a_check_is_the_same(rule: Any) -> None:
    """Read in a hurry, and read whole."""
    quick = QUICK[rule.id]
    assert [getattr(quick, field) for field in PLAIN] == [getattr(rule, field) for field in PLAIN]
    assert sources(quick) == sources(rule)
    assert not quick.examples


def sources(rule: Any) -> list[object]:
    """What was compiled of it, as it is written."""
    conditions = [
        *(each.when for each in rule.cases),
        *(each for _, each in rule.fix.cases),
        *([rule.when] if rule.when else []),
        rule.expect,
    ]
    fixes = [rule.fix, *(each for each, _ in rule.fix.cases)]
    return [
        rule.severities,
        [each.source for each in conditions],
        rule.message and rule.message.source,
        [(each.text, each.cost, each.command and each.command.source) for each in fixes],
    ]


@for_each("rule", RULES, ids=lambda rule: rule.id)
def test_no_rule_passes_over_what_was_not_seen(rule: Any) -> None:
    """all() over nothing is true: a link that must lead somewhere is unknown where it does not."""
    conditions = [rule.expect, *(each.when for each in rule.cases), *([rule.when] if rule.when else [])]
    for condition in conditions:
        for node in ast.walk(ast.parse(condition.source.strip(), mode="eval")):
            if isinstance(node, ast.comprehension):
                assert isinstance(node.iter, ast.Attribute)
                link = node.iter.attr
                specs = [spec for (_, name), spec in registry().items() if name == link and spec.many]
                assert link in MAY_BE_NONE or all(spec.nonempty for spec in specs), link


@for_each("rule", RULES, ids=lambda rule: rule.id)
def test_no_rule_ranks_itself(rule: Any) -> None:
    """What breaks the path of a commit names the element, and its severity follows; of the others one about commits or
    corruption says why no event brings it about, and only what stops the database is critical."""
    if rule.elements:
        assert rule.harm in ("commits", "corruption", "availability")
        assert rule.gravest in ("medium", "high", "critical")
    elif rule.harm in ("commits", "corruption"):
        assert rule.outside
    elif rule.gravest == "critical":
        assert rule.harm == "availability"


def test_each_element_costs_something_by_the_table_and_each_row_is_of_an_element() -> None:
    assert ROWS.keys() == ELEMENTS.keys()
    assert [each for each in ELEMENTS if not events_of(each)] == ["indirect", "room"]  # which make others worse
    there = {row.elements[0] for row in durability.load().rows}
    assert {each for rows in ROWS.values() for each in rows} <= there


@pytest.mark.parametrize(
    ("host", "rule", "says"),
    [
        ("2.3-healthy-single-slog", "slog-no-redundancy", "is a single disk"),
        ("2.1-slog-striped", "slog-no-redundancy", "is a single disk, and the log is striped over it and other vdevs"),
        ("2.1-slog-legs-on-one-disk", "slog-no-redundancy", "at least two of its legs are on the same physical drive"),
        (
            "2.3-consumer-ssd-log",
            "no-power-loss-protection",
            "(class log) has a volatile write cache and no known power-loss",
        ),
        (
            "2.3-import-rewound",
            "import-discards-commits",
            "with -F or another rewind",
        ),
        ("2.3-slog-missing-at-import", "import-discards-commits", "and a log device is missing"),
    ],
)
def test_a_merged_rule_says_which_case_it_is(host: str, rule: str, says: str) -> None:
    found = incidents.report_of(passed_through(shared.host(host))).verdicts
    messages = [each.message for each in found if each.rule.id == rule and each.outcome == "fail"]
    assert [each for each in messages if says in each], messages


@pytest.mark.parametrize(
    ("percent", "says"),
    [(unknown("not asked"), ""), (known(99, ""), "full"), (known(90, ""), "of the rule"), (known(1, ""), "")],
)
def test_the_message_is_that_of_the_first_case_that_holds(percent: Judged, says: str) -> None:
    cases = """cases = [
  { severity = "high", when = "pool.capacity_percent > 98", message = "full" },
  { severity = "medium", when = "pool.capacity_percent > 85" },
  { severity = "medium", when = "pool.capacity_percent > 80", message = "never reached at 90" },
]
"""
    text = f'message = "of the rule"\n{cases}{MINIMAL}'
    rule = load("a-rule", "a-rule.toml", text.encode(), registry())
    pool, facts = Subject("pool", "tank"), Facts()
    facts.put_all((Fact(HOST, "pools", known((pool,), "")), Fact(pool, "capacity_percent", percent)))
    assert [each.message for each in judge([rule], facts)] == [says]


def test_the_first_rules_are_there() -> None:
    assert {rule.id for rule in RULES} >= THE_FIRST


CHANGES = (
    *(
        f"zpool {verb}"
        for verb in ["add", "attach", "checkpoint", "export", "online", "remove", "reopen", "replace", "scrub", "set"]
    ),
    *(
        "echo",
        "hdparm -W",
        "nvme format",
        "storcli64",
        "swapoff",
        "systemctl enable",
        "systemctl mask",
        "udevadm trigger",
        "systemctl start",
        "zfs mount",
        "zfs share",
        "zfs set",
        "zgenhostid",
    ),
)
ANSWERED = 'elements = ["drive"]\nanswer = "flushes honoured"\n'
LIMIT = 'thresholds.limit = { default = 1, least = 0, most = 2, unit = "%", text = "t" }'
MINIMAL = """
title = "A rule"
severity = "low"
subject = "pool"
harm = "hygiene"
expect = "pool.capacity_percent < 80"
impact = "It fills up."
why = "Because."
references = ["zpoolprops.7 capacity"]
fix = { text = "Delete something.", cost = "safe" }
example = [
  { name = "a", given = { "pool.capacity_percent" = 1 }, verdict = "pass" },
  { name = "b", given = { "pool.capacity_percent" = 81 }, verdict = "fail" },
  { name = "c", given = { }, verdict = "unknown" },
]
"""


def test_a_minimal_rule_loads() -> None:
    assert load("a-rule", "a-rule.toml", MINIMAL.encode(), registry()).title == "A rule"
    longest = MINIMAL.replace("A rule", "A" + "b" * 99)
    assert len(load("a-rule", "a-rule.toml", longest.encode(), registry()).title) == 100
    answered = MINIMAL.replace('severity = "low"', ANSWERED)
    assert load("a-rule", "a-rule.toml", answered.encode(), registry()).answer == "flushes honoured"


@pytest.mark.parametrize(
    ("hung", "said"),
    [
        (known(("txg_sync=1", "z_wr=iss=12"), ""), "txg_sync (once), z_wr=iss (12 times)"),
        (known((), ""), "none"),
        (unknown("not asked"), "(unknown)"),
    ],
)
def test_of_a_list_a_reader_is_told_how_often_or_that_it_is_empty(hung: Judged, said: str) -> None:
    facts = Facts()
    facts.put_all(Fact(HOST, name, each) for name, each in (("hung_tasks", hung), ("tunables_changed", known((), ""))))
    text = "hung: {host.hung_tasks}; {len(host.hung_tasks)} changed: {host.tunables_changed}"
    for value in rule_file.AT_ONCE.value, rule_file.WHEN_ASKED.value:
        many = len(hung.value) if isinstance(hung, Known) and isinstance(hung.value, tuple) else "(unknown)"
        template = rule_file._template(text, "host", registry(), value)
        assert fill(template, HOST, "", facts, shell=False) == f"hung: {said}; {many} changed: none"
        assert fill(template, HOST, "", facts, shell=True).endswith("changed: ''")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("capacity_percent < 80", "capacity_percnt < 80"), "provides pool.capacity_percnt"),
        (('severity = "low"', 'severity = "info"'), "it is one of low, medium, high, critical"),
        (('severity = "low"', ""), "a rule gives elements"),
        (('severity = "low"', 'severity = "low"\nanswer = "flushes honoured"'), "answer goes with the elements"),
        (('severity = "low"', ANSWERED.replace("drive", "ask")), "answer goes with the elements"),
        (('severity = "low"', ANSWERED.replace("honoured", "ignored")), "it is one of flushes honoured"),
        (('title = "A rule"', 'title = "A rule."'), "headline"),
        (('harm = "hygiene"', 'harm = "hygiene"\nseverty_if = 1'), "no key 'severty_if'"),
        (('references = ["zpoolprops.7 capacity"]', "references = []"), "at least 1"),
        (('verdict = "unknown"', 'verdict = "pass"'), "no example shows the verdict 'unknown'"),
        (('cost = "safe"', 'cost = "cheap"'), "it is one of safe"),
        (('impact = "It fills up."', 'impact = ""'), "impact must be text"),
        (('expect = "pool.capacity_percent < 80"', "expect = 1"), "expect must be text"),
        (('subject = "pool"', 'subject = "pond"'), "it is one of host"),
        (('title = "A rule"', f'title = "A{"b" * 100}"'), "at most 100 characters"),
        (('title = "A rule"', 'title = "a rule"'), "headline"),
        (('harm = "hygiene"', 'harm = "hygiene"\norigin = "pool.sync"'), "not a fact of the rule's subject"),
        (('harm = "hygiene"', 'harm = "hygiene"\norigin = "dataset.sync"'), "not a fact of the rule's subject"),
        (('harm = "hygiene"', 'harm = "hygiene"\nmessage = "{subject"'), "unbalanced braces in '{subject'"),
        (('harm = "hygiene"', 'harm = "hygiene"\nmessage = "subject}"'), "unbalanced braces in 'subject}'"),
        (('harm = "hygiene"', 'harm = "hygiene"\ncases = 3'), "cases are a list of tables"),
        (('harm = "hygiene"', 'harm = "hygiene"\ncases = [3]'), "cases are a list of tables"),
        (('cost = "safe" }', 'cost = "safe", cases = [3] }'), "cases are a list of tables"),
        (('cost = "safe" }', 'cost = "safe", cases = [{ text = "a", cost = "safe" }] }'), "a case of a fix needs when"),
        (('harm = "hygiene"', f'harm = "hygiene"\n{LIMIT}\ncases = 3'), "threshold limit is used in no expression"),
        (('harm = "hygiene"', f'harm = "hygiene"\n{LIMIT}\ncases = [3]'), "threshold limit is used in no expression"),
        (('harm = "hygiene"', 'harm = "hygiene"\nthresholds = 3'), "thresholds must be a table"),
        (('harm = "hygiene"', 'harm = "hygiene"\nthresholds = 0'), "thresholds must be a table"),
        (('harm = "hygiene"', 'harm = "hygiene"\ncases = [{ severity = "low" }]'), "a case needs when"),
        (('harm = "hygiene"', 'harm = "hygiene"\nwhen = "1 < 2"'), "no example shows the verdict 'not applicable'"),
        (('severity = "low"', 'elements = ["flushes"]'), "elements: 'flushes' is none of leave"),
        (('severity = "low"', "elements = []"), "elements must be a list of at least 1"),
        (('severity = "low"', 'loses = "power"'), "a rule has no key 'loses'"),
        (('references = ["zpoolprops.7 capacity"]', 'references = "zpoolprops.7"'), "references must be a list"),
        (('references = ["zpoolprops.7 capacity"]', 'references = [""]'), "references must be a list"),
        (('references = ["zpoolprops.7 capacity"]', "references = [1]"), "references must be a list"),
        (('given = { }, verdict = "unknown"', 'given = 1, verdict = "unknown"'), "given must be a table"),
        (('fix = { text = "Delete something.", cost = "safe" }', "fix = 3"), "fix must be a table"),
        (("Delete something.", "Delete {pool}."), "{pool} is no word of a platform"),
        (("Delete something.", "Install it: {package}."), "{package} is no word of a platform"),
        ((MINIMAL[MINIMAL.index("example =") :], "example = 3"), "examples are [[example]] tables"),
        (('title = "A rule"', "title = "), "Invalid"),
        (("title", f"origin = {'[' * 100_000}\ntitle"), "nested too deeply"),
        (("title", f"origin = {'9' * 5000}\ntitle"), "too many digits"),
        (("< 80", f"< {'9' * 5000}"), "longer than 4096 characters"),
        (("< 80", f"< {'9' * 40}"), "a number is too large"),
        (("< 80", "< " + "-" * 2000 + "80"), "nested too deeply"),
        (("pool.capacity_percent < 80", "not " * 500 + "pool.capacity_percent < 80"), "nested too deeply"),
    ],
)
def test_a_wrong_rule_is_an_error_that_names_the_file(change: Any, says: Any) -> None:
    text = MINIMAL.replace(*change)
    assert text != MINIMAL
    with pytest.raises(RuleError) as error:
        load("a-rule", "folder/a-rule.toml", text.encode(), registry())
    assert str(error.value).startswith("folder/a-rule.toml: ")
    assert says in str(error.value)


def test_stray_files_empty_folders_and_doubles_are_errors(tmp_path: Any) -> None:
    with pytest.raises(RuleError, match="no rule in it"):
        load_folder(tmp_path, registry())
    (tmp_path / "a-rule.toml").write_text(MINIMAL)
    assert [rule.id for rule in load_folder(tmp_path, registry())] == ["a-rule"]
    with pytest.raises(RuleError, match="exists already"):
        rulebook.load([tmp_path, tmp_path])
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(RuleError, match="stray"):
        load_folder(tmp_path, registry())
    with pytest.raises(RuleError, match="no such folder"):
        load_folder(tmp_path / "none", registry())


def test_a_fix_either_looks_or_changes_something() -> None:
    """What "Fix first" stands before changes something; a command of neither kind is to be put into one of the two."""
    fixes = [each for rule in RULES for each in (rule.fix, *(case for case, _ in rule.fix.cases))]
    verbs = {each.command.source for each in fixes if each.command}
    looks = {each for each in verbs if each.startswith(phrases.LOOKS)}
    assert {each for each in verbs - looks if not each.startswith(CHANGES)} == set()
    assert not {each for each in looks if any(word in each for word in (" set ", "remove", "replace", " > "))}


def test_each_case_says_its_condition_in_words() -> None:
    """A site's own rule may leave that out, and its page shows the expression."""
    cases = [(rule.id, case.means, case.when) for rule in RULES for case in rule.cases]
    cases += [(rule.id, fix.means, condition) for rule in RULES for fix, condition in rule.fix.cases]
    assert len(cases) > 100
    assert {each for each in cases if each[1] == each[2].source or each[1].endswith(".")} == set()


def test_a_folder_holds_as_many_files_as_that_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_file, "FILES", 2)
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(MINIMAL)
    assert [rule.id for rule in load_folder(tmp_path, registry())] == ["one", "two"]
    (tmp_path / "three.toml").write_text(MINIMAL)
    with pytest.raises(RuleError, match="more than 2 files"):
        load_folder(tmp_path, registry())
