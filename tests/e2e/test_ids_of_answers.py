"""An id that an answer gives can be used at once, also while its message is not a run yet."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.running_server import wait_for
from tests.support.servers.yielding_server import Yielding, yielding_on

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server(databases: Databases) -> Iterator[Yielding]:
    with yielding_on(databases, maxConcurrent=50) as running:
        yield running


def at_work(server: Yielding) -> tuple[str, str]:
    """A run that waits to be let go, and its label."""
    label = f"ids-{uuid.uuid4().hex[:8]}"
    run_id = server.asks(label, {"awaits": f"{label}.go"})
    server.turn(label, 1)
    return run_id, label


def spawned(server: Yielding, label: str, _: str) -> str:
    requester = {"sessionKey": f"agent:actor:{label}"}
    answer = server.spawn("{}", agentId="actor", requester=requester, dependsOn=[label])
    assert answer.status_code == 201, answer.text
    return str(answer.json()["runId"])


def refused(server: Yielding, label: str, _: str) -> str:
    requester = {"sessionKey": f"agent:actor:{label}"}
    return str(server.spawn("{}", agentId="nobody", requester=requester).json()["runId"])


def batched(server: Yielding, label: str, _: str) -> str:
    requester = {"sessionKey": f"agent:actor:{label}"}
    answer = server.http.post(
        "/v1/spawns",
        json={"requester": requester, "task": ["{}", "{}"], "parallel": True, "agentId": "actor"},
    )
    return str(answer.json()["runs"][1]["runId"])


def sent(server: Yielding, _: str, run_id: str) -> str:
    answer = server.message(run_id, "and then")
    assert answer.status_code == 202, answer.text
    return str(answer.json()["runId"])


def steered(server: Yielding, _: str, run_id: str) -> str:
    answer = server.message(run_id, "rather this", mode="steer")
    assert answer.status_code == 202, answer.text
    return str(answer.json()["runId"])


def respawned(server: Yielding, _: str, run_id: str) -> str:
    answer = server.http.post(f"/v1/runs/{run_id}/respawn", json={})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["runId"])


ANSWERS = [spawned, refused, batched, sent, steered, respawned]
PATHS = {
    "": {200},
    "?wait=1ms&until=started": {200},
    "/events": {200},
    "/history": {200},
    "/transcript": {200},
    "/transcript?wait=1ms": {200},
    "/explain": {200},
    "/prompt": {200, 409},
    "/shared-context": {200, 409},
}


@pytest.mark.parametrize("give", ANSWERS)
def test_id_of_an_answer_is_known_at_once(
    server: Yielding, give: Callable[[Yielding, str, str], str]
) -> None:
    run_id, label = at_work(server)
    given = give(server, label, run_id)
    for path, statuses in PATHS.items():
        answer = server.http.get(f"/v1/runs/{given}{path}")
        assert answer.status_code in statuses, f"{path}: {answer.status_code} {answer.text}"
    compared = server.http.get(f"/v1/runs/{run_id}/compare", params={"with": given})
    assert compared.status_code == 200, compared.text
    for path in (f"/v1/diff?from=pos:1&to=-0s&runId={given}", f"/v1/events?runId={given}"):
        answer = server.http.get(path)
        assert answer.status_code == 200, answer.text
    assert server.http.post(f"/v1/runs/{given}/respawn", json={}).status_code < 500
    stopped = server.http.post(f"/v1/runs/{given}/stop", json={})
    assert stopped.status_code == 200, stopped.text
    server.lets(f"{label}.go")
    run = server.run(given, "ended")
    assert run["runId"] == given
    # Those that wait for nothing may be done before they are stopped.
    assert run["status"] in ("stopped", "refused", "done")


def test_message_that_waits_reads_as_its_run(server: Yielding) -> None:
    run_id, label = at_work(server)
    answer = server.message(run_id, "and then")
    assert answer.headers["Location"] == f"/v1/runs/{answer.json()['runId']}"
    before = server.run(run_id)
    run = server.run(answer.json()["runId"])
    assert (run["stage"], run["status"], run["continues"]) == ("session-created", "waiting", run_id)
    assert (run["task"], run["version"]) == ("and then", 0)
    for same in ("childSessionKey", "sessionId", "label", "agentId", "requesterSessionKey"):
        assert run[same] == before[same]
    head = int(answer.headers["Spawnlog-Position"])
    path = f"/v1/runs/{run['runId']}"
    assert server.http.get(path, params={"at": f"pos:{head}"}).json()["status"] == "waiting"
    assert server.http.get(path, params={"at": f"pos:{head - 1}"}).status_code == 404
    server.lets(f"{label}.go")
    done = server.run(run["runId"], "announced")
    assert (done["status"], done["task"]) == ("done", "and then")


def test_stopped_message_is_dropped_and_others_are_taken(server: Yielding) -> None:
    run_id, label = at_work(server)
    first, second = (sent(server, label, run_id) for _ in range(2))
    stopped = server.http.post(f"/v1/runs/{first}/stop", json={}).json()
    assert (stopped["runId"], stopped["wasOver"]) == (first, False)
    run = server.run(first, "ended")
    assert (run["stage"], run["status"], run["rule"]) == ("refused", "refused", "stopped")
    assert server.http.post(f"/v1/runs/{first}/stop", json={}).json()["wasOver"]
    (queued,) = server.session(run["childSessionKey"])["queue"]
    assert queued["runId"] == second
    server.lets(f"{label}.go")
    assert server.run(second, "announced")["status"] == "done"
    assert server.run(first, "archived")["status"] == "refused"


def test_etag_of_a_waiting_message_changes_when_it_is_dropped(server: Yielding) -> None:
    run_id, label = at_work(server)
    path = f"/v1/runs/{sent(server, label, run_id)}"
    etag = server.http.get(path).headers["ETag"]
    known = {"If-None-Match": etag}
    assert server.http.get(path, headers=known).status_code == 304
    server.http.post(f"{path}/stop", json={})
    answer = server.http.get(path, headers=known)
    assert (answer.status_code, answer.json()["stage"]) == (200, "refused")
    server.lets(f"{label}.go")
    server.run(run_id, "announced")


def test_run_is_announced_if_the_message_that_steered_it_is_dropped(server: Yielding) -> None:
    run_id, label = at_work(server)
    given = steered(server, label, run_id)
    server.http.post(f"/v1/runs/{given}/stop", json={})
    server.lets(f"{label}.go")
    assert server.run(run_id, "announced")["status"] == "stopped"
    assert server.run(given, "announced")["status"] == "refused"


def test_steer_by_the_id_of_a_waiting_message_reaches_its_session(server: Yielding) -> None:
    run_id, label = at_work(server)
    waiting = sent(server, label, run_id)
    answer = server.message(waiting, "at once", mode="steer")
    assert (answer.status_code, answer.json()["replaces"]) == (202, run_id)
    wait_for("the steer", lambda: server.run(answer.json()["runId"])["status"] != "waiting")
    server.lets(f"{label}.go")
    assert server.run(waiting, "announced")["status"] == "done"


def test_transcript_of_a_waiting_message_can_be_followed(server: Yielding) -> None:
    run_id, label = at_work(server)
    waiting = sent(server, label, run_id)
    path = f"/v1/runs/{waiting}/transcript"
    page: dict[str, Any] = server.http.get(path).json()
    assert (page["items"], page["lastSequence"], page["complete"]) == ([], 0, False)
    server.lets(f"{label}.go")
    page = server.http.get(path, params={"wait": "30s"}).json()
    assert page["items"][0]["body"]["text"].endswith("and then")


def test_unknown_id_stays_unknown(server: Yielding) -> None:
    unknown = uuid.uuid4()
    for path in ("", "/events", "/transcript"):
        assert server.http.get(f"/v1/runs/{unknown}{path}").status_code == 404
    assert server.http.post(f"/v1/runs/{unknown}/stop", json={}).status_code == 404
