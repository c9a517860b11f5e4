"""Runs that somebody else executes: claimed, reported, ended over HTTP, whoever dies meanwhile."""

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.servers.configurations import EXTERNAL, agent, configuration
from tests.support.servers.databases import Databases
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server, serving
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


PLACES = 2
"""How many runs may be executed outside at a time, at each depth."""
LEASES = "FROM holders WHERE holder LIKE 'external:%'"


def executed_outside(folder: Path) -> dict[str, Any]:
    """Return a configuration whose agent `outside` is executed by whoever claims its runs."""
    return configuration(
        agent("main", default=True),
        agent("outside", EXTERNAL),
        maxConcurrent=PLACES,
        maxSpawnDepth=2,
        maxChildrenPerAgent=20,
        archiveAfterMinutes=60,
        workspace=folder / "work",
        leaseSeconds=QUICK_LEASE_SECONDS,
        drainSeconds=1,
    )


@pytest.fixture(scope="module")
def one_server(databases: Databases) -> Iterator[Server]:
    with serving(databases, executed_outside, dies=True) as running:
        yield running


@pytest.fixture
def server(one_server: Server) -> Server:
    one_server.ensure_running()
    return one_server


def offered(server: Server, task: str = "hello", **body: Any) -> str:
    """Spawn a run, which waits for an executor. Return its id."""
    run_id = server.accepted("outside", task, **body)
    assert server.run(run_id)["stage"] == "queued"
    return run_id


