"""What a request for several runs may look like."""

import pytest

from tests.support.http.requests import spawn_body
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


def test_a_run_tells_of_its_batch(house: House) -> None:
    session = house.session()
    body = spawn_body(session, task=["one", "two"], parallel=True)
    answer = house.http.post("/v1/spawns", json=body)
    assert answer.status_code == 201, answer.text
    first, second = answer.json()["runs"]
    assert answer.headers["Location"] == f"/v1/runs/{first['runId']}"
    for one in (first, second):
        assert house.server.run(one["runId"])["batchId"] == answer.json()["batchId"]
    alone = house.spawn(house.session()).json()
    assert "batchId" not in alone
    assert house.server.run(alone["runId"])["batchId"] is None
