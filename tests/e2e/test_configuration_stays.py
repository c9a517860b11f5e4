"""A server that is started without a file keeps the active configuration of its log."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.child_programs import shell
from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.reloaded_server import ReloadedServer
from tests.support.servers.running_server import configuration, scripted, wait_for

pytestmark = pytest.mark.server

KEY = "agent:main:staying"
WORD, OTHER_WORD = "the-word", "the-other-word"


def values(word: str = WORD, **subagents: Any) -> dict[str, Any]:
    """A configuration with a secret in the file, which `teller` says."""
    made = configuration(
        {**scripted("main"), "default": True},
        shell("teller", 'printf %s "$WORD"', input="stdin-text", env={"WORD": word}),
        **subagents,
    )
    made["spawnlog"]["allowedHosts"] = ["board.example"]
    return made


class Staying(ReloadedServer):
    """A server that may be started with its file and without."""

    def without_file(self) -> "Staying":
        """Another server on the same log, without a file."""
        other = Staying(self.data_dir, database_url=self.database_url)
        other.log_path = self.log_path.with_name("without.log")
        return other

    def revisions(self) -> list[dict[str, Any]]:
        """The revisions of the configuration, the oldest first."""
        items = self.http.get("/v1/config/revisions").json()["items"]
        return sorted(items, key=lambda item: int(item["revision"]))

    def says(self, agent_id: str) -> str:
        """What an agent answers."""
        answer = self.spawn(requester={"sessionKey": KEY}, agentId=agent_id, cleanup="delete")
        assert answer.status_code == 201, answer.text
        run = self.run(answer.json()["runId"], "archived")
        assert run["error"] is None
        return str(run["resultText"])

    def is_refused(self, agent_id: str) -> str:
        """Why an agent cannot be spawned."""
        answer = self.spawn(requester={"sessionKey": KEY}, agentId=agent_id)
        assert answer.status_code == 422, answer.text
        return str(self.run(answer.json()["runId"])["error"])


@pytest.fixture
def served(databases: Databases) -> Iterator[Staying]:
    """A server with a file, not started."""
    url = databases.create()
    with new_place() as place:
        data = place / "data"
        server = Staying(data, values(), database_url=url)
        try:
            yield server
        finally:
            server.stop()
    databases.drop(url)


def file_of(server: Staying) -> Path:
    assert server.config is not None
    return server.config


def test_start_without_file_keeps_the_revision_and_its_secrets(served: Staying) -> None:
    with served:
        assert served.says("teller") == WORD
    with served.without_file() as server:
        (revision,) = server.revisions()
        assert revision["source"] == str(file_of(served))
        assert server.says("teller") == WORD
        host = server.http.get("/v1/runs", headers={"Host": "board.example"})
        assert host.status_code == 200, "settings of the server stay, too"
        (line,) = [one for one in server.log().splitlines() if "stays in force" in one]
        assert f"configuration revision 1 of {file_of(served)} stays in force" in line


@pytest.mark.parametrize("fate", ["gone", "changed"])
def test_unusable_file_refuses_only_what_needs_it(served: Staying, fate: str) -> None:
    with served:
        pass
    file, server = file_of(served), served.without_file()
    kept = file.read_text("utf-8")
    if fate == "gone":
        file.unlink()
    else:
        file.write_text(json.dumps(values(OTHER_WORD, maxConcurrent=3)), "utf-8")
    with server:
        assert server.says("main") == "done"
        reason = server.is_refused("teller")
        assert "WORD of its runtime cannot be had" in reason
        assert "the server's log says why" in reason
        assert str(file) not in reason
        assert len(server.revisions()) == 1
        (line,) = [one for one in server.log().splitlines() if "WARNING" in one]
        assert (
            f"configuration revision 1 stays in force, and its file cannot be used: {file}" in line
        )
        # The file is back, and is looked at again.
        file.write_text(kept, "utf-8")
        hang_up(server)
        assert server.says("teller") == WORD
        assert len(server.revisions()) == 1


def hang_up(server: Staying) -> str:
    """SIGHUP; gives the line in which the server says what it did."""
    assert server.process is not None
    before = len(server.log())
    server.process.send_signal(signal.SIGHUP)
    wait_for("the reload", lambda: "stays in force" in server.log()[before:])
    return server.log()[before:]


@pytest.mark.nightly
def test_hangup_without_file_changes_nothing_but_secrets(served: Staying) -> None:
    with served:
        pass
    with served.without_file() as server:
        assert server.says("teller") == WORD
        file_of(served).write_text(json.dumps(values(OTHER_WORD)), "utf-8")
        assert "configuration revision 1" in hang_up(server)
        assert len(server.revisions()) == 1
        assert server.says("teller") == OTHER_WORD


@pytest.mark.nightly
def test_server_without_file_joins_and_changes_nothing(served: Staying) -> None:
    with served, served.without_file() as joined:
        assert f"joins the log of {served.url}" in joined.log()
        assert joined.says("teller") == served.says("teller") == WORD
        assert len(served.revisions()) == 1
        # It follows the file of the other, whose path is on record.
        served.reload(values(OTHER_WORD, maxConcurrent=3))
        wait_for("it to follow", lambda: "revision 2 is active" in joined.log())
        assert joined.says("teller") == OTHER_WORD


@pytest.mark.nightly
def test_new_log_begins_with_the_built_in_until_a_file_is_given(served: Staying) -> None:
    with served.without_file() as first:
        assert [one["source"] for one in first.revisions()] == ["built-in"]
        assert "a new log without --config begins with the built-in configuration" in first.log()
        assert "hello" in first.says("main")
    with served:
        assert served.says("main") == "done"
        assert "configuration revision 2 of" in served.log()
        assert "replaces revision 1 (built-in)" in served.log()
    with served.without_file() as last:
        assert len(last.revisions()) == 2
        assert last.says("main") == "done"


def test_server_with_another_file_says_that_it_replaces(served: Staying) -> None:
    other = Staying(served.data_dir, database_url=served.database_url)
    other.config = file_of(served).with_name("other.json5")
    other.config.write_text(json.dumps(values(OTHER_WORD, maxConcurrent=3)), "utf-8")
    other.log_path = served.log_path.with_name("other.log")
    with served, other:
        assert served.process is not None
        (line,) = [one for one in other.log().splitlines() if "joins the log" in one]
        assert line.endswith(
            f"joins the log of {served.url} (process {served.process.pid}): configuration"
            f" revision 2 of {other.config} replaces revision 1 of {served.config} for every"
            " server of this log"
        )
        wait_for("the other to follow", lambda: "revision 2 is active" in served.log())
        assert served.says("teller") == OTHER_WORD
