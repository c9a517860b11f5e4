"""Stops runs: one and everything below it."""

import logging
from uuid import UUID

from application.answers import SpawnRefusal, refused
from application.envelope import Actor
from application.ingredients import refusal_announcement
from application.ports.event_log import Answer, LogUnavailable, Reservation
from application.preparing import Preparing
from application.work import Work
from domain.refusals import ReadAgain
from domain.run.commands import StopRun
from domain.run.lifecycle import OVER, PREPARING
from domain.run.state import Run

READS_MAX = 5
LOOKS_MAX = 200

_log = logging.getLogger("spawnlog.stopping")


class Stopping:
    """Stops for others."""

    def __init__(self, work: Work, preparing: Preparing) -> None:
        self._work = work
        self._preparing = preparing

    async def stop(
        self, run: Run, actor: Actor, reason: str | None, reservation: Reservation | None = None
    ) -> Answer:
        """Stop a run and its descendants, the run first so that it starts no more of them.

        One that is held ends when its holder has ended it; one that is over stays as it is.
        """
        answer = Answer("stopping", {"runId": str(run.run_id), "wasOver": run.stage in OVER})
        run = await self._stop_one(run, actor, reason, reservation, answer)
        await self._stop_below(run, actor, reason)
        return answer

    async def _stop_below(self, run: Run, actor: Actor, reason: str | None) -> None:
        """Level by level: those below may still spawn while they are reached one after another,
        so it looks again until a look finds nobody who was not told."""
        if run.child_session_key is None:
            return
        told: set[UUID] = set()
        for _ in range(LOOKS_MAX):
            below = await self._work.registry.runs_below(run.child_session_key)
            fresh = [
                one
                for one in below
                if one.stage not in OVER
                and one.stop_requested_by is None
                and one.run_id not in told
            ]
            if not fresh:
                return
            for one in fresh:
                await self._stop_one(one, actor, reason)
                told.add(one.run_id)
        _log.error("run %s: its descendants spawn faster than they can be stopped", run.run_id)

    async def _stop_one(
        self,
        run: Run,
        actor: Actor,
        reason: str | None,
        reservation: Reservation | None = None,
        answer: Answer | None = None,
    ) -> Run:
        """Stop one run; gives it as it is then."""
        for _ in range(READS_MAX):
            try:
                return await self._stop_now(run, actor, reason, reservation, answer)
            except ReadAgain:
                run = await self._work.run(run.run_id)
        raise LogUnavailable("the run changes too fast to be stopped; ask again in a moment")

    async def _stop_now(
        self,
        run: Run,
        actor: Actor,
        reason: str | None,
        reservation: Reservation | None,
        answer: Answer | None,
    ) -> Run:
        keeper = await self._work.keeper(run)
        text = f"the spawn was stopped by {actor.name} before its session was created"
        by_requester = actor.session == run.requester.session_key
        told = by_requester or self._preparing.is_told(run.run_id)
        command = StopRun(
            by=actor.name,
            by_requester=by_requester,
            reason=keeper.keep("stopReason", reason) if reason else None,
            text=keeper.keep("refusal", text),
            announcement=(
                None if told else keeper.keep("announcement", refusal_announcement(run, text))
            ),
        )
        appended = await self._work.record(
            run,
            (command,),
            keeper,
            actor=actor,
            spawn_answer=_refusal(run, text),
            reservation=reservation,
            answer=answer,
        )
        after = appended.runs[run.run_id]
        if after.stage == "refused":
            self._preparing.interrupt(run.run_id)
        return after


def _refusal(run: Run, text: str) -> Answer | None:
    """How the spawn's own caller is answered when it is still waiting for its answer."""
    if run.stage not in PREPARING:
        return None
    return refused(SpawnRefusal(run_id=run.run_id, rule="stopped", status="error", text=text))
