"""A summary of a range of the log in a terminal: agents, causes of failures, revisions."""

from infrastructure.inbound.command_line.display.forms import assignments, dollars, short_id
from infrastructure.inbound.command_line.display.output import JsonObject, print_note, print_table
from infrastructure.inbound.command_line.display.tables import Item, TableColumn, value_of
from infrastructure.inbound.command_line.display.times import format_instant

_WAITS = {"runs": "other runs to end", "slot": "a free slot", "claim": "a server to take them"}
_AGENT_COLUMNS = (
    TableColumn("AGENT", value_of("agentId")),
    TableColumn("RUNS", value_of("runs"), right=True),
    TableColumn("ENDED", lambda agent: assignments(agent.get("statuses"))),
    TableColumn("TOKENS IN", value_of("inputTokens"), right=True),
    TableColumn("TOKENS OUT", value_of("outputTokens"), right=True),
    TableColumn("COST", lambda usage: dollars(usage.get("estimatedCostUsd")), right=True),
)
_CAUSE_COLUMNS = (
    TableColumn("RUNS", value_of("runs"), right=True),
    TableColumn("AGENTS", lambda cause: assignments(cause.get("agents"))),
    TableColumn("NEWEST", lambda cause: short_id(next(iter(cause.get("runIds") or ()), None))),
    TableColumn("AT", lambda cause: format_instant(cause.get("newestAt"))),
    TableColumn("ERROR", value_of("error"), elastic=True),
)
_WAIT_COLUMNS = (
    TableColumn("RUNS", value_of("runs"), right=True),
    TableColumn("WAIT FOR", lambda wait: _WAITS.get(str(wait.get("reason")))),
    TableColumn("LANE", value_of("lane")),
    TableColumn("DEPTH", value_of("depth"), right=True),
)
_REVISION_COLUMNS = (
    TableColumn("REVISION", value_of("revision"), right=True),
    TableColumn("POSITION", value_of("position"), right=True),
    TableColumn("ACTIVE FROM", lambda revision: format_instant(revision.get("activatedAt"))),
    TableColumn("BY", value_of("activatedBy")),
)


def print_summary(summary: JsonObject) -> None:
    """Print the tables of a summary that have rows, and a note if not all runs were counted."""
    ended: Item = summary.get("ended") or {}
    for heading, items, columns in (
        ("by agent", _agents(ended), _AGENT_COLUMNS),
        ("failures by cause", summary.get("failures"), _CAUSE_COLUMNS),
        ("waiting runs", (summary.get("live") or {}).get("waits"), _WAIT_COLUMNS),
        ("configuration changes", summary.get("revisions"), _REVISION_COLUMNS),
    ):
        if items:
            print(f"\n{heading}:")
            print_table(items, columns)
    if summary.get("furtherCauses"):
        print_note(f"{summary['furtherCauses']} further causes are not shown")
    if ended.get("countedTo") is not None:
        print_note(
            f"only the newest runs were counted, down to pos:{ended['countedTo']};"
            " give a shorter range"
        )


def _agents(ended: Item) -> list[Item]:
    """Return ends, tokens and cost of each agent, the most expensive first."""
    used: dict[str, Item] = {usage["agentId"]: usage for usage in ended.get("usageByAgent") or ()}
    statuses: Item = ended.get("statusesByAgent") or {}
    ends = {
        agent: {"agentId": agent, "runs": sum(counts.values()), "statuses": counts}
        for agent, counts in statuses.items()
    }
    return [
        {**used.get(agent, {}), **ends.get(agent, {})} for agent in dict.fromkeys((*used, *ends))
    ]
