"""Stops runs with all their descendants."""

import logging
from dataclasses import dataclass, replace
from uuid import UUID

from application.context.prompt_inputs import refusal_announcement
from application.log.answers import (
    SessionStoppedAnswer,
    SpawnRefusal,
    StoppedAnswer,
    refusal_response,
)
from application.log.envelope import Actor, Provenance
from application.log.event_log import Decision, Reservation, StoredAnswer
from application.log.texts import TextStore
from application.log.unit_of_work import (
    RunCommands,
    UnitOfWork,
    provenance_of,
    with_fresh_reads,
)
from application.session.waiting_messages import waiting_message
from application.spawn.prepare import SpawnPreparer
from application.spawn.refuse import sibling_refusals
from application.steps.thread_binding import webhooks_of
from domain.run.commands import DropMessage, ScheduleArchive, StopRun
from domain.run.lifecycle import OVER, PREPARING
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.batch import batch_members, require_prepared
from domain.values import rules
from domain.values.refusals import ReadAgain, Rejected

LOOKS_MAX = 200
_log = logging.getLogger("spawnlog.stopping")


@dataclass(frozen=True, slots=True)
class StopRequest:
    """The requester and the reason of a stop.

    `is_of_session` is True if the requester of the run is stopped too, so it needs no announcement.
    """

    actor: Actor
    reason: str | None
    is_of_session: bool = False


