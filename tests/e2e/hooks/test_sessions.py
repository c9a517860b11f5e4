"""Sessions that stay take messages until they are stopped, also after a kill."""

import contextlib
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.builders.submitted_transcripts import entries_of
from tests.support.servers.attached_files import ATTACHED, staged
from tests.support.servers.hook_server import HookServer
from tests.support.servers.hooked import AT_THE_THREAD, ends_told, reply, staying, threaded
from tests.support.servers.server import Server
from tests.support.waiting import wait_for


def require_put_away(server: Server, key: str, *runs: str) -> None:
    """Require that the whole session is: its runs from the newest to the first, and itself."""
    for run_id in runs:
        server.wait_steps(run_id, "RunArchived")
    session = server.session(key)
    assert session["stage"] == "closed"
    assert [run["runId"] for run in session["ownRuns"]] == list(runs)
    archived = [server.run(run_id) for run_id in runs]
    assert {run["stage"] for run in archived} == {"archived"}
    assert sorted(archived, key=lambda run: run["archivedAt"]) == archived
    answer = server.send(runs[0], "too late")
    assert (answer.status_code, answer.json()["code"]) == (409, "session_closed")
    for run in archived:
        if run["transcriptPath"] is not None:
            wait_for("the file", Path(run["transcriptPath"]).exists)


def session_of(server: Server, run_id: str) -> str:
    return str(server.run(run_id)["childSessionKey"])


def let_go(server: Server, run_id: str) -> dict[str, Any]:
    """Let a run end once it has begun. Return it, announced."""
    server.began(run_id)
    server.let_go(run_id)
    return server.run(run_id, "announced")


@pytest.mark.server
def test_session_takes_messages_until_it_is_stopped(server: Server, outside: HookServer) -> None:
    first = server.accepted(**staying("reader", task="the first chapter"))
    assert reply(server, first)["persistent"]
    key = session_of(server, first)
    assert server.session(key)["stage"] == "open"
    sent = server.send(first, "the second chapter", key="second")
    second = str(sent.json()["runId"])
    output = reply(server, second)
    assert (output["message"], len(output["history"])) == ("the second chapter", 1)
    # Any run of the session will do.
    third = server.continued(first, "the third chapter")
    assert reply(server, third)["history"][1:] == ["the second chapter"]
    run = server.run(third)
    assert (run["continues"], run["childSessionKey"]) == (second, key)
    assert server.steps(third)[:3] == ["MessageReceived", "ContinuationPlanned", "RunQueued"]
    items = server.inbox("agent:main:reader")
    assert [item["runId"] for item in items] == [first, second, third]
    assert items[0]["origin"] == AT_THE_THREAD
    assert server.session("agent:main:reader")["activeChildren"] == 0
    answer = server.stop_session(key)
    assert answer == {
        "sessionKey": key,
        "sessionId": run["sessionId"],
        "runId": third,
        "wasOver": True,
        "closed": True,
    }
    require_put_away(server, key, third, second, first)
    server.wait_steps(third, "hook:subagentEnded:done")
    assert ends_told(outside, key) == [(third, "session-delete")]
    assert [call.hook for call in outside.calls()].count("subagentSpawned") == 1
    # A repeated request gets the same answer.
    assert server.stop_session(key) == answer
    again = server.send(first, "the second chapter", key="second")
    assert (again.status_code, again.content) == (201, sent.content)


@pytest.mark.server
def test_idle_session_is_closed(server: Server) -> None:
    def closes_after_second(config: dict[str, Any]) -> None:
        config.setdefault("session", {})["threadBindings"] = {"idleHours": 1 / 3600}

    with server.configured(closes_after_second):
        first = server.accepted(**staying("idle"))
        run = server.run(first, "archived")
    assert server.session(run["childSessionKey"])["stage"] == "closed"


