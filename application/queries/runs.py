"""Runs: access checks, the registry in pages, one run, its events, prompt and transcript."""

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal, NamedTuple
from uuid import UUID

from pydantic import Field

from application.concurrency.tasks import cancel_all
from application.log.envelope import RecordedEvent
from application.ports.registry import Registry, RunCondition, RunQuery
from application.ports.run_search import RunWords, ScanWindow
from application.ports.transcripts import RecordedEntry
from application.queries.access import Access, Caller
from application.queries.as_of import AsOf, instant_of, read_moment, resolve_as_of
from application.queries.command import COMMAND_ITEMS_MAX, Column, Command, Option
from application.queries.errors import QueryError, invalid_value
from application.queries.operation import (
    WAIT,
    Page,
    PageAfter,
    ReadAsOf,
    Resource,
    Tool,
    operation,
)
from application.queries.paging import (
    LIMIT_MAX,
    Cursor,
    encode_cursor,
    fingerprint,
    foreign_question,
    read_cursor,
)
from application.queries.run_filter import (
    ColumnFilter,
    Label,
    RunFilter,
    has_family,
    narrow_to_tree,
    run_query,
)
from application.queries.runs_at_work import (
    OutputSoFar,
    elapsed_at,
    with_output,
    with_usage,
)
from application.queries.search.failures import errors_of_cause, runs_with_cause
from application.queries.search.run_totals import run_totals, runs_counted_max
from application.queries.search.run_words import (
    WORDS_CHARACTERS_MAX,
    WORDS_MAX,
    run_words,
    runs_with_words,
)
from application.queries.services import QueryServices
from application.queries.session_reference import UUID_TEXT
from application.queries.views.event import RunEventListView, event_view, events_with_texts
from application.queries.views.run import (
    RunListView,
    RunMetadataView,
    RunStatus,
    RunView,
    read_run,
    run_summaries,
    status_of,
)
from application.queries.views.run_records import (
    PromptPartView,
    PromptView,
    TranscriptEntryView,
    TranscriptView,
)
from application.queries.views.view import Answer
from application.queries.wait import (
    REACHING,
    WaitStage,
    current_run,
    reach_position,
    wait_for_growth,
    wait_seconds,
    wait_until,
)
from application.session.waiting_messages import find_run
from domain.run.error_cause import LINE_CHARACTERS_MAX
from domain.run.events import RunStarted, ScriptsResolved
from domain.run.lifecycle import OVER
from domain.run.state import Run
from domain.values.moments import DURATION_FORMS
from domain.values.record import run_stream

SPOKEN_KINDS = ("session", "message", "progress", "result", "text")


def run_id_of(text: str, noun: str = "run") -> UUID:
    """Return the run id in a path segment, which may also be the id of its announcement.

    Raises:
        QueryError: The text is not an id; the message names the `noun`.
    """
    if not UUID_TEXT.fullmatch(text):
        raise QueryError("not_found", f"{noun} not found")
    return UUID(text)


async def visible_run(services: QueryServices, caller: Caller, text: str, at: AsOf) -> Run:
    """Return a run that the caller may see.

    Raises:
        QueryError: No such run exists, or the caller may not see it.
    """
    run_id = run_id_of(text)
    run = await find_run(services.work, run_id, at=at.position)
    return await _require_visible(services, caller, run, run_id, at)


async def _require_visible(
    services: QueryServices, caller: Caller, run: Run | None, run_id: UUID, at: AsOf
) -> Run:
    if run is None or not (
        await services.access.covers_run(caller, run)
        or await services.access.is_sibling(caller, run)
    ):
        raise QueryError("not_found", "run not found", position=at.position, runId=str(run_id))
    return run


async def newest_run(
    services: QueryServices, caller: Caller, text: str, min_position: int | None = None
) -> tuple[Run, AsOf]:
    """Return the current state of a run, and the position at which it holds.

    The position is at least `min_position`, or, without one, the end of the log. A run that this
    process has followed up to that position is served from memory.
    """
    run_id = run_id_of(text)
    if min_position is None:
        moment = await resolve_as_of(services, caller, None)
    else:
        await reach_position(services, min_position)
        moment = AsOf(max(services.tail.position, min_position), now=True)
    followed = services.tail.newest(run_id)
    if followed is not None and services.tail.position >= moment.position:
        moment = AsOf(services.tail.position, now=True)
        return await _require_visible(services, caller, followed, run_id, moment), moment
    if min_position is not None:
        moment = await resolve_as_of(services, caller, None)
    return await visible_run(services, caller, text, moment), moment


