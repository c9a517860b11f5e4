"""The filter of runs: each field names the column of run rows that it compares, and how."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from pydantic import Field

from application.ports.registry import (
    Comparison,
    LiveRuns,
    Registry,
    RunCondition,
    RunQuery,
    StatusRows,
)
from application.queries.access import Caller
from application.queries.as_of import read_moment
from application.queries.errors import QueryError, invalid_value
from application.queries.operation import Parameters
from application.queries.paging import Cursor
from application.queries.services import QueryServices
from application.queries.session_reference import resolve_root, resolve_session_key
from application.queries.stage_reference import position_of_stage
from application.queries.views.run import ROWS_BY_STATUS, RecordedStage, RunStatus
from domain.run.facts import RunOutcome
from domain.run.lifecycle import OVER
from domain.spawn.stages import RULE_NAMES
from domain.values.moments import MOMENT_CHARACTERS_MAX, MOMENT_FORMS, RunStageName

TEXT_CHARACTERS_MAX = 2048
DEPTH_MAX = 64
RUN_ID_CHARACTERS = 36
RUN_ID_SCHEMA: dict[str, Any] = {
    "format": "uuid",
    "minLength": RUN_ID_CHARACTERS,
    "maxLength": RUN_ID_CHARACTERS,
}
"""Documented but not enforced as a limit: any other text is a run that does not exist (404)."""
TREE_DESCRIPTION = (
    "Only the tree below this root session: a session key, a session id, or `current`."
)


class FilterContext(NamedTuple):
    """Context in which a filter value is resolved: the caller's names, as of a position."""

    services: QueryServices
    caller: Caller
    place: Cursor
    pointer: str
    """JSON pointer of the value in the request, for error messages."""


class RunConditions(NamedTuple):
    """Row conditions for one filter value."""

    conditions: tuple[RunCondition, ...]


Resolver = Callable[[FilterContext, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class ColumnFilter:
    """Metadata of a filter field: how it compares run rows.

    Attributes:
        column: A column of `RunRow`.
        comparison: The comparison operator.
        resolve: Returns the value to compare, or `RunConditions`.
        needs_family: True if no index supports the filter. It then requires `requester`, `tree` or
            `rule`, which bound the number of rows to scan.
    """

    column: str
    comparison: Comparison = "="
    resolve: Resolver | None = None
    needs_family: bool = False

    async def conditions(self, context: FilterContext, given: Any) -> Sequence[RunCondition]:
        """Return the conditions for the value that the caller gave."""
        # Sorted, so that equal queries have equal cursors.
        value = tuple(sorted(set(given))) if isinstance(given, tuple) else given
        if self.resolve is not None:
            value = await self.resolve(context, value)
        if isinstance(value, RunConditions):
            return value.conditions
        return (RunCondition(self.column, self.comparison, value),)


async def _requester(context: FilterContext, text: str) -> str:
    services, caller, place, pointer = context
    return await resolve_session_key(services, caller, text, pointer=pointer, at=place.at)


async def _tree(context: FilterContext, text: str) -> str:
    services, caller, place, _ = context
    return await resolve_root(services, caller, text, at=place.at)


async def _statuses(_: FilterContext, names: Sequence[RunStatus]) -> Sequence[StatusRows]:
    return tuple(ROWS_BY_STATUS[status] for status in names)


def _creation(of_position: Comparison, of_instant: Comparison) -> Resolver:
    async def resolve(context: FilterContext, text: str) -> RunConditions:
        moment = await _moment(context, text)
        if isinstance(moment, int):
            return RunConditions((RunCondition("created_position", of_position, moment),))
        return RunConditions((RunCondition("created_at", of_instant, moment),))

    return resolve


async def _moment(context: FilterContext, text: str) -> int | datetime:
    services, caller, place, pointer = context
    try:
        moment = read_moment(text, place.counts_back_from or services.work.log.now())
        if isinstance(moment, RunStageName):
            return await position_of_stage(services, caller, moment.text, place.at)
    except QueryError as error:
        if error.code != "invalid_request":
            raise
        raise invalid_value(pointer, error.detail) from None
    return moment


def _end(comparison: Comparison) -> Resolver:
    async def resolve(context: FilterContext, text: str) -> RunConditions:
        services, place = context.services, context.place
        moment = await _moment(context, text)
        if isinstance(moment, datetime):
            moment = await services.work.registry.position_at(moment)
        live = await live_runs(services, min(moment, place.at))
        return RunConditions((RunCondition("over_position", comparison, live), IS_OVER))

    return resolve


async def live_runs(services: QueryServices, position: int) -> LiveRuns:
    """Return the runs that were requested and not over as of a position."""
    run_ids = await services.event_counts.live_runs(position)
    # Sorted, so that equal queries have equal cursors.
    return LiveRuns(position, tuple(sorted(run_ids)))


IS_OVER = RunCondition("stage", "any of", tuple(sorted(OVER)))


AgentId = Annotated[str, Field(min_length=1, max_length=64)]
Label = Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS_MAX)]


