"""A run that waits for others: it is queued when they are done, and ends when one failed."""

import pytest

from domain.run.commands import SettleDependencies
from domain.run.facts import Dependency, DependencyNeeds
from domain.spawn.dependencies import DependencyFailed, dependency_verdict, linked_runs
from domain.values.refusals import ReadAgain
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.family_log import FamilyLog
from tests.support.builders.storytelling import ref, run_of
from tests.support.builders.waiting_runs import dependency


def on(log: FamilyLog, *names: str, require: DependencyNeeds = "success") -> tuple[Dependency, ...]:
    return tuple(
        Dependency(run_id=log.run(name).run_id, name=name, via="dependsOn", require=require)
        for name in names
    )


def settle(log: FamilyLog, name: str, culprit: str | None = None) -> list[str]:
    found = log.run(culprit).run_id if culprit is not None else None
    error = ref("it was not started") if culprit is not None else None
    return log.tell(name, SettleDependencies(lane="subagent", culprit=found, error=error))


def test_a_run_waits_until_all_that_it_depends_on_are_done() -> None:
    log = FamilyLog()
    log.begin("a")
    log.begin("b")
    log.spawn("after", dependencies=on(log, "a", "b"))
    assert log.create("after")[-1] == "run after RunWaits"
    assert (log.run("after").holder, log.run("after").stage) == (None, "session-created")
    assert settle(log, "after") == []
    log.end("a")
    assert settle(log, "after") == ["run after DependencyMet"]
    assert log.run("after").waits_for == (log.run("b").run_id,)
    assert linked_runs([log.run("after")]) == {log.run("b").run_id}
    log.end("b")
    assert settle(log, "after") == ["run after DependencyMet", "run after RunQueued"]
    assert (log.run("after").stage, log.run("after").waits_for) == ("queued", None)
    assert settle(log, "after") == []


def test_a_run_whose_dependencies_are_done_is_queued_at_once() -> None:
    log = FamilyLog()
    log.begin("a")
    log.end("a")
    log.spawn("after", dependencies=on(log, "a"))
    assert log.create("after")[-2:] == ["run after DependencyMet", "run after RunQueued"]
    assert log.run("after").waits_for is None


def test_a_run_that_waits_takes_a_place_and_gives_it_back_when_it_is_in_vain() -> None:
    log = FamilyLog()
    log.begin("a")
    log.spawn("after", dependencies=on(log, "a"))
    log.create("after")
    assert log.counted("main") == ["a", "after"]
    log.tell("a", ask.end(log.run("a").epoch, outcome="error"))
    with pytest.raises(ReadAgain):
        settle(log, "after")
    assert settle(log, "after", "a") == ["run after RunEnded", "session main ChildReleased"]
    after = log.run("after")
    assert (after.outcome, after.end_reason, after.started_at) == (
        "error",
        "dependency_failed",
        None,
    )
    assert log.announce("after") == ["run after RunAnnounced"]


def test_a_run_cannot_be_created_when_one_that_it_depends_on_has_failed() -> None:
    log = FamilyLog()
    log.begin("a")
    log.spawn("after", dependencies=on(log, "a"))
    log.spawn("anyway", dependencies=on(log, "a", require="ended"))
    log.tell("a", ask.end(log.run("a").epoch, outcome="timeout"))
    with pytest.raises(DependencyFailed, match="ended as timeout") as caught:
        log.create("after")
    assert caught.value.dependency.name == "a"
    assert log.create("anyway")[-1] == "run anyway RunQueued"


def test_one_that_waits_can_be_stopped() -> None:
    log = FamilyLog()
    log.begin("a")
    log.spawn("after", dependencies=on(log, "a"))
    log.create("after")
    assert log.tell("after", ask.stop()) == ["run after RunEnded", "session main ChildReleased"]
    assert settle(log, "after") == []


@pytest.mark.parametrize(
    ("history", "with_success", "with_any_end"),
    [
        (past.a_queued_run(), "waits", "waits"),
        (past.a_started_run(), "waits", "waits"),
        (past.an_ended_run_with_pending_descendants(), "waits", "waits"),
        (
            (*past.a_started_run(), past.ended(outcome="error", pending_descendants=1)),
            "failed",
            "waits",
        ),
        (past.an_ended_run(), "met", "met"),
        (past.an_announced_run(), "met", "met"),
        (past.an_archived_run(), "met", "met"),
        ((*past.a_started_run(), past.ended(outcome="stopped")), "failed", "met"),
        (past.a_refused_run(), "failed", "failed"),
    ],
)
def test_what_a_target_is_good_for(
    history: past.History, with_success: str, with_any_end: str
) -> None:
    target = run_of(*history)
    assert dependency_verdict(dependency(), target) == with_success
    assert dependency_verdict(dependency(require="ended"), target) == with_any_end
