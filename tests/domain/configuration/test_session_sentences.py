"""The life of a session in sentences."""

from domain.session.decide import (
    AdmitChild,
    CapReached,
    ReleaseChild,
    SettleChild,
)
from domain.values.refusals import Rejected
from tests.support.builders.session_histories import (
    CAP,
    CHILD_RUN,
    CLOSED,
    HISTORIES,
    RELEASED,
    SETTLED,
    admitted,
)
from tests.support.builders.storytelling import (
    ROOT,
    given_session,
    observed,
    run_id,
    session_of,
    stamp,
)


def test_a_session_keeps_what_was_seen_first() -> None:
    story = given_session(observed(depth=0))
    story.when(observed(depth=7, agent_id="other")).then()
    assert session_of(observed(depth=0)).agent_id == "main"


def test_a_place_is_given_exactly_as_often_as_there_are_places() -> None:
    story = given_session(observed())
    for taken in range(CAP):
        story = story.when(AdmitChild(run_id(10 + taken), CAP)).then(admitted(10 + taken, taken))
    story.when(AdmitChild(run_id(12), CAP)).refused(CapReached, "2 of 2")
    story = story.when(ReleaseChild(run_id(10))).then(RELEASED)
    story = story.when(AdmitChild(run_id(12), CAP)).then(admitted(12, 1))
    assert story.state is not None
    assert story.state.counted == (run_id(11), run_id(12))
    assert (story.state.active_children, story.state.admitted) == (2, 3)


def test_a_cap_that_was_lowered_below_what_is_taken_admits_nobody() -> None:
    story = given_session(*HISTORIES["root-full"])
    story.when(AdmitChild(run_id(12), 1)).refused(CapReached, "2 of 1")


def test_a_child_is_released_and_settled_only_once() -> None:
    story = given_session(*HISTORIES["child-with-child"])
    story = story.when(ReleaseChild(CHILD_RUN)).then(RELEASED)
    story.when(ReleaseChild(CHILD_RUN)).then()
    story = story.when(SettleChild(CHILD_RUN)).then(SETTLED)
    story.when(SettleChild(CHILD_RUN)).then()


def test_only_a_child_waits_for_the_announcements_of_its_own_children() -> None:
    assert session_of(*HISTORIES["root-with-child"]).unsettled == ()
    assert session_of(*HISTORIES["child-with-child"]).unsettled == (CHILD_RUN,)


def test_a_session_that_is_not_on_record_is_told_so() -> None:
    given_session().when(AdmitChild(CHILD_RUN, CAP)).refused(Rejected, "not on record")


def test_a_session_carries_where_and_when_it_was_first_seen() -> None:
    session = session_of(observed(), CLOSED)
    assert (session.session_key, session.version) == (ROOT, 2)
    assert (session.created_position, session.created_at) == (1, stamp(1).recorded_at)
    assert session.closed_at == stamp(2).recorded_at
