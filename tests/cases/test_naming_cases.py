"""Cases of names of runs."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.delivery.announcement import display_name
from infrastructure.contract.subagents import Subagents, TargetError, find_subagent, subagents_of
from infrastructure.inbound.command_line.client.find_run import RunNames, choose_run, parse_run_name
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import hold

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NEWEST, OLDER = RunNames("newest"), RunNames("older")
ENDED = {"running": None, "finished 5 min ago": 5, "finished 2 h ago": 120}


def named(given: Given) -> Answer:
    """Return the sub-agent that a name means in slash commands and on the command line; `last` and
    a label as names of runs; and the name of a run among others.
    """
    if "label" in given:
        key = "agent:main:subagent:x"
        return {"shown": display_name(given["label"], given["task"], key)}
    if "tokens" in given:
        known = subagents_of([_of_age(name) for name in given["runs"]], NOW)
        return {token: _picked(known, token) for token in given["tokens"]}
    if "token" not in given:
        return {"order": [run.run_id for run in _known(given["runs"]).numbered]}
    token = given["token"] or ""
    if token.startswith("#"):
        return {"same_as": token.removeprefix("#") if _is_same(token) else token}
    if "runs" not in given and ":" not in token:
        return {"picks": choose_run(parse_run_name(token), [NEWEST, OLDER]).run_id}
    found = _picked(_known(given.get("runs", ())), token)
    return found if isinstance(found, dict) else {"runId": found}


def _picked(known: Subagents, token: str) -> Any:
    try:
        return find_subagent(known, token).run_id
    except TargetError as failed:
        return {"error": failed.message}


def _is_same(token: str) -> bool:
    known = _known([{"id": name, "createdAt": at} for at, name in enumerate("abc")])
    return bool(_picked(known, token) == _picked(known, token.removeprefix("#")))


def _known(runs: Any) -> Subagents:
    return subagents_of([_as_served(run) for run in runs], NOW)


def _as_served(run: Mapping[str, Any]) -> dict[str, Any]:
    name = run.get("runId") or run["id"]
    times = {key: _at(run[key]) for key in ("createdAt", "startedAt") if key in run}
    facts = {"runId": name, "childSessionKey": f"agent:main:subagent:{name}", "stage": "started"}
    return {**facts, "label": run.get("label"), **times}


def _of_age(name: str) -> dict[str, Any]:
    minutes = ENDED[name]
    facts = _as_served({"id": name, "createdAt": 0})
    if minutes is None:
        return facts
    ended = (NOW - timedelta(minutes=minutes)).isoformat()
    return {**facts, "stage": "announced", "outcome": "success", "endedAt": ended}


def _at(number: float) -> str:
    return (NOW - timedelta(hours=1) + timedelta(seconds=number)).isoformat()


RUNNERS: Mapping[str, Runner] = {"targets": named}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_a_run_is_found_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
