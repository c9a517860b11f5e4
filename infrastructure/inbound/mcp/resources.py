"""Runs, their prompts and their transcripts as resources of the protocol."""

import re

from mcp_types import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from application.commands.services import CommandServices
from application.queries.access import Caller
from application.queries.errors import QueryError
from application.queries.operation import ReadAsOf
from application.queries.runs import (
    GetRun,
    GetRunTranscript,
    ListRuns,
    get_run,
    get_run_prompt,
    get_run_transcript,
    list_runs,
)
from application.queries.views.view import View
from domain.values.text import single_line

RUNS_MAX = 50
TRANSCRIPT_ENTRIES_MAX = 500
NAME_CHARACTERS_MAX = 72
JSON = "application/json"
_URI = re.compile(
    r"spawnlog://runs/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:/(prompt|transcript))?"
)
_OF_A_RUN = {
    "": ("run", "A run", "One run: its stage, plan, result and what it cost."),
    "/prompt": ("prompt", "A run's prompt", "What the sub-agent was given, as it got it."),
    "/transcript": ("transcript", "A run's transcript", "What was said in it, the last entries."),
}


async def list_resources(
    services: CommandServices, caller: Caller, session_key: str
) -> ListResourcesResult:
    """The newest runs that the caller's session asked for."""
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
    """The forms of all addresses."""
    return ListResourceTemplatesResult(
        resource_templates=[
            ResourceTemplate(
                uri_template=f"spawnlog://runs/{{runId}}{ending}",
                name=name,
                title=title,
                description=description,
                mime_type=JSON,
            )
            for ending, (name, title, description) in _OF_A_RUN.items()
        ]
    )


async def read_resource(services: CommandServices, caller: Caller, uri: str) -> ReadResourceResult:
    """One resource as JSON, as it reads over HTTP."""
    found = _URI.fullmatch(uri)
    if found is None:
        raise QueryError(
            "not_found",
            "there is no such resource; there are spawnlog://runs/{runId}, with /prompt or"
            " /transcript behind it",
        )
    view = await _view(services, caller, found[1], found[2])
    text = view.json_bytes().decode()
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=JSON, text=text)])


async def _view(services: CommandServices, caller: Caller, run_id: str, part: str | None) -> View:
    match part:
        case "prompt":
            return (await get_run_prompt(services, caller, run_id, ReadAsOf())).view
        case "transcript":
            answer = await get_run_transcript(
                services,
                caller,
                run_id,
                GetRunTranscript(last=TRANSCRIPT_ENTRIES_MAX, tools=True),
            )
            return answer.view
        case _:
            return (await get_run(services, caller, run_id, GetRun())).view
