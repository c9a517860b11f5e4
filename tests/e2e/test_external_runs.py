"""Runs that somebody else executes: claimed, reported, ended over HTTP, whoever dies meanwhile."""

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx2
import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.executing_client import PLACES, Executed, executed_on, outside_agents
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.kill

PREPARED = [
    "SpawnRequested",
    "ScriptsResolved",
    "PreparationStarted",
    "SessionCreated",
    "RunQueued",
]
WHOLE = [*PREPARED, "RunClaimed", "RunStarted", "RunEnded", "RunAnnounced"]


@pytest.fixture(scope="module")
def one_executed(databases: Databases) -> Iterator[Executed]:
    with executed_on(databases) as server:
        yield server


@pytest.fixture
def server(one_executed: Executed) -> Executed:
    one_executed.alive()
    return one_executed


def must_be_refused(answer: httpx2.Response, code: str, status: int = 409) -> dict[str, Any]:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    return dict(answer.json())


def test_a_run_is_claimed_reported_and_announced_like_any_other(server: Executed) -> None:
    run_id = server.offered("Count the sheep", requester={"sessionKey": "agent:main:life"})
    claim = server.claimed(run_id)
    assert server.run(run_id)["status"] == "running"
    launch = claim["launch"]
    assert launch["runId"] == run_id
    assert launch["message"].endswith("Count the sheep")
    assert launch["lane"] == "external"
    assert "sub-agent" in launch["systemPrompt"].lower()
    epoch = claim["epoch"]
    entries: list[dict[str, Any]] = [
        {"kind": "message", "role": "assistant", "text": f"One {claim['token']}"},
        {"kind": "tool", "name": "count", "input": {"of": "sheep"}, "output": "41"},
        {"kind": "usage", "inputTokens": 1000, "outputTokens": 20},
    ]

    def said(first: int, *some: dict[str, Any]) -> httpx2.Response:
        return server.report(run_id, "transcript", epoch=epoch, first=first, entries=list(some))

    assert said(1, *entries[:2]).json() == {"runId": run_id, "next": 3}
    assert said(1, *entries[:2]).json()["next"] == 3
    must_be_refused(said(4, entries[2]), "transcript_gap")
    assert said(2, *entries[1:]).json()["next"] == 4
    beat = server.report(run_id, "heartbeat", epoch=epoch).json()
    assert (beat["stop"], beat["leaseSeconds"]) == (None, 60)
    end = {"epoch": epoch, "outcome": "success", "result": "41 sheep"}
    ended = server.report(run_id, "end", **end)
    assert ended.json() == {"runId": run_id, "outcome": "success"}
    assert server.report(run_id, "end", **end).json() == ended.json()
    must_be_refused(server.report(run_id, "heartbeat", epoch=epoch), "run_over")
    run = server.run(run_id, "announced")
    assert (run["outcome"], run["resultText"]) == ("success", "41 sheep")
    assert run["usage"]["totalTokens"] == 1020
    assert server.events(run_id) == WHOLE
    told = server.http.get(f"/v1/runs/{run_id}/transcript", params={"tools": "true"}).json()
    assert [one["kind"] for one in told["items"]] == ["message", "message", "tool", "usage"]
    assert told["items"][0]["body"] == {"role": "user", "text": launch["message"]}
    assert told["items"][1]["body"] == {"role": "assistant", "text": "One [redacted]"}
    (entry,) = server.inbox("agent:main:life")
    assert "41 sheep" in entry["text"]
    # What its session goes on with is executed outside as well.
    sent = server.http.post(f"/v1/runs/{run_id}/messages", json={"message": "And the goats?"})
    following = sent.json()["runId"]
    again = server.claimed(following)
    assert again["launch"]["message"] == "And the goats?"
    assert len(again["launch"]["history"]) == 1
    said_last = [{"kind": "result", "text": "No goats"}]
    server.report(following, "transcript", epoch=again["epoch"], first=1, entries=said_last)
    server.report(following, "end", epoch=again["epoch"], outcome="success")
    assert server.run(following, "announced")["resultText"] == "No goats"


