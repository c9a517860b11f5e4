"""What was said in a session that lives elsewhere is told, kept beside the log, and told again."""

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
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


MIB = 1024 * 1024


def accepted(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    body = dict(answer.json())
    assert body["position"] == int(answer.headers["spawnlog-position"])
    assert answer.headers["spawnlog-log"]
    return body


def events_of(house: House, session: str) -> list[dict[str, Any]]:
    """The events on the stream of a session."""
    types = "SessionObserved,TranscriptProvided"
    found: list[dict[str, Any]] = []
    after = 0
    while True:
        page = house.get("/v1/events", types=types, limit=500, after=after)
        found += page["items"]
        if not page["items"]:
            return [one for one in found if one["stream"] == f"session:{session}"]
        after = page["items"][-1]["position"]


def test_a_session_is_seen_first_with_its_transcript(house: House) -> None:
    session = house.session("told")
    body = accepted(tell(house.http, session, totalTokens=700))
    assert (body["sessionKey"], body["entries"], body["tokens"]) == (session, 4, 700)
    known = house.get(f"/v1/sessions/{session}")
    assert (known["sessionId"], known["assertedBy"], known["depthFrom"]) == (
        body["sessionId"],
        "admin",
        "shape",
    )
    assert (known["agentId"], known["depth"], known["stage"]) == ("main", 0, "open")
    seen, provided = events_of(house, session)
    assert (seen["type"], provided["type"]) == ("SessionObserved", "TranscriptProvided")
    assert seen["commandId"] == provided["commandId"]
    assert provided["position"] == body["position"]
    payload = provided["payload"]
    assert (payload["entries"], payload["tokens"], payload["by"]) == (4, 700, "admin")
    assert payload["content"]["bytes"] == body["bytes"]
    assert "harbour" not in json.dumps([seen, provided])


def test_the_same_again_records_nothing_and_another_takes_its_place(house: House) -> None:
    session = house.session("told")
    first = accepted(tell(house.http, session))
    again = accepted(tell(house.http, session))
    assert {**again, "position": 0} == {**first, "position": 0}
    assert len(events_of(house, session)) == 2
    accepted(tell(house.http, session, totalTokens=1))
    assert len(events_of(house, session)) == 3, "another total is another thing to say"
    accepted(tell(house.http, session, [*CONVERSATION, message("more")]))
    accepted(tell(house.http, session))
    accepted(tell(house.http, session, []))
    assert len(events_of(house, session)) == 6


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
def test_the_tokens_are_those_that_count_for_a_fork(
    house: House, entries: list[Any], more: dict[str, Any], tokens: int | None
) -> None:
    body = accepted(tell(house.http, house.session("told"), entries, **more))
    assert body["tokens"] == (body["bytes"] // 4 if tokens is None else tokens)


def test_a_session_goes_by_all_its_names(house: House) -> None:
    session = house.session("told")
    first = accepted(tell(house.http, session.upper()))
    assert first["sessionKey"] == session
    for name in (
        first["sessionId"],
        session.replace(":", "::"),
        session.removeprefix("agent:main:"),
    ):
        assert accepted(tell(house.http, name))["sessionId"] == first["sessionId"]
    assert len(events_of(house, session)) == 2
    key = house.session("chat") + "/threads/1"
    assert accepted(tell(house.http, key))["sessionKey"] == key
    with house.with_token(house.secrets["one"]) as client:
        assert accepted(tell(client, "current"))["sessionKey"] == "agent:main:the-one"


def test_those_who_tell_it_at_once_all_have_told_it(house: House) -> None:
    session = house.session("told")

    def say(number: int) -> dict[str, Any]:
        return accepted(tell(house.http, session, [message(f"from {number}")]))

    with ThreadPoolExecutor(8) as callers:
        bodies = list(callers.map(say, range(8)))
    assert len({body["sessionId"] for body in bodies}) == 1
    kinds = [one["type"] for one in events_of(house, session)]
    assert kinds == ["SessionObserved", *["TranscriptProvided"] * 8]


def test_the_transcript_of_a_child_is_kept_here(house: House) -> None:
    with house.held(house.session("parent")) as run:
        problem_of(tell(house.http, run.child), 409, "transcript_is_kept_here")
        with house.with_token(run.token) as client:
            problem_of(tell(client, run.child), 409, "transcript_is_kept_here")
            problem_of(tell(client, "current"), 409, "transcript_is_kept_here")
            parent = house.server.run(run.run_id)["requesterSessionKey"]
            problem_of(tell(client, parent), 403, "not_permitted")
    ended = house.ended(house.session("parent"))
    problem_of(tell(house.http, ended["childSessionKey"]), 409, "transcript_is_kept_here")


def test_session_is_told_of_by_a_token_that_covers_it(house: House) -> None:
    with house.with_token(house.secrets["spawner"]) as client:
        problem_of(tell(client, house.session("told")), 403, "not_permitted")
        body = accepted(tell(client, "agent:main:spawner-told"))
    seen = house.get("/v1/sessions/agent:main:spawner-told")
    assert (body["entries"], seen["assertedBy"]) == (4, "spawner")


@pytest.mark.parametrize(
    ("entry", "pointer"),
    [
        ({"kind": "message", "text": "x"}, "/entries/0"),
        ({"kind": "message", "role": "user"}, "/entries/0"),
        ({"kind": "message", "role": "user", "text": "x", "name": "y"}, "/entries/0"),
        ({"kind": "tool"}, "/entries/0"),
        ({"kind": "usage", "inputTokens": 1}, "/entries/0"),
        ({"kind": "text"}, "/entries/0"),
    ],
)
def test_an_entry_of_another_shape_is_named(
    house: House, unrecorded: str, entry: Any, pointer: str
) -> None:
    problem = problem_of(tell(house.http, unrecorded, [entry]), 422, "invalid_request")
    assert pointers_of(problem) == [pointer]


def test_the_limits_may_be_reached(house: House) -> None:
    session = house.session("told")
    entry = {"kind": "text", "text": ""}
    assert accepted(tell(house.http, session, [entry] * 10_000))["entries"] == 10_000
    room = MIB - len(json.dumps(entry, separators=(",", ":")))
    assert accepted(tell(house.http, session, [entry | {"text": "x" * room}]))["bytes"] == MIB + 1
    for text in ("x" * (room + 1), "å" * (room // 2 + 1)):
        answer = tell(house.http, session, [entry, entry | {"text": text}])
        assert pointers_of(problem_of(answer, 422, "invalid_request")) == ["/entries/1"]
    assert len(events_of(house, session)) == 3


def test_the_example_is_taken(house: House) -> None:
    example = EXAMPLES["provideTranscript"]
    body = accepted(house.http.put(path_of(house.session("told")), json=example["request"]))
    names = ("entries", "bytes", "tokens")
    assert [body[name] for name in names] == [example["response"][name] for name in names]


PART_BYTES = 1_073_741_824


def test_no_more_is_told_of_a_session_than_is_kept_of_one(house: House) -> None:
    session = house.session("told")
    first = tell(house.http, session).json()
    other = tell(house.http, house.session("told")).json()
    room = TRANSCRIPT_BYTES_MAX - 2 * first["bytes"]
    rows = [
        ("transcript", first["sessionId"], room),
        ("task", first["sessionId"], TRANSCRIPT_BYTES_MAX),
        ("transcript", other["sessionId"], TRANSCRIPT_BYTES_MAX),
    ]
    longer = [*CONVERSATION, message("more")]
    with earlier_contents(house, rows):
        assert tell(house.http, session, totalTokens=1).status_code == 200
        full = problem_of(tell(house.http, session, totalTokens=2), 409, "too_much_told")
        assert (
            f"{TRANSCRIPT_BYTES_MAX} bytes were told of session {session} so far" in full["detail"]
        )
        assert "go on with another session" in full["detail"]
        assert tell(house.http, session, totalTokens=1).status_code == 200
        problem_of(tell(house.http, session, longer, key=a_key()), 409, "too_much_told")
    assert tell(house.http, session, longer).status_code == 200


@contextmanager
def earlier_contents(house: House, rows: list[tuple[str, str, int]]) -> Iterator[None]:
    """As if texts of this kind, session and size, in all, were kept."""
    rows = [(kind, owner, part) for kind, owner, size in rows for part in _parts(size)]
    ids = [str(uuid4()) for _ in rows]
    conninfo = Home.at(house.server.data_dir / "postgres").conninfo()
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for content_id, (kind, owner, size) in zip(ids, rows, strict=True):
            connection.execute(
                "INSERT INTO contents VALUES (%s, %s, %s, %s, '')",
                [content_id, owner, kind, size],
            )
        try:
            yield
        finally:
            connection.execute("DELETE FROM contents WHERE content_id = ANY(%s::uuid[])", [ids])


def _parts(size: int) -> list[int]:
    return [min(PART_BYTES, size - begun) for begun in range(0, size, PART_BYTES)]
