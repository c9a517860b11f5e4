"""When a session is put away, and what was provided for it."""

from collections.abc import Callable

import pytest

from domain.run.events import ArchiveScheduled
from domain.session.decide import ProvideTranscript
from domain.session.events import SessionClosed, TranscriptProvided
from domain.session.state import ProvidedTranscript
from domain.values.refusals import SessionIsClosed, WrongStage
from tests.support.builders import continued_runs as continued
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import FamilyLog, announced
from tests.support.builders.storytelling import (
    ROOT,
    given_session,
    observed,
    ref,
)

# How a session of several runs is put away: the newest run first, and then each before it.


def three_runs() -> FamilyLog:
    """The session of `scout` has gone on twice, and its newest run is announced."""
    log = announced("scout")
    for name in ("second", "third"):
        log.go_on(name, "scout")
        log.finish(name)
    return log


def closings(log: FamilyLog) -> list[str]:
    """Why sessions were closed, in order."""
    return [one.event.reason for one in log.recorded if isinstance(one.event, SessionClosed)]


def test_the_newest_run_is_archived_first_closes_the_session_and_each_before_it_follows() -> None:
    log = three_runs()
    assert log.tell("third", ask.archive()) == [
        "run third RunArchived",
        "session scout SessionClosed",
        "run second ArchiveScheduled",
    ]
    second = log.run("second")
    assert second.archive_at == second.put_away_from == log.recorded[-1].stamp.recorded_at
    assert (log.run("scout").archive_at, log.run("scout").put_away_from) == (None, None)
    assert log.tell("second", ask.archive()) == [
        "run second RunArchived",
        "run scout ArchiveScheduled",
    ]
    assert log.run("scout").archive_at is not None
    assert log.tell("scout", ask.archive()) == ["run scout RunArchived"]
    assert closings(log) == ["archived"]
    reasons = [one.event for one in log.recorded if isinstance(one.event, ArchiveScheduled)]
    assert [one.reason for one in reasons] == ["continuation_archived"] * 2


def test_a_run_that_was_gone_on_with_is_not_due_and_cannot_be_archived() -> None:
    log = announced("scout")
    assert log.run("scout").archive_at is not None
    log.message("again", "scout")
    assert log.run("scout").archive_at is None
    before = list(log.recorded)
    with pytest.raises(WrongStage, match="cannot archive the run: the run is continued by run"):
        log.tell("scout", ask.archive())
    assert log.recorded == before
    assert log.session("scout").stage == "open"
    log.tell("again", ask.stop())
    log.announce("again")
    with pytest.raises(WrongStage):
        log.tell("scout", ask.archive())
    log.tell("again", ask.archive())
    assert log.tell("scout", ask.archive()) == ["run scout RunArchived"]


STEPS: dict[str, Callable[[FamilyLog, str], object]] = {
    "queued": lambda log, name: None,
    "claimed": lambda log, name: log.tell(name, ask.claim()),
    "started": lambda log, name: log.tell(name, ask.start(log.run(name).epoch)),
    "ended": lambda log, name: log.end(name),
    "announced": lambda log, name: log.announce(name),
}


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("stage", STEPS)
def test_a_session_that_is_closed_is_put_away_as_soon_as_its_run_is_announced(
    stage: str, goes_on: bool
) -> None:
    log = announced("scout") if goes_on else FamilyLog()
    name = "again" if goes_on else "scout"
    if goes_on:
        log.message(name, "scout")
    else:
        log.spawn(name)
        log.create(name)
    steps = iter(STEPS.items())
    for reached, step in steps:
        step(log, name)
        if reached == stage:
            break
    assert log.tell(name, continued.close()) == [
        f"run {name} ArchiveScheduled",
        "session scout SessionClosed",
    ]
    assert log.tell(name, continued.close()) == []
    assert log.run(name).put_away_from is not None
    with pytest.raises(SessionIsClosed):
        log.spawn("below", "scout")
    for _, step in steps:
        assert log.run(name).archive_at is None
        step(log, name)
    run = log.run(name)
    announced_at = run.announced_at
    assert announced_at is not None
    assert run.archive_at == (run.put_away_from if stage == "announced" else announced_at)
    before = ["run scout ArchiveScheduled"] if goes_on else []
    assert log.tell(name, ask.archive()) == [f"run {name} RunArchived", *before]
    assert closings(log) == ["closed"]


# What was said in a session that is not of ours: told whole, each time anew.

PROVIDED = TranscriptProvided(entries=2, tokens=40, content=ref("said so far"), by=ROOT)


def provide(text: str = "said so far", tokens: int | None = 40) -> ProvideTranscript:
    """Two entries have been said."""
    return ProvideTranscript(entries=2, tokens=tokens, content=ref(text), by=ROOT)


def test_the_transcript_that_was_told_last_counts_and_where_it_was_told() -> None:
    story = given_session(observed(), PROVIDED)
    story.when(provide()).then()
    longer = story.when(provide("said so far and more")).then(TranscriptProvided)
    recounted = longer.when(provide("said so far and more", tokens=None)).then(TranscriptProvided)
    first, last = story.state, recounted.state
    assert first is not None
    assert last is not None
    assert first.transcript == ProvidedTranscript(
        entries=2, tokens=40, content=ref("said so far"), by=ROOT, position=2
    )
    assert last.transcript == ProvidedTranscript(
        entries=2, content=ref("said so far and more"), by=ROOT, position=4
    )