def test_the_end_is_recorded_with_its_reporter_and_no_stop_that_nobody_wanted(
    server: Executed,
) -> None:
    run_id = server.offered("stop by itself")
    claim = server.claimed(run_id)
    usage = [{"model": f"m-{claim['token']}", "inputTokens": 1, "outputTokens": 1}]
    ended = server.report(
        run_id, "end", epoch=claim["epoch"], outcome="stopped", error="I give up", usage=usage
    )
    assert ended.json()["outcome"] == "error"
    run = server.run(run_id, "announced")
    assert (run["outcome"], run["error"]) == ("error", "I give up")
    events = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    (end,) = [one for one in events if one["type"] == "RunEnded"]
    assert end["actor"]["kind"] != "system"
    assert claim["token"] not in json.dumps(events)


def test_blank_reported_result_hides_no_answer(server: Executed) -> None:
    run_id = server.offered("say it, and report a blank result")
    claim = server.claimed(run_id)
    said = [{"kind": "message", "role": "assistant", "text": "41 sheep"}]
    server.report(run_id, "transcript", epoch=claim["epoch"], first=1, entries=said)
    server.report(run_id, "end", epoch=claim["epoch"], outcome="success", result=" \n")
    assert server.run(run_id, "announced")["resultText"] == "41 sheep"


def test_a_claim_that_is_repeated_after_a_stop_prolongs_nothing(server: Executed) -> None:
    run_id = server.offered("be stopped")
    claim = server.claimed(run_id)
    assert server.http.post(f"/v1/runs/{run_id}/stop", json={}).status_code in (200, 202)
    assert server.claimed(run_id)["epoch"] == claim["epoch"]
    beat = server.report(run_id, "heartbeat", epoch=claim["epoch"]).json()
    assert beat["stop"] == "stopped"
    server.report(run_id, "end", epoch=claim["epoch"], outcome="stopped")
    assert server.run(run_id, "announced")["outcome"] == "stopped"


def test_a_child_that_begins_with_its_parents_conversation_goes_on_behind_it(
    server: Executed,
) -> None:
    mother = server.offered("tell your child")
    claim = server.claimed(mother)
    said = [{"kind": "message", "role": "assistant", "text": f"word {one}"} for one in range(3)]
    server.report(mother, "transcript", epoch=claim["epoch"], first=1, entries=said)
    asked = server.http.post(
        "/v1/spawns",
        json={
            "requester": {"sessionKey": claim["launch"]["sessionKey"]},
            "task": "listen",
            "agentId": "outside",
            "context": "fork",
        },
    )
    below = asked.json()["runId"]
    own = server.claimed(below)
    assert len(own["launch"]["history"]) == 1
    answer = [{"kind": "message", "role": "assistant", "text": "heard"}]
    report = {"epoch": own["epoch"], "first": 1, "entries": answer}
    for _ in range(2):
        assert server.report(below, "transcript", **report).json()["next"] == 2
    server.report(below, "end", epoch=own["epoch"], outcome="success")
    assert server.run(below, "ended")["resultText"] == "heard"
    told = server.http.get(f"/v1/runs/{below}/transcript").json()["items"]
    texts = [one["body"].get("text") for one in told]
    assert "word 2" in texts
    assert texts[-2:] == [own["launch"]["message"], "heard"]
    server.report(mother, "end", epoch=claim["epoch"], outcome="success", result="told")
    assert server.run(mother, "announced")["resultText"] == "told"


def test_more_than_is_kept_of_a_run_is_refused(server: Executed) -> None:
    run_id = server.offered("long")
    epoch = server.claimed(run_id)["epoch"]
    long = [{"kind": "text", "text": "x" * 1_048_577}]
    refused = server.report(run_id, "transcript", epoch=epoch, first=1, entries=long)
    must_be_refused(refused, "too_large", 413)
    end = {"epoch": epoch, "outcome": "success", "result": "\N{SHEEP}" * 300_000}
    must_be_refused(server.report(run_id, "end", **end), "too_large", 413)
    server.report(run_id, "end", epoch=epoch, outcome="success")
    assert server.run(run_id, "announced")["resultText"] is None


