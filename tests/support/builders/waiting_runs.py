"""Events and commands of a run that waits for another one."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from domain.run.commands import SettleDependencies
from domain.run.events import DependencyMet, RunWaits
from domain.run.facts import Dependency
from domain.run.state import Run
from tests.support.builders import run_histories as past
from tests.support.builders.facts import fact_of
from tests.support.builders.storytelling import requested, run_id

TARGET = run_id(70)


def dependency(**changes: Any) -> Dependency:
    plain = {"run_id": TARGET, "name": "scout", "via": "dependsOn"}
    return fact_of(Dependency, plain | changes)


def waits(**changes: Any) -> RunWaits:
    """Return the event of a prepared run whose dependency is not met."""
    return fact_of(RunWaits, {"run_ids": (TARGET,)} | changes)


def met(**changes: Any) -> DependencyMet:
    return fact_of(DependencyMet, {"run_id": TARGET, "outcome": "success"} | changes)


def an_awaiting_run() -> past.History:
    request = requested(dependencies=(dependency(),), ancestors=(run_id(71),))
    return (request, past.resolved(), past.prepared(), past.created(), waits())


def above(runs: Mapping[UUID, Run], run_id: UUID | None) -> tuple[UUID, ...]:
    if run_id is None:
        return ()
    return (run_id, *above(runs, runs[run_id].requester.run_id))


def settle(**changes: Any) -> SettleDependencies:
    plain = {"lane": "subagent", "met": ((TARGET, "success"),)}
    return SettleDependencies(**{**plain, **changes})
