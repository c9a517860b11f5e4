"""Which model a child runs with."""

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
"""A model's name, or `{"primary": name, "fallbacks": [name, …]}`, or nothing."""


MODEL_CHARACTERS_MAX = 256
_NOT_SERVED = "cannot be served by the agent's runtime"
_UNSET = "names a variable that was not set when the configuration was read"
UNNAMED_MODEL = "The model that was asked for has no model's name and was skipped."


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """The model to run with, and what was said of those that were skipped.

    `model` None leaves the choice to the runtime (source `runtime`). `applied` is false when a
    model that stood higher was skipped, and None when none was named anywhere. `verdicts` has
    every name that was found, in the order of the places.
    """

    provider: str | None
    model: str | None
    source: ModelSource
    applied: bool | None
    warnings: tuple[str, ...] = ()
    verdicts: tuple[ModelVerdict, ...] = ()

    @property
    def reference(self) -> str | None:
        """`provider/model`, or the bare name; None when the runtime chooses."""
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
    """The first model that is named and can be served.

    `served` are the models the agent's runtime declares; None when it declares none, and then
    every model is taken. An entry without a provider matches every provider, `provider/*` every
    model of one, `x/y/*` every one whose name begins with `x/y/`. A name without a provider is that
    of the entry which names it, else of the providers that have it in `known` (`provider/model`, as
    the configuration lists them); no other provider is guessed. A model that cannot be served, or
    whose name is no name, is skipped with a warning; its fallbacks come next. `aliases` (lower
    case) stand for `provider/model`. Where nothing is named, or nothing that is can be served, no
    model is told to the runtime.
    """
    verdicts: list[ModelVerdict] = []
    skipped: list[tuple[ModelSource, str]] = []
    taken: tuple[ModelSource, str] | None = None
    if settings.unnamed_argument:
        verdicts.append(ModelVerdict(source="argument", reference=None, verdict="no_name"))
    for source, named in _candidates(settings):
        reference = _resolve_alias(named, aliases or {})
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
    """The models that stand in for the one that was taken when it cannot be had, in their order:
    those that the same place names behind it and that can be served."""
    resolved = [
        (place, _resolve_alias(name, aliases or {})) for place, name in _candidates(settings)
    ]
    names = [name for place, name in resolved if place == source]
    if taken not in names:
        return ()
    behind = names[names.index(taken) + 1 :]
    offered = [
        one
        for one in behind
        if one != taken
        and is_model_name(one)
        and (served is None or _is_served(one, served, known))
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
    """Fallbacks stand in for a primary; without one they say nothing."""
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
    """What may be kept of a model that is asked for: its name, trimmed; of an alias that has not
    the form of a name, what it stands for; None for free text. `aliases` are in lower case."""
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
        named += [one for one in known if split_model_reference(one)[1] == model]
    return any(_offers(entry, one) for entry in served for one in named)


def _offers(entry: str, reference: str) -> bool:
    provider, model = split_model_reference(reference)
    offered_by, offered = split_model_reference(entry)
    if entry == "*":
        return True
    if offered == model and (not offered_by or not provider or offered_by == provider):
        return True
    # What stands before the star may be more than a provider: `openrouter/anthropic/*`.
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
