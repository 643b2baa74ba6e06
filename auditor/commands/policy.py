"""``zaudit policy init``: a policy to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from auditor.commands._options import Output, looking
from auditor.commands._terminal import progress, write


@click.group(short_help="A policy to begin with.")
def policy() -> None:
    """A policy says what datasets are for, which rules run, and what is waived by whom until when."""


@policy.command(short_help="Write a policy, as comments, from what is seen.")
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option("--replay", type=click.Path(path_type=Path), metavar="REC", help="Look at a recording, not at this host.")
@click.option("-o", "--output", type=Output(), metavar="FILE",
              help="Write it to a file, which must not exist yet.")  # fmt: skip
@looking
def init(
    targets: tuple[str, ...],
    replay: Path | None,
    output: Path | None,
    timeout: float,
    deadline: float,
    consistent: bool,
) -> None:
    """Look at TARGETs (all imported pools when none is named) and write a policy that decides nothing yet: as comments, the
    datasets with what they seem to be for, and a waiver or an answer for each finding."""
    from auditor import audit, rulebook
    from auditor.host.live import Host, LiveHost
    from auditor.judge.policy import PolicyError
    from auditor.judge.policy_sketch import sketch
    from auditor.recording import recording

    if output and (output.exists() or output.is_symlink()):
        raise PolicyError(f"{output} exists already; zaudit does not overwrite it")
    past = recording.load(replay) if replay else None
    host: Host = recording.ReplayHost(past) if past else LiveHost(timeout, deadline)
    options = audit.Options.from_words(past.options) if past else audit.Options(consistent)
    options = options._replace(policy=audit.NONE)
    asked = past.targets if past else targets
    seen = audit.look(host, asked, options, None if past else progress())
    if past and targets:
        seen = audit.focus(seen, host, targets)
    rules = rulebook.select((), (), ())
    report = audit.judge(seen, rules, targets or asked, "low")
    write(
        sketch(seen.facts, report.findings, rules),
        output,
        f"a policy for {', '.join(report.targets)}; it decides nothing yet",
    )


COMMAND = policy
