"""Which messages continue a session."""

import pytest

from domain.plan.child import RefusedChild
from domain.run.events import (
    SpawnRefused,
)
from domain.run.facts import SpawnOptions
from domain.run.plan_facts import PlanFacts
from domain.spawn.continuation import (
    Message,
    NoSession,
    RunIsActive,
    continue_session,
    must_take_messages,
)
from domain.values.refusals import ReadAgain, Refusal, Rejected, SessionIsClosed
from tests.support.builders import continued_runs as continued
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import FamilyLog, announced, keep
from tests.support.builders.storytelling import ref, run_id

# A message to a session becomes a run of its own: when it does, and what place that takes.

GONE_ON_WITH = [
    "run again MessageReceived",
    "session main ChildAdmitted",
    "run scout RunContinued",
    "session scout SessionContinued",
    "run again ContinuationPlanned",
    "run again RunQueued",
]


def test_a_message_takes_a_place_moves_the_session_on_and_waits_in_the_lane() -> None:
    log = announced("scout")
    assert log.message("again", "scout") == GONE_ON_WITH
    scout, again, session = log.run("scout"), log.run("again"), log.session("scout")
    assert (again.stage, again.lane, again.lane_depth) == ("queued", "subagent", 1)
    assert (again.continues, again.opened_by) == (scout.run_id, scout.run_id)
    assert (scout.continued_by, session.run_id) == (again.run_id, again.run_id)
    assert (log.counted("main"), log.session("main").admitted) == (["again"], 2)


@pytest.mark.parametrize("taken", [2, 3])
def test_where_all_places_are_taken_a_message_is_refused_and_takes_none(taken: int) -> None:
    log = announced("scout", max_children=taken)
    for number in range(taken):
        log.begin(f"r{number}")
    before = log.session("scout"), log.run("scout"), log.counted("main")
    judged = log.judge("again", "scout", max_children=2)
    assert log.record(judged.changes) == ["run again MessageReceived", "run again SpawnRefused"]
    assert judged.refusal is not None
    assert (judged.refusal.rule, judged.refusal.status) == ("active_children", "forbidden")
    assert judged.refusal.text.endswith(f"for this session ({taken}/2)")
    refused = log.recorded[-1].event
    assert isinstance(refused, SpawnRefused)
    assert (refused.rule, refused.step, refused.facts) == ("active_children", "admission", None)
    assert refused.inputs == {"current": taken, "limit": 2}
    assert refused.text == keep("refusal", judged.refusal.text)
    assert (log.session("scout"), log.run("scout"), log.counted("main")) == before
    log.finish("r0")
    if taken == 2:
        assert "session main ChildAdmitted" in log.message("later", "scout", max_children=2)


def test_a_run_that_cannot_be_planned_any_more_is_refused_with_what_was_looked_at() -> None:
    log = announced("scout")
    rule = Refusal(rule="runtime", status="error", text="there is no runtime")
    facts = PlanFacts(agent_configured=True)
    before = log.session("scout"), log.run("scout"), log.counted("main")
    judged = log.judge("again", "scout", planned=RefusedChild(refusal=rule, facts=facts))
    assert judged.refusal == rule
    assert log.record(judged.changes) == ["run again MessageReceived", "run again SpawnRefused"]
    refused = log.recorded[-1].event
    assert isinstance(refused, SpawnRefused)
    assert (refused.rule, refused.status, refused.step) == ("runtime", "error", "preparation")
    assert refused.facts == facts
    assert (log.session("scout"), log.run("scout"), log.counted("main")) == before
    assert log.run("again").stage == "refused"
    assert log.message("later", "scout")[-1] == "run later RunQueued"


def test_the_cap_is_asked_before_the_plan() -> None:
    log = announced("scout")
    rule = Refusal(rule="runtime", status="error", text="there is no runtime")
    unfit = RefusedChild(refusal=rule, facts=PlanFacts())
    judged = log.judge("again", "scout", planned=unfit, max_children=0)
    assert judged.refusal is not None
    assert judged.refusal.rule == "active_children"


# When a session takes no message: it is busy, put away, or not as it was read.


def queued(log: FamilyLog) -> None:
    """In its lane."""
    log.spawn("scout")
    log.create("scout")


def test_a_session_that_is_to_be_deleted_is_gone_on_with_while_messages_wait() -> None:
    log = FamilyLog()
    log.spawn("scout", options=SpawnOptions(cleanup="delete"))
    log.create("scout")
    log.tell("scout", ask.claim())
    log.tell("scout", ask.start(log.run("scout").epoch))
    log.tell("scout", continued.queue(run_id=run_id(2)))
    log.finish("scout")
    assert log.message("second", "scout", has_waited=True)[-1] == "run second RunQueued"
    assert log.run("second").cleanup == "delete"


def test_those_that_do_not_wait_for_anybody_raise_what_there_is_to_raise() -> None:
    log = announced("scout")
    session, run = log.session("scout"), log.run("scout")
    must_take_messages(session, run)
    unsettled = session.changed({"unsettled": (run_id(9),)})
    with pytest.raises(RunIsActive):
        must_take_messages(unsettled, run)
    for closed in (
        (session.changed({"stage": "closed"}), run),
        (session, run.changed({"stage": "archived"})),
        (session, run.changed({"put_away_from": run.announced_at})),
    ):
        with pytest.raises(SessionIsClosed):
            must_take_messages(*closed)
    assert issubclass(NoSession, Rejected)


def test_of_two_messages_made_from_the_same_run_the_second_reads_again() -> None:
    log = announced("scout")
    stale = log.run("scout")
    log.message("first", "scout")
    with pytest.raises(ReadAgain, match="went on meanwhile"):
        log.message("second", "scout", last=stale)
    with pytest.raises(RunIsActive):
        log.message("second", "scout")


@pytest.mark.parametrize("missing", ["session", "run", "requester", "above"])
def test_what_is_not_among_what_was_read_is_read_again(missing: str) -> None:
    log = announced("top", "scout")
    last, fold = log.run("scout"), log.fold
    keys = {"session": log.key("scout"), "requester": log.key("top")}
    runs = {"run": last.run_id, "above": log.run("top").run_id}
    message = Message(
        run_id=run_id(9), text=ref("m"), by="admin", config_revision=1, max_children=5
    )
    with pytest.raises(ReadAgain):
        continue_session(
            {key: one for key, one in fold.sessions.items() if key != keys.get(missing)},
            {run: one for run, one in fold.runs.items() if run != runs.get(missing)},
            *(message, last, continued.planned(), keep),
        )
