"""A foreign library generates a typed client from the served description, and uses it."""

from typing import Any

import httpx2
import pytest

from tests.support.servers.server import Server

pytestmark = pytest.mark.server


def without_lengths_of_ids(part: Any) -> Any:
    """Return the description without lengths of ids, which this library does not treat as texts."""
    if isinstance(part, list):
        return [without_lengths_of_ids(item) for item in part]
    if not isinstance(part, dict):
        return part
    left_out = {"minLength", "maxLength"} if part.get("format") == "uuid" else set()
    return {
        name: without_lengths_of_ids(value) for name, value in part.items() if name not in left_out
    }


@pytest.fixture(scope="module")
def client(server: Server) -> Any:
    from aiopenapi3 import OpenAPI  # type: ignore[import-untyped]

    document = server.http.get("/openapi.json").json()
    # This library needs the default servers of a description spelled out.
    described = {**without_lengths_of_ids(document), "servers": [{"url": "/"}]}
    made: Any = OpenAPI(f"{server.url}/openapi.json", described, session_factory=httpx2.Client)
    made.authenticate(bearer=server.token)
    return made


def test_it_has_every_operation(server: Server, client: Any) -> None:
    paths = server.http.get("/openapi.json").json()["paths"]
    items = [(path, method) for path, methods in paths.items() for method in methods]
    assert items
    for path, method in items:
        assert client.createRequest((path, method)) is not None


def test_it_spawns_a_run_and_reads_it(server: Server, client: Any) -> None:
    key = server.new_session("outside")
    spawn = client.createRequest(("/v1/spawns", "post"))
    accepted = spawn(data={"requester": {"sessionKey": key}, "task": "look"})
    assert (type(accepted).__name__, accepted.status) == ("AcceptedSpawn", "accepted")
    read = client.createRequest(("/v1/runs/{runId}", "get"))
    given = {"runId": str(accepted.runId), "wait": "30s", "until": "announced"}
    run = read(parameters=given)
    assert (run.runId, run.requesterSessionKey) == (accepted.runId, key)
    assert (run.stage, run.outcome) == ("announced", "success")
