"""What-if for prompts: compose the prompt again from recorded ingredients and compare it."""

from collections.abc import Mapping
from typing import Literal
from uuid import UUID, uuid5

from domain.context.preamble import truncated_preamble
from domain.prompt.child_prompt import ComposedPrompt
from domain.prompt.pieces import PromptText
from domain.prompt.run_prompt import SCRIPT_SOURCE, address_refs, compose_run_prompt
from domain.prompt.shared_context import SharedValue
from domain.run.facts import Ingredient
from domain.run.state import Run
from domain.values.record import ContentRef
from domain.what_if.decide_again import DecidedAgain
from domain.what_if.record import RecordedDecision
from domain.what_if.verdict import DecisionDifference, Verdict, not_replayable

_ORDER = {"preamble": 0, "bootstrap": 1, "prepend": 2, "task": 3, "append": 4}
_TEXTS: tuple[PromptText, PromptText] = ("systemPrompt", "message")
_SPACE = UUID(int=0)
SESSION_SOURCE = "session"
"""Part of the system prompt with the child's identity and the channel of its requester."""


def prompt_texts_needed(record: RecordedDecision, run: Run) -> list[ContentRef]:
    """Return references to the texts of the prompt, and to those it was composed from."""
    assert record.created is not None
    assert record.started is not None
    refs = [ingredient.content for ingredient in record.created.ingredients]
    refs += [shared.value for shared in record.started.shared_context if shared.value is not None]
    refs += address_refs(run)
    refs += [ref for ref in (run.preamble,) if ref is not None]
    return [*refs, record.started.system_prompt, record.started.message]


def compare_prompts(
    record: RecordedDecision,
    run: Run,
    opened: Run,
    decided: DecidedAgain,
    texts: Mapping[UUID, str],
) -> Verdict | None:
    """Compare the hypothetical prompt with the recorded one.

    Args:
        record: The decision of the run.
        run: The run as of the time when its prompt was composed.
        opened: The first run of its session.
        decided: The result of deciding again, with a plan.
        texts: Texts by content id; erased ones are absent.

    Returns:
        A verdict if the prompt would differ or cannot be composed; None if it would be the same.
    """
    assert record.started is not None
    assert record.created is not None
    assert decided.planned is not None
    # Addresses only name the requester's channel, and may have been erased before the run started.
    addresses = address_refs(run)
    needed = {ref.id for ref in prompt_texts_needed(record, run)} - {ref.id for ref in addresses}
    if not needed <= texts.keys():
        return not_replayable("the prompt: texts that it was made from, or its own, were erased")
    then = (texts[record.started.system_prompt.id], texts[record.started.message.id])
    composed = _composed(record, run, opened, decided, texts)
    is_address_erased = any(ref.id not in texts for ref in addresses)
    is_unknown = False
    pairs = zip(_TEXTS, then, (composed.system_prompt, composed.message), strict=True)
    for name, before, text in pairs:
        if text == before:
            continue
        at = _first_difference(text, before)
        if is_address_erased and name == "systemPrompt" and at >= _start_of_session(composed):
            is_unknown = True
            continue
        difference = DecisionDifference(
            field=f"/prompt/{name}/{_source_at(composed, name, at)}",
            recorded=len(before.encode()),
            decided=len(text.encode()),
        )
        return Verdict(
            verdict="different-context", difference=difference, assumed=decided.verdict.assumed
        )
    if is_unknown:
        return not_replayable("the prompt: the addresses that name its channel were erased")
    return None


def _composed(
    record: RecordedDecision,
    run: Run,
    opened: Run,
    decided: DecidedAgain,
    texts: Mapping[UUID, str],
) -> ComposedPrompt:
    planned = decided.planned
    assert record.started is not None
    assert planned is not None
    known = dict(texts)
    pieces = _message_and_preamble(record, run, decided, known)
    shared = [
        SharedValue(
            shared.key,
            shared.kind,
            texts.get(shared.value.id) if shared.value is not None else None,
        )
        for shared in record.started.shared_context
    ]
    return compose_run_prompt(
        run.changed({"plan": planned.plan}),
        opened,
        pieces,
        planned.agent.defaults.max_spawn_depth,
        shared,
        known,
    )


def _message_and_preamble(
    record: RecordedDecision, run: Run, decided: DecidedAgain, known: dict[UUID, str]
) -> list[Ingredient]:
    """Return the recorded ingredients with today's script output and preamble.

    Adds new texts to `known`.
    """
    assert record.created is not None
    assert decided.planned is not None
    assert decided.scripts is not None
    recorded = record.created.ingredients
    if run.continues is not None:
        return list(recorded)
    found = [ingredient for ingredient in recorded if ingredient.position in ("bootstrap", "task")]
    if run.preamble is not None and any(
        ingredient.position == "preamble" for ingredient in recorded
    ):
        limit = decided.planned.agent.subagents.context_preamble_max_chars
        ref = run.preamble.changed({"id": uuid5(_SPACE, "preamble")})
        known[ref.id] = truncated_preamble(known[run.preamble.id], limit)
        found.append(Ingredient(source="preamble", position="preamble", content=ref))
    for contribution in decided.scripts.contributions:
        ref = contribution.injected or run.task.changed(
            {"id": uuid5(_SPACE, contribution.script_id)}
        )
        if contribution.injected is None:
            known[ref.id] = contribution.text or ""
        source = f"{SCRIPT_SOURCE}{contribution.script_id}"
        place: Literal["prepend", "append"] = (
            "prepend" if contribution.position == "prepend" else "append"
        )
        found.append(Ingredient(source=source, position=place, content=ref))
    return sorted(found, key=lambda ingredient: _ORDER[ingredient.position])


def _first_difference(text: str, before: str) -> int:
    """Return the offset of the first byte that differs."""
    now, then = text.encode(), before.encode()
    shorter = min(len(now), len(then))
    return next((index for index in range(shorter) if now[index] != then[index]), shorter)


def _start_of_session(prompt: ComposedPrompt) -> int:
    """Return the byte offset of the part that names the channel."""
    return next(part.start for part in prompt.parts if part.source == SESSION_SOURCE)


def _source_at(prompt: ComposedPrompt, name: PromptText, at: int) -> str:
    """Return the source of the part that contains this byte."""
    parts = (part for part in prompt.parts if part.of == name)
    return next((part.source for part in parts if part.start <= at < part.end), "end")
