"""Attachments that are refused: in which words, by which rule, and what is left of it."""

from typing import Any

import pytest

from tests.support.faults.hostile_attachments import LIMITS
from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import a_key, replayed
from tests.support.servers.attachment_server import AttachingHouse, listed, text
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

MIB = 1024 * 1024
DISABLED = (
    "attachments are disabled for sessions_spawn (enable tools.sessions_spawn.attachments.enabled)"
)
KILOBYTE = LIMITS.max_file_bytes
SPENT = [text(str(number), "x" * 1000) for number in range(4)]


def refused(
    house: AttachingHouse, files: list[dict[str, Any]], detail: str, **body: Any
) -> dict[str, Any]:
    """The problem of a refused spawn; nothing of it is in any workspace, and no place is taken."""
    session = house.session()
    answer = house.attach(files, requester={"sessionKey": session}, **body)
    problem = problem_of(answer, 422, "spawn_error")
    assert (problem["rule"], problem["detail"]) == ("attachments", detail)
    assert "childSessionKey" not in problem
    run = house.server.run(problem["runId"])
    assert (run["stage"], run["rule"], run["error"]) == ("refused", "attachments", detail)
    assert run["attachments"] is None
    assert house.http.get(f"/v1/sessions/{session}").json()["activeChildren"] == 0
    assert not list(house.server.data_dir.glob(f"workspaces/*/.openclaw/*/{problem['runId']}"))
    return problem


def test_they_are_off_unless_they_are_enabled(house: House) -> None:
    session = house.session()
    answer = house.spawn(session, attachments=[text("../a")])
    problem = problem_of(answer, 403, "spawn_forbidden")
    assert (problem["rule"], problem["detail"]) == ("attachments", DISABLED)
    (run,) = house.runs(session)
    assert (run["stage"], run["rule"], run["error"]) == ("refused", "attachments", DISABLED)
    assert run["attachments"] is None
    assert house.http.get(f"/v1/sessions/{session}").json()["activeChildren"] == 0


def test_the_refusal_is_on_record_with_its_step(attaching: AttachingHouse) -> None:
    problem = refused(attaching, [text("..")], "attachments_invalid_name (..)")
    items = attaching.http.get(f"/v1/runs/{problem['runId']}/events").json()["items"]
    assert items[-1]["type"] == "SpawnRefused"
    payload = items[-1]["payload"]
    assert (payload["rule"], payload["step"], payload["status"]) == (
        "attachments",
        "attachments",
        "error",
    )
    asked = items[0]["payload"]["attachments"]
    assert (asked["count"], asked.get("manifest")) == (1, None)
    told = attaching.http.get(f"/v1/runs/{problem['runId']}/explain").json()
    assert told["refused"]["step"] == "attachments"
    rules = [one for one in told["decisions"] if one["rule"] == "attachments"]
    assert [one["result"] for one in rules] == ["refused"]


def test_a_refusal_is_repeated_under_its_key(attaching: AttachingHouse) -> None:
    requester, key = {"sessionKey": attaching.session()}, a_key()
    first, again = (attaching.attach([text("/")], requester=requester, key=key) for _ in range(2))
    assert replayed(again)
    assert again.json() == first.json()
    assert len(attaching.runs(requester["sessionKey"])) == 1


def test_other_rules_speak_first(attaching: AttachingHouse) -> None:
    answer = attaching.attach([text("..")], agentId="nobody-knows")
    assert problem_of(answer, 422, "spawn_error")["rule"] == "agent_unknown"


def test_nothing_is_made_for_what_is_refused(attaching: AttachingHouse) -> None:
    problem = refused(attaching, [text("..")], "attachments_invalid_name (..)", agentId="unseen")
    assert "StepBegun" not in attaching.server.events(problem["runId"])
    assert not attaching.workspace_of("unseen").exists()


def test_a_thousand_items_are_counted_and_more_are_invalid(attaching: AttachingHouse) -> None:
    refused(attaching, [text("a")] * 1000, "attachments_file_count_exceeded (maxFiles=50)")
    session = attaching.session()
    answer = attaching.attach([text("a")] * 1001, requester={"sessionKey": session})
    assert pointers_of(problem_of(answer, 422, "invalid_request")) == ["/attachments"]
    assert attaching.runs(session) == []


def test_a_mount_path_of_the_longest_is_told(attaching: AttachingHouse) -> None:
    path = "/srv/" + "x" * 250
    assert len(path) == 255
    answer = attaching.attached([text("a")], agentId="teller", attachAs={"mountPath": path})
    assert answer["attachments"]["files"] == [listed("a", b"x")]
    assert f"mountPath hint: {path}." in attaching.told(answer["runId"])["systemPrompt"]