class RunFilter(Parameters):
    """The filter of runs. A run matches if, for each given field, it matches any of its values.

    A new filter is a field with `ColumnFilter`. If it compares a column of `COLUMNS_BY_CREATION`,
    searches use the index of that column.
    """

    requester: Annotated[str | None, ColumnFilter("requester", resolve=_requester)] = Field(
        None,
        max_length=TEXT_CHARACTERS_MAX,
        description=(
            "Only runs requested by this session: its key in any spelling, its session id, or"
            " `current`."
        ),
    )
    tree: Annotated[str | None, ColumnFilter("root", resolve=_tree)] = Field(
        None, max_length=TEXT_CHARACTERS_MAX, description=TREE_DESCRIPTION
    )
    agent_ids: Annotated[tuple[AgentId, ...], ColumnFilter("agent_id", "any of")] = Field(
        (),
        alias="agentId",
        description=("Only runs of this agent, after any override (repeatable)."),
    )
    labels: Annotated[tuple[Label, ...], ColumnFilter("label", "any of")] = Field(
        (), alias="label", description="Only runs with exactly this label (repeatable)."
    )
    stages: Annotated[tuple[RecordedStage, ...], ColumnFilter("stage", "any of")] = Field(
        (), alias="stage", description="Only runs at this stage (repeatable)."
    )
    statuses: Annotated[tuple[RunStatus, ...], ColumnFilter("status", "any of", _statuses)] = Field(
        (), alias="status", description="Only runs with this status (repeatable)."
    )
    outcomes: Annotated[tuple[RunOutcome, ...], ColumnFilter("outcome", "any of")] = Field(
        (),
        alias="outcome",
        description=("Only runs that ended with this outcome (repeatable)."),
    )
    since: Annotated[str | None, ColumnFilter("created_at", resolve=_creation(">", ">="))] = Field(
        None,
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"Only runs created at or after this moment: {MOMENT_FORMS}.",
        examples=["12h"],
    )
    until: Annotated[str | None, ColumnFilter("created_at", resolve=_creation("<=", "<"))] = Field(
        None,
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"Only runs created before this moment: {MOMENT_FORMS}.",
        examples=["2026-03-01T09:00:00Z"],
    )
    ended_since: Annotated[str | None, ColumnFilter("over_position", resolve=_end(">"))] = Field(
        None,
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"Only runs that ended or were refused after this moment: {MOMENT_FORMS}.",
        examples=["12h"],
    )
    ended_until: Annotated[str | None, ColumnFilter("over_position", resolve=_end("<="))] = Field(
        None,
        max_length=MOMENT_CHARACTERS_MAX,
        description=(
            f"Only runs that ended or were refused at or before this moment: {MOMENT_FORMS}."
        ),
        examples=["2026-03-01T09:00:00Z"],
    )
    rule: Annotated[str | None, ColumnFilter("rule")] = Field(
        None,
        max_length=64,
        description="Only runs refused by this rule.",
        json_schema_extra={"enum": [*RULE_NAMES]},
    )
    depth: Annotated[int | None, ColumnFilter("depth", needs_family=True)] = Field(
        None,
        ge=0,
        le=DEPTH_MAX,
        description="Exact depth. Requires `requester`, `tree` or `rule`.",
    )
    label_prefixes: Annotated[
        tuple[Label, ...], ColumnFilter("label", "begins with", needs_family=True)
    ] = Field(
        (),
        alias="labelPrefix",
        description=(
            "Only runs whose label starts with this text (repeatable), or is a `label`."
            " Requires `requester`, `tree` or `rule`."
        ),
    )
    respawned_from: Annotated[UUID | None, ColumnFilter("respawned_from")] = Field(
        None,
        description="Only respawns of the run with this id.",
        json_schema_extra=RUN_ID_SCHEMA,
    )


