"""A run that nobody came for is ended without a holder, and no other run is."""

import pytest

from domain.run.decide import NOT_CLAIMED
from domain.values.refusals import LostClaim, WrongStage
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import FamilyLog


def test_only_a_run_without_a_holder_ends_because_nobody_came() -> None:
    log = FamilyLog()
    for name in ("scout", "late"):
        log.spawn(name)
        log.create(name)
    waiting = log.run("scout")
    unclaimed = ask.end(waiting.epoch, outcome="error", reason=NOT_CLAIMED)
    with pytest.raises(WrongStage, match="not claimed"):
        log.tell("scout", ask.end(waiting.epoch))
    read_before = ask.end(log.run("late").epoch, outcome="error", reason=NOT_CLAIMED)
    log.tell("late", ask.claim())
    with pytest.raises(LostClaim):
        log.tell("late", read_before)
    with pytest.raises(WrongStage, match="claimed"):
        log.tell("late", ask.end(log.run("late").epoch, outcome="error", reason=NOT_CLAIMED))
    log.tell("scout", unclaimed)
    assert (log.run("scout").outcome, log.run("scout").started_at) == ("error", None)
