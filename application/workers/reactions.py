"""Reactions of this process's workers to events of the log."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from application.concurrency.periodic import PeriodicTask
from application.execution.execute import RunExecutor
from application.execution.waiting_runs import WaitingRuns
from application.log.envelope import RecordedEvent
from application.log.event_log import Tail
from application.spawn.dependencies import AwaitedRuns
from application.spawn.prepare import SpawnPreparer
from application.workers.due import DueWork
from domain.event_types import AnyEvent, ConfigurationActivated
from domain.run.effects import EFFECT_TRIGGERS
from domain.run.events import (
    ArchiveScheduled,
    ChildrenReported,
    ContinuationFailed,
    DescendantsSettled,
    EffectRedriven,
    MessageQueued,
    MessagesDropped,
    RunAnnounced,
    RunArchived,
    RunClaimed,
    RunEnded,
    RunQueued,
    RunWaits,
    SpawnRefused,
    StopRequested,
    YieldRequested,
)
from domain.run.state import PAUSES
from domain.session.events import ChildSettled

_log = logging.getLogger("spawnlog.conducting")


@dataclass(frozen=True, slots=True)
class WokenWork:
    """Background work that events can wake."""

    dispatch: PeriodicTask
    announce: DueWork
    archive: DueWork
    effects: DueWork
    wait: DueWork
    continue_sessions: DueWork


class Reactions:
    """Handlers that wake work made due by events, and pass events on to the runs held here.

    Events recorded together are handled together, so work that one event makes due and another has
    already done is not woken.
    """

    def __init__(
        self,
        work: WokenWork,
        executing: RunExecutor,
        preparing: SpawnPreparer,
        tail: Tail,
        waiting: WaitingRuns,
        follow_configuration: Callable[[int], Awaitable[None]],
    ) -> None:
        self._work = work
        self._executing = executing
        self._preparing = preparing
        self._tail = tail
        self._waiting = waiting
        self._follow_configuration = follow_configuration
        self._awaited = AwaitedRuns()
        self._expected: dict[UUID | None, DueWork | PeriodicTask] = {}
        self._touched: set[UUID | None] = set()

    async def take(self, events: Sequence[RecordedEvent]) -> None:
        """React to the next events of the log. Never raises."""
        for recorded in events:
            reactions = _REACTIONS.get(type(recorded.event))
            if reactions is None:
                continue
            try:
                for react in reactions:
                    react(self, recorded)
                if type(recorded.event) is ConfigurationActivated:
                    await self._follow_configuration(recorded.event.revision)
            except Exception:
                # A failed reaction must not stop the next one.
                _log.exception("the reaction to event %d failed", recorded.envelope.position)
        if any(map(self._may_have_effects, self._touched)):
            self._work.effects.notify()
        for due in dict.fromkeys(self._expected.values()):
            due.notify()
        self._touched.clear()
        self._expected.clear()

    def _may_have_effects(self, run_id: UUID | None) -> bool:
        run = self._tail.newest(run_id) if run_id is not None else None
        return run is None or run.effects_at is not None

    def _look_at_effects(self, recorded: RecordedEvent) -> None:
        self._touched.add(recorded.envelope.provenance.run_id)

    def _look_at_dependents(self, recorded: RecordedEvent) -> None:
        if self._awaited.is_met_by(recorded):
            self._work.wait.notify()

    def _on_queued(self, recorded: RecordedEvent) -> None:
        run_id = recorded.envelope.provenance.run_id
        self._expected[run_id] = self._work.dispatch
        if run_id is not None:
            self._waiting.add(run_id)

    def _on_claimed_or_archived(self, recorded: RecordedEvent) -> None:
        run_id = recorded.envelope.provenance.run_id
        self._expected.pop(run_id, None)
        if run_id is not None:
            self._waiting.remove(run_id)

    def _on_ended(self, recorded: RecordedEvent) -> None:
        run_id, event = recorded.envelope.provenance.run_id, recorded.event
        assert isinstance(event, RunEnded)
        if run_id is not None:
            self._executing.let_go(run_id)
            self._waiting.remove(run_id)
        if self._waiting.may_wait:
            self._work.dispatch.notify()
        if event.reason in PAUSES:
            self._work.continue_sessions.notify()
        else:
            self._expected[run_id] = self._work.announce

    def _on_announced(self, recorded: RecordedEvent) -> None:
        run_id = recorded.envelope.provenance.run_id
        self._expected[run_id] = self._work.archive
        run = self._tail.newest(run_id) if run_id is not None else None
        if run is None or run.queue:
            self._work.continue_sessions.notify()

    def _on_children_reported(self, _: RecordedEvent) -> None:
        # A message may wait for this. Only spawned sessions have this event.
        self._work.continue_sessions.notify()

    def _on_messages_lost(self, _: RecordedEvent) -> None:
        self._work.continue_sessions.notify()
        self._work.announce.notify()

    def _on_message(self, recorded: RecordedEvent) -> None:
        run_id, event = recorded.envelope.provenance.run_id, recorded.event
        assert isinstance(event, MessageQueued)
        if run_id is not None:
            if event.cause == "steer":
                self._executing.stop(run_id)
            self._work.continue_sessions.notify()

    def _on_yield(self, recorded: RecordedEvent) -> None:
        if recorded.envelope.provenance.run_id is not None:
            self._executing.end_turn(recorded.envelope.provenance.run_id)

    def _on_settled(self, _: RecordedEvent) -> None:
        self._work.announce.notify()

    def _on_archive_scheduled(self, _: RecordedEvent) -> None:
        self._work.archive.notify()

    def _on_stop(self, recorded: RecordedEvent) -> None:
        if recorded.envelope.provenance.run_id is not None:
            self._executing.stop(recorded.envelope.provenance.run_id)
            self._work.announce.notify()

    def _on_refused(self, recorded: RecordedEvent) -> None:
        if recorded.envelope.provenance.run_id is not None:
            self._preparing.interrupt(recorded.envelope.provenance.run_id)


_Reaction = Callable[[Reactions, RecordedEvent], None]
_SPECIAL: Mapping[type[AnyEvent], tuple[_Reaction, ...]] = {
    RunQueued: (Reactions._on_queued,),
    RunClaimed: (Reactions._on_claimed_or_archived,),
    RunWaits: (Reactions._look_at_dependents,),
    RunEnded: (Reactions._look_at_dependents, Reactions._on_ended),
    RunAnnounced: (Reactions._look_at_dependents, Reactions._on_announced),
    RunArchived: (Reactions._on_claimed_or_archived,),
    SpawnRefused: (Reactions._look_at_dependents, Reactions._on_refused),
    DescendantsSettled: (Reactions._look_at_dependents, Reactions._on_settled),
    ChildrenReported: (Reactions._on_children_reported,),
    ChildSettled: (Reactions._on_children_reported,),
    ContinuationFailed: (Reactions._on_messages_lost,),
    MessagesDropped: (Reactions._on_messages_lost,),
    MessageQueued: (Reactions._on_message,),
    YieldRequested: (Reactions._on_yield,),
    ArchiveScheduled: (Reactions._on_archive_scheduled,),
    StopRequested: (Reactions._on_stop,),
    ConfigurationActivated: (),
}
_EFFECTS: Mapping[type[AnyEvent], tuple[_Reaction, ...]] = dict.fromkeys(
    (*EFFECT_TRIGGERS, EffectRedriven), (Reactions._look_at_effects,)
)
_REACTIONS: Mapping[type[AnyEvent], tuple[_Reaction, ...]] = {
    event: (*_EFFECTS.get(event, ()), *_SPECIAL.get(event, ()))
    for event in {**_SPECIAL, **_EFFECTS}
}
"""Reactions by event type. Other events are ignored."""
