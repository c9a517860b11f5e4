"""Batches that are asked for of a server that lives to the end."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.servers.batching_server import Batching
from tests.support.servers.databases import Databases
from tests.support.servers.mortal_server import mortal_on

THREE = ("count the ships", "count the masts", "count the crew")


@contextmanager
def living(databases: Databases) -> Iterator[Batching]:
    """A server whose log is right in the end, and that had nothing to complain of."""
    with mortal_on(databases, Batching) as server:
        yield server
        assert " ERROR " not in server.log(), server.log()


def session(name: str) -> str:
    """A requester of its own."""
    return f"agent:main:{name}"


def accepted(answer: Any) -> dict[str, Any]:
    """The body of an accepted request."""
    assert answer.status_code == 201, answer.text
    return dict(answer.json())
