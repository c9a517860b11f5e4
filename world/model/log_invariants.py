"""Invariants of the log of a tree, alone and compared with the model of the tree."""

from typing import TypeVar
from uuid import UUID

from application.projections.fold import Fold
from domain.event_types import AnyEvent
from domain.run.events import AnnouncementAcknowledged, RunArchived
from domain.run.state import Run
from domain.session.events import ChildReleased, ChildSettled, SessionClosed
from domain.session.state import Session
from domain.values.record import Fact, run_id_of, session_key_of
from tests.support.builders.family_log import FamilyLog, Recorded
from world.model import messages
from world.model.tree import ENDED, Tree

F = TypeVar("F", bound=Fact)
States = tuple[int, dict[UUID, Run], dict[str, Session]]


def replays(recorded: list[Recorded], seen: list[States]) -> None:
    """Assert that the stored events, folded from the beginning, give every state that was seen."""
    fold = Fold((), ())
    states = {position: (runs, sessions) for position, runs, sessions in seen}
    for event in recorded:
        fold.apply(event.stream, stored_and_read(event.event), event.stamp)
        run_id, key = run_id_of(event.stream), session_key_of(event.stream)
        state = fold.runs[run_id] if run_id is not None else fold.sessions[key or ""]
        stored_and_read(state)
        if event.stamp.position in states:
            assert (fold.runs, fold.sessions) == states[event.stamp.position]


def stored_and_read(fact: F) -> F:
    """Return a fact after a round trip through JSON; assert that it is stored as the same bytes
    again.
    """
    read = fact.from_json(fact.to_json())
    # Equal facts may have other bytes: 3 is equal to 3.0.
    assert (read, read.to_json()) == (fact, fact.to_json()), f"{type(fact).__name__} is read anew"
    return read


def is_over_once(recorded: list[Recorded]) -> None:
    """Assert that only an acknowledgement follows an archive, and that no run is released or
    settled twice.
    """
    archived: set[str] = set()
    over: list[tuple[str, type[AnyEvent], UUID]] = []
    for event in recorded:
        assert event.stream not in archived or isinstance(event.event, AnnouncementAcknowledged)
        if isinstance(event.event, RunArchived):
            archived.add(event.stream)
        if isinstance(event.event, ChildReleased | ChildSettled):
            over.append((event.stream, type(event.event), event.event.run_id))
    assert len(over) == len(set(over))


def is_put_away_in_turn(log: FamilyLog) -> None:
    """Assert that the newest run of a session is archived first, and that the session is closed
    once.
    """
    archived: dict[str, list[int]] = {}
    closed: list[str] = []
    for event in log.recorded:
        if isinstance(event.event, SessionClosed):
            closed.append(event.stream)
        if isinstance(event.event, RunArchived):
            run = log.fold.runs[UUID(event.stream.removeprefix("run:"))]
            assert run.child_session_key is not None
            runs = archived.setdefault(run.child_session_key, [])
            runs.append(run.created_position)
    assert len(closed) == len(set(closed))
    for key, positions in archived.items():
        assert positions == sorted(positions, reverse=True)
        newest = log.fold.sessions[key].run_id
        assert newest is not None
        assert positions[0] == log.fold.runs[newest].created_position


def runs_agree(log: FamilyLog, tree: Tree) -> None:
    """Assert that every run is as in the model."""
    for life in tree.lives.values():
        run = log.run(life.name)
        assert run.stage == life.stage
        assert run.agent_id == life.agent_id
        assert (run.outcome is not None) == (life.stage in ENDED)
        assert (run.refusal is not None) == (life.stage == "refused")
        if life.stage == "ended":
            assert (run.pending_descendants == 0) == tree.below_is_done(life.session)
        assert _name(log, run.continued_by) == life.continued_by
        assert (run.put_away_from is not None) == life.is_put_away
        if life.stage not in ("announced", "archived"):
            assert run.archive_at is None
        if life.stage == "announced":
            assert (run.archive_at is not None) == messages.is_due(life)
            at_once = (run.announced_at, run.put_away_from)
            due = run.archive_at is not None
            assert (due and run.archive_at in at_once) == (
                due and messages.is_put_away_at_once(life)
            )
        assert _name(log, run.requester.run_id) == life.above
        if life.continues is not None:
            assert (_name(log, run.continues), _name(log, run.opened_by)) == (
                life.continues,
                life.session,
            )


def places_agree(log: FamilyLog, tree: Tree) -> None:
    """Assert that places, lanes and sessions are as in the model."""
    for name in tree.sessions():
        if log.key(name) not in log.fold.sessions:
            assert name == "main"
            continue
        assert log.counted(name) == tree.counted(name)
        if name != "main":
            last = tree.last(name)
            assert last is not None
            assert log.last(name) == log.run(last.name)
            assert (log.session(name).stage == "closed") == (name in tree.closed)
            waits = [log.names[run] for run in log.session(name).unsettled]
            assert waits == tree.unsettled(name)
    for depth in (1, 2, 3):
        assert tree.running(depth) <= tree.lane_width


def _name(log: FamilyLog, run_id: UUID | None) -> str | None:
    return log.names[run_id] if run_id is not None else None
