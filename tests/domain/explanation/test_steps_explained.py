"""The steps of a preparation, explained from what was recorded of each."""

from typing import Any, get_args

import pytest

from domain.event_types import AnyEvent
from domain.explanation.steps import STEP_RULES
from domain.run.facts import STEP_ORDER, ForkFacts, SpawnOptions, StepName
from tests.support.builders.explained_spawns import ADMITTED, plan_facts, results, the, told
from tests.support.builders.run_histories import created, refused, resolved, step_begun, step_taken
from tests.support.builders.storytelling import facts, ref, requested

IN_A_THREAD: dict[str, Any] = {"facts": facts(thread=True)}
FILES = {"attachments": {"count": 1, "total_bytes": 3, "manifest": ref("manifest")}}
FORKED = ForkFacts(position=9, entries=4, tokens=100_000, mode="fork")
TOO_MUCH = ForkFacts(position=9, entries=5, tokens=100_001, mode="isolated")
NOTHING_THERE = ForkFacts(position=9, entries=0, mode="isolated")
TAKEN: dict[StepName, dict[str, Any]] = {
    "thread_binding": {"outcome": "bound", "can_undo": True, "origin": ref("hidden")},
    "context_fork": {"outcome": "forked", "fork": FORKED},
    "attachments": {"outcome": "written", "manifest": ref("hidden")},
    "context_engine": {"outcome": "prepared", "can_undo": True, "token": ref("hidden")},
}
ALL: dict[str, Any] = {**IN_A_THREAD, **FILES, "options": SpawnOptions(context="fork")}


def made(name: StepName, **changes: Any) -> tuple[AnyEvent, AnyEvent]:
    return step_begun(name), step_taken(name, **{**TAKEN.get(name, {}), **changes})


def before(*events: AnyEvent, **request: Any) -> tuple[AnyEvent, ...]:
    return (requested(**request), ADMITTED, resolved(), *events)


def of_created(*steps: AnyEvent, context_mode: str = "isolated", **request: Any) -> Any:
    event = created(facts=plan_facts(), context_mode=context_mode)
    return (*before(*steps, **request), event)


def by(rule: str, *steps: AnyEvent, step: str | None = None, **request: Any) -> Any:
    """A refusal by a step, or whatever else."""
    event = refused(rule=rule, step=step or rule, facts=plan_facts())
    return (*before(*steps, **request), event)


def test_every_step_but_the_folder_is_a_rule_in_its_order() -> None:
    assert [*STEP_RULES] == [one for one in STEP_ORDER if one != "workspace"]
    assert get_args(StepName) == STEP_ORDER


def test_what_was_made_stands_at_the_event_that_says_so() -> None:
    steps = [event for name in STEP_RULES for event in made(name)]
    events = of_created(*steps, context_mode="fork", **ALL)
    lines = [one for one in told(*events) if one.rule in STEP_RULES]
    assert [(one.rule, one.result, one.position) for one in lines] == [
        ("thread_binding", "passed", 14),
        ("context_fork", "passed", 16),
        ("attachments", "passed", 18),
        ("context_engine", "passed", 20),
    ]
    assert [one.text for one in lines] == [
        "a thread is bound for the child",
        "the child begins with 4 entries with 100000 tokens of at most 100000",
        "1 file(s) with 3 bytes in all are attached",
        "the context engine prepared the child, and can undo that",
    ]
    shown = " ".join(one.to_json().decode() for one in lines)
    assert ref("hidden").hmac not in shown
    assert str(ref("hidden").id) not in shown


def test_what_nobody_wanted_stands_at_the_session() -> None:
    lines = [one for one in told(*of_created()) if one.rule in STEP_RULES]
    assert [(one.result, one.position) for one in lines] == [("passed", 13)] * 4
    assert [one.text for one in lines] == [
        "no thread is asked for",
        "the child begins without the conversation of its requester",
        "nothing is attached",
        "no context engine is configured",
    ]


@pytest.mark.parametrize(
    ("fork", "text"),
    [
        (TOO_MUCH, "100001 tokens are more than 100000, so the child begins without them"),
        (NOTHING_THERE, "its requester has no transcript here, so the child begins without"),
    ],
)
def test_a_fork_that_could_not_be_is_told_with_what_was_compared(
    fork: ForkFacts, text: str
) -> None:
    taken = made("context_fork", outcome="isolated", made=False, fork=fork)
    one = the("context_fork", *of_created(*taken, **IN_A_THREAD))
    assert (one.result, one.text) == ("passed", text)
    assert one.compared == {
        "asked": None,
        "thread": True,
        "sameAgent": True,
        "entries": fork.entries,
        "tokens": fork.tokens,
        "tokensMax": 100_000,
        "mode": "isolated",
    }


