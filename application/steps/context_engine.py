"""The step in which an external context engine prepares for the child."""

import os.path

from application.concurrency.bulkhead import BulkheadFullError
from application.log.unit_of_work import UnitOfWork
from application.ports.hooks import HookClient, HookError
from application.steps.step import StepPlace, StepRefusedError, StepResult, UndoError
from application.steps.thread_binding import SPARE_SECONDS, pinned_for_undo
from domain.configuration.configuration import Configuration
from domain.delivery.hook_payloads import (
    Conversations,
    engine_failure,
    preparation_call,
    read_engine_answer,
    rollback_call,
)
from domain.plan.timeout import run_timeout_seconds
from domain.run.facts import Plan, StepName, StepState, UndoOutcome
from domain.run.state import Run
from domain.values.refusals import Refusal

LIMIT_SECONDS = 61.0
PARENT_RUNS_MAX = 2
_GONE = frozenset({404, 410})


class ContextEngineStep:
    """Step that calls the hook `prepareSubagentSpawn`. A rollback request to the same address
    undoes it.

    Implements `StepMaker`.
    """

    name: StepName = "context_engine"
    limit_seconds = LIMIT_SECONDS

    def __init__(self, work: UnitOfWork, hooks: HookClient) -> None:
        self._work = work
        self._hooks = hooks

    async def place(self, run: Run, _: Plan) -> StepPlace | None:
        """Return None if no engine is configured."""
        pinned = await self._work.configurations.at(run.config_revision)
        hook = pinned.configuration.spawnlog.hooks.prepare_subagent_spawn
        return StepPlace(limit_seconds=hook.timeout_seconds + SPARE_SECONDS) if hook else None

    async def make(self, run: Run, _: StepState, *, is_resumed: bool) -> StepResult:
        """Ask the engine. It recognizes a repeated request by its key."""
        pinned = await self._work.configurations.at(run.config_revision)
        call = preparation_call(run, await self._conversations(run, pinned.configuration))
        try:
            answer = await self._hooks.ask(pinned, call)
        except HookError as threw:
            is_nothing = not threw.was_asked and not is_resumed
            raise StepRefusedError(engine_failure(str(threw)), is_nothing=is_nothing) from None
        preparation = read_engine_answer(answer.body)
        if isinstance(preparation, Refusal):
            raise StepRefusedError(preparation)
        return StepResult(
            outcome="prepared", can_undo=preparation.can_undo, token=preparation.token
        )

    async def undo(self, run: Run, state: StepState) -> UndoOutcome:
        """Request a rollback if the engine wants one, or if it is unknown whether it prepared
        anything."""
        if state.made is False or (state.made and not state.can_undo):
            return "nothing_there"
        pinned = await pinned_for_undo(self._work, run)
        if pinned.configuration.spawnlog.hooks.prepare_subagent_spawn is None:
            return "no_hook"
        token = await self._work.contents.text(state.token) if state.token else None
        conversations = await self._conversations(run, pinned.configuration)
        try:
            await self._hooks.ask(pinned, rollback_call(run, conversations, token))
        except HookError as threw:
            if threw.status_code in _GONE:
                return "nothing_there"
            if threw.is_busy:
                raise BulkheadFullError(str(threw)) from None
            raise UndoError(f"rollback: {threw}") from None
        return "undone"

    async def _conversations(self, run: Run, configuration: Configuration) -> Conversations:
        parent = await self._work.registry.session(run.requester.session_key)
        return Conversations(
            parent_session_id=str(parent.session_id) if parent is not None else None,
            parent_session_file=await self._parent_file(run),
            child_session_file=_fork_file(run),
            ttl_seconds=run_timeout_seconds(
                run.options.run_timeout_seconds,
                configuration.subagent_defaults.run_timeout_seconds,
            ),
        )

    async def _parent_file(self, run: Run) -> str | None:
        """Return the transcript file of the newest ended run of the requester's session.

        An active run has no file yet.
        """
        key = run.requester.session_key
        if run.requester.run_id is None:
            return None
        runs = await self._work.registry.runs_of_session(key, limit=PARENT_RUNS_MAX)
        return next((run.transcript_path for run in runs if run.transcript_path is not None), None)


def _fork_file(run: Run) -> str | None:
    """Return the fork snapshot; None if the child is not forked."""
    step = run.step("context_fork")
    if run.context_mode != "fork" or step is None or step.root is None or step.relative is None:
        return None
    return os.path.join(step.root, step.relative)
