"""External runs: claimed, reported, and ended over HTTP, whichever process dies."""

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
"""Number of concurrent external runs, at each depth."""
LEASES = "FROM holders WHERE holder LIKE 'external:%'"


def executed_outside(folder: Path) -> dict[str, Any]:
    """Return a configuration whose agent `outside` is external."""
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


def post(server: Server, path: str, token: str = "", **body: Any) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return server.http.post(f"/v1/{path}", json=body, headers=headers)


class Executor:
    """Executor that has claimed a run, and reports with its own token or that of the
    administrator.
    """

    def __init__(
        self, server: Server, run_id: str, name: str = "mine", token: str = "", **claim: Any
    ) -> None:
        self.run_id = run_id
        self._server = server
        self._token = token
        answer = self.report("claim", executor=name, **claim)
        assert answer.status_code == 200, answer.text
        self.claim: dict[str, Any] = answer.json()
        self.launch: dict[str, Any] = self.claim["launch"]
        self.token = str(self.claim["token"])
        self.epoch = int(self.claim["epoch"])

    def report(self, call: str, **body: Any) -> httpx2.Response:
        return post(self._server, f"runs/{self.run_id}/{call}", self._token, **body)

    def say(self, *entries: dict[str, Any], first: int = 1) -> httpx2.Response:
        return self.report("transcript", epoch=self.epoch, first=first, entries=list(entries))

    def beat(self) -> httpx2.Response:
        return self.report("heartbeat", epoch=self.epoch)

    def end(self, outcome: str = "success", **more: Any) -> httpx2.Response:
        return self.report("end", epoch=self.epoch, outcome=outcome, **more)


def message(text: str) -> dict[str, Any]:
    return {"kind": "message", "role": "assistant", "text": text}


def offered(server: Server, task: str = "hello", **body: Any) -> str:
    """Spawn a run, which waits for an executor. Return its id."""
    run_id = server.accepted("outside", task, **body)
    assert server.run(run_id)["stage"] == "queued"
    return run_id


def executed(server: Server, task: str, **body: Any) -> Executor:
    return Executor(server, offered(server, task, **body))


def claim(server: Server, run_id: str, name: str, token: str = "") -> httpx2.Response:
    return post(server, f"runs/{run_id}/claim", token, executor=name)


def stop(server: Server, run_id: str, **body: Any) -> None:
    assert post(server, f"runs/{run_id}/stop", **body).is_success


def expire_executors(server: Server) -> None:
    """Let the leases of executors run out now, as if they had given no sign of life."""
    expire = "UPDATE holders SET until = clock_timestamp() WHERE holder LIKE 'external:%'"
    server.ask_database(expire)


def refused(answer: httpx2.Response, code: str, status: int = 409) -> dict[str, Any]:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    return dict(answer.json())


def test_run_is_claimed_reported_and_announced(server: Server) -> None:
    executor = executed(server, "Count the sheep", session="agent:main:life")
    run_id = executor.run_id
    assert server.run(run_id)["status"] == "running"
    assert (executor.launch["runId"], executor.launch["lane"]) == (run_id, "external")
    assert executor.launch["message"].endswith("Count the sheep")
    assert "sub-agent" in executor.launch["systemPrompt"].lower()
    entries: list[dict[str, Any]] = [
        message(f"One {executor.token}"),
        {
            "kind": "tool",
            "name": "count",
            "input": {"of": "sheep"},
            "output": "41",
            "durationMs": 90,
        },
        {"kind": "usage", "inputTokens": 1000, "outputTokens": 20},
    ]
    for _ in range(2):
        assert executor.say(*entries[:2]).json() == {"runId": run_id, "next": 3}
    refused(executor.say(entries[2], first=4), "transcript_gap")
    assert executor.say(*entries[1:], first=2).json()["next"] == 4
    beat = executor.beat().json()
    assert (beat["stop"], beat["leaseSeconds"]) == (None, 60)
    for _ in range(2):
        ended = executor.end(result="41 sheep").json()
        assert ended == {"runId": run_id, "outcome": "success"}
    refused(executor.beat(), "run_over")
    run = server.run(run_id, "announced")
    assert (run["outcome"], run["resultText"]) == ("success", "41 sheep")
    assert run["usage"]["totalTokens"] == 1020
    assert server.events(run_id) == WHOLE
    transcript = server.transcript(run_id)
    assert [answer["kind"] for answer in transcript] == ["message", "message", "tool", "usage"]
    assert transcript[0]["body"] == {"role": "user", "text": executor.launch["message"]}
    assert transcript[2]["body"]["durationMs"] == 90
    assert transcript[1]["body"] == {"role": "assistant", "text": "One [redacted]"}
    (entry,) = server.inbox("agent:main:life")
    assert "41 sheep" in entry["text"]
    # The run that continues its session is external too.
    again = Executor(server, server.send(run_id, "And the goats?").json()["runId"])
    assert again.launch["message"] == "And the goats?"
    assert len(again.launch["history"]) == 1
    again.say({"kind": "result", "text": "No goats"})
    again.end()
    assert server.run(again.run_id, "announced")["resultText"] == "No goats"


