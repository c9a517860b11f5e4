"""Rules for dependencies: ordered tables over the runs that a request names."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from domain.run.facts import Dependency
from domain.run.state import Run
from domain.spawn.dependencies import (
    DependencyRequest,
    dependency_verdict,
    failed_dependency_text,
    find_cycle,
    render_dependency,
    render_path,
    request_field,
    run_on_record,
)
from domain.values import rules
from domain.values.rules import TableRule
from domain.values.text import quote_name

RUNS_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRuns:
    """Name in a request, the runs that match it, and the candidates to list if none matches."""

    request: DependencyRequest
    runs: Sequence[Run]
    others: Sequence[Run] = ()

    @property
    def is_reference(self) -> bool:
        """Return True if the run's result is to be shared with the child."""
        return self.request.via == "reference"


def _unknown_dependency(named: NamedRuns) -> str | None:
    if named.is_reference or named.runs:
        return None
    request = named.request
    name = quote_name(request.name)
    text = f"{request.via} names {name}, but no run of this tree has that label or id."
    if not named.others:
        return f"{text} No run of this tree can be waited for yet."
    return f"{text} Known: {_list_runs(named.others)}"


def _ambiguous_dependency(named: NamedRuns) -> str | None:
    if named.is_reference or len(named.runs) < 2:
        return None
    request = named.request
    return f"{request.via} names {quote_name(request.name)}, which {_same_label(named.runs)}"


def _unknown_reference(named: NamedRuns) -> str | None:
    if not named.is_reference or named.runs:
        return None
    request = named.request
    text = (
        f"{request_field(request)}: no run of this session has the label or id "
        f"{quote_name(request.name)}."
    )
    if not named.others:
        return f"{text} It has not spawned any run yet."
    return f"{text} Known: {_list_runs(named.others)}"


def _ambiguous_reference(named: NamedRuns) -> str | None:
    request, runs = named.request, named.runs
    if not named.is_reference or len(runs) < 2:
        return None
    name = quote_name(request.name)
    if all(run.label == request.name for run in runs):
        return f"{request_field(request)}: {name} {_same_label(runs)}"
    return (
        f"{request_field(request)}: {name} is a prefix of {len(runs)} labels:"
        f" {_list_runs(runs)}; give a whole label or a run id"
    )


def _same_label(runs: Sequence[Run]) -> str:
    which = ", ".join(f"run {run.run_id}" for run in runs[:RUNS_SHOWN_MAX])
    return f"is the label of {len(runs)} sessions: {which}; give a run id"


def _list_runs(runs: Sequence[Run]) -> str:
    shown = ", ".join(
        f"{quote_name(run.label)} (run {run.run_id})" if run.label else f"run {run.run_id}"
        for run in runs[:RUNS_SHOWN_MAX]
    )
    return f"{shown}, and more" if len(runs) > RUNS_SHOWN_MAX else shown


NAMES: tuple[TableRule[NamedRuns], ...] = (
    TableRule(rules.DEPENDENCY_UNKNOWN, _unknown_dependency),
    TableRule(rules.DEPENDENCY_AMBIGUOUS, _ambiguous_dependency),
    TableRule(rules.REFERENCE_UNKNOWN, _unknown_reference),
    TableRule(rules.REFERENCE_AMBIGUOUS, _ambiguous_reference),
)
"""Rules for each name, checked before the spawn is decided: its meaning does not change later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyFacts:
    """Facts about one dependency of a spawn.

    Attributes:
        ancestors: The runs above the spawn, its requester's own first.
        waiting: All runs of the tree that depend on others and are not queued yet.
        runs: All of these runs as recorded, and those that `linked_runs` returns for `waiting`.
    """

    dependency: Dependency
    ancestors: Sequence[UUID]
    waiting: Collection[Run]
    runs: Mapping[UUID, Run]

    @property
    def target(self) -> Run:
        """Return the run to wait for. Raise `ReadAgain` if it was not read."""
        return run_on_record(self.dependency.run_id, self.runs)


def _closes_cycle(facts: DependencyFacts) -> str | None:
    dependency = facts.dependency
    if dependency_verdict(dependency, facts.target) != "waits":
        return None
    path = find_cycle(facts.ancestors, [dependency.run_id], facts.waiting, facts.runs)
    if path is None:
        return None
    text = f"{request_field(dependency)} names {render_dependency(dependency)}, which "
    if len(path) == 1:
        return f"{text}is this session's own run or an ancestor, which ends only after its children"
    by = render_path(path)
    text += f"waits{f', by {by},' if by else ''} for run {path[-1]} above this spawn"
    return f"{text}: this would be a dependency cycle"


def _has_failed(facts: DependencyFacts) -> str | None:
    if dependency_verdict(facts.dependency, facts.target) != "failed":
        return None
    return failed_dependency_text(facts.dependency, facts.target)


WAITS: tuple[TableRule[DependencyFacts], ...] = (
    TableRule(rules.DEPENDENCY_CYCLE, _closes_cycle),
    TableRule(rules.DEPENDENCY_FAILED, _has_failed),
)
"""Rules for each dependency, checked under the log's lock."""
