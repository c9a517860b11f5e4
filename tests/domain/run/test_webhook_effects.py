"""How often an announcement is sent to a webhook, and what becomes of one that is not taken."""

import pytest

from domain.run.commands import AcknowledgeAnnouncement
from domain.run.effects import PAUSE_SECONDS_MAX, NothingParked
from domain.run.events import EffectAttempted
from domain.values.refusals import CorruptHistory
from tests.support.builders import effects
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.storytelling import given, run_of


def test_a_refused_spawn_of_which_nobody_was_there_to_be_told_is_sent_too() -> None:
    run = run_of(*past.a_resolved_run(), past.refused_and_told(webhooks=("gateway",)))
    assert run.effects_at is not None


def pauses(failures: int, **changes: object) -> list[int]:
    """How long is waited after each of so many failures."""
    story = given(*effects.an_announced_run())
    for attempt in range(1, failures + 1):
        story = story.when(effects.failed(attempt=attempt, attempts_max=99, **changes)).after()
    return [
        one.retry_after_seconds or 0 for one in story.events if isinstance(one, EffectAttempted)
    ]


def test_each_pause_is_twice_as_long_less_up_to_a_half_and_has_an_end() -> None:
    waited = pauses(16)
    for number, pause in enumerate(waited):
        longest = min(2 ** min(number, 12), 3600)
        assert max(1, longest // 2) <= pause <= longest
    assert waited[-1] <= 3600


@pytest.mark.parametrize(
    ("asked", "pause"), [(0, 1), (600, 600), (10**8, PAUSE_SECONDS_MAX)], ids=str
)
def test_a_receiver_may_want_a_longer_pause_of_a_day_at_most(asked: int, pause: int) -> None:
    assert pauses(1, pause_seconds=asked) == [pause]


def test_the_last_failure_parks_it_and_tells_its_reader_once_more() -> None:
    story = given(*effects.an_announced_run()).when(ask.acknowledge()).after()
    for attempt in (1, 2):
        story = story.when(effects.failed(attempt=attempt)).after()
    story = story.when(effects.failed(attempt=3)).after()
    assert story.events[-1] == effects.parked(attempts=3, reason="attempts")
    run = story.state
    assert run is not None
    assert run.inbox is not None
    assert (run.inbox.acknowledged_at, run.effects_at) == (None, None)
    assert run.inbox.position > run.inbox.announced_position


def test_an_answer_that_is_for_good_is_the_last_one() -> None:
    story = (
        given(*effects.an_announced_run())
        .when(effects.failed(status_code=410, refused=True))
        .after()
    )
    assert story.events[-1] == effects.parked(attempts=1, reason="refused")


def test_who_took_it_before_it_was_parked_has_not_taken_that() -> None:
    story = given(*effects.an_announced_run(), effects.attempted(), effects.parked())
    run = story.state
    assert run is not None
    assert run.inbox is not None
    read_at = run.inbox.announced_position
    story.when(AcknowledgeAnnouncement(by="main", position=read_at)).then()
    again = AcknowledgeAnnouncement(by="main", position=run.inbox.position)
    after = story.when(again).after()
    assert after.state is not None
    assert after.state.inbox is not None
    assert after.state.inbox.acknowledged_at is not None


def test_why_it_is_parked_is_known_until_it_is_redriven() -> None:
    story = given(*effects.an_announced_run()).when(effects.park()).after()
    again = story.when(effects.redrive()).after()
    states = (story.state, again.state)
    reasons = [one.reason for run in states if run for one in run.effects]
    assert reasons == ["not_configured", None]


def test_what_is_parked_is_sent_as_often_as_at_first_once_it_is_redriven() -> None:
    story = given(*effects.an_announced_run(), effects.attempted(), effects.parked())
    with pytest.raises(NothingParked, match="no parked delivery to webhook ops"):
        story.when(effects.redrive("ops")).after()
    again = story.when(effects.redrive()).then(effects.redriven())
    assert again.state is not None
    assert again.state.effects_at is not None
    once = again.when(effects.failed(attempt=2, attempts_max=2)).after()
    assert isinstance(once.events[-1], EffectAttempted)
    twice = once.when(effects.failed(attempt=3, attempts_max=2)).after()
    assert twice.events[-1] == effects.parked(attempts=3)
    with pytest.raises(NothingParked):
        given(*effects.an_announced_run()).when(effects.redrive()).after()


def test_a_webhook_that_is_gone_is_no_attempt() -> None:
    story = given(*effects.an_announced_run()).when(effects.park())
    after = story.then(effects.parked(attempts=0, reason="not_configured"))
    after.when(effects.park()).then()


def test_a_history_that_sends_it_to_somebody_else_is_corrupt() -> None:
    with pytest.raises(CorruptHistory, match="webhook ops"):
        run_of(*effects.an_announced_run(), effects.parked(name="ops"))
