"""``zaudit clean``: remove what killed verifications and diagnoses left."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from auditor.errors import EXIT_BROKE
from auditor.screen import say
from auditor.text import harmless


@click.command(short_help="Remove what interrupted verifications and diagnoses left.")
@click.option("--powercut", is_flag=True, help="Also the files of zaudit powercut, and forget what waits for a check.")
def clean(powercut: bool) -> NoReturn:
    """Remove the directories and scratch zvols of verifications that were killed, and the events in tracefs of diagnoses;
    nothing else."""
    from auditor.diagnose import tracing
    from auditor.powercut import campaign
    from auditor.verify import ledger, place

    failed = 0
    for left, wrong in place.clean(ledger.call, runs=powercut):
        say(f"{harmless(left.path)}: {wrong or 'removed'}")
        failed += bool(wrong)
    if powercut:
        campaign.forget()
    for each in ledger.places() if not powercut else ():
        if each.run:
            say(f"{harmless(each.path)}: left for zaudit powercut check; --powercut removes it")
    for name, wrong in tracing.clean():
        say(f"{tracing.ROOT}: {name}: {wrong or 'removed'}")
        failed += bool(wrong)
    for each in ledger.places():
        if ledger.in_use(each):
            say(f"{harmless(each.path)}: in use by process {each.pid}, left alone")
    sys.exit(EXIT_BROKE if failed else 0)


COMMAND = clean
