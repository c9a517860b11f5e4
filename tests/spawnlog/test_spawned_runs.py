"""Run objects: equality and representation."""

from typing import Any

import pytest

from infrastructure.inbound.http.responses.examples import EXAMPLES
from spawnlog import AsyncClient, Client
from tests.support.servers.recorded_api import RecordedApi, Reply

RUN, NEXT = (f"11111111-0000-4000-8000-00000000000{digit}" for digit in (1, 2))
NOWHERE = "http://127.0.0.1:1"


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_objects_of_one_run_are_equal(kind: Any) -> None:
    client, second_client = (kind(url=NOWHERE, token="a") for _ in range(2))
    first, again, next_run = client.run(RUN), second_client.run(RUN), client.run(NEXT)
    assert first == again
    assert {first, again, next_run} == {first, next_run}
    assert first != next_run
    assert first != RUN


def test_object_of_steered_run_stays_equal() -> None:
    client = Client(url=NOWHERE, token="a")
    steered, again = client.run(RUN), client.run(RUN)
    known = {steered}
    steered.run_id = NEXT
    assert steered in known
    assert steered == again


def test_object_of_run_prints_its_status(api: RecordedApi) -> None:
    api.on("GET", f"/v1/runs/{RUN}", Reply(EXAMPLES["getRun"]["response"]))
    with Client(url=api.url, token="a") as client:
        run = client.run(RUN)
        assert repr(run) == f"SpawnedRun('{RUN}')"
        status = run.refresh().status
        assert repr(run) == f"SpawnedRun('{RUN}', status='{status}')"
