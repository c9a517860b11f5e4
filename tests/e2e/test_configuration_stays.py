"""A server that is started without a file keeps the active configuration of its log."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.configurations import agent, configuration, shell
from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

KEY = "agent:main:staying"
WORD, OTHER_WORD = "the-word", "the-other-word"


def values(word: str = WORD, **subagents: Any) -> dict[str, Any]:
    """Return a configuration with a secret in the file, which `teller` prints."""
    return configuration(
        agent("main", default=True),
        agent("teller", shell('printf %s "$WORD"', input="stdin-text", env={"WORD": word})),
        allowedHosts=["board.example"],
        **subagents,
    )


def without_file(server: Server) -> Server:
    """Return another server on the same log, without a file, not started."""
    return server.twin(config=None)


def revisions(server: Server) -> list[dict[str, Any]]:
    """Return the revisions of the configuration, the oldest first."""
    items = server.http.get("/v1/config/revisions").json()["items"]
    return sorted(items, key=lambda item: int(item["revision"]))


def says(server: Server, agent_id: str) -> str:
    """Return the answer of an agent."""
    run = server.run(server.accepted(agent_id, session=KEY, cleanup="delete"), "archived")
    assert run["error"] is None
    return str(run["resultText"])


def refusal(server: Server, agent_id: str) -> str:
    """Return why an agent cannot be spawned."""
    answer = server.spawn(agentId=agent_id, session=KEY)
    assert answer.status_code == 422, answer.text
    return str(server.run(answer.json()["runId"])["error"])


@pytest.fixture
def served(databases: Databases) -> Iterator[Server]:
    """Yield a server with a file, not started."""
    url = databases.create()
    with new_place() as place:
        data = place / "data"
        server = Server(data, values(), database_url=url)
        try:
            yield server
        finally:
            server.stop()
    databases.drop(url)


def file_of(server: Server) -> Path:
    assert server.config is not None
    return server.config


def test_start_without_file_keeps_the_revision_and_its_secrets(served: Server) -> None:
    with served:
        assert says(served, "teller") == WORD
    with without_file(served) as server:
        (revision,) = revisions(server)
        assert revision["source"] == str(file_of(served))
        assert says(server, "teller") == WORD
        host = server.http.get("/v1/runs", headers={"Host": "board.example"})
        assert host.status_code == 200, "settings of the server stay, too"
        (line,) = [line for line in server.log().splitlines() if "stays in force" in line]
        assert f"configuration revision 1 of {file_of(served)} stays in force" in line


@pytest.mark.parametrize("fate", ["gone", "changed"])
def test_unusable_file_refuses_only_what_needs_it(served: Server, fate: str) -> None:
    with served:
        pass
    file, server = file_of(served), without_file(served)
    kept = file.read_text("utf-8")
    if fate == "gone":
        file.unlink()
    else:
        file.write_text(json.dumps(values(OTHER_WORD, maxConcurrent=3)), "utf-8")
    with server:
        assert says(server, "main") == "done"
        reason = refusal(server, "teller")
        assert "WORD of its runtime is not available" in reason
        assert "the server's log says why" in reason
        assert str(file) not in reason
        assert len(revisions(server)) == 1
        (line,) = [line for line in server.log().splitlines() if "WARNING" in line]
        assert (
            f"configuration revision 1 stays in force, but its file cannot be used: {file}" in line
        )
        # The file is back, and is looked at again.
        file.write_text(kept, "utf-8")
        hang_up(server)
        assert says(server, "teller") == WORD
        assert len(revisions(server)) == 1


def hang_up(server: Server) -> str:
    """Send SIGHUP. Return the line in which the server reports the result."""
    assert server.process is not None
    before = len(server.log())
    server.process.send_signal(signal.SIGHUP)
    wait_for("the reload", lambda: "stays in force" in server.log()[before:])
    return server.log()[before:]


@pytest.mark.nightly
def test_hangup_without_file_changes_nothing_but_secrets(served: Server) -> None:
    with served:
        pass
    with without_file(served) as server:
        assert says(server, "teller") == WORD
        file_of(served).write_text(json.dumps(values(OTHER_WORD)), "utf-8")
        assert "configuration revision 1" in hang_up(server)
        assert len(revisions(server)) == 1
        assert says(server, "teller") == OTHER_WORD


@pytest.mark.nightly
def test_server_without_file_joins_and_changes_nothing(served: Server) -> None:
    with served, without_file(served) as joined:
        assert f"joins the log of {served.url}" in joined.log()
        assert says(joined, "teller") == says(served, "teller") == WORD
        assert len(revisions(served)) == 1
        # The joined server follows the file of the first, whose path the log records.
        served.reload(values(OTHER_WORD, maxConcurrent=3))
        wait_for("it to follow", lambda: "revision 2 is active" in joined.log())
        assert says(joined, "teller") == OTHER_WORD


@pytest.mark.nightly
def test_new_log_begins_with_the_built_in_until_a_file_is_given(served: Server) -> None:
    with without_file(served) as first:
        assert [revision["source"] for revision in revisions(first)] == ["built-in"]
        assert "a new log without --config begins with the built-in configuration" in first.log()
        assert "hello" in says(first, "main")
    with served:
        assert says(served, "main") == "done"
        assert "configuration revision 2 of" in served.log()
        assert "replaces revision 1 (built-in)" in served.log()
    with without_file(served) as last:
        assert len(revisions(last)) == 2
        assert says(last, "main") == "done"


def test_server_with_another_file_says_that_it_replaces(served: Server) -> None:
    file = file_of(served).with_name("other.json5")
    file.write_text(json.dumps(values(OTHER_WORD, maxConcurrent=3)), "utf-8")
    second_server = served.twin(config=file)
    with served, second_server:
        assert served.process is not None
        (line,) = [line for line in second_server.log().splitlines() if "joins the log" in line]
        assert line.endswith(
            f"joins the log of {served.url} (process {served.process.pid}): configuration"
            f" revision 2 of {second_server.config} replaces revision 1 of {served.config}"
            " for every server of this log"
        )
        wait_for("the other to follow", lambda: "revision 2 is active" in served.log())
        assert says(served, "teller") == OTHER_WORD
