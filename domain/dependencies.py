"""Whether what a run depends on is done, from what is on record about it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

from domain.refusals import ReadAgain, Rejected
from domain.run.commands import CreateSession, SettleDependencies
from domain.run.facts import Outcome
from domain.run.lifecycle import SETTLED
from domain.run.state import Run
from domain.run.waiting_facts import Dependency

Verdict = Literal["waits", "met", "failed"]


class DependencyFailed(Rejected):
    """A run that the spawn depends on is over, and not as it was required to be."""

    def __init__(self, dependency: Dependency, target: Run) -> None:
        super().__init__(f"run {dependency.run_id} ended as {target.outcome or target.stage}")
        self.dependency = dependency
        self.target = target


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of dependencies so far: those that were met now, those that are still waited for,
    and the first that failed."""

    met: tuple[tuple[UUID, Outcome], ...] = ()
    waits_for: tuple[UUID, ...] = ()
    failed: Dependency | None = None


def verdict(dependency: Dependency, target: Run) -> Verdict:
    """A run is done when it is over and all below it is; one that was refused never ran."""
    if target.stage == "refused":
        return "failed"
    if target.stage not in SETTLED and (target.stage != "ended" or target.pending_descendants):
        return "waits"
    return "met" if dependency.require == "ended" or target.outcome == "success" else "failed"


def judge(run: Run, runs: Mapping[UUID, Run]) -> Judged:
    """The dependencies of a run that is prepared, or those that it still waits for.

    Raises `ReadAgain` when `runs` is without one of them.
    """
    met: list[tuple[UUID, Outcome]] = []
    waits_for: list[UUID] = []
    for dependency in run.dependencies or ():
        if run.waits_for is not None and dependency.run_id not in run.waits_for:
            continue
        target = runs.get(dependency.run_id)
        if target is None:
            raise ReadAgain(f"run {dependency.run_id} was not read; read it and ask again")
        match verdict(dependency, target):
            case "failed":
                return Judged(failed=dependency)
            case "waits":
                waits_for.append(dependency.run_id)
            case "met":
                met.append((dependency.run_id, target.outcome or "unknown"))
    return Judged(tuple(met), tuple(waits_for))


def with_dependencies(
    run: Run, runs: Mapping[UUID, Run], command: CreateSession | SettleDependencies
) -> CreateSession | SettleDependencies:
    """The command with what is so of the run's dependencies now.

    Raises `DependencyFailed` for a child that is to be created: a waiting one ends instead.
    """
    judged = judge(run, runs)
    failed = judged.failed
    if isinstance(command, SettleDependencies):
        found = failed.run_id if failed is not None else None
        return replace(command, met=judged.met, waits_for=judged.waits_for, failed=found)
    if failed is not None:
        raise DependencyFailed(failed, runs[failed.run_id])
    return replace(command, met=judged.met, waits_for=judged.waits_for)
