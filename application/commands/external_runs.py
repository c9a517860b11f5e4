"""Execute runs from outside: claim, renew, report, end."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from application.commands.control import require_service
from application.commands.services import CommandServices
from application.commands.transcript import EntryBody, TokensField, provided_entry
from application.execution.external import (
    LEASE_SECONDS,
    LEASE_SECONDS_MAX,
    LEASE_SECONDS_MIN,
    REPORT_ENTRIES_MAX,
    RESULT_BYTES_MAX,
    ReportedEnd,
)
from application.ports.runtimes import TranscriptEntry, launch_object
from application.queries.access import Caller
from application.queries.errors import QueryError
from application.queries.operation import operation
from application.queries.runs import run_id_of
from application.queries.views.view import Answer, View
from domain.delivery.transcript import NAME_CHARACTERS_MAX, USAGES_MAX, UsageEntry
from domain.run.facts import RunOutcome
from domain.values.body import Body

REPORT_VALUES_MAX = 20_000
"""Maximum number of JSON values in a report: about 20 per entry."""
ERROR_CHARACTERS_MAX = 10_000
EPOCHS_MAX = 2**31 - 1


LeaseSeconds = Annotated[
    float,
    Field(
        ge=LEASE_SECONDS_MIN,
        le=LEASE_SECONDS_MAX,
        description="Seconds until the claim expires unless a heartbeat renews it.",
    ),
]
Epoch = Annotated[
    int,
    Field(
        ge=1,
        le=EPOCHS_MAX,
        description="Epoch returned by the claim. A report with an older epoch is refused.",
    ),
]


class ClaimBody(Body):
    """The executor of the run."""

    executor: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9._-]{1,64}$",
            description=("A unique name; a repeated claim is recognized by it."),
        ),
    ]
    lease_seconds: LeaseSeconds = LEASE_SECONDS


class HeartbeatBody(Body):
    """A heartbeat of the executor."""

    epoch: Epoch
    lease_seconds: LeaseSeconds = LEASE_SECONDS


class ReportBody(Body):
    """New transcript entries of the run."""

    epoch: Epoch
    first: Annotated[
        int,
        Field(
            ge=1,
            le=EPOCHS_MAX,
            description=(
                "Number of the first of these entries among all that you report, from 1."
                " Entries that are already stored stay unchanged."
            ),
        ),
    ]
    entries: Annotated[
        list[EntryBody],
        Field(max_length=REPORT_ENTRIES_MAX, description="The entries, oldest first."),
    ]


class UsageBody(Body):
    """Token usage of one model."""

    input_tokens: TokensField
    output_tokens: TokensField
    cache_read_tokens: TokensField = 0
    cache_write_tokens: TokensField = 0
    model: Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS_MAX)] | None = None

    def entry(self) -> UsageEntry:
        """Return the usage as a runtime reports it."""
        return UsageEntry(**dict(self))


class EndBody(Body):
    """The outcome of the run."""

    epoch: Epoch
    outcome: Annotated[RunOutcome, Field(description="Outcome of the run.")]
    result: Annotated[
        str | None,
        Field(
            max_length=RESULT_BYTES_MAX,
            description=(
                "Result text. Default: the last `result` entry of the transcript, else the last"
                " message of the assistant."
            ),
        ),
    ] = None
    error: Annotated[
        str | None,
        Field(
            max_length=ERROR_CHARACTERS_MAX,
            description="Error text, if the outcome is not `success`.",
        ),
    ] = None
    usage: Annotated[
        list[UsageBody] | None,
        Field(
            max_length=USAGES_MAX,
            description="Token usage by model. Default: the sum of the usage in the transcript.",
        ),
    ] = None


class ClaimedAnswer(View):
    """The run is yours. `launch` is the input that a command would get (`stdin-json`). `token` is
    the child's token for `url`, valid until the run has ended; no other caller gets it."""

    run_id: UUID
    epoch: int
    lease_seconds: float
    url: str | None
    token: str | None
    launch: dict[str, Any]


class HeartbeatAnswer(View):
    """The answer to a heartbeat. If `stop` is set, end the execution and report the end: the lease
    is no longer renewed. `by` names the requester of the stop, and `reason` the reason that it
    gave. `leaseSeconds` repeats the request."""

    run_id: UUID
    stop: Literal["stopped", "steered", "yielded"] | None
    by: str | None
    reason: str | None
    lease_seconds: float


class ReportedAnswer(View):
    """The entries are recorded. `next` is the number of the next entry."""

    run_id: UUID
    next: int


class EndedAnswer(View):
    """The recorded end of the run."""

    run_id: UUID
    outcome: RunOutcome


_ERRORS = ("not_found", "not_external", "claim_over", "run_over")


