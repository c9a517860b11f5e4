"""Liveness and readiness of the server."""

from typing import Literal

from application.commands.services import CommandServices
from application.concurrency.tasks import with_timeout
from application.log.envelope import WRITER_VERSION
from application.queries.errors import QueryError
from application.queries.operation import operation
from application.queries.views.view import Answer, View

ANSWER_SECONDS = 2.0
"""Timeout of the database query, because readiness probes do not wait long."""


class HealthAnswer(View):
    """The process answers. `version` is its release."""

    status: Literal["ok"]
    version: str


class ReadinessAnswer(View):
    """The last position of the log, and the position up to which this server has read it."""

    status: Literal["ready"]
    head: int
    tail: int


@operation(
    "GET",
    "/healthz",
    name="getHealth",
    tag="health",
    scope=None,
    token=False,
    essential=True,
    summary="Check that the server process responds",
    description="Liveness. Responds whatever the state of the database.",
    command="shown by status",
)
async def get_health() -> HealthAnswer:
    """Return that the process answers, whatever the state of the log."""
    return HealthAnswer(status="ok", version=WRITER_VERSION)


@operation(
    "GET",
    "/readyz",
    name="getReadiness",
    tag="health",
    scope=None,
    token=False,
    essential=True,
    summary="Check that the server is ready to serve",
    description=(
        "Readiness: the database responds and accepts writes, its schema is known, and the log"
        " reader is current. Otherwise 503 with the reasons."
    ),
    command="shown by status",
)
async def get_readiness(services: CommandServices) -> Answer[ReadinessAnswer]:
    """Return how far this server has read the log.

    Raises:
        QueryError: If the server is not ready.
    """
    readiness = await services.readiness()
    if not readiness.ready:
        raise QueryError("unavailable", "; ".join(readiness.reasons))
    try:
        head = await with_timeout(services.work.log.head(), ANSWER_SECONDS)
    except TimeoutError:
        raise QueryError("unavailable", "the database did not respond in time") from None
    return Answer(ReadinessAnswer(status="ready", head=head, tail=services.tail.position), head)
