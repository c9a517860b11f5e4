"""The last step of a preparation: create the children's sessions with everything that their runs
need."""

from collections.abc import Sequence

from application.context.prompt_inputs import (
    bootstrap_ingredients,
    message_ingredients,
    preamble_ingredients,
)
from application.context.shared_context import read_shared_spawn
from application.log.answers import AcceptedRun, accepted_response
from application.log.event_log import Appended, Decision, StoredAnswer
from application.log.unit_of_work import (
    RunCommands,
    UnitOfWork,
    decide_ahead,
    with_fresh_reads,
)
from application.ports.files import BootstrapFiles
from application.spawn.attachments import read_attachments_receipt
from application.spawn.direct_delivery import delivers_directly
from application.spawn.outcomes import Ready
from application.steps.context_fork import read_context_request
from application.steps.preparation import Preparation
from domain.context.fork import accepted_note, fork_note, fork_warnings
from domain.plan.child import PlannedChild
from domain.run.commands import CreateSession, TakeStep
from domain.run.facts import HOOK_ORDER, ForkFacts, ScriptReceipt
from domain.spawn.batch import Speculation
from domain.values.record import ContentRef
from domain.values.refusals import Rejected
from domain.values.shared_values import SharedChange


async def build_child_creation(
    work: UnitOfWork,
    files: BootstrapFiles,
    preparation: Preparation,
    session_key: str,
    planned: PlannedChild,
    receipts: Sequence[ScriptReceipt],
) -> Ready:
    """Return the command that creates the child, and the response to its caller.

    `preparation` must include all steps.
    """
    create = await _creation_command(work, files, preparation, planned, receipts)
    run = preparation.run
    response = AcceptedRun.from_source(
        run,
        child_session_key=session_key,
        mode=run.options.mode,
        note=create.note,
        warnings=create.warnings,
        model_applied=planned.plan.model_applied,
        attachments=await read_attachments_receipt(run, work.contents),
    )
    return Ready(preparation, create, response)


async def _creation_command(
    work: UnitOfWork,
    files: BootstrapFiles,
    preparation: Preparation,
    planned: PlannedChild,
    receipts: Sequence[ScriptReceipt],
) -> CreateSession:
    run, text_store, fork = preparation.run, preparation.text_store, _fork_of(preparation)
    request = await read_context_request(work, run)
    agent, hooks = planned.agent, preparation.pinned.configuration.spawnlog.hooks.configured
    bootstrap = await bootstrap_ingredients(
        run, planned.plan.workspace_dir, agent, files, text_store
    )
    preamble = preamble_ingredients(run.preamble, preparation.preamble, agent, text_store)
    return CreateSession(
        epoch=run.epoch,
        depth=run.depth,
        max_depth=agent.defaults.max_spawn_depth,
        role=planned.capabilities.role,
        control_scope=planned.capabilities.control_scope,
        plan=planned.plan,
        ingredients=(
            *preamble.ingredients,
            *bootstrap.ingredients,
            *message_ingredients(run, receipts),
        ),
        warnings=(
            *planned.warnings,
            *fork_warnings(request, fork, same_agent=run.is_of_same_agent),
            *preamble.warnings,
            *bootstrap.warnings,
        ),
        note=accepted_note(run.options, run.requester, fork_note(fork)),
        lane=planned.plan.lane,
        facts=planned.facts,
        hooks=tuple(hook for hook in HOOK_ORDER if hook in hooks),
        direct_delivery=await delivers_directly(
            work, run, agent, _origin_of(preparation), text_store.contents
        ),
        preamble=preamble.sizes,
    )


async def create_children(work: UnitOfWork, ready: Sequence[Ready]) -> Appended[None]:
    """Create all children of a spawn in one append, which also answers the caller.

    Raises:
        CannotShare: If the spawn's shared values exceed the limits.
        DependencyFailed: If a run that it depends on has failed.
    """
    first = ready[0].preparation.run

    async def record(_: Rejected | None) -> Appended[None]:
        # All runs share the same values, which are stored once in their family.
        shared = await read_shared_spawn(work, first)
        changes = shared.changes if shared is not None else ()
        return await work.record_all(
            [_creation(child, changes if child is ready[0] else ()) for child in ready],
            spawn_answer=_answer(ready),
            above=shared.texts if shared is not None else None,
        )

    # Another process may store the first text of the requester's session under its key meanwhile.
    return await with_fresh_reads(
        record, "the requester's session changes too fast; retry in a moment"
    )


def decide_children(admitted: Speculation, ready: Sequence[Ready]) -> Decision[None]:
    """Decide the creation of a spawn's children as it will be admitted.

    They share nothing and have no dependencies, so the result follows from their runs alone.
    """
    return decide_ahead(admitted, [_creation(child, ()) for child in ready], _answer(ready))


def _answer(ready: Sequence[Ready]) -> StoredAnswer:
    batch = ready[0].preparation.run.batch
    batch_id = batch.batch_id if batch is not None else None
    return accepted_response([child.response for child in ready], batch_id)


def _creation(ready: Ready, shared: tuple[SharedChange, ...]) -> RunCommands:
    at = ready.preparation
    return RunCommands(
        at.run, (*at.before, ready.create.changed({"shared": shared})), at.text_store
    )


def _origin_of(preparation: Preparation) -> ContentRef | None:
    """Return the reference to the thread's addresses. The last step is recorded with the
    session."""
    for command in preparation.before:
        if isinstance(command, TakeStep) and command.origin is not None:
            return command.origin
    return preparation.run.delivery_origin


def _fork_of(preparation: Preparation) -> ForkFacts | None:
    """Return the facts of the fork. The last step is recorded with the session."""
    for command in preparation.before:
        if isinstance(command, TakeStep) and command.step == "context_fork":
            return command.fork
    return preparation.run.fork
