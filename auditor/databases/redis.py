"""Redis: what is known of it. (redis.conf of 7.0; src/config.c, src/sds.c sdssplitargs)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.databases.arguments import dashed
from auditor.databases.engine import (
    ARGUMENT,
    DOUBT,
    OTHER,
    WITHHELD,
    Engine,
    Line,
    Setting,
    Shape,
    boolean,
    by_line,
    kept,
    path,
    place,
    plain,
    word,
)
from auditor.facts import flag
from auditor.facts import word as one_of

CONF = "/etc/redis/redis.conf"
POLICIES = ("always", "everysec", "no")


def conf(text: str, known: Mapping[str, Shape]) -> list[Line]:
    """redis.conf: ``name value``, names in any case; a value may stand in quotes."""

    def read(line: str) -> Line:
        if line.startswith("#"):
            return OTHER
        name, _, value = line.replace("\t", " ").partition(" ")
        name, value = name.lower(), value.strip()
        if not all(each.isalnum() or each in "-_." for each in name):  # in quotes, or withheld
            return DOUBT
        if name not in known:
            return OTHER
        if len(value) > 1 and value[0] == value[-1] == '"':
            value = value[1:-1]
        elif " " in value:
            value = WITHHELD
        value = kept(value, known[name])
        shown = value if plain(value) or value == WITHHELD else f'"{value}"'
        return Line(f"{name} {shown}", "setting", name, value)

    return by_line(text, read)


def arguments(given: Sequence[str]) -> list[Line]:
    """``[FILE] --name value``; most builds put a title in their place."""
    first = given[:1] if given and not given[0].startswith("-") and given[0] not in ("", WITHHELD, ARGUMENT) else []
    lines = [Line(value, "setting", "config", value) for value in (kept(each, path) for each in first)]
    values = {each.name: (each.name, each.shape) for each in ENGINE.settings}
    return [*lines, *dashed(given[len(first) :], values, {})]


def _policy(value: str) -> str:
    if value not in POLICIES:
        raise ValueError(f"{value[:20]!r} is none of {', '.join(POLICIES)}")
    return value


ENGINE = Engine(
    name="redis",
    title="Redis",
    page_bytes=0,
    page_source="Redis manual, Persistence: its files are written from end to end",
    processes=("redis-server",),
    settings=(
        Setting("appendonly", word, "appendonly", flag("Redis appendonly"), "no", boolean),
        Setting("appendfsync", word, "appendfsync", one_of("Redis", *POLICIES), "everysec", _policy),
        Setting("dir", place),
        Setting("include", path),
    ),
    files=(("redis*.conf", conf),),
    arguments=arguments,
    data_options=("dir",),
    at_home=True,  # redis.conf of 7.0, dir
    taken_over="CONFIG SET with CONFIG REWRITE",
    compared=("appendonly", "appendfsync"),
)
