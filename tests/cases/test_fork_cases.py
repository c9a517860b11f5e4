"""Cases of forks: whether a child begins with its requester's conversation."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from application.steps.step import StepRefusedError, StepResult
from domain.context.fork import accepted_note, fork_note
from domain.run.facts import SpawnOptions
from domain.run.state import Run
from tests.support.builders.run_histories import prepared, resolved, step_begun
from tests.support.builders.storytelling import facts, plan, ref, requested, requester, run_of
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import hold
from tests.support.cases.forks import Beyond, beyond, makers


def forked(given: Given) -> Answer:
    """Make the steps of a case's spawn up to the context engine, in order.

    A requester with a session id has an uploaded transcript. A session is deleted by undoing its
    steps.
    """
    outside = beyond(given.get("parent", {}), json.dumps({"channel": given.get("channel")}))
    run = _run(given["args"])
    answer = asyncio.run(_made(outside, run))
    return {"context_engine_prepare_calls": len(outside.asked), **answer}


def _run(args: Mapping[str, Any]) -> Run:
    agent_id = args.get("agentId", "main")
    request = requested(
        requested_agent_id=agent_id,
        requester=requester(origin=ref("origin")),
        options=SpawnOptions(context=args["context"]),
        facts=facts(thread=args.get("thread", False), target_agent_id=agent_id),
    )
    return run_of(request, resolved(), prepared())


async def _made(outside: Beyond, run: Run) -> dict[str, Any]:
    state = run_of(
        requested(), resolved(), prepared(), step_begun("context_fork", root="/", relative="x")
    ).steps[0]
    made: dict[str, StepResult] = {}
    try:
        wanted = [maker for maker in makers(outside) if await maker.place(run, plan()) is not None]
        for item in wanted:
            made[item.name] = await item.make(run, state, is_resumed=False)
    except StepRefusedError as refused:
        return {"status": refused.refusal.status, "error": refused.refusal.text}
    fork = made["context_fork"].fork
    assert fork is not None
    note = accepted_note(run.options, run.requester, fork_note(fork))
    return {"status": "accepted", "contextMode": fork.mode, "note": note}


RUNNERS: Mapping[str, Runner] = {"spawn.context": forked}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_a_conversation_is_taken_over_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
