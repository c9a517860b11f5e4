"""The prompt of a decision, composed again from recorded ingredients, and where it differs."""

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
"""The part of the system prompt that says who the child is, and which channel it was asked from."""


def prompt_texts_needed(record: RecordedDecision, run: Run) -> list[ContentRef]:
    """The texts that the prompt was made from, and those that were made."""
    assert record.created is not None
    assert record.started is not None
    refs = [one.content for one in record.created.ingredients]
    refs += [one.value for one in record.started.shared_context if one.value is not None]
    refs += address_refs(run)
    refs += [one for one in (run.preamble,) if one is not None]
    return [*refs, record.started.system_prompt, record.started.message]


def compare_prompts(
    record: RecordedDecision,
    run: Run,
    opened: Run,
    decided: DecidedAgain,
    texts: Mapping[UUID, str],
) -> Verdict | None:
    """The verdict when the prompt would be another one, or cannot be composed; None when it would
    be the same. `run` is the run as it was when its prompt was composed."""
    assert record.started is not None
    assert record.created is not None
    assert decided.planned is not None
    # Addresses only say which channel the child was asked from. They may have been erased before
    # it started.
    addresses = address_refs(run)
    needed = {one.id for one in prompt_texts_needed(record, run)} - {one.id for one in addresses}
    if not needed <= texts.keys():
        return not_replayable("the prompt: texts that it was made from, or its own, were erased")
    then = (texts[record.started.system_prompt.id], texts[record.started.message.id])
    composed = _composed(record, run, opened, decided, texts)
    is_address_erased = any(one.id not in texts for one in addresses)
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
        SharedValue(one.key, one.kind, texts.get(one.value.id) if one.value is not None else None)
        for one in record.started.shared_context
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
    """Those of then, with what scripts and preamble come to now; new texts are added to `known`."""
    assert record.created is not None
    assert decided.planned is not None
    assert decided.scripts is not None
    recorded = record.created.ingredients
    if run.continues is not None:
        return list(recorded)
    found = [one for one in recorded if one.position in ("bootstrap", "task")]
    if run.preamble is not None and any(one.position == "preamble" for one in recorded):
        limit = decided.planned.agent.subagents.context_preamble_max_chars
        ref = run.preamble.changed({"id": uuid5(_SPACE, "preamble")})
        known[ref.id] = truncated_preamble(known[run.preamble.id], limit)
        found.append(Ingredient(source="preamble", position="preamble", content=ref))
    for one in decided.scripts.contributions:
        ref = one.injected or run.task.changed({"id": uuid5(_SPACE, one.script_id)})
        if one.injected is None:
            known[ref.id] = one.text or ""
        source = f"{SCRIPT_SOURCE}{one.script_id}"
        place: Literal["prepend", "append"] = "prepend" if one.position == "prepend" else "append"
        found.append(Ingredient(source=source, position=place, content=ref))
    return sorted(found, key=lambda one: _ORDER[one.position])


def _first_difference(text: str, before: str) -> int:
    """The first byte in which two texts differ."""
    now, then = text.encode(), before.encode()
    shorter = min(len(now), len(then))
    return next((index for index in range(shorter) if now[index] != then[index]), shorter)


def _start_of_session(prompt: ComposedPrompt) -> int:
    """Where the part begins that names the channel."""
    return next(one.start for one in prompt.parts if one.source == SESSION_SOURCE)


def _source_at(prompt: ComposedPrompt, name: PromptText, at: int) -> str:
    """The part in which this byte stands."""
    parts = (one for one in prompt.parts if one.of == name)
    return next((one.source for one in parts if one.start <= at < one.end), "end")
