"""A lane with room for one: who comes later waits in its place. A server of its own."""

from collections.abc import Iterator

import pytest

from tests.support.running_server import RunningServer, configuration, scripted

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    slow = scripted("main", steps=[{"afterMs": 300_000}])
    config = configuration(slow, maxConcurrent=1)
    config["spawnlog"] |= {"drainSeconds": 0, "noAuth": True}
    with RunningServer(tmp_path_factory.mktemp("narrow") / "data", config) as server:
        yield server


def test_those_who_wait_have_a_place_and_a_reason(server: RunningServer) -> None:
    first, second, third = [server.spawn(label=f"{n}").json()["runId"] for n in range(3)]
    server.run(first, "started")
    (lane,) = server.http.get("/v1/lanes").json()["items"]
    assert [run["runId"] for run in lane["running"]] == [first]
    waiting = [(run["runId"], run["place"], run["waitsFor"]) for run in lane["queued"]]
    assert waiting == [(second, 1, "a slot"), (third, 2, "a slot")]
    listed = server.http.get("/v1/runs", params={"status": "queued"}).json()["items"]
    assert [run["runId"] for run in listed] == [third, second]
    for run_id in (second, third, first):
        server.http.post(f"/v1/runs/{run_id}/stop")
        assert server.run(run_id, "ended")["outcome"] == "stopped"
    assert server.http.get("/v1/lanes").json()["items"] == []


def test_without_authentication_a_token_is_not_asked_for(server: RunningServer) -> None:
    answer = server.http.get("/v1/runs", headers={"Authorization": "Bearer nonsense"})
    assert answer.status_code == 200
    assert "authentication is off" in server.log()
    refused = server.http.get("/v1/runs", headers={"Host": "evil.example"})
    assert refused.status_code == 403
