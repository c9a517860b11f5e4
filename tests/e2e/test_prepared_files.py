"""Folders and files for children are kept, or undone once, also when servers are killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.faults.turnstiles import Turnstile
from tests.support.servers.attached_files import (
    CONTENTS,
    clear_homes,
    desk_of,
    left_in_homes,
    preparing,
    receipt,
    require_nothing_left,
    require_seen,
    staged,
    with_files,
)
from tests.support.servers.databases import Databases
from tests.support.servers.server import Background, Server, serving
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for


@pytest.fixture(scope="module")
def one_porter(databases: Databases) -> Iterator[Server]:
    with serving(databases, preparing, dies=True) as server:
        yield server


@pytest.fixture
def porter(one_porter: Server) -> Server:
    """Return a running server whose agents have no workspace yet."""
    one_porter.ensure_running()
    clear_homes(one_porter)
    return one_porter


def last_event(server: Server) -> str:
    """Return the type of the last event that a run recorded."""
    query = "SELECT type FROM events WHERE stream LIKE 'run:%' ORDER BY position DESC LIMIT 1"
    return str(server.ask_database(query)[0][0])


WORKSPACE = ["StepBegun:workspace"]
FILES_BEGUN = ["StepTaken:workspace", "StepBegun:attachments"]
STARTED = ["ScriptsResolved", "PreparationStarted"]
REST = [
    "StepTaken:attachments",
    "SessionCreated",
    "RunQueued",
    "RunClaimed",
    "RunStarted",
    "RunEnded",
    "RunAnnounced",
]
UNDONE = "undo:attachments:done"
RESUMED_PREPARATION = ["PreparationResumed"]
AT_THE_REQUEST = [*RESUMED_PREPARATION, *STARTED, *WORKSPACE, *FILES_BEGUN]
AT_THE_WORKSPACE = [*STARTED, *WORKSPACE, *RESUMED_PREPARATION, *WORKSPACE, *FILES_BEGUN]
AT_THE_FILES = [*STARTED, *WORKSPACE, *FILES_BEGUN, *RESUMED_PREPARATION, "StepBegun:attachments"]
MADE = [*STARTED, *WORKSPACE, *FILES_BEGUN]

# Events appended together with one of these are not listed again.
MOMENTS = {
    "before StepBegun:workspace": AT_THE_REQUEST,
    "after StepBegun:workspace": AT_THE_WORKSPACE,
    "before step:workspace": AT_THE_WORKSPACE,
    "after step:workspace": AT_THE_WORKSPACE,
    "before StepTaken:workspace": AT_THE_WORKSPACE,
    "after StepBegun:attachments": AT_THE_FILES,
    "before step:attachments": AT_THE_FILES,
    "after attachment:1": AT_THE_FILES,
    "after attachment:2": AT_THE_FILES,
    "after step:attachments": AT_THE_FILES,
    "before StepTaken:attachments": AT_THE_FILES,
    "after SessionCreated": MADE,
}


def require_story(server: Server, key: str, story: list[str]) -> None:
    """Require that the same request is accepted, that its child finds its files, which are gone
    afterwards, and that the record has this story up to the announcement."""
    body = with_files(key)
    answer = server.spawn_again(**body)
    assert answer.status_code == 201, answer.text
    run_id = answer.json()["runId"]
    assert answer.headers["Idempotent-Replayed"] == "true"
    assert answer.json()["attachments"] == receipt(run_id)
    run = server.run(run_id, "archived")
    assert run["attachments"].pop("state") in ("removing", "removed")
    assert (run["outcome"], run["attachments"]) == ("success", receipt(run_id))
    require_seen(server, run_id)
    wait_for("the files to be undone", lambda: UNDONE in server.steps(run_id))
    require_nothing_left(server)
    assert left_in_homes(server) == ["porter", "porter/desk"]
    events = server.steps(run_id)
    assert events[: -len(REST) - 2] == ["SpawnRequested", *story]
    assert events[-len(REST) - 2 : -2] == REST
    assert sorted(events[-2:]) == ["RunArchived", UNDONE]
    assert server.session(body["requester"]["sessionKey"])["activeChildren"] == 0


@pytest.mark.kill
@pytest.mark.parametrize(
    "moment", nightly_but(MOMENTS, ["after step:workspace", "after attachment:1"])
)
def test_killed_spawn_goes_on(porter: Server, moment: str) -> None:
    porter.die_during(moment, **with_files(moment))
    porter.restart()
    require_story(porter, moment, MOMENTS[moment])


@pytest.mark.kill
def test_spawn_goes_on_when_its_resumer_is_killed(porter: Server) -> None:
    key = "twice"
    porter.die_during("after step:workspace", **with_files(key))
    porter.die_again("after attachment:2")
    porter.restart()
    story = [*STARTED, *WORKSPACE, *RESUMED_PREPARATION, *WORKSPACE, *FILES_BEGUN]
    require_story(porter, key, [*story, *RESUMED_PREPARATION, "StepBegun:attachments"])


ALL_MADE = [
    "SpawnRequested",
    "ScriptsResolved",
    "PreparationStarted",
    "StepBegun:workspace",
    "StepTaken:workspace",
    "StepBegun:attachments",
]
RESUMED_AT_FILES = ["PreparationResumed", "StepBegun:attachments"]
BOTH_UNDONE = ["undo:attachments:done", "undo:workspace:done"]
UNWRITTEN = "attachments_materialization_failed"
GONE = f"{UNWRITTEN} (the attached files are no longer stored; spawn again with the files)"
IN_THE_WAY = (
    f"{UNWRITTEN} (the workspace, .openclaw in it or .openclaw/attachments is a link or a file, not"
    " a folder)"
)


def refused(server: Server, key: str, text: str) -> str:
    """Assert that the repeated request is refused by the step with this text, and announced once.
    Return the run's id.
    """
    body = with_files(key)
    answer = server.spawn_again(**body)
    assert (answer.status_code, answer.json()["rule"]) == (422, "attachments")
    assert answer.json()["detail"] == text
    run_id = str(answer.json()["runId"])
    (refusal,) = server.payloads(run_id, "SpawnRefused")
    assert (refusal["step"], refusal["status"]) == ("attachments", "error")
    requester = body["requester"]["sessionKey"]
    inbox = server.inbox(requester)
    assert [run["runId"] for run in inbox] == [run_id]
    assert text in inbox[0]["text"]
    released = [
        event
        for event in server.whole_log()
        if event["type"] == "ChildReleased" and event["payload"]["runId"] == run_id
    ]
    assert len(released) == 1
    assert server.session(requester)["activeChildren"] == 0
    return run_id


def undone(server: Server, run_id: str) -> list[tuple[str, int]]:
    """Return the undos of the steps with their attempts, once the last one is done."""
    wait_for("all to be undone", lambda: server.steps(run_id)[-1] == BOTH_UNDONE[-1])
    recorded = server.payloads(run_id, "EffectAttempted")
    assert [event["name"] for event in recorded] == ["attachments", "workspace"]
    return [(run["outcome"], run["attempt"]) for run in recorded]


NOTHING: list[str] = []
FOLDER = ["porter", "porter/desk"]
FILES = 6
"""Number of entries with both files: a manifest, and the three folders above."""

# The moment of each kill, whether files are left, and the last recorded event.
DEATHS = [
    ("before SpawnRefused", True, FOLDER, "StepBegun"),
    ("after SpawnRefused", True, FOLDER, "SpawnRefused"),
    ("before undo:attachments", True, FOLDER, "SpawnRefused"),
    ("after undo:attachments", False, FOLDER, "SpawnRefused"),
    ("before EffectAttempted:undo:attachments", False, FOLDER, "SpawnRefused"),
    ("after EffectAttempted:undo:attachments", False, FOLDER, "EffectAttempted"),
    ("before undo:workspace", False, FOLDER, "EffectAttempted"),
    ("after undo:workspace", False, NOTHING, "EffectAttempted"),
]


@pytest.mark.kill
def test_undoing_goes_on_however_often_it_is_killed(porter: Server) -> None:
    key = "undone"
    porter.die_during("after step:attachments", **with_files(key))
    # They cannot be written again.
    porter.ask_database("DELETE FROM staged_files")
    for moment, are_there, folder, last in DEATHS:
        porter.die_again(moment)
        left = left_in_homes(porter)
        assert [item for item in left if ".openclaw" not in item] == folder, moment
        assert len(left) - len(folder) == (FILES if are_there else 0), moment
        assert last_event(porter) == last, moment
    porter.restart()
    run_id = refused(porter, key, GONE)
    assert undone(porter, run_id) == [("nothing_there", 1)] * 2
    assert porter.steps(run_id) == [*ALL_MADE, *RESUMED_AT_FILES * 2, "SpawnRefused", *BOTH_UNDONE]
    assert left_in_homes(porter) == []
    require_nothing_left(porter)


@pytest.mark.kill
@pytest.mark.parametrize(
    ("moment", "story", "how"),
    [
        ("after step:attachments", [*ALL_MADE, *RESUMED_AT_FILES], ["undone", "undone"]),
        # No event says that the folder was made, but it belongs to the run.
        (
            "after step:workspace",
            [*ALL_MADE[:4], RESUMED_AT_FILES[0], *ALL_MADE[3:]],
            ["nothing_there", "undone"],
        ),
    ],
)
def test_undoing_is_on_record(
    porter: Server, moment: str, story: list[str], how: list[str]
) -> None:
    key = f"refused {moment}"
    porter.die_during(moment, **with_files(key))
    porter.ask_database("DELETE FROM staged_files")
    porter.restart()
    run_id = refused(porter, key, GONE)
    assert undone(porter, run_id) == [(item, 1) for item in how]
    assert porter.steps(run_id) == [*story, "SpawnRefused", *BOTH_UNDONE]
    assert left_in_homes(porter) == []
    require_nothing_left(porter)


@pytest.mark.kill
@pytest.mark.parametrize("planted", ["a file", "a link"])
def test_what_others_put_into_workspace_stays(porter: Server, planted: str, tmp_path: Path) -> None:
    key = f"planted: {planted}"
    porter.die_during("before step:attachments", **with_files(key))
    place = desk_of(porter) / ".openclaw"
    if planted == "a file":
        place.write_text("of somebody else")
    else:
        (tmp_path / "attachments").mkdir()
        place.symlink_to(tmp_path)
    porter.restart()
    run_id = refused(porter, key, IN_THE_WAY)
    assert undone(porter, run_id) == [("left_in_place", 1)] * 2
    assert porter.steps(run_id) == [*ALL_MADE, *RESUMED_AT_FILES, "SpawnRefused", *BOTH_UNDONE]
    assert left_in_homes(porter) == ["porter", "porter/desk", "porter/desk/.openclaw"]
    assert staged(porter) == 0
    assert [path.name for path in tmp_path.rglob("*")] == (
        [] if planted == "a file" else ["attachments"]
    )


@pytest.mark.kill
def test_spawn_is_stopped_before_anybody_resumes_it(porter: Server) -> None:
    body = with_files("stopped")
    porter.die_during("after step:workspace", **body)
    # The lease of the dead server is still valid: no server resumes its runs.
    porter.ask_database("UPDATE holders SET until = until + interval '1 hour'")
    porter.start()
    requester = body["requester"]["sessionKey"]
    run_id = porter.preparing(requester)
    stopped = porter.http.post(f"/v1/runs/{run_id}/stop", json={})
    assert stopped.json() == {"runId": run_id, "wasOver": False}
    # The folder may take a while to make; the slot is free at once.
    assert porter.session(requester)["activeChildren"] == 0
    assert porter.steps(run_id)[-1] == "SpawnRefused"
    wait_for("it to be undone", lambda: porter.steps(run_id)[-1] == BOTH_UNDONE[-1])
    assert porter.steps(run_id) == [*ALL_MADE[:4], "SpawnRefused", BOTH_UNDONE[-1]]
    (refusal,) = porter.payloads(run_id, "SpawnRefused")
    assert refusal["rule"] == "stopped"
    answer = porter.spawn_again(**body)
    assert (answer.status_code, answer.json()["rule"]) == (422, "stopped")
    assert left_in_homes(porter) == []
    # No server here prepared it: staged files are removed now and then, and at a start.
    porter.stop()
    porter.start()
    require_nothing_left(porter)


BEGUN_TWICE = ["StepBegun:attachments", "PreparationResumed", "StepBegun:attachments"]


@pytest.fixture
def turnstile(porter: Server) -> Iterator[Turnstile]:
    """Yield a turnstile that blocks the server at its next append."""
    turnstile = porter.turnstile()
    yield turnstile
    turnstile.let_go()


def held_before_its_files(
    porter: Server, turnstile: Turnstile, key: str, agent_id: str
) -> Background:
    """Block a server after it has recorded that it will write the files, and before it writes
    them.
    """
    body = with_files(key, agentId=agent_id)
    aside = porter.spawn_in_background(**body)
    requester = body["requester"]["sessionKey"]
    begun = "SELECT count(*) FROM events WHERE correlation = %s AND type = 'StepBegun'"
    turnstile.hold("the files to be begun", lambda: porter.ask_database(begun, requester) == [(2,)])
    assert left_in_homes(porter) == [agent_id, f"{agent_id}/desk"]
    return aside


def files_of(desk: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return inode, time and content of every file below a workspace."""
    return {
        str(path.relative_to(desk)): (
            path.stat().st_ino,
            path.stat().st_mtime_ns,
            path.read_bytes(),
        )
        for path in desk.rglob("*")
        if path.is_file()
    }


