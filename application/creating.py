"""The end of a preparation: the child's session, with all that its run will need."""

from collections.abc import Sequence
from dataclasses import replace

from application.answers import accepted, child_told
from application.attaching import receipt_of
from application.direct_delivery import delivers_directly
from application.ingredients import (
    Brought,
    bootstrap_ingredients,
    brought_preamble,
    message_ingredients,
)
from application.planning import Planned
from application.ports.bootstrap_files import BootstrapFiles
from application.ports.event_log import LogUnavailable
from application.preparation import Preparation
from application.prepared_run import PreparedRun
from application.ready_run import Ready
from application.shared_spawns import shared_by
from application.stepping import Stepped
from application.wished_context import context_wish
from application.work import Work
from domain.content import ContentRef
from domain.context_fork import fork_note, fork_warnings
from domain.refusals import ReadAgain
from domain.run.commands import CreateSession
from domain.run.facts import ForkFacts, ScriptReceipt
from domain.run.hooks import HOOK_ORDER
from domain.run.step_commands import TakeStep
from domain.spawn_notes import accepted_note

LANE = "subagent"
ATTEMPTS_MAX = 5


class Creating:
    """Puts together what a child is, records that it exists, and answers who asked for it."""

    def __init__(self, work: Work, bootstrap: BootstrapFiles) -> None:
        self._work = work
        self._bootstrap = bootstrap

    async def compose(
        self, stepped: Stepped, planned: Planned, receipts: Sequence[ScriptReceipt]
    ) -> Ready:
        """What is to be recorded of the child, and what its caller is told then."""
        step, run, fork = stepped.preparation, stepped.preparation.run, _fork_of(stepped)
        wish = await context_wish(self._work, run)
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
        told = child_told(
            run,
            key=stepped.child_session_key,
            note=create.note,
            warnings=create.warnings,
            model_applied=planned.plan.model_applied,
            attachments=await receipt_of(run, self._work.contents),
        )
        return Ready(stepped, create, told)

    async def record(self, ready: Ready) -> PreparedRun:
        """The child exists with this append, and its caller is answered by it.

        Raises `CannotShare` when what the spawn shares has no room any more.
        """
        create, run = ready.create, ready.preparation.run
        for _ in range(ATTEMPTS_MAX):
            shared = await shared_by(self._work, run)
            wanted = replace(create, shared=shared.changes) if shared is not None else create
            try:
                appended = await self._work.record(
                    run,
                    (*ready.before, wanted),
                    ready.preparation.keeper,
                    spawn_answer=accepted(ready.told),
                    above=shared.texts if shared is not None else None,
                )
            except ReadAgain:
                # The first text of the requester's session was kept meanwhile, under its key.
                continue
            return PreparedRun(appended.runs[run.run_id], appended.position)
        raise LogUnavailable("the requester's session changes too fast; ask again in a moment")

    async def _preamble(self, step: Preparation) -> Brought:
        preamble = step.run.preamble
        text = await self._work.contents.text(preamble) if preamble else None
        return brought_preamble(step.run, text, step.pinned.configuration, step.keeper)


def _origin_of(stepped: Stepped) -> ContentRef | None:
    """Where the thread is; the step that was taken last is recorded with the session."""
    for command in stepped.before:
        if isinstance(command, TakeStep) and command.origin is not None:
            return command.origin
    return stepped.preparation.run.delivery_origin


def _fork_of(stepped: Stepped) -> ForkFacts | None:
    """What was taken over; the step that was taken last is recorded with the session."""
    for command in stepped.before:
        if isinstance(command, TakeStep) and command.step == "context_fork":
            return command.fork
    return stepped.preparation.run.fork