async def readable_run(services: QueryServices, caller: Caller, text: str, at: AsOf) -> Run:
    """Return a run whose texts the caller may read; those of a sibling are refused.

    A child whose session continues may also read its earlier runs.
    """
    run = await visible_run(services, caller, text, at)
    went_on = caller.run_id is not None and run.child_session_key == caller.only_session
    if not went_on and not await services.access.covers_run(caller, run):
        detail = "a sibling's texts are not shown to this token"
        raise QueryError("not_permitted", detail, position=at.position)
    return run


# Pages of the registry, at a bounded cost.


RUNS_EXAMINED_MAX = 5_000
RUNNING_SUMMED_MAX = 500
RUNS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class RunPage:
    """Runs of one page, and the position after which the next page begins, or None."""

    runs: list[Run]
    after_cursor: int | None


async def visible_runs(
    registry: Registry,
    access: Access,
    caller: Caller,
    query: RunQuery,
    place: Cursor,
    *,
    limit: int,
    ascending: bool,
    examined_max: int = RUNS_EXAMINED_MAX,
) -> RunPage:
    """Return up to `limit` runs that the caller may see, scanning at most `examined_max`.

    A caller that may see few of many runs gets a short or empty page, and continues after it.
    """
    query = await narrow_to_tree(registry, caller, query)
    found: list[Run] = []
    known: dict[str, bool] = {}
    after_cursor = place.after if place.after >= 0 else None
    examined = 0
    at_once = limit + 1 if caller.sees_everything else max(limit + 1, RUNS_AT_ONCE)
    while examined < examined_max:
        page_length = min(at_once, examined_max - examined)
        page = await registry.runs(
            query, at=place.at, limit=page_length, after_cursor=after_cursor, ascending=ascending
        )
        for run in page:
            if len(found) == limit:
                return RunPage(found, after_cursor)
            if await access.covers_run(caller, run, known):
                found.append(run)
            after_cursor = run.created_position
        if len(page) < page_length:
            return RunPage(found, None)
        examined += len(page)
    return RunPage(found, after_cursor)


_RUNS_AT = Tool(
    name="runs_at",
    title="Show a past state",
    description="Shows one run, or the runs that your session requested, as of any moment.",
    arguments=("at", "limit", "cursor"),
)


class ListRuns(ReadAsOf, Page, RunFilter):
    """Parameters of `list_runs`."""

    order: Literal["asc", "desc"] = Field("desc", description="Order by creation time.")
    q: str | None = Field(
        None,
        max_length=WORDS_CHARACTERS_MAX,
        description=(
            "Only runs whose label, task, error or rule contain each of these words,"
            f" {WORDS_MAX} at most, ignoring case. Searches the first 10,000 characters of a task"
            " and of an error; for a token without scope `content`, only the previews that lists"
            " show."
        ),
    )
    label_prefixes: Annotated[tuple[Label, ...], ColumnFilter("label", "begins with")] = Field(
        (),
        alias="labelPrefix",
        description="Only runs whose label starts with this text (repeatable), or is a `label`.",
    )
    cause: str | None = Field(
        None,
        max_length=LINE_CHARACTERS_MAX,
        description=(
            "Only runs that failed, timed out or have an unknown outcome with this cause: a"
            " `cause` of `/v1/summary`, or the last line of an error."
        ),
        examples=["TimeoutError: tide service <n>"],
    )
    totals: bool = Field(
        False,
        description=(
            "Include the number of runs by status, agent and rule, and their tokens and cost, in"
            " the first page."
        ),
    )


