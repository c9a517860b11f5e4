"""Whether what a run depends on is done, from what is on record about it."""

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
    """A run by the name that a request has for it: its label or its id."""

    name: str
    via: DependencyVia
    require: DependencyNeeds = "success"


def dependencies_text(requests: Iterable[DependencyRequest]) -> str:
    """The names of a request as a text, for they are free text until each stands for a run."""
    return compact_json([asdict(one) for one in requests])


def read_dependencies(text: str) -> tuple[DependencyRequest, ...]:
    """The names of a text that `dependencies_text` gave."""
    named = read_json(text)
    assert isinstance(named, list)
    return tuple(DependencyRequest(**one) for one in named)


DependencyVerdict = Literal["waits", "met", "failed"]


class DependencyFailed(Rejected):
    """A run that the spawn depends on is over, and not as it was required to be."""

    def __init__(self, dependency: Dependency, target: Run) -> None:
        super().__init__(f"run {dependency.run_id} ended as {target.outcome or target.stage}")
        self.dependency = dependency
        self.target = target

    @property
    def refusal(self) -> Refusal:
        """Return the refusal of a spawn whose dependency has failed."""
        text = failed_dependency_text(self.dependency, self.target)
        return rules.DEPENDENCY_FAILED.refusal(text)


@dataclass(frozen=True, slots=True)
class EvaluatedDependencies:
    """What came of dependencies so far: those that were met now, those that are still waited for,
    and the first that failed."""

    met: tuple[tuple[UUID, RunOutcome], ...] = ()
    waits_for: tuple[UUID, ...] = ()
    failed: Dependency | None = None


def outcome_text(target: Run) -> str:
    """In words, for those that depend on it."""
    if target.stage == "refused":
        return "was refused"
    return "was stopped" if target.outcome == "stopped" else f"ended as {target.outcome}"


def render_dependency(dependency: Dependency) -> str:
    """The run as it was asked for, and which one that is."""
    if dependency.name == str(dependency.run_id):
        return f"run {dependency.run_id}"
    return f"{quote_name(dependency.name)} (run {dependency.run_id})"


def request_field(dependency: Dependency | DependencyRequest) -> str:
    """Where in its request the name stands."""
    if dependency.via != "reference":
        return dependency.via
    return f"sharedContext.${single_line(dependency.name, characters_max=SHOWN_CHARACTERS_MAX)}"


def failed_dependency_text(dependency: Dependency, target: Run) -> str:
    """What is told of a spawn that depends on a run which is over, and failed."""
    text = (
        f"{request_field(dependency)} names {render_dependency(dependency)}, which "
        f"{outcome_text(target)}"
    )
    if target.stage == "refused" or dependency.via == "reference":
        text += "; spawn it again, and name the new one"
    else:
        text += (
            "; spawn it again, or say "
            f'{{"run": {quote_name(dependency.name)}, "require": "ended"}} to'
            " go on all the same"
        )
    return text


def dependency_verdict(dependency: Dependency, target: Run) -> DependencyVerdict:
    """A run is done when it is over and all below it is; one that was refused never ran. Whatever
    goes on below one that failed makes no success of it."""
    is_over = target.stage in SETTLED or target.stage == "ended"
    must_succeed = dependency.require == "success"
    if target.stage == "refused" or (must_succeed and is_over and target.outcome != "success"):
        return "failed"
    is_done = target.stage in SETTLED or (is_over and not target.pending_descendants)
    return "met" if is_done else "waits"


def evaluate_dependencies(run: Run, runs: Mapping[UUID, Run]) -> EvaluatedDependencies:
    """The dependencies of a run that is prepared, or those that it still waits for.

    Raises `ReadAgain` when `runs` is without one of them.
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
    """The command with what is so of the run's dependencies now.

    Raises `DependencyFailed` for a child that is to be created: a waiting one ends instead.
    """
    judged = evaluate_dependencies(run, runs)
    failed = judged.failed
    found = {"met": judged.met, "waits_for": judged.waits_for}
    if isinstance(command, SettleDependencies):
        return command.changed({**found, "failed": failed.run_id if failed is not None else None})
    if failed is not None:
        raise DependencyFailed(failed, runs[failed.run_id])
    return command.changed(found)


# Whether sessions would wait for each other in a ring, and so for ever.
#
# The run that a session is at ends after all children of the session, whichever of its runs asked
# for them: a session goes on behind a run that yields, is steered, or is over. So sessions are
# compared. Descendants are found from below: a run knows those above it since it was asked for.


PATH_SHOWN_MAX = 20


def find_cycle(
    ancestors: Sequence[UUID],
    targets: Iterable[UUID],
    waiting: Iterable[Run],
    runs: Mapping[UUID, Run],
) -> tuple[UUID, ...] | None:
    """Return the path from one of `targets` to a session above a new child: who waits, and for
    whom, in turn. Return None if the child may wait for the targets, which are not done.

    A new run is waited for by nobody and has nobody below it, so only a path to a session above it
    closes a ring.

    Args:
        ancestors: The runs above the child, its requester's own first.
        targets: The runs that it is to wait for.
        waiting: All runs of the tree that are prepared or wait, and depend on others.
        runs: All of these, and those that `linked_runs` names of `waiting`.

    Raises:
        ReadAgain: `runs` is without one of them.
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
            for one in evaluate_dependencies(run, runs).waits_for:
                if one not in came_from:
                    came_from[one] = by
                    ahead.append(one)
    return None


def linked_runs(waiting: Iterable[Run]) -> set[UUID]:
    """Return the runs that these still wait for, or may come to, and the runs above them."""
    linked: set[UUID] = set()
    for run in waiting:
        named = (one.run_id for one in run.dependencies or ())
        linked.update(named if run.waits_for is None else run.waits_for, run.ancestors or ())
    return linked


def _sessions_above(ancestors: Iterable[UUID], runs: Mapping[UUID, Run]) -> Iterator[UUID]:
    """Yield the sessions that end after a run with these ancestors. A run that is announced waits
    for nothing, unless its session has gone on in its place."""
    for run_id in ancestors:
        run = run_on_record(run_id, runs)
        if run.stage in SETTLED and run.continued_by is None:
            return
        yield run.session_id


def run_on_record(run_id: UUID, runs: Mapping[UUID, Run]) -> Run:
    """Return a run that was read. Raise `ReadAgain` if it was not."""
    run = runs.get(run_id)
    if run is None:
        raise ReadAgain(f"run {run_id} was not read; read it and ask again")
    return run


def _path_to(run_id: UUID, came_from: Mapping[UUID, tuple[UUID, ...]]) -> tuple[UUID, ...]:
    path = [run_id]
    while by := came_from[path[-1]]:
        path += reversed(by)
    return tuple(reversed(path))


def render_path(path: Sequence[UUID]) -> str:
    """Return the runs between the first and the last of a path, in words."""
    between = [f"run {one}" for one in path[1:-1]]
    more = len(between) - PATH_SHOWN_MAX
    shown = " → ".join(between[:PATH_SHOWN_MAX])
    return f"{shown} and {more} more" if more > 0 else shown
