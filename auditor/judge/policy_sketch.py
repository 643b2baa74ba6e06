"""A policy to begin with, from what was seen: all of it comments, so that it decides nothing until somebody does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain

from auditor.data import providers
from auditor.databases import ENGINES
from auditor.facts import HOST, Facts, Subject
from auditor.judge.finding import Finding
from auditor.judge.identity import Identities
from auditor.judge.policy_file import ADOPTING, PATH, quoted
from auditor.judge.rule import Rule
from auditor.model.derivation import catch_missing
from auditor.model.disk import shower
from auditor.text import harmless

DAYS = 90
HEAD = f"""\
# Policy of zaudit for this host: {PATH}, or zaudit check --policy FILE.
# It decides nothing yet: remove the # before what you decide. zaudit stops at a line that it does not understand.

# -- rules: "off", or how severe one is here ("low", "medium", "high", "critical"); zaudit rules lists them
[rules]
# atime-on = "off"
"""
DATASETS = f"""\
# -- what datasets are for; an entry holds for what is below it, too, unless that has its own
# role      log, data, both, or rebuildable: may lose its last seconds in a crash, because it is rebuilt from elsewhere
# database  {", ".join(ENGINES)}
# reason    needed with rebuildable: what it is rebuilt from
"""
WAIVERS = """
# -- waivers: findings with an owner and a last day. They stay in the report and do not count.
# Exactly one of: dataset = "tank/db" (and those below it), pool = "GUID", device = "SERIAL",
# database = "postgres" (or "postgres /its/data/directory"), host = "NAME" (with all that is on it).
# Answers: what zaudit cannot check here and an administrator knows. Of drives with serial = "..." or model = "...".
"""


def sketch(facts: Facts, found: Sequence[Finding], rules: Sequence[Rule]) -> str:
    """The text of a policy; it parses, and says nothing."""
    parts = (HEAD.splitlines(), _thresholds(rules), DATASETS.splitlines(), _datasets(facts), WAIVERS.splitlines())
    return "\n".join([*chain(*parts), *_waivers(facts, found)]) + "\n"


def _thresholds(rules: Sequence[Rule]) -> Iterator[str]:
    yield ""
    yield "# -- thresholds: numbers in rules that a site may decide; each with its default and what it may be"
    yield "[thresholds]"
    for rule in rules:
        for each in rule.thresholds:
            bounds = f"{each.spell(each.least)} to {each.spell(each.most)}"
            yield f"# {rule.id}.{each.name} = {each.default}   # {bounds}: {each.text}"
    yield ""


def _datasets(facts: Facts) -> Iterator[str]:
    roles = _roles(facts)
    datasets = {each for pool in facts.linked(HOST, "pools") for each in facts.linked(pool, "datasets")}
    for dataset in sorted(datasets):
        role, database, why = roles.get(dataset, ("both", "", ""))
        yield f"# [datasets.{quoted(dataset.name)}]"
        yield f'# role = "{role}"' + (f"   # {harmless(why)}" if why else "")
        yield f'# database = "{database or "postgres"}"'
        yield "#"


def _roles(facts: Facts) -> dict[Subject, tuple[str, str, str]]:
    """(role, database, why) of the datasets that a database which was found lies on."""
    found: dict[Subject, tuple[str, str, str]] = {}
    for database in facts.subjects("database"):
        engine = facts.get(database, "engine").word()
        logs, data = facts.linked(database, "log_datasets"), facts.linked(database, "data_datasets")
        for each in (*logs, *data):
            role = "both" if each in logs and each in data else "log" if each in logs else "data"
            found[each] = role, engine, f"files of {database.name} lie here"
    return found


def _waivers(facts: Facts, found: Sequence[Finding]) -> Iterator[str]:
    until = (datetime.fromtimestamp(facts.now, UTC) + timedelta(days=DAYS)).date()
    answered: set[tuple[str, str]] = set()
    for finding in found:
        parties = {party for each in finding.verdicts for party in each.relies}
        if len(parties) == 1 and finding.rule.answer and all(each.relies for each in finding.verdicts):
            (word,), answer = parties, finding.rule.answer
            for serial in _serials(facts, finding) if word == "drive" else [""]:
                if (key := (word, serial)) not in answered:
                    answered.add(key)
                    yield f"# {finding.severity}: {finding.rule.title}"
                    yield from _adoptable(word, facts)
                    yield from ("# [[answer]]", f'# {word} = "{answer}"')
                    yield from (f"# serial = {quoted(serial)}",) if serial else ()
                    yield from ('# owner = ""', '# reason = ""', f"# expires = {until}", "#")
            continue
        scopes = set(filter(None, (_scope(facts, each.subject) for each in finding.verdicts)))
        for scope, name in sorted(each for each in scopes if not any(_above(other, each) for other in scopes)):
            outcome = "" if finding.failed else ", could not be decided"
            for each in {each.rule.id: each for each in finding.verdicts}.values():  # known bugs are waived one by one
                yield f"# {each.severity}{outcome}: {each.rule.title}"
                yield from ("# [[waiver]]", f'# rule = "{each.rule.id}"', f"# {scope} = {quoted(name)}")
                yield from ('# owner = ""', '# reason = ""', f"# expires = {until}", "#")


def _adoptable(party: str, facts: Facts) -> Iterator[str]:
    """What providers document that may be below: one line for each."""
    disks = (
        disk for disk in facts.subjects("disk") if party in ADOPTING and catch_missing(shower)(disk, facts) == party
    )
    for id in dict.fromkeys(id for disk in disks for id in facts.get(disk, "providers").words()):
        each = providers.load()[id]
        yield f"# {each.name} documents: {each.documents}"
        yield f"# ({each.source}, read {each.read}; of events: {', '.join(each.keeps)}). Adopt it if {each.terms}:"
        yield from ("# [answers]", f"# {party} = {quoted(id)}", "#")


def _serials(facts: Facts, finding: Finding) -> list[str]:
    subjects = [each.subject for each in finding.verdicts]
    leaves = [leaf for each in subjects for leaf in (facts.linked(each, "leaves") if each.kind == "vdev" else (each,))]
    disks = (disk for leaf in leaves for disk in facts.linked(leaf, "disks"))
    return [serial for disk in disks if (serial := facts.get(disk, "serial").word())]


def _above(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether the first names a dataset above the second."""
    return one[0] == other[0] == "dataset" and other[1].startswith(one[1] + "/")


def _scope(facts: Facts, subject: Subject) -> tuple[str, str] | None:
    """The narrowest scope that names a subject; None where its name is not known."""
    pool = Subject("pool", subject.within or subject.name)
    match subject.kind:
        case "dataset":
            return "dataset", subject.name
        case "database":
            text, label = Identities(facts).of(subject)
            scope, name = "database", label if text else ""
        case "host":
            scope, name = "host", facts.get(HOST, "hostname").word()
        case "disk":
            scope, name = "device", facts.get(subject, "serial").word()
        case "pool" | "vdev" | "leaf":
            scope, name = "pool", facts.get(pool, "guid").word() or facts.get(pool, "list_guid").word()
        case _:
            return None
    return (scope, name) if name else None