@operation(
    "GET",
    "/v1/runs",
    name="listRuns",
    tag="runs",
    scope="read",
    summary="List runs, newest first",
    description=(
        "Runs as summaries, newest first. All pages of one listing show one snapshot: the cursor"
        " keeps the position at which the listing began. Each request scans a bounded number of"
        " runs, so a page may be short or empty for a token that may see few of them. The listing"
        " is complete only when `nextCursor` is null."
    ),
    errors=("not_found", "foreign_cursor"),
    tool=_RUNS_AT,
    command=Command(
        "run list",
        "Show runs, newest first, including refused ones.",
        numbered=True,
        options={
            "requester": Option(
                metavar="KEY",
                means="requester",
                help="Only runs requested by this session. me: SPAWNLOG_SESSION_KEY, else main.",
            ),
            "q": Option(
                flag="--words",
                metavar="TEXT",
                help="Only runs whose label, task, error or rule contains each of these words.",
            ),
        },
        columns=(
            Column("RUN", "runId", "id"),
            Column("STATUS", "status", coloured=True),
            Column("AGENT", "agentId"),
            Column("LABEL", "label", elastic=True),
            Column("CREATED", "createdAt", "second", narrow="minute"),
            Column("TOOK", "runtimeMs", "duration", right=True, optional=True),
            Column("RULE", "rule", if_any=True),
            Column("CONTINUES", "continues", "id", if_any=True),
            Column("RESPAWNED FROM", "respawnedFrom", "id", if_any=True),
            Column("REQUESTER", "requesterSessionKey", elastic=True, optional=True),
            Column("TASK", "taskPreview|task", elastic=True, cells_min=20),
        ),
    ),
)
async def list_runs(
    services: QueryServices, caller: Caller, query: ListRuns
) -> Answer[RunListView]:
    """Return a page of the registry as summaries, by creation."""
    at, cursor, order = query.at, query.cursor, query.order
    wanted = run_words(caller, query.q) if query.q is not None else None
    log_id = services.work.log.log_id
    cursor_fingerprint = None
    if cursor is None:
        moment = await resolve_as_of(services, caller, at)
        place = Cursor.first(moment.position, services.work.log.now())
    else:
        place, cursor_fingerprint = read_cursor(cursor, log_id, await services.work.log.head())
        given = read_moment(at, place.counts_back_from or services.work.log.now()) if at else None
        instant = given if isinstance(given, datetime) else None
        moment = AsOf(place.at, now=False, instant=instant)
    # Session names are resolved as of the first page, so that the query stays the same.
    criteria = await run_query(services, caller, query, place)
    question = fingerprint(criteria, order, caller.patterns, at, *(wanted or ()), query.cause)
    if cursor_fingerprint not in (None, question):
        raise foreign_question()
    criteria = await narrow_to_tree(services.work.registry, caller, criteria)
    ascending = order == "asc"
    # No index serves the beginning of a label: the search bounds the scan by itself.
    is_scan = wanted is not None or (query.label_prefixes != () and not has_family(query))
    page = await _page(
        services,
        caller,
        criteria,
        wanted,
        query.cause,
        place,
        query.limit,
        ascending=ascending,
        is_scan=is_scan,
    )
    following = replace(place, after=page.after_cursor) if page.after_cursor is not None else None
    shown, known = await _so_far(services, page.runs, moment)
    running: list[Run] = []
    if query.totals and cursor is None and query.cause is None:
        if page.after_cursor is None and not is_scan:
            running = [run for run in shown if run.run_id in known]
        else:
            running = await running_so_far(services, caller, criteria, place, wanted, moment=moment)
    view = RunListView(
        items=await run_summaries(
            shown,
            services.work.contents,
            services.run_bars,
            with_causes=caller.may("content"),
        ),
        next_cursor=encode_cursor(following, log_id, question) if following else None,
        totals=(
            await run_totals(
                services.run_search,
                services.access,
                caller,
                await _of_cause(services, caller, criteria, wanted, query.cause, place.at),
                wanted,
                at=place.at,
                running=running,
            )
            if query.totals and cursor is None
            else None
        ),
    )
    return Answer(view, place.at)


async def _so_far(
    services: QueryServices, runs: Sequence[Run], moment: AsOf
) -> tuple[list[Run], Mapping[UUID, OutputSoFar]]:
    """Return the runs with their tokens at the moment, and the outputs of those whose tokens are
    known.

    Only runs of now get an elapsed time.
    """
    at_work = [run for run in runs if run.stage == "started"]
    now = services.work.log.now()
    outputs: Mapping[UUID, OutputSoFar] = {}
    if moment.now:
        runs = [elapsed_at(run, now) for run in runs]
        outputs = await services.outputs.so_far(services.transcripts, at_work)
    elif at_work and (instant := await instant_of(services, moment)) is not None:
        outputs = await services.outputs.used_by(services.transcripts, at_work, instant, now)
    shown = [await with_usage(services.work, run, outputs.get(run.run_id)) for run in runs]
    return shown, outputs


async def running_so_far(
    services: QueryServices,
    caller: Caller,
    query: RunQuery,
    place: Cursor,
    words: RunWords | None = None,
    *,
    moment: AsOf,
) -> list[Run]:
    """Return the newest of the matching runs that are running, each with its tokens at the moment.
    Runs whose tokens then are not known are left out.

    The lanes bound the scan: they name all running runs, however long the log is.
    """
    lanes = await services.work.registry.lanes(at=place.at)
    run_ids = tuple(held.run_id for lane in lanes for held in lane.running)
    running = RunCondition("run_id", "any of", run_ids), RunCondition("stage", "=", "started")
    page = await _page(
        services,
        caller,
        RunQuery((*query.conditions, *running)),
        words,
        None,
        place,
        RUNNING_SUMMED_MAX,
        ascending=False,
        is_scan=words is not None,
    )
    shown, known = await _so_far(services, page.runs, moment)
    return [run for run in shown if run.run_id in known]


