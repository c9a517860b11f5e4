"""`spawnlog agent list`: the agents that a session may spawn."""

from infrastructure.inbound.command_line.client.options import (
    DataDir,
    Output,
    OutputOption,
    RequesterOption,
    Url,
    open_client,
)
from infrastructure.inbound.command_line.client.paging import Listing
from infrastructure.inbound.command_line.display.output import (
    print_listing,
    print_note,
    print_object,
)
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of

_AGENT_COLUMNS = (
    TableColumn("AGENT", value_of("id")),
    TableColumn("NAME", value_of("name"), elastic=True),
    TableColumn("CONFIGURED", lambda agent: "yes" if agent.get("configured") else "no"),
    TableColumn("MODEL", value_of("model")),
    TableColumn("RUNTIME", value_of("runtime")),
)


def list_agents(
    requester: RequesterOption = "main",
    output: OutputOption = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show the agents that a session may spawn."""
    with open_client(url, data_dir) as client:
        answer = client.get("/v1/agents", {"requester": requester})
    agents = Listing(answer.body.get("agents") or [], more=False)
    if output is Output.JSON:
        print_object(answer.body, output)
        return
    print_listing(agents, _AGENT_COLUMNS, output)
    if output is Output.TABLE and answer.body.get("allowAny"):
        print_note("any other agent may be asked for as well")
