"""Runs: which a caller may see, the registry in pages, one run, and what is kept of it."""

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple
from uuid import UUID

from pydantic import Field

from application.concurrency.tasks import cancel_all
from application.log.envelope import RecordedEvent
from application.ports.registry import Registry, RunQuery
from application.ports.run_search import RunWords
from application.ports.transcripts import RecordedEntry
from application.queries.access import Access, Caller
from application.queries.as_of import AsOf, resolve_as_of
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
from application.queries.run_filter import RunFilter, narrow_to_tree, run_query
from application.queries.runs_at_work import OutputSoFar, shown_now, with_output
from application.queries.search.run_totals import run_totals
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
from domain.run.events import RunStarted, ScriptsResolved
from domain.run.lifecycle import OVER
from domain.run.state import Run
from domain.values.moments import DURATION_FORMS
from domain.values.record import run_stream

SPOKEN_KINDS = ("session", "message", "progress", "result", "text")


def run_id_of(text: str, noun: str = "run") -> UUID:
    """Return a run's id out of a path, which may be that of its announcement. Refuse what is no id,
    by that noun."""
    if not UUID_TEXT.fullmatch(text):
        raise QueryError("not_found", f"there is no such {noun}")
    return UUID(text)


async def visible_run(services: QueryServices, caller: Caller, text: str, at: AsOf) -> Run:
    """A run that the caller may see; `QueryError` when there is none, or none for this caller."""
    run_id = run_id_of(text)
    run = await find_run(services.work, run_id, at=at.position)
    return await _must_be_visible(services, caller, run, run_id, at)


async def _must_be_visible(
    services: QueryServices, caller: Caller, run: Run | None, run_id: UUID, at: AsOf
) -> Run:
    if run is None or not (
        await services.access.covers_run(caller, run)
        or await services.access.is_sibling(caller, run)
    ):
        raise QueryError(
            "not_found", "there is no such run", position=at.position, runId=str(run_id)
        )
    return run


async def newest_run(
    services: QueryServices, caller: Caller, text: str, min_position: int | None = None
) -> tuple[Run, AsOf]:
    """The same as the run is now, and where that is: not behind anything that anybody was told
    before, or, for who names a position, not behind that one. A run that was followed here up to
    there is not asked for."""
    run_id = run_id_of(text)
    if min_position is None:
        moment = await resolve_as_of(services, caller, None)
    else:
        await reach_position(services, min_position)
        moment = AsOf(max(services.tail.position, min_position), now=True)
    followed = services.tail.newest(run_id)
    if followed is not None and services.tail.position >= moment.position:
        moment = AsOf(services.tail.position, now=True)
        return await _must_be_visible(services, caller, followed, run_id, moment), moment
    if min_position is not None:
        moment = await resolve_as_of(services, caller, None)
    return await visible_run(services, caller, text, moment), moment


async def readable_run(services: QueryServices, caller: Caller, text: str, at: AsOf) -> Run:
    """A run whose contents the caller may see: not a sibling's. A child that goes on sees what it
    did before."""
    run = await visible_run(services, caller, text, at)
    went_on = caller.run_id is not None and run.child_session_key == caller.only_session
    if not went_on and not await services.access.covers_run(caller, run):
        detail = "a sibling's texts are not shown to this token"
        raise QueryError("not_permitted", detail, position=at.position)
    return run


# A page of the registry as one caller may see it, at a cost that is bounded.


