"""`POST /v1/what-if`: permissions, refusals before it begins, and released slots."""

import json
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.wire import Authority, head
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

SECRET = "canary-of-a-configuration"
WRONG_KEY = {"spawnlog": {"no such thing": 1}}


def post(server: Server, **body: Any) -> httpx2.Response:
    return server.http.post("/v1/what-if", json=body)


def lines_of(server: Server, **body: Any) -> list[dict[str, Any]]:
    """Return the lines of an answer, once there is a place."""

    def answer() -> httpx2.Response | None:
        found = post(server, **body)
        return None if found.status_code == 429 else found

    answered = wait_for("a place", answer)
    assert answered.status_code == 200, answered.text
    return [json.loads(line) for line in answered.text.splitlines()]


def decisions(server: Server, **body: Any) -> int:
    return int(lines_of(server, **body)[-1]["totals"]["decisions"])


def invalid(answer: httpx2.Response) -> dict[str, Any]:
    return problem_of(answer, 422, "invalid_request")


def test_totals_are_those_of_the_lines(server: Server) -> None:
    run = server.announced(session=server.new_session())
    lines = lines_of(server, patch=[])
    totals = lines[-1]["totals"]
    verdicts = [line for line in lines if "verdict" in line]
    assert totals["decisions"] == sum(totals["byVerdict"].values()) == len(verdicts) > 0
    of_one = lines_of(server, patch=[], filter={"runId": run["runId"]}, prompts=True)
    (verdict,) = [item for item in of_one if "verdict" in item]
    assert (verdict["runId"], verdict["verdict"]) == (run["runId"], "same")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"patch": [], "config": {}},
        {"patch": [], "configText": "{}"},
        {"patch": [{"op": "steal", "path": "/agents"}]},
        {"patch": [{"op": "remove", "path": "/not/there"}]},
        {"patch": [{"op": "test", "path": "/agents", "value": SECRET}]},
        {"configText": "{ not json5"},
        {"configText": "{agents: {defaults: {}, defaults: {}}}"},
    ],
    ids=str,
)
def test_impossible_question_is_refused(server: Server, body: dict[str, Any]) -> None:
    answer = post(server, **body)
    assert 400 <= answer.status_code < 500, answer.text[:500]
    problem = problem_of(answer, answer.status_code, answer.json()["code"])
    assert SECRET not in json.dumps(problem)


def test_mistake_of_configuration_is_named_with_its_place(server: Server) -> None:
    text = '{\n  spawnlog: {\n    "no such thing": 1,\n  },\n}'
    seconds = {"op": "add", "path": "/spawnlog/drainSeconds", "value": "x"}
    cases: dict[str, dict[str, Any]] = {
        "the configuration:3:5: spawnlog": {"configText": text},
        "new.json5:3:5: spawnlog": {"configText": text, "configName": "new.json5"},
        "\\x1b[2Jx:3:5: spawnlog": {"configText": text, "configName": "\x1b[2Jx"},
        "new.json5:1:7: ": {"configText": "{ not json5", "configName": "new.json5"},
        "/spawnlog/no such thing: ": {"config": WRONG_KEY},
        "/spawnlog/drainSeconds: ": {"patch": [seconds]},
    }
    for place, body in cases.items():
        problem = invalid(post(server, **body))
        assert problem["detail"].startswith(f"the configuration cannot be used: {place}"), problem
    for name, config in (("config", WRONG_KEY), ("configText", json.dumps(WRONG_KEY))):
        problem = invalid(post(server, **{name: config}))
        assert pointers_of(problem) == [f"/{name}/spawnlog/no such thing"]
    named = invalid(post(server, patch=[], configName="new.json5"))
    assert pointers_of(named) == ["/configName"]


def test_secret_of_configuration_is_in_no_answer(server: Server) -> None:
    server.announced(session=server.new_session())
    config: dict[str, Any] = {
        "models": {"providers": {"acme": {"apiKey": SECRET, "models": [{"id": "large"}]}}},
        "agents": {"list": [{"id": "main", "runtime": {"type": "scripted", "apiKey": SECRET}}]},
        "spawnlog": {"tokens": [{"id": "x", "token": SECRET, "scopes": ["read"]}]},
    }
    answers = [post(server, patch=[{"op": "add", "path": "/models", "value": config["models"]}])]
    for changed in (config, {**config, "agents": {"list": [{"id": SECRET * 9}]}}):
        answers.append(post(server, config=changed))
        answers.append(post(server, configText=json.dumps(changed)[:-1]))
    assert all(SECRET not in answer.text for answer in answers)
    assert SECRET not in server.log()


