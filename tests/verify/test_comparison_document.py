"""A verification goes to JSON and back as the same, and whatever else stands in a file is one clear error."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from auditor import codec
from auditor.codec import CodecError
from auditor.commands._schemas import verification as schema
from auditor.text import harmless
from auditor.verify.comparison import LARGEST, document, load
from auditor.verify.result import Histogram, Verification
from tests import shared
from tests.golden import VERIFY_SCHEMA
from tests.verify import samples, strategies

SCHEMA = json.loads(VERIFY_SCHEMA.read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
SAMPLES = {  # made where a test needs them, not by whoever collects the tests
    "traced": lambda: samples.with_calls(samples.made("traced")),
    "contradicted": lambda: samples.made("contradicted"),
    "inconclusive": lambda: samples.made("inconclusive"),
}
slow = shared.examples(60, deadline=None, suppress_health_check=list(HealthCheck))


def small() -> dict[str, Any]:
    """A document to break."""
    return document(samples.with_calls(samples.traced((samples.run(seconds=3),))))


def test_the_schema_is_that_of_the_types() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert schema() == SCHEMA, "run: python -m tests.golden"


@pytest.mark.parametrize("name", SAMPLES)
def test_there_and_back(name: str) -> None:
    verification = SAMPLES[name]()
    text = json.dumps(document(verification), allow_nan=False)
    VALIDATOR.validate(json.loads(text))
    assert load(text) == verification
    assert load(json.dumps(document(load(text)))) == verification


@slow
@given(strategies.of(Verification))
def test_any_verification_goes_there_and_back(verification: Verification) -> None:
    text = json.dumps(document(verification), allow_nan=False)
    VALIDATOR.validate(json.loads(text))
    assert load(text) == verification


def test_a_histogram_is_small() -> None:
    run = samples.run()
    assert len(json.dumps(codec.plain(run), separators=(",", ":"))) < 200_000  # two minutes, a slice a second


def test_names_that_are_not_utf8_are_spelt_out() -> None:
    odd = samples.traced()._replace(dataset="tank/caf\udce9")
    data = document(odd)
    json.dumps(data, ensure_ascii=False).encode("utf-8")
    assert load(json.dumps(data)).dataset == "tank/caf\\xe9"


def places(data: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to everything in a document."""
    members = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [at, *(place for key, each in members for place in places(each, (*at, key)))]


def put(data: Any, place: tuple[Any, ...], value: Any) -> Any:
    changed = deepcopy(data)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


SMALL = small()
INNER = [place for place in places(SMALL) if place]
STRANGE: tuple[Any, ...] = (
    None,
    True,
    7,
    -1,
    1.5,
    2**70,
    "x",
    "",
    [],
    {},
    [1],
    {"x": 1},
    "\x1b[2J",
    {"20": 0},
    {"07": 1},
    "TRACED",
)


@slow
@given(st.sampled_from(INNER), st.sampled_from(STRANGE))
def test_what_the_schema_refuses_is_refused_with_one_clear_error(place: tuple[Any, ...], value: Any) -> None:
    broken = put(SMALL, place, value)
    try:
        load(json.dumps(broken))
    except CodecError as error:
        assert not VALIDATOR.is_valid(broken), "the schema accepts what the loader refuses"
        message = str(error)
        assert message == harmless(message)
        assert len(message) < 300
    else:
        assert VALIDATOR.is_valid(broken), "the loader accepts what the schema refuses"


@slow
@given(st.sampled_from([place for place in INNER if isinstance(place[-1], str) and place[0] == "verification"]))
def test_a_missing_member_is_named(place: tuple[Any, ...]) -> None:
    broken = deepcopy(SMALL)
    inner = broken
    for key in place[:-1]:
        inner = inner[key]
    if any(part in ("latency", "syncs", "counters", "others", "idle_writes") for part in place[:-1]):
        return  # members of a table, not of a record
    del inner[place[-1]]
    with pytest.raises(CodecError, match=f"{place[-1]}.* is missing"):
        load(json.dumps(broken))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 200_000, "nested too deeply"),
        ("[]", 'no "schema"'),
        ('{"schema": "zaudit-verify/2", "verification": {}}', "this zaudit reads zaudit-verify/1"),
        ('{"schema": "zaudit-report/1"}', "this zaudit reads zaudit-verify/1"),
        ('{"schema": "zaudit-verify/1"}', '"verification" is missing'),
        ('{"schema": "zaudit-verify/1", "schema": "zaudit-verify/1"}', "twice"),
        ('{"schema": "zaudit-verify/1", "verification": ' + "9" * 5000 + "}", "not JSON"),
        ('{"schema": "\\u001b[2J", "verification": 1}', "this zaudit reads zaudit-verify/1"),
        ('{"schema": "zaudit-verify/1", "verification": NaN}', "not a finite number, not an object"),
        (" " * (LARGEST + 1), "longer than 64 MiB"),
    ],
    ids=range(12),
)
def test_what_is_no_document(text: str, says: str) -> None:
    with pytest.raises(CodecError, match=says) as raised:
        load(text)
    assert str(raised.value) == harmless(str(raised.value))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "true", '"1"', "null"])
def test_a_number_is_a_number(number: str) -> None:
    text = json.dumps(SMALL).replace(f'"taken": {SMALL["verification"]["taken"]}', f'"taken": {number}')
    assert number in text
    with pytest.raises(CodecError, match=r"verification\.taken is .*, not a number"):
        load(text)


def test_a_whole_number_may_stand_for_a_float() -> None:
    assert codec.load(float, 3, "x") == 3.0
    assert isinstance(codec.load(float, 3, "x"), float)
    with pytest.raises(CodecError):
        codec.load(int, 3.0, "x")


def test_buckets_are_put_in_order() -> None:
    assert codec.load(Histogram, {"30": 1, "20": 2}, "x") == Histogram(((20, 2), (30, 1)))
