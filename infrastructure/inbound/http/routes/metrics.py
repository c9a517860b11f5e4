"""`/metrics`: measurements of the server for Prometheus."""

import asyncio

from starlette.responses import Response

from application.commands.services import CommandServices
from application.queries.access import Caller, require_whole_log
from application.queries.operation import operation
from application.telemetry.measurements import measure
from infrastructure.inbound.http.responses.metrics_text import MEDIA_TYPE, metrics_text


@operation(
    "GET",
    "/metrics",
    name="getMetrics",
    tag="health",
    scope="read",
    essential=True,
    summary="Get metrics in the Prometheus text format",
    description=(
        "Returns counts and durations of this server since its start, and open work of the whole"
        " log. Needs a token with the scope `read` and the"
        " sessions `*`. If the database does not respond, `spawnlog_database_up` is 0 and"
        " metrics from the database are omitted."
    ),
    answer=str,
    status_description="The metrics",
    command="for monitoring",
)
async def get_metrics(services: CommandServices, caller: Caller) -> Response:
    """Return the measurements of the server."""
    require_whole_log(caller)
    measured = await measure(services.measurements)
    # The first call imports a library, and each call writes some hundred lines.
    text = await asyncio.to_thread(metrics_text, measured)
    return Response(text, headers={"Content-Type": MEDIA_TYPE})