async def _page(
    services: QueryServices,
    caller: Caller,
    query: RunQuery,
    words: RunWords | None,
    cause: str | None,
    place: Cursor,
    limit: int,
    *,
    ascending: bool,
    is_scan: bool,
) -> RunPage:
    access, registry = services.access, services.work.registry
    if cause is not None:
        of_cause = await runs_with_cause(
            services.run_search,
            registry,
            access,
            caller,
            query,
            words,
            cause,
            place,
            limit=limit,
            ascending=ascending,
        )
        return RunPage(*of_cause)
    if not is_scan:
        return await visible_runs(
            registry, access, caller, query, place, limit=limit, ascending=ascending
        )
    found = await runs_with_words(
        services.run_search, access, caller, query, words, place, limit=limit, ascending=ascending
    )
    return RunPage(*found)


async def _of_cause(
    services: QueryServices,
    caller: Caller,
    query: RunQuery,
    words: RunWords | None,
    cause: str | None,
    at: int,
) -> RunQuery:
    """Return the query for those runs of a cause that totals scan."""
    if cause is None:
        return query
    window = ScanWindow(at, runs_counted_max(caller, words))
    errors, _ = await errors_of_cause(services.run_search, caller, query, words, cause, window)
    named = RunCondition("run_id", "any of", tuple(error.run_id for error in errors))
    return RunQuery((*query.conditions, named))


VERSION_MAX = 2**31 - 1


class GetRun(ReadAsOf):
    """Parameters of `get_run`."""

    version: int | None = Field(
        None,
        ge=1,
        le=VERSION_MAX,
        description="Show the run as of this number of its own events.",
    )
    wait: str | None = WAIT
    until: WaitStage | None = Field(
        None,
        description=(
            "Stage to wait for. Requires `wait`. Default: `ended`. A refusal ends every wait."
        ),
    )


def run_etag(view: RunView | RunMetadataView) -> str:
    """Return an entity tag that changes with every field of the view except the running time."""
    if view.version == 0:
        # A waiting message has no events of its own: those of earlier runs change its view.
        return f'"0.{hashlib.sha256(view.model_dump_json().encode()).hexdigest()[:32]}"'
    # A respawn is recorded by the new run, not by an event of this one.
    respawns = f"-{len(view.respawns)}" if view.respawns else ""
    # Nor is there an event for the tokens and progress of a running run.
    is_running = view.stage == "started" and view.transcript_entries is not None
    entries = f".{view.transcript_entries}" if is_running else ""
    return f'"{view.version}{respawns}{entries}"'


