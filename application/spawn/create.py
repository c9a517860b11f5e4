"""The end of a preparation: the child's session, with all that its run will need."""

from collections.abc import Sequence
from dataclasses import replace

from application.context.ingredients import (
    BroughtIngredients,
    bootstrap_ingredients,
    message_ingredients,
    preamble_ingredients,
)
from application.context.shared_context import read_shared_spawn
from application.log.answers import accepted_response, child_body
from application.log.event_log import LogUnavailable
from application.log.unit_of_work import UnitOfWork
from application.ports.files import BootstrapFiles
from application.spawn.attachments import read_attachments_receipt
from application.spawn.direct_delivery import delivers_directly
from application.spawn.outcomes import PreparedRun, Ready
from application.spawn.plan import PlannedChild
from application.steps.context_fork import read_context_request
from application.steps.preparation import Preparation
from application.steps.run_steps import StepsTaken
from domain.context.fork import accepted_note, fork_note, fork_warnings
from domain.run.commands import CreateSession, TakeStep
from domain.run.facts import HOOK_ORDER, ForkFacts, ScriptReceipt
from domain.values.record import ContentRef
from domain.values.refusals import ReadAgain

LANE = "subagent"
ATTEMPTS_MAX = 5


class ChildCreation:
    """Puts together what a child is, records that it exists, and answers who asked for it."""

    def __init__(self, work: UnitOfWork, bootstrap: BootstrapFiles) -> None:
        self._work = work
        self._bootstrap = bootstrap

    async def compose(
        self, stepped: StepsTaken, planned: PlannedChild, receipts: Sequence[ScriptReceipt]
    ) -> Ready:
        """What is to be recorded of the child, and what its caller is told then."""
        step, run, fork = stepped.preparation, stepped.preparation.run, _fork_of(stepped)
        wish = await read_context_request(self._work, run)
        configuration = step.pinned.configuration
        brought = await bootstrap_ingredients(
            run, planned.plan.workspace_dir, configuration, self._bootstrap, step.keeper
        )
        preamble = await self._preamble(step)
        create = CreateSession(
            epoch=run.epoch,
            depth=run.depth,
            max_depth=configuration.subagent_defaults.max_spawn_depth,
            role=planned.capabilities.role,
            control_scope=planned.capabilities.control_scope,
            plan=planned.plan,
            ingredients=(
                *preamble.ingredients,
                *brought.ingredients,
                *message_ingredients(run, receipts),
            ),
            warnings=(
                *planned.warnings,
                *fork_warnings(wish, fork, same_agent=run.is_of_same_agent),
                *preamble.warnings,
                *brought.warnings,
            ),
            note=accepted_note(run.options.mode, run.requester.session_key, fork_note(fork)),
            lane=LANE,
            facts=planned.facts,
            hooks=tuple(
                one for one in HOOK_ORDER if one in configuration.spawnlog.hooks.configured
            ),
            direct_delivery=await delivers_directly(
                self._work, run, configuration, _origin_of(stepped), step.keeper.kept
            ),
            preamble=preamble.sizes,
        )
        told = child_body(
            run,
            key=stepped.child_session_key,
            note=create.note,
            warnings=create.warnings,
            model_applied=planned.plan.model_applied,
            attachments=await read_attachments_receipt(run, self._work.contents),
        )
        return Ready(stepped, create, told)

    async def record(self, ready: Ready) -> PreparedRun:
        """The child exists with this append, and its caller is answered by it.

        Raises `CannotShare` when what the spawn shares has no room any more.
        """
        create, run = ready.create, ready.preparation.run
        for _ in range(ATTEMPTS_MAX):
            shared = await read_shared_spawn(self._work, run)
            wanted = replace(create, shared=shared.changes) if shared is not None else create
            try:
                appended = await self._work.record(
                    run,
                    (*ready.before, wanted),
                    ready.preparation.keeper,
                    spawn_answer=accepted_response(ready.told),
                    above=shared.texts if shared is not None else None,
                )
            except ReadAgain:
                # The first text of the requester's session was kept meanwhile, under its key.
                continue
            return PreparedRun(appended.runs[run.run_id], appended.position)
        raise LogUnavailable("the requester's session changes too fast; ask again in a moment")

    async def _preamble(self, step: Preparation) -> BroughtIngredients:
        preamble = step.run.preamble
        text = await self._work.contents.text(preamble) if preamble else None
        return preamble_ingredients(step.run, text, step.pinned.configuration, step.keeper)


def _origin_of(stepped: StepsTaken) -> ContentRef | None:
    """Where the thread is; the step that was taken last is recorded with the session."""
    for command in stepped.before:
        if isinstance(command, TakeStep) and command.origin is not None:
            return command.origin
    return stepped.preparation.run.delivery_origin


def _fork_of(stepped: StepsTaken) -> ForkFacts | None:
    """What was taken over; the step that was taken last is recorded with the session."""
    for command in stepped.before:
        if isinstance(command, TakeStep) and command.step == "context_fork":
            return command.fork
    return stepped.preparation.run.fork
