"""The words in which an engine is described."""

from __future__ import annotations

from typing import NamedTuple


class Engine(NamedTuple):
    """What is known of one engine.

    name: the word that --db takes. title: as people write it. page_bytes: default page of its data files, 0 where they have
    none; page_source: where that is written. processes: names of its server. data_options, data_variable: where its command
    line and environment say where its data lies. at_home: its working directory is its data directory. profile: of a
    verification, empty where there is none.
    """

    name: str
    title: str
    page_bytes: int
    page_source: str
    processes: tuple[str, ...] = ()
    data_options: tuple[str, ...] = ()
    data_variable: str = ""
    at_home: bool = False
    profile: str = ""
