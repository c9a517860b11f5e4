"""Consequences of a run's end in its family, and messages that continue a session."""

from collections.abc import Callable

import pytest

from domain.plan.child import RefusedChild
from domain.run.events import SpawnRefused
from domain.run.facts import SpawnOptions
from domain.run.plan_facts import PlanFacts
from domain.spawn.cascade import CascadeState, KeyTaken, decide, streams_of
from domain.spawn.continuation import (
    Message,
    NoSession,
    RunIsActive,
    continue_session,
    require_message_capacity,
)
from domain.values.record import session_key_of, session_stream
from domain.values.refusals import NotYet, ReadAgain, Refusal, Rejected, SessionIsClosed
from tests.support.builders import continued_runs as continued
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import FamilyLog, announced, child_key, keep
from tests.support.builders.storytelling import observed, ref, run_id

# Runs and the sessions above them: places, their release, and the events of each append.


def requested(log: FamilyLog, name: str, by: str) -> None:
    """Request a run whose scripts have not run."""
    log.spawn(name, by)


def resolved(log: FamilyLog, name: str, by: str) -> None:
    """Request a run whose scripts have run, without a key."""
    log.spawn(name, by)
    log.tell(name, ask.resolve(log.run(name).epoch))


def prepared(log: FamilyLog, name: str, by: str) -> None:
    """Key minted, session not created."""
    resolved(log, name, by)
    epoch = log.run(name).epoch
    log.tell(name, ask.prepare(epoch, child_session_key=child_key(log.run(name).run_id)))


Bring = Callable[[FamilyLog, str, str], None]

PREPARING = [requested, resolved, prepared]


def test_child_without_descendants_is_released_with_its_end() -> None:
    log = FamilyLog()
    log.begin("scout")
    assert log.end("scout") == ["run scout RunEnded", "session main ChildReleased"]
    assert log.announce("scout") == ["run scout RunAnnounced"]
    assert log.counted("main") == []


@pytest.mark.parametrize("bring", PREPARING)
def test_refusal_gives_the_place_back_in_its_own_append(bring: Bring) -> None:
    log = FamilyLog(max_children=1)
    bring(log, "scout", "main")
    assert log.refuse("scout") == ["run scout SpawnRefused", "session main ChildReleased"]
    assert log.spawn("helper") == ["run helper SpawnRequested", "session main ChildAdmitted"]


def test_last_announced_descendant_releases_its_orchestrator() -> None:
    log = FamilyLog()
    log.begin("scout")
    log.begin("one", "scout")
    log.begin("two", "scout")
    log.end("scout")
    assert log.end("two") == ["run two RunEnded", "session scout ChildReleased"]
    assert log.announce("two") == ["run two RunAnnounced", "session scout ChildSettled"]
    log.end("one")
    with pytest.raises(NotYet):
        log.announce("scout")
    assert log.announce("one") == [
        "run one RunAnnounced",
        "session scout ChildSettled",
        "run scout DescendantsSettled",
        "session main ChildReleased",
    ]
    assert log.counted("main") == []
    assert log.announce("scout") == ["run scout RunAnnounced"]


# Final states of a family: archives, closed sessions, keys, and idempotent commands.


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (1, "the run of session .* is over, .* or continue it with a message"),
        (2, "the run of session .* is over, .* or continue it with a message"),
        (3, "is closed and cannot spawn"),
    ],
)
def test_session_whose_run_is_over_spawns_no_more(steps: int, message: str) -> None:
    log = FamilyLog()
    log.begin("scout")
    for step in (log.end, log.announce, lambda name: log.tell(name, ask.archive()))[:steps]:
        step("scout")
    before = list(log.recorded)
    with pytest.raises(SessionIsClosed, match=message) as refused:
        log.spawn("below", "scout")
    assert "spawn from the session that spawned it" in str(refused.value)
    assert (log.session("scout").stage == "closed") is ("is closed" in str(refused.value))
    assert log.recorded == before


def test_minted_key_already_in_use_is_refused() -> None:
    log = FamilyLog()
    log.spawn("scout")
    epoch = log.run("scout").epoch
    log.tell("scout", ask.resolve(epoch))
    minted = log.key("scout")
    log.tell("scout", ask.prepare(epoch, child_session_key=minted))
    log.record([(session_stream(minted), observed(session_key=minted, depth=1))])
    with pytest.raises(KeyTaken, match=minted):
        log.tell("scout", ask.create(epoch))
    fresh = child_key(run_id(77))
    log.tell("scout", ask.prepare(epoch, child_session_key=fresh), ask.create(epoch))
    assert log.run("scout").child_session_key == fresh


def test_stop_read_before_the_session_is_read_again() -> None:
    log = FamilyLog()
    log.spawn("scout")
    named_too_early = streams_of(log.run("scout"))
    log.create("scout")
    log.begin("below", "scout")
    keys = {session_key_of(stream) for stream in named_too_early}
    known = {key: session for key, session in log.fold.sessions.items() if key in keys}
    with pytest.raises(ReadAgain):
        log.record(decide(CascadeState(log.fold.runs, known), log.run("scout").run_id, ask.stop()))
    assert log.counted("main") == ["scout"]


