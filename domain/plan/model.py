"""Choice of the model that a child runs with."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from domain.configuration.models import (
    FALLBACKS_MAX,
    ModelSetting,
    ModelSettings,
    is_model_name,
    split_model_reference,
)
from domain.configuration.places import NAMED_SOURCES
from domain.configuration.secrets import variables_in
from domain.run.plan_facts import ModelVerdict
from domain.values.text import single_line

ModelSource = Literal[
    "argument",
    "agent_subagents",
    "defaults_subagents",
    "caller",
    "agent",
    "defaults",
    "runtime",
]
"""Place that named the model."""


MODEL_CHARACTERS_MAX = 256
_NOT_SERVED = "is not served by the agent's runtime"
_UNSET = "refers to a variable that was not set when the configuration was read"
UNNAMED_MODEL = "The requested model is not a valid model name and was skipped."


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """The chosen model, with warnings about models that were skipped.

    Attributes:
        provider: Provider; None if unknown, or if the runtime chooses.
        model: Model name; None leaves the choice to the runtime (source `runtime`).
        source: Place that named the model.
        applied: False if a model of higher precedence was skipped; None if no model was named.
        warnings: Warnings for the caller.
        verdicts: Every name that was found, in order of precedence.
    """

    provider: str | None
    model: str | None
    source: ModelSource
    applied: bool | None
    warnings: tuple[str, ...] = ()
    verdicts: tuple[ModelVerdict, ...] = ()

    @property
    def reference(self) -> str | None:
        """Return `provider/model` or the bare name, or None if the runtime chooses."""
        if self.model is None:
            return None
        return f"{self.provider}/{self.model}" if self.provider else self.model


def plan_model(
    settings: ModelSettings,
    *,
    served: Collection[str] | None = None,
    aliases: Mapping[str, str] | None = None,
    known: Collection[str] = (),
) -> ModelPlan:
    """Choose the first named model that can be served.

    A model that is invalid or cannot be served is skipped with a warning, and its fallbacks are
    tried next. If no model is named, or none can be served, the runtime chooses.

    An entry of `served` without a provider matches every provider; `provider/*` matches every model
    of one, and `x/y/*` every model whose name begins with `x/y/`. A requested name without a
    provider matches an entry that names it, or a provider that lists it in `known`. No other
    provider is guessed.

    Args:
        settings: Every place that may name a model.
        served: Models that the runtime declares; None accepts every model.
        aliases: Lower-case alias to `provider/model`.
        known: `provider/model` of every model that the configuration lists.
    """
    verdicts: list[ModelVerdict] = []
    skipped: list[tuple[ModelSource, str]] = []
    taken: tuple[ModelSource, str] | None = None
    if settings.unnamed_argument:
        verdicts.append(ModelVerdict(source="argument", reference=None, verdict="no_name"))
    for source, name in _candidates(settings):
        reference = _resolve_alias(name, aliases or {})
        is_served = served is None or _is_served(reference, served, known)
        verdict = _verdict(source, reference, is_served=is_served, is_taken=taken is not None)
        verdicts.append(verdict)
        if verdict.verdict == "taken":
            taken = source, reference
        elif taken is None:
            skipped.append((source, reference))
    source, running = taken or ("runtime", "the runtime's own default")
    provider, model = split_model_reference(taken[1] if taken else None)
    fell_short = bool(skipped) or settings.unnamed_argument
    unnamed = (UNNAMED_MODEL,) if settings.unnamed_argument else ()
    return ModelPlan(
        provider=provider,
        model=model,
        source=source,
        applied=None if not verdicts else taken is not None and not fell_short,
        warnings=(*unnamed, *_warnings(skipped, running)),
        verdicts=tuple(verdicts),
    )


def fallback_models(
    settings: ModelSettings,
    *,
    source: str,
    taken: str | None,
    served: Collection[str] | None = None,
    aliases: Mapping[str, str] | None = None,
    known: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the models to try, in order, if the chosen model is unavailable.

    These are the servable models that the same place names after the chosen one.

    Args:
        settings: Every place that may name a model.
        source: Place that named the chosen model.
        taken: Reference of the chosen model.
        served: Models that the runtime declares; None accepts every model.
        aliases: Lower-case alias to `provider/model`.
        known: `provider/model` of every model that the configuration lists.
    """
    resolved = [
        (place, _resolve_alias(name, aliases or {})) for place, name in _candidates(settings)
    ]
    names = [name for place, name in resolved if place == source]
    if taken not in names:
        return ()
    later = names[names.index(taken) + 1 :]
    offered = [
        name
        for name in later
        if name != taken
        and is_model_name(name)
        and (served is None or _is_served(name, served, known))
    ]
    return tuple(dict.fromkeys(offered))


