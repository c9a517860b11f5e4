"""Recorded decisions that a server replays per second, by kind of request."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.load import Connection
from benchmarks.processor import Spent, spent, used
from benchmarks.report import Figure
from benchmarks.server import Server

EVENTS_MAX = 100_000
"""Maximum number of events to replay, from the end of the log."""
ROUNDS = 3
_SUBAGENTS = "/agents/defaults/subagents"
UNTOUCHED = [{"op": "add", "path": "/agents/list/-", "value": {"id": "newcomer"}}]
ONE_MORE = [{"op": "replace", "path": f"{_SUBAGENTS}/maxChildrenPerAgent", "value": 6}]
OTHER_THINKING = [{"op": "add", "path": f"{_SUBAGENTS}/thinking", "value": "low"}]
QUESTIONS: Mapping[str, Mapping[str, Any]] = {
    "affects nobody": {"patch": UNTOUCHED},
    "one child more": {"patch": ONE_MORE},
    "one child more, totals alone": {"patch": ONE_MORE, "only": ["not-replayable"]},
    "every plan otherwise": {"patch": OTHER_THINKING},
    "with prompts": {"patch": ONE_MORE, "prompts": True},
    "cascade": {"patch": ONE_MORE, "cascade": True},
}


class Decided(NamedTuple):
    """Number of decisions, their duration in seconds, processor seconds of server and PostgreSQL if
    the system reports them, and counts by verdict.
    """

    decisions: int
    seconds: float
    used: Spent | None
    verdicts: Mapping[str, int]


async def measured_what_if(server: Server, title: str, events: int) -> list[Figure]:
    """Return decisions per second of wall-clock time, for one caller of an otherwise idle server.

    The figure is the median of a few rounds, in which the requests take turns.
    """
    found: dict[str, list[Decided]] = {name: [] for name in QUESTIONS}
    for _ in range(ROUNDS):
        for name, question in QUESTIONS.items():
            request = {"from": f"pos:{max(1, events - EVENTS_MAX)}", "to": f"pos:{events}"}
            found[name].append(await _decided(server, {**question, **request}))
    return [_figure(f"{title}: {name}", those) for name, those in found.items()]


def _figure(name: str, rounds: Sequence[Decided]) -> Figure:
    median = sorted(rounds, key=lambda item: item.seconds)[len(rounds) // 2]
    note = f"{median.decisions} decisions; " + ", ".join(
        f"{count} {verdict}" for verdict, count in median.verdicts.items() if count
    )
    if median.used is not None:
        server, postgres = (1000 * item / median.decisions for item in median.used)
        note += f"; {server:.2f} ms of a core each, PostgreSQL {postgres:.2f}"
    return Figure(name, "decisions/s", round(median.decisions / median.seconds, 1), note)


async def _decided(server: Server, question: Mapping[str, Any]) -> Decided:
    connection = Connection(server.url, server.token)
    await connection.open()
    try:
        before, began = spent(server), time.perf_counter()
        lines = await connection.lines("/v1/what-if", json.dumps(question).encode())
        seconds = time.perf_counter() - began
        after = spent(server)
    finally:
        await connection.close()
    last = json.loads(lines[-1])
    if "totals" not in last:
        raise RuntimeError(f"what-if ended with {lines[-1][:300]!r}")
    totals = last["totals"]
    return Decided(totals["decisions"], seconds, used(before, after), totals["byVerdict"])
