"""Spawn sub-agents."""

from application.commands.context import CommandContext, CommandResponse
from application.commands.control import require_service
from application.commands.resolve_request import REQUESTER_KEY, resolve_request
from application.commands.services import CommandServices
from application.log.answers import AcceptedBatch, AcceptedBatchOfOne, AcceptedSpawn
from application.queries.access import Caller, require_agent_access, require_session_access
from application.queries.command import Command, Option
from application.queries.operation import operation
from application.queries.session_reference import resolve_session_reference
from domain.spawn.request import SpawnRequest
from domain.values.moments import DURATION_FORMS

SPAWN_OPTIONS: dict[str, Option | None] = {
    "agentId": Option(
        flag="--agent",
        metavar="ID",
        help="Agent of the child, or an alias. Default: the requester's agent.",
    ),
    "label": Option(help="Label of the run, by which other commands can name it."),
    "model": Option(help="Model, as provider/name. Default: as configured."),
    "thinking": Option(
        help="Thinking level: off, minimal, low, medium, high, xhigh, max or adaptive. Default: as"
        " configured."
    ),
    "runTimeoutSeconds": Option(
        flag="--timeout",
        metavar="DURATION",
        means="duration",
        help=f"Time limit of the run: {DURATION_FORMS}. 0: none. Default: as configured.",
    ),
    "thread": Option(help="Bind the child to a thread of the requester's channel."),
    "mode": Option(help="run: one run. session: a session that stays open; requires --thread."),
    "cleanup": Option(help="delete: archive right after the announcement. keep (default): later."),
    "sandbox": Option(help="require: refuse the spawn if the child would not be in a sandbox."),
    "context": Option(
        help="fork: start with the requester's conversation. isolated: without it. Default:"
        " isolated; in a thread, session.threadBindings.defaultSpawnContext."
    ),
    "lightContext": Option(help="Leave AGENTS.md and TOOLS.md out of the prompt."),
    "expectsCompletionMessage": Option(
        flag="--no-completion", help="Do not announce the end of the run."
    ),
    "attachments": Option(
        flag="--attach",
        metavar="FILE",
        means="files",
        help="A file to put into the child's workspace, under its own name; may be repeated.",
    ),
    "attachAs.mountPath": Option(
        flag="--attach-as",
        metavar="PATH",
        help="Path at which the child is told to look; the files are not moved.",
    ),
    "contextPreamble": Option(
        flag="--preamble",
        means="stdin",
        help="Text in front of the child's system prompt; - reads standard input.",
    ),
    "sharedContext": Option(
        flag="--shared",
        metavar="JSON",
        means="objects",
        help="Keys of the shared context as a JSON object, or @FILE with one, or - for standard"
        " input; may be repeated. The last value of a key counts.",
    ),
    "sharedContextScope": Option(
        flag="--shared-scope",
        help="child: share the keys only with this child. Default: with all children.",
    ),
    "dependsOn": Option(
        metavar="RUN",
        means="runs",
        help="Start when this earlier run (label or id) has succeeded; may be repeated. As a JSON"
        " object with run and require: ended, after any outcome.",
    ),
    "chainAfter": Option(metavar="RUN", help="One more run (label or id) to wait for."),
    "requester.channel": Option(help="Channel of the requester, such as slack."),
    "requester.accountId": Option(flag="--account", metavar="ID", help="Account on the channel."),
    "requester.to": Option(metavar="TARGET", help="Address on the channel."),
    "requester.threadId": Option(metavar="ID", help="Thread on the channel."),
    "requester.workspaceDir": Option(
        flag="--workspace",
        metavar="DIR",
        help="Workspace folder of the requester, as an absolute path.",
    ),
    # The command handles these itself, or reads them from a file only.
    **dict.fromkeys(("task", "parallel", "requester.sessionKey")),
    **dict.fromkeys(
        f"requester.{name}"
        for name in (
            "groupId",
            "groupChannel",
            "groupSpace",
            "memberRoleIds",
            "agentIdOverride",
            "sandboxed",
            "activeModel",
            "activeThinking",
        )
    ),
}


@operation(
    "POST",
    "/v1/spawns",
    name="spawn",
    tag="spawns",
    scope="spawn",
    summary="Spawn a sub-agent, or several",
    description=(
        "Decides the spawn, prepares the child's context, creates its session and queues its"
        " run. The response comes when the session exists; the decision is durable by then. A"
        " disconnect of the caller cancels nothing. Refusals are recorded too. A list of tasks"
        " is decided as one: the response has a `batchId` and all `runs`; a refusal names the"
        " run and the task that caused it. The requester may be given by its session id, or as"
        " `current` with a token for one session. Recorded facts about the requester override"
        " the request."
    ),
    errors=("spawn_forbidden", "spawn_error", "session_closed"),
    answer=AcceptedBatchOfOne | AcceptedSpawn | AcceptedBatch,
    status=201,
    status_description="Accepted and durable",
    repeat="key",
    location="/v1/runs/{runId}",
    body_required=True,
    command=Command("spawn", by_hand=True, options=SPAWN_OPTIONS),
)
async def spawn(
    services: CommandServices, caller: Caller, body: SpawnRequest, command: CommandContext
) -> CommandResponse:
    """Spawn a sub-agent, or one for each task of a list."""
    require_service(services)
    requester_key = await resolve_session_reference(
        services, caller, body.requester.session_key, REQUESTER_KEY
    )
    return await submit_spawn(services, caller, body, requester_key, command)


async def submit_spawn(
    services: CommandServices,
    caller: Caller,
    body: SpawnRequest,
    requester_key: str | None,
    command: CommandContext,
) -> CommandResponse:
    """Submit a spawn request.

    Args:
        requester_key: Canonical key of the requester, if it is already known.

    Raises:
        QueryError: If the request is invalid, or the caller may not act for its requester.
    """
    pinned = services.work.configurations.current()
    resolved = resolve_request(body, pinned.configuration, requester_key)
    require_session_access(caller, resolved.requester_key)
    if resolved.asserts_agent:
        require_agent_access(caller, resolved.requester_agent_id, pinned.configuration)
    spawned = await services.spawning.spawn(
        resolved,
        caller.actor,
        command.reservation,
        command.is_there,
        command.traceparent,
        pinned=pinned,
    )
    return CommandResponse(spawned.answer, spawned.position)
