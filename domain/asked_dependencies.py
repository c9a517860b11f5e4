"""What a request says that its run is to wait for, and whether it may."""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from domain.dependency_rings import find_cycle, render_path
from domain.run.state import Run
from domain.run.waiting_facts import Dependency
from domain.spawn.admission import Refusal
from domain.spawn.dependencies import (
    dependency_verdict,
    failed_dependency_refusal,
    render_dependency,
    request_field,
)
from domain.spawn.request import RequestSpawn
from domain.values.refusals import ReadAgain

DEPENDENCIES_MAX = 20


def merge_dependencies(dependencies: Sequence[Dependency]) -> tuple[Dependency, ...]:
    """Each run once, by the name that came first; by the first with which it has to succeed when
    there is one, for that is what a failure is told of."""
    runs: dict[UUID, Dependency] = {}
    for one in dependencies:
        before = runs.setdefault(one.run_id, one)
        if before.require == "ended":
            runs[one.run_id] = one if one.require == "success" else before
    return tuple(runs.values())


def dependencies_refusal(
    command: RequestSpawn, runs: Mapping[UUID, Run], waiting: Collection[Run]
) -> Refusal | None:
    """Why a spawn may not wait for what it is asked to; None when it may.

    `runs` are those that it names, `waiting` all of its tree that depend on others and have not
    been queued. Raises `ReadAgain` when `runs` is without one of them.
    """
    if command.unbound is not None:
        return command.unbound
    for one in command.dependencies:
        target = runs.get(one.run_id)
        if target is None:
            raise ReadAgain(f"run {one.run_id} was not read; read it and ask again")
        found = _cycle_refusal(one, command.ancestors, waiting)
        if found is None and dependency_verdict(one, target) == "failed":
            found = failed_dependency_refusal(one, target)
        if found is not None:
            return found
    return None


def _cycle_refusal(
    dependency: Dependency, ancestors: Sequence[UUID], waiting: Collection[Run]
) -> Refusal | None:
    way = find_cycle(ancestors, [dependency.run_id], waiting)
    if way is None:
        return None
    text = f"{request_field(dependency)} names {render_dependency(dependency)}, which "
    if len(way) == 1:
        text += "is this session's own run or one above it, and those end after what they spawn"
    else:
        by = render_path(way)
        text += f"waits{f', by {by},' if by else ''} for run {way[-1]} above this spawn"
        text += ": each would wait for the other for ever"
    return Refusal("dependency_cycle", "error", text)
