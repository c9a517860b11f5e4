"""`POST /v1/what-if`: who may ask, what is refused before it begins, and that places come back."""

import json
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.wire import Authority, head
from tests.support.servers.http_server import House
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

NOTHING = {"patch": [], "only": ["newly-refused"]}
SECRET = "canary-of-a-configuration"


def ask(http: httpx2.Client, **body: Any) -> httpx2.Response:
    """The answer, once there is a place."""

    def answered() -> httpx2.Response | None:
        answer = http.post("/v1/what-if", json=body)
        return None if answer.status_code == 429 else answer

    return wait_for("a place", answered)


def last_line(answer: httpx2.Response) -> dict[str, Any]:
    """The last line."""
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = json.loads(answer.text.splitlines()[-1])
    return found


def test_key_that_stands_twice_in_config_text_is_refused(house: House) -> None:
    text = "{\n agents: {defaults: {}, defaults: {}}}"
    problem = problem_of(ask(house.http, configText=text), 422, "invalid_request")
    assert "/agents/defaults" in str(problem) or "agents.defaults" in str(problem)


def test_it_ends_with_totals_that_are_those_of_its_lines(house: House) -> None:
    house.ended(house.session())
    lines = [json.loads(one) for one in ask(house.http, patch=[]).text.splitlines()]
    totals = lines[-1]["totals"]
    verdicts = [one for one in lines if "verdict" in one]
    assert totals["decisions"] == sum(totals["byVerdict"].values()) == len(verdicts) > 0


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"patch": [], "config": {}},
        {"patch": [], "configText": "{}"},
        {"config": {}, "configText": "{}"},
        {"patch": [{"op": "steal", "path": "/agents"}]},
        {"patch": [{"op": "remove", "path": "/not/there"}]},
        {"patch": [{"op": "test", "path": "/agents", "value": SECRET}]},
        {"configText": "{ not json5"},
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused_with_a_reason(house: House, body: dict[str, Any]) -> None:
    answer = house.http.post("/v1/what-if", json=body)
    assert 400 <= answer.status_code < 500, answer.text[:500]
    problem = problem_of(answer, answer.status_code, answer.json()["code"])
    assert SECRET not in json.dumps(problem)


def test_what_is_wrong_in_a_configuration_is_pointed_at(house: House) -> None:
    wrong = {"agents": {"list": [{"id": "main"}]}, "spawnlog": {"no such thing": 1}}
    for name, config in (("config", wrong), ("configText", json.dumps(wrong))):
        problem = problem_of(
            house.http.post("/v1/what-if", json={name: config}), 422, "invalid_request"
        )
        assert pointers_of(problem) == [f"/{name}/spawnlog/no such thing"]


def test_a_line_is_named_of_a_text_alone_and_by_the_name_of_its_file(house: House) -> None:
    wrong = '{\n  spawnlog: {\n    "no such thing": 1,\n  },\n}'
    told = {
        "the configuration:3:5: spawnlog": {"configText": wrong},
        "new.json5:3:5: spawnlog": {"configText": wrong, "configName": "new.json5"},
        "\\x1b[2Jx:3:5: spawnlog": {"configText": wrong, "configName": "\x1b[2Jx"},
        "new.json5:1:7: ": {"configText": "{ not json5", "configName": "new.json5"},
        "/spawnlog/no such thing: ": {"config": {"spawnlog": {"no such thing": 1}}},
        "/spawnlog/drainSeconds: ": {
            "patch": [{"op": "add", "path": "/spawnlog/drainSeconds", "value": "x"}]
        },
    }
    for place, body in told.items():
        problem = problem_of(house.http.post("/v1/what-if", json=body), 422, "invalid_request")
        assert problem["detail"].startswith(f"the configuration cannot be used: {place}"), problem
    named = house.http.post("/v1/what-if", json={"patch": [], "configName": "new.json5"})
    assert pointers_of(problem_of(named, 422, "invalid_request")) == ["/configName"]


def test_a_secret_in_a_configuration_is_in_no_answer(house: House) -> None:
    house.ended(house.session())
    config: dict[str, Any] = {
        "models": {"providers": {"acme": {"apiKey": SECRET, "models": [{"id": "large"}]}}},
        "agents": {"list": [{"id": "main", "runtime": {"type": "scripted", "apiKey": SECRET}}]},
        "spawnlog": {"tokens": [{"id": "x", "token": SECRET, "scopes": ["read"]}]},
    }
    for changed in (config, {**config, "agents": {"list": [{"id": SECRET * 9}]}}):
        answers = [
            house.http.post("/v1/what-if", json={"config": changed}),
            house.http.post("/v1/what-if", json={"configText": json.dumps(changed)[:-1]}),
            house.http.post(
                "/v1/what-if",
                json={"patch": [{"op": "add", "path": "/models", "value": config["models"]}]},
            ),
        ]
        assert all(SECRET not in one.text for one in answers)
    assert SECRET not in house.server.log()


