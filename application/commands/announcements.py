"""Acknowledge announcements, and redrive parked deliveries."""

from typing import Annotated

from pydantic import Field

from application.commands.context import CommandContext
from application.commands.services import CommandServices
from application.log.answers import AcknowledgedAnswer, RedrivenAnswer, RedrivenManyAnswer
from application.log.event_log import StoredAnswer
from application.queries.access import Caller, require_scope, require_session_access
from application.queries.as_of import resolve_as_of
from application.queries.command import PATHS, Column, Command, Option
from application.queries.errors import QueryError, invalid_value
from application.queries.inbox import find_announced_runs
from application.queries.operation import POSITION_MAX, operation
from application.queries.session_reference import UUID_TEXT, resolve_session_key, run_of_name
from domain.configuration.webhooks import WEBHOOK_ID_CHARACTERS_MAX
from domain.run.facts import EffectKind, HookName
from domain.run.state import Run
from domain.values.body import Body
from domain.values.text import quote_name

REASON_CHARACTERS_MAX = 2000
REDRIVEN_MAX = 100
"""Maximum number of announcements that one request sends again."""


class AckBody(Body):
    """The position at which the announcement was read."""

    position: Annotated[
        int | None,
        Field(
            ge=1,
            le=POSITION_MAX,
            description=(
                "Position at which the announcement was read. If a delivery was parked since, it"
                " has a later position, and is not acknowledged. Default: any position."
            ),
        ),
    ] = None


class RedriveBody(Body):
    """Webhook or hook to retry, and the reason."""

    reason: Annotated[
        str,
        Field(
            min_length=1,
            max_length=REASON_CHARACTERS_MAX,
            description="Reason, which is recorded.",
        ),
    ]
    webhook: Annotated[
        str | None,
        Field(
            max_length=WEBHOOK_ID_CHARACTERS_MAX,
            description="Webhook to send to. Default: each one with a parked delivery.",
        ),
    ] = None
    hook: Annotated[
        HookName | None,
        Field(description="Call this hook of the run again, in place of sending."),
    ] = None


@operation(
    "POST",
    "/v1/sessions/{key}/announcements/{id}/ack",
    name="acknowledgeAnnouncement",
    tag="announcements",
    # A child needs no scope for its own inbox.
    scope=None,
    summary="Acknowledge an announcement",
    description="Repeating it changes nothing.",
    answer=AcknowledgedAnswer,
    repeat="key",
    errors=("not_found", "no_announcement"),
    command=Command(
        "announcement ack",
        "Acknowledge an announcement.",
        options={"position": None},
        done="announcement {id} is acknowledged",
    ),
)
async def acknowledge_announcement(
    services: CommandServices,
    caller: Caller,
    key: str,
    id: str,
    body: AckBody,
    command: CommandContext,
) -> StoredAnswer:
    """Record that the session has received the announcement."""
    session_key = await resolve_session_key(services, caller, key)
    require_session_access(caller, session_key)
    if caller.run_id is None:
        require_scope(caller, "control")
    run = await _announced_run(services, caller, id)
    if run.requester.session_key != session_key:
        raise QueryError(
            "not_found",
            "this inbox has no such announcement; it is in the inbox of session"
            f" {run.requester.session_key}",
        )
    return await services.announcing.acknowledge(
        run, caller.actor, command.reservation, position=body.position
    )


@operation(
    "POST",
    "/v1/announcements/{id}/redrive",
    name="redriveAnnouncement",
    tag="announcements",
    scope="control",
    summary="Send a parked announcement again, or call a parked hook",
    description=(
        "Uses the addresses and secrets of the current configuration, with the full number of"
        " attempts. With `hook`, that hook of the run is called again instead, at the address"
        " in the run's configuration, at any stage of the run. The reason is recorded."
    ),
    answer=RedrivenAnswer,
    repeat="key",
    errors=("not_found", "no_announcement", "erased"),
    command=Command(
        "announcement redrive",
        "Send a parked announcement again, or call a parked hook.\n\nUses the addresses of the"
        " current configuration. With --hook, calls a hook of any run, given by its id.",
        options={
            "id": PATHS["runId"],
            "reason": Option(metavar="TEXT", help="Reason to record."),
            "webhook": Option(
                metavar="ID", help="Only this webhook. Default: all that are parked."
            ),
            "hook": Option(help="Call this hook of the run instead."),
        },
        done="announcement {id} is sent again to {webhooks}{hooks}",
    ),
)
async def redrive_announcement(
    services: CommandServices,
    caller: Caller,
    id: str,
    body: RedriveBody,
    command: CommandContext,
) -> StoredAnswer:
    """Send an announcement again to the webhooks that it is parked for, or call a parked hook."""
    if body.webhook is not None and body.hook is not None:
        raise invalid_value("/hook", "cannot be combined with webhook; omit one of the two")
    run = await _announced_run(services, caller, id)
    kind: EffectKind = "webhook" if body.hook is None else "hook"
    return await services.effects.redrive(
        run, kind, body.hook or body.webhook, body.reason, caller.actor, command.reservation
    )


