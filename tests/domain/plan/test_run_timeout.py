"""How long a run may take."""

import pytest

from domain.configuration.agents import RUN_TIMEOUT_SECONDS_MAX
from domain.plan.timeout import (
    run_timeout_seconds,
    run_timeout_source,
    run_timeout_warnings,
)


@pytest.mark.parametrize(
    ("argument", "configured", "seconds"),
    [
        (0, 600, 0),
        (None, -3, 0),
        (None, None, 0),
        ("30", 600, 600),
        (2.9, 600, 2),
        (-0.5, 600, 0),
        (float("nan"), 7.9, 7),
        (float("inf"), None, 0),
        (True, 600, 600),
        (1e300, None, RUN_TIMEOUT_SECONDS_MAX),
        (10**400, None, RUN_TIMEOUT_SECONDS_MAX),
        (None, 120, 120),
    ],
)
def test_the_first_finite_number_counts_rounded_down(
    argument: object, configured: object, seconds: int
) -> None:
    assert run_timeout_seconds(argument, configured) == seconds


@pytest.mark.parametrize(
    ("argument", "source"),
    [
        (0, "argument"),
        (-5, "argument"),
        (10**400, "argument"),
        (None, "defaults"),
        (float("nan"), "defaults"),
        (True, "defaults"),
    ],
)
def test_it_is_known_whose_number_it_is(argument: object, source: str) -> None:
    assert run_timeout_source(argument) == source


@pytest.mark.parametrize(
    ("argument", "configured", "warned"),
    [
        (None, None, False),
        (RUN_TIMEOUT_SECONDS_MAX, None, False),
        (RUN_TIMEOUT_SECONDS_MAX + 0.9, None, False),
        (RUN_TIMEOUT_SECONDS_MAX + 1, None, True),
        (10**400, 5, True),
        (5, 10**9, False),
        (None, 10**9, True),
        (float("inf"), 10**9, True),
    ],
)
def test_who_asks_for_more_than_there_can_be_is_told(
    argument: object, configured: object, warned: bool
) -> None:
    warnings = run_timeout_warnings(argument, configured)
    assert len(warnings) == warned
    assert all(str(RUN_TIMEOUT_SECONDS_MAX) in warning for warning in warnings)