@operation(
    "GET",
    "/v1/runs/{runId}",
    name="getRun",
    tag="runs",
    scope="read",
    summary="Get a run, or wait for one of its stages",
    description=(
        "Returns the run as of now, as of `at`, or after `version` of its own events. With"
        " `wait`, the response comes when the stage `until` is reached, the run is refused, or"
        " the wait is over. While a run is running, `usage`, `estimatedCostUsd`,"
        " `transcriptEntries` and, for a token with scope `content`, the last `progress` come"
        " from its transcript so far, and `runtimeMs` counts up to now. As of an earlier"
        " position, all of them are null."
    ),
    errors=("not_found",),
    etag=run_etag,
    if_none_match=True,
    tool=_RUNS_AT,
    resource=Resource(
        name="run",
        title="A run",
        description="One run: its stage, plan, result and cost.",
    ),
    command=Command(
        "run get",
        "Show one run, now or at an earlier moment.",
        options={"version": None, "until": None},
        fields=(
            Column("run", "runId"),
            Column("status", form="run status"),
            Column("rule", "rule"),
            Column("label", "label"),
            Column("agent", form="run agent"),
            Column("requester", "requesterSessionKey"),
            Column("parent", "parentRunId"),
            Column("child", "childSessionKey"),
            Column("session", "sessionId"),
            Column("continues", "continues"),
            Column("respawned from", "respawnedFrom"),
            Column("depth", form="run depth"),
            Column("model", form="run model"),
            Column("thinking", "thinking"),
            Column("timeout", "runTimeoutSeconds", "seconds"),
            Column("mode", "mode"),
            Column("cleanup", "cleanup"),
            Column("workspace", "workspaceDir"),
            Column("attached", "attachments", "attachments"),
            Column("created", "createdAt", "instant"),
            Column("started", "startedAt", "instant"),
            Column("ended", "endedAt", "instant"),
            Column("stopped by", "stopRequestedBy"),
            Column("stop reason", "stopReason"),
            Column("announced", "announcedAt", "instant"),
            Column("announcement", "announcement.state"),
            Column("archived", "archivedAt", "instant"),
            Column("took", "runtimeMs", "duration"),
            Column("tokens", "usage", "tokens"),
            Column("cost", form="run cost"),
            Column("transcript", "transcriptPath"),
            Column("configuration", "configRevision"),
        ),
    ),
)
async def get_run(
    services: QueryServices, caller: Caller, run_id: str, query: GetRun
) -> Answer[RunView | RunMetadataView]:
    """Return one run: now, as of `at`, after `version` events, or once it reaches `until`.

    Texts are left out if the caller may not read them.
    """
    asked_at = time.monotonic()
    at, version, wait, until = query.at, query.version, query.wait, query.until
    min_position = query.min_position
    seconds = wait_seconds(wait)
    if sum(value is not None for value in (wait, at, version)) > 1:
        raise QueryError("invalid_request", "use only one of wait, at and version")
    if until is not None and wait is None:
        raise QueryError("invalid_request", "`until` requires `wait`, for example `wait=30s`")
    if at is not None:
        moment = await resolve_as_of(services, caller, at)
        run = await visible_run(services, caller, run_id, moment)
    else:
        if seconds:
            await _wait_for_stage(services, caller, run_id, until or "ended", seconds)
        if min_position is None:
            # At least the end of the log when the request came, so that no read goes backwards.
            min_position = services.tail.end_since(asked_at)
        run, moment = await newest_run(services, caller, run_id, min_position)
    if version is not None:
        earlier = await services.work.registry.run_at_version(run.run_id, version)
        if earlier is None:
            detail = f"the run has {run.version} events; ask for one of them"
            raise QueryError("not_found", detail, position=moment.position)
        run = earlier
    work = services.work
    # A run at an earlier version is shown as of that version's event.
    shown_at = moment
    if version is not None:
        shown_at = AsOf(await _position_of(services, run, version), now=False)
    respawns = await _visible_respawns(services, caller, run, shown_at.position)
    if shown_at.now and run.stage == "started":
        await services.transcripts.flushes.flush(run.run_id)
    (shown,), outputs = await _so_far(services, (run,), shown_at)
    is_full = caller.may("content") and await services.access.covers_run(caller, run)
    form = RunView if is_full else RunMetadataView
    # After a wait, texts that this process has just recorded are taken from memory.
    view = await read_run(
        form, shown, work.contents, services.run_bars, respawns, recent=seconds > 0
    )
    output = outputs.get(run.run_id) if shown_at.now else None
    return Answer(with_output(view, output) if output is not None else view, moment.position)


async def _position_of(services: QueryServices, run: Run, version: int) -> int:
    """Return the position of the run's event with this version."""
    until = await services.work.log.head()
    events = await events_of_run(services, run.run_id, after=0, until=until, count=version)
    return events[version - 1].envelope.position


async def _visible_respawns(
    services: QueryServices, caller: Caller, run: Run, at: int
) -> list[UUID]:
    respawns = await services.work.registry.respawns(run.run_id, at=at)
    if caller.sees_everything:
        return [respawn.run_id for respawn in respawns]
    keys = {respawn.requester for respawn in respawns}
    covered = {key for key in keys if await services.access.covers_session(caller, key)}
    return [respawn.run_id for respawn in respawns if respawn.requester in covered]


async def _wait_for_stage(
    services: QueryServices, caller: Caller, text: str, until: WaitStage, seconds: float
) -> None:
    # The last state in memory is enough to start waiting: later events wake the wait.
    known = services.tail.newest(run_id_of(text))
    run, _ = await newest_run(services, caller, text, services.tail.position if known else None)
    await wait_until(services, run, until, seconds)


class ListRunEvents(PageAfter, ReadAsOf):
    """Parameters of `list_run_events`."""

    limit: int = Field(LIMIT_MAX, ge=1, le=LIMIT_MAX, description="Maximum number of items.")


