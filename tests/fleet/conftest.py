"""Each test counts its own processes."""

import pytest

from tests.fleet import children


@pytest.fixture(autouse=True)
def _own_children() -> None:
    children.begin()
