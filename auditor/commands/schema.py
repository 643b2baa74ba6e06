"""``zaudit schema``: the JSON Schemas of what zaudit reads and writes, for editors and programs."""

from __future__ import annotations

import json
import pkgutil
from typing import Any

import click
from click.shell_completion import CompletionItem

from auditor.errors import Stop
from auditor.screen import say
from auditor.text import near

# of what zaudit writes: report-1 is the first edition of a report, which zaudit still reads
FILES = {
    "report": "schema.json",
    "report-1": "schema-1.json",
    "jsonl": "formats/jsonl_schema.json",
    **{name: f"{name}_schema.json" for name in ("diff", "verify", "checklist", "powercut")},
    "diagnose": "diagnosis_schema.json",
}
NAMES = ("rule", "policy", *FILES)


class NoSchema(Stop):
    """A name of no schema."""


def _read(name: str) -> Any:
    if name in FILES:
        return json.loads(pkgutil.get_data("auditor.report", FILES[name]) or b"")
    from auditor.judge import file_schemas

    return {"rule": file_schemas.rule, "policy": file_schemas.policy}[name]()


def _names(context: click.Context, parameter: click.Parameter, word: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in NAMES if name.startswith(word)]


@click.command(short_help="Print the JSON Schema of a rule, a policy or a report.")
@click.argument("name", required=False, shell_complete=_names)
def schema(name: str | None) -> None:
    """Print the JSON Schema (draft 2020-12) of what zaudit reads or writes. Without NAME: which there are.

    An editor that knows schemas of TOML completes and checks rules and zaudit.toml with it.
    """
    if name is None:
        for each in NAMES:
            say(f"{each:<11}{_read(each)['title']}")
    elif name in NAMES:
        say(json.dumps(_read(name), indent=1))
    else:
        raise NoSchema(f"no schema {name!r}{near(name, NAMES)} (zaudit schema lists them)")


COMMAND = schema