def test_of_two_executors_one_has_the_run_and_is_told_the_same_again(server: Executed) -> None:
    run_id = server.offered("race")
    answers: dict[str, httpx2.Response] = {}

    def claim(name: str) -> None:
        answers[name] = server.report(run_id, "claim", executor=name)

    racing = [threading.Thread(target=claim, args=(name,)) for name in ("one", "two")]
    for one in racing:
        one.start()
    for one in racing:
        one.join(30)
    assert sorted(one.status_code for one in answers.values()) == [200, 409]
    (winner,) = (name for name, one in answers.items() if one.status_code == 200)
    (loser,) = answers.keys() - {winner}
    must_be_refused(answers[loser], "claimed_elsewhere")
    first = answers[winner].json()
    assert server.claimed(run_id, winner) == first
    epoch = first["epoch"]
    for what, body in (("heartbeat", {}), ("end", {"outcome": "success"})):
        must_be_refused(server.report(run_id, what, epoch=epoch - 1, **body), "claim_over")
    server.report(run_id, "end", epoch=epoch, outcome="error", error="no more sheep")
    run = server.run(run_id, "announced")
    assert (run["outcome"], run["error"]) == ("error", "no more sheep")


def test_who_may_execute_a_run_and_which(server: Executed) -> None:
    ours = server.accepted("main")
    must_be_refused(server.report(ours, "claim", executor="mine"), "not_external")
    run_id = server.offered("nest")
    claim = server.claimed(run_id)
    child = claim["token"]
    other = server.offered("not of that child")
    must_be_refused(server.report(other, "claim", child, executor="x"), "not_found", 404)
    for what, body in (("heartbeat", {"epoch": claim["epoch"]}), ("claim", {"executor": "x"})):
        must_be_refused(server.report(run_id, what, child, **body), "not_permitted", 403)
    # Who spawns executes: the child's own children with its token.
    asked = server.http.post(
        "/v1/spawns",
        json={
            "requester": {"sessionKey": claim["launch"]["sessionKey"]},
            "task": "below",
            "agentId": "outside",
        },
        headers={"Authorization": f"Bearer {child}"},
    )
    below = asked.json()["runId"]
    answer = server.report(below, "claim", child, executor="mother")
    assert answer.status_code == 200, answer.text
    # A name is no secret: what the claim was answered is for the token that made it.
    must_be_refused(server.report(below, "claim", executor="mother"), "claimed_elsewhere")
    assert server.report(below, "claim", child, executor="mother").json() == answer.json()
    epoch = answer.json()["epoch"]
    ended = server.report(below, "end", child, epoch=epoch, outcome="success", result="deep")
    assert ended.status_code == 200, ended.text
    server.report(run_id, "end", epoch=claim["epoch"], outcome="success", result="done")
    assert server.run(run_id, "announced")["outcome"] == "success"
    server.http.post(f"/v1/runs/{other}/stop", json={})
    assert server.run(other, "ended")["outcome"] == "stopped"


def test_a_full_lane_gives_no_more_and_holds_nobody_else_up(server: Executed) -> None:
    taken = [server.offered(f"place {number}") for number in range(PLACES)]
    waiting = server.offered("one too many")
    claims = {run_id: server.claimed(run_id) for run_id in taken}
    full = must_be_refused(server.report(waiting, "claim", executor="mine"), "not_offered")
    assert full["retryable"]
    ours = server.accepted("main")
    assert server.run(ours, "announced")["outcome"] == "success"
    for run_id, claim in claims.items():
        server.report(run_id, "end", epoch=claim["epoch"], outcome="success")
    last = server.claimed(waiting)
    server.report(waiting, "end", epoch=last["epoch"], outcome="unknown")
    assert server.run(waiting, "announced")["outcome"] == "unknown"


