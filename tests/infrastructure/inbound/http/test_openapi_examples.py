"""The examples in the description that the server gives of itself are what it takes and gives."""

import json
from typing import Any

import httpx2
import pytest

from tests.support.builders.submitted_transcripts import tell
from tests.support.servers.attachment_server import AttachingHouse
from tests.support.servers.http_server import House
from tests.support.servers.running_server import wait_for

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def operations(house: House) -> dict[str, dict[str, Any]]:
    paths = house.http.get("/openapi.json").json()["paths"]
    described = [operation for path in paths.values() for operation in path.values()]
    return {operation["operationId"]: operation for operation in described}


def test_the_example_of_a_spawn_is_taken(
    attaching: AttachingHouse, operations: dict[str, dict[str, Any]]
) -> None:
    content = operations["spawn"]["requestBody"]["content"]["application/json"]
    answer = attaching.http.post("/v1/spawns", json={**content["example"], "agentId": "main"})
    assert answer.status_code == 201
    run_id = answer.json()["runId"]
    attaching.undone(run_id)
    for name, real in {
        "spawn": answer.json(),
        "getRun": attaching.server.run(run_id),
        "listRuns": attaching.runs("agent:main:main")[0],
    }.items():
        responses = operations[name]["responses"]
        (success,) = [one for status, one in responses.items() if status < "300"]
        example = success["content"]["application/json"]["example"]
        receipt = (example["items"][0] if name == "listRuns" else example)["attachments"]
        where = f".openclaw/attachments/{run_id}"
        assert {**receipt, "relDir": where} == real["attachments"], name


def test_examples_have_no_member_that_answers_have_not(
    house: House, operations: dict[str, dict[str, Any]]
) -> None:
    sharing = {"projectGoal": "Build a modern web app"}
    run = house.ended(house.session(), agentId="talker", label="talks", sharedContext=sharing)
    session, run_id = run["requesterSessionKey"], run["runId"]
    other = house.ended(house.session(), task="hello again", agentId="talker")
    preamble = f"/v1/sessions/{run['childSessionKey']}/preamble"
    send = operations["sendMessage"]["requestBody"]["content"]["application/json"]["example"]
    with house.held(house.session()):
        answers = {
            "listRuns": house.http.get("/v1/runs"),
            "getRun": house.http.get(f"/v1/runs/{run_id}"),
            "listRunEvents": house.http.get(f"/v1/runs/{run_id}/events"),
            "getRunPrompt": house.http.get(f"/v1/runs/{run_id}/prompt"),
            "getRunTranscript": house.http.get(f"/v1/runs/{run_id}/transcript"),
            "explainRun": house.http.get(f"/v1/runs/{run_id}/explain"),
            "getRunHistory": house.http.get(f"/v1/runs/{run_id}/history?field=stage"),
            "compareRuns": house.http.get(f"/v1/runs/{run_id}/compare?with={other['runId']}"),
            "getDiff": house.http.get("/v1/diff?from=pos:1&to=pos:2"),
            "getSession": house.http.get(f"/v1/sessions/{session}"),
            "listAnnouncements": house.http.get(f"/v1/sessions/{session}/announcements"),
            "listLedger": parked(house),
            "redriveAnnouncement": redriven(house),
            "acknowledgeAnnouncement": house.http.post(
                f"/v1/sessions/{session}/announcements/{run_id}/ack"
            ),
            "stopRun": house.http.post(f"/v1/runs/{run_id}/stop"),
            "sendMessage": house.http.post(f"/v1/runs/{run_id}/messages", json=send),
            "yieldSession": yielded(house),
            "writePreamble": house.http.put(preamble, json={"preamble": "It rains."}),
            "clearPreamble": house.http.delete(preamble),
            "stopSession": house.http.post(f"/v1/sessions/{session}/stop"),
            "listAgents": house.http.get("/v1/agents"),
            "listLanes": house.http.get("/v1/lanes"),
            "listEvents": house.http.get("/v1/events"),
            "countEvents": house.http.get("/v1/events/histogram"),
            "listTimeline": house.http.get("/v1/timeline"),
            "getMoment": house.http.get("/v1/moments", params={"at": "pos:9"}),
            "getSessionTree": house.http.get(f"/v1/sessions/{session}/tree"),
            "findEvents": house.http.get("/v1/events/find", params={"when": "running > 0"}),
            "listRevisions": house.http.get("/v1/config/revisions"),
            "getRevision": house.http.get("/v1/config/revisions/1"),
            "startVerification": house.http.post("/v1/log/verifications"),
            "getLogHead": house.http.get("/v1/log"),
            "stopVerification": house.http.post("/v1/log/verifications/current/stop"),
            "getMe": house.http.get("/v1/me"),
            **signed_in(house),
            **executed(house),
            "getHealth": house.http.get("/healthz"),
            "getReadiness": house.http.get("/readyz"),
            "spawn": house.spawn(house.session()),
            "respawn": house.http.post(f"/v1/runs/{run_id}/respawn", json={"scripts": "recorded"}),
            "provideTranscript": tell(house.http, house.session()),
            "getRunSharedContext": house.http.get(f"/v1/runs/{run_id}/shared-context"),
            "getSharedContext": house.http.get(f"/v1/sessions/{session}/shared-context"),
            "patchSharedContext": house.http.patch(
                f"/v1/sessions/{session}/shared-context", json={}, headers={"If-Match": "*"}
            ),
        }
    assert set(answers) == set(operations) - {"whatIf", "getMetrics"}
    for name, answer in answers.items():
        assert answer.is_success, (name, answer.text)
        success = operations[name]["responses"][str(answer.status_code)]
        example = success["content"]["application/json"]["example"]
        assert not same_members(example, answer.json()), name