@operation(
    "GET",
    "/v1/runs/{runId}/events",
    name="listRunEvents",
    tag="runs",
    scope="read",
    summary="List the events of a run, in order",
    description=(
        "Returns events after `after`, in order, with their envelopes. Free texts are references."
        " A token with scope `content` also gets the texts of failures: `texts.error` of an"
        " `EffectAttempted` says why an effect failed, and `texts.errors` of `ScriptsResolved`"
        " why context scripts failed, by their ids. `texts.reason` is the reason of a"
        " `StopRequested` or `EffectRedriven`; if a stop ended a run at once, its reason is"
        " `texts.error` of `RunEnded`."
    ),
    errors=("not_found",),
    command=Command(
        "run events",
        "Show the events of a run, in order.",
        options={"after": None, "limit": None},
        limit=COMMAND_ITEMS_MAX,
    ),
)
async def list_run_events(
    services: QueryServices, caller: Caller, run_id: str, query: ListRunEvents
) -> Answer[RunEventListView]:
    """Return a page of the events in the run's own stream, as of `at`."""
    moment = await resolve_as_of(services, caller, query.at)
    run = await visible_run(services, caller, run_id, moment)
    limit = query.limit
    events = await events_of_run(
        services, run.run_id, after=query.after, until=moment.position, count=limit + 1
    )
    page = events[:limit]
    if caller.may("content") and await services.access.covers_run(caller, run):
        items = await events_with_texts(page, services.work.contents)
    else:
        items = [event_view(event) for event in page]
    following = items[-1].position if len(events) > limit else None
    return Answer(RunEventListView(items=items, next_after=following), moment.position)


async def events_of_run(
    services: QueryServices, run_id: UUID, *, after: int, until: int, count: int
) -> list[RecordedEvent]:
    """Return at least `count` events of the run's own stream, or all if there are fewer.

    The log's index also returns events about the run from other streams, which are skipped.
    """
    found: list[RecordedEvent] = []
    while len(found) < count:
        page = await services.work.log.read(
            after=after, limit=LIMIT_MAX, run_id=run_id, until=until
        )
        found += [recorded for recorded in page if recorded.envelope.stream == run_stream(run_id)]
        if len(page) < LIMIT_MAX:
            break
        after = page[-1].envelope.position
    return found


@operation(
    "GET",
    "/v1/runs/{runId}/prompt",
    name="getRunPrompt",
    tag="runs",
    scope="content",
    summary="Show the prompt of a run and the source of each part",
    description=(
        "Returns system prompt and message, and the parts that cover every byte of both. Each"
        " part has its source, its UTF-8 byte offsets within its text, and the SHA-256 of its"
        " bytes."
    ),
    errors=("not_found", "not_started", "erased"),
    resource=Resource(
        name="prompt",
        title="A run's prompt",
        description="The prompt that the sub-agent received.",
    ),
    command=Command("run prompt", "Show the prompt of a run and the source of each part."),
)
async def get_run_prompt(
    services: QueryServices, caller: Caller, run_id: str, query: ReadAsOf
) -> Answer[PromptView]:
    """Return the prompt that the child received, if the run had started by `at`."""
    moment = await resolve_as_of(services, caller, query.at)
    run = await readable_run(services, caller, run_id, moment)
    if run.system_prompt is None or run.message is None:
        raise QueryError(
            "not_started",
            "the run has not started, so it has no prompt yet",
            position=moment.position,
        )
    texts = await services.work.contents.texts((run.system_prompt, run.message))
    system_prompt, message = texts.get(run.system_prompt.id), texts.get(run.message.id)
    if system_prompt is None or message is None:
        raise QueryError("erased", "the prompt of this run was erased", position=moment.position)
    events = await services.work.log.read(limit=1, run_id=run.run_id, types=("RunStarted",))
    started = events[0].event
    assert isinstance(started, RunStarted)
    reused = await _reused_scripts(services, run)
    data = {"systemPrompt": system_prompt.encode(), "message": message.encode()}
    parts = [
        PromptPartView.from_source(
            part,
            sha256=hashlib.sha256(data[part.of][part.start : part.end]).hexdigest(),
            reused_from=reused.get(part.source),
        )
        for part in started.parts
    ]
    view = PromptView(system_prompt=system_prompt, message=message, parts=parts)
    return Answer(view, moment.position)


async def _reused_scripts(services: QueryServices, run: Run) -> dict[str, UUID]:
    """Return the earlier run whose script output was reused, by source of a prompt part."""
    if run.respawn is None or run.respawn.scripts == "again":
        return {}
    resolved = await services.work.event(ScriptsResolved, run.run_id)
    return {
        f"script:{receipt.id}": receipt.reused_from
        for receipt in resolved.receipts
        if receipt.reused_from is not None
    }


