"""The filter of runs: each field says which column of the rows of runs it compares, and how."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from pydantic import Field

from application.ports.registry import Comparison, Registry, RunCondition, RunQuery, StatusRows
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
"""Described and not declared as a limit: another text is the id of no run, and 404."""
TREE_DESCRIPTION = "In the tree below this root session: a key, a session id, or `current`."


class FilterContext(NamedTuple):
    """What the value of a filter is resolved by: the caller's names, as of a position."""

    services: QueryServices
    caller: Caller
    place: Cursor
    pointer: str
    """Where the value is in the request, for errors."""


Resolver = Callable[[FilterContext, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Where:
    """Metadata of a filter: what it compares in the rows of runs.

    Attributes:
        column: A column of `RunRow`.
        comparison: How to compare it.
        resolve: Returns the value to compare, or a whole condition.
        needs_family: True if no index helps, and too many runs would be looked at without
            `requester`, `tree` or `rule`.
    """

    column: str
    comparison: Comparison = "="
    resolve: Resolver | None = None
    needs_family: bool = False

    async def condition(self, context: FilterContext, given: Any) -> RunCondition:
        """Return the condition of a value that a caller has given."""
        # In an order that is not the caller's: the same question has the same cursor.
        value = tuple(sorted(set(given))) if isinstance(given, tuple) else given
        if self.resolve is not None:
            value = await self.resolve(context, value)
        if isinstance(value, RunCondition):
            return value
        return RunCondition(self.column, self.comparison, value)


async def _requester(context: FilterContext, text: str) -> str:
    services, caller, place, pointer = context
    return await resolve_session_key(services, caller, text, pointer=pointer, at=place.at)


async def _tree(context: FilterContext, text: str) -> str:
    services, caller, place, _ = context
    return await resolve_root(services, caller, text, at=place.at)


async def _statuses(_: FilterContext, names: Sequence[RunStatus]) -> Sequence[StatusRows]:
    return tuple(ROWS_BY_STATUS[one] for one in names)


def _creation(of_position: Comparison, of_instant: Comparison) -> Resolver:
    async def resolve(context: FilterContext, text: str) -> RunCondition:
        services, caller, place, pointer = context
        try:
            moment = read_moment(text, place.counts_back_from or services.work.log.now())
            if isinstance(moment, RunStageName):
                moment = await position_of_stage(services, caller, moment.text, place.at)
        except QueryError as error:
            if error.code != "invalid_request":
                raise
            raise invalid_value(pointer, error.detail) from None
        if isinstance(moment, int):
            return RunCondition("created_position", of_position, moment)
        return RunCondition("created_at", of_instant, moment)

    return resolve


AgentId = Annotated[str, Field(min_length=1, max_length=64)]
Label = Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS_MAX)]


class RunFilter(Parameters):
    """The filter of runs. Several values of one field mean any of them.

    A new filter is a field with `Where`. If it compares a value of one of `COLUMNS_BY_CREATION`,
    searches go along the index of that column.
    """

    requester: Annotated[str | None, Where("requester", resolve=_requester)] = Field(
        None,
        max_length=TEXT_CHARACTERS_MAX,
        description="Spawned by this session: its key in any spelling, its id, or `current`.",
    )
    tree: Annotated[str | None, Where("root", resolve=_tree)] = Field(
        None, max_length=TEXT_CHARACTERS_MAX, description=TREE_DESCRIPTION
    )
    agent_ids: Annotated[tuple[AgentId, ...], Where("agent_id", "any of")] = Field(
        (), alias="agentId", description="Of this agent, after any override; of any of several."
    )
    labels: Annotated[tuple[Label, ...], Where("label", "any of")] = Field(
        (), alias="label", description="With exactly this label, or any of several."
    )
    stages: Annotated[tuple[RecordedStage, ...], Where("stage", "any of")] = Field(
        (), alias="stage", description="At this stage, or any of several."
    )
    statuses: Annotated[tuple[RunStatus, ...], Where("status", "any of", _statuses)] = Field(
        (), alias="status", description="With this status, or any of several."
    )
    outcomes: Annotated[tuple[RunOutcome, ...], Where("outcome", "any of")] = Field(
        (), alias="outcome", description="Ended like this, or like any of several."
    )
    since: Annotated[str | None, Where("created_at", resolve=_creation(">", ">="))] = Field(
        None,
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"Created at this moment or later: {MOMENT_FORMS}.",
        examples=["12h"],
    )
    until: Annotated[str | None, Where("created_at", resolve=_creation("<=", "<"))] = Field(
        None,
        max_length=MOMENT_CHARACTERS_MAX,
        description=f"Created before this moment: {MOMENT_FORMS}.",
        examples=["2026-03-01T09:00:00Z"],
    )
    rule: Annotated[str | None, Where("rule")] = Field(
        None,
        max_length=64,
        description="Refused by this rule.",
        json_schema_extra={"enum": [*RULE_NAMES]},
    )
    depth: Annotated[int | None, Where("depth", needs_family=True)] = Field(
        None,
        ge=0,
        le=DEPTH_MAX,
        description="So deep; needs `requester`, `tree` or `rule` beside it.",
    )
    label_prefix: Annotated[str | None, Where("label", "begins with", needs_family=True)] = Field(
        None,
        max_length=TEXT_CHARACTERS_MAX,
        description=(
            "With a label that begins like this; needs `requester`, `tree` or `rule` beside it."
        ),
    )
    respawned_from: Annotated[UUID | None, Where("respawned_from")] = Field(
        None,
        description="Respawned from the run with this id.",
        json_schema_extra=RUN_ID_SCHEMA,
    )


class _Filter(NamedTuple):
    name: str
    parameter: str
    where: Where


@cache
def _filters(model: type[RunFilter]) -> Sequence[_Filter]:
    return [
        _Filter(name, field.alias or name, where)
        for name, field in model.model_fields.items()
        for where in field.metadata
        if isinstance(where, Where)
    ]


async def run_query(
    services: QueryServices, caller: Caller, criteria: RunFilter, place: Cursor
) -> RunQuery:
    """Return the filter with canonical keys and moments, as they were understood when the first
    page was asked for.

    Raises:
        QueryError: A value means nothing, or a filter needs another one beside it.
    """
    given = [
        (one, value)
        for one in _filters(type(criteria))
        if (value := getattr(criteria, one.name)) is not None and value != ()
    ]
    _require_bounds(criteria, given)
    conditions = list[RunCondition]()
    for one, value in given:
        context = FilterContext(services, caller, place, f"/query/{one.parameter}")
        conditions.append(await one.where.condition(context, value))
    return RunQuery(tuple(conditions))


def _require_bounds(criteria: RunFilter, given: Sequence[tuple[_Filter, Any]]) -> None:
    if criteria.rule is not None and criteria.rule not in RULE_NAMES:
        raise invalid_value("/query/rule", f"is no rule; there are {', '.join(sorted(RULE_NAMES))}")
    if any(one is not None for one in (criteria.requester, criteria.tree, criteria.rule)):
        return
    for one, _ in given:
        if one.where.needs_family:
            detail = "needs a requester, a tree or a rule beside it"
            raise invalid_value(f"/query/{one.parameter}", detail)


async def narrow_to_tree(registry: Registry, caller: Caller, query: RunQuery) -> RunQuery:
    """Return the query within the one tree of which a caller for one session may see runs."""
    if caller.only_session is None or query.value_of("root") is not None:
        return query
    session = await registry.session(caller.only_session)
    root = session.root_session_key if session else caller.only_session
    return RunQuery((*query.conditions, RunCondition("root", "=", root)))
