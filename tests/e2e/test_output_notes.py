"""Programs that say too little in their form: what their requester is told all the same."""

from collections.abc import Iterator

import pytest

from tests.support.servers.configurations import agent, command, configuration
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

MUTE = "cat >/dev/null; echo model not found >&2"
PLAIN = "cat >/dev/null; echo the answer; echo is 42; echo tired >&2"


@pytest.fixture(scope="module")
def server(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data_dir = tmp_path_factory.mktemp("noted") / "data"
    agents = configuration(
        agent("main", command("sh", "-c", MUTE, output="jsonl")),
        agent("plain", command("sh", "-c", PLAIN, output="jsonl")),
        allowAgents=["*"],
    )
    with Server(data_dir, agents, database_url=module_database_url) as running:
        yield running


def announced(server: Server, agent_id: str) -> tuple[dict[str, object], str, str]:
    """Run an agent; return the run, its announcement and the last entry of its transcript."""
    requester = {"sessionKey": f"agent:main:{agent_id}"}
    answer = server.spawn("Say it.", agentId=agent_id, requester=requester)
    assert answer.status_code == 201, answer.text
    run = server.run(answer.json()["runId"], "announced")
    (entry,) = server.inbox(requester["sessionKey"])
    page = server.http.get(f"/v1/runs/{run['runId']}/transcript", params={"last": 1}).json()
    return run, entry["text"], page["items"][0]["body"]["text"]


def test_stderr_is_announced_if_there_is_no_result(server: Server) -> None:
    run, text, last = announced(server, "main")
    assert (run["outcome"], run["resultText"], run["error"]) == ("success", None, None)
    assert "Notes: standard error: model not found\n" in text
    assert last == "standard error:\nmodel not found"


def test_plain_text_of_jsonl_runtime_is_result_with_warning(server: Server) -> None:
    run, text, last = announced(server, "plain")
    assert (run["outcome"], run["resultText"]) == ("success", "the answer\nis 42")
    assert 'Notes: warning: 2 lines of the output are no entries of "jsonl"; the first: the' in text
    assert "tired" not in text
    assert last == "standard error:\ntired"
