"""Lanes in a terminal: one row per lane, followed by its runs."""

from collections.abc import Iterator, Mapping

from infrastructure.inbound.command_line.display.forms import short_id
from infrastructure.inbound.command_line.display.output import JsonObject, Listing, print_table
from infrastructure.inbound.command_line.display.tables import Item, TableColumn, value_of

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


def print_lanes(listing: Listing) -> None:
    """Print the running and queued runs of each lane."""
    print_table([row for lane in listing.items for row in _rows(lane)], _LANE_COLUMNS)


def _rows(lane: JsonObject) -> Iterator[Item]:
    """Yield the row of the lane, then a row for each of its runs."""
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
