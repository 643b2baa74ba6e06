"""What a shell offers for a word that is not finished: what click cannot know by itself. It never fails, and asks the host for
a second at most."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

Items = list[CompletionItem]
ASK_S = 1.0


def rule_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Our rules, with their titles."""
    from auditor import rulebook

    rules = rulebook.load(examples=False)
    return [CompletionItem(rule.id, help=rule.title) for rule in rules if rule.id.startswith(incomplete)]


def engines(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The databases that ``--db`` knows."""
    from auditor.databases import ENGINES

    return [CompletionItem(name) for name in ENGINES if name.startswith(incomplete)]


def changes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """The beginnings of a supposition: who it may be about."""
    fixed = [CompletionItem(each) for each in ("host release=", "zfs ") if each.startswith(incomplete)]
    return fixed + (targets(ctx, param, incomplete) if incomplete and not incomplete.startswith(("/", ".")) else [])


def targets(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Datasets and zvols that ``zfs list`` names; paths, once a path is begun."""
    if incomplete.startswith(("/", ".")):
        return [CompletionItem(incomplete, type="file")]
    from auditor.host.live import LiveHost
    from auditor.host.request import Run

    said = LiveHost(ASK_S, ASK_S).run(Run(("zfs", "list", "-H", "-t", "filesystem,volume", "-o", "name", "-s", "name")))
    names = said.stdout.decode(errors="replace").splitlines() if said.exit == 0 else []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
