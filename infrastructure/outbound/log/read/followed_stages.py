"""Stages of the runs in the newest events, and which of these runs were respawned.

If this process has seen a run from its first event on, its stages need no query.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from application.log.envelope import RecordedEvent
from application.ports.run_bars import ReachedStage
from domain.run.events import SpawnRequested
from domain.run.lifecycle import STAGE_REACHED_BY
from domain.values.record import RUN_PREFIX, run_stream

LIVES_MAX = 2_000


@dataclass(slots=True)
class _Life:
    """A run after `version` of its events: the stages that it reached, with the versions of their
    events."""

    version: int = 0
    stages: list[tuple[int, ReachedStage]] = field(default_factory=list)
    is_respawned: bool = False


class FollowedStages:
    """Stages of the most recently changed runs whose first event was seen."""

    def __init__(self) -> None:
        self._lives: OrderedDict[str, _Life] = OrderedDict()

    def stages(self, run_id: UUID, until: int) -> Sequence[ReachedStage] | None:
        """Return the stages that a run reached within its first `until` events, in order; None if
        they are not cached."""
        life = self._lives.get(run_stream(run_id))
        if life is None or life.version < until:
            return None
        return [stage for version, stage in life.stages if version <= until]

    def is_respawned(self, run_id: UUID) -> bool | None:
        """Return True if another run was respawned from this one; None if that is not known."""
        life = self._lives.get(run_stream(run_id))
        return life.is_respawned if life is not None else None

    def add(self, events: Sequence[RecordedEvent]) -> None:
        """Add the next events of the log."""
        stream, life = "", None
        for envelope, event in events:
            if envelope.stream != stream:
                stream = envelope.stream
                life = self._life_of(stream)
            if life is None:
                continue
            life.version += 1
            if life.version != envelope.version:
                # The first events of this run were not seen.
                del self._lives[stream]
                life = None
                continue
            stage = STAGE_REACHED_BY.get(envelope.type)
            if stage is not None:
                reached = ReachedStage(stage, envelope.position, envelope.recorded_at)
                life.stages.append((envelope.version, reached))
            if type(event) is SpawnRequested and event.respawn is not None:
                self._note_respawn(event.respawn.run_id)
        while len(self._lives) > LIVES_MAX:
            self._lives.popitem(last=False)

    def _life_of(self, stream: str) -> _Life | None:
        """Return the life of a run and mark it as most recently changed; None for the stream of a
        session."""
        if not stream.startswith(RUN_PREFIX):
            return None
        life = self._lives.get(stream)
        if life is None:
            life = self._lives[stream] = _Life()
        else:
            self._lives.move_to_end(stream)
        return life

    def _note_respawn(self, earlier_id: UUID) -> None:
        earlier = self._lives.get(run_stream(earlier_id))
        if earlier is not None:
            earlier.is_respawned = True