RUNS_EXAMINED_MAX = 5_000
RUNS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class RunPage:
    """The runs of a page, and the position behind which the next one begins; None at the end."""

    runs: list[Run]
    behind: int | None


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
    """Up to `limit` runs that the caller may see, out of at most `examined_max`.

    Who may see few of many runs gets a short or empty page, and goes on where it ends.
    """
    query = await narrow_to_tree(registry, caller, query)
    found: list[Run] = []
    known: dict[str, bool] = {}
    behind = place.behind if place.behind >= 0 else None
    examined = 0
    at_once = limit + 1 if caller.sees_everything else max(limit + 1, RUNS_AT_ONCE)
    while examined < examined_max:
        page_length = min(at_once, examined_max - examined)
        page = await registry.runs(
            query, at=place.at, limit=page_length, behind=behind, ascending=ascending
        )
        for run in page:
            if len(found) == limit:
                return RunPage(found, behind)
            if await access.covers_run(caller, run, known):
                found.append(run)
            behind = run.created_position
        if len(page) < page_length:
            return RunPage(found, None)
        examined += len(page)
    return RunPage(found, behind)


_RUNS_AT = Tool(
    name="runs_at",
    title="Look at a past moment",
    description="The runs that your session had asked for, or one run, as of any moment.",
    arguments=("at", "limit", "cursor"),
)


class ListRuns(ReadAsOf, Page, RunFilter):
    """Parameters of `list_runs`."""

    order: Literal["asc", "desc"] = Field("desc", description="By creation.")
    q: str | None = Field(
        None,
        max_length=WORDS_CHARACTERS_MAX,
        description=(
            f"With each of these words, {WORDS_MAX} at most, in label or task, in upper or lower"
            " case. The first 10,000 characters of a task are looked through; for a token without"
            " `content` those that lists show."
        ),
    )
    totals: bool = Field(
        False,
        description="Tell how many runs there are by status, agent and rule, on the first page.",
    )


