"""``--pages`` of ``zaudit fleet report``: where the pages of the hosts are, or a folder to write them to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

if TYPE_CHECKING:
    from auditor.fleet.counting import Host, Read

HOST = "{host}"
WEB = ("https://", "http://")
Link = Callable[[str], str]


class Pages:
    """said: what the option says: ``https://.../{host}``, ``hosts/{host}.html``, or the name of a folder. page: the one of all
    hosts, beside which relative names are. Raises UsageError."""

    def __init__(self, said: str, page: Path | None) -> None:
        self._said, self._beside = said, (page or Path("-")).parent
        self.written = bool(said) and HOST not in said
        if said.startswith("/") or (":" in said and not said.startswith(WEB)):
            raise click.UsageError("--pages is a relative name, or begins with http:// or https://")
        if self.written and (page is None or said.startswith(WEB)):
            raise click.UsageError(
                f"--pages {said}: a folder is beside the page of -o FILE, and a URL has {HOST} in it"
            )

    def link(self, hosts: Sequence[Host]) -> Link:
        """hosts: those that have a page, where they are written here."""
        from auditor.fleet.page import file_name

        if self.written:
            names = {host.seen.name for host in hosts}
            return lambda host: f"{quote(self._said)}/{quote(file_name(host))}" if host in names else ""
        return self._there

    def _there(self, host: str) -> str:
        """Of a file only where it exists."""
        if self._said.startswith(WEB):
            return self._said.replace(HOST, quote(host, safe=""))
        name = self._said.replace(HOST, host)
        return quote(name) if self._said and "/" not in host and (self._beside / name).is_file() else ""

    def write(self, read: Read, hosts: Sequence[Host]) -> str:
        """Those of these hosts, and where they are. Raises NoPlace, CannotWrite or BadRows."""
        from auditor.fleet.page import host_pages
        from auditor.host import trust, user_files

        where = self._beside / self._said
        with user_files.complaining(where), trust.held(str(where), make=True):
            for name, text in host_pages(read, hosts):
                user_files.replace(where / name, text.encode())
        return f"{where}: {len(hosts):,} pages of hosts"
