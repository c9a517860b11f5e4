"""What `make test-all` alone tries, and how many examples a property tries.

`make test` has one test of every behavior. What shows the same behavior once more, at another
moment, with other data or for longer, is marked `nightly`. Properties try as many examples as the
profile of Hypothesis says: `quick`, `gate` (`make test`) or `all`.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Case = TypeVar("Case")

EXAMPLES_OF_ALL = 100
"""What a property tries under the profile `all` if it does not say how many."""
EXAMPLES_MIN = 5
IMPORTED = pytest.StashKey[frozenset[str]]()
"""The modules that were imported while tests were collected, which each process of them does."""


def examples(count: int, **others: Any) -> settings:
    """Return settings of a property that tries `count` examples under the profile `all`, and fewer
    under one that tries fewer in general."""
    return settings(max_examples=max(EXAMPLES_MIN, round(count * share())), **others)


def share() -> float:
    """Return how much is tried of what the profile `all` tries: 1 under that."""
    default = settings.default
    assert default is not None
    return default.max_examples / EXAMPLES_OF_ALL


def stride(of_gate: int) -> int:
    """Return from one position to the next of a look at every position: 1 under the profile `all`,
    `of_gate` under others."""
    return 1 if share() >= 1 else of_gate


def nightly_but(
    cases: Iterable[Case], is_kept: Callable[[Case], bool] | Iterable[Case]
) -> list[Any]:
    """Return the cases for `pytest.mark.parametrize`, all `nightly` but those that are kept.

    Raises `ValueError` if none is kept: then nothing of it would be in `make test`.
    """
    kept = is_kept if callable(is_kept) else list(is_kept).__contains__
    every = list(cases)
    if not any(kept(case) for case in every):
        raise ValueError(f"none of {every} is kept")
    return [case if kept(case) else _nightly(case) for case in every]


def _nightly(case: Any) -> Any:
    values = case if type(case) is tuple else (case,)
    return pytest.param(*values, marks=pytest.mark.nightly)
