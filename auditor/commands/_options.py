"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

SEVERITIES = ("low", "medium", "high", "critical")
DATABASES = ("postgres", "mysql", "mariadb", "sqlite", "mongodb", "etcd")


def looking(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that looks at a host."""
    for option in reversed(
        (
            click.option("--timeout", type=click.FloatRange(0.1, 3600), default=30.0, show_default=True, metavar="SECONDS",
                         help="Give up on a command after so long."),
            click.option("--consistent", is_flag=True, help="Read dataset properties in one transaction group (root, pyzfs)."),
        )
    ):  # fmt: skip
        command = option(command)
    return command


def folders(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--rules DIR``."""
    words = "Your own rules, beside ours."
    kind = click.Path(path_type=Path)
    return click.option("--rules", "folders", multiple=True, type=kind, metavar="DIR", help=words)(command)


def policy(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--policy FILE``."""
    words = "Roles, rules, thresholds and waivers.  [default: /etc/zaudit/zaudit.toml where it exists; of a recording: its own]"
    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option("--policy", "policy_file", type=kind, metavar="FILE", help=words)(command)


def formats(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--format``."""
    kind = click.Choice(["terminal", "json"])
    return click.option("--format", "format_", type=kind, default="terminal", show_default=True)(command)


def fail_on(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--fail-on SEVERITY``."""
    words = "Findings and undecided rules below this do not count for the exit code."
    kind = click.Choice(SEVERITIES)
    return click.option("--fail-on", type=kind, default="low", show_default=True, help=words)(command)