@operation(
    "POST",
    "/v1/runs/{runId}/claim",
    name="claimRun",
    tag="external runs",
    scope=None,
    summary="Claim an external run to execute it",
    description=(
        "Claims a queued run of an agent with runtime `external` if its lane has a free slot."
        " The claim starts the run and its time limit. The response has everything that the"
        " child gets. A repeat by the same executor returns the same response while the lease"
        " holds; another executor gets `claimed_elsewhere`. Needs a token with scope `spawn` that"
        " acts for the session that requested the run, or one with scope `worker`. A run that no"
        " executor claims within `spawnlog.externalClaimSeconds` ends as `error`."
    ),
    errors=(*_ERRORS, "not_offered", "claimed_elsewhere", "erased"),
    body_required=True,
    command="for executors: use the client",
)
async def claim_run(
    services: CommandServices, caller: Caller, run_id: str, body: ClaimBody
) -> Answer[ClaimedAnswer]:
    """Claim a run for an executor, and return everything that the child is given."""
    run = await executable_run(services, caller, run_id)
    require_service(services)
    claimed = await services.external.claim(run, body.executor, body.lease_seconds, caller.actor)
    launch = claimed.launch
    answer = ClaimedAnswer.from_source(
        claimed,
        run_id=run,
        url=launch.url,
        token=launch.token,
        # A command finds the trace context in its environment.
        launch={**launch_object(launch), "traceparent": launch.traceparent},
    )
    return Answer(answer, await services.work.log.head())


@operation(
    "POST",
    "/v1/runs/{runId}/heartbeat",
    name="prolongClaim",
    tag="external runs",
    scope=None,
    summary="Renew the claim of a run: a heartbeat",
    description=(
        "Send about three heartbeats per lease. If the lease expires, the run ends as `error`"
        " (`interrupted: …`), or as `timeout` after its time limit. If `stop` is set, the lease"
        " is not renewed: stop the execution and report the end before it expires."
    ),
    errors=_ERRORS,
    body_required=True,
    command="for executors: use the client",
)
async def prolong_claim(
    services: CommandServices, caller: Caller, run_id: str, body: HeartbeatBody
) -> Answer[HeartbeatAnswer]:
    """Renew the claim of a run, unless the run must stop."""
    run = await executable_run(services, caller, run_id)
    beat = await services.external.heartbeat(run, body.epoch, body.lease_seconds)
    return Answer(HeartbeatAnswer.from_source(beat, run_id=run), await services.work.log.head())


@operation(
    "POST",
    "/v1/runs/{runId}/transcript",
    name="reportTranscript",
    tag="external runs",
    scope=None,
    summary="Report transcript entries of a claimed run",
    description=(
        "Report entries in order, as they occur; the child's input is already stored. A repeat"
        " is a no-op. A gap is refused with the next expected number. A report does not renew"
        " the lease; only a heartbeat does."
    ),
    errors=(*_ERRORS, "transcript_gap"),
    body_required=True,
    values_max=REPORT_VALUES_MAX,
    command="for executors: use the client",
)
async def report_transcript(
    services: CommandServices, caller: Caller, run_id: str, body: ReportBody
) -> Answer[ReportedAnswer]:
    """Store transcript entries of a claimed run."""
    run = await executable_run(services, caller, run_id)
    entries = [TranscriptEntry(entry.kind, provided_entry(entry).body) for entry in body.entries]
    following = await services.external.report(run, body.epoch, body.first, entries)
    answer = ReportedAnswer(run_id=run, next=following)
    return Answer(answer, await services.work.log.head())


@operation(
    "POST",
    "/v1/runs/{runId}/end",
    name="endRun",
    tag="external runs",
    scope=None,
    summary="Report the end of a claimed run",
    description=(
        "The run is announced like any other. A repeat returns the same response. If the run"
        " has already ended otherwise, the report is refused with `run_over` and not recorded."
    ),
    errors=(*_ERRORS, "erased"),
    body_required=True,
    command="for executors: use the client",
)
async def end_run(
    services: CommandServices, caller: Caller, run_id: str, body: EndBody
) -> Answer[EndedAnswer]:
    """End a claimed run with the outcome that its executor reports."""
    run = await executable_run(services, caller, run_id)
    usages = None if body.usage is None else tuple(usage.entry() for usage in body.usage)
    end = ReportedEnd(outcome=body.outcome, result=body.result, error=body.error, usages=usages)
    ended = await services.external.end(run, body.epoch, end, caller.actor)
    assert ended.outcome is not None
    answer = EndedAnswer(run_id=run, outcome=ended.outcome)
    return Answer(answer, await services.work.log.head())


async def executable_run(services: CommandServices, caller: Caller, text: str) -> UUID:
    """Return the id of a run that the caller may execute; refuse any other.

    The scope `worker` covers the runs below the sessions that the caller acts for. The scope
    `spawn` covers only the runs that these sessions requested themselves.
    """
    run_id = run_id_of(text)
    run = await services.work.registry.run(run_id)
    if run is None or not await services.access.covers_run(caller, run):
        raise QueryError("not_found", "run not found", runId=text)
    spawned = caller.may("spawn") and caller.acts_for(run.requester.session_key)
    if caller.run_id == run_id or not (caller.may("worker") or spawned):
        raise QueryError(
            "not_permitted",
            'executing a run needs a token with the scope "spawn" that acts for the session that'
            ' requested it, or one with the scope "worker"; never the run\'s own',
        )
    return run_id
