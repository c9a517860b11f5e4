"""Bodies that cannot be taken: a clear problem, and nothing of them on record."""

import json

import pytest

from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import spawn_body
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

MIB = 1024 * 1024


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1, 2",
        "{'task': 'x'}",
        '{"task": tru}',
        "\ufeff{}",
        '{"task": "x"} and',
        "NaN",
        "1e999",
    ],
)
def test_a_body_that_is_not_json_is_malformed(house: House, unrecorded: str, text: str) -> None:
    problem_of(house.post(text.encode()), 400, "malformed_json")


def test_a_body_that_is_not_utf_8_is_malformed(house: House, unrecorded: str) -> None:
    made = json.dumps(spawn_body(unrecorded, task="MARK")).encode()
    for raw in (b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80"):
        problem_of(house.post(made.replace(b"MARK", raw)), 400, "malformed_json")


@pytest.mark.parametrize("escaped", ["\\ud800", "\\udc00 x", "x\\ud83d\\ud83d", "\\ude00\\ud83d"])
def test_half_a_character_is_malformed(house: House, unrecorded: str, escaped: str) -> None:
    for made in (spawn_body(unrecorded, task="MARK"), spawn_body(unrecorded, MARK=1)):
        text = json.dumps(made).replace("MARK", escaped)
        problem_of(house.post(text.encode()), 400, "malformed_json")


def test_a_nul_is_malformed_wherever_it_stands(house: House, unrecorded: str) -> None:
    for made, pointer in (
        (spawn_body(unrecorded, task="a\0b"), "/task"),
        (spawn_body(f"{unrecorded}\0"), "/requester/sessionKey"),
        (spawn_body(unrecorded, attachments=[{"name": ["\0"]}]), "/attachments/0/name/0"),
        (spawn_body(unrecorded, attachments=[{"content": "\0"}]), "/attachments/0/content"),
    ):
        answer = house.post(json.dumps(made).encode())
        assert pointers_of(problem_of(answer, 400, "malformed_json")) == [pointer]
    answer = house.post(json.dumps(spawn_body(unrecorded, **{"a\0": 1})).encode())
    problem_of(answer, 400, "malformed_json")


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("/v1/spawns", b'{"task": "pay 10", "task": "pay 1000", "requester": {}}', "/task"),
        ("/v1/spawns", b'{"requester": {"to": "a", "to": "b"}, "task": "x"}', "/requester/to"),
        ("/v1/what-if", b'{"config": {"agents": {}, "agents": {}}}', "/config/agents"),
        ("/v1/page-tokens", b'{"code": "a", "code": "b"}', "/code"),
    ],
)
def test_key_that_stands_twice_is_refused_with_its_place(
    house: House, unrecorded: str, path: str, body: bytes, pointer: str
) -> None:
    json_body = {"Content-Type": "application/json"}
    problem = problem_of(
        house.http.post(path, content=body, headers=json_body), 422, "invalid_request"
    )
    assert problem["errors"] == [{"pointer": pointer, "detail": "is given twice"}]
    assert problem["detail"] == f"the body has the key {pointer} twice; give it once"


def test_a_body_that_is_nested_too_deep_is_malformed(house: House, unrecorded: str) -> None:
    for depth in (101, 2_000, 200_000):
        nested = "[" * depth + "]" * depth
        text = json.dumps(spawn_body(unrecorded, sharedContext={"x": "MARK"})).replace(
            '"MARK"', nested
        )
        problem_of(house.post(text.encode()), 400, "malformed_json")


def test_every_fault_of_a_body_is_named_with_its_place(house: House, unrecorded: str) -> None:
    made = spawn_body(unrecorded, cleanup="burn", thred=True, label=7, attachAs={"mountpath": "x"})
    made["requester"]["sessionkey"] = "x"
    problem = problem_of(house.post(json.dumps(made).encode()), 422, "invalid_request")
    assert sorted(pointers_of(problem)) == [
        "/attachAs/mountpath",
        "/cleanup",
        "/label",
        "/requester/sessionkey",
        "/thred",
    ]
    assert {"pointer": "/thred", "detail": "unknown key"} in problem["errors"]
    assert any(error["detail"] == 'must be one of "delete", "keep"' for error in problem["errors"])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task", 1),
        ("task", None),
        ("task", {"text": "x"}),
        ("task", ""),
        ("task", " \n\t "),
        ("label", ["x"]),
        ("label", "two\nlines"),
        ("label", "x" * 201),
        ("agentId", 3),
        ("agentId", "x" * 5_000),
        ("model", "m" * 300),
        ("runTimeoutSeconds", "5"),
        ("runTimeoutSeconds", True),
        ("thread", "no"),
        ("thread", 0),
        ("mode", "RUN"),
        ("mode", "batch"),
        ("cleanup", "Keep"),
        ("sandbox", "never"),
        ("context", "shared"),
        ("lightContext", 1),
        ("expectsCompletionMessage", None),
        ("attachments", {}),
        ("attachments", ["x"]),
        ("attachments", [{"name": "a", "content": None}]),
        ("attachments", [{"name": "a", "content": "x", "encoding": "UTF8"}]),
        ("attachments", None),
        ("attachAs", "here"),
        ("attachAs", None),
        ("attachAs", {"mountPath": 1}),
        ("sharedContext", []),
        ("sharedContextScope", "world"),
        ("contextPreamble", 1),
        ("parallel", "yes"),
        ("dependsOn", "researcher"),
    ],
)
def test_a_wrong_value_is_invalid(house: House, unrecorded: str, field: str, value: object) -> None:
    made = json.dumps(spawn_body(unrecorded) | {field: value}).encode()
    problem = problem_of(house.post(made), 422, "invalid_request")
    assert all(pointer.startswith(f"/{field}") for pointer in pointers_of(problem)), problem
    assert pointers_of(problem)