def test_deeply_nested_question_is_refused(server: Server) -> None:
    depth = 5_000
    for content in (
        b'{"config":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}",
        b'{"patch":[{"op":"add","path":"/x","value":' + b"[" * depth + b"]" * depth + b"}]}",
        json.dumps({"configText": '{"a":' * depth + "1" + "}" * depth}).encode(),
    ):
        headers = {"Content-Type": "application/json"}
        answer = server.http.post("/v1/what-if", content=content, headers=headers)
        assert 400 <= answer.status_code < 500, answer.text[:500]


def test_readers_that_leave_give_their_places_back(server: Server) -> None:
    """Many more readers than slots leave at once, before the first line."""
    content = json.dumps({"patch": [], "cascade": True, "prompts": True}).encode()
    authority = Authority.of(server.url)
    headers = {
        "Host": f"{authority.host}:{authority.port}",
        "Authorization": f"Bearer {server.token}",
        "Content-Type": "application/json",
        "Content-Length": str(len(content)),
    }
    for _ in range(20):
        with authority.connect() as connection:
            connection.sendall(head("POST", "/v1/what-if", headers) + content)

    def both_are_free() -> bool:
        nothing = {"patch": [], "only": ["newly-refused"]}
        with server.http.stream("POST", "/v1/what-if", json=nothing) as first:
            return (first.status_code, post(server, **nothing).status_code) == (200, 200)

    assert wait_for("both places", both_are_free)


def test_filter_that_finds_nothing_is_refused(server: Server) -> None:
    session = server.new_session()
    run = server.announced(session=session, agentId="talker")
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"agentId": ["talkre"]}, "/filter/agentId/0", 'did you mean "talker"?'),
        ({"agentId": ["talker", "no agent!"]}, "/filter/agentId/1", "is not an agent id"),
        ({"agentId": [""]}, "/filter/agentId/0", "is not an agent id"),
        # A tree is named by its root.
        ({"tree": run["childSessionKey"]}, "/filter/tree", session),
    ]
    for body, pointer, text in cases:
        problem = invalid(post(server, patch=[], filter=body))
        assert pointers_of(problem) == [pointer]
        assert text in problem["detail"]
    assert decisions(server, patch=[], filter={"tree": session}) == 1
    for name in ("tree", "requester"):
        answer = post(server, patch=[], filter={name: "agent:mian:main"})
        problem = problem_of(answer, 404, "not_found")
        assert f"/filter/{name}: there is no session" in problem["detail"]


def test_agent_of_filter_is_known_to_anybody(server: Server) -> None:
    session = server.new_session()
    server.announced(session=session, agentId="talker")

    def of_agent(name: str) -> int:
        return decisions(server, patch=[], filter={"agentId": [name]})

    narrow = of_agent("talker")
    assert of_agent(" TALKER ") == narrow > 0
    # The agent is not configured, but a spawn requested it.
    server.spawn(session=session, agentId="ghost-of-this-test")
    assert of_agent("ghost-of-this-test") == 1
    config = {"agents": {"list": [{"id": "main"}, {"id": "tried"}]}}
    # No spawn requested it; only the candidate configures it.
    assert decisions(server, config=config, filter={"agentId": ["tried"]}) == 0
    # The candidate lacks this agent; a recorded revision has it.
    assert decisions(server, config=config, filter={"agentId": ["talker"]}) == narrow


def test_range_ends_no_earlier_than_it_begins(server: Server) -> None:
    server.announced(session=server.new_session())
    instants = ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z")
    for since, until in (("pos:3", "pos:2"), ("-1d", "-2d"), instants):
        problem = invalid(post(server, patch=[], **{"from": since, "to": until}))
        assert problem["detail"] == f"/to: the range ends at {until}, before its beginning {since}"
    for first, last in (("pos:2", "pos:2"), ("-2d", "-1d"), ("-0s", None)):
        assert decisions(server, patch=[], **{"from": first, "to": last}) <= 1
