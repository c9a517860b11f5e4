"""Cases of messages to sessions, stops of many runs, and children of one of a session's runs."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from uuid import UUID

import pytest

from application.log import answers
from domain.run.continuation import SteeredTooSoon, SteerTooLong, require_steerable
from domain.values.refusals import Rejected
from tests.support.builders import continued_runs as continued
from tests.support.builders import run_histories as past
from tests.support.builders.storytelling import at, run_id
from tests.support.builders.storytelling import given as given_run
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import hold
from tests.support.cases.control import announced_text, may_send, stop_run, stop_session, stopped
from tests.support.cases.families import CaseFamily


def sent(given: Given) -> Answer:
    """Return the answer to a message to a run that is over. A foreign run is a sibling, which a
    child's token does not cover.
    """
    family = CaseFamily()
    family.begin("target")
    if "caller" in given:
        family.begin("caller")
        allowed = asyncio.run(may_send(family, "caller", "target"))
        return {"status": "ok" if allowed else "forbidden"}
    family.end("target")
    family.announce("target")
    judged = family.continued("<new>", "target")
    run_id = next(run for run, name in family.names.items() if name == "<new>")
    body = answers.continued_response(family.run("target"), run_id, (), None).body
    return {
        "status": "ok" if judged.refusal is None else judged.refusal.status,
        "runId": family.names[UUID(str(body["runId"]))],
        "replyText": body.get("replyText"),
    }


def killed(given: Given) -> Answer:
    """Stop a session (`kill-all`), or one run with everything below it; return the stopped ones.

    Of two rows of one child, the later run continues the session of the other.
    """
    family = CaseFamily()
    if given["action"] == "kill":
        for name, by in (("parent", "main"), ("child", "parent"), ("leaf", "child")):
            _begin(family, name, by, given[name])
        family.end("child")
        family.end("parent")
        kind = asyncio.run(stop_run(family, "parent"))
        result = stopped(family)
        return {
            "status": "ok" if kind == "stopping" else kind,
            "cascadeKilled": len(result),
            "cascadeLabels": [answer.label for answer in result],
        }
    _ROWS[str(given["rows"])](family)
    kind = asyncio.run(stop_session(family, "main"))
    result = stopped(family)
    return {
        "status": "ok" if kind == "stopping" else kind,
        "killed": len(result),
        "labels": [answer.label for answer in result],
    }


def _begin(family: CaseFamily, name: str, by: str, words: str) -> None:
    family.begin_with(name, by, label=words.partition(" (")[0])


def _stale_and_current(family: CaseFamily) -> None:
    _stale(family)
    family.go_on("current", "stale")


def _ended_parent(family: CaseFamily) -> None:
    _begin(family, "parent", "main", "parent")
    _begin(family, "child", "parent", "child")
    family.end("parent")


def _stale(family: CaseFamily) -> None:
    _begin(family, "stale", "main", "current task")
    family.end("stale")
    family.announce("stale")


_ROWS = {
    "['stale', 'current']": _stale_and_current,
    "['ended parent with active child']": _ended_parent,
    "stale snapshot": _stale,
}


def windowed(given: Given) -> Answer:
    """Return the children of one run of a session: those that it requested itself, whose results
    come with its own.

    Earlier and later ones belong to the runs around it.
    """
    start, end = given["requesterRun"]["startedAt"], given["requesterRun"]["endedAt"]
    created = given["children_createdAt"]
    family = CaseFamily()
    texts: dict[str, str] = {}
    spans = {"before": (0, start), "asked": (start, end), "after": (end, max(created) + 1)}
    last = None
    for name, (since, until) in spans.items():
        if last is None:
            family.begin(name)
        else:
            family.go_on(name, last)
        _children(family, [at for at in created if since <= at < until])
        family.end(name)
        texts[name] = asyncio.run(announced_text(family, name))
        last = name
    return {"returned_createdAt": [at for at in created if f"child {at}" in texts["asked"]]}


def _children(family: CaseFamily, created: list[int]) -> None:
    for number in created:
        _begin(family, str(number), "before", f"child {number}")
        family.end(str(number))
        family.announce(str(number))


def steered(given: Given) -> Answer:
    """Return the answer to steering a running run: to the second within two seconds, and to one
    that is too long.
    """
    if "message_length" in given:
        return _steer_refused(lambda: require_steerable("x" * given["message_length"]))
    first, second = (timedelta(milliseconds=ms) for ms in given["steers_at_ms"])
    at_work = past.a_started_run()
    once = given_run(*at_work).when(continued.queue(cause="steer", at=at(1) + first)).after()
    again = continued.queue(cause="steer", at=at(1) + second, run_id=run_id(8))
    return {"second": _steer_refused(lambda: once.when(again).after())}


_STATUS_OF_STEERS: Mapping[type[Rejected], str] = {
    SteeredTooSoon: "rate_limited",
    SteerTooLong: "error",
}


def _steer_refused(steer: Callable[[], object]) -> Answer:
    try:
        steer()
    except Rejected as refused:
        return {"status": _STATUS_OF_STEERS[type(refused)], "error": str(refused)}
    return {"status": "accepted"}


RUNNERS: Mapping[str, Runner] = {
    "control.send": sent,
    "control.steer": steered,
    "control.kill": killed,
    "registry.list": windowed,
}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_sessions_go_on_and_are_stopped_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
