"""Results of earlier children that a later one is given by name: which one is meant, how large it
may be, and that all of it can be read by the child; agents are real processes."""

import json
import sys
from pathlib import Path

import pytest

from tests.support.servers.answering_children import answerer, recorded, said, spawned
from tests.support.servers.configurations import agent, command
from tests.support.servers.server import Serve, Server

pytestmark = pytest.mark.server

FAMILY_BYTES_MAX = 65_536
RESULT_BYTES_MAX = 102_400
# Says as many letters as its task asks for.
_TALKER = 'import sys; print("y" * int(sys.stdin.read().rpartition(" ")[2]))'
# Reads with its own token what it was given, and tells how long each text is.
_MEASURER = r"""
import json, os, urllib.request
path = "/v1/runs/" + os.environ["SPAWNLOG_RUN_ID"] + "/shared-context"
request = urllib.request.Request(os.environ["SPAWNLOG_URL"] + path)
request.add_header("Authorization", "Bearer " + os.environ["SPAWNLOG_TOKEN"])
with urllib.request.urlopen(request, timeout=20) as answer:
    values = json.load(answer)["values"]
print(json.dumps({key: [len(text), text[-60:]] for key, text in values.items()}))
"""


@pytest.fixture(scope="module")
def server(serve: Serve, gates: Path) -> Server:
    return serve(
        {**answerer("main"), "default": True},
        answerer("gated", gates),
        agent("talker", command(sys.executable, "-I", "-S", "-c", _TALKER)),
        agent("measurer", command(sys.executable, "-I", "-S", "-c", _MEASURER)),
        maxConcurrent=8,
    )


def test_the_run_that_is_meant_is_fixed_when_the_spawn_is_admitted(
    server: Server, gates: Path
) -> None:
    session = "fixed"
    old = spawned(server, session, "Old view", agentId="gated", label="view")
    later = spawned(server, session, "Go on", sharedContext={"$view": "reference"})
    new = spawned(server, session, "New view", label="view")
    assert said(server, new) == "New view"
    asked = recorded(server, later, "SpawnRequested")["payload"]
    assert asked["shared"]["references"] == [{"key": "view", "runId": old["runId"]}]
    (gates / "go.Old-view").touch()
    assert said(server, later) == "Go on; view is [Old view]"


def test_results_have_no_part_in_the_size_of_what_is_shared_and_are_read_whole(
    server: Server,
) -> None:
    session = "large"
    sizes = {"one": 9_000, "two": RESULT_BYTES_MAX, "three": RESULT_BYTES_MAX + 1}
    for label, size in sizes.items():
        said(server, spawned(server, session, f"Say {size}", agentId="talker", label=label))
    literal = {"k": "z" * (FAMILY_BYTES_MAX - len('{"k":""}'))}
    names = {f"${label}": "reference" for label in sizes}
    answer = spawned(server, session, "Measure", agentId="measurer", sharedContext=literal | names)
    told = json.loads(said(server, answer))
    assert told["k"] == [len(literal["k"]), "z" * 60]
    assert told["one"] == [9_000, "y" * 60]
    assert told["two"] == [RESULT_BYTES_MAX, "y" * 60]
    length, end = told["three"]
    assert length == RESULT_BYTES_MAX
    assert end.endswith("[truncated: frozen completion output exceeded 100KB (100KB)]")
    more = server.spawn(
        "One more", requester={"sessionKey": f"agent:main:{session}"}, sharedContext={"a": 1}
    )
    assert more.json()["rule"] == "shared_context", "what is literal is at its limit"