def test_a_stop_reaches_the_executor_with_its_next_sign_of_life(server: Executed) -> None:
    run_id = server.offered("stop me")
    claim = server.claimed(run_id)
    server.http.post(f"/v1/runs/{run_id}/stop", json={"reason": "no longer needed"})
    beat = server.report(run_id, "heartbeat", epoch=claim["epoch"]).json()
    assert (beat["stop"], beat["by"], beat["reason"]) == ("stopped", "admin", "no longer needed")
    server.report(run_id, "end", epoch=claim["epoch"], outcome="stopped")
    assert server.run(run_id, "ended")["outcome"] == "stopped"
    deaf = server.offered("stop me too")
    server.claimed(deaf)
    server.http.post(f"/v1/runs/{deaf}/stop", json={})
    server.forget_executors()
    assert server.run(deaf, "ended")["outcome"] == "stopped"


def test_an_executor_that_gives_no_sign_of_life_is_given_up(server: Executed) -> None:
    run_id = server.offered("abandoned")
    claim = server.claimed(run_id)
    said = [{"kind": "message", "role": "assistant", "text": "half of"}]
    server.report(run_id, "transcript", epoch=claim["epoch"], first=1, entries=said)
    server.forget_executors()
    run = server.run(run_id, "announced")
    assert run["outcome"] == "error"
    assert run["error"].startswith("interrupted: its executor gave no sign of life any more")
    late = server.report(run_id, "end", epoch=claim["epoch"], outcome="success", result="whole")
    assert "has ended as error" in must_be_refused(late, "run_over")["detail"]
    assert server.run(run_id)["resultText"] is None


def test_a_run_that_takes_longer_than_it_may_is_over_at_its_limit(server: Executed) -> None:
    run_id = server.offered("slow", runTimeoutSeconds=1)
    claim = server.claimed(run_id, leaseSeconds=600)
    run = server.run(run_id, "announced")
    assert (run["outcome"], run["runtimeMs"]) == ("timeout", 1000)
    late = server.report(run_id, "heartbeat", epoch=claim["epoch"])
    assert "has ended as timeout" in must_be_refused(late, "run_over")["detail"]


def test_an_emptied_table_of_leases_ends_no_run_whose_executor_lives(server: Executed) -> None:
    run_id = server.offered("kept")
    claim = server.claimed(run_id)
    server.empty_leases_of_executors()
    # It ends by its limit, when the lease of a server would long be over.
    clock = server.offered("clock", runTimeoutSeconds=3)
    server.claimed(clock)
    assert server.run(clock, "ended")["outcome"] == "timeout"
    assert server.run(run_id)["stage"] == "started"
    beat = server.report(run_id, "heartbeat", epoch=claim["epoch"])
    assert beat.json()["stop"] is None
    server.report(run_id, "end", epoch=claim["epoch"], outcome="success")
    assert server.run(run_id, "ended")["outcome"] == "success"


def test_a_run_that_nobody_comes_for_is_an_error(server: Executed) -> None:
    assert server.config is not None
    config = outside_agents(server.folder)
    config["spawnlog"]["externalClaimSeconds"] = 1
    before = server.config.read_text("utf-8")
    run_id = server.offered("nobody comes")
    server.config.write_text(json.dumps(config), "utf-8")
    assert server.process is not None
    server.process.send_signal(signal.SIGHUP)
    try:
        run = server.run(run_id, "announced")
        assert run["outcome"] == "error", server.log()
    finally:
        server.config.write_text(before, "utf-8")
        server.process.send_signal(signal.SIGHUP)
    assert run["outcome"] == "error"
    assert run["error"] == "nobody claimed it within 1 s (spawnlog.externalClaimSeconds)"
    assert server.events(run_id) == [*PREPARED, "RunEnded", "RunAnnounced"]
    must_be_refused(server.report(run_id, "claim", executor="late"), "run_over")


