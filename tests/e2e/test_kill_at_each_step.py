"""kill -9 around each step of a preparation: the spawn goes on, and its files are there once."""

import pytest

from tests.support.servers.preparing_server import Porter, asked, nothing_is_left, receipt, sight
from tests.support.servers.running_server import wait_for
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.kill

WORKSPACE = ["StepBegun:workspace"]
FILES = ["StepTaken:workspace", "StepBegun:attachments"]
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
RESUMED = ["PreparationResumed"]
AT_THE_REQUEST = [*RESUMED, *STARTED, *WORKSPACE, *FILES]
AT_THE_WORKSPACE = [*STARTED, *WORKSPACE, *RESUMED, *WORKSPACE, *FILES]
AT_THE_FILES = [*STARTED, *WORKSPACE, *FILES, *RESUMED, "StepBegun:attachments"]
MADE = [*STARTED, *WORKSPACE, *FILES]

# What is recorded in one append with one of these is not named again.
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


def goes_on(server: Porter, key: str, story: list[str]) -> None:
    """The same request is accepted, and its child finds its files; afterwards they are gone, and
    the record has this story up to the announcement."""
    body = asked(key)
    answer = server.answer_again(**body)
    assert answer.status_code == 201, answer.text
    run_id = answer.json()["runId"]
    assert answer.headers["Idempotent-Replayed"] == "true"
    assert answer.json()["attachments"] == receipt(run_id)
    run = server.run(run_id, "archived")
    assert run["attachments"].pop("state") in ("removing", "removed")
    assert (run["outcome"], run["attachments"]) == ("success", receipt(run_id))
    assert server.seen(run_id) == sight(server, run_id)
    wait_for("the files to be undone", lambda: UNDONE in server.steps(run_id))
    nothing_is_left(server)
    assert server.places.left() == ["porter", "porter/desk"]
    events = server.steps(run_id)
    assert events[: -len(REST) - 2] == ["SpawnRequested", *story]
    assert events[-len(REST) - 2 : -2] == REST
    assert sorted(events[-2:]) == ["RunArchived", UNDONE]
    assert server.session(body["requester"]["sessionKey"])["activeChildren"] == 0


@pytest.mark.parametrize(
    "moment", nightly_but(MOMENTS, ["after step:workspace", "after attachment:1"])
)
def test_a_spawn_goes_on_when_its_server_is_killed(porter: Porter, moment: str) -> None:
    porter.dies(moment, **asked(moment))
    porter.again()
    goes_on(porter, moment, MOMENTS[moment])


def test_a_spawn_goes_on_also_when_the_server_that_went_on_is_killed(
    porter: Porter,
) -> None:
    key = "twice"
    porter.dies("after step:workspace", **asked(key))
    porter.dies_again("after attachment:2")
    porter.again()
    story = [*STARTED, *WORKSPACE, *RESUMED, *WORKSPACE, *FILES]
    goes_on(porter, key, [*story, *RESUMED, "StepBegun:attachments"])
