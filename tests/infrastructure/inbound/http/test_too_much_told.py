"""What was told of a session is kept, and so there is an end to what may be told."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import pytest

from application.session.transcript import TRANSCRIPT_BYTES_MAX
from infrastructure.outbound.embedded_postgres.data_directory import Home
from tests.support.builders.submitted_transcripts import CONVERSATION, message, tell
from tests.support.http.problems import problem_of
from tests.support.http.requests import a_key
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server
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