@pytest.mark.kill
def test_other_server_resumes_spawn_without_child(porter: Server) -> None:
    body = with_files("taken over", agentId="keeper")
    porter.die_during("before SessionCreated", **body)
    with porter.twin() as second_server:
        porter.expire_leases(second_server.url)
        answer = second_server.spawn_again(**body)
        assert answer.status_code == 201, answer.text
        run_id = answer.json()["runId"]
        assert answer.json()["attachments"] == receipt(run_id)
        require_seen(second_server, run_id, "keeper")
        names = {Path(file).name for file in files_of(desk_of(second_server, "keeper"))}
        assert names == {*CONTENTS, ".manifest.json"}
        second_server.let_go(run_id)
        assert second_server.run(run_id, "archived")["outcome"] == "success"
        steps = [
            step
            for step in second_server.steps(run_id)
            if step.endswith((":attachments", "Resumed"))
        ]
        assert steps[:4] == [*BEGUN_TWICE, "StepTaken:attachments"]
        nothing_is_undone_twice(second_server, run_id)


def nothing_is_undone_twice(server: Server, run_id: str) -> None:
    """Assert that the files are removed once, and nothing is left."""
    wait_for("the files to be undone", lambda: "undo:attachments:done" in server.steps(run_id))
    assert server.steps(run_id).count("undo:attachments:done") == 1
    require_nothing_left(server)


