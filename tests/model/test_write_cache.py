from __future__ import annotations

import pytest

from auditor.facts import Fact, Facts, Judged, Subject, Unknown, known, unknown
from auditor.model.write_cache import keeps_acknowledged

DISK = Subject("disk", "nvme0n1")


def keeps(cache: Judged, grade: Judged) -> Judged:
    facts = Facts()
    facts.put_all((Fact(DISK, "volatile_cache", cache), Fact(DISK, "plp_grade", grade)))
    (found,) = keeps_acknowledged.derive(DISK, facts)
    return found.value


NO, YES, DENIED = known(False, "no cache"), known(True, "cache on"), unknown("nvme id-ctrl: permission denied")


@pytest.mark.parametrize(
    ("cache", "grade", "says"),
    [
        (NO, unknown("a hard disk"), known(True, "no cache")),
        (NO, known(1, "grade 1"), known(True, "no cache")),
        (YES, known(3, "declared"), known(True, "declared")),
        (DENIED, known(4, "strong"), known(True, "strong")),
        (YES, DENIED, DENIED),
        (DENIED, known(2, "at rest"), DENIED),
    ],
)
def test_one_of_the_two_is_enough_to_keep(cache: Judged, grade: Judged, says: Judged) -> None:
    assert keeps(cache, grade) == says


def test_both_must_be_known_to_lose() -> None:
    found = keeps(YES, known(2, "at rest"))
    assert not isinstance(found, Unknown)
    assert found.value is False
    assert [each.text for each in found.evidence] == ["cache on", "at rest"]