def test_a_lease_that_ran_out_while_no_server_was_there_ends_nothing(server: Executed) -> None:
    run_id = server.offered("outlive the outage")
    slow = server.offered("too slow for any outage", runTimeoutSeconds=2)
    claim = server.claimed(run_id)
    server.claimed(slow)
    server.stop()
    server.forget_executors()
    server.again()
    # Its time is over all the same, and those of an outage were looked at by then.
    assert server.run(slow, "ended")["outcome"] == "timeout"
    assert server.run(run_id)["stage"] == "started"
    beat = server.report(run_id, "heartbeat", epoch=claim["epoch"])
    assert (beat.status_code, beat.json()["stop"]) == (200, None)
    server.report(run_id, "end", epoch=claim["epoch"], outcome="success", result="done")
    assert server.run(run_id, "announced")["resultText"] == "done"
    assert server.leases_of_executors() == []


def test_an_end_is_answered_as_recorded_only_when_it_was_reported(server: Executed) -> None:
    instead = {"message": "Look again", "mode": "steer"}
    told = server.offered("be replaced, and say so")
    claim = server.claimed(told)
    sent = server.http.post(f"/v1/runs/{told}/messages", json=instead)
    assert sent.status_code == 202, sent.text
    end = {"epoch": claim["epoch"], "outcome": "success", "result": "half"}
    ended = server.report(told, "end", **end)
    assert ended.json() == {"runId": told, "outcome": "stopped"}
    assert server.report(told, "end", **end).json() == ended.json()
    given_up = server.offered("be replaced, in silence")
    claim = server.claimed(given_up)
    sent = server.http.post(f"/v1/runs/{given_up}/messages", json=instead)
    assert sent.status_code == 202, sent.text
    server.forget_executors()
    assert server.run(given_up, "ended")["outcome"] == "stopped"
    late = server.report(given_up, "end", epoch=claim["epoch"], outcome="success", result="lost")
    assert "stop executing it" in must_be_refused(late, "run_over")["detail"]
    for below in server.http.get("/v1/runs?stage=queued&agentId=outside").json()["items"]:
        server.http.post(f"/v1/runs/{below['runId']}/stop", json={})


def test_a_lease_is_no_longer_than_the_run_may_take(server: Executed) -> None:
    run_id = server.offered("short", runTimeoutSeconds=30)
    claim = server.claimed(run_id, leaseSeconds=3600)
    ((left,),) = server.leases_of_executors()
    assert left <= 30
    server.report(run_id, "end", epoch=claim["epoch"], outcome="success")


@pytest.mark.parametrize(
    "moment",
    nightly_but(
        ["after RunClaimed", "before RunStarted", "after RunStarted"], ["after RunClaimed"]
    ),
)
def test_a_claim_survives_the_death_of_the_server_that_took_it(
    server: Executed, moment: str
) -> None:
    run_id = server.offered(moment)
    server.is_to_die(moment)
    with suppress(httpx2.TransportError):
        server.report(run_id, "claim", executor="mine")
    server.has_died()
    server.again()
    must_be_refused(server.report(run_id, "claim", executor="other"), "claimed_elsewhere")
    claim = server.claimed(run_id)
    assert claim["launch"]["message"].endswith(moment)
    server.report(run_id, "end", epoch=claim["epoch"], outcome="success", result="done")
    assert server.run(run_id, "announced")["resultText"] == "done"
    assert server.events(run_id) == WHOLE


@pytest.mark.parametrize(
    "moment", nightly_but(["before RunEnded", "after RunEnded"], ["after RunEnded"])
)
def test_the_end_is_taken_by_the_server_that_comes_after(server: Executed, moment: str) -> None:
    run_id = server.offered(moment)
    claim = server.claimed(run_id)
    said = [{"kind": "result", "text": "as it was said before"}]
    server.report(run_id, "transcript", epoch=claim["epoch"], first=1, entries=said)
    server.is_to_die(moment)
    end = {"epoch": claim["epoch"], "outcome": "success"}
    with suppress(httpx2.TransportError):
        server.report(run_id, "end", **end)
    server.has_died()
    server.again()
    assert server.report(run_id, "end", **end).json() == {"runId": run_id, "outcome": "success"}
    assert server.run(run_id, "announced")["resultText"] == "as it was said before"
    assert server.events(run_id) == WHOLE
