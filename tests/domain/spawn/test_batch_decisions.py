"""Several runs of one request: what is decided about one of them is decided about all."""

import pytest

from domain.run.events import SpawnRefused, SpawnRequested
from domain.spawn.batch import PartOfBatch, batch_refusal_text, must_be_prepared
from domain.spawn.cascade import CascadeState
from domain.values.refusals import LostClaim, ReadAgain, Rejected, WrongStage
from domain.values.shared_values import SharedChange
from tests.support.builders import run_commands as ask
from tests.support.builders.batch_family import ask_for_all, tell_all
from tests.support.builders.family_log import FamilyLog, child_key
from tests.support.builders.storytelling import ref

NAMES = ("hull", "mast", "sail")


def prepared(log: FamilyLog, *names: str) -> None:
    """Each has its key."""
    for name in names:
        run = log.run(name)
        prepare = ask.prepare(run.epoch, child_session_key=child_key(run.run_id))
        log.tell(name, ask.resolve(run.epoch), prepare)


def asked_for(log: FamilyLog, by: str = "main") -> None:
    """Three are admitted and have their keys."""
    assert ask_for_all(log, NAMES, by).refusal is None
    prepared(log, *NAMES)


def test_all_are_admitted_in_their_order() -> None:
    log = FamilyLog()
    answered = ask_for_all(log, NAMES)
    assert [f"{type(event).__name__}" for _, event in answered.changes] == [
        "SessionObserved",
        *["SpawnRequested"] * 3,
        *["ChildAdmitted"] * 3,
    ]
    assert log.counted("main") == [*NAMES]
    assert answered.facts.places == 3
    requests = [one for _, one in answered.changes if isinstance(one, SpawnRequested)]
    assert [one.batch.index for one in requests if one.batch is not None] == [0, 1, 2]


@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_with_one_place_too_few_none_is_admitted(taken: int) -> None:
    log = FamilyLog(max_children=taken + 2)
    for number in range(taken):
        log.spawn(f"before {number}")
    refusal = ask_for_all(log, NAMES).refusal
    assert refusal is not None
    assert refusal.text == (
        "sessions_spawn has reached max active children for this session"
        f" ({taken}/{taken + 2}): 3 tasks need 3 places"
    )
    assert {log.run(name).stage for name in NAMES} == {"refused"}
    assert len(log.counted("main")) == taken


def test_what_one_is_refused_for_all_are() -> None:
    log = FamilyLog(max_spawn_depth=0)
    answered = ask_for_all(log, NAMES)
    refusals = [one for _, one in answered.changes if isinstance(one, SpawnRefused)]
    assert [one.rule for one in refusals] == ["depth"] * 3


def test_all_are_created_in_one_append() -> None:
    log = FamilyLog()
    asked_for(log)
    told = tell_all(log, {name: (ask.create(log.run(name).epoch),) for name in NAMES})
    assert told == [
        line
        for name in NAMES
        for line in (
            f"run {name} SessionCreated",
            f"session {name} SessionObserved",
            f"run {name} RunQueued",
        )
    ]


@pytest.mark.parametrize("command", [ask.create, ask.refuse])
def test_no_part_of_a_batch_is_decided(command: type) -> None:
    log = FamilyLog()
    asked_for(log)
    before = len(log.recorded)
    with pytest.raises(PartOfBatch):
        tell_all(log, {name: (command(log.run(name).epoch),) for name in NAMES[:2]})
    with pytest.raises(PartOfBatch):
        tell_all(log, {NAMES[0]: (ask.stop(),)})
    assert len(log.recorded) == before


def test_one_that_somebody_else_holds_leaves_all_as_they_were() -> None:
    log = FamilyLog()
    asked_for(log)
    before = len(log.recorded)
    epochs = {name: log.run(name).epoch for name in NAMES}
    log.tell("sail", ask.resume(epochs["sail"]))
    with pytest.raises(LostClaim):
        tell_all(log, {name: (ask.create(epoch),) for name, epoch in epochs.items()})
    assert len(log.recorded) == before + 1


def test_two_children_of_one_key_are_not_created() -> None:
    log = FamilyLog()
    ask_for_all(log, NAMES)
    key = child_key(log.run("hull").run_id)
    for name in NAMES:
        run = log.run(name)
        log.tell(name, ask.resolve(run.epoch), ask.prepare(run.epoch, child_session_key=key))
    with pytest.raises(Rejected):
        tell_all(log, {name: (ask.create(log.run(name).epoch),) for name in NAMES})


def test_a_refusal_gives_all_places_back_and_settles_who_waits_for_them() -> None:
    log = FamilyLog()
    log.begin("ship")
    asked_for(log, "ship")
    log.end("ship")
    told = tell_all(
        log,
        {
            "mast": (ask.stop(),),
            "hull": (ask.refuse(None),),
            "sail": (ask.refuse(None),),
        },
    )
    assert [one for one in told if "Refused" in one] == [
        "run mast SpawnRefused",
        "run hull SpawnRefused",
        "run sail SpawnRefused",
    ]
    # Only with the last of them nobody is left to wait for, and that is said once.
    assert told[-2:] == ["run ship DescendantsSettled", "session main ChildReleased"]
    assert told.count("run ship DescendantsSettled") == 1
    assert log.counted("ship") == []
    assert log.counted("main") == []


def test_what_all_share_is_carried_to_the_next_of_them() -> None:
    log = FamilyLog()
    asked_for(log)
    shared = (SharedChange(key="goal", value=ref("a fleet")),)
    creates = {name: ask.create(log.run(name).epoch) for name in NAMES}
    creates["hull"] = ask.create(log.run("hull").epoch, shared=shared)
    told = tell_all(log, {name: (one,) for name, one in creates.items()})
    assert told.count("session main SharedContextChanged") == 1


def test_once_they_are_there_each_is_stopped_by_itself() -> None:
    log = FamilyLog()
    asked_for(log)
    tell_all(log, {name: (ask.create(log.run(name).epoch),) for name in NAMES})
    assert "run mast RunEnded" in log.tell("mast", ask.stop())
    assert log.run("hull").stage == "queued"


def test_a_batch_that_was_decided_meanwhile_is_read_again() -> None:
    log = FamilyLog()
    asked_for(log)
    ids = [log.run(name).run_id for name in NAMES]
    must_be_prepared(CascadeState(log.fold.runs, log.fold.sessions), ids)
    tell_all(log, {name: (ask.create(log.run(name).epoch),) for name in NAMES})
    with pytest.raises(ReadAgain):
        must_be_prepared(CascadeState(log.fold.runs, log.fold.sessions), ids)
    with pytest.raises(WrongStage):
        tell_all(log, {name: (ask.refuse(None),) for name in NAMES})


def test_the_others_are_told_which_one_it_was() -> None:
    log = FamilyLog()
    asked_for(log)
    culprit = log.run("mast")
    assert batch_refusal_text(culprit, "its model is unknown.") == (
        f'Task 2 of 3 ("mast", run {culprit.run_id}) could not be prepared: its model is unknown.'
        " No task of this batch was started."
    )
