"""Cases of admission."""

from collections.abc import Mapping

import pytest

from domain.plan.child import RefusedChild
from domain.spawn.request import effective_cleanup, effective_mode
from domain.values.refusals import Refusal
from domain.values.session_key import child_key
from infrastructure.inbound.mcp.tools.spawn_arguments import ToolSpawn, read_tool_arguments
from tests.support.builders.storytelling import run_id
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import hold
from tests.support.cases.spawns import CaseSpawn


def judged(given: Given) -> Answer:
    """Decide the request on the described record, then the agent that would run.

    The agents of a case are configured. A call to a gateway is an admitted child.
    """
    spawn = CaseSpawn(given)
    if spawn.refusal is not None:
        return _refused(spawn.refusal, launched=spawn.admitted)
    planned = spawn.planned()
    if isinstance(planned, RefusedChild):
        return _refused(planned.refusal, launched=0)
    run = spawn.run
    assert run.agent_id is not None
    return {
        "status": "accepted",
        "childSessionKey": child_key(run.agent_id, str(run_id(1))),
        "childEntry": {
            "spawnedBy": run.requester.session_key,
            "spawnDepth": run.depth,
            "subagentRole": planned.capabilities.role,
            "subagentControlScope": planned.capabilities.control_scope,
        },
        "gateway_calls": spawn.admitted,
    }


def _refused(refusal: Refusal, *, launched: int) -> Answer:
    calls = {"gateway_calls": launched, "gateway_agent_calls": launched}
    return {"status": refusal.status, "error": refusal.text, **calls}


def of_mode(given: Given) -> Answer:
    """Return the effective mode and cleanup, and whether the request is permitted with them."""
    spawn = read_tool_arguments(given["args"])
    assert isinstance(spawn, ToolSpawn)
    members = spawn.members
    mode = effective_mode(members.get("mode"), thread=members.get("thread", False))
    effective = {"mode": mode, "cleanup": effective_cleanup(members.get("cleanup"), mode)}
    return {**judged(given), "effective": effective}


RUNNERS: Mapping[str, Runner] = {
    "admission.agentId": judged,
    "admission.allowAgents": judged,
    "admission.children": judged,
    "admission.depth": judged,
    "admission.mode": of_mode,
    "admission.order": judged,
    "admission.requireAgentId": judged,
    "admission.sandbox": judged,
}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_a_spawn_is_judged_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
