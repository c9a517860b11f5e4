"""`spawnlog lane list`: what runs now, and what waits for a place."""

from collections.abc import Iterator, Mapping

from infrastructure.inbound.command_line.options import (
    As,
    DataDir,
    Output,
    Url,
    connected,
)
from infrastructure.inbound.command_line.paging import JsonObject, Listing
from infrastructure.inbound.command_line.rendering import print_listing, print_table
from infrastructure.inbound.command_line.runs import short
from infrastructure.inbound.command_line.tables import Column, Item, field

_COLUMNS = (
    Column("LANE", field("lane")),
    Column("DEPTH", field("depth"), right=True),
    Column("RUNNING", field("running"), right=True),
    Column("PLACE", field("place"), right=True),
    Column("STATE", field("state"), coloured=True),
    Column("RUN", lambda row: short(row.get("runId"))),
    Column("LABEL", field("label"), elastic=True),
    Column("HOLDER", field("holder")),
    Column("WAITS FOR", field("waitsFor"), elastic=True),
)


def list_lanes(output: As = Output.TABLE, url: Url = None, data_dir: DataDir = None) -> None:
    """Show each lane: its width, the runs that have a place, and those that wait for one."""
    with connected(url, data_dir) as client:
        listing = client.items("/v1/lanes", {}, limit=10_000)
    if output is not Output.TABLE:
        print_listing(Listing(listing.items, more=False, position=listing.position), (), output)
        return
    print_table([row for lane in listing.items for row in _rows(lane)], _COLUMNS)


def _rows(lane: JsonObject) -> Iterator[Item]:
    """A row for the lane, then one for each run in it."""
    running, queued = _runs(lane.get("running")), _runs(lane.get("queued"))
    yield {
        "lane": lane.get("lane") or lane.get("name"),
        "depth": lane.get("depth"),
        "running": f"{len(running)}/{lane.get('width')}",
        "waitsFor": f"{len(queued)} queued" if queued else None,
    }
    for state, runs in (("running", running), ("queued", queued)):
        for run in runs:
            yield {**run, "state": state, "running": None, "depth": None, "lane": None}


def _runs(value: object) -> list[Mapping[str, object]]:
    entries = value if isinstance(value, list) else []
    return [run if isinstance(run, dict) else {"runId": run} for run in entries]