class StopService:
    """Service that stops runs and sessions for callers."""

    def __init__(self, work: UnitOfWork, preparing: SpawnPreparer) -> None:
        self._work = work
        self._preparing = preparing

    async def stop(
        self, run: Run, actor: Actor, reason: str | None, reservation: Reservation | None = None
    ) -> StoredAnswer:
        """Stop a run and its descendants. The run is first, so that it cannot spawn more.

        If a process holds the run, its end is recorded once that process has killed the child. A
        run that is over stays as it is. If the run was replaced, its replacement is stopped.
        """
        await self._work.require_new(provenance_of(run, actor), reservation)
        if run.version == 0:
            return await self._drop(run, actor, reservation)
        was_over = not (_is_to_be_stopped(run) or run.is_replaced)
        stopped = StoppedAnswer(run_id=run.run_id, was_over=was_over)
        answer = StoredAnswer.of("stopping", stopped)
        stop = StopRequest(actor, reason)
        run = await self._stop_one(run, stop)
        while run.is_replaced:
            assert run.continued_by is not None
            run = await self._stop_one(await self._work.run(run.continued_by), stop)
        # Only the last run of a session can have active descendants.
        is_last = run.continued_by is None and run.stage != "refused"
        if run.child_session_key is not None and is_last:
            await self._stop_below(run.child_session_key, stop)
        await self._store_response(provenance_of(run, actor), reservation, answer)
        return answer

    async def _drop(self, run: Run, actor: Actor, reservation: Reservation | None) -> StoredAnswer:
        """Drop a waiting message. If it became a run meanwhile, stop that run."""

        async def drop(_: Rejected | None) -> Run:
            now = await waiting_message(self._work, run.run_id)
            if now is None:
                return await self._work.run(run.run_id)
            if now.stage in OVER or now.continues is None:
                return now
            last = await self._work.run(now.continues)
            appended = await self._work.record(last, (DropMessage(run_id=run.run_id),), actor=actor)
            queue = appended.runs[last.run_id].queue or ()
            if appended.runs[last.run_id].continued_by or any(
                message.run_id == run.run_id for message in queue
            ):
                raise ReadAgain("the session changed meanwhile; retry")
            return now

        found = await with_fresh_reads(
            drop, "the session changes too fast to drop a message; retry in a moment"
        )
        if found.version > 0:
            return await self.stop(found, actor, None, reservation)
        was_over = found.stage in OVER
        stopped = StoppedAnswer(run_id=run.run_id, was_over=was_over)
        answer = StoredAnswer.of("stopping", stopped)
        await self._store_response(provenance_of(run, actor), reservation, answer)
        return answer

    async def stop_session(
        self,
        session: Session,
        actor: Actor,
        reason: str | None,
        reservation: Reservation | None = None,
    ) -> StoredAnswer:
        """Stop a session's own run, if it has one, and all descendants.

        A session that stays open after its runs (mode `session`) is closed first, so that it
        accepts no further message. It is archived once its last run is announced.
        """
        provenance = Provenance(
            actor=actor,
            correlation=session.root_session_key,
            config_revision=self._work.configurations.current().revision,
        )
        await self._work.require_new(provenance, reservation)
        stop = StopRequest(actor, reason)
        run = await self._work.run(session.run_id) if session.run_id is not None else None
        closes = run is not None and run.options.mode == "session"
        if run is not None and closes:
            run = await self._close(run, actor, stop)
        was_over = run is None or run.stage in OVER
        if run is not None:
            after = await self._stop_one(run, stop)
            while after.continued_by is not None:
                # The run ended before it could be stopped, and a message continued the session.
                run = await self._work.run(after.continued_by)
                was_over = run.stage in OVER
                after = await self._stop_one(run, stop)
        stopped = SessionStoppedAnswer.from_source(
            session,
            run_id=run.run_id if run is not None else None,
            was_over=was_over,
            closed=closes or session.stage == "closed",
        )
        answer = StoredAnswer.of("stopping", stopped)
        await self._stop_below(session.session_key, replace(stop, is_of_session=True))
        await self._store_response(provenance, reservation, answer)
        return answer

    async def _close(self, run: Run, actor: Actor, stop: StopRequest) -> Run:
        """Close the session of `run`, and return its last run."""
        command = ScheduleArchive(reason="session_closed")

        async def close(conflict: Rejected | None) -> Run:
            last = await self._last(run) if conflict else run
            # After the close nothing continues a yielded run. So it is stopped in the same append;
            # otherwise a server that died in between would leave it waiting forever.
            ends = last.is_paused or last.stage == "started"
            stops = (self._command(last, stop, "", None),) if ends else ()
            appended = await self._work.record(last, (command, *stops), actor=actor)
            return appended.runs[last.run_id]

        return await with_fresh_reads(
            close, "the session changes too fast to be closed; retry in a moment"
        )

    async def _last(self, run: Run) -> Run:
        assert run.child_session_key is not None
        session = await self._work.registry.session(run.child_session_key)
        assert session is not None
        assert session.run_id is not None
        return await self._work.run(session.run_id)

    async def _store_response(
        self, provenance: Provenance, reservation: Reservation | None, answer: StoredAnswer
    ) -> None:
        """Store the answer under the idempotency key after everything is done.

        If the caller got no answer and retries, runs that were not reached yet are stopped then.
        """
        if reservation is None:
            return
        await self._work.submit(
            (), lambda _: Decision(None, answer=answer), provenance, reservation=reservation
        )

    async def _stop_below(self, session_key: str, stop: StopRequest) -> None:
        """Stop all descendants, level by level.

        They may spawn meanwhile, so the search is repeated until it finds no run that was not
        stopped.
        """
        notified: set[UUID] = set()
        for _ in range(LOOKS_MAX):
            below = await self._work.registry.runs_below(session_key)
            fresh = [
                descendant
                for descendant in below
                if _is_to_be_stopped(descendant)
                and (descendant.stop_requested_by is None or descendant.queue)
                and descendant.run_id not in notified
            ]
            if not fresh:
                return
            for descendant in fresh:
                await self._stop_one(descendant, stop)
                notified.add(descendant.run_id)
        _log.error("session %s: its descendants spawn faster than they can be stopped", session_key)

    async def _stop_one(self, run: Run, stop: StopRequest) -> Run:
        """Stop a run and return its new state."""

        async def stop_now(conflict: Rejected | None) -> Run:
            return await self._stop_now(await self._work.run(run.run_id) if conflict else run, stop)

        return await with_fresh_reads(
            stop_now, "the run changes too fast to be stopped; retry in a moment"
        )

    async def _stop_now(self, run: Run, stop: StopRequest) -> Run:
        if not _is_to_be_stopped(run):
            # Nothing to record, but a message may have continued the session.
            return await self._work.run(run.run_id)
        actor = stop.actor
        text = f"the spawn was stopped by {actor.name} before its session was created"
        # A run whose texts were erased is stopped without the reason.
        text_store = await self._work.text_store_or_none(run)
        command = self._command(run, stop, text, text_store)
        if command.announcement is not None:
            command = command.changed({"webhooks": await webhooks_of(self._work, run)})
        run_commands = [RunCommands(run, (command,), text_store)]
        # A batch is prepared as a whole or not at all.
        batch = batch_members(run) if run.stage in PREPARING and run.batch is not None else ()
        if batch:
            run_commands += await sibling_refusals(self._work, run, text)
        appended = await self._work.record_all(
            run_commands,
            actor=actor,
            spawn_answer=_refusal_answer(run, text),
            require_fit=lambda family: require_prepared(family, batch),
        )
        after = appended.runs[run.run_id]
        if after.stage == "refused":
            for run_id in batch_members(run):
                self._preparing.interrupt(run_id)
        return after

    def _command(
        self, run: Run, stop: StopRequest, text: str, text_store: TextStore | None
    ) -> StopRun:
        by_requester = stop.is_of_session or stop.actor.session == run.requester.session_key
        if text_store is None:
            return StopRun(by=stop.actor.name, by_requester=by_requester)
        needs_no_announcement = by_requester or self._preparing.has_waiting_caller(run.run_id)
        return StopRun(
            by=stop.actor.name,
            by_requester=by_requester,
            reason=text_store.store("stopReason", stop.reason) if stop.reason else None,
            text=text_store.store("refusal", text),
            announcement=(
                None
                if needs_no_announcement
                else text_store.store("announcement", refusal_announcement(run, text))
            ),
        )


def _is_to_be_stopped(run: Run) -> bool:
    """Return True if the run is active or waits, or if its session would continue after it."""
    return run.stage not in OVER or run.is_paused or bool(run.queue)


def _refusal_answer(run: Run, text: str) -> StoredAnswer | None:
    """Return the answer to the caller of the run's spawn, if it is still in preparation."""
    if run.stage not in PREPARING:
        return None
    return refusal_response(
        SpawnRefusal(
            run_id=run.run_id,
            rule=rules.STOPPED.name,
            status="error",
            text=text,
            batch_id=run.batch.batch_id if run.batch else None,
            task=run.batch.index if run.batch else None,
        )
    )
