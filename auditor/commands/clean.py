"""``zaudit clean``: remove what killed verifications and diagnoses left."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from auditor.errors import EXIT_BROKE


@click.command(short_help="Remove what interrupted verifications and diagnoses left.")
@click.option("--powercut", is_flag=True, help="Also the files of zaudit powercut, and forget what waits for a check.")
def clean(powercut: bool) -> NoReturn:
    """Remove the directories and scratch zvols of verifications that were killed, and the events in tracefs of diagnoses;
    nothing else."""
    from auditor.commands import _verifying

    sys.exit(EXIT_BROKE if _verifying.clean(powercut=powercut) else 0)


COMMAND = clean
