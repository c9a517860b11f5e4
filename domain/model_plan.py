"""Which model a child runs with."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from domain.bounded_text import single_line

ModelSource = Literal[
    "argument",
    "agent_subagents",
    "defaults_subagents",
    "caller",
    "agent",
    "defaults",
    "built_in",
    "runtime",
]
ModelSetting = str | Mapping[str, object] | None
"""A model's name, or `{"primary": name, "fallbacks": [name, …]}`, or nothing."""

MODEL_CHARACTERS_MAX = 256
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+\-]{0,255}")
FALLBACKS_MAX = 10
_SOURCE_NAMES: dict[ModelSource, str] = {
    "argument": "the model argument",
    "agent_subagents": "the agent's subagents.model",
    "defaults_subagents": "agents.defaults.subagents.model",
    "caller": "the caller's active model",
    "agent": "the agent's model",
    "defaults": "agents.defaults.model",
    "built_in": "the built-in default",
    "runtime": "the runtime",
}


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """The model to run with, and what was said of those that were skipped.

    `model` None leaves the choice to the runtime (source `runtime`). `applied` is false when a
    model that stood higher was skipped.
    """

    provider: str | None
    model: str | None
    source: ModelSource
    applied: bool
    warnings: tuple[str, ...] = ()

    @property
    def reference(self) -> str | None:
        """`provider/model`, or the bare name; None when the runtime chooses."""
        if self.model is None:
            return None
        return f"{self.provider}/{self.model}" if self.provider else self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Every place a model may be named, in the order in which they count.

    `caller` is the caller's active model; give it only when the child is the same agent.
    """

    argument: str | None = None
    agent_subagents: ModelSetting = None
    defaults_subagents: ModelSetting = None
    caller: str | None = None
    agent: ModelSetting = None
    defaults: ModelSetting = None
    built_in: str | None = None


def plan_model(
    settings: ModelSettings,
    *,
    served: Collection[str] | None = None,
    aliases: Mapping[str, str] | None = None,
) -> ModelPlan:
    """The first model that is named and can be served.

    `served` are the models the agent's runtime declares; None when it declares none, and then
    every model is taken. An entry without a provider matches every provider, `provider/*` every
    model of one. A model that cannot be served, or whose name is no name, is skipped with a
    warning; its fallbacks come next. `aliases` (lower case) stand for `provider/model`.
    """
    skipped: list[tuple[ModelSource, str]] = []
    for source, named in _candidates(settings):
        reference = _resolved(named, aliases or {})
        provider, model = split_model_reference(reference)
        if model is not None and _is_name(reference) and _is_served(reference, served):
            return _plan(provider, model, source, reference, skipped)
        skipped.append((source, reference))
    return _plan(None, None, "runtime", "its own default", skipped)


def split_model_reference(reference: str | None) -> tuple[str | None, str | None]:
    """Provider and model: the first slash divides, unless it is the first or last character."""
    text = (reference or "").strip()
    at = text.find("/")
    if 0 < at < len(text) - 1:
        return text[:at], text[at + 1 :]
    return None, text or None


def _candidates(settings: ModelSettings) -> list[tuple[ModelSource, str]]:
    places: tuple[tuple[ModelSource, ModelSetting], ...] = (
        ("argument", settings.argument),
        ("agent_subagents", settings.agent_subagents),
        ("defaults_subagents", settings.defaults_subagents),
        ("caller", settings.caller),
        ("agent", settings.agent),
        ("defaults", settings.defaults),
        ("built_in", settings.built_in),
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


def _resolved(name: str, aliases: Mapping[str, str]) -> str:
    return name if "/" in name else aliases.get(name.lower(), name)


def is_model_name(text: str) -> bool:
    """Whether a text has the form of a model's name: `provider/model`, `model:tag` and the like.
    Only such texts are kept in events; others are free text."""
    return _MODEL_NAME.fullmatch(text) is not None


def _is_name(reference: str) -> bool:
    return reference.isprintable() and len(reference) <= MODEL_CHARACTERS_MAX


def _is_served(reference: str, served: Collection[str] | None) -> bool:
    if served is None:
        return True
    provider, model = split_model_reference(reference)
    for entry in served:
        offered_by, offered = split_model_reference(entry)
        if offered in (model, "*") and (not offered_by or not provider or offered_by == provider):
            return True
    return False


def _plan(
    provider: str | None,
    model: str | None,
    source: ModelSource,
    reference: str,
    skipped: list[tuple[ModelSource, str]],
) -> ModelPlan:
    taken = single_line(reference, characters_max=MODEL_CHARACTERS_MAX)
    warnings = tuple(
        f'Model "{single_line(name, characters_max=100)}" from {_SOURCE_NAMES[place]} cannot be '
        f"served by the agent's runtime and was skipped; running on {taken}."
        for place, name in skipped
    )
    return ModelPlan(
        provider=provider,
        model=model,
        source=source,
        applied=model is not None and not skipped,
        warnings=warnings,
    )