class GetRunTranscript(PageAfter, ReadAsOf):
    """Parameters of `get_run_transcript`."""

    tools: bool = Field(False, description="Include tool calls and token counts.")
    last: int | None = Field(
        None,
        ge=1,
        le=LIMIT_MAX,
        description=(
            "Return this number of entries from the end. Cannot be combined with `after` or"
            " `limit`."
        ),
    )
    wait: str | None = Field(
        None,
        max_length=16,
        description=(
            "How long to wait for an entry after `after`, or for the end of the run, 60 s at"
            f" most: {DURATION_FORMS}. Cannot be combined with `at` or `last`."
        ),
        examples=["30s"],
    )


@operation(
    "GET",
    "/v1/runs/{runId}/transcript",
    name="getRunTranscript",
    tag="runs",
    scope="content",
    summary="Show the transcript of a run, or follow it",
    description=(
        "Returns entries in order, also before the run ends. The first entry of the run's own is"
        " its message. Tool calls and token counts are included with `tools=true`. If the child's"
        " context was forked, a leading `session` entry says how many of the following entries"
        " (`entries`) come from the requester's session. With `at`, it has the entries that had"
        " arrived when that position was recorded, or all of them if the run had ended by then."
        " To follow a run, repeat the request with `wait` and with `after` set to `nextAfter`, or"
        " to `lastSequence` if that is null, until `complete` is true and `nextAfter` is null."
        " Alternatively, send `Accept: text/event-stream`: each entry is an event `entry` whose"
        " `id` is its sequence number, and an event `end` follows the last one. The stream"
        " resumes after `Last-Event-ID`, else after `after`, else at the first entry."
    ),
    errors=("not_found", "erased"),
    streams=True,
    resource=Resource(
        name="transcript",
        title="A run's transcript",
        description="The last entries of the transcript.",
        query={"last": LIMIT_MAX, "tools": True},
    ),
    command=Command(
        "run log",
        by_hand=True,
        options={
            "after": Option(metavar="SEQUENCE", help="Only entries after this sequence number."),
            "tools": Option(help="Include tool calls."),
            "last": None,
        },
        limit=200,
    ),
)
async def get_run_transcript(
    services: QueryServices, caller: Caller, run_id: str, query: GetRunTranscript
) -> Answer[TranscriptView]:
    """Return a page of the transcript, or its `last` entries.

    With `wait`, an empty page waits for the first entry after `after`, or for the end of the run.
    """
    after, limit, last, wait = query.after, query.limit, query.last, query.wait
    seconds = wait_seconds(wait)
    if wait is not None and (query.at is not None or last is not None):
        raise invalid_value("/query/wait", "cannot be combined with at or last")
    if last is not None and (after or "limit" in query.model_fields_set):
        raise invalid_value("/query/last", "cannot be combined with after or limit")
    moment = await resolve_as_of(services, caller, query.at)
    run = await readable_run(services, caller, run_id, moment)
    kinds = None if query.tools else SPOKEN_KINDS
    await require_transcript(services, run, moment.position)
    if moment.now and last is None:
        position = moment.position
        page = await newest_entries(services, run, after=after, limit=limit, kinds=kinds)
        if seconds and not (page.entries or page.is_complete):
            await wait_for_entry(services, run, after=page.last, seconds=seconds)
            page = await newest_entries(services, run, after=page.last, limit=limit, kinds=kinds)
            position = max(position, services.tail.position)
        return Answer(_transcript_view(page), position)
    until = await entries_until(services, run, moment)
    if last is not None:
        found = await services.transcripts.read_last(
            run.run_id, until=until, limit=last, kinds=kinds
        )
        end = found[-1].sequence if found else 0
        return Answer(_transcript_view(EntryPage(run, found, None, end)), moment.position)
    assert until is not None
    page = await entries_between(services, run, after, until, limit=limit, kinds=kinds)
    return Answer(_transcript_view(page), moment.position)


class EntryPage(NamedTuple):
    """Entries of a transcript.

    Attributes:
        run: The run as of the page.
        entries: The entries.
        following: The sequence number after which the next page begins, or None.
        last: The sequence number up to which the transcript was read, including other kinds.
    """

    run: Run
    entries: Sequence[RecordedEntry]
    following: int | None
    last: int

    @property
    def is_complete(self) -> bool:
        """Return True if the run was over when the page was read, so that no page follows the last
        one."""
        return self.run.stage in OVER

    @property
    def status(self) -> RunStatus:
        """Return the run's status when the page was read."""
        return status_of(self.run)