def test_end_is_recorded_with_its_reporter(server: Server) -> None:
    executor = executed(server, "stop by itself")
    executor.say(message("41 sheep"))
    usage = [{"model": f"m-{executor.token}", "inputTokens": 1, "outputTokens": 1}]
    # No stop was requested.
    ended = executor.end("stopped", error="I give up", result=" \n", usage=usage)
    assert ended.json()["outcome"] == "error"
    run = server.run(executor.run_id, "announced")
    assert (run["outcome"], run["error"]) == ("error", "I give up")
    assert run["resultText"] == "41 sheep"
    assert server.event(executor.run_id, "RunEnded")["actor"]["kind"] != "system"
    events = server.http.get(f"/v1/runs/{executor.run_id}/events").json()["items"]
    assert executor.token not in json.dumps(events)


def test_forked_child_begins_with_its_parents_conversation(server: Server) -> None:
    mother = executed(server, "tell your child")
    mother.say(*(message(f"word {number}") for number in range(3)))
    body = {"session": mother.launch["sessionKey"], "context": "fork"}
    child = executed(server, "listen", **body)
    assert len(child.launch["history"]) == 1
    for _ in range(2):
        assert child.say(message("heard")).json()["next"] == 2
    child.end()
    assert server.run(child.run_id, "ended")["resultText"] == "heard"
    texts = [item["body"].get("text") for item in server.transcript(child.run_id)]
    assert "word 2" in texts
    assert texts[-2:] == [child.launch["message"], "heard"]
    mother.end(result="told")
    assert server.run(mother.run_id, "announced")["resultText"] == "told"


def test_more_than_is_kept_of_run_is_refused(server: Server) -> None:
    executor = executed(server, "long")
    refused(executor.say({"kind": "text", "text": "x" * 1_048_577}), "too_large", 413)
    refused(executor.end(result="\N{SHEEP}" * 300_000), "too_large", 413)
    executor.end()
    assert server.run(executor.run_id, "announced")["resultText"] is None


def test_of_two_executors_one_has_the_run(server: Server) -> None:
    run_id = offered(server, "race")
    answers: dict[str, httpx2.Response] = {}

    def race(name: str) -> None:
        answers[name] = claim(server, run_id, name)

    racing = [threading.Thread(target=race, args=(name,)) for name in ("one", "two")]
    for item in racing:
        item.start()
    for item in racing:
        item.join(30)
    winner, loser = sorted(answers, key=lambda name: answers[name].status_code)
    refused(answers[loser], "claimed_elsewhere")
    executor = Executor(server, run_id, winner)
    assert executor.claim == answers[winner].json()
    for call, body in (("heartbeat", {}), ("end", {"outcome": "success"})):
        refused(executor.report(call, epoch=executor.epoch - 1, **body), "claim_over")
    executor.end("error", error="no more sheep")
    run = server.run(run_id, "announced")
    assert (run["outcome"], run["error"]) == ("error", "no more sheep")


