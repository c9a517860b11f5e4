"""Announcements: acknowledged by their sessions, and sent again to webhooks."""

from typing import Annotated

from pydantic import Field

from application.commands.context import CommandContext
from application.commands.services import CommandServices
from application.log.answers import AcknowledgedAnswer, RedrivenAnswer
from application.log.event_log import StoredAnswer
from application.queries.access import Caller, require_scope, require_session_access
from application.queries.command import Command, Option
from application.queries.errors import QueryError
from application.queries.operation import POSITION_MAX, operation
from application.queries.runs import run_id_of
from application.queries.session_reference import resolve_session_key
from domain.configuration.webhooks import WEBHOOK_ID_CHARACTERS_MAX
from domain.values.body import Body

REASON_CHARACTERS_MAX = 2000


class AckBody(Body):
    """The position at which the announcement was read: when a delivery of it was parked since, it
    stands further on, and is not taken."""

    position: Annotated[int, Field(ge=1, le=POSITION_MAX)] | None = None


class RedriveBody(Body):
    """Why it is sent again, and to which webhook: without one to each that it is parked for."""

    reason: Annotated[str, Field(min_length=1, max_length=REASON_CHARACTERS_MAX)]
    webhook: Annotated[str, Field(max_length=WEBHOOK_ID_CHARACTERS_MAX)] | None = None


@operation(
    "POST",
    "/v1/sessions/{key}/announcements/{id}/ack",
    name="acknowledgeAnnouncement",
    tag="announcements",
    # A child needs none for its own inbox.
    scope=None,
    summary="Take an announcement",
    description="Repeating it changes nothing.",
    answer=AcknowledgedAnswer,
    repeat="key",
    errors=("not_found", "no_announcement"),
    command=Command(
        "announcement ack",
        "Record that the session has taken an announcement.",
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
    """Record that the session has taken the announcement."""
    session_key = await resolve_session_key(services, caller, key)
    require_session_access(caller, session_key)
    if caller.run_id is None:
        require_scope(caller, "control")
    run = await services.work.registry.run(run_id_of(id, "announcement"))
    if run is None or run.requester.session_key != session_key:
        raise QueryError("not_found", "there is no such announcement in this inbox")
    return await services.announcing.acknowledge(
        run, caller.actor, command.reservation, position=body.position
    )


@operation(
    "POST",
    "/v1/announcements/{id}/redrive",
    name="redriveAnnouncement",
    tag="announcements",
    scope="control",
    summary="Send a parked announcement again",
    description=(
        "To the addresses and with the secrets of the configuration in force, as often as at first."
        " The reason is on record."
    ),
    answer=RedrivenAnswer,
    repeat="key",
    errors=("not_found", "no_announcement", "erased"),
    command=Command(
        "announcement redrive",
        "Send a parked announcement again.\n\n"
        "It goes to the addresses of the configuration in force.",
        options={
            "reason": Option(metavar="TEXT", help="Why it is sent again; on record."),
            "webhook": Option(metavar="ID", help="To this one alone, instead of to each."),
        },
        done="announcement {id} is sent again to {webhooks}",
    ),
)
async def redrive_announcement(
    services: CommandServices,
    caller: Caller,
    id: str,
    body: RedriveBody,
    command: CommandContext,
) -> StoredAnswer:
    """Send an announcement again to the webhooks that it is parked for."""
    run = await services.work.registry.run(run_id_of(id, "announcement"))
    if run is None or not await services.access.covers_run(caller, run):
        raise QueryError("not_found", "there is no such announcement")
    return await services.effects.redrive(
        run, body.webhook, body.reason, caller.actor, command.reservation
    )