@pytest.mark.kill
@pytest.mark.parametrize("at", ["queued", "running"])
def test_session_at_work_is_closed_and_stopped(
    server: Server, outside: HookServer, at: str
) -> None:
    first = server.accepted(**staying(f"busy-{at}", agentId="waiter"))
    key = session_of(server, first)
    let_go(server, first)
    second_run = server.accepted(**threaded("other", agentId="waiter")) if at == "queued" else None
    if second_run is not None:
        server.began(second_run)
    second = server.continued(first, "and then?")
    if second_run is None:
        server.began(second)
    assert server.run(second)["status"] == at
    answer = server.stop_session(key)
    assert (answer["runId"], answer["wasOver"], answer["closed"]) == (second, False, True)
    run = server.run(second, "archived")
    assert (run["outcome"], run["announcement"]["state"]) == ("stopped", "delivered")
    require_put_away(server, key, second, first)
    assert (server.folder / f"{second}.began").exists() is (at == "running")
    server.wait_steps(second, "hook:subagentEnded:done")
    assert ends_told(outside, key) == [(second, "subagent-killed")]
    assert server.session(f"agent:main:busy-{at}")["activeChildren"] == 0
    if second_run is not None:
        let_go(server, second_run)


@pytest.mark.server
def test_erased_session_is_closed_and_its_runs_are_stopped(server: Server) -> None:
    first = server.accepted(**staying("erased"))
    reply(server, first)
    requester = "agent:main:erased-at-work"
    runs = [server.accepted("lingerer", session=requester) for _ in range(2)]
    server.began(runs[0])
    for run_id in (first, runs[0]):
        server.erase_session(server.run(run_id)["sessionId"])
    key = session_of(server, first)
    answer = server.stop_session(key)
    assert (answer["closed"], answer["wasOver"]) == (True, True)
    require_put_away(server, key, first)
    server.stop_session(requester)
    for run_id in runs:
        assert server.run(run_id, "announced")["outcome"] == "stopped"


# Files, thread and end of a session.

NAMES = [".manifest.json", *sorted(item["name"] for item in ATTACHED)]


@pytest.mark.server
def test_files_stay_until_session_is_put_away(server: Server) -> None:
    first = server.accepted(**staying("files", attachments=ATTACHED))
    place = server.folder / "work" / ".openclaw" / "attachments" / first
    server.run(first, "announced")
    for run_id in (first, server.continued(first, "again")):
        assert reply(server, run_id)["attachments"] == NAMES
        assert f".openclaw/attachments/{first}" in server.prompt(run_id)["systemPrompt"]
    assert staged(server) == 0
    # The files are moved away for a while.
    aside = place.rename(place.with_name("aside"))
    run = server.run(server.continued(first, "and again"), "announced")
    assert (run["outcome"], run["error"]) == (
        "error",
        "the attached files no longer exist; spawn again with the files",
    )
    aside.rename(place)
    assert reply(server, server.continued(first, "once more"))["attachments"] == NAMES
    server.stop_session(session_of(server, first))
    story = server.wait_steps(first, "RunArchived", "undo:attachments:done")
    assert story.index("undo:attachments:done") > story.index("RunArchived")
    assert not place.exists()


@pytest.mark.server
def test_preamble_stays_and_bootstrap_files_are_read_anew(server: Server) -> None:
    rules = server.folder / "work" / "AGENTS.md"
    found = ("the first rule", "the second rule", None)
    runs: list[str] = []
    try:
        for rule in found:
            rules.unlink(missing_ok=True) if rule is None else rules.write_text(rule, "utf-8")
            if runs:
                runs.append(server.continued(runs[0], f"more words under {rule}"))
            else:
                body = staying("rules", task="first words", contextPreamble="we are sailors")
                runs.append(server.accepted(**body))
            reply(server, runs[-1])
    finally:
        rules.unlink(missing_ok=True)
    for run_id, rule in zip(runs, found, strict=True):
        shown = server.prompt(run_id)
        system = shown["systemPrompt"]
        assert system.count("we are sailors") == 1
        assert [item for item in found if item and item in system] == ([rule] if rule else [])
        sources = [part["source"] for part in shown["parts"]]
        assert ("bootstrap:AGENTS.md" in sources) is (rule is not None), sources
    assert "first words" not in json.dumps(server.prompt(runs[1]))


