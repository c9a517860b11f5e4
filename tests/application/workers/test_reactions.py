"""Events wake the due work that they leave, and no work that was done with them."""

from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

import pytest

from application.execution import waiting_runs
from application.execution.execute import RunExecutor
from application.execution.waiting_runs import WaitingRuns
from application.log.event_log import Tail
from application.spawn.prepare import SpawnPreparer
from application.workers.reactions import Reactions, WokenWork
from domain.run.events import RunEvent
from domain.run.state import Run
from tests.support.builders.recorded_runs import recorded
from tests.support.builders.run_histories import (
    a_claimed_run,
    a_created_run,
    a_prepared_run,
    a_started_run,
    an_announced_run,
    an_archived_run,
    an_ended_run,
    claimed,
    queued,
    refused,
    settled,
    stop_requested,
)
from tests.support.builders.storytelling import run_id, run_of

KINDS = ("dispatch", "announce", "archive", "effects", "wait", "continue_sessions")


class Bell:
    """Work that is woken."""

    def __init__(self, name: str, rung: list[str]) -> None:
        self._name = name
        self._rung = rung

    def notify(self) -> None:
        self._rung.append(self._name)


class Followed:
    """The workers of a process and the runs that it knows."""

    def __init__(self) -> None:
        self.rung: list[str] = []
        self.told: list[str] = []
        self.run: Run | None = None
        self.waiting = WaitingRuns()
        bells: dict[str, Any] = {name: Bell(name, self.rung) for name in KINDS}
        self._reactions = Reactions(
            WokenWork(**bells),
            cast(RunExecutor, self),
            cast(SpawnPreparer, self),
            cast(Tail, self),
            self.waiting,
            self._follow_configuration,
        )

    async def take(self, history: Sequence[RunEvent], last: int) -> list[str]:
        """Take the last events of a history, recorded together; give the work that they woke."""
        self.run = run_of(*history)
        await self._reactions.take(recorded(1, history)[-last:])
        return sorted(self.rung)

    def newest(self, known_id: UUID) -> Run | None:
        return self.run if known_id == run_id(1) else None

    def let_go(self, _: UUID) -> None:
        self.told.append("let go")

    def stop(self, _: UUID) -> None:
        self.told.append("stop")

    def interrupt(self, _: UUID) -> None:
        self.told.append("interrupt")

    async def _follow_configuration(self, revision: int) -> None:
        self.told.append(f"revision {revision}")


@pytest.mark.parametrize(
    ("history", "last", "woken"),
    [
        ((*a_created_run(), queued()), 1, ["dispatch"]),
        ((*a_created_run(), queued(), claimed()), 2, []),
        (a_claimed_run(), 1, []),
        (a_started_run(), 1, []),
        (an_ended_run(), 1, ["announce", "dispatch"]),
        (an_announced_run(), 1, ["archive"]),
        (an_announced_run(), 2, ["archive", "dispatch"]),
        (an_archived_run(), 1, []),
        (an_archived_run(), 3, ["dispatch"]),
        (an_archived_run(), len(an_archived_run()), ["dispatch"]),
        ((*an_ended_run(), settled()), 1, ["announce"]),
        ((*a_started_run(), stop_requested()), 1, ["announce"]),
        ((*a_prepared_run(), refused()), 1, []),
        ((*a_prepared_run(), refused(webhooks=("x",))), 1, ["effects"]),
    ],
)
async def test_events_wake_what_they_leave_due(
    history: Sequence[RunEvent], last: int, woken: list[str]
) -> None:
    assert await Followed().take(history, last) == woken


async def test_end_and_stop_and_refusal_reach_the_held_run() -> None:
    followed = Followed()
    await followed.take(an_ended_run(), 1)
    await followed.take((*a_started_run(), stop_requested()), 1)
    await followed.take((*a_prepared_run(), refused()), 1)
    assert followed.told == ["let go", "stop", "interrupt"]


async def test_failed_reaction_does_not_hide_the_next_event(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: UUID) -> None:
        raise RuntimeError("it cannot be let go")

    followed = Followed()
    monkeypatch.setattr(followed, "let_go", fail)
    assert await followed.take(an_announced_run(), 2) == ["archive"]
    assert "the reaction to event" in caplog.text


async def test_end_wakes_dispatch_only_while_a_run_may_wait() -> None:
    followed = Followed()
    assert await followed.take(an_ended_run(), 1) == ["announce", "dispatch"]
    followed.rung.clear()
    followed.waiting.note_none(followed.waiting.unknown)
    assert await followed.take(an_ended_run(), len(an_ended_run())) == ["announce"]
    followed.rung.clear()
    followed.waiting.add(run_id(2))
    assert await followed.take(an_ended_run(), 1) == ["announce", "dispatch"]
    followed.rung.clear()
    followed.waiting.remove(run_id(2))
    assert await followed.take(an_ended_run(), 1) == ["announce"]


def test_runs_beyond_memory_may_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting_runs, "WAITING_RUNS_MAX", 1)
    waiting = WaitingRuns()
    before = waiting.unknown
    waiting.add(run_id(1))
    waiting.add(run_id(2))
    waiting.remove(run_id(1))
    waiting.note_none(before)
    assert waiting.may_wait
    waiting.note_none(waiting.unknown)
    assert not waiting.may_wait