class _Filter(NamedTuple):
    name: str
    parameter: str
    where: ColumnFilter


@cache
def _filters(model: type[RunFilter]) -> Sequence[_Filter]:
    return [
        _Filter(name, field.alias or name, where)
        for name, field in model.model_fields.items()
        for where in field.metadata
        if isinstance(where, ColumnFilter)
    ]


async def run_query(
    services: QueryServices, caller: Caller, criteria: RunFilter, place: Cursor
) -> RunQuery:
    """Return the filter as a query with canonical keys and resolved moments.

    Names and times ago are resolved as of the first page, so that all pages use the same query.

    Raises:
        QueryError: A value is invalid, or a filter requires another one.
    """
    given = [
        (filter_field, value)
        for filter_field in _filters(type(criteria))
        if (value := getattr(criteria, filter_field.name)) is not None and value != ()
    ]
    _require_bounds(criteria, given)
    conditions = list[RunCondition]()
    for filter_field, value in given:
        context = FilterContext(services, caller, place, f"/query/{filter_field.parameter}")
        conditions += await filter_field.where.conditions(context, value)
    return RunQuery(tuple(_with_either_label(conditions)))


def _with_either_label(conditions: Sequence[RunCondition]) -> Iterator[RunCondition]:
    """Combine conditions on whole labels and on beginnings: a run needs one of either."""
    labels = {one.comparison: one.value for one in conditions if one.column == "label"}
    yield from (one for one in conditions if len(labels) < 2 or one.column != "label")
    if len(labels) == 2:
        either = labels["any of"], labels["begins with"]
        yield RunCondition("label", "is or begins with", either)


def _require_bounds(criteria: RunFilter, given: Sequence[tuple[_Filter, Any]]) -> None:
    if criteria.rule is not None and criteria.rule not in RULE_NAMES:
        raise invalid_value(
            "/query/rule", (f"is not a rule; the rules are {', '.join(sorted(RULE_NAMES))}")
        )
    if has_family(criteria):
        return
    for filter_field, _ in given:
        if filter_field.where.needs_family:
            detail = "only applies within a requester, a tree or a rule; name one"
            raise invalid_value(f"/query/{filter_field.parameter}", detail)


def has_family(criteria: RunFilter) -> bool:
    """Return True if an index bounds the number of rows to scan."""
    return any(value is not None for value in (criteria.requester, criteria.tree, criteria.rule))


async def narrow_to_tree(registry: Registry, caller: Caller, query: RunQuery) -> RunQuery:
    """Restrict the query to the caller's tree if the caller acts for a single session."""
    if caller.only_session is None or query.value_of("root") is not None:
        return query
    session = await registry.session(caller.only_session)
    root = session.root_session_key if session else caller.only_session
    return RunQuery((*query.conditions, RunCondition("root", "=", root)))
