"""Tests that only `make test-all` runs, and the number of examples of a property.

`make test` has one test of every behavior. A test that shows the same behavior again, at another
moment, with other data or for longer, is marked `nightly`. Properties try as many examples as the
Hypothesis profile says: `quick`, `gate` (`make test`) or `all`.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Case = TypeVar("Case")

EXAMPLES_OF_ALL = 100
"""Default number of examples of a property under the profile `all`."""
EXAMPLES_MIN = 5
IMPORTED = pytest.StashKey[frozenset[str]]()
"""Modules imported during collection, which each test process repeats."""


def examples(count: int, **others: Any) -> settings:
    """Return the settings of a property with `count` examples under the profile `all`, and fewer
    under smaller profiles.
    """
    return settings(max_examples=max(EXAMPLES_MIN, round(count * share())), **others)


def share() -> float:
    """Return the share of the examples of the profile `all` that are tried."""
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
    """Return the cases for `pytest.mark.parametrize`, all `nightly` except those that are kept.

    Raises:
        ValueError: None is kept, so that `make test` would have none of them.
    """
    kept = is_kept if callable(is_kept) else list(is_kept).__contains__
    every = list(cases)
    if not any(kept(case) for case in every):
        raise ValueError(f"none of {every} is kept")
    return [case if kept(case) else _nightly(case) for case in every]


def _nightly(case: Any) -> Any:
    values = case if type(case) is tuple else (case,)
    return pytest.param(*values, marks=pytest.mark.nightly)