@operation(
    "GET",
    "/v1/runs",
    name="listRuns",
    tag="runs",
    scope="read",
    summary="The registry",
    description=(
        "Runs, newest first, as summaries. The pages of one listing are one snapshot: a cursor"
        " keeps the position at which the listing began. One request looks at a bounded number of"
        " runs, so a page may be short or empty for a token that may see few of them: the listing"
        " is over when `nextCursor` is null, and not before."
    ),
    errors=("not_found", "foreign_cursor"),
    tool=_RUNS_AT,
    command=Command(
        "run list",
        "Show the runs, the newest first; what is refused is a run too.",
        numbered=True,
        options={
            "requester": Option(
                metavar="KEY",
                means="requester",
                help="Only what this session asked for; me: that of SPAWNLOG_SESSION_KEY, else"
                " main.",
            ),
            "q": Option(
                flag="--words",
                metavar="TEXT",
                help="Only with each of these words in label or task.",
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
    asked = None
    if cursor is None:
        position = (await resolve_as_of(services, caller, at)).position
        place = Cursor(position, -1, counts_back_from=services.work.log.now())
    else:
        place, asked = read_cursor(cursor, log_id, await services.work.log.head())
    # What the keys in the question mean is said by the moment of the first page.
    criteria = await run_query(services, caller, query, place)
    question = fingerprint(criteria, order, caller.patterns, at, *(wanted or ()))
    if asked not in (None, question):
        raise foreign_question()
    criteria = await narrow_to_tree(services.work.registry, caller, criteria)
    ascending = order == "asc"
    page = await _page(services, caller, criteria, wanted, place, query.limit, ascending=ascending)
    following = replace(place, behind=page.behind) if page.behind is not None else None
    is_now = at is None and cursor is None
    outputs = await _outputs_so_far(services, page.runs) if is_now else None
    shown = await _shown(services, page.runs, outputs)
    view = RunListView(
        items=await run_summaries(shown, services.work.contents, services.run_bars),
        next_cursor=encode_cursor(following, log_id, question) if following else None,
        totals=(
            await run_totals(
                services.run_search, services.access, caller, criteria, wanted, at=place.at
            )
            if query.totals and cursor is None
            else None
        ),
    )
    return Answer(view, place.at)


async def _outputs_so_far(services: QueryServices, runs: Sequence[Run]) -> dict[UUID, OutputSoFar]:
    """Return what those of the runs that are at work have told by now."""
    at_work = [run for run in runs if run.stage == "started"]
    return dict(await services.outputs.so_far(services.transcripts, at_work))


async def _shown(
    services: QueryServices,
    runs: Sequence[Run],
    outputs: Mapping[UUID, OutputSoFar] | None,
) -> list[Run]:
    """Return runs as they read: now, those at work with the time taken and the tokens of their
    `outputs`; as of a position (no outputs) as they are on record, so that the answer about it
    never changes and is the one that histories and diffs have."""
    if outputs is None:
        return list(runs)
    now = services.work.log.now()
    return [await shown_now(services.work, run, outputs.get(run.run_id), now) for run in runs]


async def _page(
    services: QueryServices,
    caller: Caller,
    query: RunQuery,
    words: RunWords | None,
    place: Cursor,
    limit: int,
    *,
    ascending: bool,
) -> RunPage:
    access = services.access
    if words is None:
        registry = services.work.registry
        return await visible_runs(
            registry, access, caller, query, place, limit=limit, ascending=ascending
        )
    found = await runs_with_words(
        services.run_search, access, caller, query, words, place, limit=limit, ascending=ascending
    )
    return RunPage(*found)


VERSION_MAX = 2**31 - 1


class GetRun(ReadAsOf):
    """Parameters of `get_run`."""

    version: int | None = Field(
        None, ge=1, le=VERSION_MAX, description="The run as it was after so many of its events."
    )
    wait: str | None = WAIT
    until: WaitStage | None = Field(
        None,
        description="What to wait for; `ended` when left out. A refusal ends every wait.",
    )


def run_etag(view: RunView | RunMetadataView) -> str:
    """Return an entity tag that changes with each field of the view but the running time."""
    if view.version == 0:
        # A waiting message has no event: events of the runs before it change its view.
        return f'"0.{hashlib.sha256(view.model_dump_json().encode()).hexdigest()[:32]}"'
    # No event of the run itself says that another one was made from it.
    respawns = f"-{len(view.respawns)}" if view.respawns else ""
    # Nor does one say what a run at work has told of tokens and progress.
    is_told = view.stage == "started" and view.transcript_entries is not None
    entries = f".{view.transcript_entries}" if is_told else ""
    return f'"{view.version}{respawns}{entries}"'


@operation(
    "GET",
    "/v1/runs/{runId}",
    name="getRun",
    tag="runs",
    scope="read",
    summary="One run",
    description=(
        "The run now, as of a position or instant, or after so many of its own events. With"
        " `wait` and `until` the answer comes when the stage is reached, on a refusal, or when"
        " the time is over. Of a run at work `usage`, `estimatedCostUsd`, `transcriptEntries` and,"
        " for a token with the scope `content`, the last `progress` are those of its transcript so"
        " far, and `runtimeMs` goes up to now; as of an earlier position all of them are null."
    ),
    errors=("not_found",),
    etag=run_etag,
    if_none_match=True,
    tool=_RUNS_AT,
    resource=Resource(
        name="run",
        title="A run",
        description="One run: its stage, plan, result and what it cost.",
    ),
    command=Command(
        "run get",
        "Show one run, as it is or as it was.",
        options={"version": None, "until": None},
        fields=(
            Column("run", "runId"),
            Column("status", form="run status"),
            Column("rule", "rule"),
            Column("label", "label"),
            Column("agent", form="run agent"),
            Column("requester", "requesterSessionKey"),
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
            Column("announced", "announcedAt", "instant"),
            Column("announcement", "announcement.state"),
            Column("archived", "archivedAt", "instant"),
            Column("took", "runtimeMs", "duration"),
            Column("tokens", "usage", "tokens"),
            Column("cost", "estimatedCostUsd", "dollars"),
            Column("transcript", "transcriptPath"),
            Column("configuration", "configRevision"),
        ),
    ),
)
async def get_run(
    services: QueryServices, caller: Caller, run_id: str, query: GetRun
) -> Answer[RunView | RunMetadataView]:
    """Return one run: now, as of `at`, after `version` of its events, or when it has reached the
    stage `until`, after `wait` at the latest. Without its texts if the caller may not read them."""
    asked_at = time.monotonic()
    at, version, wait, until = query.at, query.version, query.wait, query.until
    min_position = query.min_position
    seconds = wait_seconds(wait)
    if sum(one is not None for one in (wait, at, version)) > 1:
        raise QueryError(
            "invalid_request", "wait, at and version speak of different times: use one"
        )
    if until is not None and wait is None:
        raise QueryError("invalid_request", "until says what to wait for: give wait too, as in 30s")
    if at is not None:
        moment = await resolve_as_of(services, caller, at)
        run = await visible_run(services, caller, run_id, moment)
    else:
        if seconds:
            await _wait_for_stage(services, caller, run_id, until or "ended", seconds)
        if min_position is None:
            # Not behind anything that anybody was told before this was asked.
            min_position = services.tail.end_since(asked_at)
        run, moment = await newest_run(services, caller, run_id, min_position)
    if version is not None:
        earlier = await services.work.registry.run_at_version(run.run_id, version)
        if earlier is None:
            detail = f"the run has {run.version} events; ask for one of them"
            raise QueryError("not_found", detail, position=moment.position)
        run = earlier
    work = services.work
    # A run after some of its events is shown as of the last of them.
    shown_at = moment.position
    if version is not None:
        shown_at = await _position_of(services, run, version)
    respawns = await _visible_respawns(services, caller, run, shown_at)
    outputs = None
    if moment.now and version is None:
        if run.stage == "started":
            await services.transcripts.flushes.flush(run.run_id)
        outputs = await _outputs_so_far(services, (run,))
    (shown,) = await _shown(services, (run,), outputs)
    is_full = caller.may("content") and await services.access.covers_run(caller, run)
    form = RunView if is_full else RunMetadataView
    # Who waited for a stage is told its texts as they were recorded with it.
    view = await read_run(
        form, shown, work.contents, services.run_bars, respawns, recent=seconds > 0
    )
    output = (outputs or {}).get(run.run_id)
    return Answer(with_output(view, output) if output is not None else view, moment.position)


async def _position_of(services: QueryServices, run: Run, version: int) -> int:
    """Where that event of the run's own stream stands."""
    until = await services.work.log.head()
    events = await events_of_run(services, run.run_id, after=0, until=until, count=version)
    return events[-1].envelope.position


async def _visible_respawns(
    services: QueryServices, caller: Caller, run: Run, at: int
) -> list[UUID]:
    """The runs that were made from a run, as far as the caller may see them."""
    respawns = await services.work.registry.respawns(run.run_id, at=at)
    if caller.sees_everything:
        return [one.run_id for one in respawns]
    keys = {one.requester for one in respawns}
    covered = {key for key in keys if await services.access.covers_session(caller, key)}
    return [one.run_id for one in respawns if one.requester in covered]


async def _wait_for_stage(
    services: QueryServices, caller: Caller, text: str, until: WaitStage, seconds: float
) -> None:
    # To begin to wait, what was seen last is enough: what comes next is waited for.
    known = services.tail.newest(run_id_of(text))
    run, _ = await newest_run(services, caller, text, services.tail.position if known else None)
    await wait_until(services, run, until, seconds)


class ListRunEvents(PageAfter, ReadAsOf):
    """Parameters of `list_run_events`."""

    limit: int = Field(LIMIT_MAX, ge=1, le=LIMIT_MAX, description="How many items at most.")


@operation(
    "GET",
    "/v1/runs/{runId}/events",
    name="listRunEvents",
    tag="runs",
    scope="read",
    summary="The events of a run",
    description=(
        "In order, those behind `after`, with their envelopes. Free texts are references. Only why"
        " an effect failed is told, as `texts.error` of an `EffectAttempted`, and why"
        " context scripts failed, as `texts.errors` of `ScriptsResolved`, by their ids; both to a"
        " token with the scope `content`."
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
    """Return a page of the events of one run's own stream, as of `at`."""
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
        items = [event_view(one) for one in page]
    following = items[-1].position if len(events) > limit else None
    return Answer(RunEventListView(items=items, next_after=following), moment.position)


async def events_of_run(
    services: QueryServices, run_id: UUID, *, after: int, until: int, count: int
) -> list[RecordedEvent]:
    """At least `count` events of the run's own stream, or all there are: what is about it may stand
    in other streams too."""
    found: list[RecordedEvent] = []
    while len(found) < count:
        page = await services.work.log.read(
            after=after, limit=LIMIT_MAX, run_id=run_id, until=until
        )
        found += [one for one in page if one.envelope.stream == run_stream(run_id)]
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
    summary="The prompt as the child got it",
    description=(
        "Both texts, and parts that cover every byte of them: where each comes from, its UTF-8"
        " offsets within its text, and the SHA-256 of its bytes."
    ),
    errors=("not_found", "not_started", "erased"),
    resource=Resource(
        name="prompt",
        title="A run's prompt",
        description="What the sub-agent was given, as it got it.",
    ),
    command=Command("run prompt", "Show the prompt of a run, and where each part came from."),
)
async def get_run_prompt(
    services: QueryServices, caller: Caller, run_id: str, query: ReadAsOf
) -> Answer[PromptView]:
    """Return the prompt as the child got it, if the run had started by `at`."""
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
    """The context scripts that were not run for a run, as parts of its prompt name them, and the
    runs for which they said what stands there."""
    if run.respawn is None or run.respawn.scripts == "again":
        return {}
    resolved = await services.work.event(ScriptsResolved, run.run_id)
    return {
        f"script:{one.id}": one.reused_from
        for one in resolved.receipts
        if one.reused_from is not None
    }


class GetRunTranscript(PageAfter, ReadAsOf):
    """Parameters of `get_run_transcript`."""

    tools: bool = Field(False, description="With tool calls and token counts.")
    last: int | None = Field(
        None,
        ge=1,
        le=LIMIT_MAX,
        description="The last entries, so many; not with `after` or `limit`.",
    )
    wait: str | None = Field(
        None,
        max_length=16,
        description=(
            "How long to wait for an entry behind `after`, or for the end of the run, 60 s at"
            f" most: {DURATION_FORMS}. Not with `at` or `last`."
        ),
        examples=["30s"],
    )


@operation(
    "GET",
    "/v1/runs/{runId}/transcript",
    name="getRunTranscript",
    tag="runs",
    scope="content",
    summary="What the child said",
    description=(
        "Entries as they came, also while the run goes on; the first one of its own is what it was"
        " told. Tool calls and token counts are shown with `tools=true`. An entry `session` in"
        " front says that those behind it, as many as its `entries`, are those of the requester's"
        " session that the child began with. With `at` it has the entries that had come when that"
        " position was recorded, all of them once the run had ended. To follow a run at work, ask"
        " again with `wait` and with `nextAfter`, else `lastSequence`, as `after`, until `complete`"
        " is true and `nextAfter` is null; or ask with `Accept: text/event-stream`: each entry is"
        " an event `entry` whose `id` is its number, and an event `end` follows the last one. The"
        " stream resumes from `Last-Event-ID`, else `after`, else the first entry."
    ),
    errors=("not_found", "erased"),
    streams=True,
    resource=Resource(
        name="transcript",
        title="A run's transcript",
        description="What was said in it, the last entries.",
        query={"last": LIMIT_MAX, "tools": True},
    ),
    command=Command(
        "run log",
        by_hand=True,
        options={
            "after": Option(metavar="SEQUENCE", help="Go on after this entry."),
            "tools": Option(help="With the calls of tools."),
            "last": None,
        },
        limit=200,
    ),
)
async def get_run_transcript(
    services: QueryServices, caller: Caller, run_id: str, query: GetRunTranscript
) -> Answer[TranscriptView]:
    """Return a page of the transcript, or its `last` entries. With `wait` a page without entries
    waits for the first one after `after`, or for the end of the run."""
    after, limit, last, wait = query.after, query.limit, query.last, query.wait
    seconds = wait_seconds(wait)
    if wait is not None and (query.at is not None or last is not None):
        raise invalid_value("/query/wait", "is for entries to come; leave at and last out")
    if last is not None and (after or "limit" in query.model_fields_set):
        raise invalid_value("/query/last", "is for the end; leave after and limit out")
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
    """Entries of a transcript. `following` is the number behind which the next page begins, if
    there is one; up to `last` everything is known. Nothing comes behind the last page of a
    transcript that `is_complete`."""

    run: Run
    entries: Sequence[RecordedEntry]
    following: int | None
    last: int

    @property
    def is_complete(self) -> bool:
        """Return True if the run was over when the page was read."""
        return self.run.stage in OVER

    @property
    def status(self) -> RunStatus:
        """The status of the run when the page was read."""
        return status_of(self.run)


async def newest_entries(
    services: QueryServices, run: Run, *, after: int, limit: int, kinds: Sequence[str] | None
) -> EntryPage:
    """Return the entries behind number `after` that are there now."""
    # The state first: a run that is over by then has all its entries.
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
    """Return entries behind number `after`, up to number `last`."""
    if last <= after:
        return EntryPage(run, (), None, max(after, last))
    entries = await services.transcripts.read(run.run_id, after=after, limit=limit + 1, kinds=kinds)
    entries = [one for one in entries if one.sequence <= last]
    following = entries[limit - 1].sequence if len(entries) > limit else None
    return EntryPage(run, entries[:limit], following, last)


async def wait_for_entry(services: QueryServices, run: Run, *, after: int, seconds: float) -> None:
    """Return when there is an entry behind number `after`, the run is over, the time is, or the
    service stops."""
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
    """Return the pages of a transcript as it grows, until the run is over or the service stops; an
    empty one now and then while nothing comes."""
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
    """`QueryError` if the entries of a run were erased."""
    if await is_transcript_gone(services, run):
        raise QueryError(
            "erased",
            "the transcript of this run is gone: it was erased, or left out of this copy",
            position=position,
        )


async def entries_until(services: QueryServices, run: Run, at: AsOf) -> int | None:
    """Return the number of the last entry that the transcript had then; None for all there are.

    Entries are beside the log. A run that had ended has those that its end says: entries that a
    replaced holder wrote after the seal are not part of the transcript. A run at work has those
    that had come when the position was recorded. A run that had not started has none, even if it
    started in the same instant.
    """
    if run.transcript is not None:
        return run.transcript.count
    if at.now:
        return None
    if run.started_at is None:
        return 0
    recorded_at = await services.work.log.recorded_at(at.position)
    assert recorded_at is not None
    return await services.transcripts.count_until(run.run_id, recorded_at)


async def is_transcript_gone(services: QueryServices, run: Run) -> bool:
    """Whether entries were recorded and are there no more, or the key of their session is not,
    without which nothing shows that they are those that were recorded."""
    first = await services.transcripts.read(run.run_id, after=0, limit=1)
    recorded = run.transcript.count if run.transcript is not None else len(first)
    if not recorded:
        return False
    return not first or await services.work.contents.key(run.session_id) is None


def _transcript_view(page: EntryPage) -> TranscriptView:
    return TranscriptView(
        items=[entry_view(one) for one in page.entries],
        next_after=page.following,
        last_sequence=page.last,
        complete=page.is_complete,
    )


def entry_view(entry: RecordedEntry) -> TranscriptEntryView:
    """Return an entry as readers get it."""
    return TranscriptEntryView.from_source(entry)
