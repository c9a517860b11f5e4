"""The step that binds a thread of the requester's channel to the child."""

from application.concurrency.bulkhead import BulkheadFullError
from application.log.texts import Contents
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration, RevisionErasedError
from application.ports.hooks import HookClient, HookError
from application.steps.step import StepPlace, StepRefusedError, StepResult, UndoError
from domain.configuration.problems import ConfigurationError
from domain.context.thread_binding import (
    Origin,
    binding_failure,
    merge_origins,
    origin_text,
    read_binding_answer,
    read_origin,
    unavailable_thread,
)
from domain.delivery.hook_payloads import spawn_failed_call, spawning_call
from domain.delivery.webhook import receivers
from domain.run.facts import Plan, StepName, StepState, UndoOutcome
from domain.run.state import Run
from domain.values.refusals import Refusal

LIMIT_SECONDS = 61.0
SPARE_SECONDS = 1.0
"""Time for a step beyond the timeout of its hook."""


class ThreadBindingStep:
    """Step that calls the hook `subagentSpawning`. The hook `subagentEnded` undoes it.

    Implements `StepMaker`.
    """

    name: StepName = "thread_binding"
    limit_seconds = LIMIT_SECONDS

    def __init__(self, work: UnitOfWork, hooks: HookClient) -> None:
        self._work = work
        self._hooks = hooks

    async def place(self, run: Run, _: Plan) -> StepPlace | None:
        """Return None if no thread was requested.

        Raises:
            StepRefusedError: If no hook binds threads for this channel.
        """
        if not run.thread:
            return None
        configuration = (await self._work.configurations.at(run.config_revision)).configuration
        origin = await requester_origin(run, self._work.contents)
        channel, account_id = origin.get("channel"), origin.get("accountId")
        policy = configuration.threads_of(
            str(channel) if channel else None, str(account_id) if account_id else None
        )
        hook = configuration.spawnlog.hooks.subagent_spawning
        if hook is None or not policy.binds:
            raise StepRefusedError(unavailable_thread(run.options.mode))
        return StepPlace(limit_seconds=hook.timeout_seconds + SPARE_SECONDS)

    async def make(self, run: Run, _: StepState, *, is_resumed: bool) -> StepResult:
        """Ask the hook, which recognizes a repeated request by its key. Results are then delivered
        to the thread."""
        pinned = await self._work.configurations.at(run.config_revision)
        requester = await requester_origin(run, self._work.contents)
        try:
            answer = await self._hooks.ask(pinned, spawning_call(run, requester))
        except HookError as threw:
            is_nothing = not threw.was_asked and not is_resumed
            raise StepRefusedError(binding_failure(str(threw)), is_nothing=is_nothing) from None
        thread = read_binding_answer(answer.body, run.options.mode)
        if isinstance(thread, Refusal):
            # An earlier request may have bound a thread, whatever the hook answers to the repeat.
            raise StepRefusedError(thread, is_nothing=not is_resumed)
        origin = origin_text(merge_origins(thread.origin, requester))
        return StepResult(outcome="bound", can_undo=True, origin=origin)

    async def undo(self, run: Run, state: StepState) -> UndoOutcome:
        """Report the failed spawn, if the hook `subagentEnded` is configured."""
        if state.made is False:
            return "nothing_there"
        pinned = await pinned_for_undo(self._work, run)
        if pinned.configuration.spawnlog.hooks.subagent_ended is None:
            return "no_hook"
        try:
            await self._hooks.ask(
                pinned, spawn_failed_call(run, await child_origin(run, self._work.contents))
            )
        except HookError as threw:
            if threw.is_busy:
                raise BulkheadFullError(str(threw)) from None
            raise UndoError(f"subagentEnded: {threw}") from None
        return "undone"


async def requester_origin(run: Run, contents: Contents) -> Origin:
    """Return the addresses that the requester gave; empty if it gave none."""
    ref = run.requester.origin
    return read_origin(await contents.text(ref)) if ref is not None else {}


async def child_origin(run: Run, contents: Contents) -> Origin:
    """Return the addresses for the child's results: its thread, else its requester's."""
    if run.delivery_origin is None:
        return await requester_origin(run, contents)
    return read_origin(await contents.text(run.delivery_origin))


async def inbox_origin(run: Run, contents: Contents) -> Origin:
    """Return the addresses to which a run's announcement goes from the inbox; empty if there are
    none."""
    ref = run.inbox_target
    return read_origin(await contents.text(ref)) if ref is not None else {}


async def webhooks_of(work: UnitOfWork, run: Run, origin: str | None = None) -> tuple[str, ...]:
    """Return the webhooks, in the configuration in force, that receive the run's announcement.

    `origin` is the address that a hook chose, if any.
    """
    announce = work.configurations.current().configuration.spawnlog.announce
    if not announce.webhooks:
        return ()
    there = read_origin(origin) if origin is not None else await inbox_origin(run, work.contents)
    return receivers(announce, run.requester.agent_id, there)


async def pinned_for_undo(work: UnitOfWork, run: Run) -> PinnedConfiguration:
    """Return the revision of the run.

    Raises:
        UndoError: If it cannot be read any more.
    """
    try:
        return await work.configurations.at(run.config_revision)
    except (RevisionErasedError, ConfigurationError) as unread:
        raise UndoError(str(unread)) from None
