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
    "agentId": Option(flag="--agent", metavar="ID", help="Agent, or an alias of one."),
    "label": Option(help="A name for the run."),
    "model": Option(help="Model, as provider/name."),
    "thinking": Option(help="Thinking level."),
    "runTimeoutSeconds": Option(
        flag="--timeout",
        metavar="DURATION",
        means="duration",
        help=f"End it after so long: {DURATION_FORMS}. 0: never.",
    ),
    "thread": Option(help="Bind the child to a thread of the channel."),
    "mode": Option(help="One run, or a session that stays; needs --thread."),
    "cleanup": Option(
        help="Archive right after the announcement, or later. A spawn that says nothing: keep."
    ),
    "sandbox": Option(help="Whether it has to be in a sandbox."),
    "context": Option(
        help="Begin with the requester's conversation, or without. A spawn that"
        " says nothing: isolated; in a thread, session.threadBindings.defaultSpawnContext."
    ),
    "lightContext": Option(help="Leave AGENTS.md and TOOLS.md out of the prompt."),
    "expectsCompletionMessage": Option(
        flag="--no-completion", help="Announce nothing when it has ended."
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
        help="Where the child is to look for the files; they are not moved.",
    ),
    "contextPreamble": Option(flag="--preamble", help="What stands in front of its prompt."),
    "sharedContext": Option(
        flag="--shared",
        metavar="JSON",
        means="objects",
        help="Keys of the shared context as a JSON object, or @FILE with one; may be repeated, and"
        " of a key that is given twice the last value counts.",
    ),
    "sharedContextScope": Option(
        flag="--shared-scope", help="For all children of the session, or for this one alone."
    ),
    "dependsOn": Option(
        metavar="RUN", help="Begin when this run of the tree is done (label or id)."
    ),
    "chainAfter": Option(metavar="RUN", help="One run more to wait for, by label or id."),
    "requester.channel": Option(help="The channel that the requester is on."),
    "requester.accountId": Option(flag="--account", metavar="ID", help="Its account there."),
    "requester.to": Option(metavar="TARGET", help="Where on the channel it is."),
    "requester.threadId": Option(metavar="ID", help="In which thread."),
    "requester.workspaceDir": Option(
        flag="--workspace", metavar="DIR", help="The folder it works in."
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
    summary="Spawn a sub-agent",
    description=(
        "Decides, gathers the child's context, opens its session and queues its run. Answered when"
        " the session exists; what was decided is durable by then. A caller that goes away cancels"
        " nothing. A refusal is recorded like everything else. A list of tasks is decided as one:"
        " its answer has a `batchId`, and all runs in `runs`; a refusal names the run and the task"
        " for which all were refused. The requester may be given by its session id, or as `current`"
        " by a token that acts for one session; what is on record about"
        " it outranks what the request says of it."
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
