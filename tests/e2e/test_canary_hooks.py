"""The secrets of a hook are sent to it, and appear nowhere else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.canaries import answers_about, files_with, tables_with
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked import ASKING, BOUND, TELLING, TIMEOUT_SECONDS, hooked, threaded
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

IN_FILE = "canary-of-a-header-in-the-file-5f1c"
IN_ENVIRONMENT = "canary-of-a-header-in-the-environment-77aa"
IN_QUERY = "canary-of-a-query-93bd"
CANARIES = IN_FILE, IN_ENVIRONMENT, IN_QUERY
NAMES = "told", "unbound", "slow", "unprepared", "parked", "unreached"
KEYS = [f"agent:main:{name}" for name in NAMES]
# No error quotes a refused answer.
ECHO = {"you": [IN_FILE, IN_ENVIRONMENT, IN_QUERY]}


def configured(outside: HookServer, folder: Path) -> dict[str, Any]:
    """Return a configuration with every hook, and secrets in each place for them."""
    hooks = outside.hooks(
        *ASKING,
        *TELLING,
        "subagentDeliveryTarget",
        timeoutSeconds=TIMEOUT_SECONDS / 4,
        headers={"X-Plain": IN_FILE, "Authorization": "Bearer ${CANARY_OF_A_HOOK}"},
    )
    for hook in hooks.values():
        hook["url"] += f"?k={IN_QUERY}"
    return hooked(folder, hooks)


@pytest.fixture(scope="module")
def outside() -> Iterator[HookServer]:
    with HookServer() as running:
        yield running


@pytest.fixture(scope="module")
def server(made_data_dir: Path, outside: HookServer) -> Iterator[Server]:
    with new_place() as place:
        config = configured(outside, place / "notes")
        data = copied(made_data_dir, place / "data")
        environment = {"CANARY_OF_A_HOOK": IN_ENVIRONMENT}
        with Server(data, config, environment=environment) as started:
            yield started


def ended(server: Server, name: str, **more: Any) -> str:
    """Spawn, whatever the result. Return the run's id once no work is left."""
    answer = server.spawn(**threaded(name, **more))
    run_id = str(answer.json()["runId"])
    if answer.status_code == 201:
        server.run(run_id, "announced")
    return run_id


def story_of(server: Server, run_id: str, event: str, times: int = 1) -> None:
    wait_for(
        f"{times} {event} of {run_id}",
        lambda: server.events(run_id).count(event) >= times,
    )


def test_headers_and_queries_are_sent_and_stand_nowhere(
    server: Server, outside: HookServer
) -> None:
    outside.replies("subagentSpawning", Reply(body={**BOUND, **ECHO}))
    runs = [result := ended(server, "told")]
    story_of(server, result, "EffectAttempted", 2)
    outside.replies("subagentSpawning", Reply(500, ECHO))
    runs.append(ended(server, "unbound"))
    story_of(server, runs[-1], "EffectAttempted")
    outside.replies("subagentSpawning", Reply(is_held=True))
    runs.append(ended(server, "slow"))
    story_of(server, runs[-1], "EffectAttempted")
    outside.replies("prepareSubagentSpawn", Reply(200, [ECHO]))
    outside.replies("rollbackSubagentSpawn", Reply(400, ECHO), Reply(204))
    runs.append(ended(server, "unprepared", thread=False))
    story_of(server, runs[-1], "EffectAttempted")
    outside.replies("prepareSubagentSpawn", Reply(204))
    outside.replies("subagentSpawned", Reply(500, ECHO))
    outside.replies("subagentDeliveryTarget", Reply(302, ECHO, {"Location": f"/{IN_QUERY}"}))
    runs.append(ended(server, "parked", thread=False))
    story_of(server, runs[-1], "EffectParked")
    outside.replies("subagentSpawned", Reply(breaks_off=True))
    runs.append(ended(server, "unreached", thread=False))
    story_of(server, runs[-1], "EffectAttempted")
    outside.let_go()

    sent = outside.calls()
    assert {call.hook for call in sent} >= {*ASKING, *TELLING, "subagentDeliveryTarget"}
    for call in sent:
        assert call.headers["X-Plain"] == IN_FILE
        assert call.headers["Authorization"] == f"Bearer {IN_ENVIRONMENT}"
        assert call.path.endswith(f"?k={IN_QUERY}")
    answers = answers_about(server, runs, KEYS)
    assert not [answer for answer in answers if any(canary in answer for canary in CANARIES)]
    assert not any(canary in server.log() for canary in CANARIES)
    assert list(tables_with(server.data_dir, CANARIES)) == []
    server.stop()
    assert files_with(server.data_dir, CANARIES) == []
    assert server.config is not None
    assert files_with(server.data_dir.parent, CANARIES, but=[server.config]) == []
