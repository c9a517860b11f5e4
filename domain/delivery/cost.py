"""Cost of a run's tokens, by the models that its runtime reported.

Prices are in US dollars per million tokens (`models.providers.*.models[].cost`). Tiered prices are
selected by the input of one report, cache tokens included.
"""

from collections.abc import Iterable

from domain.configuration.models import Cost, Models, TieredPrice, split_model_reference
from domain.delivery.transcript import UsageEntry
from domain.run.facts import ModelUsage, Usage

MODELS_MAX = 20
"""Maximum number of models with a share of their own; the last share also takes all further
models.
"""


def price_usage(entries: Iterable[UsageEntry], models: Models, planned: str | None) -> Usage | None:
    """Return the tokens of a run with the share and cost of each model, in order of first report.

    Args:
        entries: Usage entries of the run.
        models: Configured prices.
        planned: Planned model (`provider/model`); used for entries that name no model.

    Returns:
        None if no usage was reported.
    """
    shares: dict[str | None, ModelUsage] = {}
    for entry in entries:
        name = entry.model or planned
        if name not in shares and len(shares) >= MODELS_MAX:
            name = next(reversed(shares))
        share = shares.get(name) or ModelUsage(model=name, cost_usd=0.0)
        priced_as, cost = _price_of(entry.model or planned, models, planned)
        spent = _cost_usd(entry, cost) if cost is not None else None
        total = None if spent is None or share.cost_usd is None else share.cost_usd + spent
        shares[name] = ModelUsage(
            model=name,
            input_tokens=share.input_tokens + entry.input_tokens,
            output_tokens=share.output_tokens + entry.output_tokens,
            cache_read_tokens=share.cache_read_tokens + entry.cache_read_tokens,
            cache_write_tokens=share.cache_write_tokens + entry.cache_write_tokens,
            priced_as=priced_as if total is not None else None,
            cost_usd=total,
        )
    if not shares:
        return None
    found = tuple(shares.values())
    input_total, output_total = (
        sum(share.input_tokens for share in found),
        sum(share.output_tokens for share in found),
    )
    return Usage(
        input_tokens=input_total,
        output_tokens=output_total,
        total_tokens=input_total + output_total,
        cache_read_tokens=sum(share.cache_read_tokens for share in found),
        cache_write_tokens=sum(share.cache_write_tokens for share in found),
        models=found,
    )


def total_cost(usage: Usage) -> float | None:
    """Return the total cost of all shares with a price, or None if none has one."""
    costs = [share.cost_usd for share in usage.models if share.cost_usd is not None]
    return sum(costs) if costs else None


def _price_of(
    name: str | None, models: Models, planned: str | None
) -> tuple[str | None, Cost | None]:
    """Return the price of a model, with the reference it was found under.

    A name without a provider is that of the planned model, or of the only provider that offers it.
    """
    provider, model = split_model_reference(name)
    if model is None:
        return None, None
    if provider is not None and (cost := _priced(models, provider, model)) is not None:
        return f"{provider}/{model}", cost
    # A model name may itself contain slashes.
    whole = name or model
    planned_provider, planned_model = split_model_reference(planned)
    if planned_provider is not None and planned_model == whole:
        return planned, _priced(models, planned_provider, whole)
    offers = [
        (f"{offering}/{whole}", cost)
        for offering in models.providers
        if (cost := _priced(models, offering, whole)) is not None
    ]
    return offers[0] if len(offers) == 1 else (None, None)


def _priced(models: Models, provider: str, model: str) -> Cost | None:
    cost = models.cost_of(provider, model)
    if cost is None or (cost.input is None and cost.output is None and not cost.tiered_pricing):
        return None
    return cost


def _cost_usd(entry: UsageEntry, cost: Cost) -> float:
    price: Cost | TieredPrice = _tier(entry, cost) or cost
    spent = (
        entry.input_tokens * (price.input or 0)
        + entry.output_tokens * (price.output or 0)
        + entry.cache_read_tokens * (price.cache_read or 0)
        + entry.cache_write_tokens * (price.cache_write or 0)
    )
    return spent / 1_000_000


def _tier(entry: UsageEntry, cost: Cost) -> TieredPrice | None:
    size = entry.input_tokens + entry.cache_read_tokens + entry.cache_write_tokens
    for tier in cost.tiered_pricing:
        first, *last = tier.range
        if size >= first and (not last or size < last[0]):
            return tier
    return None
