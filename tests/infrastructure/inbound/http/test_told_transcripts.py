"""The transcript of a session that runs elsewhere: uploaded, stored, and replaced."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import httpx2
import psycopg
import pytest

from application.session.transcript import TRANSCRIPT_BYTES_MAX
from infrastructure.inbound.http.responses.examples import EXAMPLES
from infrastructure.outbound.embedded_postgres.data_directory import Home
from tests.support.builders.submitted_transcripts import CONVERSATION, message, path_of, tell
from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import a_key
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

MIB = 1024 * 1024
PART_BYTES = 1_073_741_824


def accepted(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    body = dict(answer.json())
    assert body["position"] == int(answer.headers["spawnlog-position"])
    return body


def events_of(server: Server, session: str) -> list[dict[str, Any]]:
    """Return the events on the stream of a session."""
    items = server.get("/v1/events", tree=session, limit=500)["items"]
    return [item for item in items if item["stream"] == f"session:{session}"]


def test_transcript_makes_its_session_known(server: Server) -> None:
    session = server.new_session("told")
    body = accepted(tell(server.http, session, totalTokens=700))
    assert (body["sessionKey"], body["entries"], body["tokens"]) == (session, 4, 700)
    known = server.get(f"/v1/sessions/{session}")
    assert known["sessionId"] == body["sessionId"]
    assert (known["assertedBy"], known["depthFrom"]) == ("admin", "shape")
    assert (known["agentId"], known["depth"], known["stage"]) == ("main", 0, "open")
    seen, provided = events_of(server, session)
    assert (seen["type"], provided["type"]) == ("SessionObserved", "TranscriptProvided")
    assert seen["commandId"] == provided["commandId"]
    assert provided["position"] == body["position"]
    payload = provided["payload"]
    assert (payload["entries"], payload["tokens"], payload["by"]) == (4, 700, "admin")
    assert payload["content"]["bytes"] == body["bytes"]
    assert "harbour" not in json.dumps([seen, provided])


def test_equal_transcript_records_nothing(server: Server) -> None:
    session = server.new_session("told")
    first, again = (accepted(tell(server.http, session)) for _ in range(2))
    assert {**again, "position": 0} == {**first, "position": 0}
    assert len(events_of(server, session)) == 2
    accepted(tell(server.http, session, totalTokens=1))
    assert len(events_of(server, session)) == 3, "another total is another thing to say"
    for entries in ([*CONVERSATION, message("more")], CONVERSATION, []):
        accepted(tell(server.http, session, entries))
    assert len(events_of(server, session)) == 6


@pytest.mark.parametrize(
    ("entries", "more", "tokens"),
    [
        ([], {}, 0),
        ([], {"totalTokens": 5}, 5),
        ([message("x" * 4_000)], {}, None),
        ([{"kind": "usage", "inputTokens": 3, "outputTokens": 2_000}], {}, 2_003),
        (CONVERSATION, {"totalTokens": 0}, 0),
    ],
)
def test_tokens_are_those_that_count_for_fork(
    server: Server, entries: list[Any], more: dict[str, Any], tokens: int | None
) -> None:
    body = accepted(tell(server.http, server.new_session("told"), entries, **more))
    assert body["tokens"] == (body["bytes"] // 4 if tokens is None else tokens)


def test_session_goes_by_all_its_names(server: Server) -> None:
    session = server.new_session("told")
    first = accepted(tell(server.http, session.upper()))
    assert first["sessionKey"] == session
    names = (session.replace(":", "::"), session.removeprefix("agent:main:"))
    for name in (first["sessionId"], *names):
        assert accepted(tell(server.http, name))["sessionId"] == first["sessionId"]
    assert len(events_of(server, session)) == 2
    key = server.new_session("chat") + "/threads/1"
    assert accepted(tell(server.http, key))["sessionKey"] == key
    with server.with_token(server.secrets["one"]) as client:
        assert accepted(tell(client, "current"))["sessionKey"] == "agent:main:the-one"


def test_transcripts_at_once_are_all_recorded(server: Server) -> None:
    session = server.new_session("told")

    def say(number: int) -> str:
        body = accepted(tell(server.http, session, [message(f"from {number}")]))
        return str(body["sessionId"])

    with ThreadPoolExecutor(8) as callers:
        assert len(set(callers.map(say, range(8)))) == 1
    kinds = [event["type"] for event in events_of(server, session)]
    assert kinds == ["SessionObserved", *["TranscriptProvided"] * 8]


def test_transcript_of_child_is_kept_here(server: Server) -> None:
    with server.held(server.new_session("parent")) as run, server.with_token(run.token) as client:
        for http, name in ((server.http, run.child), (client, run.child), (client, "current")):
            problem_of(tell(http, name), 409, "transcript_is_kept_here")
        parent = server.run(run.run_id)["requesterSessionKey"]
        problem_of(tell(client, parent), 403, "not_permitted")
    problem_of(tell(server.http, run.child), 409, "transcript_is_kept_here")


def test_token_provides_for_sessions_it_covers(server: Server) -> None:
    with server.with_token(server.secrets["spawner"]) as client:
        problem_of(tell(client, server.new_session("told")), 403, "not_permitted")
        body = accepted(tell(client, "agent:main:spawner-told"))
    seen = server.get("/v1/sessions/agent:main:spawner-told")
    assert (body["entries"], seen["assertedBy"]) == (4, "spawner")


@pytest.mark.parametrize(
    "entry",
    [
        {"kind": "message", "text": "x"},
        {"kind": "message", "role": "user"},
        {"kind": "message", "role": "user", "text": "x", "name": "y"},
        {"kind": "tool"},
        {"kind": "usage", "inputTokens": 1},
        {"kind": "text"},
        {"kind": "text", "text": "x", "durationMs": 1},
    ],
    ids=str,
)
def test_entry_of_another_shape_is_named(
    server: Server, unrecorded: str, entry: dict[str, Any]
) -> None:
    problem = problem_of(tell(server.http, unrecorded, [entry]), 422, "invalid_request")
    assert pointers_of(problem) == ["/entries/0"]


def test_limits_of_transcript_may_be_reached(server: Server) -> None:
    session = server.new_session("told")
    entry = {"kind": "text", "text": ""}
    assert accepted(tell(server.http, session, [entry] * 10_000))["entries"] == 10_000
    room = MIB - len(json.dumps(entry, separators=(",", ":")))
    assert accepted(tell(server.http, session, [entry | {"text": "x" * room}]))["bytes"] == MIB + 1
    for text in ("x" * (room + 1), "å" * (room // 2 + 1)):
        answer = tell(server.http, session, [entry, entry | {"text": text}])
        assert pointers_of(problem_of(answer, 422, "invalid_request")) == ["/entries/1"]
    example = EXAMPLES["provideTranscript"]
    body = accepted(server.http.put(path_of(session), json=example["request"]))
    for name in ("entries", "bytes", "tokens"):
        assert body[name] == example["response"][name]


def test_bytes_of_all_transcripts_have_limit(server: Server) -> None:
    session = server.new_session("told")
    first = tell(server.http, session).json()
    second_answer = tell(server.http, server.new_session("told")).json()
    room = TRANSCRIPT_BYTES_MAX - 2 * first["bytes"]
    rows = [
        ("transcript", first["sessionId"], room),
        ("task", first["sessionId"], TRANSCRIPT_BYTES_MAX),
        ("transcript", second_answer["sessionId"], TRANSCRIPT_BYTES_MAX),
    ]
    longer = [*CONVERSATION, message("more")]
    with earlier_contents(server, rows):
        assert tell(server.http, session, totalTokens=1).status_code == 200
        full = problem_of(tell(server.http, session, totalTokens=2), 409, "too_much_told")
        text = f"session {session} has {TRANSCRIPT_BYTES_MAX} bytes of uploaded transcripts"
        assert text in full["detail"]
        assert "use another session" in full["detail"]
        assert tell(server.http, session, totalTokens=1).status_code == 200
        problem_of(tell(server.http, session, longer, key=a_key()), 409, "too_much_told")
    assert tell(server.http, session, longer).status_code == 200


@contextmanager
def earlier_contents(server: Server, rows: list[tuple[str, str, int]]) -> Iterator[None]:
    """Store rows as if texts of this kind, session and size were kept."""
    parts = [
        (str(uuid4()), owner, kind, min(PART_BYTES, size - begun))
        for kind, owner, size in rows
        for begun in range(0, size, PART_BYTES)
    ]
    conninfo = Home.at(server.data_dir / "postgres").conninfo()
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for part in parts:
            connection.execute("INSERT INTO contents VALUES (%s, %s, %s, %s, '')", part)
        try:
            yield
        finally:
            ids = [part[0] for part in parts]
            connection.execute("DELETE FROM contents WHERE content_id = ANY(%s::uuid[])", [ids])
