"""Models: which one is chosen, and what it costs."""

from typing import Annotated, Any

from pydantic import Field, model_validator

from domain.configuration.sections import NameText, Number, OwnSection, SharedSection, Text, Whole
from domain.plan.model import FALLBACKS_MAX

Price = Annotated[Number, Field(ge=0)]


class ModelChoice(OwnSection):
    """A model and its substitutes; a file may give the name alone."""

    primary: Text | None = None
    fallbacks: Annotated[tuple[Text, ...], Field(max_length=FALLBACKS_MAX)] = ()
    timeout_ms: Annotated[Whole, Field(gt=0)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"primary": value} if isinstance(value, str) else value

    @property
    def name(self) -> str | None:
        """The model to use, trimmed; None when nothing is chosen."""
        return (self.primary or "").strip() or None


class ModelEntry(SharedSection):
    """One entry of `agents.defaults.models`, whose key is `provider/model`."""

    alias: Text | None = None

    @property
    def alias_word(self) -> str | None:
        """The alias in the form in which it is looked up; None without one."""
        return (self.alias or "").strip().lower() or None


class TieredPrice(OwnSection):
    """Prices within a span of input tokens: `range` is `[from, to]` or `[from]`."""

    input: Price = 0
    output: Price = 0
    cache_read: Price = 0
    cache_write: Price = 0
    range: Annotated[tuple[Price, ...], Field(min_length=1, max_length=2)]


class Cost(OwnSection):
    """Prices in US dollars per million tokens."""

    input: Price | None = None
    output: Price | None = None
    cache_read: Price | None = None
    cache_write: Price | None = None
    tiered_pricing: tuple[TieredPrice, ...] = ()


class ProviderModel(SharedSection):
    """One model that a provider offers."""

    id: NameText
    name: Text | None = None
    cost: Cost | None = None


class Provider(SharedSection):
    """A provider of models."""

    models: tuple[ProviderModel, ...] = ()


class Models(SharedSection):
    """The `models` section."""

    providers: dict[str, Provider] = Field(default_factory=dict)
