"""Data directory of a storm of spawns, with a wrong configuration in its middle.

Tests find out from the record alone what went wrong, since when, and for which requesters. `python
-m tests.support.servers.misconfigured_storm DIR` makes one.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.servers.configurations import agent, configuration, scripted
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

SESSIONS = 13
CALLERS = 8
SPAWNS = (70, 70, 60)
"""Numbers of spawns before, under, and after the wrong configuration."""
EVERY_REVIEW = 3
RULE = "allow_agents"
RULE_NAME = "agent not allowed"
"""Name of the rule on the page."""
WRONG_REVISION = 2
SETTLED_SECONDS = 60.0


@dataclass
class StormRecord:
    """Facts of the record, from the answers of the callers."""

    refused: set[str] = field(default_factory=set)
    accepted: set[str] = field(default_factory=set)


def storm_configuration(*allowed: str, width: int) -> dict[str, Any]:
    """Return a configuration with the agents that `main` may spawn and the lane width."""
    main = agent("main", default=True, subagents={"allowAgents": list(allowed)})
    return configuration(
        main,
        agent("writer", scripted(steps=[{"afterMs": 5}])),
        agent("reviewer", scripted(steps=[{"afterMs": 5}])),
        maxConcurrent=width,
        maxChildrenPerAgent=20,
        archiveAfterMinutes=0,
    )


RIGHT = storm_configuration("writer", "reviewer", width=16)
# A change widens the lane, and drops an agent by mistake.
WRONG = storm_configuration("writer", width=24)
MENDED = storm_configuration("writer", "reviewer", width=24)


@contextmanager
def server_of_storm(data_dir: Path) -> Iterator[Server]:
    """Yield the server, before or after the storm."""
    with Server(data_dir, RIGHT) as server:
        yield server


def blow(server: Server) -> StormRecord:
    """Make some 200 spawns of several sessions; break and repair the configuration on the way."""
    record = StormRecord()
    # One thread creates the description of answers with the first one.
    server.http.get("/v1/lanes")
    first = 0
    for number, spawns in enumerate(SPAWNS):
        if number > 0:
            server.reload((WRONG, MENDED)[number - 1])
        with ThreadPoolExecutor(CALLERS) as callers:
            for run_id, accepted in callers.map(
                lambda place: _spawn(server, place), range(first, first + spawns)
            ):
                (record.accepted if accepted else record.refused).add(run_id)
        first += spawns
    wait_for("the last child", lambda: _is_over(server), seconds=SETTLED_SECONDS)
    return record


def _spawn(server: Server, place: int) -> tuple[str, bool]:
    agent_id = "reviewer" if place % EVERY_REVIEW == 0 else "writer"
    answer = server.spawn(
        f"chapter {place}",
        requester={"sessionKey": f"agent:main:book-{place % SESSIONS}"},
        agentId=agent_id,
        label=f"{agent_id}-{place}",
    )
    assert answer.status_code in (201, 403), answer.text
    return str(answer.json()["runId"]), answer.status_code == 201


def _is_over(server: Server) -> bool:
    busy = ("requested", "scripts-resolved", "session-created", "queued", "started", "ended")
    return not server.http.get("/v1/runs", params={"stage": busy, "limit": 1}).json()["items"]


if __name__ == "__main__":
    with server_of_storm(Path(sys.argv[1])) as started:
        made = blow(started)
    print(f"{len(made.accepted)} accepted, {len(made.refused)} refused")
