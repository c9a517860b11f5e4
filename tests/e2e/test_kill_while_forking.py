"""kill -9 around the fork of a conversation: a child begins with it, or nothing of it is left."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.context.fork import INBOX_NOTE
from tests.support.builders.submitted_transcripts import KEPT
from tests.support.servers.databases import Databases
from tests.support.servers.forking_server import Heirs, forked
from tests.support.servers.mortal_server import mortal_on
from tests.support.servers.running_server import wait_for
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.kill

STARTED = ["ScriptsResolved", "PreparationStarted"]
BEGUN = ["StepBegun:context_fork"]
RESUMED = ["PreparationResumed"]
TAKEN = ["StepTaken:context_fork"]
REST = ["SessionCreated", "RunQueued", "RunClaimed", "RunStarted", "RunEnded", "RunAnnounced"]
UNDONE = ["undo:attachments:done", "undo:context_fork:done"]
AT_THE_FORK = [*STARTED, *BEGUN, *RESUMED, *BEGUN, *TAKEN, *REST]
MOMENTS = {
    "before StepBegun:context_fork": [*RESUMED, *STARTED, *BEGUN, *TAKEN, *REST],
    "after StepBegun:context_fork": AT_THE_FORK,
    "before step:context_fork": AT_THE_FORK,
    "after step:context_fork": AT_THE_FORK,
    "before StepTaken:context_fork": AT_THE_FORK,
    "after SessionCreated": [*STARTED, *BEGUN, *TAKEN, *REST],
}
ATTACHED = [{"name": "notes.txt", "content": "x"}]
DEATHS = (
    "before SpawnRefused",
    "after SpawnRefused",
    "before undo:context_fork",
    "after undo:context_fork",
    "before EffectAttempted:undo:context_fork",
)


@pytest.fixture(scope="module")
def heirs(databases: Databases) -> Iterator[Heirs]:
    """Its log is verified once all is over, and holds nothing that was said."""
    with mortal_on(databases, Heirs) as server:
        yield server
        server.alive()
        assert "arbour" not in json.dumps(server.whole_log())


@pytest.fixture
def server(heirs: Heirs) -> Heirs:
    heirs.alive()
    return heirs


def begins_with_it(server: Heirs, body: dict[str, Any]) -> str:
    """The same request is accepted, and its child found the conversation in its one file; gives
    the run's id."""
    answer = server.answer_again(**body)
    assert answer.status_code == 201, answer.text
    assert answer.json()["note"] == INBOX_NOTE
    run_id = str(answer.json()["runId"])
    run = server.run(run_id, "archived")
    assert (run["outcome"], run["contextMode"]) == ("success", "fork")
    found = server.remembered(run_id)
    (path,) = found["paths"]
    assert found["variable"] == path
    assert path.endswith(f"/heir/{run['sessionId']}.fork.jsonl")
    (file,) = found["files"]
    assert file["mode"] == "0o600"
    first, *rest = file["lines"]
    assert (first["kind"], first["sequence"], first["entries"]) == ("session", 1, len(KEPT))
    kept = [
        {key: line[key] for key in line if key not in ("sequence", "recordedAt")} for line in rest
    ]
    assert kept == [{"kind": kind, **said} for kind, said in KEPT]
    path = Path(run["transcriptPath"])
    wait_for("the file of the transcript", path.exists)
    sealed = path.read_bytes().splitlines()
    kinds = [json.loads(line)["kind"] for line in sealed]
    assert kinds == ["session", *(kind for kind, _ in KEPT), "message", "text"]
    assert json.loads(sealed[-1])["text"].strip() == "I remember"
    assert len(sealed) == server.rows(run_id) == len(KEPT) + 3
    wait_for("the file to go", lambda: not server.beginnings())
    assert server.session(body["requester"]["sessionKey"])["activeChildren"] == 0
    return run_id


@pytest.mark.parametrize("moment", nightly_but(MOMENTS, ["after step:context_fork"]))
def test_a_child_begins_with_it_when_its_server_is_killed(server: Heirs, moment: str) -> None:
    body = forked(moment)
    server.told(body["requester"]["sessionKey"])
    server.dies(moment, **body)
    server.again()
    run_id = begins_with_it(server, body)
    assert server.steps(run_id) == ["SpawnRequested", *MOMENTS[moment], "RunArchived"]


def test_what_was_told_after_the_spawn_is_not_taken_over_by_who_goes_on(server: Heirs) -> None:
    body = forked("later")
    session = body["requester"]["sessionKey"]
    server.told(session)
    server.dies("before step:context_fork", **body)
    # The run's own lease lasts longer than it takes to tell something else.
    server.start()
    server.told(session, entries=[{"kind": "text", "text": "later"}])
    server.forget_the_dead(server.url)
    begins_with_it(server, body)


def test_a_file_that_has_gone_is_written_anew_for_the_runtime(server: Heirs) -> None:
    body = forked("gone")
    server.told(body["requester"]["sessionKey"])
    server.dies("after SessionCreated", **body)
    (name,) = server.beginnings()
    (server.data_dir / "transcripts" / "heir" / name).unlink()
    server.again()
    begins_with_it(server, body)


@pytest.mark.parametrize(
    "moment",
    nightly_but(["after step:context_fork", "after SessionCreated"], ["after SessionCreated"]),
)
def test_its_requester_is_told_of_too_much_also_by_who_goes_on(server: Heirs, moment: str) -> None:
    body = forked(f"large {moment}")
    server.told(body["requester"]["sessionKey"], totalTokens=170_000)
    server.dies(moment, **body)
    server.again()
    answer = server.answer_again(**body)
    assert answer.json()["note"] == (
        f"{INBOX_NOTE} Parent context is too large to fork (170000/100000 tokens); "
        "starting with isolated context instead."
    )
    run_id = answer.json()["runId"]
    assert server.run(run_id, "archived")["contextMode"] == "isolated"
    assert server.remembered(run_id) == {"paths": [], "variable": None, "files": []}


def test_nothing_of_it_is_left_when_a_later_step_fails(server: Heirs) -> None:
    body = forked("in vain", "blocked", attachments=ATTACHED)
    server.told(body["requester"]["sessionKey"])
    moment, *others = DEATHS
    server.dies(moment, **body)
    for moment in others:
        server.dies_again(moment)
    server.again()
    answer = server.answer_again(**body)
    assert (answer.status_code, answer.json()["rule"]) == (422, "attachments")
    run_id = answer.json()["runId"]
    wait_for("all to be undone", lambda: server.steps(run_id)[-2:] == UNDONE)
    assert server.rows(run_id) == 0
    assert server.beginnings() == []
    assert server.session(body["requester"]["sessionKey"])["activeChildren"] == 0


def test_the_file_of_a_child_that_never_started_goes_with_its_session(server: Heirs) -> None:
    first = server.accepted("waiter", requester={"sessionKey": "agent:main:before"})
    server.note(f"{first}.began")
    body = forked("stopped")
    server.told(body["requester"]["sessionKey"])
    answer = server.spawn(**body)
    assert answer.status_code == 201, answer.text
    assert len(server.beginnings()) == 1
    run_id = answer.json()["runId"]
    assert server.http.post(f"/v1/runs/{run_id}/stop").status_code == 200
    assert server.run(run_id, "archived")["outcome"] == "stopped"
    assert server.beginnings() == []
    server.let_go(first)
    server.run(first, "announced")
