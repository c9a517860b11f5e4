"""Runs that are executed outside, where something fails on the way."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from application.execution.external import HOLDER_PREFIX, ExternalRuns, NotOffered
from application.log.envelope import Actor
from application.ports.runtimes import CannotLaunch, RuntimeEnd
from domain.run.facts import EXTERNAL_LANE
from domain.run.state import Run
from tests.support.builders.run_histories import (
    claimed,
    created,
    prepared,
    queued,
    resolved,
    started,
)
from tests.support.builders.storytelling import plan, requested, run_id, run_of

EXECUTOR = Actor(kind="token", token="pulls")


@dataclass
class Collaborators:
    """What runs outside need of others: the run that is asked for, and what was ended."""

    run: Run | None = None
    unclaimed: tuple[UUID, ...] = ()
    failing: tuple[UUID, ...] = ()
    ended: list[UUID] = field(default_factory=list)

    async def unclaimed_runs(self, *, seconds: float, limit: int) -> Sequence[UUID]:
        return self.unclaimed

    async def renew(self, holder: str, **_: object) -> bool:
        return True

    async def end(self, run: Run, end: RuntimeEnd, **_: object) -> Run:
        if run.run_id in self.failing:
            raise RuntimeError("it cannot be ended")
        self.ended.append(run.run_id)
        return run

    async def prepare_with_texts(self, run: Run) -> Any:
        raise CannotLaunch("not_executable", "its folder is gone")

    def outside(self) -> ExternalRuns:
        settings = SimpleNamespace(spawnlog=SimpleNamespace(external_claim_seconds=5))
        pinned = SimpleNamespace(configuration=settings)

        async def run(asked: UUID) -> Any:
            return self.run or SimpleNamespace(run_id=asked)

        async def event_of(stream: str, version: int) -> Any:
            return SimpleNamespace(
                envelope=SimpleNamespace(provenance=SimpleNamespace(actor=EXECUTOR))
            )

        work = SimpleNamespace(
            run=run,
            log=SimpleNamespace(event_of=event_of),
            configurations=SimpleNamespace(current=lambda: pinned),
        )
        all_of_them = cast("Any", self)
        return ExternalRuns(
            cast("Any", work), all_of_them, all_of_them, all_of_them, all_of_them, all_of_them
        )


async def test_a_run_that_cannot_be_given_up_holds_up_no_other() -> None:
    ids = (run_id(1), run_id(2), run_id(3))
    others = Collaborators(unclaimed=ids, failing=(ids[0], ids[1]))
    assert await others.outside().end_unclaimed() == 1
    assert others.ended == [ids[2]]


async def test_a_repeated_claim_that_cannot_be_composed_any_more_ends_nothing() -> None:
    run = run_of(
        requested(),
        resolved(),
        prepared(),
        created(plan=plan(runtime="external")),
        queued(lane=EXTERNAL_LANE),
        claimed(holder=f"{HOLDER_PREFIX}mine:1"),
        started(),
    )
    others = Collaborators(run=run)
    with pytest.raises(NotOffered, match="its folder is gone; report its end"):
        await others.outside().claim(run.run_id, "mine", 60, EXECUTOR)
    assert others.ended == []
