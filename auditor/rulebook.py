"""All rules that apply: ours, found wherever zaudit is installed, and the user's folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from auditor import data
from auditor.host import user_files
from auditor.judge import known_bugs, policy, rule_file
from auditor.judge.expression import LateRegistry
from auditor.judge.rule import Decided, Rule, RuleError, merge

PAGE = "docs/rules/{}.md"  # among the documents, as make site builds them
ADVISORIES = "advisories.toml"


def _heads() -> Mapping[str, data.Document]:
    """Our rules by id, with what judges. Raises RuleError."""
    try:
        return data.heads()
    except (OSError, ValueError) as error:
        raise RuleError(f"{data.RULES}: {error}") from None


def load(
    folders: Sequence[Path] = (),
    *,
    examples: bool = True,
    decided: Mapping[str, Mapping[str, Decided]] = policy.NONE.thresholds,
) -> list[Rule]:
    """Our rules and those of the folders, by id; of folders always with examples. decided: thresholds of a policy, which
    :func:`choose` has yet to check. Raises RuleError."""
    mine = [
        _one(id, examples=examples, decided=decided[id]) if id in decided else _as_written(id, examples=examples)
        for id in _heads()
    ]
    bounded = partial(user_files.read, limit=rule_file.LIMIT)
    theirs = (rule_file.load_folder(folder, FACTS, decided=decided, read=bounded) for folder in folders)
    return merge([[*mine, *advisories(examples=examples)], *theirs])


FACTS = LateRegistry(lambda: import_module("auditor.registry").registry())


def _one(id: str, *, examples: bool, decided: Mapping[str, Decided] = rule_file.NOTHING_DECIDED) -> Rule:
    """One rule of ours. Raises RuleError, ExpressionError or ThresholdError."""
    whole = partial(data.rule, id)
    return _paged(
        rule_file.trusted(id, f"{data.RULES}/{id}.toml", _heads()[id], FACTS, decided, whole=whole, examples=examples)
    )


# a comparison of recordings and a fleet whose hosts have policies choose rules again and again
_as_written = cache(_one)


@cache
def advisories(*, examples: bool = True) -> tuple[Rule, ...]:
    """The rules that the table of known bugs makes. Raises RuleError."""
    found = known_bugs.load(f"auditor/data/{ADVISORIES}", data.table(ADVISORIES), FACTS, examples=examples)
    head = _as_written(known_bugs.ID, examples=examples)
    return tuple(_paged(rule)._replace(head=head) for rule in found)


def _paged(rule: Rule) -> Rule:
    return rule._replace(page=PAGE.format(rule.id))


class Chosen(NamedTuple):
    """The rules of one audit, and those that somebody left out of it."""

    rules: list[Rule]
    left_out: tuple[policy.LeftOut, ...]


def choose(
    folders: Sequence[Path],
    only: Sequence[str],
    skip: Sequence[str],
    followed: policy.Policy = policy.NONE,
    *,
    runs: bool = False,
) -> Chosen:
    """The rules of one audit. runs: also those that judge runs of fio. Rules on waivers need a policy with some. Raises
    RuleError or PolicyError."""
    everything = load(folders, examples=False, decided=followed.thresholds)

    def is_asked(rule: Rule) -> bool:
        return (runs or not rule.of_verify) and (rule.subject != "waiver" or bool(followed.waivers or followed.answers))

    asked = list(filter(is_asked, everything))
    chosen = list(filter(is_asked, policy.select(everything, only, skip, followed)))
    if not chosen:
        raise policy.PolicyError("no rule is left to run: these judge runs of zaudit verify, or waivers of a policy")
    left_out = policy.left_out(asked, chosen, only, skip, followed)
    return Chosen([_published(rule, followed.pages) for rule in chosen] if followed.pages else chosen, left_out)


def _published(rule: Rule, pages: str) -> Rule:
    """With the address of its page on a site of these documents (make site)."""
    head = _published(rule.head, pages) if rule.head else None
    return rule._replace(url=f"{pages}/{rule.page.removesuffix('.md')}.html" if rule.page else "", head=head)


def find(folders: Sequence[Path], id: str) -> Rule:
    """One rule. Raises PolicyError when there is none."""
    if not folders and id in _heads():
        return _as_written(id, examples=True)
    rules = load(folders)
    return next((rule for rule in rules if rule.id == id), None) or policy.select(rules, (id,), ())[0]
