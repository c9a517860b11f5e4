"""What the tool `subagents` of a server answers."""

from collections.abc import Mapping

import pytest

from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import hold
from tests.support.cases.served import caller_of, case_house, child_of
from tests.support.servers.running_server import wait_for

pytestmark = pytest.mark.server


def killed(given: Given) -> Answer:
    """A run that is over is stopped by its label, and nothing is recorded of it; or a leaf, which
    has the tool here, stops something."""
    house = case_house()
    key = house.session("kill")
    if given.get("callerScope") == "none":
        with house.held(key) as parent, house.held(parent.child) as leaf:
            return child_of(leaf.token).values("subagents", action="kill", target="all")
    run = house.ended(key, label=given["entry"])
    before = _events(run["runId"])
    answer = caller_of(key).values("subagents", action=given["action"], target=given["entry"])
    same = _events(run["runId"]) == before
    return {**answer, "session.abortedLastRun": "untouched" if same else "changed"}


def steered(given: Given) -> Answer:
    """A child steers its own session; or a requester one that has ended before its child has."""
    house = case_house()
    key = house.session("steer")
    if "caller" in given:
        with house.held(key) as own:
            return child_of(own.token).values(
                "subagents", action="steer", target=own.child, message="go on"
            )
    label = given["entry"]
    with house.held(key, label=label) as parent, house.held(parent.child) as child:
        house.gates.open(parent.run_id)
        wait_for("it to end", lambda: house.server.run(parent.run_id)["stage"] == "ended")
        answer = caller_of(key).values(
            "subagents", action=given["action"], target=label, message="go on"
        )
        house.gates.open(child.run_id)
        house.gates.open(answer["runId"])
    return answer


def listed(given: Given) -> Answer:
    """The text of the list of a session; the task of its one sub-agent stands behind the dash."""
    house = case_house()
    key = house.session("list")
    if "task_length" in given:
        house.ended(key, label="long", task="x" * given["task_length"])
    text = caller_of(key).values("subagents", action="list")["text"]
    return {"text": text, "max_task": max(len(one) for one in text.split(" - ")[1:] or [""])}


def _events(run_id: str) -> object:
    return case_house().http.get(f"/v1/runs/{run_id}/events").json()["items"]


RUNNERS: Mapping[str, Runner] = {"control.kill": killed, "control.steer": steered, "list": listed}


@pytest.mark.parametrize("case", cases_of(RUNNERS, by_a_server=True))
def test_the_tool_answers_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
