"""All rules that apply: ours, found wherever zaudit is installed, and the user's folders."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from auditor.judge import policy, rule
from auditor.judge.rule import Rule
from auditor.registry import registry


def ours() -> Traversable:
    """The folder of our rules: package data when installed or in the zipapp, ``rules/`` of a checkout otherwise."""
    installed = resources.files("auditor") / "rules"
    return installed if installed.is_dir() else Path(__file__).resolve().parent.parent / "rules"


def load(folders: Sequence[Path] = ()) -> list[Rule]:
    """Our rules and those of the folders, by id. Raises RuleError."""
    everywhere: list[Traversable] = [ours(), *folders]
    return rule.merge(rule.load_folder(folder, registry()) for folder in everywhere)


def select(folders: Sequence[Path], only: Sequence[str], skip: Sequence[str]) -> list[Rule]:
    """The rules of one run. Raises RuleError or PolicyError."""
    return policy.select(load(folders), only, skip)


def find(folders: Sequence[Path], id: str) -> Rule:
    """One rule. Raises PolicyError when there is none."""
    return policy.select(load(folders), (id,), ())[0]
