"""Who acts in a place: everything that is made, written or removed there is done by a process with these rights.

That process is the owner of the place where it writes, as the database is, without a capability and with no way to gain one. So
a name, link or file that the owner put in its way reaches nothing that the owner could not reach himself. (setpriv(1);
capabilities(7), "Transformation of capabilities during execve()": with an empty bounding set not even a program of root gets
any.)
"""

from __future__ import annotations

from typing import NamedTuple

from auditor.errors import Stop

BOUND = ("setpriv", "--pdeathsig", "KILL")  # so that nothing outlives zaudit
POWERLESS = ("--clear-groups", "--inh-caps=-all", "--bounding-set=-all")


class PlaceError(Stop):
    """A place could not be made, used or removed; the text says why."""


class Actor(NamedTuple):
    """Numbers of a user and a group; both empty where zaudit does not run as root."""

    uid: str
    gid: str

    @property
    def setpriv(self) -> tuple[str, ...]:
        """The words before a command that make it his."""
        ids = ("--reuid", self.uid, "--regid", self.gid, *POWERLESS) if self.uid else ()
        return (*BOUND, "--no-new-privs", *ids)


CALLER, ROOT = Actor("", ""), Actor("0", "0")
UNSEEN = Actor("UID", "GID")  # of a place that could not be looked at
