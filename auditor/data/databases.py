"""databases.toml: what is known of each database that ``--db`` can name."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import NamedTuple

from auditor import data


class Database(NamedTuple):
    """name: as people write it. page_bytes: default page of its data files. source: where that is written."""

    name: str
    page_bytes: int
    source: str


@cache
def databases() -> dict[str, Database]:
    """All, by the word that --db takes. Raises TypeError when the table has a key too many or too few."""
    return {word: Database(**row) for word, row in tomllib.loads(data.text("databases.toml")).items()}
