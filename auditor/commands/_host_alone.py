"""A host on which no pool is imported: nothing is judged of any pool, and what fails of the host may tell why none is."""

from __future__ import annotations

from collections.abc import Sequence

from auditor import audit
from auditor.commands._terminal import ascii_only, note, width
from auditor.judge.rule import Rule
from auditor.report import terminal
from auditor.report.audit import failed

TOLD = 8  # of the gravest findings, by name, in the sentence that monitors get


def told(nothing: audit.NothingToAudit, rules: Sequence[Rule], *, quiet: bool) -> audit.NothingToAudit:
    """The same end, with the names of what fails of the host; each whole on standard error, unless quiet."""
    found = audit.alone(nothing.facts, rules) if nothing.facts else ()
    if not found:
        return nothing
    if not quiet:
        note(terminal.fragment(map(failed, found), width=width(), ascii_only=ascii_only()))
    names = [f"{each.severity} {each.rule.id}" for each in found]
    more = f" and {len(names) - TOLD} more" if len(names) > TOLD else ""
    return audit.NothingToAudit(f"{nothing}; of the host: {', '.join(names[:TOLD])}{more}")
