"""Two servers on one database: one goes on where the other one died, or was held up."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.faults.turnstiles import Turnstile
from tests.support.servers.mortal_server import Aside
from tests.support.servers.preparing_server import (
    CONTENTS,
    Porter,
    asked,
    nothing_is_left,
    receipt,
    sight,
)
from tests.support.servers.running_server import wait_for

pytestmark = pytest.mark.kill

BEGUN_TWICE = ["StepBegun:attachments", "PreparationResumed", "StepBegun:attachments"]


@pytest.fixture
def turnstile(porter: Porter) -> Iterator[Turnstile]:
    """Holds the server up from its next append on."""
    turnstile = porter.turnstile()
    yield turnstile
    turnstile.let_go()


def held_before_its_files(porter: Porter, turnstile: Turnstile, key: str, agent_id: str) -> Aside:
    """A server stands still; it has on record that it will write the files, and has not yet."""
    body = asked(key, agentId=agent_id)
    aside = porter.spawned_aside(**body)
    requester = body["requester"]["sessionKey"]
    begun = "SELECT count(*) FROM events WHERE correlation = %s AND type = 'StepBegun'"
    turnstile.hold("the files to be begun", lambda: porter.places.ask(begun, requester) == [(2,)])
    assert porter.places.left() == [agent_id, f"{agent_id}/desk"]
    return aside


def files_of(desk: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below a workspace: which one it is, when it was written, and what is in it."""
    return {
        str(one.relative_to(desk)): (one.stat().st_ino, one.stat().st_mtime_ns, one.read_bytes())
        for one in desk.rglob("*")
        if one.is_file()
    }


def test_another_server_takes_over_from_one_that_died_before_the_child_existed(
    porter: Porter,
) -> None:
    body = asked("taken over", agentId="keeper")
    porter.dies("before SessionCreated", **body)
    with porter.twin() as other:
        porter.forget_the_dead(other.url)
        answer = other.answer_again(**body)
        assert answer.status_code == 201, answer.text
        run_id = answer.json()["runId"]
        assert answer.json()["attachments"] == receipt(run_id)
        assert other.seen(run_id) == sight(other, run_id, "keeper")
        names = {Path(one).name for one in files_of(other.places.desk("keeper"))}
        assert names == {*CONTENTS, ".manifest.json"}
        other.let_go(run_id)
        assert other.run(run_id, "archived")["outcome"] == "success"
        steps = [one for one in other.steps(run_id) if one.endswith((":attachments", "Resumed"))]
        assert steps[:4] == [*BEGUN_TWICE, "StepTaken:attachments"]
        nothing_is_undone_twice(other, run_id)


def nothing_is_undone_twice(server: Porter, run_id: str) -> None:
    """The files are removed once, and nothing is left."""
    wait_for("the files to be undone", lambda: "undo:attachments:done" in server.steps(run_id))
    assert server.steps(run_id).count("undo:attachments:done") == 1
    nothing_is_left(server)


def test_a_server_that_slept_changes_nothing_of_what_another_one_wrote(
    porter: Porter, turnstile: Turnstile
) -> None:
    aside = held_before_its_files(porter, turnstile, "slept", "keeper")
    with porter.twin() as other:
        porter.forget_the_dead(other.url)
        run_id = other.run_of("agent:main:slept")
        assert other.seen(run_id) == sight(other, run_id, "keeper")
        written = files_of(other.places.desk("keeper"))
        turnstile.let_go()
        answer = aside.answer()
        assert answer is not None
        assert (answer.status_code, answer.json()["runId"]) == (201, run_id)
        assert files_of(other.places.desk("keeper")) == written
        other.let_go(run_id)
        assert other.run(run_id, "archived")["outcome"] == "success"
        nothing_is_undone_twice(other, run_id)


def test_a_server_that_slept_leaves_nothing_of_a_run_that_is_over(
    porter: Porter, turnstile: Turnstile
) -> None:
    aside = held_before_its_files(porter, turnstile, "overslept", "porter")
    with porter.twin() as other:
        porter.forget_the_dead(other.url)
        run_id = other.run_of("agent:main:overslept")
        assert other.run(run_id, "archived")["outcome"] == "success"
        nothing_is_undone_twice(other, run_id)
        turnstile.let_go()
        answer = aside.answer()
        assert answer is not None
        assert (answer.status_code, answer.json()["runId"]) == (201, run_id)
        nothing_is_undone_twice(other, run_id)
