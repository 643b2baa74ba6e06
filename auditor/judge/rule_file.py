"""Rule files: one TOML file a rule, read strictly. Whatever is misspelt, missing or of the wrong type is an error with the
file's name, so that a rule can never silently judge nothing."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from auditor.judge import strict_toml
from auditor.judge.compiler import Registry
from auditor.judge.rule import Rule, RuleError
from auditor.judge.rule_table import NOTHING_DECIDED, DecidedBy, from_table
from auditor.judge.threshold import ThresholdError
from auditor.judge.types import ExpressionError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

LIMIT, FILES = strict_toml.LIMIT, 1000  # bytes of a rule; files of a folder
NO_POLICY: Mapping[str, DecidedBy] = {}
ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def load_folder(
    folder: Traversable,
    registry: Registry,
    *,
    decided: Mapping[str, DecidedBy] = NO_POLICY,
    read: Callable[[Any], bytes] = operator.methodcaller("read_bytes"),
) -> list[Rule]:
    """Every rule of a folder, by id. A file that is not a rule is an error, and so is an empty folder.

    decided: by rule and name, the thresholds of a policy. read: of one file; raises OSError.
    """
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
        if not ID.fullmatch(id):
            raise RuleError("the file name is the rule's id: lower-case words joined by hyphens")
        return from_table(id, path, strict_toml.loads(data.decode("utf-8")), registry, decided)
    except (RuleError, ExpressionError, ThresholdError, strict_toml.TomlError, UnicodeDecodeError) as error:
        raise RuleError(f"{path}: {strict_toml.brief(error)}") from None
