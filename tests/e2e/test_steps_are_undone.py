"""A step fails for good: what was made before it is unmade, also when the server is killed."""

from pathlib import Path

import pytest

from tests.support.servers.preparing_server import Porter, asked, nothing_is_left
from tests.support.servers.running_server import wait_for

pytestmark = pytest.mark.kill

ALL_MADE = [
    "SpawnRequested",
    "ScriptsResolved",
    "PreparationStarted",
    "StepBegun:workspace",
    "StepTaken:workspace",
    "StepBegun:attachments",
]
RESUMED = ["PreparationResumed", "StepBegun:attachments"]
UNDONE = ["undo:attachments:done", "undo:workspace:done"]
UNWRITTEN = "attachments_materialization_failed"
GONE = f"{UNWRITTEN} (what was attached is not kept any more; ask again with the files)"
IN_THE_WAY = (
    f"{UNWRITTEN} (a link or a file is in the place of the workspace, of .openclaw in it or of"
    " .openclaw/attachments)"
)


def refused(server: Porter, key: str, text: str) -> str:
    """The same request is refused by the step, with this text, and its requester is told once;
    gives the run's id."""
    body = asked(key)
    answer = server.answer_again(**body)
    assert (answer.status_code, answer.json()["rule"]) == (422, "attachments")
    assert answer.json()["detail"] == text
    run_id = str(answer.json()["runId"])
    (refusal,) = server.recorded(run_id, "SpawnRefused")
    assert (refusal["step"], refusal["status"]) == ("attachments", "error")
    requester = body["requester"]["sessionKey"]
    told = server.inbox(requester)
    assert [one["runId"] for one in told] == [run_id]
    assert text in told[0]["text"]
    released = [
        one
        for one in server.whole_log()
        if one["type"] == "ChildReleased" and one["payload"]["runId"] == run_id
    ]
    assert len(released) == 1
    assert server.session(requester)["activeChildren"] == 0
    return run_id


def undone(server: Porter, run_id: str) -> list[tuple[str, int]]:
    """How each step was undone and at which attempt, once the last one is."""
    wait_for("all to be undone", lambda: server.steps(run_id)[-1] == UNDONE[-1])
    recorded = server.recorded(run_id, "EffectAttempted")
    assert [one["name"] for one in recorded] == ["attachments", "workspace"]
    return [(one["outcome"], one["attempt"]) for one in recorded]


NOTHING: list[str] = []
FOLDER = ["porter", "porter/desk"]
FILES = 6
"""As many entries are there with both files: a manifest, and the three folders above."""

# Where it dies one time after the other, what is left then, and what was recorded last.
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


def test_what_was_made_is_unmade_though_its_server_is_killed_again_and_again(
    porter: Porter,
) -> None:
    key = "undone"
    porter.dies("after step:attachments", **asked(key))
    # Nobody can write them once more.
    porter.places.ask("DELETE FROM staged_files")
    for moment, are_there, folder, last in DEATHS:
        porter.dies_again(moment)
        left = porter.places.left()
        assert [one for one in left if ".openclaw" not in one] == folder, moment
        assert len(left) - len(folder) == (FILES if are_there else 0), moment
        assert porter.places.last_event() == last, moment
    porter.again()
    run_id = refused(porter, key, GONE)
    assert undone(porter, run_id) == [("nothing_there", 1)] * 2
    assert porter.steps(run_id) == [*ALL_MADE, *RESUMED * 2, "SpawnRefused", *UNDONE]
    assert porter.places.left() == []
    nothing_is_left(porter)


@pytest.mark.parametrize(
    ("moment", "story", "how"),
    [
        ("after step:attachments", [*ALL_MADE, *RESUMED], ["undone", "undone"]),
        # Nobody had said that the folder was made, and yet it is the run's.
        (
            "after step:workspace",
            [*ALL_MADE[:4], RESUMED[0], *ALL_MADE[3:]],
            ["nothing_there", "undone"],
        ),
    ],
)
def test_what_was_made_is_on_record_as_undone(
    porter: Porter, moment: str, story: list[str], how: list[str]
) -> None:
    key = f"refused {moment}"
    porter.dies(moment, **asked(key))
    porter.places.ask("DELETE FROM staged_files")
    porter.again()
    run_id = refused(porter, key, GONE)
    assert undone(porter, run_id) == [(one, 1) for one in how]
    assert porter.steps(run_id) == [*story, "SpawnRefused", *UNDONE]
    assert porter.places.left() == []
    nothing_is_left(porter)


@pytest.mark.parametrize("planted", ["a file", "a link"])
def test_what_others_have_put_into_a_workspace_stays_there(
    porter: Porter, planted: str, tmp_path: Path
) -> None:
    key = f"planted: {planted}"
    porter.dies("before step:attachments", **asked(key))
    place = porter.places.desk() / ".openclaw"
    if planted == "a file":
        place.write_text("of somebody else")
    else:
        (tmp_path / "attachments").mkdir()
        place.symlink_to(tmp_path)
    porter.again()
    run_id = refused(porter, key, IN_THE_WAY)
    assert undone(porter, run_id) == [("left_in_place", 1)] * 2
    assert porter.steps(run_id) == [*ALL_MADE, *RESUMED, "SpawnRefused", *UNDONE]
    assert porter.places.left() == ["porter", "porter/desk", "porter/desk/.openclaw"]
    assert porter.places.staged() == 0
    assert [one.name for one in tmp_path.rglob("*")] == (
        [] if planted == "a file" else ["attachments"]
    )


def test_a_spawn_is_stopped_before_anybody_takes_it_over(porter: Porter) -> None:
    body = asked("stopped")
    porter.dies("after step:workspace", **body)
    # The lease of the dead one runs on: nobody resumes what it held.
    porter.places.ask("UPDATE holders SET until = until + interval '1 hour'")
    porter.start()
    requester = body["requester"]["sessionKey"]
    run_id = porter.being_prepared(requester)
    stopped = porter.http.post(f"/v1/runs/{run_id}/stop", json={})
    assert stopped.json() == {"runId": run_id, "wasOver": False}
    # Whoever makes a folder may be at it for a while; the slot is free at once.
    assert porter.session(requester)["activeChildren"] == 0
    assert porter.steps(run_id)[-1] == "SpawnRefused"
    wait_for("it to be undone", lambda: porter.steps(run_id)[-1] == UNDONE[-1])
    assert porter.steps(run_id) == [*ALL_MADE[:4], "SpawnRefused", UNDONE[-1]]
    (refusal,) = porter.recorded(run_id, "SpawnRefused")
    assert refusal["rule"] == "stopped"
    answer = porter.answer_again(**body)
    assert (answer.status_code, answer.json()["rule"]) == (422, "stopped")
    assert porter.places.left() == []
    # Nobody here prepared it: what was set aside is swept away now and then, and at a start.
    porter.stop()
    porter.start()
    nothing_is_left(porter)
