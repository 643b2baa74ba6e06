"""Words that hold two things are taken apart in one place, and are refused where nobody could."""

from __future__ import annotations

import pytest

from auditor.collect import database_links
from auditor.facts import Subject, known, pairs_of, unknown
from auditor.host.request import Files

DATABASE = Subject("database", "postgres 7")
ROOT = "/proc/7/root"


def test_pairs_are_divided_at_the_last_mark() -> None:
    assert pairs_of(known(("tank/a=b=rw", "tank=ro"), "")) == (("tank/a=b", "rw"), ("tank", "ro"))
    assert pairs_of(known((), "")) == pairs_of(unknown("not read")) == ()


@pytest.mark.parametrize(
    ("link", "target"), [("/srv/a -> b/data", "/tank/db"), ("/srv/data", "/tank/a -> b"), ("/srv/a -> ", "/x")]
)
def test_a_link_with_an_arrow_in_its_name_is_not_followed_elsewhere(link: str, target: str) -> None:
    with pytest.raises(ValueError, match=r"^/srv/.*: a link with -> in its name or target$"):
        list(database_links.parse(Files({}, {f"{ROOT}{link}": target}), DATABASE))


def test_links_are_put_together_and_taken_apart() -> None:
    links = {f"{ROOT}/b": "/tank/b", f"{ROOT}/a": "../x"}
    (fact,) = database_links.parse(Files({}, links), DATABASE)
    assert fact.value == known(("/a -> ../x", "/b -> /tank/b"), "/a -> ../x, /b -> /tank/b", f"ls -ld {ROOT}/*")
    assert database_links.targets(("/a -> ../x", "/b -> /tank/b")) == {"/a": "../x", "/b": "/tank/b"}