def report(server: Server, run_id: str, what: str, token: str = "", **body: Any) -> httpx2.Response:
    """Ask for a claim, or report, with the administrator's token unless there is another."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return server.http.post(f"/v1/runs/{run_id}/{what}", json=body, headers=headers)


def claimed(server: Server, run_id: str, executor: str = "mine", **body: Any) -> dict[str, Any]:
    """Claim a run. Return what the executor is told."""
    answer = report(server, run_id, "claim", executor=executor, **body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def expire_executors(server: Server) -> None:
    """Let the leases of executors run out now, as if they had given no sign of life."""
    expire = "UPDATE holders SET until = clock_timestamp() WHERE holder LIKE 'external:%'"
    server.ask_database(expire)


def must_be_refused(answer: httpx2.Response, code: str, status: int = 409) -> dict[str, Any]:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    return dict(answer.json())


def test_a_run_is_claimed_reported_and_announced_like_any_other(server: Server) -> None:
    run_id = offered(server, "Count the sheep", requester={"sessionKey": "agent:main:life"})
    claim = claimed(server, run_id)
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
        return report(server, run_id, "transcript", epoch=epoch, first=first, entries=list(some))

    assert said(1, *entries[:2]).json() == {"runId": run_id, "next": 3}
    assert said(1, *entries[:2]).json()["next"] == 3
    must_be_refused(said(4, entries[2]), "transcript_gap")
    assert said(2, *entries[1:]).json()["next"] == 4
    beat = report(server, run_id, "heartbeat", epoch=epoch).json()
    assert (beat["stop"], beat["leaseSeconds"]) == (None, 60)
    end = {"epoch": epoch, "outcome": "success", "result": "41 sheep"}
    ended = report(server, run_id, "end", **end)
    assert ended.json() == {"runId": run_id, "outcome": "success"}
    assert report(server, run_id, "end", **end).json() == ended.json()
    must_be_refused(report(server, run_id, "heartbeat", epoch=epoch), "run_over")
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
    again = claimed(server, following)
    assert again["launch"]["message"] == "And the goats?"
    assert len(again["launch"]["history"]) == 1
    said_last = [{"kind": "result", "text": "No goats"}]
    report(server, following, "transcript", epoch=again["epoch"], first=1, entries=said_last)
    report(server, following, "end", epoch=again["epoch"], outcome="success")
    assert server.run(following, "announced")["resultText"] == "No goats"


def test_the_end_is_recorded_with_its_reporter_and_no_stop_that_nobody_wanted(
    server: Server,
) -> None:
    run_id = offered(server, "stop by itself")
    claim = claimed(server, run_id)
    usage = [{"model": f"m-{claim['token']}", "inputTokens": 1, "outputTokens": 1}]
    ended = report(
        server,
        run_id,
        "end",
        epoch=claim["epoch"],
        outcome="stopped",
        error="I give up",
        usage=usage,
    )
    assert ended.json()["outcome"] == "error"
    run = server.run(run_id, "announced")
    assert (run["outcome"], run["error"]) == ("error", "I give up")
    events = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    (end,) = [one for one in events if one["type"] == "RunEnded"]
    assert end["actor"]["kind"] != "system"
    assert claim["token"] not in json.dumps(events)


def test_blank_reported_result_hides_no_answer(server: Server) -> None:
    run_id = offered(server, "say it, and report a blank result")
    claim = claimed(server, run_id)
    said = [{"kind": "message", "role": "assistant", "text": "41 sheep"}]
    report(server, run_id, "transcript", epoch=claim["epoch"], first=1, entries=said)
    report(server, run_id, "end", epoch=claim["epoch"], outcome="success", result=" \n")
    assert server.run(run_id, "announced")["resultText"] == "41 sheep"


def test_a_claim_that_is_repeated_after_a_stop_prolongs_nothing(server: Server) -> None:
    run_id = offered(server, "be stopped")
    claim = claimed(server, run_id)
    assert server.http.post(f"/v1/runs/{run_id}/stop", json={}).status_code in (200, 202)
    assert claimed(server, run_id)["epoch"] == claim["epoch"]
    beat = report(server, run_id, "heartbeat", epoch=claim["epoch"]).json()
    assert beat["stop"] == "stopped"
    report(server, run_id, "end", epoch=claim["epoch"], outcome="stopped")
    assert server.run(run_id, "announced")["outcome"] == "stopped"


def test_a_child_that_begins_with_its_parents_conversation_goes_on_behind_it(
    server: Server,
) -> None:
    mother = offered(server, "tell your child")
    claim = claimed(server, mother)
    said = [{"kind": "message", "role": "assistant", "text": f"word {one}"} for one in range(3)]
    report(server, mother, "transcript", epoch=claim["epoch"], first=1, entries=said)
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
    own = claimed(server, below)
    assert len(own["launch"]["history"]) == 1
    answer = [{"kind": "message", "role": "assistant", "text": "heard"}]
    heard = {"epoch": own["epoch"], "first": 1, "entries": answer}
    for _ in range(2):
        assert report(server, below, "transcript", **heard).json()["next"] == 2
    report(server, below, "end", epoch=own["epoch"], outcome="success")
    assert server.run(below, "ended")["resultText"] == "heard"
    told = server.http.get(f"/v1/runs/{below}/transcript").json()["items"]
    texts = [one["body"].get("text") for one in told]
    assert "word 2" in texts
    assert texts[-2:] == [own["launch"]["message"], "heard"]
    report(server, mother, "end", epoch=claim["epoch"], outcome="success", result="told")
    assert server.run(mother, "announced")["resultText"] == "told"


def test_more_than_is_kept_of_a_run_is_refused(server: Server) -> None:
    run_id = offered(server, "long")
    epoch = claimed(server, run_id)["epoch"]
    long = [{"kind": "text", "text": "x" * 1_048_577}]
    refused = report(server, run_id, "transcript", epoch=epoch, first=1, entries=long)
    must_be_refused(refused, "too_large", 413)
    end = {"epoch": epoch, "outcome": "success", "result": "\N{SHEEP}" * 300_000}
    must_be_refused(report(server, run_id, "end", **end), "too_large", 413)
    report(server, run_id, "end", epoch=epoch, outcome="success")
    assert server.run(run_id, "announced")["resultText"] is None


def test_of_two_executors_one_has_the_run_and_is_told_the_same_again(server: Server) -> None:
    run_id = offered(server, "race")
    answers: dict[str, httpx2.Response] = {}

    def claim(name: str) -> None:
        answers[name] = report(server, run_id, "claim", executor=name)

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
    assert claimed(server, run_id, winner) == first
    epoch = first["epoch"]
    for what, body in (("heartbeat", {}), ("end", {"outcome": "success"})):
        must_be_refused(report(server, run_id, what, epoch=epoch - 1, **body), "claim_over")
    report(server, run_id, "end", epoch=epoch, outcome="error", error="no more sheep")
    run = server.run(run_id, "announced")
    assert (run["outcome"], run["error"]) == ("error", "no more sheep")


def test_who_may_execute_a_run_and_which(server: Server) -> None:
    ours = server.accepted("main")
    must_be_refused(report(server, ours, "claim", executor="mine"), "not_external")
    run_id = offered(server, "nest")
    claim = claimed(server, run_id)
    child = claim["token"]
    other = offered(server, "not of that child")
    must_be_refused(report(server, other, "claim", child, executor="x"), "not_found", 404)
    for what, body in (("heartbeat", {"epoch": claim["epoch"]}), ("claim", {"executor": "x"})):
        must_be_refused(report(server, run_id, what, child, **body), "not_permitted", 403)
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
    answer = report(server, below, "claim", child, executor="mother")
    assert answer.status_code == 200, answer.text
    # A name is no secret: what the claim was answered is for the token that made it.
    must_be_refused(report(server, below, "claim", executor="mother"), "claimed_elsewhere")
    assert report(server, below, "claim", child, executor="mother").json() == answer.json()
    epoch = answer.json()["epoch"]
    ended = report(server, below, "end", child, epoch=epoch, outcome="success", result="deep")
    assert ended.status_code == 200, ended.text
    report(server, run_id, "end", epoch=claim["epoch"], outcome="success", result="done")
    assert server.run(run_id, "announced")["outcome"] == "success"
    server.http.post(f"/v1/runs/{other}/stop", json={})
    assert server.run(other, "ended")["outcome"] == "stopped"


def test_a_full_lane_gives_no_more_and_holds_nobody_else_up(server: Server) -> None:
    taken = [offered(server, f"place {number}") for number in range(PLACES)]
    waiting = offered(server, "one too many")
    claims = {run_id: claimed(server, run_id) for run_id in taken}
    full = must_be_refused(report(server, waiting, "claim", executor="mine"), "not_offered")
    assert full["retryable"]
    ours = server.accepted("main")
    assert server.run(ours, "announced")["outcome"] == "success"
    for run_id, claim in claims.items():
        report(server, run_id, "end", epoch=claim["epoch"], outcome="success")
    last = claimed(server, waiting)
    report(server, waiting, "end", epoch=last["epoch"], outcome="unknown")
    assert server.run(waiting, "announced")["outcome"] == "unknown"


def test_a_stop_reaches_the_executor_with_its_next_sign_of_life(server: Server) -> None:
    run_id = offered(server, "stop me")
    claim = claimed(server, run_id)
    server.http.post(f"/v1/runs/{run_id}/stop", json={"reason": "no longer needed"})
    beat = report(server, run_id, "heartbeat", epoch=claim["epoch"]).json()
    assert (beat["stop"], beat["by"], beat["reason"]) == ("stopped", "admin", "no longer needed")
    report(server, run_id, "end", epoch=claim["epoch"], outcome="stopped")
    assert server.run(run_id, "ended")["outcome"] == "stopped"
    deaf = offered(server, "stop me too")
    claimed(server, deaf)
    server.http.post(f"/v1/runs/{deaf}/stop", json={})
    expire_executors(server)
    assert server.run(deaf, "ended")["outcome"] == "stopped"


def test_an_executor_that_gives_no_sign_of_life_is_given_up(server: Server) -> None:
    run_id = offered(server, "abandoned")
    claim = claimed(server, run_id)
    said = [{"kind": "message", "role": "assistant", "text": "half of"}]
    report(server, run_id, "transcript", epoch=claim["epoch"], first=1, entries=said)
    expire_executors(server)
    run = server.run(run_id, "announced")
    assert run["outcome"] == "error"
    assert run["error"].startswith("interrupted: its executor gave no sign of life any more")
    late = report(server, run_id, "end", epoch=claim["epoch"], outcome="success", result="whole")
    assert "has ended as error" in must_be_refused(late, "run_over")["detail"]
    assert server.run(run_id)["resultText"] is None


def test_a_run_that_takes_longer_than_it_may_is_over_at_its_limit(server: Server) -> None:
    run_id = offered(server, "slow", runTimeoutSeconds=1)
    claim = claimed(server, run_id, leaseSeconds=600)
    run = server.run(run_id, "announced")
    assert (run["outcome"], run["runtimeMs"]) == ("timeout", 1000)
    late = report(server, run_id, "heartbeat", epoch=claim["epoch"])
    assert "has ended as timeout" in must_be_refused(late, "run_over")["detail"]


def test_an_emptied_table_of_leases_ends_no_run_whose_executor_lives(server: Server) -> None:
    run_id = offered(server, "kept")
    claim = claimed(server, run_id)
    server.ask_database(f"DELETE {LEASES}")
    # It ends by its limit, when the lease of a server would long be over.
    clock = offered(server, "clock", runTimeoutSeconds=3)
    claimed(server, clock)
    assert server.run(clock, "ended")["outcome"] == "timeout"
    assert server.run(run_id)["stage"] == "started"
    beat = report(server, run_id, "heartbeat", epoch=claim["epoch"])
    assert beat.json()["stop"] is None
    report(server, run_id, "end", epoch=claim["epoch"], outcome="success")
    assert server.run(run_id, "ended")["outcome"] == "success"


def test_a_run_that_nobody_comes_for_is_an_error(server: Server) -> None:
    run_id = offered(server, "nobody comes")
    quickly = {"externalClaimSeconds": 1}
    with server.configured(lambda config: config["spawnlog"].update(quickly)):
        run = server.run(run_id, "announced")
    assert run["outcome"] == "error"
    assert run["error"] == "nobody claimed it within 1 s (spawnlog.externalClaimSeconds)"
    assert server.events(run_id) == [*PREPARED, "RunEnded", "RunAnnounced"]
    must_be_refused(report(server, run_id, "claim", executor="late"), "run_over")


def test_a_lease_that_ran_out_while_no_server_was_there_ends_nothing(server: Server) -> None:
    run_id = offered(server, "outlive the outage")
    slow = offered(server, "too slow for any outage", runTimeoutSeconds=2)
    claim = claimed(server, run_id)
    claimed(server, slow)
    server.stop()
    expire_executors(server)
    server.restart()
    # Its time is over all the same, and those of an outage were looked at by then.
    assert server.run(slow, "ended")["outcome"] == "timeout"
    assert server.run(run_id)["stage"] == "started"
    beat = report(server, run_id, "heartbeat", epoch=claim["epoch"])
    assert (beat.status_code, beat.json()["stop"]) == (200, None)
    report(server, run_id, "end", epoch=claim["epoch"], outcome="success", result="done")
    assert server.run(run_id, "announced")["resultText"] == "done"
    assert server.ask_database(f"SELECT 1 {LEASES}") == []


def test_an_end_is_answered_as_recorded_only_when_it_was_reported(server: Server) -> None:
    instead = {"message": "Look again", "mode": "steer"}
    told = offered(server, "be replaced, and say so")
    claim = claimed(server, told)
    sent = server.http.post(f"/v1/runs/{told}/messages", json=instead)
    assert sent.status_code == 202, sent.text
    end = {"epoch": claim["epoch"], "outcome": "success", "result": "half"}
    ended = report(server, told, "end", **end)
    assert ended.json() == {"runId": told, "outcome": "stopped"}
    assert report(server, told, "end", **end).json() == ended.json()
    given_up = offered(server, "be replaced, in silence")
    claim = claimed(server, given_up)
    sent = server.http.post(f"/v1/runs/{given_up}/messages", json=instead)
    assert sent.status_code == 202, sent.text
    expire_executors(server)
    assert server.run(given_up, "ended")["outcome"] == "stopped"
    late = report(server, given_up, "end", epoch=claim["epoch"], outcome="success", result="lost")
    assert "stop executing it" in must_be_refused(late, "run_over")["detail"]
    for below in server.http.get("/v1/runs?stage=queued&agentId=outside").json()["items"]:
        server.http.post(f"/v1/runs/{below['runId']}/stop", json={})


def test_a_lease_is_no_longer_than_the_run_may_take(server: Server) -> None:
    run_id = offered(server, "short", runTimeoutSeconds=30)
    claim = claimed(server, run_id, leaseSeconds=3600)
    left_seconds = "extract(epoch FROM until - clock_timestamp())::float8"
    ((left,),) = server.ask_database(f"SELECT {left_seconds} {LEASES}")
    assert left <= 30
    report(server, run_id, "end", epoch=claim["epoch"], outcome="success")


@pytest.mark.parametrize(
    "moment",
    nightly_but(
        ["after RunClaimed", "before RunStarted", "after RunStarted"], ["after RunClaimed"]
    ),
)
def test_a_claim_survives_the_death_of_the_server_that_took_it(server: Server, moment: str) -> None:
    run_id = offered(server, moment)
    server.die_at(moment)
    with suppress(httpx2.TransportError):
        report(server, run_id, "claim", executor="mine")
    server.wait_death()
    server.restart()
    must_be_refused(report(server, run_id, "claim", executor="other"), "claimed_elsewhere")
    claim = claimed(server, run_id)
    assert claim["launch"]["message"].endswith(moment)
    report(server, run_id, "end", epoch=claim["epoch"], outcome="success", result="done")
    assert server.run(run_id, "announced")["resultText"] == "done"
    assert server.events(run_id) == WHOLE


@pytest.mark.parametrize(
    "moment", nightly_but(["before RunEnded", "after RunEnded"], ["after RunEnded"])
)
def test_the_end_is_taken_by_the_server_that_comes_after(server: Server, moment: str) -> None:
    run_id = offered(server, moment)
    claim = claimed(server, run_id)
    said = [{"kind": "result", "text": "as it was said before"}]
    report(server, run_id, "transcript", epoch=claim["epoch"], first=1, entries=said)
    server.die_at(moment)
    end = {"epoch": claim["epoch"], "outcome": "success"}
    with suppress(httpx2.TransportError):
        report(server, run_id, "end", **end)
    server.wait_death()
    server.restart()
    assert report(server, run_id, "end", **end).json() == {"runId": run_id, "outcome": "success"}
    assert server.run(run_id, "announced")["resultText"] == "as it was said before"
    assert server.events(run_id) == WHOLE
