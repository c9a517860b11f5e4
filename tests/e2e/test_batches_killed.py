"""kill -9 before and after each append of a batch: all of its runs come to be, or none does."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.batching_server import Batching
from tests.support.servers.databases import Databases
from tests.support.servers.mortal_server import Aside, mortal_on
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.kill

MOMENTS = ("before", "after")
MADE = ["before step:workspace", "after step:workspace"]


@pytest.fixture(scope="module")
def one_that_dies(databases: Databases) -> Iterator[Batching]:
    with mortal_on(databases, Batching) as server:
        yield server


@pytest.fixture
def server(one_that_dies: Batching) -> Batching:
    """Running, whatever the test before has made of it."""
    one_that_dies.alive()
    one_that_dies.clear()
    return one_that_dies


def killed(server: Batching, moment: str, **body: Any) -> Any:
    """The answer to a request whose server died on it, asked again with the same key."""
    key = f"{moment} {body['agentId']}"
    main = f"agent:main:{key.replace(' ', '-').replace(':', '-').lower()}"
    asked = {"requester": {"sessionKey": main}, "parallel": True, **body}
    server.is_to_die(moment)
    server.asked_in_vain(key, task=["a", "b", "c"], **asked)
    server.has_died()
    server.again()
    return main, server.answer_again(key, task=["a", "b", "c"], **asked)


def must_be_whole(server: Batching, main: str) -> list[dict[str, Any]]:
    """No batch of the session has a part: each was admitted by one append, and created or refused
    by one."""
    runs = server.runs_of(main)
    for batch in {one["batchId"] for one in runs}:
        members = [one["runId"] for one in runs if one["batchId"] == batch]
        appends = server.appends(*members)
        for type_ in ("SpawnRequested", "SessionCreated", "SpawnRefused", "PreparationResumed"):
            of_type = [Counter(one)[type_] for one in appends if type_ in one]
            assert set(of_type) <= {len(members)}, (type_, of_type)
    return runs


@pytest.mark.parametrize("moment", nightly_but(MOMENTS, ["after"]))
@pytest.mark.parametrize(
    ("name", "agent_id"),
    nightly_but(
        [
            ("SpawnRequested", "plain"),
            ("ScriptsResolved", "fussy"),
            ("StepBegun", "maker"),
            ("StepTaken", "maker"),
            ("SessionCreated", "plain"),
            ("SessionCreated", "fussy"),
            ("RunClaimed", "plain"),
        ],
        [("SpawnRequested", "plain"), ("StepTaken", "maker")],
    ),
)
def test_all_of_a_batch_come_to_their_end(
    server: Batching, moment: str, name: str, agent_id: str
) -> None:
    main, answer = killed(server, f"{moment} {name}", agentId=agent_id, label=agent_id)
    assert answer.status_code == 201, answer.text
    ids = [one["runId"] for one in answer.json()["runs"]]
    ended = [server.run(one, "announced") for one in ids]
    # For `plain` nothing has to be asked or made: it is recorded as a whole, its start included,
    # and what may have executed is not executed again.
    had_started = (moment, agent_id) == ("after", "plain")
    assert [one["outcome"] for one in ended] == ["error" if had_started else "success"] * 3
    assert [one["task"] for one in ended] == ["a", "b", "c"]
    assert len(must_be_whole(server, main)) == 3
    assert server.places(main) == 0
    assert len(server.inbox(main)) == 3


@pytest.mark.nightly
@pytest.mark.parametrize("moment", MADE)
def test_a_folder_that_is_made_twice_is_there_for_all(server: Batching, moment: str) -> None:
    main, answer = killed(server, moment, agentId="maker", label="m")
    assert answer.status_code == 201, answer.text
    for one in answer.json()["runs"]:
        assert server.run(one["runId"], "announced")["outcome"] == "success"
    must_be_whole(server, main)


@pytest.mark.parametrize(
    "moment", nightly_but(["before SpawnRefused", "after SpawnRefused"], ["after SpawnRefused"])
)
def test_a_batch_is_refused_as_a_whole_and_told_once(server: Batching, moment: str) -> None:
    main, answer = killed(server, moment, agentId="fussy", label="bad")
    assert answer.status_code == 422, answer.text
    runs = must_be_whole(server, main)
    assert [one["rule"] for one in runs] == ["batch", "runtime", "batch"]
    problem = answer.json()
    assert (problem["runId"], problem["rule"]) == (runs[1]["runId"], "runtime")
    assert server.places(main) == 0
    told = server.inbox(main)
    if moment == "before SpawnRefused":
        # Nobody was there any more to be told.
        assert [one["runId"] for one in told] == [runs[1]["runId"]]
        assert "No task of this batch was started." in told[0]["text"]
    else:
        assert told == []


def test_a_refusal_at_the_admission_is_told_again(server: Batching) -> None:
    asked = {"mode": "session", "parallel": True, "requester": {"sessionKey": "agent:main:gone"}}
    server.is_to_die("after SpawnRefused")
    server.asked_in_vain("gone", task=["a", "b"], **asked)
    server.has_died()
    server.again()
    answer = server.answer_again("gone", task=["a", "b"], **asked)
    assert answer.json()["rule"] == "mode"
    assert [one["rule"] for one in must_be_whole(server, "agent:main:gone")] == ["mode"] * 2


@pytest.mark.nightly
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_batch_that_is_stopped_while_it_is_prepared_is_stopped(
    server: Batching, moment: str
) -> None:
    main = f"agent:main:stopped-{moment}"
    aside = server.spawned_aside(
        task=["a", "b"], parallel=True, agentId="fussy", label="held",
        requester={"sessionKey": main}, key=main,
    )  # fmt: skip
    first, _ = server.are_at_work(main, 2)
    server.is_to_die(f"{moment} SpawnRefused")
    stop = {"Idempotency-Key": f"stop {moment}"}
    path = f"/v1/runs/{first['runId']}/stop"
    asked = Aside(lambda: server.http.post(path, json={}, headers=stop))
    server.has_died()
    assert asked.answer() is None
    assert aside.answer() is None
    server.again()
    assert server.http.post(path, json={}, headers=stop).status_code == 200
    assert [one["rule"] for one in must_be_whole(server, main)] == ["stopped", "batch"]
    assert server.places(main) == 0
