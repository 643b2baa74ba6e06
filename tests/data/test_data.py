"""What stands in the tables of auditor/data: every key, of its type, and what the code takes for granted of it."""

from __future__ import annotations

import re
from itertools import product
from typing import Any, get_args

import jsonschema
import pytest

from auditor import data
from auditor.advice import properties
from auditor.checklist import lists
from auditor.data import drives, durability, releases
from auditor.data.drives import CLASSES, CONFIDENCES
from auditor.data.durability import ANSWERS, COSTS, QUESTIONS, SEVERITIES
from tests.lab.points.torn import digest

Schema = dict[str, Any]
TEXT: Schema = {"type": "string", "pattern": r"\S"}
LINE: Schema = {"type": "string"}  # which may be empty
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
RELEASE: Schema = {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"}
DAY: Schema = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"}
USES = (
    *("encryption", "dedup", "volumes", "nfs", "raidz", "draid", "mirror", "removal", "special", "log", "cache"),
    *("spares", "multihost", "autotrim", "cloning", "direct-io", "gang", "quotas", "snapshots", "sends", "rebuild"),
)


def one_of(*words: str) -> Schema:
    return {"enum": list(words)}


def many(item: Schema, least: int = 0) -> Schema:
    return {"type": "array", "items": item, "minItems": least, "uniqueItems": True}


def table(keys: Schema, **perhaps: Schema) -> Schema:
    """perhaps: keys that may be left out."""
    every = {name: {"type": "array", "items": each} if "properties" in each else each for name, each in keys.items()}
    return {
        "type": "object",
        "properties": {**every, **perhaps},
        "required": [*keys],
        "additionalProperties": False,
    }


def by_name(item: Schema) -> Schema:
    return {"type": "object", "additionalProperties": item}


TEXTS, LINES, NUMBERS = many(TEXT, 1), many(TEXT), many(NUMBER)
PARTS = many(one_of("data", "log", "both"), 1)
CODES = many({"anyOf": [TEXT, TEXTS]}, 1)
EVENTS = [each["id"] for each in data.table(durability.FILE)["event"]]
COSTING = {question: table({}, **dict.fromkeys(COSTS, many(one_of(*EVENTS), 1))) for question in QUESTIONS}
WHY = {"why": TEXT, "sources": TEXTS}
MORE = {**COSTING, "relies_on": TEXT, "open": TEXT}
PAGES = {"page": NUMBER, "logbias": one_of("latency", "throughput"), "write": one_of("fsync", "always"), "slog": FLAG}
SCHEMAS = {
    "advisories.toml": by_name({**table({
        "title": TEXT, "harm": TEXT, "affected": TEXT, "impact": TEXT, "why": TEXT, "until": TEXT, "references": TEXTS},
        exposed=TEXT, exposing={"type": "object"}, spared={"type": "object"}, remedy=TEXT, unprovoked=TEXT, outside=TEXT,
        severity=TEXT, elements=TEXTS, answer=TEXT), "dependentRequired": {"exposed": ["exposing", "spared"],
        "spared": ["exposed"], "exposing": ["exposed"]}, "propertyNames": {"pattern": "^[a-z_]+$"}}),
    "advice.toml": table({"advice": table({
        "engines": LINES, "parts": PARTS, "type": one_of("filesystem", "volume", "any"), "property": TEXT, "value": TEXT,
        "also": LINES, "reason": TEXT, "cost": TEXT, "source": TEXT, "dispute": LINE}, fact=TEXT)}),
    "builds.toml": by_name(table({
        "name": TEXT, "source": TEXT, "newer": TEXT, "fixes": LINES,
        "builds": many({"type": "array", "prefixItems": [TEXT, LINES], "minItems": 2, "maxItems": 2})})),
    "checklists.toml": table({"list": table({"id": TEXT, "title": TEXT, "about": TEXT, "line": table({
        "id": TEXT, "text": TEXT, "source": TEXT, "on": one_of("", "log"), "rules": LINES, "against": LINES, "facts": LINES,
        "links": LINES, "verify": LINES, "diagnose": LINES, "ask": LINE})})}),
    "counters.toml": table({"held": by_name(TEXT), "fallbacks": by_name(TEXT)}, **dict.fromkeys(("postgres", "mysql"), table({
        "hidden": TEXT, "settings": TEXTS, "commands": many({**many(LINE, 2), "maxItems": 2}, 1), "waits": by_name(TEXT),
        "counter": table({"what": TEXT, "columns": many({**many(LINE, 3), "maxItems": 3}, 1)}, unit_ns={"type": "number"},
            timed=TEXT, only=TEXTS, but=TEXTS, always=FLAG)}))),
    "drives.toml": table({"drive": table({
        "pattern": TEXT, "plp": one_of(*CLASSES), "confidence": one_of(*CONFIDENCES), "family": TEXT, "source": TEXT,
        "examples": TEXTS})}),
    "durability.toml": table({
        "steps": {**by_name(TEXT)},
        "event": table({"id": TEXT, "title": TEXT, "destroys": TEXT, "worse": many(one_of(*EVENTS))}),
        "world": table({"id": TEXT, "title": TEXT, **WHY}, **MORE),
        "element": table({"id": TEXT, "title": TEXT}),
        "row": table({"elements": TEXTS, **WHY}, **MORE, worlds=TEXTS),
        "severity": table({
            "answers": many(one_of(*COSTS), 1), "questions": many(one_of(*QUESTIONS), 1),
            "events": many(one_of(*EVENTS), 1), "severity": one_of(*SEVERITIES), "why": TEXT})}),
    "firmware.toml": table({"firmware": table({
        "model": TEXT, "firmware": TEXT, "harm": TEXT, "fixed": TEXT, "source": TEXT,
        "example": {**many(TEXT, 3), "maxItems": 3}})}),
    "fixes.toml": by_name(table({
        "bug": TEXT, "does": one_of(*releases.DOES), "uses": many(one_of(*USES)), "affected": TEXT, "subject": TEXT,
        "issues": NUMBERS}, panic=CODES, fault=CODES, hung=many(TEXTS, 1), unreleased=FLAG,
        until={"type": "string", "pattern": r"^[^(]+$"})),
    "platforms.toml": table({"platform": {
        "type": "object", "required": ["name"], "additionalProperties": LINE, "properties": {
            "ids": LINES, "kernel": LINES, "packages": many({"type": "string", "pattern": "^[^=]+=[^=]+$"})}}}),
    "playbook.toml": by_name(table({
        "text": TEXT, "seen": many({"oneOf": [table({"text": TEXT, each: TEXT}) for each in ("command", "grows")]}, 1),
        "fix": TEXT}, rule=TEXT, decisive=FLAG)),
    "providers.toml": table({"provider": table({
        "id": TEXT, "name": TEXT, "machine": TEXT, "terms": TEXT, "documents": TEXT, "read": DAY,
        "source": {"type": "string", "pattern": r"^https://[\w.-]+/\S+$"},
        "keeps": many(one_of(*get_args(drives.Keeps)), 1)}, models=TEXT, machines=LINES, transports=LINES)}),
    "questions.toml": table({"question": table({
        "ask": TEXT, "answer": TEXT, "command": TEXT, "words": TEXTS, "sources": TEXTS})}),
    "retired.toml": by_name({"oneOf": [table({"successor": TEXT}), table({"instead": TEXT})]}),
    "shingled.toml": table({"shingled": table({
        "model": TEXT, "family": TEXT, "source": TEXT, "examples": TEXTS, "others": TEXTS})}),
    "synonyms.toml": table({"synonym": table({"words": TEXTS, "means": TEXTS})}),
    "torn_pages.toml": by_name(table({
        "first": RELEASE, "last": RELEASE, "tried": RELEASE, "lengths": NUMBER, "digest": TEXT,
        "rows": table({**PAGES, "recordsizes": NUMBERS, "apart": NUMBER, "alone": FLAG, "first": NUMBER}),
        "confirmed": table({
            **PAGES, "length": NUMBER, "points": NUMBER, "torn": NUMBER, "torn_at": NUMBERS, "harm": NUMBER})})),
    "tunables.toml": by_name(table({
        "default": {"type": "string", "pattern": r"^\d+\.\d+\.\d+=\S+( \d+\.\d+\.\d+=\S+)*$"},
        "changed": one_of("low", "medium", "own", "meant"), "means": TEXT})),
}  # fmt: skip


def test_every_table_has_a_shape() -> None:
    assert {path.name for path in data.HERE.glob("*.toml")} == {*SCHEMAS}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_table_has_its_shape(name: str) -> None:
    jsonschema.Draft202012Validator(SCHEMAS[name]).validate(data.table(name))


def test_every_pattern_is_one() -> None:
    patterns = [each["pattern"] for each in data.table("drives.toml")["drive"]]
    patterns += [each[key] for each in data.table("firmware.toml")["firmware"] for key in ("model", "firmware")]
    patterns += [each["model"] for each in data.table("shingled.toml")["shingled"]]
    patterns += [each.models for each in drives.load_providers().values()]
    assert all(re.compile(each) for each in patterns)


def test_nothing_stands_twice() -> None:
    builds = [build[0] for series in data.table(releases.BUILDS).values() for build in series["builds"]]
    lines = [line.id for each in lists.load() for line in each.lines]
    ids = [each["id"] for each in data.table("providers.toml")["provider"]]
    names = [each["name"] for each in data.table("platforms.toml")["platform"]]
    document = data.table(durability.FILE)
    model = [[each["id"] for each in document[kind]] for kind in ("event", "world", "element")]
    rows = [(*sorted(row.elements), world) for row in durability.load().rows for world in row.worlds]
    for found in (builds, lines, ids, names, rows, *model):
        assert [each for each in found if found.count(each) > 1] == []


def test_a_platform_builds_on_one_before_it() -> None:
    """The first has all words, and is for hosts that do not say what they are."""
    entries = data.table("platforms.toml")["platform"]
    assert entries[0]["name"] == "any"
    for at, each in enumerate(entries[1:], 1):
        assert each.get("like", "any") in [one["name"] for one in entries[:at]]
        assert each.keys() - {"ids", "kernel", "packages", "like"} <= entries[0].keys(), each["name"]


def test_a_provider_is_known_by_its_disks_or_its_machines() -> None:
    assert all(bool(each.models) is not bool(each.machines) for each in drives.load_providers().values())


def test_every_line_of_a_list_has_an_answer() -> None:
    for line in (line for each in lists.load() for line in each.lines):
        assert (line.ask, *line.rules, *line.facts, *line.links, *line.verify, *line.diagnose) != ("",), line.id


def test_the_defaults_of_a_tunable_are_in_order() -> None:
    for each in releases.load_tunables().values():
        assert list(each.steps) == sorted(each.steps), each.name


def test_a_fix_says_whether_a_release_has_it() -> None:
    for fix in releases.load_fixes():
        assert fix.unreleased is (releases.without(fix.affected, fix.affected[-1][0]) is None), fix.name
        assert fix.unreleased or not fix.until, fix.name


def test_advice_has_values() -> None:
    assert len(properties.load()) == len(data.table("advice.toml")["advice"])


@pytest.mark.parametrize("line", releases.load_torn_pages())
def test_no_hand_has_changed_what_was_tried(line: str) -> None:
    found = data.table(releases.TORN_PAGES)[line]
    assert found["digest"] == digest([*found["rows"], *found["confirmed"]])


# -- durability.toml: what follows is not said again, and nothing is left out ------------------------------------------


DURABILITY = durability.load()


def test_every_element_has_a_step_and_a_row_of_its_own() -> None:
    ids = [each["id"] for each in data.table(durability.FILE)["element"]]
    assert {id.partition(".")[0] for id in ids} <= DURABILITY.steps.keys()
    assert {row.elements[0] for row in DURABILITY.rows if len(row.elements) == 1} == {*ids}
    assert {element for row in DURABILITY.rows for element in row.elements} <= {*ids}
    assert {world for row in DURABILITY.rows for world in row.worlds} <= DURABILITY.worlds.keys()


def test_no_event_is_worse_than_itself() -> None:
    assert all(id not in each.worse for id, each in DURABILITY.events.items())


def test_every_cost_has_one_severity() -> None:
    cells = [
        cell
        for each in data.table(durability.FILE)["severity"]
        for cell in product(each["questions"], each["events"], each["answers"])
    ]
    assert sorted(cells) == sorted(product(QUESTIONS, EVENTS, COSTS))


def test_a_cost_says_no_more_than_the_mildest_event() -> None:
    document = data.table(durability.FILE)
    costs = (*zip(document["world"], DURABILITY.worlds.values(), strict=True),
             *zip(document["row"], DURABILITY.rows, strict=True))  # fmt: skip
    for entry, cost in costs:
        assert any("relies" in entry.get(each, {}) for each in QUESTIONS) is ("relies_on" in entry), cost
        for question, answers in ((each, entry.get(each, {})) for each in QUESTIONS):
            for event in (event for events in answers.values() for event in events):
                answer = cost.cells[question, event]
                assert event in answers[answer], (cost.elements, question, event)
                assert not any(event in DURABILITY.events[each].worse for each in answers[answer]), cost.elements
                assert answer in ANSWERS