@pytest.mark.kill
def test_server_that_slept_changes_nothing(porter: Server, turnstile: Turnstile) -> None:
    aside = held_before_its_files(porter, turnstile, "slept", "keeper")
    with porter.twin() as second_server:
        porter.expire_leases(second_server.url)
        run_id = second_server.runs(requester="agent:main:slept")[0]["runId"]
        require_seen(second_server, run_id, "keeper")
        written = files_of(desk_of(second_server, "keeper"))
        turnstile.let_go()
        answer = aside.answer()
        assert answer is not None
        assert (answer.status_code, answer.json()["runId"]) == (201, run_id)
        assert files_of(desk_of(second_server, "keeper")) == written
        second_server.let_go(run_id)
        assert second_server.run(run_id, "archived")["outcome"] == "success"
        nothing_is_undone_twice(second_server, run_id)


@pytest.mark.kill
def test_server_that_slept_leaves_nothing_of_ended_run(
    porter: Server, turnstile: Turnstile
) -> None:
    aside = held_before_its_files(porter, turnstile, "overslept", "porter")
    with porter.twin() as second_server:
        porter.expire_leases(second_server.url)
        run_id = second_server.runs(requester="agent:main:overslept")[0]["runId"]
        assert second_server.run(run_id, "archived")["outcome"] == "success"
        nothing_is_undone_twice(second_server, run_id)
        turnstile.let_go()
        answer = aside.answer()
        assert answer is not None
        assert (answer.status_code, answer.json()["runId"]) == (201, run_id)
        nothing_is_undone_twice(second_server, run_id)