@pytest.mark.server
def test_runtime_that_delivers_brings_every_result(server: Server) -> None:
    first = server.accepted(**staying("carried", agentId="carrier"))
    server.run(first, "announced")
    for run_id in (first, server.continued(first, "again")):
        output = reply(server, run_id)
        assert (output["deliver"], output["deliveryOrigin"]) == (True, AT_THE_THREAD)
        assert server.run(run_id)["announcement"]["state"] == "not_required"
    assert server.inbox("agent:main:carried") == []
    one_shot = server.accepted(**threaded("shot", agentId="carrier"))
    assert reply(server, one_shot)["deliver"] is False
    assert [run["runId"] for run in server.inbox("agent:main:shot")] == [one_shot]


@pytest.mark.server
def test_session_continues_after_run_that_could_not_be_launched(
    server: Server, outside: HookServer
) -> None:
    desk = server.folder / "desk"
    second_run = server.accepted(**threaded("other", agentId="waiter"))
    server.began(second_run)
    first = server.accepted(**staying("late", agentId="late"))
    desk.rmdir()
    desk.write_text("no folder", "utf-8")
    server.let_go(second_run)
    run = server.run(first, "announced")
    assert (run["outcome"], "RunStarted" in server.steps(first)) == ("error", False)
    key = run["childSessionKey"]
    assert server.session(key)["stage"] == "open"
    desk.unlink()
    second = server.continued(first, "are you there?")
    run = server.run(second, "announced")
    assert (run["outcome"], run["resultText"].strip()) == ("success", "here I am")
    assert ends_told(outside, key) == []
    server.stop_session(key)
    require_put_away(server, key, second, first)
    server.wait_steps(second, "hook:subagentEnded:done")
    assert ends_told(outside, key) == [(second, "session-delete")]


# Its children.


def spoken(server: Server, run_id: str) -> list[str]:
    """Return the messages of the children in a run's transcript."""
    bodies = [body for kind, body in entries_of(server.http, run_id) if kind == "message"]
    return [str(body["text"]) for body in bodies if body["role"] != "user"]


@pytest.mark.server
def test_child_begins_with_what_every_run_of_its_requester_said(
    server: Server, outside: HookServer
) -> None:
    first = server.accepted(**staying("forked", agentId="lingerer", task="one"))
    said_first = let_go(server, first)
    second = server.continued(first, "two")
    server.began(second)
    wait_for("it to be written", lambda: spoken(server, second) == ["before: two"])
    requester = {"sessionKey": said_first["childSessionKey"]}
    body: dict[str, Any] = {"requester": requester, "agentId": "lingerer", "context": "fork"}
    heir = str(server.spawn("three", **body).json()["runId"])
    engine = {call.run_id: call.event for call in outside.calls("prepareSubagentSpawn")}
    assert engine[heir]["parentSessionFile"] == said_first["transcriptPath"]
    assert "parentSessionFile" not in engine[first]
    server.let_go(second)
    server.began(heir)
    server.let_go(heir)
    server.run(second, "announced")
    inherited = ["before: one", "after: one", "before: two"]
    assert spoken(server, heir) == [*inherited, "before: three", "after: three"]
    # Its own session also starts with the inherited entries.
    again = server.continued(heir, "four")
    before = json.loads(server.note(f"{again}.began"))
    assert before == [*inherited, "before: three", "after: three"]
    let_go(server, again)
    assert spoken(server, again) == ["before: four", "after: four"]


