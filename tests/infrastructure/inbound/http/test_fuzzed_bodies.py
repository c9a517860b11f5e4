"""Whatever JSON comes: it is accepted, or a problem says why. Never an error of the server."""

import json
from base64 import b64encode
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, event, given
from hypothesis import strategies as st

from tests.support.http.problems import well_formed_problem
from tests.support.http.requests import spawn_body
from tests.support.servers.attachment_server import AttachingHouse
from tests.support.servers.http_server import House
from tests.support.tiers import examples

pytestmark = pytest.mark.server

SETTINGS = examples(
    120,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

FIELDS = [
    "requester", "task", "label", "agentId", "model", "thinking", "runTimeoutSeconds", "thread",
    "mode", "cleanup", "sandbox", "context", "lightContext", "expectsCompletionMessage",
    "attachments", "attachAs", "contextPreamble", "sharedContext", "sharedContextScope",
    "parallel", "dependsOn", "chainAfter", "nonsense",
]  # fmt: skip
REQUESTER = [
    "sessionKey", "channel", "accountId", "to", "threadId", "groupId", "groupChannel", "groupSpace",
    "memberRoleIds", "agentIdOverride", "workspaceDir", "sandboxed", "activeModel",
    "activeThinking", "nonsense",
]  # fmt: skip
NAMES = [
    "", " ", "run", "session", "keep", "delete", "inherit", "require", "isolated", "fork", "main",
    "slow", "narrow", "agent:main:main", "agent:narrow:x", "agent:main:subagent:1", "global",
    "agent::", "\0", "\u202e", "x" * 300, "low", "off", "{targetAgentId}", "$(id)",
    "../../etc/passwd", "%s%n", "\ud800",
]  # fmt: skip
QUESTIONS = [
    "limit", "cursor", "after", "at", "since", "until", "order", "label", "agentId", "requester",
    "tree", "stage", "status", "outcome", "types", "runId", "wait",
]  # fmt: skip
WORDS = st.sampled_from(NAMES)
TEXTS = st.one_of(st.text(max_size=40), WORDS)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from([0, -0.0, 1, 2**63, 2**64, -(2**63) - 1, 10**30, 0.1, 1e308]),
    TEXTS,
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)
CONTENTS = st.one_of(TEXTS, st.binary(max_size=20).map(lambda one: b64encode(one).decode()))
FILES = st.fixed_dictionaries(
    {"name": st.one_of(TEXTS, st.text(max_size=3)), "content": CONTENTS},
    optional={
        "encoding": st.sampled_from(["utf8", "base64", "base64", "hex"]),
        "mimeType": TEXTS,
        "nonsense": LEAVES,
    },
)
ALMOST: dict[str, st.SearchStrategy[Any]] = {
    "attachments": st.lists(FILES | VALUES, max_size=4),
    "attachAs": st.fixed_dictionaries({}, optional={"mountPath": TEXTS, "nonsense": LEAVES}),
    "lightContext": st.booleans(),
}
"""What is almost in order for a field."""


@st.composite
def bodies(draw: st.DrawFn) -> Any:
    """Something between nonsense and a spawn that is almost in order."""
    if draw(st.integers(0, 9)) == 0:
        return draw(VALUES)
    requester: Any = {"sessionKey": "agent:narrow:fuzz"}
    for name in draw(st.lists(st.sampled_from(REQUESTER), max_size=3)):
        requester[name] = draw(LEAVES)
    body: dict[str, Any] = {"requester": requester, "task": draw(TEXTS) or "x"}
    for name in draw(st.lists(st.sampled_from(FIELDS), max_size=3)):
        body[name] = draw(st.one_of(WORDS, LEAVES, VALUES, ALMOST.get(name, VALUES)))
    return body


def must_be_in_order(house: House, content: bytes) -> int:
    answer = house.post(content)
    if answer.status_code == 201:
        run_id = answer.json()["runId"]
        assert house.http.post(f"/v1/runs/{run_id}/stop").status_code == 200
        return 201
    assert 400 <= answer.status_code < 500, answer.text
    problem = well_formed_problem(answer)
    recorded = problem["code"] in ("spawn_forbidden", "spawn_error")
    assert ("runId" in problem) is recorded
    return answer.status_code


@SETTINGS
@given(body=bodies())
def test_any_json_is_accepted_or_refused(house: House, body: Any) -> None:
    must_be_in_order(house, json.dumps(body).encode())


@SETTINGS
@given(body=bodies(), noise=st.binary(min_size=1, max_size=6), place=st.integers(0, 10_000))
def test_any_bytes_are_accepted_or_refused(
    house: House, body: Any, noise: bytes, place: int
) -> None:
    content = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    place %= len(content)
    must_be_in_order(house, content[:place] + noise + content[place:])


@SETTINGS
@given(files=st.lists(FILES, min_size=1, max_size=4), attach_as=ALMOST["attachAs"] | st.just({}))
def test_any_attachments_are_stored_or_refused(
    attaching: AttachingHouse, files: list[dict[str, Any]], attach_as: dict[str, Any]
) -> None:
    body = spawn_body("agent:main:fuzz", attachments=files, attachAs=attach_as)
    status = must_be_in_order(attaching, json.dumps(body).encode())
    event(f"answered {status}")


@SETTINGS
@given(
    path=st.sampled_from(
        ["/v1/runs", "/v1/events", "/v1/agents", "/v1/lanes", "/v1/sessions/main/announcements"]
    ),
    query=st.dictionaries(
        st.sampled_from(QUESTIONS),
        st.one_of(
            TEXTS.filter(lambda text: "\ud800" not in text),
            st.integers().map(str),
            st.datetimes().map(lambda one: one.isoformat() + "Z"),
            st.integers(0, 30).map("pos:{}".format),
        ),
        max_size=3,
    ),
)
def test_any_question_is_answered_or_refused(
    house: House, path: str, query: dict[str, str]
) -> None:
    if "wait" in query:
        query["wait"] = "1ms"
    answer = house.http.get(path, params=query)
    if answer.status_code != 200:
        assert 400 <= answer.status_code < 500, answer.text
        well_formed_problem(answer)


@SETTINGS
@given(name=TEXTS.filter(lambda text: "\ud800" not in text))
def test_any_name_of_a_session_is_answered_or_refused(house: House, name: str) -> None:
    for path in ("", "/announcements"):
        answer = house.http.get(f"/v1/sessions/{quote(name, safe='')}{path}")
        if answer.status_code != 200:
            assert 400 <= answer.status_code < 500, answer.text
            well_formed_problem(answer)
