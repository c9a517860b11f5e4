"""The states of a run in order: the changes by each event, and the event that last set each field.

The states are those that `GET /v1/runs/{runId}` shows, folded once from the run's own events.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from application.log.envelope import RecordedEvent
from application.ports.run_bars import ReachedStage
from application.queries.access import Caller
from application.queries.as_of import resolve_as_of
from application.queries.changes.documents import (
    SET_BY_NO_EVENT,
    PatchOperation,
    StateDocument,
    inner_texts,
    references_in,
    run_document,
    texts_of,
    with_texts,
)
from application.queries.changes.json_patch import Operation, difference, is_same
from application.queries.command import Column, Command, Option
from application.queries.errors import QueryError, invalid_value
from application.queries.operation import PageAfter, ReadAsOf, operation
from application.queries.runs import VERSION_MAX, events_of_run, visible_run
from application.queries.services import QueryServices
from application.queries.views.event import ActorView
from application.queries.views.run import RunMetadataView, RunView
from application.queries.views.view import Answer, View
from domain.configuration.problems import parts_of, pointer_of
from domain.run.lifecycle import STAGE_REACHED_BY
from domain.states import states

EVENTS_MAX = 10_000
"""A run usually has a few dozen events; an undo that keeps failing adds one per attempt."""
FIELDS_MAX = 50
FIELD_CHARACTERS_MAX = 256
STATES_AT_ONCE = 50
"""States computed without a pause; each takes about 100 µs."""


class StateChangeView(View):
    """The effect of one event on the run. `changes` is the patch (RFC 6902) from the previous
    state, initially `{}`, to the state of `version`."""

    position: int
    version: int
    type: str
    recorded_at: datetime
    actor: ActorView
    changes: list[PatchOperation]


class SetByView(View):
    """The event that last set a field."""

    position: int
    version: int
    type: str


class RunHistoryView(View):
    """The states of a run in order. `version` is the newest state considered; `setBy` maps each of
    its fields to the event that last set it. `nextAfter` is null on the last page."""

    run_id: UUID
    version: int
    items: list[StateChangeView]
    set_by: dict[str, SetByView]
    next_after: int | None


FieldPath = tuple[str, ...]
_ABSENT = object()


class GetRunHistory(PageAfter, ReadAsOf):
    """Parameters of `get_run_history`."""

    after: int = Field(
        0,
        ge=0,
        le=VERSION_MAX,
        description=("Only states after this version: `nextAfter` of the previous page."),
    )
    fields_changed: tuple[
        Annotated[str, Field(min_length=1, max_length=FIELD_CHARACTERS_MAX)], ...
    ] = Field(
        (),
        max_length=FIELDS_MAX,
        alias="field",
        description=(
            "Only changes of this field of the run (repeatable): its name, or a JSON pointer such"
            " as `/announcement/state`."
        ),
    )


@operation(
    "GET",
    "/v1/runs/{runId}/history",
    name="getRunHistory",
    tag="runs",
    scope="read",
    summary="Show the states of a run, and the event that caused each change",
    description=(
        "Returns, for each event of the run, its changes as a patch (RFC 6902) from the previous"
        " state of the run to the next; the first patch applies to `{}`. All patches in order"
        " give the run at `version`. `setBy` maps each field of the newest state, or of the state"
        " as of `at`, to the event that last set it; with `field`, only those fields. An erased"
        " text is null, but the event that set it is still known. A token with scope `content`"
        " gets the run with its texts, others a summary."
    ),
    errors=("not_found",),
    command=Command(
        "run history",
        by_hand=True,
        options={
            "after": Option(metavar="VERSION", help="Only states after this version."),
            "field": Option(
                metavar="FIELD",
                help=(
                    "Only changes of this field: a name, or a pointer such as"
                    " /announcement/state. May be repeated."
                ),
            ),
        },
        limit=1_000,
        columns=(
            Column("POSITION", "position", right=True),
            Column("VERSION", "version", right=True),
            Column("TIME", "recordedAt", "instant"),
            Column("EVENT", "type"),
            Column("BY", "actor.session|actor.token|actor.kind", elastic=True),
            Column("CHANGES", "changes", "changes", folds=True),
        ),
    ),
)
async def get_run_history(
    services: QueryServices, caller: Caller, run_id: str, query: GetRunHistory
) -> Answer[RunHistoryView]:
    """Return the states of a run after version `after`, restricted to the requested fields."""
    moment = await resolve_as_of(services, caller, query.at)
    run = await visible_run(services, caller, run_id, moment)
    is_full = caller.may("content") and await services.access.covers_run(caller, run)
    shown = RunView if is_full else RunMetadataView
    wanted = [_field_path(text, shown) for text in query.fields_changed]
    events = await events_of_run(
        services, run.run_id, after=0, until=moment.position, count=EVENTS_MAX + 1
    )
    if len(events) > EVENTS_MAX:
        detail = f"the run has more than {EVENTS_MAX} events; use at to read an earlier state"
        raise QueryError("invalid_request", detail, position=moment.position)
    contents = services.work.contents
    inner = await contents.texts(inner_texts(run)) if is_full else {}
    limit = query.limit
    page: list[tuple[RecordedEvent, list[Operation]]] = []
    set_by: dict[FieldPath, RecordedEvent] = {}
    before: StateDocument = {}
    stages: list[ReachedStage] = []
    for number, step in enumerate(states(events)):
        recorded, state = step.at, step.run
        stages += _reached(recorded)
        document = run_document(state, inner, stages, is_full=is_full)
        changed = _changed_fields(before, document, wanted)
        set_by |= dict.fromkeys(changed, recorded)
        is_behind = recorded.envelope.version > query.after
        if is_behind and len(page) <= limit and (changed or not wanted):
            page.append((recorded, _about(difference(before, document), wanted)))
        before = document
        if number % STATES_AT_ONCE == STATES_AT_ONCE - 1:
            await asyncio.sleep(0)
    following = page[limit - 1][0].envelope.version if len(page) > limit else None
    del page[limit:]
    refs = references_in([operation for _, operations in page for operation in operations])
    texts = await texts_of(refs, contents, is_full=is_full)
    view = RunHistoryView(
        run_id=run.run_id,
        version=run.version,
        items=[_change_view(recorded, operations, texts) for recorded, operations in page],
        set_by={_name_of(path): recorded.envelope for path, recorded in set_by.items()},
        next_after=following,
    )
    return Answer(view, moment.position)


def _reached(recorded: RecordedEvent) -> list[ReachedStage]:
    """Return the stage that a run reaches by an event, if it does."""
    envelope = recorded.envelope
    stage = STAGE_REACHED_BY.get(envelope.type)
    return [ReachedStage(stage, envelope.position, envelope.recorded_at)] if stage else []


def _field_path(text: str, view: type[View]) -> FieldPath:
    """Return the path of a field given by name or JSON pointer.

    Raises:
        QueryError: A run has no such field.
    """
    fields = [field.alias or name for name, field in view.model_fields.items()]
    names = [name for name in fields if name != SET_BY_NO_EVENT]
    try:
        path = parts_of(text) if text.startswith("/") else (text,)
    except ValueError:
        path = ()
    if path and path[0] == SET_BY_NO_EVENT:
        raise invalid_value(
            "/query/field",
            f"{SET_BY_NO_EVENT} is not set by events of this run, but recorded by each respawn as"
            " respawnedFrom; list runs by respawnedFrom to find them",
        )
    if not path or path[0] not in names:
        raise invalid_value(
            "/query/field",
            "must be a field of a run, or a JSON pointer into one; the fields"
            f" are {', '.join(names)}",
        )
    return path


def _name_of(path: FieldPath) -> str:
    return path[0] if len(path) == 1 else pointer_of(path)


def _changed_fields(
    before: StateDocument, document: StateDocument, wanted: Sequence[FieldPath]
) -> list[FieldPath]:
    """Return the wanted fields, or all top-level fields, that differ."""
    if not wanted:
        # A state has about fifty fields, and nearly all are equal scalars.
        return [
            (name,)
            for name, value in document.items()
            if name not in before or not is_same(before[name], value)
        ]
    return [
        path for path in wanted if not is_same(_value_at(before, path), _value_at(document, path))
    ]


def _value_at(document: Any, path: FieldPath) -> Any:
    value = document
    for part in path:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _ABSENT
    return value


def _about(operations: list[Operation], wanted: Sequence[FieldPath]) -> list[Operation]:
    """Return the operations that change one of the wanted fields or a value that contains it."""
    if not wanted:
        return operations
    return [
        operation
        for operation in operations
        if any(_is_about(parts_of(str(operation["path"])), path) for path in wanted)
    ]


def _is_about(place: FieldPath, path: FieldPath) -> bool:
    length = min(len(place), len(path))
    return place[:length] == path[:length]


def _change_view(
    recorded: RecordedEvent, operations: Sequence[Operation], texts: Mapping[UUID, str]
) -> StateChangeView:
    return StateChangeView.from_source(
        recorded.envelope,
        actor=recorded.envelope.provenance.actor,
        changes=[with_texts(operation, texts) for operation in operations],
    )
