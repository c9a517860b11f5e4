"""What the members of a family come to share, decided and recorded with their lives."""

import pytest

from domain.run.commands import CreateSession
from domain.session.shared_context import REFERENCES_MAX, effective_shared_keys
from domain.spawn.cascade import CannotShare
from domain.spawn.request import SharedContextInput
from domain.values.shared_values import ReferenceRequest, SharedChange, SharedKey
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import FamilyLog, child_key
from tests.support.builders.storytelling import ROOT, ref

GOAL = SharedContextInput(values=(("goal", '"win"'),))
LARGE = '"' + "x" * 40_000 + '"'


def shared_key(log: FamilyLog, key: str, text: str, by: str) -> SharedKey:
    return SharedKey(
        key=key, value=ref(text), session_key=ROOT, position=9, run_id=log.run(by).run_id
    )


def creation(log: FamilyLog, name: str, *shared: SharedChange) -> CreateSession:
    run = log.run(name)
    return ask.create(run.epoch, depth=run.depth, max_depth=3, shared=shared)


def prepare(log: FamilyLog, name: str) -> None:
    run = log.run(name)
    key = child_key(run.run_id)
    log.tell(name, ask.resolve(run.epoch), ask.prepare(run.epoch, child_session_key=key))


def test_the_keys_of_a_spawn_come_with_its_session() -> None:
    log = FamilyLog()
    log.spawn("a", shared=GOAL)
    prepare(log, "a")
    assert effective_shared_keys(log.session("main")) == ()
    assert log.tell("a", creation(log, "a", SharedChange(key="goal", value=ref('"win"')))) == [
        "run a SessionCreated",
        "session main SharedContextChanged",
        "session a SessionObserved",
        "run a RunQueued",
    ]
    (key,) = effective_shared_keys(log.session("main"))
    assert (key.key, key.run_id, key.session_key) == ("goal", log.run("a").run_id, ROOT)
    created = next(one for one in log.recorded if type(one.event).__name__ == "SessionCreated")
    assert key.position == created.stamp.position + 1
    assert log.session("a").inherited is None


def test_of_two_that_were_prepared_at_once_the_one_that_does_not_fit_is_turned_down() -> None:
    log = FamilyLog()
    large = SharedChange(key="a", value=ref(LARGE))
    for name, key in (("first", "a"), ("second", "b")):
        log.spawn(name, shared=SharedContextInput(values=((key, LARGE),)))
        prepare(log, name)
    log.tell("first", creation(log, "first", large))
    other = SharedChange(key="b", value=ref(LARGE))
    with pytest.raises(CannotShare, match="80015 bytes and may have 65536") as caught:
        log.tell("second", creation(log, "second", other))
    assert caught.value.refusal.rule == "shared_context"
    log.tell("second", creation(log, "second", large))


def test_what_a_spawn_adds_is_compared_when_it_is_admitted() -> None:
    log = FamilyLog()
    log.spawn("first", shared=GOAL)
    answered = log.answer(
        "much", "main", shared=SharedContextInput(values=(("k", f'"{"x" * 65_536}"'),))
    )
    assert answered.refusal is not None
    assert (answered.refusal.rule, answered.facts.shared_keys) == ("shared_context", 1)
    assert answered.facts.shared_bytes == answered.refusal.current
    plain = log.answer("plain", "main")
    assert (plain.facts.shared_bytes, plain.facts.shared_keys) == (None, None)


def test_a_run_starts_with_what_it_is_given_and_its_session_has_that_for_its_children() -> None:
    log = FamilyLog()
    log.spawn("a")
    log.create("a")
    log.tell("a", ask.claim())
    keys = (shared_key(log, "goal", '"win"', "a"),)
    start = ask.start(
        log.run("a").epoch, shared_context_position=9, shared_context=keys, inherits=True
    )
    assert log.tell("a", start) == ["run a RunStarted", "session a SharedContextInherited"]
    assert effective_shared_keys(log.session("a")) == keys
    assert log.session("main").shared_position is None


def test_a_child_has_a_bounded_number_of_results_of_others_the_inherited_ones_included() -> None:
    log = FamilyLog()
    log.spawn("a")
    log.create("a")
    log.tell("a", ask.claim())
    keys = tuple(
        shared_key(log, f"r{number}", "1", "a").changed({"kind": "reference"})
        for number in range(REFERENCES_MAX)
    )
    log.tell(
        "a",
        ask.start(
            log.run("a").epoch, shared_context=keys, inherits=True, shared_context_position=9
        ),
    )
    target = log.run("a").run_id

    def refers_to(key: str) -> SharedContextInput:
        return SharedContextInput(references=(ReferenceRequest(key=key, run_id=target),))

    assert log.answer("same", "a", shared=refers_to("r0")).refusal is None
    refusal = log.answer("more", "a", shared=refers_to("more")).refusal
    assert refusal is not None
    assert (refusal.rule, refusal.current, refusal.limit) == ("shared_context", 21, 20)
    assert "21 references and may have 20 (20 are inherited)" in refusal.text


def test_a_run_that_is_given_nothing_records_nothing_more() -> None:
    log = FamilyLog()
    log.spawn("a")
    log.create("a")
    log.tell("a", ask.claim())
    assert log.tell("a", ask.start(log.run("a").epoch)) == ["run a RunStarted"]
    assert log.session("a").shared_position is None
