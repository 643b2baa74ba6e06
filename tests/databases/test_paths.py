"""Words that hold two things are taken apart in one place, and are refused where nobody could."""

from __future__ import annotations

import pytest

from auditor.databases import paths
from auditor.databases.paths import SymbolicLink
from auditor.facts import Subject, known, unknown
from auditor.host.request import Files

DATABASE = Subject("database", "postgres 7")
ROOT = "/proc/7/root"


def test_pairs_are_divided_at_the_last_mark() -> None:
    assert known(("tank/a=b=rw", "tank=ro"), "").pairs() == (("tank/a=b", "rw"), ("tank", "ro"))
    assert known((), "").pairs() == unknown("not read").pairs() == ()


@pytest.mark.parametrize(
    ("link", "target"), [("/srv/a -> b/data", "/tank/db"), ("/srv/data", "/tank/a -> b"), ("/srv/a -> ", "/x")]
)
def test_a_link_with_an_arrow_in_its_name_leads_where_it_leads(link: str, target: str) -> None:
    (fact,) = paths.database_links.parse(Files({}, {f"{ROOT}{link}": target}), DATABASE)
    assert fact.value.rows(SymbolicLink) == ((link, target),)


def test_links_are_told_by_path() -> None:
    links = {f"{ROOT}/b": "/tank/b", f"{ROOT}/a": "../x"}
    (fact,) = paths.database_links.parse(Files({}, links), DATABASE)
    found = (SymbolicLink("/a", "../x"), SymbolicLink("/b", "/tank/b"))
    assert fact.value == known(found, "/a -> ../x, /b -> /tank/b", f"ls -ld {ROOT}/*")