def _candidates(settings: ModelSettings) -> list[tuple[ModelSource, str]]:
    places: tuple[tuple[ModelSource, ModelSetting], ...] = (
        ("argument", settings.argument),
        ("agent_subagents", settings.agent_subagents),
        ("defaults_subagents", settings.defaults_subagents),
        ("caller", settings.caller),
        ("agent", settings.agent),
        ("defaults", settings.defaults),
    )
    return [(source, name) for source, setting in places for name in _names(setting)]


def _names(setting: ModelSetting) -> list[str]:
    """Return the primary and its fallbacks. Fallbacks without a primary are ignored."""
    if setting is None:
        return []
    if isinstance(setting, str):
        return [setting.strip()] if setting.strip() else []
    primary, fallbacks = setting.get("primary"), setting.get("fallbacks")
    if not isinstance(primary, str) or not primary.strip():
        return []
    others = list(fallbacks)[:FALLBACKS_MAX] if isinstance(fallbacks, list | tuple) else []
    named = [primary, *(other for other in others if isinstance(other, str))]
    return [name.strip() for name in named if name.strip()]


def _resolve_alias(name: str, aliases: Mapping[str, str]) -> str:
    return name if "/" in name else aliases.get(name.lower(), name)


def storable_model_name(text: str, aliases: Mapping[str, str]) -> str | None:
    """Return the part of a requested model that may be stored in events.

    That is the trimmed name, or the target of an alias that is not itself a valid name. None for
    free text.

    Args:
        text: Model as requested.
        aliases: Lower-case alias to `provider/model`.
    """
    name = text.strip()
    if is_model_name(name):
        return name
    reference = None if "/" in name else aliases.get(name.lower())
    return reference if reference is not None and _is_name(reference) else None


def _is_name(reference: str) -> bool:
    return reference.isprintable() and len(reference) <= MODEL_CHARACTERS_MAX


def _is_served(reference: str, served: Collection[str], known: Collection[str]) -> bool:
    provider, model = split_model_reference(reference)
    named = [reference]
    if provider is None:
        named += [name for name in known if split_model_reference(name)[1] == model]
    return any(_offers(entry, name) for entry in served for name in named)


def _offers(entry: str, reference: str) -> bool:
    provider, model = split_model_reference(reference)
    offered_by, offered = split_model_reference(entry)
    if entry == "*":
        return True
    if offered == model and (not offered_by or not provider or offered_by == provider):
        return True
    # The part before the star may be more than a provider: `openrouter/anthropic/*`.
    return entry.endswith("/*") and reference.startswith(entry.removesuffix("*"))


def _verdict(
    source: ModelSource, reference: str, *, is_served: bool, is_taken: bool
) -> ModelVerdict:
    _, model = split_model_reference(reference)
    if model is None or not _is_name(reference) or variables_in(reference):
        return ModelVerdict(
            source=source, reference=None, verdict="not_reached" if is_taken else "no_name"
        )
    if is_taken:
        return ModelVerdict(source=source, reference=reference, verdict="not_reached")
    if is_served:
        return ModelVerdict(source=source, reference=reference, verdict="taken")
    return ModelVerdict(source=source, reference=reference, verdict="not_served")


def _warnings(skipped: list[tuple[ModelSource, str]], running: str) -> tuple[str, ...]:
    taken = single_line(running, characters_max=MODEL_CHARACTERS_MAX)
    return tuple(
        f'Model "{single_line(name, characters_max=100)}" from {NAMED_SOURCES[place].model_words} '
        f"{_UNSET if variables_in(name) else _NOT_SERVED} and was skipped; running on {taken}."
        for place, name in skipped
    )