def test_the_lines_of_what_if_are_as_in_the_example(
    house: House, operations: dict[str, dict[str, Any]]
) -> None:
    house.ended(house.session())
    operation = operations["whatIf"]
    body = {**operation["requestBody"]["content"]["application/json"]["example"], "only": []}
    answer = house.http.post("/v1/what-if", json={**body, "from": "pos:0"})
    assert answer.is_success, answer.text
    lines = [json.loads(line) for line in answer.text.splitlines()]
    example = operation["responses"]["200"]["content"]["application/x-ndjson"]["example"]
    expected = [json.loads(line) for line in example.splitlines()]
    assert [set(lines[0]), set(lines[-1])] == [set(expected[0]), set(expected[-1])]
    assert set(lines[-1]["totals"]) == set(expected[-1]["totals"])


def yielded(house: House) -> httpx2.Response:
    """The answer to an orchestrator that yields for a child of its own."""
    with house.held(house.session()) as above, house.held(above.child):
        return house.http.post(f"/v1/sessions/{above.child}/yield")


def signed_in(house: House) -> dict[str, httpx2.Response]:
    """The answers to somebody who signs in to the page, and out of it."""
    code = house.http.post("/v1/page-codes")
    token = house.http.post("/v1/page-tokens", json={"code": code.json()["code"]})
    own = {"Authorization": f"Bearer {token.json()['token']}"}
    return {
        "makePageCode": code,
        "tradePageCode": token,
        "revokePageToken": house.http.delete("/v1/page-tokens/current", headers=own),
    }


def executed(house: House) -> dict[str, httpx2.Response]:
    """The answers to an executor."""
    path = f"/v1/runs/{house.accepted(house.session(), agentId='outside')['runId']}"
    claim = house.http.post(f"{path}/claim", json={"executor": "example"})
    epoch = claim.json()["epoch"]
    said = {"epoch": epoch, "first": 1, "entries": [{"kind": "progress", "text": "half"}]}
    end = {"epoch": epoch, "outcome": "success"}
    return {
        "claimRun": claim,
        "prolongClaim": house.http.post(f"{path}/heartbeat", json={"epoch": epoch}),
        "reportTranscript": house.http.post(f"{path}/transcript", json=said),
        "endRun": house.http.post(f"{path}/end", json=end),
    }


def parked(house: House) -> httpx2.Response:
    """The announcements that could not be delivered, once there is one."""
    requester = {"sessionKey": house.session(), "channel": "nowhere", "to": "x"}
    assert house.server.spawn("hello", requester=requester).is_success

    def there() -> httpx2.Response | None:
        answer = house.http.get("/v1/announcements", params={"state": "parked"})
        return answer if answer.json()["items"] else None

    return wait_for("a parked announcement", there)


def redriven(house: House) -> httpx2.Response:
    """The answer to whoever sends one of them again."""
    run_id = parked(house).json()["items"][0]["runId"]
    return house.http.post(f"/v1/announcements/{run_id}/redrive", json={"reason": "try again"})


BY_NAME = ("/types", "/outcomes", "/rules")
"""Counts, by names that are not the same everywhere."""


def same_members(example: Any, real: Any, path: str = "") -> list[str]:
    """Where the members of an example and of a real answer differ."""
    if isinstance(example, dict) and isinstance(real, dict):
        if "payload" in path or path.endswith(("/actor", "/content", *BY_NAME)):
            return []
        wrong = [f"{path}/{name}" for name in set(example) ^ set(real)]
        for name in set(example) & set(real):
            wrong += same_members(example[name], real[name], f"{path}/{name}")
        return wrong
    if isinstance(example, list) and isinstance(real, list) and example and real:
        return same_members(example[0], real[0], f"{path}/0")
    return []
