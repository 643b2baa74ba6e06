"""``zaudit policy``: one to begin with, and whether one can be followed."""

from __future__ import annotations

from pathlib import Path

import click

from auditor.commands import _options
from auditor.commands._auditing import Request, gathered, read_policy
from auditor.commands._options import Local, folders, looking
from auditor.screen import say, write


@click.group(short_help="Write a first policy, or check one.")
def policy() -> None:
    """A policy says what datasets are for, which rules run, and who waives what until when."""


@policy.command(short_help="Write a policy, as comments, from what is seen.")
@_options.targets
@_options.replay("Look at a recording, not at this host.")
@_options.output("Write it to a file, which must not exist yet.")
@looking
@gathered
def init(asked: Request, output: Path | None) -> None:
    """Look at TARGETs (all imported pools when none is named) and write a policy that decides nothing yet: in comments, the
    datasets with what they seem to be for, and a waiver or an answer for each finding."""
    from auditor.judge.policy import NONE, PolicyError
    from auditor.judge.policy_sketch import sketch

    if output and (output.exists() or output.is_symlink()):
        raise PolicyError(f"{output} exists already; zaudit does not overwrite it")
    looked = asked.choose(policy=NONE).look()
    report = looked.judge()
    write(
        sketch(looked.narrowed().facts, report.findings, looked.audit.rules.rules),
        output,
        f"a policy for {', '.join(report.targets)}; it decides nothing yet",
    )


@policy.command("check", short_help="Whether a policy can be followed.")
@click.argument("file", type=Local(dir_okay=False), metavar="FILE")
@folders
def check_file(file: Path, folders: tuple[Path, ...]) -> None:
    """Read FILE as zaudit check --policy does, without a host: exit code 0, or 2 with the line and the cause, also where a
    waiver can never cover anything. What has expired is named, and what names a rule that zaudit no longer has."""
    from datetime import UTC, datetime

    from auditor import rulebook
    from auditor.judge.policy import PolicyError, left_out, retired_names, vain

    found = read_policy(file)
    everything = rulebook.load(folders, examples=False, decided=found.thresholds)
    chosen = rulebook.select(folders, (), (), found, runs=True)
    if lines := list(vain(found, everything)):
        raise PolicyError("\n".join(lines))
    out = left_out([each for each in everything if each.subject != "waiver"], chosen, (), (), found)
    for each in out:
        say(f"{each.rule} ({each.severity}): {f'counts as {each.counts_as}' if each.counts_as else 'off'}")
    for waiver in found.waivers:
        over = ", which is over" if datetime.now(UTC).date() > waiver.expires else ""
        say(f"{waiver.title}: waived until {waiver.expires}{over}, by {waiver.owner}")
    for line in retired_names([each.id for each in everything], (), found):
        say(line)
    say(f"{file}: {len(out)} rules off or milder, {len(found.waivers)} waivers, {len(found.datasets)} datasets")


COMMAND = policy
