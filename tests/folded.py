"""One proof for many cases as one test: pytest itself takes two to three milliseconds for a test, more than most cases do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any


def for_each(
    names: str, cases: Iterable[Any], ids: Callable[[Any], object] = str
) -> Callable[..., Callable[..., None]]:
    """As pytest.mark.parametrize, but as one test. Every case is tried, and all that fail are told by their ids.

    names: of the arguments, with commas between; a case is one value, or a tuple with one value for each of several names.
    A fixture is made once for all cases, so a test that changes what its fixtures hold keeps to parametrize. No case is a
    failure, too: a proof of nothing.
    """
    words = [name.strip() for name in names.split(",")]
    taken = [(ids(case), case if len(words) > 1 else (case,)) for case in cases]

    def folded(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def every(**fixtures: Any) -> None:
            failed = []
            for name, case in taken:
                try:
                    test(**fixtures, **dict(zip(words, case, strict=True)))
                except Exception as error:
                    error.add_note(f"case: {name}")
                    failed.append(error)
            assert taken, "no case"
            if failed:
                named = ", ".join(error.__notes__[-1].removeprefix("case: ") for error in failed)
                raise ExceptionGroup(f"{len(failed)} of {len(taken)} cases: {named}", failed)

        wanted = inspect.signature(test).parameters.values()
        every.__dict__["__signature__"] = inspect.Signature([each for each in wanted if each.name not in words])
        return every

    return folded
