"""Tells hooks of the beginnings and ends of runs, from the record, until they have taken it."""

import logging
from uuid import UUID

from application.concurrency.bulkhead import Bulkhead, BulkheadFull
from application.log.texts import ContentsErased
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import RevisionErased
from application.ports.fault_injection import FaultPoint
from application.ports.hooks import HookClient, HookFailure
from application.steps.thread_binding import child_origin, requester_origin
from domain.configuration.problems import ConfigurationError
from domain.delivery.hook_payloads import HookCall, notification_call
from domain.run.commands import ConfirmHook, NoteHookFailure, ParkHook, RunCommand
from domain.run.events import RunAnnounced, RunArchived, RunEnded, RunQueued
from domain.run.facts import HookName, HookState
from domain.run.state import Run
from domain.values.refusals import NotYet
from domain.values.text import utf8_prefix

ERROR_BYTES_MAX = 4_096
_NOTIFIED_EVENTS = (RunQueued, RunEnded, RunAnnounced, RunArchived)
_log = logging.getLogger("spawnlog.hooks")


class HookNotifier:
    """Whoever comes to it tells: no claim of the run is needed. A hook tells a repeat by its key,
    and what becomes of it changes nothing about the run. Each is told in its room; `BulkheadFull`
    is raised when too many are waiting there."""

    def __init__(
        self, work: UnitOfWork, hooks: HookClient, interruption: FaultPoint, rooms: Bulkhead
    ) -> None:
        self._rooms = rooms
        self._work = work
        self._hooks = hooks
        self._interruption = interruption

    def is_triggered_by(self, event: object) -> bool:
        """Whether a hook may have to be told of this event now."""
        hooks = self._work.configurations.current().configuration.spawnlog.hooks
        return isinstance(event, _NOTIFIED_EVENTS) and bool(hooks.configured)

    async def tell(self, run_id: UUID) -> None:
        """Tell what is due of a run. What fails is on record and is tried again later, or not any
        more when it was tried often enough."""
        run = await self._work.run(run_id)
        due = run.effects_at
        try:
            for state in run.hooks:
                if due is not None and state.due_at is not None and state.due_at <= due:
                    run = await self._notify(run, state)
                    if not _is_over(run, state.name):
                        return
        except NotYet as why:
            _log.info("run %s: %s; another server works on it", run_id, why)

    async def _notify(self, run: Run, state: HookState) -> Run:
        try:
            pinned = await self._work.configurations.at(run.config_revision)
        except (RevisionErased, ConfigurationError) as unread:
            _log.warning("run %s: hook %s is not notified: %s", run.run_id, state.name, unread)
            return await self._record(run, ParkHook(hook=state.name))
        call = await self._call(run, state.name)
        try:
            async with self._rooms.of(state.name):
                self._interruption("before", f"hook:{state.name}")
                answer = await self._hooks.ask(pinned, call)
        except HookFailure as threw:
            if threw.has_no_room:
                # Nobody was asked, and nobody outside is to blame: that is no attempt.
                raise BulkheadFull(str(threw)) from None
            limits = pinned.configuration.spawnlog.hooks
            is_last = state.attempts + 1 >= limits.attempts_max
            return await self._failed(run, state, str(threw), limits.retry_seconds_max, is_last)
        self._interruption("after", f"hook:{state.name}")
        return await self._record(run, ConfirmHook(hook=state.name, status_code=answer.status_code))

    async def _failed(
        self, run: Run, state: HookState, text: str, retry_seconds_max: int, is_last: bool
    ) -> Run:
        given_up = "; there is no further attempt" if is_last else ""
        _log.warning("run %s: hook %s: %s%s", run.run_id, state.name, text, given_up)
        attempt = state.attempts + 1
        try:
            text_store = await self._work.text_store(run)
        except ContentsErased:
            # Nothing may be said of the run any more, to nobody.
            return await self._record(run, ParkHook(hook=state.name))
        error = text_store.store("hookError", text)
        command: RunCommand = NoteHookFailure(
            hook=state.name, attempt=attempt, error=error, retry_seconds_max=retry_seconds_max
        )
        if is_last:
            command = ParkHook(hook=state.name, attempt=attempt, error=error)
        appended = await self._work.record(run, (command,), text_store)
        return appended.runs[run.run_id]

    async def _record(self, run: Run, command: RunCommand) -> Run:
        appended = await self._work.record(run, (command,))
        return appended.runs[run.run_id]

    async def _call(self, run: Run, name: HookName) -> HookCall:
        contents = self._work.contents
        if name == "subagentSpawned":
            return notification_call(
                run, name, origin=await requester_origin(run, contents), error=None
            )
        ref = run.stop_reason if run.outcome == "stopped" else None
        ref = ref or run.error
        error = await contents.text(ref) if ref is not None else None
        cut = utf8_prefix(error, ERROR_BYTES_MAX) if error else None
        return notification_call(run, name, origin=await child_origin(run, contents), error=cut)


def _is_over(run: Run, name: HookName) -> bool:
    state = run.hook(name)
    return state is None or state.due_at is None
