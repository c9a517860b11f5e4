"""What surrounds a session's runs: its files, its preamble, and where its results go."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.attached_files import ATTACHED, staged
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked import AT_THE_THREAD, ends_told, reply, staying, threaded
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

NAMES = [".manifest.json", *sorted(one["name"] for one in ATTACHED)]


def retaining(config: dict[str, Any]) -> None:
    config["tools"]["sessions_spawn"]["attachments"]["retainOnSessionKeep"] = True


def prompt(server: Server, run_id: str) -> dict[str, Any]:
    answer = server.http.get(f"/v1/runs/{run_id}/prompt")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def folder_of(server: Server, run_id: str) -> Path:
    return server.folder / "work" / ".openclaw" / "attachments" / run_id


def talked(server: Server, name: str) -> tuple[str, str]:
    """A session with files whose two runs found them; gives its runs."""
    first = server.accepted(**staying(name, attachments=ATTACHED))
    assert reply(server, first)["attachments"] == NAMES
    second = server.continued(first, "again")
    assert reply(server, second)["attachments"] == NAMES
    shown = prompt(server, second)["systemPrompt"]
    assert f".openclaw/attachments/{first}" in shown
    assert reply(server, second)["cwd"] == str(server.folder / "work")
    return first, second


def test_files_stay_through_a_session_and_go_when_it_is_put_away(server: Server) -> None:
    first, second = talked(server, "files")
    assert staged(server) == 0
    server.stop_session(server.run(first)["childSessionKey"])
    server.wait_steps(first, "RunArchived", "undo:attachments:done")
    story = server.steps(first)
    assert story.index("undo:attachments:done") > story.index("RunArchived")
    assert not folder_of(server, first).exists()
    assert not [one for one in server.steps(second) if one.startswith("Step")]


def test_retained_files_stay_when_their_session_is_put_away(server: Server) -> None:
    with server.configured(retaining):
        first, _ = talked(server, "retained")
        server.stop_session(server.run(first)["childSessionKey"])
        server.wait_steps(first, "RunArchived")
        # Whatever is due after it is done, and theirs is not.
        other, _ = talked(server, "not kept")
        assert server.run(other)["cleanup"] == "keep"
    assert "undo:attachments:done" not in server.steps(first)
    assert sorted(one.name for one in folder_of(server, first).iterdir()) == NAMES


@pytest.mark.parametrize("retained", [True, False], ids=["retained", "removed"])
def test_a_child_that_does_not_stay_finds_its_files_again_if_they_are_retained(
    server: Server, retained: bool
) -> None:
    with server.configured(retaining) if retained else nullcontext():
        first = server.accepted(
            **threaded(f"leaves-{retained}", agentId="talker", attachments=ATTACHED)
        )
        assert reply(server, first)["attachments"] == NAMES
        if not retained:
            server.wait_steps(first, "undo:attachments:done")
        second = server.continued(first, "again")
        assert reply(server, second)["attachments"] == (NAMES if retained else None)
        shown = prompt(server, second)["systemPrompt"]
        assert (".openclaw/attachments" in shown) is retained


def test_files_that_somebody_took_away_are_missed_by_the_next_run(server: Server) -> None:
    first = server.accepted(**staying("taken", attachments=ATTACHED))
    reply(server, first)
    place = folder_of(server, first)
    aside = place.with_name("aside")
    place.rename(aside)
    second = server.continued(first, "again")
    run = server.run(second, "announced")
    assert (run["outcome"], run["error"]) == (
        "error",
        "what was attached is not there any more; spawn again with the files",
    )
    aside.rename(place)
    assert reply(server, server.continued(first, "and again"))["attachments"] == NAMES


def test_the_preamble_stands_as_it_was_and_bootstrap_files_as_they_are(server: Server) -> None:
    rules = server.folder / "work" / "AGENTS.md"
    rules.write_text("the first rule", "utf-8")
    try:
        body = staying("rules", task="first words", contextPreamble="we are sailors")
        first = server.accepted(**body)
        reply(server, first)
        rules.write_text("the second rule", "utf-8")
        second = server.continued(first, "second words")
        reply(server, second)
        rules.unlink()
        third = server.continued(first, "third words")
        reply(server, third)
    finally:
        rules.unlink(missing_ok=True)
    shown = {run_id: prompt(server, run_id) for run_id in (first, second, third)}
    for run_id, rule in ((first, "the first rule"), (second, "the second rule"), (third, None)):
        system = shown[run_id]["systemPrompt"]
        assert system.count("we are sailors") == 1
        found = [one for one in ("the first rule", "the second rule") if one in system]
        assert found == ([rule] if rule else [])
        sources = [part["source"] for part in shown[run_id]["parts"]]
        assert ("bootstrap:AGENTS.md" in sources) is (rule is not None), sources
    assert shown[second]["message"] == "second words"
    assert "first words" not in json.dumps(shown[second])


def test_a_light_session_reads_no_bootstrap_files_in_any_run(server: Server) -> None:
    rules = server.folder / "work" / "AGENTS.md"
    rules.write_text("the heavy rule", "utf-8")
    try:
        first = server.accepted(**staying("light", lightContext=True))
        reply(server, first)
        second = server.continued(first, "again")
        reply(server, second)
    finally:
        rules.unlink()
    for run_id in (first, second):
        assert "the heavy rule" not in prompt(server, run_id)["systemPrompt"]


def test_a_runtime_that_delivers_brings_every_result_to_the_thread(server: Server) -> None:
    first = server.accepted(**staying("carried", agentId="carrier"))
    server.run(first, "announced")
    second = server.continued(first, "again")
    for run_id in (first, second):
        said = reply(server, run_id)
        assert (said["deliver"], said["deliveryOrigin"]) == (True, AT_THE_THREAD)
        assert server.run(run_id)["announcement"]["state"] == "not_required"
    assert server.inbox("agent:main:carried") == []


def test_a_result_is_announced_where_no_runtime_delivers_it(
    server: Server, outside: HookServer
) -> None:
    one_shot = server.accepted(**threaded("shot", agentId="carrier"))
    outside.replies("subagentSpawning", Reply(said={"status": "ok", "threadBindingReady": True}))
    nowhere = staying("no-address", agentId="carrier")
    nowhere["requester"] = {"sessionKey": "agent:main:no-address", "channel": "discord"}
    lost = server.accepted(**nowhere)
    for run_id, name in ((one_shot, "shot"), (lost, "no-address")):
        said = reply(server, run_id)
        assert said["deliver"] is False
        (item,) = server.inbox(f"agent:main:{name}")
        assert item["runId"] == run_id
    again = server.continued(lost, "again")
    assert reply(server, again)["deliver"] is False
    assert [one["runId"] for one in server.inbox("agent:main:no-address")] == [lost, again]


def test_a_session_whose_first_run_could_not_be_launched_goes_on_once_it_can(
    server: Server, outside: HookServer
) -> None:
    desk = server.folder / "desk"
    other = server.accepted(**threaded("other", agentId="waiter"))
    server.began(other)
    first = server.accepted(**staying("late", agentId="late"))
    desk.rmdir()
    desk.write_text("no folder", "utf-8")
    server.let_go(other)
    run = server.run(first, "announced")
    assert (run["outcome"], "RunStarted" in server.steps(first)) == ("error", False)
    key = run["childSessionKey"]
    assert server.session(key)["stage"] == "open"
    assert [one["runId"] for one in server.inbox("agent:main:late")] == [first]
    desk.unlink()
    second = server.continued(first, "are you there?")
    run = server.run(second, "announced")
    assert (run["outcome"], run["resultText"].strip()) == ("success", "here I am")
    assert ends_told(outside, key) == []
    server.stop_session(key)
    server.wait_steps(first, "RunArchived")
    server.wait_steps(second, "hook:subagentEnded:done")
    assert ends_told(outside, key) == [(second, "session-delete")]
    assert server.session(key)["stage"] == "closed"