async def newest_entries(
    services: QueryServices, run: Run, *, after: int, limit: int, kinds: Sequence[str] | None
) -> EntryPage:
    """Return the entries after sequence number `after` that exist now."""
    # Read the state first: if the run is over by then, all its entries are written.
    now = await current_run(services, run)
    if now.transcript is not None:
        last = now.transcript.count
    else:
        await services.transcripts.flushes.flush(run.run_id)
        last = (await services.transcripts.last_entries((run.run_id,))).get(run.run_id, 0)
    page = await entries_between(services, run, after, last, limit=limit, kinds=kinds)
    return page._replace(run=now)


async def entries_between(
    services: QueryServices,
    run: Run,
    after: int,
    last: int,
    *,
    limit: int,
    kinds: Sequence[str] | None,
) -> EntryPage:
    """Return the entries after sequence number `after`, up to `last`."""
    if last <= after:
        return EntryPage(run, (), None, max(after, last))
    entries = await services.transcripts.read(run.run_id, after=after, limit=limit + 1, kinds=kinds)
    entries = [entry for entry in entries if entry.sequence <= last]
    following = entries[limit - 1].sequence if len(entries) > limit else None
    return EntryPage(run, entries[:limit], following, last)


async def wait_for_entry(services: QueryServices, run: Run, *, after: int, seconds: float) -> None:
    """Wait for an entry after `after`, the end of the run, the timeout, or the service to stop."""
    deadline = time.monotonic() + seconds
    position = services.tail.position
    now = await current_run(services, run)
    if now.stage in OVER:
        return
    waits = (
        asyncio.ensure_future(
            services.transcripts.grown(run.run_id, after=after, timeout_seconds=seconds)
        ),
        asyncio.ensure_future(
            wait_for_growth(
                services,
                (run.run_id,),
                after=position,
                deadline=deadline,
                types=REACHING["ended"],
            )
        ),
    )
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_all(waits)


FOLLOW_SECONDS = 15.0
FOLLOW_ENTRIES = 50


async def follow_transcript(
    services: QueryServices, caller: Caller, run_id: str, *, after: int, tools: bool
) -> AsyncGenerator[EntryPage]:
    """Yield the pages of a transcript as it grows, until the run is over or the service stops.

    An empty page is yielded about every 15 s while no entry arrives.
    """
    moment = await resolve_as_of(services, caller, None)
    run = await readable_run(services, caller, run_id, moment)
    await require_transcript(services, run, moment.position)
    return _follow(services, run, after, None if tools else SPOKEN_KINDS)


async def _follow(
    services: QueryServices, run: Run, after: int, kinds: Sequence[str] | None
) -> AsyncGenerator[EntryPage]:
    while not services.closing():
        page = await newest_entries(services, run, after=after, limit=FOLLOW_ENTRIES, kinds=kinds)
        yield page
        if page.following is not None:
            after = page.following
        elif page.is_complete:
            return
        else:
            after = page.last
            await wait_for_entry(services, run, after=after, seconds=FOLLOW_SECONDS)


async def require_transcript(services: QueryServices, run: Run, position: int) -> None:
    """Raise `QueryError` if the entries of the run were erased."""
    if await is_transcript_gone(services, run):
        raise QueryError(
            "erased",
            "the transcript of this run was erased, or not included in this copy of the log",
            position=position,
        )


async def entries_until(services: QueryServices, run: Run, at: AsOf) -> int | None:
    """Return the sequence number of the transcript's last entry as of `at`; None for no limit.

    Entries are stored beside the log. If the run had ended, its end event gives the count: entries
    that a replaced lease owner wrote after the seal are not part of the transcript. If it was
    running, the entries that had arrived by the instant of the moment count. If it had not
    started, there are none, even if it started in the same instant.
    """
    if run.transcript is not None:
        return run.transcript.count
    if at.now:
        return None
    if run.started_at is None:
        return 0
    instant = await instant_of(services, at)
    assert instant is not None
    return await services.transcripts.count_until(run.run_id, instant)


async def is_transcript_gone(services: QueryServices, run: Run) -> bool:
    """Return True if recorded entries are missing, or can no longer be verified.

    They cannot be verified if the key of their session was erased.
    """
    first = await services.transcripts.read(run.run_id, after=0, limit=1)
    recorded = run.transcript.count if run.transcript is not None else len(first)
    if not recorded:
        return False
    return not first or await services.work.contents.key(run.session_id) is None


def _transcript_view(page: EntryPage) -> TranscriptView:
    return TranscriptView(
        items=[entry_view(entry) for entry in page.entries],
        next_after=page.following,
        last_sequence=page.last,
        complete=page.is_complete,
    )


def entry_view(entry: RecordedEntry) -> TranscriptEntryView:
    return TranscriptEntryView.from_source(entry)
