"""The parts of the demo: its server, its data, and that its stories notice a difference."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infrastructure.inbound.command_line.client.client import CommandClient
from infrastructure.inbound.command_line.demo.server import (
    demo_data_directory,
    end_on_signals,
    examples_directory,
    start_demo_server,
)
from infrastructure.inbound.command_line.demo.stage import DemoStage
from infrastructure.inbound.command_line.demo.stories import CHILDREN_MAX, STORIES
from infrastructure.inbound.command_line.display.failures import CommandFailed
from spawnlog.core.location import ServerAddress
from tests.support.servers.recorded_api import RecordedApi, Reply, problem

RUN = "11111111-0000-4000-8000-000000000001"


@pytest.fixture
def stage(api: RecordedApi) -> Iterator[DemoStage]:
    with CommandClient(ServerAddress(api.url)) as client:
        yield DemoStage(client, "agent:main:demo-1")


def event(event_type: str) -> dict[str, Any]:
    return {"type": event_type, "recordedAt": "2026-03-01T09:30:00Z", "payload": {}}


def test_the_examples_stand_beside_the_source() -> None:
    assert (examples_directory() / "spawnlog.json5").is_file()


def test_data_that_nobody_asked_to_keep_is_removed() -> None:
    with demo_data_directory(None) as directory:
        (directory / "file").write_text("x")
    assert not directory.exists()


def test_data_in_a_directory_that_was_given_stays(tmp_path: Path) -> None:
    with demo_data_directory(tmp_path) as directory:
        (directory / "file").write_text("x")
    assert (tmp_path / "file").exists()


def test_a_signal_ends_the_demo_so_that_it_tidies_up() -> None:
    with (
        pytest.raises(SystemExit) as ended,
        end_on_signals(),
        demo_data_directory(None) as directory,
    ):
        os.kill(os.getpid(), signal.SIGTERM)
    assert ended.value.code == 128 + signal.SIGTERM
    assert not directory.exists()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.kill
def test_a_server_that_does_not_start_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[5]))
    config = tmp_path / "below" / "missing.json5"
    config.parent.mkdir()
    with (
        pytest.raises(CommandFailed, match=r"ended with status 2; it said:\n.*missing\.json5"),
        start_demo_server(config, tmp_path / "data"),
    ):
        pytest.fail("there is no server to use")


def test_a_story_spawns_for_its_own_session(stage: DemoStage, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", Reply({"runId": RUN}, status=201))
    assert stage.spawn("Count", "counter", cleanup="delete") == RUN
    assert api.asked[0].body == {
        "requester": {"sessionKey": "agent:main:demo-1"},
        "task": "Count",
        "agentId": "counter",
        "cleanup": "delete",
    }


def test_a_refusal_gives_its_problem_and_an_acceptance_is_not_expected(
    stage: DemoStage, api: RecordedApi
) -> None:
    refusal = problem(403, code="spawn_forbidden", rule="active_children", runId=RUN)
    api.on("POST", "/v1/spawns", refusal, Reply({"runId": RUN}, status=201))
    assert stage.refused("Sleep", "sleeper")["rule"] == "active_children"
    with pytest.raises(CommandFailed, match="should not have been"):
        stage.refused("Sleep", "sleeper")


def test_looking_back_prints_what_it_finds(
    stage: DemoStage, api: RecordedApi, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"position": 61, "recordedAt": "2026-03-01T09:30:00Z", "runId": RUN}
    api.on("GET", "/v1/events/find", Reply({"items": [found]}), Reply({"items": []}))
    assert stage.find_refusal("active_children")["runId"] == RUN
    assert api.asked[0].query["session"] == "agent:main:demo-1"
    with pytest.raises(CommandFailed, match="no refusal by active_children"):
        stage.find_refusal("active_children")
    api.on("GET", "/v1/runs", Reply({"items": [{"runId": RUN, "label": "nap\x1b-1"}]}))
    assert stage.running_at(61) == 1
    assert api.asked[-1].query["at"] == "pos:61"
    rules = [{"rule": "depth", "result": "passed"}, {"rule": "tools", "result": "refused"}]
    api.on("GET", f"/v1/runs/{RUN}/explain", Reply({"decisions": rules}))
    assert stage.explain(RUN, "tools")["result"] == "refused"
    with pytest.raises(CommandFailed, match="override is not among the rules"):
        stage.explain(RUN, "override")
    totals = {"totals": {"byVerdict": {"same": 5, "newly-allowed": 1, "newly-refused": 0}}}
    api.on("POST", "/v1/what-if", Reply(totals, content_type="application/x-ndjson"))
    assert stage.what_if("/agents", 6)["newly-allowed"] == 1
    api.on("POST", f"/v1/runs/{RUN}/respawn", Reply({"runId": RUN}, status=201))
    assert stage.respawn(RUN, label="anew") == RUN
    assert api.asked[-1].body == {"changes": {"label": "anew"}}
    printed = capsys.readouterr().out
    assert "position 61" in printed
    assert "5 same, 1 newly-allowed\n" in printed
    assert "\x1b" not in printed


def test_what_is_as_it_should_be_is_no_difference(stage: DemoStage) -> None:
    stage.expect("the outcome", "success", "success")
    stage.expect_in("the result", "12 words", "12")
    stage.expect_events(["SpawnRequested", "RunStarted", "RunEnded"], "SpawnRequested", "RunEnded")
    assert stage.unexpected == []


def test_each_difference_is_noticed(stage: DemoStage) -> None:
    stage.expect("the outcome", "error", "success")
    stage.expect_in("the result", None, "12")
    stage.expect_events(["RunEnded", "RunStarted"], "RunStarted", "RunEnded")
    assert len(stage.unexpected) == 3


def test_the_events_of_a_run_are_printed_and_given(
    stage: DemoStage, api: RecordedApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.on("GET", f"/v1/runs/{RUN}", Reply({"runId": RUN, "agentId": "a", "label": "x\x1b"}))
    items = [event("SpawnRequested"), event("RunEnded")]
    api.on("GET", f"/v1/runs/{RUN}/events", Reply({"items": items}))
    assert stage.events(RUN) == ["SpawnRequested", "RunEnded"]
    printed = capsys.readouterr().out
    assert "RunEnded" in printed
    assert "\x1b" not in printed


def test_a_long_result_is_cut(stage: DemoStage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.show("result", "\n".join(f"line {number}" for number in range(100)))
    printed = capsys.readouterr().out
    assert "line 11" in printed
    assert "line 12" not in printed


def test_the_stories_fit_the_examples() -> None:
    config = (examples_directory() / "spawnlog.json5").read_text("utf-8")
    assert f"maxChildrenPerAgent: {CHILDREN_MAX}," in config
    for agent in ("main", "counter", "searcher", "summer", "failing", "sleeper", "editor"):
        assert f'id: "{agent}"' in config
    assert len(STORIES) == 13
