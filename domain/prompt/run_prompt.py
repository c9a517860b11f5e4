"""Prompt of a run, composed from its record and the texts beside the log."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from uuid import UUID

from domain.context.bootstrap_files import BootstrapFile
from domain.context.fork import forked_entries
from domain.context.thread_binding import read_origin
from domain.plan.tools import CONTROL_TOOL, SPAWN_TOOL, YIELD_TOOL, ToolPolicy
from domain.prompt.child_prompt import (
    FRAMES_MAX,
    AttachmentsNote,
    ChildFacts,
    ComposedPrompt,
    PromptSections,
    compose_continuation,
    compose_prompt,
)
from domain.prompt.pieces import Contribution, task_pieces
from domain.prompt.role import SpawnTools
from domain.prompt.shared_context import SharedValue, shared_pieces
from domain.run.facts import Ingredient, StepState
from domain.run.state import Run
from domain.values.record import ContentRef

BOOTSTRAP_SOURCE = "bootstrap:"
SCRIPT_SOURCE = "script:"


def build_child_facts(run: Run, max_depth: int, texts: Mapping[UUID, str]) -> ChildFacts:
    """Return the identity of the run's child.

    Args:
        run: A run with a plan.
        max_depth: Maximum spawn depth.
        texts: Texts by id, including those of `address_refs`.
    """
    assert run.child_session_key is not None
    assert run.plan is not None
    return ChildFacts(
        depth=run.depth,
        max_spawn_depth=max_depth,
        child_session_key=run.child_session_key,
        label=run.label,
        requester_session_key=run.requester.session_key,
        requester_channel=_channel(run, texts),
        is_persistent=run.options.mode == "session",
        tools=_spawn_tools(ToolPolicy(run.plan.tools_allow, run.plan.tools_deny)),
    )


@lru_cache(maxsize=FRAMES_MAX)
def _spawn_tools(policy: ToolPolicy) -> SpawnTools:
    return SpawnTools(
        spawn=policy.permits(SPAWN_TOOL),
        control=policy.permits(CONTROL_TOOL),
        yield_turn=policy.permits(YIELD_TOOL),
    )


def address_refs(run: Run) -> tuple[ContentRef, ...]:
    """Return references to the stored addresses: of the run's thread, then of its requester."""
    return tuple(ref for ref in (run.delivery_origin, run.requester.origin) if ref is not None)


def _channel(run: Run, texts: Mapping[UUID, str]) -> str | None:
    """Return the channel of the bound thread, else the requester's."""
    for ref in address_refs(run):
        channel = read_origin(texts.get(ref.id)).get("channel")
        if channel is not None:
            return str(channel)
    return None


def attachments_step(run: Run) -> StepState | None:
    """Return the step that wrote attachments, or None if there are none in the workspace."""
    step = run.step("attachments")
    if step is None or step.phase != "taken" or run.effect("undo", "attachments") is not None:
        return None
    return step if step.manifest else None


def attachments_note(run: Run) -> AttachmentsNote | None:
    """Return the prompt's note about attachments, or None if there are none in the workspace."""
    step, attachments = attachments_step(run), run.attachments
    if step is None or attachments is None:
        return None
    return AttachmentsNote(
        count=step.file_count or 0,
        total_bytes=step.total_bytes or 0,
        relative_dir=step.relative or "",
        mount_path_hint=attachments.mount_path_hint,
    )


def compose_run_prompt(
    run: Run,
    opened: Run,
    ingredients: Sequence[Ingredient],
    max_depth: int,
    shared: Sequence[SharedValue],
    texts: Mapping[UUID, str],
) -> ComposedPrompt:
    """Compose the system prompt and the message of a run.

    Args:
        run: The run.
        opened: First run of the session.
        ingredients: Recorded parts of the prompt, in order.
        max_depth: Maximum spawn depth.
        shared: Values of the shared context.
        texts: Texts by id, of the ingredients and of `address_refs`.
    """
    pieces: dict[str, list[Contribution]] = {"prepend": [], "append": []}
    bootstrap: list[BootstrapFile] = []
    task = preamble = ""
    for ingredient in ingredients:
        text = texts.get(ingredient.content.id, "")
        match ingredient.position:
            case "task":
                task = text
            case "preamble":
                preamble = text
            case "bootstrap":
                bootstrap.append(
                    BootstrapFile(ingredient.source.removeprefix(BOOTSTRAP_SOURCE), text)
                )
            case "prepend" | "append":
                source = ingredient.source.removeprefix(SCRIPT_SOURCE)
                pieces[ingredient.position].append(Contribution(source, text))
    child = build_child_facts(run, max_depth, texts)
    surroundings = PromptSections(
        preamble=preamble,
        fork_entries=forked_entries(opened.fork),
        is_fork_of_earlier_run=opened.takes_transcript_over,
        bootstrap=tuple(bootstrap),
        attachments=attachments_note(opened),
        shared_context=shared_pieces(shared, run.run_id),
    )
    if run.continues is not None:
        return compose_continuation(child, task, surroundings)
    message_pieces = task_pieces(task, prepend=pieces["prepend"], append=pieces["append"])
    return compose_prompt(child, message_pieces, surroundings)
