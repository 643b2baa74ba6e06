"""How a rule file is laid out: ``python -m tests.rule_format`` lays all of them out anew. What they say stays the same.

Keys in one order, values in one column, no line longer than WIDTH: long text stands between three quotes and is wrapped (white
space in it counts as one blank, but for the empty line between paragraphs of ``why``), long lists stand one element a line.
"""

from __future__ import annotations

import json
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from auditor import data, rulebook

WIDTH = 120
RULE = (
    *("title", "severity", "elements", "answer", "thresholds", "subject", "harm", "origin", "when", "expect"),
    *("next_boot", "outside", "amount", "answer", "message", "impact", "why", "references", "conflicts", "unprovoked"),
)
ADVISORY = (
    *("title", "severity", "elements", "harm", "affected", "exposed", "exposing", "spared"),
    *("impact", "why", "until", "remedy", "references", "unprovoked"),
)
CASE = ("severity", "when", "means", "message")
FIX = ("when", "means", "command", "text", "cost")
EXAMPLE = ("name", "verdict", "severity", "given")
ADVISORIES = data.HERE / rulebook.ADVISORIES
FILES = (*sorted(data.RULES.glob("*.toml")), ADVISORIES)


def rule(table: Mapping[str, Any]) -> str:
    """The file of one rule."""
    plain = {key: value for key, value in table.items() if key not in ("cases", "fix", "example")}
    blocks = [_keys("", plain, RULE)]
    blocks += [_keys("[[cases]]", each, CASE) for each in table.get("cases", ())]
    blocks.append(_keys("[fix]", {key: value for key, value in table["fix"].items() if key != "cases"}, FIX))
    blocks += [_keys("[[fix.cases]]", each, FIX) for each in table["fix"].get("cases", ())]
    blocks += [_keys("[[example]]", each, EXAMPLE) for each in table["example"]]
    return "\n\n".join(blocks) + "\n"


def advisories(text: str) -> str:
    """The table of known bugs. Its head is kept."""
    head = text[: text.index("\n[") + 1]
    return head + "\n\n".join(_keys(f"[{name}]", each, ADVISORY) for name, each in tomllib.loads(text).items()) + "\n"


def _keys(head: str, table: Mapping[str, Any], order: tuple[str, ...]) -> str:
    column = max(map(len, table))
    lines = [head] if head else []
    for key in sorted(table, key=lambda each: order.index(each) if each in order else len(order)):
        if key == "thresholds":
            lines += [f"thresholds.{name} = {_value(each)}" for name, each in table[key].items()]
        elif key == "given" and len(_value(table[key])) + len("given    = ") > WIDTH:
            lines += [
                "[example.given]",
                *(f"{_key(name)} = {_broken(each, _key(name))}" for name, each in table[key].items()),
            ]
        else:
            lines.append(f"{key:{column}} = {_broken(table[key], ' ' * column)}")
    return "\n".join(lines)


def _key(name: str) -> str:
    return name if name.isidentifier() else _text(name)


def _value(value: Any) -> str:
    """On one line."""
    match value:
        case str():
            return _text(value)
        case dict():
            return "{ " + ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items()) + " }"
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            return json.dumps(value)


def _text(text: str) -> str:
    return f"'{text}'" if "\\" in text or ('"' in text and "'" not in text) else json.dumps(text, ensure_ascii=False)


def _broken(value: Any, before: str, indent: int = 0, *, prose: bool = True) -> str:
    """On as many lines as it needs. before: what stands on the first, as far as " = ". prose: text may be wrapped."""
    whole = _value(value)
    if len(before) + len(" = ") + len(whole) <= WIDTH and "\\n" not in whole and "\n" not in whole:
        return whole
    pad = " " * (indent + 4)
    match value:
        case str() if prose:
            return "\n".join(_wrapped(value))
        case list():
            lines = (f"{pad}{_broken(each, pad, indent + 4, prose=prose)},\n" for each in value)
            return "[\n" + "".join(lines) + " " * indent + "]"
        case dict():
            items = (
                f"{_key(name)} = {_broken(each, pad + _key(name), indent, prose=False)}" for name, each in value.items()
            )
            return "{ " + ", ".join(items) + " }"
        case _:
            return whole


def _wrapped(text: str) -> Iterator[str]:
    """Paragraphs between three quotes."""
    mark = "'''" if "\\" in text or '"""' in text or text.strip().endswith('"') else '"""'
    yield mark
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        yield from [""] if number else []
        yield from textwrap.wrap(" ".join(paragraph.split()), WIDTH, break_long_words=False, break_on_hyphens=False)
    yield mark


def laid_out(path: Path) -> str:
    """How the file is to be."""
    text = path.read_text()
    return advisories(text) if path == ADVISORIES else rule(tomllib.loads(text))


if __name__ == "__main__":
    for path in FILES:
        path.write_text(laid_out(path))