@pytest.mark.parametrize(
    "key", ["", "   ", "agent:main", "agent:a b:x", "agent:main:\x07", "x" * 513, ":"]
)
def test_a_text_that_is_no_session_key_is_invalid(house: House, key: str) -> None:
    problem = problem_of(house.spawn(key), 422, "invalid_request")
    assert pointers_of(problem) == ["/requester/sessionKey"]


@pytest.mark.parametrize(
    "folder",
    ["srv/agents", "./x", "~/x", "C:\\\\x", "/srv\n/x", "/srv\x1b[2J", "/" + "x" * 4096, 7],
)
def test_a_workspace_is_an_absolute_path_without_surprises(
    house: House, unrecorded: str, folder: object
) -> None:
    made = spawn_body(unrecorded)
    made["requester"]["workspaceDir"] = folder
    problem = problem_of(house.post(json.dumps(made).encode()), 422, "invalid_request")
    assert pointers_of(problem) == ["/requester/workspaceDir"]


@pytest.mark.parametrize("seconds", [-1, -0.5, -1e300])
def test_a_limit_below_zero_is_none(house: House, seconds: float) -> None:
    answer = house.spawn(house.session(), runTimeoutSeconds=seconds)
    assert answer.status_code == 201, answer.text
    assert house.server.run(answer.json()["runId"])["runTimeoutSeconds"] == 0


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '"x"', "7", "[{}]"])
def test_what_is_required_must_be_there(house: House, text: str) -> None:
    problem_of(house.post(text.encode()), 422, "invalid_request")


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "text/json", ""],
)
def test_only_json_is_taken(house: House, unrecorded: str, content_type: str) -> None:
    made = json.dumps(spawn_body(unrecorded)).encode()
    problem_of(house.post(made, Content_Type=content_type), 415, "not_json")


@pytest.mark.parametrize("content_type", ["Application/JSON", "application/json; charset=utf-8"])
def test_json_is_json_in_every_spelling(house: House, content_type: str) -> None:
    made = json.dumps(spawn_body(house.session())).encode()
    assert house.post(made, Content_Type=content_type).status_code == 201


def test_numbers_beyond_all_measure_do_no_harm(house: House) -> None:
    for number in ("1e308", "1e18", "9007199254740993", "0.4"):
        text = json.dumps(spawn_body(house.session(), runTimeoutSeconds="MARK"))
        answer = house.post(text.replace('"MARK"', number).encode())
        assert answer.status_code == 201, answer.text
        assert house.server.run(answer.json()["runId"], "ended")["outcome"] == "success"


def test_a_number_that_json_cannot_hold_is_malformed(house: House, unrecorded: str) -> None:
    for number in ("1e999", "-1e999", "NaN", "Infinity", "01", "1."):
        text = json.dumps(spawn_body(unrecorded, runTimeoutSeconds="MARK"))
        problem_of(house.post(text.replace('"MARK"', number).encode()), 400, "malformed_json")


def test_an_address_that_is_a_whole_number_may_be_large_but_not_endless(house: House) -> None:
    session = house.session()
    for number, status in (("18446744073709551615", 201), ("9" * 400, 422)):
        made = {"requester": {"sessionKey": session, "threadId": "MARK"}, "task": "x"}
        answer = house.post(json.dumps(made).replace('"MARK"', number).encode())
        assert answer.status_code in (status, 400), answer.text
    assert len(house.runs(session)) == 1


def test_the_bodies_of_other_commands_are_as_strict(house: House) -> None:
    run = house.ended(house.session())
    stop = f"/v1/runs/{run['runId']}/stop"
    ack = f"/v1/sessions/{run['requesterSessionKey']}/announcements/{run['runId']}/ack"
    problem = problem_of(house.http.post(stop, json={"resaon": "x"}), 422, "invalid_request")
    assert pointers_of(problem) == ["/resaon"]
    problem_of(house.http.post(stop, json={"reason": "x" * 2001}), 422, "invalid_request")
    problem_of(house.http.post(stop, json=[]), 422, "invalid_request")
    problem_of(house.http.post(ack, json={"by": "me"}), 422, "invalid_request")
    problem_of(house.http.post(ack, content=b"{"), 415, "not_json")
    headers = {"Content-Type": "application/json"}
    problem_of(house.http.post(ack, content=b"{", headers=headers), 400, "malformed_json")
    assert house.server.run(run["runId"])["version"] == run["version"]
