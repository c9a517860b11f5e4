"""The three examples of what a family shares, one after another in one session, and the criteria
that need several children: each child is a real process, and answers from its prompt."""

from typing import Any

import pytest

from tests.support.servers.answering_children import answerer
from tests.support.servers.server import Serve, Server

pytestmark = pytest.mark.server

RESEARCH: dict[str, Any] = {
    "task": "Research the best AI frameworks",
    "label": "researcher",
    "sharedContext": {
        "projectGoal": "Build a modern web app",
        "targetAudience": "Developers",
        "constraints": ["budget", "timeline"],
    },
}
DESIGN: dict[str, Any] = {
    "task": "Design the UI based on research",
    "label": "designer",
    "sharedContext": {"$research": "reference"},
}
THREE: dict[str, Any] = {
    "task": ["Task A", "Task B", "Task C"],
    "parallel": True,
    "sharedContext": {"sharedData": "available to all"},
}
KNOWN = (
    "; projectGoal is [Build a modern web app]; targetAudience is [Developers]"
    "; constraints is [budget, timeline]"
)
RESEARCHED = f"Research the best AI frameworks{KNOWN}"


@pytest.fixture(scope="module")
def server(serve: Serve) -> Server:
    return serve({**answerer("main"), "default": True}, maxConcurrent=8)


def spawned(server: Server, session: str, **asked: Any) -> dict[str, Any]:
    requester = {"sessionKey": f"agent:main:{session}"}
    answer = server.http.post("/v1/spawns", json={"requester": requester, **asked})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def announced(server: Server, answer: dict[str, Any]) -> dict[str, Any]:
    run = server.run(answer["runId"], "announced")
    assert run["outcome"] == "success", run
    return run


def each(server: Server, answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [announced(server, one) for one in answer["runs"]]


def given(server: Server, run: dict[str, Any]) -> dict[str, Any]:
    return dict(server.http.get(f"/v1/runs/{run['runId']}/shared-context").json())


def family(server: Server, session: str) -> dict[str, Any]:
    return dict(server.http.get(f"/v1/sessions/agent:main:{session}/shared-context").json())


def test_the_examples_work_one_after_another(server: Server) -> None:
    research = announced(server, spawned(server, "examples", **RESEARCH))
    assert (research["label"], research["resultText"].strip()) == ("researcher", RESEARCHED)

    design = announced(server, spawned(server, "examples", **DESIGN))
    assert design["label"] == "designer"
    assert design["resultText"].strip() == (
        f"Design the UI based on research{KNOWN}; research is [{RESEARCHED}]"
    )
    (on,) = design["dependsOn"]
    assert (on["runId"], on["name"], on["via"]) == (research["runId"], "research", "reference")

    three = each(server, spawned(server, "examples", **THREE))
    assert [one["resultText"].strip() for one in three] == [
        f"{task}{KNOWN}; sharedData is [available to all]" for task in THREE["task"]
    ]
    shared = RESEARCH["sharedContext"] | THREE["sharedContext"]
    assert family(server, "examples")["values"] == shared, "a result is for the one that asked"


def test_a_reference_is_to_the_newest_result_that_was_there(server: Server) -> None:
    announced(server, spawned(server, "used", task="First view", label="researcher"))
    one = announced(server, spawned(server, "used", **DESIGN))
    assert one["resultText"].strip().endswith("; research is [First view]")
    other = announced(server, spawned(server, "unused", task="Second view", label="researcher"))
    two = announced(server, spawned(server, "unused", **DESIGN))
    assert two["resultText"].strip().endswith("; research is [Second view]")
    assert two["dependsOn"][0]["runId"] == other["runId"]


def test_all_subagents_that_are_spawned_in_parallel_get_the_same_context(
    server: Server,
) -> None:
    answer = spawned(server, "parallel", **THREE)
    runs = each(server, answer)
    assert {one["batchId"] for one in runs} == {answer["batchId"]}
    assert [one["resultText"].strip() for one in runs] == [
        f"{task}; sharedData is [available to all]" for task in THREE["task"]
    ]
    told = [given(server, one) for one in runs]
    assert [one["values"] for one in told] == [THREE["sharedContext"]] * 3
    shared = family(server, "parallel")
    assert shared["values"] == THREE["sharedContext"]
    assert {one["runId"]: one["version"] for one in shared["startedWith"]} == {
        one["runId"]: shared["version"] for one in runs
    }


@pytest.mark.parametrize(
    ("label", "labels"), [({}, [None] * 3), ({"label": "part"}, ["part-1", "part-2", "part-3"])]
)
def test_they_have_labels_when_a_label_is_given(
    server: Server, label: dict[str, str], labels: list[str | None]
) -> None:
    session = f"labels-{len(label)}"
    runs = each(server, spawned(server, session, **THREE, **label))
    assert [one.get("label") for one in runs] == labels
    for one in runs:
        text = server.http.get(f"/v1/runs/{one['runId']}/prompt").json()["systemPrompt"]
        assert (f"- Label: {one['label']}\n" in text) == bool(label)


def test_each_result_of_a_batch_is_given_to_one_that_refers_to_all(server: Server) -> None:
    each(server, spawned(server, "gathered", **THREE, label="part"))
    names = {f"$part-{number}": "reference" for number in (1, 2, 3)}
    last = announced(server, spawned(server, "gathered", task="Put together", sharedContext=names))
    known = "; sharedData is [available to all]"
    assert last["resultText"].strip() == f"Put together{known}" + "".join(
        f"; part-{number} is [{task}{known}]" for number, task in enumerate(THREE["task"], start=1)
    )
