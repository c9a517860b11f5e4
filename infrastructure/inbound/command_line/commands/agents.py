"""`spawnlog agent list`: agents that a session may spawn; `lane list`: what runs and what waits."""

from collections.abc import Iterator, Mapping

from infrastructure.inbound.command_line.client.options import (
    ApiOptions,
    AsOfOption,
    RequesterOption,
)
from infrastructure.inbound.command_line.commands.run.runs import short_id
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    Listing,
    Output,
    print_document,
    print_listing,
    print_note,
    print_table,
)
from infrastructure.inbound.command_line.display.tables import Item, TableColumn, value_of

_AGENT_COLUMNS = (
    TableColumn("AGENT", value_of("id")),
    TableColumn("NAME", value_of("name"), elastic=True),
    TableColumn("CONFIGURED", lambda agent: "yes" if agent.get("configured") else "no"),
    TableColumn("MODEL", value_of("model")),
    TableColumn("RUNTIME", value_of("runtime")),
)


def list_agents(
    requester: RequesterOption = "main", at: AsOfOption = None, *, api: ApiOptions
) -> None:
    """Show the agents that a session may spawn."""
    with api.client() as client:
        answer = client.get("/v1/agents", {"requester": requester, "at": at})
    agents = Listing(answer.value.get("agents") or [], more=False)
    if print_document(answer.value, api.output):
        return
    print_listing(agents, _AGENT_COLUMNS, api.output)
    if api.output is Output.TABLE and answer.value.get("allowAny"):
        print_note("any other agent may be asked for as well")


_LANE_COLUMNS = (
    TableColumn("LANE", value_of("lane")),
    TableColumn("DEPTH", value_of("depth"), right=True),
    TableColumn("RUNNING", value_of("running"), right=True),
    TableColumn("PLACE", value_of("place"), right=True),
    TableColumn("STATE", value_of("state"), coloured=True),
    TableColumn("RUN", lambda row: short_id(row.get("runId"))),
    TableColumn("LABEL", value_of("label"), elastic=True),
    TableColumn("HOLDER", value_of("holder")),
    TableColumn("WAITS FOR", value_of("waitsFor"), folds=True),
)


def list_lanes(at: AsOfOption = None, *, api: ApiOptions) -> None:
    """Show what runs in each lane, and what waits for a place."""
    with api.client() as client:
        listing = client.items("/v1/lanes", {"at": at}, limit=10_000)
    if api.output is not Output.TABLE:
        print_listing(Listing(listing.items, more=False, position=listing.position), (), api.output)
        return
    print_table([row for lane in listing.items for row in _rows(lane)], _LANE_COLUMNS)


def _rows(lane: JsonObject) -> Iterator[Item]:
    """A row for the lane, then one for each run in it."""
    running, queued = _runs(lane.get("running")), _runs(lane.get("queued"))
    yield {
        "lane": lane.get("lane") or lane.get("name"),
        "depth": lane.get("depth"),
        "running": f"{len(running)}/{'?' if lane.get('width') is None else lane['width']}",
        "waitsFor": f"{len(queued)} queued" if queued else None,
    }
    for state, runs in (("running", running), ("queued", queued)):
        for run in runs:
            yield {**run, "state": state, "running": None, "depth": None, "lane": None}


def _runs(value: object) -> list[Mapping[str, object]]:
    entries = value if isinstance(value, list) else []
    return [run if isinstance(run, dict) else {"runId": run} for run in entries]