def test_the_context_that_was_asked_for_and_the_one_it_became_are_told() -> None:
    one = the("context_fork", *of_created(options=SpawnOptions(context="isolated")))
    assert one.compared is not None
    assert (one.compared["asked"], one.compared["mode"]) == ("isolated", "isolated")
    assert one.text.endswith('as context "isolated" says')


REFUSED: list[tuple[str, tuple[AnyEvent, ...], dict[str, Any], str]] = [
    ("thread_binding", (), IN_A_THREAD, "a thread is asked for, and nobody binds one here"),
    (
        "thread_binding",
        made("thread_binding", outcome="nothing", made=False),
        IN_A_THREAD,
        "a thread is asked for, and none was bound",
    ),
    (
        "thread_binding",
        (step_begun("thread_binding"),),
        IN_A_THREAD,
        "a thread is asked for, and nobody knows whether one was bound",
    ),
    (
        "context_fork",
        (),
        {"options": SpawnOptions(context="fork")},
        "a fork is asked for, and its requester has no transcript here",
    ),
    (
        "context_fork",
        (),
        {"options": SpawnOptions(context="fork"), "requested_agent_id": "other"},
        "a fork is asked for, and the child is of another agent than its requester",
    ),
    (
        "context_fork",
        (step_begun("context_fork"),),
        {"options": SpawnOptions(context="fork")},
        "a fork is asked for, and could not be made",
    ),
    (
        "context_engine",
        (step_begun("context_engine"),),
        {},
        "the context engine did not prepare the child",
    ),
    (
        "context_engine",
        made("context_engine", outcome="nothing", made=False, can_undo=False),
        {},
        "the context engine was not reached",
    ),
]


@pytest.mark.parametrize(("rule", "steps", "request_", "text"), REFUSED)
def test_a_step_that_refused_says_how_far_it_came(
    rule: str, steps: tuple[AnyEvent, ...], request_: dict[str, Any], text: str
) -> None:
    events = by(rule, *steps, **request_)
    one = the(rule, *events)
    assert (one.result, one.text, one.step) == ("refused", text, rule)
    assert one.position == 9 + len(events)
    names: list[str] = [*STEP_RULES]
    found = results(*events)
    assert {found[name] for name in names[names.index(rule) + 1 :]} <= {"not_judged"}
    assert "not_judged" not in {found[name] for name in names[: names.index(rule)]}


def test_what_was_wanted_and_not_come_to_is_not_judged() -> None:
    found = results(*by("context_fork", **IN_A_THREAD, options=SpawnOptions(context="fork")))
    assert (found["thread_binding"], found["attachments"]) == ("not_judged", "not_judged")
    found = results(*by("attachments", **ALL))
    assert (found["thread_binding"], found["context_fork"]) == ("not_judged", "not_judged")
    found = results(*by("workspace", *made("thread_binding"), **ALL))
    assert [found[name] for name in STEP_RULES] == ["passed", *["not_judged"] * 3]
    found = results(*by("model", step="preparation"))
    assert {found[name] for name in STEP_RULES} == {"not_judged"}


def test_a_step_is_under_way_until_it_is_taken_or_the_spawn_is_stopped() -> None:
    begun = before(*made("thread_binding"), step_begun("context_fork"), **ALL)
    one = the("context_fork", *begun)
    assert (one.result, one.text, one.position) == ("not_judged", "under way", None)
    assert results(*begun)["thread_binding"] == "passed"
    stopped = (*begun, refused(rule="stopped", step="scripts-resolved"))
    one = the("context_fork", *stopped)
    assert (one.result, one.text) == ("not_judged", 'under way when "stopped" refused the spawn')
    assert told(*stopped)[-1].rule == "stopped"


def test_a_thread_of_which_nothing_is_on_record_is_not_recorded() -> None:
    assert results(*of_created(**IN_A_THREAD))["thread_binding"] == "not_recorded"
    assert (
        results(*of_created(options=SpawnOptions(context="fork")))["context_fork"] == "not_recorded"
    )


def test_a_folder_that_was_made_is_told_with_the_workspace() -> None:
    steps = step_begun("workspace"), step_taken("workspace")
    one = the("workspace", *of_created(*steps))
    assert one.text == "the folder of the agent is used, and was made for the child"
    assert one.compared is not None
    assert one.compared["made"] is True
    one = the("workspace", *by("thread_binding", **IN_A_THREAD))
    assert one.compared is not None
    assert one.compared["made"] is None
