"""Dependencies of a run: whether they are met, and whether they would form a cycle."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal
from uuid import UUID

from domain.run.commands import CreateSession, SettleDependencies
from domain.run.facts import Dependency, DependencyNeeds, DependencyVia, RunOutcome
from domain.run.lifecycle import SETTLED
from domain.run.state import Run
from domain.values import rules
from domain.values.json_text import compact_json, read_json
from domain.values.refusals import ReadAgain, Refusal, Rejected
from domain.values.text import SHOWN_CHARACTERS_MAX, quote_name, single_line


@dataclass(frozen=True, slots=True)
class DependencyRequest:
    """Dependency as named in a request, by label or id of a run."""

    name: str
    via: DependencyVia
    require: DependencyNeeds = "success"


def dependencies_text(requests: Iterable[DependencyRequest]) -> str:
    """Return the names of a request as JSON; they are free text until each is resolved."""
    return compact_json([asdict(request) for request in requests])


def read_dependencies(text: str) -> tuple[DependencyRequest, ...]:
    """Return the names from a text made by `dependencies_text`."""
    named = read_json(text)
    assert isinstance(named, list)
    return tuple(DependencyRequest(**request) for request in named)


DependencyVerdict = Literal["waits", "met", "failed"]


class DependencyFailed(Rejected):
    """A dependency of the spawn is over and has not met its requirement."""

    def __init__(self, dependency: Dependency, target: Run) -> None:
        super().__init__(f"run {dependency.run_id} ended as {target.outcome or target.stage}")
        self.dependency = dependency
        self.target = target

    @property
    def refusal(self) -> Refusal:
        """Return the refusal of the spawn."""
        text = failed_dependency_text(self.dependency, self.target)
        return rules.DEPENDENCY_FAILED.refusal(text)


@dataclass(frozen=True, slots=True)
class EvaluatedDependencies:
    """Newly met dependencies with outcomes, those still waited for, and the first failed one."""

    met: tuple[tuple[UUID, RunOutcome], ...] = ()
    waits_for: tuple[UUID, ...] = ()
    failed: Dependency | None = None


def outcome_text(target: Run) -> str:
    """Return the outcome of a dependency as the predicate of a sentence."""
    if target.stage == "refused":
        return "was refused"
    return "was stopped" if target.outcome == "stopped" else f"ended as {target.outcome}"


def render_dependency(dependency: Dependency) -> str:
    """Return the dependency as named in the request, with the run id."""
    if dependency.name == str(dependency.run_id):
        return f"run {dependency.run_id}"
    return f"{quote_name(dependency.name)} (run {dependency.run_id})"


def request_field(dependency: Dependency | DependencyRequest) -> str:
    """Return the field of the request that names the dependency."""
    if dependency.via != "reference":
        return dependency.via
    return f"sharedContext.${single_line(dependency.name, characters_max=SHOWN_CHARACTERS_MAX)}"


def failed_dependency_text(dependency: Dependency, target: Run) -> str:
    """Return the refusal text for a spawn whose dependency has failed."""
    text = (
        f"{request_field(dependency)} names {render_dependency(dependency)}, which "
        f"{outcome_text(target)}"
    )
    if target.stage == "refused" or dependency.via == "reference":
        text += "; spawn it again and name the new run"
    else:
        text += (
            f'; spawn it again, or use {{"run": {quote_name(dependency.name)}, "require":'
            ' "ended"} to continue anyway'
        )
    return text


def dependency_verdict(dependency: Dependency, target: Run) -> DependencyVerdict:
    """Return whether a dependency waits, is met, or has failed.

    A run is done if it and all runs below it are over. A refused run has failed, because it never
    ran. If success is required, another outcome fails at once, even if descendants are active.
    """
    is_over = target.stage in SETTLED or target.stage == "ended"
    requires_success = dependency.require == "success"
    if target.stage == "refused" or (requires_success and is_over and target.outcome != "success"):
        return "failed"
    is_done = target.stage in SETTLED or (is_over and not target.pending_descendants)
    return "met" if is_done else "waits"


def evaluate_dependencies(run: Run, runs: Mapping[UUID, Run]) -> EvaluatedDependencies:
    """Evaluate all dependencies of a prepared run, or those that a waiting run still waits for.

    Raises:
        ReadAgain: `runs` lacks one of them.
    """
    met: list[tuple[UUID, RunOutcome]] = []
    waits_for: list[UUID] = []
    for dependency in run.dependencies or ():
        if run.waits_for is not None and dependency.run_id not in run.waits_for:
            continue
        target = run_on_record(dependency.run_id, runs)
        match dependency_verdict(dependency, target):
            case "failed":
                return EvaluatedDependencies(failed=dependency)
            case "waits":
                waits_for.append(dependency.run_id)
            case "met":
                met.append((dependency.run_id, target.outcome or "unknown"))
    return EvaluatedDependencies(tuple(met), tuple(waits_for))


def with_dependencies(
    run: Run, runs: Mapping[UUID, Run], command: CreateSession | SettleDependencies
) -> CreateSession | SettleDependencies:
    """Return the command with the current state of the run's dependencies filled in.

    Raises:
        DependencyFailed: A dependency failed before the child was created. If a run already waits,
            it ends instead.
        ReadAgain: `runs` lacks one of the dependencies.
    """
    judged = evaluate_dependencies(run, runs)
    failed = judged.failed
    found = {"met": judged.met, "waits_for": judged.waits_for}
    if isinstance(command, SettleDependencies):
        return command.changed({**found, "failed": failed.run_id if failed is not None else None})
    if failed is not None:
        raise DependencyFailed(failed, runs[failed.run_id])
    return command.changed(found)


# Cycle detection, so that sessions do not wait for each other forever.
#
# The active run of a session ends after all children of the session, whichever of its runs spawned
# them, because a session continues after a run that yields, is steered, or is over. So sessions are
# compared, not runs. Descendants are found from below: each run records its ancestors.


PATH_SHOWN_MAX = 20


def find_cycle(
    ancestors: Sequence[UUID],
    targets: Iterable[UUID],
    waiting: Iterable[Run],
    runs: Mapping[UUID, Run],
) -> tuple[UUID, ...] | None:
    """Return the cycle that a new child would close by waiting for `targets`.

    No run waits for a new run, and it has no descendants. So only a path to a session above it
    closes a cycle.

    Args:
        ancestors: The runs above the child, its requester's own first.
        targets: The runs that it would wait for; none of them is done.
        waiting: All runs of the tree that have dependencies and are prepared or waiting.
        runs: All of these, and the runs that `linked_runs` returns for `waiting`.

    Returns:
        The path from one of `targets` to a run above the child, where each run waits for the next;
        None if there is no cycle.

    Raises:
        ReadAgain: `runs` lacks one of the runs.
    """
    above = set(_sessions_above(ancestors, runs))
    ends_after: dict[UUID, list[Run]] = {}
    for run in waiting:
        for session_id in (run.session_id, *_sessions_above(run.ancestors or (), runs)):
            ends_after.setdefault(session_id, []).append(run)
    came_from: dict[UUID, tuple[UUID, ...]] = dict.fromkeys(targets, ())
    ahead = list(came_from)
    while ahead:
        run_id = ahead.pop()
        session_id = run_on_record(run_id, runs).session_id
        if session_id in above:
            return _path_to(run_id, came_from)
        for run in ends_after.get(session_id, ()):
            by = (run_id,) if run.run_id == run_id else (run_id, run.run_id)
            for next_id in evaluate_dependencies(run, runs).waits_for:
                if next_id not in came_from:
                    came_from[next_id] = by
                    ahead.append(next_id)
    return None


def linked_runs(waiting: Iterable[Run]) -> set[UUID]:
    """Return the runs that these wait for, or may wait for later, and all their ancestors."""
    linked: set[UUID] = set()
    for run in waiting:
        named = (dependency.run_id for dependency in run.dependencies or ())
        linked.update(named if run.waits_for is None else run.waits_for, run.ancestors or ())
    return linked


def _sessions_above(ancestors: Iterable[UUID], runs: Mapping[UUID, Run]) -> Iterator[UUID]:
    """Yield the sessions that end after a run with these ancestors.

    An announced run waits for nothing, unless another run has continued its session.
    """
    for run_id in ancestors:
        run = run_on_record(run_id, runs)
        if run.stage in SETTLED and run.continued_by is None:
            return
        yield run.session_id


def run_on_record(run_id: UUID, runs: Mapping[UUID, Run]) -> Run:
    """Return the run. Raise `ReadAgain` if it was not read."""
    run = runs.get(run_id)
    if run is None:
        raise ReadAgain(f"run {run_id} was not read; read it and retry")
    return run


def _path_to(run_id: UUID, came_from: Mapping[UUID, tuple[UUID, ...]]) -> tuple[UUID, ...]:
    path = [run_id]
    while by := came_from[path[-1]]:
        path += reversed(by)
    return tuple(reversed(path))


def render_path(path: Sequence[UUID]) -> str:
    """Return the runs between the first and the last of a path, as text for a refusal."""
    between = [f"run {run_id}" for run_id in path[1:-1]]
    more = len(between) - PATH_SHOWN_MAX
    shown = " → ".join(between[:PATH_SHOWN_MAX])
    return f"{shown} and {more} more" if more > 0 else shown
