"""Runs, their prompts and their transcripts as resources of the protocol."""

import re
from collections.abc import Mapping

from mcp_types import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from application.commands.services import CommandServices
from application.operations import OPERATIONS
from application.queries.access import Caller, require_scope
from application.queries.errors import QueryError
from application.queries.operation import Operation
from application.queries.runs import ListRuns, list_runs
from domain.values.text import single_line
from infrastructure.inbound.mcp.tools.rows import read_row

RUNS_MAX = 50
NAME_CHARACTERS_MAX = 72
JSON = "application/json"
ROWS: Mapping[str, Operation] = {
    row.path.replace("/v1/", "spawnlog://"): row for row in OPERATIONS if row.resource is not None
}
"""Operations that are readable as resources, by URI template."""
_RUN_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def list_resources(
    services: CommandServices, caller: Caller, session_key: str
) -> ListResourcesResult:
    """Return the newest runs that the caller's session requested."""
    require_scope(caller, "read")
    page = await list_runs(services, caller, ListRuns(requester=session_key, limit=RUNS_MAX))
    return ListResourcesResult(
        resources=[
            Resource(
                uri=f"spawnlog://runs/{run.run_id}",
                name=single_line(
                    run.label or run.task_preview or str(run.run_id),
                    characters_max=NAME_CHARACTERS_MAX,
                ),
                description=f"{run.status}, agent {run.agent_id or run.requested_agent_id}",
                mime_type=JSON,
            )
            for run in page.view.items
        ]
    )


def resource_templates() -> ListResourceTemplatesResult:
    """Return the URI templates of all resources."""
    return ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(
                uri_template=uri,
                name=row.resource.name,
                title=row.resource.title,
                description=row.resource.description,
                mime_type=JSON,
            )
            for uri, row in ROWS.items()
            if row.resource is not None
        ]
    )


async def read_resource(services: CommandServices, caller: Caller, uri: str) -> ReadResourceResult:
    """Return one resource as JSON, in the same form as over HTTP."""
    run_id = _RUN_ID.search(uri)
    row = ROWS.get(_RUN_ID.sub("{runId}", uri, count=1))
    if row is None or row.resource is None or run_id is None:
        raise QueryError(
            "not_found",
            "unknown resource; use spawnlog://runs/{runId}, or append /prompt or /transcript to it",
        )
    path = dict.fromkeys(row.path_arguments.values(), run_id[0])
    view = await read_row(row, services, caller, path, row.resource.query)
    text = view.json_bytes().decode()
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=JSON, text=text)])
