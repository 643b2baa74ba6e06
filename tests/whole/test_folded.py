"""A test of many cases tries them all, and tells which of them fail."""

import pytest

from tests.folded import for_each


def test_every_case_is_tried_and_those_that_fail_are_named() -> None:
    tried = []

    @for_each("left, right", [(1, 1), (2, 1), (3, 3), (4, 3)], ids=lambda case: f"number {case[0]}")
    def alike(left: int, right: int) -> None:
        tried.append(left)
        assert left == right

    with pytest.raises(ExceptionGroup, match="2 of 4 cases: number 2, number 4") as failed:
        alike()
    assert tried == [1, 2, 3, 4]
    assert [error.__notes__ for error in failed.value.exceptions] == [["case: number 2"], ["case: number 4"]]


@for_each("letter", "abc")
def test_what_all_cases_pass_passes_with_fixtures(letter: str, request: pytest.FixtureRequest) -> None:
    assert letter in "abc"
    assert request.node.name == "test_what_all_cases_pass_passes_with_fixtures"


def test_no_case_is_a_failure() -> None:
    @for_each("word", [])
    def nothing(word: str) -> None:
        raise AssertionError(word)

    with pytest.raises(AssertionError, match="no case"):
        nothing()
