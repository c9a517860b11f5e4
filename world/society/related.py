"""Requests that concern other runs: batches and dependencies."""

import random
from collections.abc import Iterable, Mapping
from typing import Any

TASKS_MAX = 3
AWAITED_MAX = 3
NEWEST = 4
"""Number of the newest runs to depend on, which may still be active."""
ANY_END = 0.5
REFERENCE = 0.4


def together(body: Mapping[str, Any], die: random.Random) -> dict[str, Any]:
    """Return the request for several tasks at once."""
    tasks = [f"{body['task']}, part {number + 1}" for number in range(die.randint(1, TASKS_MAX))]
    return {**body, "task": tasks, "parallel": True}


def after_others(
    body: Mapping[str, Any], runs: Iterable[tuple[str, str, str]], die: random.Random
) -> dict[str, Any]:
    """Return the request with dependencies on some of the newest of these runs.

    Only runs of the same tree count. Each is given as run, requester and session. The request may
    also refer to the result of a run of its requester.
    """
    known = list(runs)
    above = {child: requester for _, requester, child in known}
    requester = str(body["requester"]["sessionKey"])
    root = _root(requester, above)
    of_tree = [item for item in known if _root(item[1], above) == root][-NEWEST:]
    chosen = die.sample(of_tree, min(len(of_tree), die.randint(1, AWAITED_MAX)))
    request: dict[str, Any] = {"dependsOn": [_awaited(item[0], die) for item in chosen]}
    own = [run_id for run_id, by, _ in chosen if by == requester]
    if own and die.random() < REFERENCE:
        request["sharedContext"] = {f"${own[0]}": "reference"}
    return {**body, **request}


def _root(key: str, above: Mapping[str, str]) -> str:
    while key in above:
        key = above[key]
    return key


def _awaited(run_id: str, die: random.Random) -> object:
    return {"run": run_id, "require": "ended"} if die.random() < ANY_END else run_id
