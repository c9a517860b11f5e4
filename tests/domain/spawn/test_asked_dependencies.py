"""Whether a spawn may wait for what it is asked to: rings, failures, and what stands between."""

import pytest

from domain.run.facts import Dependency, DependencyNeeds
from domain.spawn.dependencies import find_cycle
from domain.spawn.request import merge_dependencies
from domain.values.refusals import ReadAgain
from tests.support.builders import continued_runs as sent
from tests.support.builders.family_log import FamilyLog
from tests.support.builders.storytelling import run_id


def on(log: FamilyLog, *names: str, require: DependencyNeeds = "success") -> tuple[Dependency, ...]:
    return tuple(
        Dependency(run_id=log.run(name).run_id, name=name, via="dependsOn", require=require)
        for name in names
    )


def refused(log: FamilyLog, name: str, by: str, *names: str) -> tuple[str, str] | None:
    """The rule and the text, with the names of the runs in place of their ids."""
    answered = log.answer(name, by, dependencies=on(log, *names))
    log.record(answered.changes)
    if answered.refusal is None:
        return None
    text = answered.refusal.text
    for known, called in log.names.items():
        text = text.replace(str(known), called)
    return answered.refusal.rule, text


def test_nobody_waits_for_its_own_run_or_one_above_it() -> None:
    log = FamilyLog()
    log.begin("a")
    log.begin("aa", "a")
    for name in ("a", "aa"):
        told = refused(log, f"after {name}", "aa", name)
        assert told is not None
        assert told[0] == "dependency_cycle"
        assert told[1].endswith("own run or one above it, and those end after what they spawn")
    assert log.counted("aa") == []


def test_spawn_judged_below_an_older_run_is_read_again() -> None:
    log = FamilyLog()
    log.begin("a")
    log.finish("a")
    log.go_on("newest", "a")
    with pytest.raises(ReadAgain, match="went on meanwhile"):
        log.answer("b", "a", dependencies=on(log, "newest"), ancestors=(log.run("a").run_id,))
    told = refused(log, "b", "a", "newest")
    assert told is not None
    assert told[0] == "dependency_cycle"


def test_a_ring_through_others_is_told_with_the_way() -> None:
    log = FamilyLog()
    for name in "abc":
        log.begin(name)
    log.spawn("w", dependencies=on(log, "b"))
    assert refused(log, "in a", "a", "w") is None
    assert refused(log, "in b", "b", "a") == (
        "dependency_cycle",
        'dependsOn names "a" (run a), which waits, by run in a → run w, for run b above this spawn:'
        " each would wait for the other for ever",
    )
    assert refused(log, "in b too", "b", "c") is None


def yield_and_go_on(log: FamilyLog, name: str, newest: str) -> None:
    """The session of a run goes on in its place, while its children are at work."""
    log.tell(name, sent.yield_run())
    log.end(name)
    log.go_on(newest, name)


def test_a_session_that_went_on_waits_for_what_it_spawned_before() -> None:
    log = FamilyLog()
    log.begin("s")
    log.begin("b")
    log.spawn("x", "s", dependencies=on(log, "b"))
    yield_and_go_on(log, "s", "newest")
    assert refused(log, "y", "b", "newest") == (
        "dependency_cycle",
        'dependsOn names "newest" (run newest), which waits, by run x, for run b above this spawn:'
        " each would wait for the other for ever",
    )


def test_what_waits_for_an_older_run_waits_no_longer_once_its_session_went_on() -> None:
    log = FamilyLog()
    for name in "sb":
        log.begin(name)
    log.begin("child", "s")
    log.spawn("w", dependencies=on(log, "s"))
    assert refused(log, "in s", "s", "w") is not None
    yield_and_go_on(log, "s", "newest")
    assert refused(log, "in newest", "newest", "w") is None
    assert refused(log, "behind the older", "newest", "s") is None


def test_nobody_waits_for_the_newest_run_of_a_session_above() -> None:
    log = FamilyLog()
    log.begin("s")
    log.begin("c", "s")
    yield_and_go_on(log, "s", "newest")
    told = refused(log, "z", "c", "newest")
    assert told is not None
    assert told[0] == "dependency_cycle"
    assert told[1].endswith("own run or one above it, and those end after what they spawn")


def test_run_above_is_waited_for_once_it_is_over() -> None:
    log = FamilyLog()
    log.begin("s")
    log.begin("c", "s")
    assert refused(log, "too early", "c", "s") is not None
    yield_and_go_on(log, "s", "newest")
    assert refused(log, "after s", "c", "s") is None


def test_a_session_that_is_announced_waits_for_nothing_that_its_children_do_later() -> None:
    log = FamilyLog(max_spawn_depth=4)
    for name in "sb":
        log.begin(name)
    log.begin("c", "s")
    log.begin("d", "c")
    log.finish("d", "c")
    log.go_on("later", "d")
    log.spawn("x", "later", dependencies=on(log, "b"))
    assert refused(log, "y", "b", "s") is None
    assert refused(log, "z", "b", "later") is not None


def test_what_is_met_or_refused_closes_no_ring() -> None:
    log = FamilyLog()
    for name in "ab":
        log.begin(name)
    log.spawn("w", dependencies=on(log, "b"))
    log.spawn("x", dependencies=on(log, "b"))
    log.refuse("x")
    told = refused(log, "in b", "b", "x")
    assert told is not None
    assert told[0] == "dependency_failed"
    assert refused(log, "in b again", "b", "w") is not None
    log.end("b")
    log.create("w")
    assert refused(log, "behind", "a", "w") is None


def test_each_run_is_waited_for_once_and_as_strictly_as_anybody_asks() -> None:
    one = Dependency(run_id=run_id(1), name="x", via="dependsOn", require="ended")
    same = Dependency(run_id=run_id(1), name="x", via="chainAfter")
    other = Dependency(run_id=run_id(2), name="y", via="chainAfter", require="ended")
    assert merge_dependencies([one, same, other]) == (same, other)


def test_a_run_that_was_not_read_is_not_judged() -> None:
    log = FamilyLog()
    missing = Dependency(run_id=run_id(77), name="x", via="dependsOn")
    with pytest.raises(ReadAgain):
        log.answer("after", "main", dependencies=(missing,))


def test_a_way_is_found_once_through_many_that_wait_for_each_other() -> None:
    log = FamilyLog(max_children=100)
    log.begin("first")
    log.begin("other")
    before = ["first"]
    for number in range(8):
        names = [f"{number} {letter}" for letter in "abcd"]
        for name in names:
            log.spawn(name, dependencies=on(log, *before))
        before = names
    waiting = [one for one in log.fold.runs.values() if one.dependencies]
    target, runs = [log.run("7 a").run_id], log.fold.runs
    path = find_cycle([log.run("first").run_id], target, waiting, runs)
    assert path is not None
    assert [log.names[one] for one in path][::8] == ["7 a", "first"]
    assert len(path) == 9
    assert find_cycle([log.run("other").run_id], target, waiting, runs) is None
