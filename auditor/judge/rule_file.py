"""Rule files: one TOML file a rule, read strictly. Whatever is misspelt, missing or of the wrong type is an error with the
file's name, so that a rule can never silently judge nothing."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from auditor import codec, data
from auditor.data import platforms
from auditor.data.durability import ROWS
from auditor.data.platforms import ANY, WORD, filled
from auditor.facts import KINDS, Kind
from auditor.judge.event import ANSWER, ANSWERING, SEVERITIES, Severity
from auditor.judge.expression import Expression, ExpressionError, Registry, compile_condition, compile_words, deferred
from auditor.judge.rule import (
    COSTS,
    FORMS,
    HARMS,
    PLACES,
    Case,
    Decided,
    Example,
    Figure,
    Fix,
    Harm,
    Outcome,
    Place,
    Rule,
    RuleError,
    Template,
    Texts,
    Threshold,
    ThresholdError,
    constants_of,
    of_rule,
)

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

LIMIT, FILES = codec.TOML_LIMIT, 1000  # bytes of a rule; files of a folder
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
Compile = Callable[..., Expression]  # (source, kind, registry, constants)
DecidedBy = Mapping[str, Decided]  # name of the threshold -> what a policy makes of it

NOTHING_DECIDED: DecidedBy = {}
NO_POLICY: Mapping[str, DecidedBy] = {}
PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
REQUIRED = {"title", "subject", "harm", "expect"}
COUNTS = {"severity", "elements", "answer"}
OPTIONAL = {"when", "origin", "message", "cases", "outside", "amount", "damage", "next_boot", "thresholds"} | COUNTS
CASES = 10  # of one rule
CONDITIONS = ("After", "Before", "Check that", "If", "Only if", "Once", "Unless", "With")  # how what a fix needs begins
SAID_IF = {"conflicts", "unprovoked"}
SAID = data.TOLD - SAID_IF - {"example"}
# of each table of a rule file: the keys that it needs, and those that it may have
RULE = (REQUIRED | SAID | {"example"}, OPTIONAL | SAID_IF)
CASE = ({"when"}, {"means", "severity", "message"})
FIX_CASE = ({"when", "text", "cost"}, {"means", "command", "needs", "sets"})
FIX = (FIX_CASE[0] - {"when"}, FIX_CASE[1] - {"means"} | {"cases"})
EXAMPLE = ({"name", "given", "verdict"}, {"severity"})


class _Compilers(NamedTuple):
    """condition: of what is true or false; value: of anything, in a text."""

    condition: Compile
    value: Compile

    def knowing(self, thresholds: tuple[Threshold, ...]) -> _Compilers:
        """The same, for expressions in which these stand by name."""
        if not thresholds:
            return self
        numbers = constants_of(thresholds)
        return _Compilers(partial(self.condition, constants=numbers), partial(self.value, constants=numbers))


AT_ONCE = _Compilers(compile_condition, compile_words)
WHEN_ASKED = _Compilers(deferred, partial(deferred, compile_=compile_words))


def from_table(
    id: str, path: str, table: Mapping[str, Any], registry: Registry, decided: DecidedBy = NOTHING_DECIDED
) -> Rule:
    """One rule from the whole content of its file; raises RuleError, ExpressionError or ThresholdError."""
    _keys(table, *RULE, "a rule")
    thresholds = _thresholds(table, decided)
    compilers = AT_ONCE.knowing(thresholds)
    said = cache(partial(_read_texts, table, _kind(table), registry, compilers))
    _check_sets(said(ANY).fix, _kind(table), registry)
    rule = _judged(id, path, table, registry, compilers, said)
    if rule.origin and (rule.subject, rule.origin) not in registry:
        raise RuleError(f"origin = {table['origin']!r}: not a fact of the rule's subject")
    return rule._replace(thresholds=thresholds, examples=_examples(table["example"], with_when=rule.when is not None))


def trusted(
    id: str,
    path: str,
    table: Mapping[str, Any],
    registry: Registry,
    decided: DecidedBy = NOTHING_DECIDED,
    *,
    whole: Callable[[], Mapping[str, Any]],
    examples: bool = False,
) -> Rule:
    """A rule of ours, which its tests have compiled whole: texts and expressions are compiled when first asked for, as
    most rules pass. table: what judges; whole: with its texts."""
    thresholds = _thresholds(table, decided)
    compilers = WHEN_ASKED.knowing(thresholds)

    @cache
    def said(platform: str) -> Texts:
        return _read_texts(whole(), _kind(table), registry, compilers, platform)

    rule = _judged(id, path, table, registry, compilers, said)
    found = _examples(whole()["example"], with_when=rule.when is not None) if examples else ()
    return rule._replace(thresholds=thresholds, examples=found)


def _check_sets(fix: Fix, kind: Kind, registry: Registry) -> None:
    from auditor.judge import supposition

    try:
        for template in (each for one in (fix, *(case for case, _ in fix.cases)) for each in one.sets):
            supposition.check(template.source, kind, registry)
    except supposition.SuppositionError as error:
        raise RuleError(str(error)) from None


def _judged(
    id: str,
    path: str,
    table: Mapping[str, Any],
    registry: Registry,
    compilers: _Compilers,
    said: Callable[[str], Texts],
) -> Rule:
    kind, condition, elements = _kind(table), compilers.condition, _elements(table)
    origin = _text(table, "origin") if "origin" in table else ""
    if origin and origin.partition(".")[0] != kind:
        raise RuleError(f"origin = {origin!r}: not a fact of the rule's subject")
    return Rule(
        id=id,
        title=_headline(table),
        severity=_severity(table, elements),
        cases=tuple(_cases(table.get("cases", []), kind, registry, compilers)),
        subject=kind,
        harm=cast(Harm, _one_of(table, "harm", HARMS)),
        when=condition(_text(table, "when"), kind, registry) if "when" in table else None,
        expect=condition(_text(table, "expect"), kind, registry),
        origin=origin.partition(".")[2],
        message=_template(_text(table, "message"), kind, registry, compilers.value) if "message" in table else None,
        said=said,
        examples=(),
        path=path,
        outside=_text(table, "outside") if "outside" in table else "",
        amount=_template(_text(table, "amount"), kind, registry, compilers.value) if "amount" in table else None,
        damage=_flag(table, "damage"),
        next_boot=_flag(table, "next_boot"),
        elements=elements,
        answer=_answer(table, elements),
    )


def _thresholds(table: Mapping[str, Any], decided: DecidedBy) -> tuple[Threshold, ...]:
    """Its thresholds, each used in an expression that decides."""
    if "thresholds" not in table:
        return ()
    cases = table.get("cases", [])
    conditions = (each.get("when", "") for each in cases if isinstance(each, dict)) if isinstance(cases, list) else ()
    deciding = (table.get("when", ""), table["expect"], *conditions)
    return tuple(of_rule(table["thresholds"], decided, map(str, deciding)))


def _kind(table: Mapping[str, Any]) -> Kind:
    return cast(Kind, _one_of(table, "subject", KINDS))


def _read_texts(
    table: Mapping[str, Any], kind: Kind, registry: Registry, compilers: _Compilers, platform: str
) -> Texts:
    """In words of a platform, which are not known when the rule is loaded."""
    return Texts(
        impact=_text(table, "impact"),
        why=_text(table, "why"),
        fix=_fix(table["fix"], kind, registry, compilers, platform),
        references=_texts(table, "references", least=1),
        conflicts=_texts(table, "conflicts", least=0),
        unprovoked=_text(table, "unprovoked") if "unprovoked" in table else "",
    )


def _keys(table: Mapping[str, Any], required: set[str], optional: set[str], what: str) -> None:
    if missing := sorted(required - table.keys()):
        raise RuleError(f"{what} needs {', '.join(missing)}")
    if stray := sorted(table.keys() - required - optional):
        raise RuleError(f"{what} has no key {stray[0]!r}; there are {', '.join(sorted(required | optional))}")


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table[key]
    if not isinstance(value, str) or not value.strip():
        raise RuleError(f"{key} must be text")
    return paragraphs(value) if key == "why" else " ".join(value.split())


def paragraphs(text: str) -> str:
    """The text without its line breaks, but for the empty lines."""
    return "\n\n".join(" ".join(each.split()) for each in text.strip().split("\n\n"))


def _texts(table: Mapping[str, Any], key: str, least: int) -> tuple[str, ...]:
    values = table.get(key, [])
    if (
        not isinstance(values, list)
        or len(values) < least
        or not all(isinstance(each, str) and each for each in values)
    ):
        raise RuleError(f"{key} must be a list of at least {least} texts")
    return tuple(" ".join(each.split()) for each in values)


def _one_of(table: Mapping[str, Any], key: str, allowed: tuple[str, ...]) -> str:
    value = table[key]
    if value not in allowed:
        raise RuleError(f"{key} = {value!r}: it is one of {', '.join(allowed)}")
    return str(value)


def _headline(table: Mapping[str, Any]) -> str:
    title = _text(table, "title")
    if title.endswith(".") or len(title) > 100 or title[0].islower():
        raise RuleError("title must be a headline: capital letter, no full stop, at most 100 characters")
    return title


def _elements(table: Mapping[str, Any]) -> tuple[str, ...]:
    found = _texts(table, "elements", least=1) if "elements" in table else ()
    if stray := sorted(set(found) - ROWS.keys()):
        raise RuleError(f"elements: {stray[0]!r} is none of {', '.join(ROWS)}")
    return found


def _severity(table: Mapping[str, Any], elements: tuple[str, ...]) -> Severity:
    """Of a rule with elements, where the model knows nothing that hangs on them: low unless it says otherwise."""
    if "severity" not in table and not elements:
        raise RuleError("a rule gives elements, from which its severity follows, or severity")
    return cast(Severity, _one_of(table, "severity", SEVERITIES)) if "severity" in table else "low"


def _answer(table: Mapping[str, Any], elements: tuple[str, ...]) -> str:
    """What a site can answer, where a failure does no more than rely on somebody."""
    if "answer" not in table:
        return ""
    if not elements or not set(elements) <= set(ANSWERING):
        raise RuleError(f"answer goes with the elements {', '.join(ANSWERING)}")
    return _one_of(table, "answer", (ANSWER,))


def _flag(table: Mapping[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise RuleError(f"{key} is true or false")
    return value


def _cases(tables: Any, kind: Kind, registry: Registry, compilers: _Compilers) -> Iterable[Case]:
    for table in _tables(tables):
        _keys(table, *CASE, "a case")
        message = _template(_text(table, "message"), kind, registry, compilers.value) if "message" in table else None
        severity = cast(Severity, _one_of(table, "severity", SEVERITIES)) if "severity" in table else None
        condition = compilers.condition(_text(table, "when"), kind, registry)
        yield Case(severity, condition, message, _means(table))


def _means(table: Mapping[str, Any]) -> str:
    return _text(table, "means") if "means" in table else _text(table, "when")


def _tables(tables: Any) -> list[dict[str, Any]]:
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables) or len(tables) > CASES:
        raise RuleError(f"cases are a list of tables, at most {CASES}")
    return tables


def _template(source: str, kind: Kind, registry: Registry, value: Compile) -> Template:
    """``{origin}``, ``{subject}`` and ``{pool}`` are places; everything else in braces is an expression, which may have a form
    behind it (``{host.arc_size_bytes:size}``)."""
    parts: list[str | Place | Expression | Figure] = []
    for i, piece in enumerate(PLACEHOLDER.split(source)):
        if i % 2 == 0:
            if "{" in piece or "}" in piece:
                raise RuleError(f"unbalanced braces in {source!r}")
            parts.append(piece)
        elif piece in PLACES:
            parts.append(Place(piece))
        elif (form := piece.rpartition(":")[2]) in FORMS:
            parts.append(Figure(value(piece.rpartition(":")[0], kind, registry), form))
        else:
            parts.append(value(piece, kind, registry))
    return Template(source, tuple(parts))


def _fix(table: Any, kind: Kind, registry: Registry, compilers: _Compilers, platform: str) -> Fix:
    if not isinstance(table, dict):
        raise RuleError("fix must be a table")
    _keys(table, *FIX, "fix")
    cases = []
    for each in _tables(table.get("cases", [])):
        _keys(each, *FIX_CASE, "a case of a fix")
        condition = compilers.condition(_text(each, "when"), kind, registry)
        fix = _one_fix(each, kind, registry, compilers.value, platform)._replace(means=_means(each))
        cases.append((fix, condition))
    return _one_fix(table, kind, registry, compilers.value, platform)._replace(cases=tuple(cases))


def _one_fix(table: Mapping[str, Any], kind: Kind, registry: Registry, value: Compile, platform: str) -> Fix:
    command = filled(_text(table, "command"), platform) if "command" in table else ""
    text = filled(_text(table, "text"), platform)
    if stray := WORD.search(text):  # {a,b} of a shell may stand there
        raise RuleError(
            f"{stray[0]} is no word of a platform; there are {', '.join(sorted(platforms.load()[ANY].words))}"
        )
    template = _template(command, kind, registry, value) if command else None  # some platforms have no command for it
    needs = filled(_text(table, "needs"), platform) if "needs" in table else ""
    if needs and not needs.startswith(CONDITIONS):
        raise RuleError(f"needs begins with one of {', '.join(CONDITIONS)}")
    sets = _texts(table, "sets", least=1) if "sets" in table else ()
    if len(sets) > CASES:
        raise RuleError(f"sets are at most {CASES}")
    templates = tuple(_template(each, kind, registry, value) for each in sets)
    condition = _template(needs, kind, registry, value) if "{" in needs else None
    return Fix(template, text, _one_of(table, "cost", COSTS), needs=needs, sets=templates, condition=condition)


def _examples(tables: Any, with_when: bool) -> tuple[Example, ...]:
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise RuleError("examples are [[example]] tables")
    examples = []
    for table in tables:
        _keys(table, *EXAMPLE, "an example")
        verdict = cast(Outcome, _one_of(table, "verdict", get_args(Outcome)))
        severity = cast(Severity, _one_of(table, "severity", SEVERITIES)) if "severity" in table else None
        if not isinstance(table["given"], dict):
            raise RuleError("given must be a table")
        examples.append(Example(_text(table, "name"), table["given"], verdict, severity))
    wanted = {"pass", "fail", "unknown"} | ({"not applicable"} if with_when else set())
    if missing := sorted(wanted - {example.verdict for example in examples}):
        raise RuleError(f"no example shows the verdict {missing[0]!r}")
    return tuple(examples)


def load_folder(
    folder: Traversable,
    registry: Registry,
    *,
    decided: Mapping[str, DecidedBy] = NO_POLICY,
    read: Callable[[Any], bytes] = operator.methodcaller("read_bytes"),
) -> list[Rule]:
    """Every rule of a folder, by id; another file is an error, and so is none. decided: by rule and name. read: of one
    file."""
    if not folder.is_dir():
        raise RuleError(f"{folder}: no such folder of rules")
    rules = []
    files = sorted(folder.iterdir(), key=lambda each: each.name)
    if len(files) > FILES:
        raise RuleError(f"{folder}: more than {FILES} files")
    for path in files:
        if path.name.endswith(".toml"):
            id = path.name.removesuffix(".toml")
            rules.append(load(id, str(path), read(path), registry, decided.get(id, NOTHING_DECIDED)))
        elif path.name not in ("README.md", "__pycache__", "__init__.py"):
            raise RuleError(f"{path}: not a rule, in a folder of rules (rules end in .toml)")
    if not rules:
        raise RuleError(f"{folder}: no rule in it")
    return rules


def load(id: str, path: str, data: bytes, registry: Registry, decided: DecidedBy = NOTHING_DECIDED) -> Rule:
    """One rule from the bytes of its file; raises RuleError."""
    try:
        if not NAME.fullmatch(id):
            raise RuleError("the file name is the rule's id: lower-case words joined by hyphens")
        return from_table(id, path, codec.loads_toml(data.decode("utf-8")), registry, decided)
    except (RuleError, ExpressionError, ThresholdError, codec.TomlError, UnicodeDecodeError) as error:
        raise RuleError(f"{path}: {codec.brief_error(error)}") from None