def test_who_may_execute_run(server: Server) -> None:
    refused(claim(server, server.accepted("main"), "mine"), "not_external")
    mother = executed(server, "nest")
    child = mother.token
    second_run = offered(server, "not of that child")
    refused(claim(server, second_run, "x", child), "not_found", 404)
    path = f"runs/{mother.run_id}/heartbeat"
    refused(post(server, path, child, epoch=mother.epoch), "not_permitted", 403)
    refused(claim(server, mother.run_id, "x", child), "not_permitted", 403)
    # Who spawns executes: the child's own children with its token.
    request = {"requester": {"sessionKey": mother.launch["sessionKey"]}, "task": "below"}
    below = post(server, "spawns", child, agentId="outside", **request).json()["runId"]
    executor = Executor(server, below, "mother", child)
    # A name is no secret: only the token that made the claim gets its answer.
    refused(claim(server, below, "mother"), "claimed_elsewhere")
    assert claim(server, below, "mother", child).json() == executor.claim
    assert executor.end(result="deep").status_code == 200
    mother.end(result="done")
    assert server.run(mother.run_id, "announced")["outcome"] == "success"
    stop(server, second_run)


def test_full_lane_gives_no_more_and_holds_nobody_up(server: Server) -> None:
    taken = [offered(server, f"place {number}") for number in range(PLACES)]
    waiting = offered(server, "one too many")
    executors = [Executor(server, run_id) for run_id in taken]
    assert refused(claim(server, waiting, "mine"), "not_offered")["retryable"]
    assert server.announced("main")["outcome"] == "success"
    for executor in executors:
        executor.end()
    Executor(server, waiting).end("unknown")
    assert server.run(waiting, "announced")["outcome"] == "unknown"


def test_stop_reaches_executor_with_its_next_sign_of_life(server: Server) -> None:
    executor = executed(server, "stop me")
    stop(server, executor.run_id, reason="no longer needed")
    # A claim that is repeated prolongs nothing.
    assert Executor(server, executor.run_id).epoch == executor.epoch
    beat = executor.beat().json()
    assert (beat["stop"], beat["by"], beat["reason"]) == ("stopped", "admin", "no longer needed")
    executor.end("stopped")
    assert server.run(executor.run_id, "ended")["outcome"] == "stopped"
    deaf = executed(server, "stop me too").run_id
    stop(server, deaf)
    expire_executors(server)
    assert server.run(deaf, "ended")["outcome"] == "stopped"


def test_silent_executor_is_given_up(server: Server) -> None:
    executor = executed(server, "abandoned")
    executor.say(message("half of"))
    expire_executors(server)
    run = server.run(executor.run_id, "announced")
    assert run["outcome"] == "error"
    assert run["error"].startswith("interrupted: its executor stopped sending heartbeats")
    late = executor.end(result="whole")
    assert "has ended as error" in refused(late, "run_over")["detail"]
    assert server.run(executor.run_id)["resultText"] is None


def test_run_without_entries_lasts_until_its_lease_expires(server: Server) -> None:
    executor = executed(server, "silent")
    expire_executors(server)
    run = server.run(executor.run_id, "ended")
    (ended,) = server.payloads(executor.run_id, "RunEnded")
    assert ended["reason"] == "interrupted"
    assert run["startedAt"] < ended["aliveUntil"] < run["endedAt"]
    assert run["runtimeMs"] > 0


def test_run_is_over_at_its_limit(server: Server) -> None:
    run_id = offered(server, "slow", runTimeoutSeconds=1)
    executor = Executor(server, run_id, leaseSeconds=600)
    run = server.run(run_id, "announced")
    assert (run["outcome"], run["runtimeMs"]) == ("timeout", 1000)
    assert "has ended as timeout" in refused(executor.beat(), "run_over")["detail"]


