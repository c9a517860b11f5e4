"""The agents that a requester may spawn."""

from pydantic import Field

from application.queries.access import Caller
from application.queries.as_of import resolve_as_of
from application.queries.command import Column, Command, Option
from application.queries.configuration import configuration_in_force
from application.queries.errors import QueryError
from application.queries.operation import ReadAsOf, Tool, operation
from application.queries.run_filter import TEXT_CHARACTERS_MAX
from application.queries.services import QueryServices
from application.queries.session_reference import resolve_session_key
from application.queries.views.view import Answer, View
from domain.configuration.agents import allowed_agents
from domain.configuration.configuration import Configuration
from domain.values.session_key import MAIN, agent_id_of


class ListedAgent(View):
    """One agent. An allowed agent may be absent from the configuration (`configured` false): then a
    spawn succeeds only if a context script overrides it with another agent, and `model` and
    `runtime` are null. `runtime` is the type of its runtime."""

    id: str
    name: str | None
    configured: bool
    model: str | None
    runtime: str | None


class AgentListing(View):
    """The agents that a requester may spawn. `requester` is the requester's agent. It comes first
    if it may spawn itself; the others are sorted. If `allowAny` is true, `agents` lists the
    configured agents, and any other id is allowed too."""

    requester: str
    allow_any: bool
    agents: list[ListedAgent]


class ListAgents(ReadAsOf):
    """Parameters of `list_agents`."""

    requester: str = Field(
        MAIN,
        max_length=TEXT_CHARACTERS_MAX,
        description=(
            "The requesting session: its key in any spelling, its session id, or `current`."
        ),
    )


@operation(
    "GET",
    "/v1/agents",
    name="listAgents",
    tag="agents",
    scope="read",
    summary="List the agents that a requester may spawn",
    description=(
        "The requester's own agent comes first if it is allowed; the others are sorted. The token"
        " must cover the requester, which need not be on record; if it is, its recorded agent is"
        " used. With `at`, the configuration in force at that moment is used."
    ),
    errors=("not_found",),
    tool=Tool(
        name="agents_list",
        title="List agents",
        description="The agents that sessions_spawn may name in agentId.",
    ),
    command=Command(
        "agent list",
        "Show the agents that a session may spawn.",
        options={
            "requester": Option(
                metavar="KEY",
                means="requester",
                default=MAIN,
                variable="SPAWNLOG_SESSION_KEY",
                help="Key of the requesting session; a child finds its own in the environment.",
            )
        },
        items="agents",
        columns=(
            Column("AGENT", "id"),
            Column("NAME", "name", elastic=True),
            Column("CONFIGURED", "configured", "yes"),
            Column("MODEL", "model"),
            Column("RUNTIME", "runtime"),
        ),
        notes={"allowAny": "any other agent is allowed too"},
    ),
)
async def list_agents(
    services: QueryServices, caller: Caller, query: ListAgents
) -> Answer[AgentListing]:
    """Return the agents that the requester may spawn under the configuration in force at `at`."""
    moment = await resolve_as_of(services, caller, query.at)
    key = await resolve_session_key(
        services, caller, query.requester, pointer="/query/requester", at=moment.position
    )
    if not await services.access.covers_session(caller, key):
        raise QueryError(
            "not_found",
            "this token covers no such session; give one of its own as requester",
            position=moment.position,
        )
    session = await services.work.registry.session(key, at=moment.position)
    configuration = await configuration_in_force(services.work, moment.position)
    if configuration is None:
        raise QueryError(
            "not_found",
            "the configuration in force then is not on record: none was active yet, or its text"
            " was erased",
            position=moment.position,
        )
    agent_id = session.agent_id if session is not None else agent_id_of(key)
    return Answer(listed_agents(configuration, agent_id), moment.position)


def listed_agents(configuration: Configuration, requester_agent_id: str) -> AgentListing:
    """Return the agents that a requester with this agent may spawn."""
    allow = configuration.effective_agent(requester_agent_id).subagents.allow_agents
    allowed = allowed_agents(requester_agent_id, allow)
    names = configuration.agent_ids() if allowed is None else allowed
    ordered = sorted(set(names), key=lambda name: (name != requester_agent_id, name))
    return AgentListing(
        requester=requester_agent_id,
        allow_any=allowed is None,
        agents=[_listed(name, configuration) for name in ordered],
    )


def _listed(agent_id: str, configuration: Configuration) -> ListedAgent:
    agent = configuration.effective_agent(agent_id)
    if not agent.is_configured:
        return ListedAgent(id=agent_id, name=None, configured=False, model=None, runtime=None)
    return ListedAgent(
        id=agent_id,
        name=agent.name,
        configured=True,
        model=agent.model,
        runtime=agent.runtime.type if agent.runtime is not None else None,
    )
