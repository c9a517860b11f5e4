"""What the tool makes of its arguments, and how long a run may take."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from domain.plan.child import IneligiblePlan
from domain.plan.timeout import run_timeout_seconds
from infrastructure.inbound.mcp.tools.call import ToolInputError
from infrastructure.inbound.mcp.tools.spawn_arguments import (
    ToolSpawn,
    read_tool_arguments,
    tool_schema,
    with_role,
)
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import hold
from tests.support.cases.spawns import CaseSpawn


def read(given: Given) -> Answer:
    """What is thrown, or what the tool takes over; where a spawn was answered, what the tool makes
    of the answer; without arguments, the words that the schema offers."""
    if "args" not in given:
        schema = cast("dict[str, Any]", tool_schema(threads=False)["properties"])
        offered = {name: one["enum"] for name, one in schema.items() if "enum" in one}
        return {"schema": {**schema, **offered}}
    try:
        spawn = read_tool_arguments(given["args"])
    except ToolInputError as error:
        return {"throws": str(error)}
    assert isinstance(spawn, ToolSpawn)
    answered = with_role(given.get("spawn_result", {}), spawn.agent_id)
    return {**answered, "effective": {"cleanup": spawn.cleanup, "sandbox": spawn.sandbox}}


def timed(given: Given) -> Answer:
    """The seconds that hold for an argument and a configured limit; of a call, those of its plan
    under no configuration. Both are numbers of JSON; another value is none."""
    if "args" not in given:
        return {"runTimeoutSeconds": run_timeout_seconds(given["arg"], given["config"])}
    planned = CaseSpawn(given).planned()
    if isinstance(planned, IneligiblePlan):
        return {"status": planned.refusal.status}
    timeout = planned.plan.run_timeout_seconds
    return {"status": "accepted", "agent_call": {"timeout": timeout}}


RUNNERS: Mapping[str, Runner] = {"admission.params": read, "admission.timeout": timed}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_the_arguments_are_read_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
