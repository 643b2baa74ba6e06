"""``zaudit.toml``: read strictly. Whatever is misspelt, missing or of the wrong type ends zaudit with its line, so that a
policy can never silently decide nothing, or something else::

    pages = "https://docs.example.org/zaudit"    # where the site has published what `make site` makes; reports link to it

    [rules]                    # RULE = "off", or how severe it is: "low", "medium", "high", "critical"
    atime-on = "off"

    [thresholds]               # RULE.NAME = NUMBER; zaudit explain RULE says which there are, and what they may be
    pool-nearly-full.nearly_full = 85

    [datasets."tank/db/wal"]   # and those below it
    role     = "log"           # log, data, both or rebuildable
    database = "postgres"

    [[waiver]]
    rule    = "slog-no-redundancy"
    pool    = "4711..."        # its GUID; or dataset = "tank/db", device = "SERIAL", database = "postgres",
                               # host = "db1" (with all that is on it), class = "virtual machine"
    owner   = "storage@example.org"
    reason  = "the second log device is ordered"
    expires = 2027-01-31       # the last day on which it holds

    [answers]                  # what a provider documents (auditor/data/providers.toml), adopted by the site
    hypervisor = "aws-ebs"     # or a list of several; or target

    [[answer]]                 # what nothing here can check
    hypervisor = "flushes honoured"    # or controller, target (host = "db1": of that one only); or drive, with model or serial
    owner   = "virtualization@example.org"
    reason  = "cache=none on all hosts of the cluster"
    expires = 2027-01-31

In the names of rules, hosts and datasets ``*`` stands for any characters (of a dataset but "/").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Any, cast

from auditor import codec
from auditor.data import drives
from auditor.databases import ENGINES
from auditor.facts import HOST, Facts, Subject
from auditor.judge.event import ANSWER, ANSWERING, MEANS, Party
from auditor.judge.finding import Finding
from auditor.judge.policy import (
    CLASSES,
    FILE,
    PAGES,
    ROLES,
    SCOPES,
    SETTINGS,
    Answer,
    Declared,
    Policy,
    PolicyError,
    Role,
    Setting,
    Waiver,
    is_dataset,
)
from auditor.judge.rule import Decided, Rule, is_number
from auditor.judge.verdict import Identities
from auditor.model.derivation import catch_missing
from auditor.model.disk import shower
from auditor.text import argument, harmless

PATH = "/etc/zaudit/zaudit.toml"
LIMIT = codec.TOML_LIMIT  # bytes of a file
WAIVERS = 1000  # and as many answers
TABLES = ("rules", "thresholds", "datasets", "waiver", "answer", "answers")
ADOPTING = ("hypervisor", "target")  # whose documentation a site can adopt
FIELDS = ("owner", "reason", "expires")
# of each table: the keys that it needs, and those that it may have
DATASET = (set[str](), {"role", "database", "reason"})
WAIVER = ({"rule", *FIELDS}, set[str](SCOPES))
ANSWERED = (set(FIELDS), {*ANSWERING, "model", "serial", "host"})
Fail = Callable[[str, str], PolicyError]


def _parse(text: str, path: str, above: int) -> Policy:
    """One file. above: lines of the files before it, counted in those of its entries. Raises PolicyError."""
    try:
        table = codec.loads_toml(text)
    except codec.TomlError as error:
        raise PolicyError(f"{path}: {error}") from None
    lines = _Lines(text, path, above)
    for name in table:
        if name not in (*TABLES, "pages"):
            raise lines.error("", name, f"no table of a policy has this name; there are {', '.join(TABLES)}")
    pages = table.get("pages", "")
    if "pages" in table and not (isinstance(pages, str) and re.fullmatch(PAGES, pages)):
        raise lines.error(
            "", "pages", f"pages = {pages!r}: it must be an address, like https://docs.example.org/zaudit"
        )
    return Policy(
        path=path,
        text=text,
        datasets=tuple(_datasets(_table(table, "datasets", lines), lines)),
        rules=dict(_rules(_table(table, "rules", lines), lines)),
        thresholds=dict(_thresholds(_table(table, "thresholds", lines), lines, path)),
        waivers=tuple(_waivers(table.get("waiver", []), lines)),
        answers=(*_answers(table.get("answer", []), lines), *_adopted(_table(table, "answers", lines), lines)),
        pages=pages.rstrip("/"),
    )


class _Lines:
    """Where something stands in the text: tomllib does not say. Each line is looked at once."""

    def __init__(self, text: str, path: str, above: int) -> None:
        self._path, self.above = path, above
        self._everywhere: dict[str, int] = {}
        self._below: dict[str, list[tuple[int, dict[str, int]]]] = {}  # header -> (its line, key -> line) of each
        here: dict[str, int] = {}
        for number, line in enumerate(text.split("\n"), 1):
            head = line.split("#")[0].strip()
            if line.strip().startswith("["):
                here = {}
                self._below.setdefault(head, []).append((number, here))
            for name in _names(line):
                self._everywhere.setdefault(name, number)
                here.setdefault(name, number)

    def of(self, head: str, key: str = "", nth: int = 0) -> int:
        """The line of a key below the nth header of that name, or of the header; 1 where neither is found as such."""
        heads = self._below.get(head, [])
        start, keys = heads[nth] if nth < len(heads) else (1, self._everywhere)
        return keys.get(key, start)

    def at(self, head: str, key: str = "", nth: int = 0) -> int:
        """The same line, counted through all files."""
        return self.of(head, key, nth) + self.above

    def error(self, head: str, key: str, text: str, nth: int = 0) -> PolicyError:
        return PolicyError(f"{self._path}, line {self.of(head, key, nth)}: {codec.brief_error(text)}")


def _names(line: str) -> Iterator[str]:
    """What a line may be looked for by: its key or header without quotes, and each part of it from the left."""
    bare = re.split(r"[=\]#]", line.strip().lstrip("["), maxsplit=1)[0].replace('"', "").replace("'", "").strip()
    parts = bare.split(".") if bare else []
    yield from (".".join(parts[: i + 1]).strip() for i in range(len(parts)))


def _table(table: Mapping[str, Any], name: str, lines: _Lines) -> Mapping[str, Any]:
    found = table.get(name, {})
    if not isinstance(found, dict):
        raise lines.error("", name, f"{name} must be a table")
    return found


def _rules(table: Mapping[str, Any], lines: _Lines) -> Iterator[tuple[str, tuple[Setting, int]]]:
    for id, setting in table.items():
        if setting not in SETTINGS:
            raise lines.error("[rules]", id, f"{id} = {setting!r}: it is one of {', '.join(SETTINGS)}")
        yield id, (cast(Setting, setting), lines.at("[rules]", id))


def _thresholds(tables: Mapping[str, Any], lines: _Lines, path: str) -> Iterator[tuple[str, Mapping[str, Decided]]]:
    for id, names in tables.items():
        if not isinstance(names, dict) or not names:
            raise lines.error("[thresholds]", id, f"{id}: a threshold is RULE.NAME = NUMBER")
        decided = {}
        for name, value in names.items():
            places = (("[thresholds]", f"{id}.{name}"), (f"[thresholds.{id}]", name), ("[thresholds]", id))
            line = next((found for place in places if (found := lines.of(*place)) > lines.of(place[0])), 1)
            if not is_number(value):
                raise PolicyError(f"{path}, line {line}: {id}.{name} = {value!r}: it must be a number")
            decided[name] = Decided(value, line + lines.above, f"sed -n {line}p {argument(path)}")
        yield id, decided


def _datasets(tables: Mapping[str, Any], lines: _Lines) -> Iterator[Declared]:
    for name, table in tables.items():
        head = next((each for each in (f'[datasets."{name}"]', f"[datasets.{name}]", f"[datasets.'{name}']")
                     if lines.of(each) > 1), f'[datasets."{name}"]')  # fmt: skip

        def fail(key: str, text: str, head: str = head) -> PolicyError:
            return lines.error(head, key, text)

        if not isinstance(table, dict):
            raise lines.error("[datasets]", name, f"datasets.{name!r} must be a table")
        if not is_dataset(name):
            raise fail("", f"{name!r} is no dataset")
        _keys(table, *DATASET, fail)
        role, database = table.get("role", ""), table.get("database", "")
        if "role" in table and role not in ROLES:
            raise fail("role", f"role = {role!r}: it is one of {', '.join(ROLES)}")
        if not isinstance(database, str) or ("database" in table and database not in ENGINES):
            raise fail("database", f"database = {database!r}: it is one of {', '.join(ENGINES)}")
        reason = _text(table, "reason", fail) if "reason" in table else ""
        if role == "rebuildable" and not reason:
            raise fail("role", "rebuildable needs a reason: what it is rebuilt from")
        yield Declared(name, cast(Role, role), database, reason, lines.at(head))


def _waivers(tables: Any, lines: _Lines) -> Iterator[Waiver]:
    for nth, table, fail in _listed(tables, "waiver", lines):
        _keys(table, *WAIVER, fail)
        scopes = [scope for scope in SCOPES if scope in table]
        if len(scopes) != 1:
            raise fail("", f"a waiver needs exactly one of {', '.join(SCOPES)}")
        scope, expires = scopes[0], _day(table, fail)
        rule, name, owner, reason = (_text(table, key, fail) for key in ("rule", scope, "owner", "reason"))
        if scope == "pool" and not name.isdigit():
            raise fail(
                "pool", f"pool = {name!r}: it must be the pool's GUID (zpool get guid), which stays when it is renamed"
            )
        if scope == "class" and name not in CLASSES:
            raise fail("class", f"class = {name!r}: it is one of {', '.join(CLASSES)}")
        yield Waiver(rule, scope, name, owner, reason, expires, lines.at("[[waiver]]", "", nth))


def _answers(tables: Any, lines: _Lines) -> Iterator[Answer]:
    for nth, table, fail in _listed(tables, "answer", lines):
        _keys(table, *ANSWERED, fail)
        parties = [party for party in ANSWERING if party in table]
        if len(parties) != 1:
            raise fail("", f"an answer needs exactly one of {', '.join(ANSWERING)}")
        party, named = parties[0], [key for key in ("serial", "model", "host") if key in table]
        if table[party] != ANSWER:
            raise fail(party, f"{party} = {table[party]!r}: the answer is {ANSWER!r}, or there is none")
        if party == "drive" and named not in (["serial"], ["model"]):
            raise fail("", "of a drive an answer needs either its serial or its model")
        if party != "drive" and named not in ([], ["host"]):
            raise fail(named[0], f"{named[0]} goes with a drive")
        owner, reason = (_text(table, key, fail) for key in ("owner", "reason"))
        serial, model, host = (_text(table, key, fail) if key in table else "" for key in ("serial", "model", "host"))
        line = lines.at("[[answer]]", "", nth)
        yield Answer(party, serial, model, host, owner, reason, _day(table, fail), line)


def _adopted(table: Mapping[str, Any], lines: _Lines) -> Iterator[Answer]:
    """What providers document, and the site adopts: as an answer of its own."""
    known = drives.load_providers()
    for party, named in table.items():
        if party not in ADOPTING:
            raise lines.error("[answers]", party, f"there is no {party!r}; there are {', '.join(ADOPTING)}")
        ids = named if isinstance(named, list) else [named]
        for id in ids:
            if not isinstance(id, str) or id not in known:
                raise lines.error("[answers]", party, f"{party} = {id!r}: it is one of {', '.join(known)}")
        if len(set(ids)) < len(ids):
            raise lines.error("[answers]", party, f"{party} names one twice")
        line = max(lines.at("[answers]", party), lines.at("", f"answers.{party}"))
        for each in map(known.__getitem__, ids):
            reason = f"{each.documents} ({each.source}, read {each.read})"
            yield Answer(cast(Party, party), "", "", "", each.site, reason, each.expires, line, each.id)


def _listed(tables: Any, name: str, lines: _Lines) -> Iterator[tuple[int, Mapping[str, Any], Fail]]:
    """The tables of a list, each with its number and what says where one of its keys is wrong."""
    if not isinstance(tables, list):
        raise lines.error("", name, f"{name}s are [[{name}]] tables")
    if len(tables) > WAIVERS:
        raise lines.error("", name, f"more than {WAIVERS} {name}s")
    for nth, table in enumerate(tables):

        def fail(key: str, text: str, nth: int = nth) -> PolicyError:
            return lines.error(f"[[{name}]]", key, text, nth)

        if not isinstance(table, dict):
            raise fail("", f"{'an' if name == 'answer' else 'a'} {name} must be a table")
        yield nth, table, fail


def _day(table: Mapping[str, Any], fail: Fail) -> date:
    expires = table["expires"]
    if not isinstance(expires, date) or isinstance(expires, datetime):
        raise fail("expires", f"expires = {expires!r}: it must be a date, like 2027-01-31 without quotes")
    return expires


def _keys(table: Mapping[str, Any], required: set[str], optional: set[str], fail: Fail) -> None:
    if missing := sorted(required - table.keys()):
        raise fail("", f"{', '.join(missing)} missing")
    if stray := sorted(table.keys() - required - optional):
        raise fail(stray[0], f"there is no {stray[0]!r}; there are {', '.join(sorted(required | optional))}")


def _text(table: Mapping[str, Any], key: str, fail: Fail) -> str:
    value = table[key]
    if not isinstance(value, str) or not value.strip():
        raise fail(key, f"{key} must be text")
    return value.strip()


def bare(policy: Policy) -> str:
    """The same policy as text without comments, owners and reasons, for a recording that may leave the house."""
    rows = ["[rules]", *(f'{id} = "{setting}"' for id, (setting, _) in policy.rules.items())]
    rows += ["", "[thresholds]"] if policy.thresholds else []
    rows += [f"{id}.{name} = {each.value}" for id, names in policy.thresholds.items() for name, each in names.items()]
    for each in policy.datasets:
        rows += ["", f"[datasets.{quoted(each.dataset)}]"]
        rows += [f'{key} = "{value}"' for key, value in (("role", each.role), ("database", each.database)) if value]
        rows += ['reason = "redacted"'] if each.reason else []
    for waiver in policy.waivers:
        rows += ["", "[[waiver]]", f'rule = "{waiver.rule}"', f"{waiver.scope} = {quoted(waiver.name)}"]
        rows += ['owner = "redacted"', 'reason = "redacted"', f"expires = {waiver.expires.isoformat()}"]
    for party in ADOPTING:
        if ids := [each.provider for each in policy.answers if each.provider and each.party == party]:
            rows += ["", "[answers]"] if "[answers]" not in rows else []
            rows += [f"{party} = [{', '.join(map(quoted, ids))}]"]
    for answer in (each for each in policy.answers if not each.provider):
        named = (("serial", answer.serial), ("model", answer.model), ("host", answer.host))
        rows += ["", "[[answer]]", f'{answer.party} = "{ANSWER}"']
        rows += [f"{key} = {quoted(name)}" for key, name in named if name]
        rows += ['owner = "redacted"', 'reason = "redacted"', f"expires = {answer.expires.isoformat()}"]
    return "\n".join(rows) + "\n"


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}", escaped) + '"'


# A policy of several files, /etc/zaudit/zaudit.toml and /etc/zaudit/conf.d/*.toml: one text, which a recording keeps as it
# keeps that of one file. A line before each says which file begins::
#
#     #= file: /etc/zaudit/conf.d/10-storage.toml
#
# No file outranks another: what two of them decide is an error that names both.

FOLDER = "/etc/zaudit/conf.d"
HOME = "/etc/zaudit"  # what a policy of several files is called


def joined(files: Sequence[tuple[str, str]]) -> str:
    """One text of (path, text) of each. Raises PolicyError for a text that looks like more files than one."""
    for path, text in files:
        if any(line.startswith(FILE) for line in text.split("\n")):
            raise PolicyError(f"{path}: a line that begins with {FILE.strip()!r}")
    return "".join(f"{FILE}{path}\n{text.rstrip(chr(10))}\n" for path, text in files)


def parse(text: str, path: str) -> Policy:
    """A policy from the text of one file, or of several. Raises PolicyError with path, line and cause."""
    found = [_parse(part, name, above) for name, above, part in _parts(text, path)]
    datasets = [each for one in found for each in one.datasets]
    waivers = [each for one in found for each in one.waivers]
    answers = [each for one in found for each in one.answers]
    rules = [pair for one in found for pair in one.rules.items()]
    thresholds = [pair for one in found for pair in one.thresholds.items()]
    pages = dict.fromkeys(each.pages for each in found if each.pages)
    if len(pages) > 1:
        raise PolicyError(f"{path}: pages are at {' and at '.join(pages)}")
    site = next(iter(pages), "")
    whole = Policy(path, text, tuple(datasets), dict(rules), dict(thresholds), tuple(waivers), tuple(answers), site)
    _once(whole, "dataset", ((each.dataset, each.line) for each in datasets))
    _once(whole, "rule", ((id, line) for id, (_, line) in rules))
    _once(whole, "thresholds of", ((id, min(each.line for each in of.values())) for id, of in thresholds))
    _once(whole, "waiver", ((each.title, each.line) for each in waivers))
    _once(whole, "answer", ((each.title, each.line) for each in answers))
    return whole


def _parts(text: str, path: str) -> Iterator[tuple[str, int, str]]:
    """(path, lines above its first, text) of each file."""
    if not text.startswith(FILE):
        yield path, 0, text
        return
    lines = text.split("\n")
    heads = [number for number, line in enumerate(lines) if line.startswith(FILE)]
    for head, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        yield lines[head].removeprefix(FILE), head + 1, "\n".join(lines[head + 1 : end])


def _once(whole: Policy, what: str, entries: Iterable[tuple[str, int]]) -> None:
    first: dict[str, int] = {}
    for name, line in entries:
        if name in first:
            raise PolicyError(f"{whole.where(line)}: {what} {name} is also decided in {whole.where(first[name])}")
        first[name] = line


# A policy to begin with, from what was seen: all of it comments, so that it decides nothing until somebody does.


DAYS = 90
HEAD = f"""\
# Policy of zaudit for this host: {PATH}, or zaudit check --policy FILE.
# It decides nothing yet: remove the # before what you decide. zaudit stops at a line that it does not understand.

