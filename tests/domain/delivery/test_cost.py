"""What the tokens of a run cost: by the models that its runtime reported."""

import math

import pytest
from pydantic import ValidationError

from domain.configuration.models import PRICE_USD_MAX, Cost, Models
from domain.delivery.cost import MODELS_MAX, cost_of_usage, usage_by_models
from domain.delivery.transcript import TOKENS_MAX, USAGES_MAX, UsageEntry
from domain.run.facts import Usage

MODELS = Models.model_validate(
    {
        "providers": {
            "p": {
                "models": [
                    {"id": "m", "cost": {"input": 1, "output": 2}},
                    {"id": "x", "cost": {"input": 1000}},
                    {"id": "cached", "cost": {"input": 10, "cacheRead": 1, "cacheWrite": 20}},
                    {"id": "free"},
                    {
                        "id": "tiers",
                        "cost": {
                            "input": 9,
                            "tieredPricing": [
                                {"input": 1, "output": 1, "range": [0, 100]},
                                {"input": 5, "output": 5, "range": [100]},
                            ],
                        },
                    },
                ]
            },
            "q": {
                "models": [{"id": "m", "cost": {"input": 7}}, {"id": "a/b", "cost": {"input": 3}}]
            },
        }
    }
)
MILLION = 1_000_000


def usage(*entries: UsageEntry, planned: str | None = None) -> Usage:
    found = usage_by_models(entries, MODELS, planned)
    assert found is not None
    return found


def costs(*entries: UsageEntry, planned: str | None = None) -> list[float | None]:
    return [one.cost_usd for one in usage(*entries, planned=planned).models or ()]


def test_the_model_that_was_reported_is_paid_and_not_the_one_that_was_planned() -> None:
    assert costs(UsageEntry(MILLION, 0, "p/x"), planned="p/m") == [1000]
    assert costs(UsageEntry(MILLION, 0, "p/x")) == [1000]


def test_each_model_has_its_share() -> None:
    told = usage(
        UsageEntry(MILLION, MILLION, "p/m"), UsageEntry(1, 0, "p/x"), UsageEntry(1, 1, "?")
    )
    shares = [(one.model, one.priced_as, one.cost_usd) for one in told.models or ()]
    assert shares == [("p/m", "p/m", 3), ("p/x", "p/x", 0.001), ("?", None, None)]
    assert (told.input_tokens, told.output_tokens) == (MILLION + 2, MILLION + 1)
    assert told.total_tokens == 2 * MILLION + 3
    assert cost_of_usage(told) == pytest.approx(3.001)


def test_tokens_of_the_cache_have_prices_of_their_own() -> None:
    told = usage(UsageEntry(MILLION, 0, "p/cached", MILLION, MILLION))
    assert cost_of_usage(told) == 31
    assert (told.cache_read_tokens, told.cache_write_tokens) == (MILLION, MILLION)


def test_each_report_is_paid_in_the_tier_of_its_input() -> None:
    low, high = UsageEntry(99, 1, "p/tiers"), UsageEntry(50, 0, "p/tiers", 50, 0)
    assert costs(low) == [100 / MILLION]
    assert costs(high) == [250 / MILLION]
    assert costs(low, high) == [pytest.approx(350 / MILLION)]


@pytest.mark.parametrize(
    ("name", "planned", "cost"),
    [
        (None, "p/m", 1),
        ("m", "p/m", 1),
        ("m", "q/m", 7),
        ("m", None, None),
        ("x", None, 1000),
        ("a/b", None, 3),
        ("free", None, None),
        (None, None, None),
    ],
)
def test_a_name_without_a_provider_is_the_planned_one_or_the_only_one(
    name: str | None, planned: str | None, cost: float | None
) -> None:
    assert costs(UsageEntry(MILLION, 0, name), planned=planned) == [cost]


def test_without_tokens_or_prices_there_is_no_cost() -> None:
    assert usage_by_models((), MODELS, "p/m") is None
    assert cost_of_usage(usage(UsageEntry(5, 5, "p/free"))) is None


def test_too_many_models_share_the_last_place() -> None:
    told = usage(*(UsageEntry(1, 0, f"m{number}") for number in range(MODELS_MAX + 5)))
    assert [one.input_tokens for one in told.models or ()] == [1] * (MODELS_MAX - 1) + [6]


def test_highest_prices_make_a_finite_cost() -> None:
    prices = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), PRICE_USD_MAX)
    models = Models.model_validate({"providers": {"p": {"models": [{"id": "m", "cost": prices}]}}})
    entry = UsageEntry(TOKENS_MAX, TOKENS_MAX, "p/m", TOKENS_MAX, TOKENS_MAX)
    used = usage_by_models([entry] * USAGES_MAX, models, None)
    assert used is not None
    assert math.isfinite(cost_of_usage(used) or math.inf)
    assert Usage.from_json(used.to_json()) == used


@pytest.mark.parametrize("price", [PRICE_USD_MAX + 1, 1e300])
def test_price_without_a_finite_cost_is_refused(price: float) -> None:
    with pytest.raises(ValidationError, match="less than or equal"):
        Cost.model_validate({"input": price})
