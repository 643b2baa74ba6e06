"""A host that alone knows the DSN of ``--db``: whoever asks it names the connection by a word, and so do its answers."""

from __future__ import annotations

import re

from auditor.host import sql
from auditor.host.live import Host
from auditor.host.request import Capture, Files, Read, Run

_WORDS = re.compile(rb"(?s): (?!No module named).*")


class Untold:
    """Passes every question on; that of the database with its DSN in the place of the word, and its answer without the words of
    an error, which name hosts and people. dsn: of the only connection that is asked."""

    def __init__(self, host: Host, dsn: str) -> None:
        self.now, self.euid, self.at_once = host.now, host.euid, host.at_once
        self._host, self._dsn = host, dsn
        self.error = ""

    def run(self, request: Run) -> Capture:
        if request.argv[:1] != (sql.NAME,):
            return self._host.run(request)
        said = self._host.run(request._replace(argv=(*request.argv[:2], self._dsn)))
        self.error = said.stderr.decode("utf-8", "replace").strip()
        return said._replace(stderr=_WORDS.sub(b": (redacted)", said.stderr))

    def read(self, request: Read) -> Files:
        """Its own command line is a file, too."""
        found = self._host.read(request)
        if not self._dsn or not any(self._dsn in text for text in found.text.values()):
            return found
        return found._replace(text={path: text.replace(self._dsn, sql.REDACTED) for path, text in found.text.items()})

    def realpath(self, path: str) -> str:
        return self._host.realpath(path)

    def steady(self, path: str) -> str:
        return self._host.steady(path)
