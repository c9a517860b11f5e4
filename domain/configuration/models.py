"""Model settings: choice of a model, and prices."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from domain.configuration.sections import (
    NameText,
    Number,
    OwnSection,
    SharedSection,
    Text,
    Whole,
    section_error,
)

ModelSetting = str | Mapping[str, object] | None
_MODEL_NAME = re.compile(r"(?=.*[A-Za-z0-9])[A-Za-z0-9@/_][A-Za-z0-9._:/@+\-]{0,255}")
FALLBACKS_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Places that may name a model, in order of precedence.

    Attributes:
        argument: Model named by the request.
        unnamed_argument: True if the request gives a model that is not a valid name.
        caller: Active model of the caller; only set if the child is the same agent.
    """

    argument: str | None = None
    unnamed_argument: bool = False
    agent_subagents: ModelSetting = None
    defaults_subagents: ModelSetting = None
    caller: str | None = None
    agent: ModelSetting = None
    defaults: ModelSetting = None


PRICE_USD_MAX = 1_000_000_000
"""Maximum price, so that every cost is a finite number for any token count."""
Price = Annotated[Number, Field(ge=0, le=PRICE_USD_MAX)]
_TokenCount = Annotated[Number, Field(ge=0)]


class ModelChoice(OwnSection):
    """A model and its fallbacks. A file may also give only the name."""

    primary: Text | None = None
    """Model to use. A file may give this text in place of the object. Example: `"openai/gpt-5"`"""

    fallbacks: Annotated[tuple[Text, ...], Field(max_length=FALLBACKS_MAX)] = ()
    """Models to try, in this order, if the primary one is not available. Example:
    `["openai/gpt-5-mini"]`
    """

    timeout_ms: Annotated[Whole, Field(gt=0)] | None = None
    """No effect; `runTimeoutSeconds` limits a run."""

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"primary": value} if isinstance(value, str) else value

    @property
    def name(self) -> str | None:
        """Return the model's name, trimmed, or None if no model is chosen."""
        return (self.primary or "").strip() or None


class ModelEntry(SharedSection):
    """An entry of `agents.defaults.models`, whose key is `provider/model`."""

    alias: Text | None = None
    """Another name of the model in requests. Example: `"big"`"""

    @property
    def alias_word(self) -> str | None:
        """Return the normalized alias for lookups, or None."""
        return (self.alias or "").strip().lower() or None


class TieredPrice(OwnSection):
    """Prices for a range of input tokens: `range` is `[from, to]` or `[from]`."""

    input: Price = 0
    """US dollars per million input tokens."""

    output: Price = 0
    """US dollars per million output tokens."""

    cache_read: Price = 0
    """US dollars per million tokens read from a cache."""

    cache_write: Price = 0
    """US dollars per million tokens written to a cache."""

    range: Annotated[tuple[_TokenCount, ...], Field(min_length=1, max_length=2)]
    """Input tokens of one usage report, cache tokens included, to which these prices apply:
    `[from, to]` or `[from]`. Example: `[0, 200000]`
    """


class Cost(OwnSection):
    """Prices in US dollars per million tokens."""

    input: Price | None = None
    """US dollars per million input tokens. Example: `3`"""

    output: Price | None = None
    """US dollars per million output tokens. Example: `15`"""

    cache_read: Price | None = None
    """US dollars per million tokens read from a cache. Example: `0.3`"""

    cache_write: Price | None = None
    """US dollars per million tokens written to a cache. Example: `3.75`"""

    tiered_pricing: tuple[TieredPrice, ...] = ()
    """Prices that depend on the number of input tokens."""


class ProviderModel(SharedSection):
    """A model that a provider offers."""

    id: NameText
    """Id of the model, as its provider names it. Example: `"gpt-5"`"""

    name: Text | None = None
    """Display name. Example: `"GPT-5"`"""

    cost: Cost | None = None
    """Prices in US dollars per million tokens. Unset: no cost is shown."""


class Provider(SharedSection):
    """A provider of models."""

    models: tuple[ProviderModel, ...] = ()
    """Models of the provider."""


class Models(SharedSection):
    """The `models` section."""

    providers: dict[str, Provider] = Field(default_factory=dict)
    """Providers, by the part of a model name before `/`. Example: `{ openai: {
    models: [{ id: "gpt-5", cost: { input: 3, output: 15 } }] } }`
    """

    def cost_of(self, provider: str, model: str) -> Cost | None:
        """Return the prices of a provider's model, or None if they are unknown."""
        entry = self.providers.get(provider)
        for offered in entry.models if entry else ():
            if offered.id == model:
                return offered.cost
        return None


def split_model_reference(reference: str | None) -> tuple[str | None, str | None]:
    """Split a reference into provider and model at the first slash.

    There is no provider if that slash is the first or last character.
    """
    text = (reference or "").strip()
    at = text.find("/")
    if 0 < at < len(text) - 1:
        return text[:at], text[at + 1 :]
    return None, text or None


def is_model_name(text: str) -> bool:
    """Return True if a text has the form of a model name: `provider/model`, `model:tag`, `@x/y`,
    `/x`.

    Only such texts are stored in events; others count as free text.
    """
    return _MODEL_NAME.fullmatch(text) is not None


def is_model_pattern(text: str) -> bool:
    """Return True for a model name, a prefix such as `provider/*`, or `*` for every model."""
    return text == "*" or is_model_name(text.removesuffix("/*"))


def _model_pattern(text: str) -> str:
    if not is_model_pattern(text):
        raise section_error("model", 'must be a model name, "provider/model", "provider/*" or "*"')
    return text


ServedModels = Annotated[
    tuple[Annotated[Text, AfterValidator(_model_pattern)], ...], Field(max_length=200)
]
"""Models that a runtime serves.

A name without a provider matches that model of every provider. `x/*` matches all names that begin
with `x/`, including models that are requested without a provider and listed with one.
"""