def test_what_is_nested_deeply_is_refused(house: House) -> None:
    depth = 5_000
    for content in (
        b'{"config":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}",
        b'{"patch":[{"op":"add","path":"/x","value":' + b"[" * depth + b"]" * depth + b"}]}",
        json.dumps({"configText": '{"a":' * depth + "1" + "}" * depth}).encode(),
    ):
        answer = house.http.post(
            "/v1/what-if", content=content, headers={"Content-Type": "application/json"}
        )
        assert 400 <= answer.status_code < 500, answer.text[:500]


def test_readers_that_go_away_give_their_places_back(house: House) -> None:
    """At once, before the first line; many more of them than there are places."""
    content = json.dumps({"patch": [], "cascade": True, "prompts": True}).encode()
    authority = Authority.of(house.server.url)
    sent = head(
        "POST",
        "/v1/what-if",
        {
            "Host": f"{authority.host}:{authority.port}",
            "Authorization": f"Bearer {house.server.token}",
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
        },
    )
    for _ in range(20):
        with authority.connect() as connection:
            connection.sendall(sent + content)

    def both_are_free() -> bool:
        with house.http.stream("POST", "/v1/what-if", json=NOTHING) as first:
            answer = house.http.post("/v1/what-if", json=NOTHING)
            return (first.status_code, answer.status_code) == (200, 200)

    assert wait_for("both places", both_are_free)


def decisions(answer: httpx2.Response) -> int:
    return int(last_line(answer)["totals"]["decisions"])


@pytest.mark.parametrize(
    ("body", "pointer", "text"),
    [
        ({"agentId": ["talkre"]}, "/filter/agentId/0", 'did you mean "talker"?'),
        ({"agentId": ["talker", "no agent!"]}, "/filter/agentId/1", "is no agent id"),
        ({"agentId": [""]}, "/filter/agentId/0", "is no agent id"),
    ],
)
def test_a_filter_that_can_take_nothing_is_refused_where_it_stands(
    house: House, body: dict[str, Any], pointer: str, text: str
) -> None:
    house.ended(house.session(), agentId="talker")
    problem = problem_of(
        house.http.post("/v1/what-if", json={"patch": [], "filter": body}), 422, "invalid_request"
    )
    assert pointers_of(problem) == [pointer]
    assert text in problem["detail"]


@pytest.mark.parametrize("name", ["tree", "requester"])
def test_a_session_that_is_not_on_record_is_not_found(house: House, name: str) -> None:
    wanted = {"patch": [], "filter": {name: "agent:mian:main"}}
    problem = problem_of(house.http.post("/v1/what-if", json=wanted), 404, "not_found")
    assert f"/filter/{name}: there is no session" in problem["detail"]


def test_a_tree_is_named_by_its_root(house: House) -> None:
    session = house.session()
    with house.held(session) as held:
        wanted = {"patch": [], "filter": {"tree": held.child}}
        problem = problem_of(house.http.post("/v1/what-if", json=wanted), 422, "invalid_request")
    assert pointers_of(problem) == ["/filter/tree"]
    assert session in problem["detail"]
    assert decisions(ask(house.http, patch=[], filter={"tree": session})) > 0


def test_an_agent_is_named_in_any_spelling_and_counts_when_anybody_knows_it(house: House) -> None:
    session = house.session()
    house.ended(session, agentId="talker")
    narrow = decisions(ask(house.http, patch=[], filter={"agentId": ["talker"]}))
    assert narrow > 0
    assert decisions(ask(house.http, patch=[], filter={"agentId": [" TALKER "]})) == narrow
    # Nobody has it configured, and it was asked for.
    house.spawn(session, agentId="ghost-of-this-test")
    assert decisions(ask(house.http, patch=[], filter={"agentId": ["ghost-of-this-test"]})) == 1
    # Nobody asked for it, and it is to be tried.
    config = {"agents": {"list": [{"id": "main"}, {"id": "tried"}]}}
    assert decisions(ask(house.http, config=config, filter={"agentId": ["tried"]})) == 0
    # It is in no configuration that is tried, and in one on record.
    assert decisions(ask(house.http, config=config, filter={"agentId": ["talker"]})) == narrow


@pytest.mark.parametrize(
    ("since", "until"),
    [("pos:3", "pos:2"), ("-1d", "-2d"), ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z")],
)
def test_a_range_that_ends_before_it_begins_is_refused(
    house: House, since: str, until: str
) -> None:
    house.ended(house.session())
    answer = house.http.post("/v1/what-if", json={"patch": [], "from": since, "to": until})
    problem = problem_of(answer, 422, "invalid_request")
    assert problem["detail"] == f"/to: the range ends at {until}, before it begins: {since}"


@pytest.mark.parametrize(("since", "until"), [("pos:2", "pos:2"), ("-2d", "-1d"), ("-0s", None)])
def test_a_range_may_be_of_one_position_or_of_a_time_without_events(
    house: House, since: str, until: str | None
) -> None:
    house.ended(house.session())
    assert decisions(ask(house.http, **{"patch": [], "from": since, "to": until})) <= 1


def test_one_run_alone_is_decided_again(house: House) -> None:
    run = house.ended(house.session())
    answer = ask(house.http, patch=[], filter={"runId": run["runId"]}, prompts=True)
    (verdict,) = [json.loads(one) for one in answer.text.splitlines() if "verdict" in one]
    assert (verdict["runId"], verdict["verdict"]) == (run["runId"], "same")