# -- rules: "off", or how severe one is here ("low", "medium", "high", "critical"); zaudit rules lists them
[rules]
# atime-on = "off"
"""
DATASETS = f"""\
# -- what datasets are for; an entry holds for what is below it, too, unless that has its own.
# role      log, data, both, or rebuildable: may lose its last seconds in a crash (rebuilt from elsewhere).
# database  {", ".join(ENGINES)}
# reason    needed with rebuildable: what it is rebuilt from
"""
WAIVER_LINES = """
# -- waivers: findings with an owner and a last day. They stay in the report and do not count.
# Exactly one of: dataset = "tank/db" (and those below it), pool = "GUID", device = "SERIAL",
# database = "postgres" (or "postgres /its/data/directory"), host = "NAME" (with all that is on it).
# Answers: what zaudit cannot check here and an administrator knows. Of drives with serial = "..." or model = "...".
"""


def sketch(facts: Facts, found: Sequence[Finding], rules: Sequence[Rule]) -> str:
    """The text of a policy; it parses, and says nothing."""
    parts = (
        HEAD.splitlines(),
        _thresholds_there(rules),
        DATASETS.splitlines(),
        _datasets_seen(facts),
        WAIVER_LINES.splitlines(),
    )
    return "\n".join([*chain(*parts), *_waivers_for(facts, found)]) + "\n"


def _thresholds_there(rules: Sequence[Rule]) -> Iterator[str]:
    yield ""
    yield "# -- thresholds: numbers in rules that a site may decide; each with its default and what it may be"
    yield "[thresholds]"
    for rule in rules:
        for each in rule.thresholds:
            bounds = f"{each.spell(each.least)} to {each.spell(each.most)}"
            yield f"# {rule.id}.{each.name} = {each.default}   # {bounds}: {each.text}"
    yield ""


def _datasets_seen(facts: Facts) -> Iterator[str]:
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


def _waivers_for(facts: Facts, found: Sequence[Finding]) -> Iterator[str]:
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
            outcome = "" if finding.failed else ", unknown"
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
        each = drives.load_providers()[id]
        yield f"# {each.name} documents: {each.documents}"
        covered = "; ".join(MEANS[event] for event in each.keeps)
        yield f"# ({each.source}, read {each.read}; it covers: {covered}). Adopt it if {each.terms}:"
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
