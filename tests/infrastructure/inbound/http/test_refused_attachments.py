"""Attachments that are refused: in which words, by which rule, and what is left of it."""

from typing import Any

import pytest

from tests.support.faults.hostile_attachments import LIMITS
from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import a_key, replayed
from tests.support.servers.attachment_server import AttachingHouse, binary, listed, text
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


@pytest.mark.parametrize(
    ("files", "detail"),
    [
        ([text("a")] * 51, "attachments_file_count_exceeded (maxFiles=50)"),
        ([text(" \t")], "attachments_invalid_name (empty)"),
        ([text("../a")], "attachments_invalid_name (../a)"),
        ([text(".manifest.json")], "attachments_invalid_name (.manifest.json)"),
        ([text("a\nb")], r"attachments_invalid_name (a\u000ab)"),
        ([text("a"), text("A")], "attachments_duplicate_name (A)"),
        ([text("a", "Y", encoding="base64")], "attachments_invalid_base64_or_too_large"),
        ([binary("a", bytes(KILOBYTE + 1))], "attachments_invalid_base64_or_too_large"),
        (
            [text("a", "x" * (KILOBYTE + 1))],
            "attachments_file_bytes_exceeded (name=a bytes=1025 maxFileBytes=1024)",
        ),
        (
            [*SPENT, text("over", "x" * 97)],
            "attachments_total_bytes_exceeded (totalBytes=4097 maxTotalBytes=4096)",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_each_limit_has_its_words(
    attaching: AttachingHouse, files: list[dict[str, Any]], detail: str
) -> None:
    refused(attaching, files, detail)


def test_what_is_right_at_the_limits_is_taken(attaching: AttachingHouse) -> None:
    at_limits = [
        [text(str(number)) for number in range(50)],
        [text("a", "x" * KILOBYTE), binary("b", bytes(KILOBYTE))],
        [*SPENT, text("rest", "x" * 96)],
    ]
    for files in at_limits:
        assert attaching.attached(files)["attachments"]["count"] == len(files)


def test_the_first_fault_speaks(attaching: AttachingHouse) -> None:
    bad_content, bad_name = text("a", "Y", encoding="base64"), text("b/")
    refused(attaching, [bad_content, bad_name], "attachments_invalid_base64_or_too_large")
    refused(attaching, [bad_name, bad_content], "attachments_invalid_name (b/)")


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