def test_lease_is_no_longer_than_run_may_take(server: Server) -> None:
    run_id = offered(server, "short", runTimeoutSeconds=30)
    executor = Executor(server, run_id, leaseSeconds=3600)
    (claimed,) = server.payloads(run_id, "RunClaimed")
    left_seconds = "extract(epoch FROM until - clock_timestamp())::float8"
    query = f"SELECT {left_seconds} FROM holders WHERE holder = %s"
    ((left,),) = server.ask_database(query, claimed["holder"])
    assert left <= 30
    executor.end()


def test_lost_leases_end_no_run_whose_executor_lives(server: Server) -> None:
    executor = executed(server, "kept")
    server.ask_database(f"DELETE {LEASES}")
    # It ends by its limit, when the lease of a server would long be over.
    clock = executed(server, "clock", runTimeoutSeconds=3).run_id
    assert server.run(clock, "ended")["outcome"] == "timeout"
    slow = executed(server, "too slow for any outage", runTimeoutSeconds=2).run_id
    assert executor.beat().json()["stop"] is None
    # Leases that ran out while no server was there end nothing, either.
    server.stop()
    expire_executors(server)
    server.restart()
    assert server.run(slow, "ended")["outcome"] == "timeout"
    assert server.run(executor.run_id)["stage"] == "started"
    assert executor.beat().json()["stop"] is None
    executor.end(result="done")
    assert server.run(executor.run_id, "announced")["resultText"] == "done"
    assert server.ask_database(f"SELECT 1 {LEASES}") == []


def test_run_that_nobody_comes_for_is_an_error(server: Server) -> None:
    run_id = offered(server, "nobody comes")
    quickly = {"externalClaimSeconds": 1}
    with server.configured(lambda config: config["spawnlog"].update(quickly)):
        run = server.run(run_id, "announced")
    assert run["outcome"] == "error"
    assert run["error"] == "no executor claimed it within 1 s (spawnlog.externalClaimSeconds)"
    assert server.events(run_id) == [*PREPARED, "RunEnded", "RunAnnounced"]
    refused(claim(server, run_id, "late"), "run_over")


def test_end_is_answered_only_to_who_reported_it(server: Server) -> None:
    def steered(task: str) -> Executor:
        executor = executed(server, task)
        sent = server.send(executor.run_id, "Look again", mode="steer")
        assert sent.status_code == 202, sent.text
        return executor

    run = steered("be replaced, and say so")
    for _ in range(2):
        assert run.end(result="half").json() == {"runId": run.run_id, "outcome": "stopped"}
    given_up = steered("be replaced, in silence")
    expire_executors(server)
    assert server.run(given_up.run_id, "ended")["outcome"] == "stopped"
    late = given_up.end(result="lost")
    assert "stop executing it" in refused(late, "run_over")["detail"]
    for below in server.runs(stage="queued", agentId="outside"):
        stop(server, below["runId"])


# Killed.


@pytest.mark.parametrize(
    "moment",
    nightly_but(
        ["after RunClaimed", "before RunStarted", "after RunStarted"], ["after RunClaimed"]
    ),
)
def test_claim_survives_death_of_its_server(server: Server, moment: str) -> None:
    run_id = offered(server, moment)
    server.die_at(moment)
    with suppress(httpx2.TransportError):
        claim(server, run_id, "mine")
    server.wait_death()
    server.restart()
    refused(claim(server, run_id, "other"), "claimed_elsewhere")
    executor = Executor(server, run_id)
    assert executor.launch["message"].endswith(moment)
    executor.end(result="done")
    assert server.run(run_id, "announced")["resultText"] == "done"
    assert server.events(run_id) == WHOLE


@pytest.mark.parametrize(
    "moment", nightly_but(["before RunEnded", "after RunEnded"], ["after RunEnded"])
)
def test_end_is_taken_by_next_server(server: Server, moment: str) -> None:
    executor = executed(server, moment)
    executor.say({"kind": "result", "text": "as it was said before"})
    server.die_at(moment)
    with suppress(httpx2.TransportError):
        executor.end()
    server.wait_death()
    server.restart()
    assert executor.end().json() == {"runId": executor.run_id, "outcome": "success"}
    assert server.run(executor.run_id, "announced")["resultText"] == "as it was said before"
    assert server.events(executor.run_id) == WHOLE
