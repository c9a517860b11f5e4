"""Free text of callers is kept beside the log, where it can be erased, and never in it."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from infrastructure.outbound.embedded_postgres.data_directory import Home
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

KEY = "agent:main:free-text"
PROSE = "please use the nicest model of Konstantinopel " * 5
WORD = "Konstantinopel"


@pytest.fixture
def tables(server: Server) -> Iterator["Tables"]:
    conninfo = Home.at(server.data_dir / "postgres").conninfo()
    with psycopg.connect(conninfo, autocommit=True) as connection:
        yield Tables(connection)


class Tables:
    """What stands in the database, each row as text with its bytes legible."""

    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._connection = connection

    def with_word(self, word: str) -> set[str]:
        """The names of the tables in which a word stands."""
        names = self._connection.execute(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
        ).fetchall()
        return {str(name) for (name,) in names if self._stands_in(str(name), word)}

    def _stands_in(self, name: str, word: str) -> bool:
        # Bytes are shown in hexadecimal digits.
        row = self._connection.execute(
            sql.SQL(
                "SELECT count(*) FROM {table} t WHERE t::text LIKE %s OR t::text LIKE %s"
            ).format(table=sql.Identifier(name)),
            [f"%{word}%", f"%{word.encode().hex()}%"],
        ).fetchone()
        assert row is not None
        return bool(row[0])


def test_a_model_that_is_no_name_is_skipped_with_a_warning_and_is_on_no_record(
    server: Server, tables: Tables
) -> None:
    assert len(PROSE) > 200
    body: dict[str, Any] = {
        "requester": {"sessionKey": KEY},
        "agentId": "plain",
        "cleanup": "delete",
    }
    answer = server.spawn(model=PROSE, **body)
    assert answer.status_code == 201, answer.text
    assert answer.json()["modelApplied"] is False
    (warning,) = answer.json()["warnings"]
    assert warning == "The model that was asked for has no model's name and was skipped."
    run = server.run(answer.json()["runId"], "archived")
    assert run["outcome"] == "success"
    assert (run["modelProvider"], run["model"]) == ("example", "words")
    assert run["warnings"] == [warning]
    assert tables.with_word(WORD) == {"contents"}


def test_a_model_that_is_a_name_is_on_record(server: Server, tables: Tables) -> None:
    body: dict[str, Any] = {
        "requester": {"sessionKey": KEY},
        "agentId": "plain",
        "cleanup": "delete",
    }
    answer = server.spawn(model="nowhere/byzantium-1", **body)
    assert answer.json()["modelApplied"] is True
    run = server.run(answer.json()["runId"], "archived")
    assert (run["modelProvider"], run["model"]) == ("nowhere", "byzantium-1")
    assert {"events", "runs"} <= tables.with_word("byzantium-1")


def test_a_thinking_level_that_is_none_is_refused_and_its_text_is_in_no_event(
    server: Server, tables: Tables
) -> None:
    body: dict[str, Any] = {"requester": {"sessionKey": KEY}, "agentId": "plain"}
    answer = server.spawn(thinking="like Trapezunt", **body)
    assert answer.status_code == 422, answer.text
    refusal = answer.json()
    assert (refusal["rule"], refusal["code"]) == ("thinking", "spawn_error")
    text = 'Invalid thinking level "like Trapezunt". Use one of: off, minimal, low, medium, high.'
    assert text in answer.text.replace('\\"', '"')
    assert server.run(refusal["runId"])["status"] == "refused"
    assert server.events(refusal["runId"]) == ["SpawnRequested", "ScriptsResolved", "SpawnRefused"]
    assert tables.with_word("Trapezunt") == {"contents"}