@pytest.mark.server
def test_session_waits_for_children_of_each_run(server: Server) -> None:
    requester = "agent:main:boss"
    first = server.accepted(**staying("boss", agentId="boss", task="tidy"))
    tidy = str(server.run(first, "ended")["resultText"])
    assert server.run(first)["stage"] == "ended"
    answer = server.send(first, "sweep")
    assert (answer.status_code, answer.json()["place"]) == (202, 1)
    let_go(server, tidy)
    server.run(first, "announced")
    second = answer.json()["runId"]
    sweep = str(server.run(second, "ended")["resultText"])
    assert server.session(requester)["activeChildren"] == 1
    let_go(server, sweep)
    server.run(second, "announced")
    texts = [announcement["text"] for announcement in server.inbox(requester)]
    assert [("tidy" in text, "sweep" in text) for text in texts] == [(True, False), (False, True)]
    assert server.session(requester)["activeChildren"] == 0


# Killed.


def stop(server: Server, path: str) -> httpx2.Response:
    return server.http.post(f"/v1/{path}/stop", json={}, headers={"Idempotency-Key": path})


def killed(server: Server, moment: str, path: str) -> None:
    """Let it die in the middle of a stop, and start it again."""
    server.die_at(moment)
    with contextlib.suppress(httpx2.TransportError):
        stop(server, path)
    server.wait_death()
    server.restart()


def boss(server: Server, name: str) -> tuple[str, str]:
    """Return a run that is over, and its child, which waits."""
    first = server.accepted(**staying(name, agentId="boss", task=name))
    return first, str(server.run(first, "ended")["resultText"])


@pytest.mark.kill
def test_killed_stop_of_root_session_stops_its_children(server: Server) -> None:
    body = threaded("root-killed", agentId="waiter")
    first, second = server.accepted(**body), server.accepted(**body)
    server.began(first)
    path = "sessions/agent:main:root-killed"
    killed(server, "after StopRequested", path)
    response = stop(server, path)
    assert (response.json()["runId"], response.json()["closed"]) == (None, False)
    for run_id in (first, second):
        assert server.run(run_id, "announced")["outcome"] == "stopped", run_id
    # After the answer, a repeat stops no run.
    third = server.accepted(**body)
    server.began(third)
    again = stop(server, path)
    assert (again.content, again.headers["Idempotent-Replayed"]) == (response.content, "true")
    assert let_go(server, third)["outcome"] == "success"


@pytest.mark.kill
@pytest.mark.nightly
@pytest.mark.parametrize("occupation", ["session", "run"])
def test_killed_stop_reaches_those_below(server: Server, occupation: str) -> None:
    # The child of another session holds the lane of depth 2.
    _, second_key = boss(server, f"occupied-{occupation}")
    server.began(second_key)
    first, below = boss(server, f"below-{occupation}")
    assert server.run(below)["stage"] == "queued"
    if occupation == "session":
        path = f"sessions/{session_of(server, first)}"
        killed(server, "after SessionClosed", path)
        run = stop(server, path).json()
        assert (run["closed"], run["runId"]) == (True, first)
    else:
        # Its own stop changes nothing, that of the one below is not recorded.
        killed(server, "before RunEnded", f"runs/{first}")
        assert stop(server, f"runs/{first}").json() == {"runId": first, "wasOver": True}
    assert server.run(below, "announced")["outcome"] == "stopped"
    server.run(second_key, "announced")


@pytest.mark.kill
def test_half_put_away_session_takes_no_message(server: Server) -> None:
    """The server dies before it archives the session, and no other has done so since."""
    first = server.accepted(**threaded("half", agentId="boss", task="half", cleanup="delete"))
    below = str(server.run(first, "ended")["resultText"])
    server.began(below)
    server.die_at("before RunArchived")
    server.let_go(below)
    server.wait_death()
    server.start()
    answer = server.send(first, "and then?")
    assert (answer.status_code, answer.json()["code"]) == (409, "session_closed")
    server.expire_leases(server.url)
    path = Path(server.run(first, "archived")["transcriptPath"])
    assert ".deleted." in path.name
    wait_for("the file", path.exists)
    assert server.session_runs(session_of(server, first)) == [first]