# Runs that continue sessions, and the sessions above and below: which count, and which wait.


def test_message_is_refused_while_requester_is_announced() -> None:
    log = FamilyLog()
    log.begin("scout")
    log.begin("below", "scout")
    log.finish("below")
    log.end("scout")
    before = list(log.recorded)
    with pytest.raises(RunIsActive, match="is being announced") as failure:
        log.message("again", "below")
    assert str(log.run("scout").run_id) in str(failure.value)
    assert log.recorded == before
    assert log.announce("scout") == ["run scout RunAnnounced"]
    assert log.message("later", "below")[-1] == "run later RunQueued"


def test_spawn_is_requested_by_the_newest_run() -> None:
    log = announced("scout")
    log.go_on("again", "scout")
    log.tell("again", ask.stop())
    with pytest.raises(SessionIsClosed, match="is being stopped"):
        log.spawn("below", "scout")
    log.end("again")
    with pytest.raises(SessionIsClosed, match=r"the run of session .* is over"):
        log.spawn("below", "scout")


# A message to a session becomes a run: conditions, and its place under the cap.

GONE_ON_WITH = [
    "run again MessageReceived",
    "session main ChildAdmitted",
    "run scout RunContinued",
    "session scout SessionContinued",
    "run again ContinuationPlanned",
    "run again RunQueued",
]


def test_message_takes_a_place_and_waits_in_the_lane() -> None:
    log = announced("scout")
    assert log.message("again", "scout") == GONE_ON_WITH
    scout, again, session = log.run("scout"), log.run("again"), log.session("scout")
    assert (again.stage, again.lane, again.lane_depth) == ("queued", "subagent", 1)
    assert (again.continues, again.opened_by) == (scout.run_id, scout.run_id)
    assert (scout.continued_by, session.run_id) == (again.run_id, again.run_id)
    assert (log.counted("main"), log.session("main").admitted) == (["again"], 2)


@pytest.mark.parametrize("taken", [2, 3])
def test_message_without_a_free_place_is_refused(taken: int) -> None:
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


def test_unplannable_message_is_refused_with_its_facts() -> None:
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


def test_cap_is_asked_before_the_plan() -> None:
    log = announced("scout")
    rule = Refusal(rule="runtime", status="error", text="there is no runtime")
    unfit = RefusedChild(refusal=rule, facts=PlanFacts())
    judged = log.judge("again", "scout", planned=unfit, max_children=0)
    assert judged.refusal is not None
    assert judged.refusal.rule == "active_children"


# A session refuses a message while it is active, archived, or changed since the read.


def queued(log: FamilyLog) -> None:
    """Queue the run `scout`."""
    log.spawn("scout")
    log.create("scout")


def test_session_to_be_deleted_takes_queued_messages() -> None:
    log = FamilyLog()
    log.spawn("scout", options=SpawnOptions(cleanup="delete"))
    log.create("scout")
    log.tell("scout", ask.claim())
    log.tell("scout", ask.start(log.run("scout").epoch))
    log.tell("scout", continued.queue(run_id=run_id(2)))
    log.finish("scout")
    assert log.message("second", "scout", has_waited=True)[-1] == "run second RunQueued"
    assert log.run("second").cleanup == "delete"


def test_session_takes_messages_only_while_idle_and_open() -> None:
    log = announced("scout")
    session, run = log.session("scout"), log.run("scout")
    require_message_capacity(session, run)
    unsettled = session.changed({"unsettled": (run_id(9),)})
    with pytest.raises(RunIsActive):
        require_message_capacity(unsettled, run)
    for closed in (
        (session.changed({"stage": "closed"}), run),
        (session, run.changed({"stage": "archived"})),
        (session, run.changed({"put_away_from": run.announced_at})),
    ):
        with pytest.raises(SessionIsClosed):
            require_message_capacity(*closed)
    assert issubclass(NoSession, Rejected)


def test_second_message_from_one_run_is_read_again() -> None:
    log = announced("scout")
    stale = log.run("scout")
    log.message("first", "scout")
    with pytest.raises(ReadAgain, match="changed meanwhile"):
        log.message("second", "scout", last=stale)
    with pytest.raises(RunIsActive):
        log.message("second", "scout")


@pytest.mark.parametrize("missing", ["session", "run", "requester", "above"])
def test_missing_states_are_read_again(missing: str) -> None:
    log = announced("top", "scout")
    last, fold = log.run("scout"), log.fold
    keys = {"session": log.key("scout"), "requester": log.key("top")}
    runs = {"run": last.run_id, "above": log.run("top").run_id}
    message = Message(
        run_id=run_id(9), text=ref("m"), by="admin", config_revision=1, max_children=5
    )
    with pytest.raises(ReadAgain):
        continue_session(
            {key: session for key, session in fold.sessions.items() if key != keys.get(missing)},
            {run: item for run, item in fold.runs.items() if run != runs.get(missing)},
            *(message, last, continued.planned(), keep),
        )