class RedriveManyBody(Body):
    """Parked announcements to send again, and the reason."""

    reason: Annotated[
        str,
        Field(
            min_length=1,
            max_length=REASON_CHARACTERS_MAX,
            description="Reason, which is recorded for each.",
        ),
    ]
    webhook: Annotated[
        str | None,
        Field(
            max_length=WEBHOOK_ID_CHARACTERS_MAX,
            description="Only deliveries to this webhook. Default: to any.",
        ),
    ] = None
    after: Annotated[
        int,
        Field(
            ge=0,
            le=POSITION_MAX,
            description=(
                "Only announcements after this position: `moreAfter` of the previous answer."
            ),
        ),
    ] = 0
    until: Annotated[
        int | None,
        Field(
            ge=0,
            le=POSITION_MAX,
            description=(
                "Only announcements up to this position. What fails again meanwhile is parked at a"
                " later one: give the same `until` with each `after`, so that none is sent twice."
            ),
        ),
    ] = None
    limit: Annotated[
        int,
        Field(ge=1, le=REDRIVEN_MAX, description="Maximum number of announcements."),
    ] = REDRIVEN_MAX


@operation(
    "POST",
    "/v1/announcements/redrive",
    name="redriveAnnouncements",
    tag="announcements",
    scope="control",
    summary="Send parked announcements again, up to 100 at once",
    description=(
        "Covers the announcements to the sessions of the token, in the order of"
        " `GET /v1/announcements?state=parked`. Each is sent as by the redrive of one"
        " announcement; all are recorded together, or none. `refused` names those that stay"
        " parked. If `moreAfter` is given, more may be parked: continue with it as `after`. Hooks"
        " are not called."
    ),
    answer=RedrivenManyAnswer,
    repeat="key",
    errors=("no_announcement",),
    command=Command(
        "announcement redrive-all",
        "Send parked announcements again, up to 100 at once.\n\nUses the addresses of the current"
        " configuration. Hooks are not called.",
        options={
            "reason": Option(metavar="TEXT", help="Reason to record for each."),
            "webhook": Option(metavar="ID", help="Only deliveries to this webhook."),
            "until": Option(metavar="POSITION", help="Only announcements up to this position."),
            "limit": Option(help="Maximum number of announcements.", maximum=REDRIVEN_MAX),
        },
        items="redriven",
        columns=(Column("ID", "runId"), Column("SENT AGAIN TO", "webhooks", "words", elastic=True)),
        notes={
            "refused": "some stay parked: their texts were erased (--output json names them)",
            "moreAfter": "more may be parked: repeat with --after {moreAfter} --until {until}",
        },
        limit=REDRIVEN_MAX,
    ),
)
async def redrive_announcements(
    services: CommandServices, caller: Caller, body: RedriveManyBody, command: CommandContext
) -> StoredAnswer:
    """Send parked announcements of the caller's sessions again."""
    moment = await resolve_as_of(services, caller, None)
    until = moment.position if body.until is None else body.until
    runs, following = await find_announced_runs(
        services,
        caller,
        "parked",
        at=moment.position,
        after=body.after,
        limit=body.limit,
        until=until,
        webhook=body.webhook,
    )
    return await services.effects.redrive_many(
        runs,
        body.webhook,
        body.reason,
        caller.actor,
        more_after=following,
        until=until,
        reservation=command.reservation,
    )


async def _announced_run(services: CommandServices, caller: Caller, name: str) -> Run:
    """Return the run of an announcement, which has the same id.

    Raises:
        QueryError: There is no such announcement, or the caller may not see it. If the name is a
            label or a session, the error says where its id is.
    """
    named = await run_of_name(services, caller, name)
    if named is not None and UUID_TEXT.fullmatch(name):
        return named.run
    text = "announcement not found"
    if named is not None:
        text = f"{text}; {quote_name(name)} is {named.kind}: give the id of the run"
    elif ":" in name:
        text = f"{text}; give the id of a run, as the inbox of the session lists it"
    raise QueryError("not_found", text)
