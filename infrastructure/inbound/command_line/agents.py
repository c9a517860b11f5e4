"""`spawnlog agent list`: the agents that a session may spawn."""

from infrastructure.inbound.command_line.options import (
    As,
    DataDir,
    Output,
    Requester,
    Url,
    connected,
)
from infrastructure.inbound.command_line.paging import Listing
from infrastructure.inbound.command_line.rendering import note, print_listing, print_object
from infrastructure.inbound.command_line.tables import Column, field

_COLUMNS = (
    Column("AGENT", field("id")),
    Column("NAME", field("name"), elastic=True),
    Column("CONFIGURED", lambda agent: "yes" if agent.get("configured") else "no"),
    Column("MODEL", field("model")),
    Column("RUNTIME", field("runtime")),
)


def list_agents(
    requester: Requester = "main",
    output: As = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show the agents that a session may spawn."""
    with connected(url, data_dir) as client:
        answer = client.get("/v1/agents", {"requester": requester})
    agents = Listing(answer.body.get("agents") or [], more=False)
    if output is Output.JSON:
        print_object(answer.body, output)
        return
    print_listing(agents, _COLUMNS, output)
    if output is Output.TABLE and answer.body.get("allowAny"):
        note("any other agent may be asked for as well")
