"""The steps in the explanation of a spawn."""

from typing import Any

import pytest

from domain.event_types import AnyEvent
from domain.explanation.record import NOT_RECORDED
from domain.explanation.steps import STEP_RULES
from domain.run.facts import Candidate, ForkFacts, RespawnFacts, SpawnOptions, StepName
from tests.support.builders.explained_spawns import (
    ADMISSION_RULES,
    ADMITTED,
    BEHIND_ADMISSION,
    PLAN_RULES,
    plan_facts,
    results,
    the,
    told,
)
from tests.support.builders.run_histories import (
    created,
    overridden,
    refused,
    resolved,
    step_begun,
    step_taken,
)
from tests.support.builders.script_receipts import candidate, receipt
from tests.support.builders.storytelling import facts, ref, requested, run_id

# Explanation of a spawn's decision from its events alone.


@pytest.mark.parametrize("rule", ADMISSION_RULES)
def test_behind_the_rule_of_admission_that_refused_nothing_was_judged(rule: str) -> None:
    events = requested(), refused(rule=rule, status="forbidden", step="admission")
    found = results(*events)
    names = [*ADMISSION_RULES]
    place = names.index(rule)
    assert [found[name] for name in names] == [
        *["passed"] * place,
        "refused",
        *["not_judged"] * (len(names) - place - 1),
    ]
    assert {found[item] for item in BEHIND_ADMISSION} == {"not_judged"}
    behind = the("capabilities", *events)
    assert behind.text == f'"{rule}" refused the spawn before'
    assert (behind.compared, behind.position) == (None, None)


def test_rules_are_explained_in_order() -> None:
    events = requested(), ADMITTED, resolved(), created(facts=plan_facts())
    assert [answer.rule for answer in told(*events)] == [*ADMISSION_RULES, *BEHIND_ADMISSION]
    assert set(results(*events).values()) == {"passed"}
    admission = [10] * len(ADMISSION_RULES)
    assert [answer.position for answer in told(*events)] == [*admission, *[12] * 2, *[13] * 15]


def test_events_without_a_request_are_an_error() -> None:
    with pytest.raises(ValueError, match="from its request on"):
        told(resolved())


def test_unreached_plan_rule_is_not_judged() -> None:
    early = plan_facts(models=None, thinking=None)
    found = results(requested(), ADMITTED, resolved(), refused(rule="workspace", facts=early))
    assert (found["sandbox"], found["model"], found["thinking"]) == (
        "passed",
        "not_judged",
        "not_judged",
    )


def test_stop_is_told_last_and_leaves_the_rest_unjudged() -> None:
    event = refused(rule="stopped", step="scripts-resolved")
    last = told(requested(), ADMITTED, resolved(), event)[-1]
    assert (last.rule, last.result, last.step) == ("stopped", "refused", "scripts-resolved")
    assert last.text == "the spawn was stopped before its session was created"
    found = results(requested(), ADMITTED, resolved(), event)
    assert (found["override"], found["agent_unknown"], found["tool_policy"]) == (
        "passed",
        "not_judged",
        "not_judged",
    )


def test_rule_without_recorded_facts_is_not_recorded() -> None:
    events = requested(), ADMITTED, resolved()
    assert {results(*events, created())[plan_rule] for plan_rule in PLAN_RULES} == {"not_recorded"}
    explanation = the("model", *events, created())
    assert (explanation.compared, explanation.text) == (None, NOT_RECORDED)
    explanation = the("thinking", *events, refused(rule="thinking", facts=None))
    assert (explanation.result, explanation.compared) == ("refused", None)
    assert explanation.text == f"refused; the compared values were {NOT_RECORDED}"


def test_no_free_text_of_a_request_is_in_its_explanation() -> None:
    hidden = {
        "agent_id_argument": ref("hidden"),
        "model_argument": ref("hidden"),
        "thinking_argument": ref("hidden"),
        "options": SpawnOptions(),
    }
    events = requested(**hidden), ADMITTED, resolved(), created(facts=plan_facts())
    text = " ".join(answer.to_json().decode() for answer in told(*events))
    assert ref("hidden").hmac not in text
    assert str(ref("hidden").id) not in text


# Explanation of context scripts from their receipts.


def test_scripts_are_explained_without_their_texts() -> None:
    receipts = (
        receipt("who", "injected", exit_code=0, output_bytes=812, candidate="steward"),
        receipt("slow", "failed"),
        receipt("rest", "skipped", duration_ms=0),
        receipt("mute", "empty", exit_code=0),
    )
    scripts = [
        answer
        for answer in told(requested(), ADMITTED, resolved(receipts=receipts))
        if answer.rule == "context_scripts"
    ]
    assert [script.text for script in scripts] == [
        'script "who" returned a text for the prompt, and proposed "steward"',
        'script "slow" failed; it refuses nothing and proposes no agent',
        'script "rest" was skipped',
        'script "mute" returned no text',
    ]
    assert {(script.result, script.step, script.position) for script in scripts} == {
        ("passed", "scripts", 12)
    }
    assert scripts[0].compared == {
        "id": "who",
        "outcome": "injected",
        "durationMs": 31,
        "exitCode": 0,
        "statusCode": None,
        "outputBytes": 812,
        "candidate": "steward",
    }


def test_reused_script_output_names_its_run() -> None:
    receipts = (receipt("who", "injected", exit_code=0, reused_from=run_id(9)),)
    explanation = the("context_scripts", requested(), ADMITTED, resolved(receipts=receipts))
    assert explanation.text == (
        'script "who" returned a text for the prompt; it was not run: its recorded output for'
        f" run {run_id(9)} was reused"
    )
    assert explanation.compared is not None
    assert explanation.compared["reusedFrom"] == str(run_id(9))


def test_override_is_explained_with_both_agents() -> None:
    candidates = candidate("who", "steward", "winner"), candidate("b", None, "invalid_agent_id")
    events = (
        requested(),
        ADMITTED,
        resolved(candidates=candidates),
        overridden(candidates=candidates),
    )
    explanation = the("override", *events)
    assert explanation.text == '"steward" replaced "main" by script "who"'
    assert (explanation.result, explanation.position) == ("passed", 13)
    assert explanation.compared is not None
    assert (explanation.compared["from"], explanation.compared["to"]) == ("main", "steward")
    assert [c["verdict"] for c in explanation.members()["compared"]["candidates"]] == [
        "winner",
        "invalid_agent_id",
    ]
    assert the("override", *events[:3]).result == "not_judged"


@pytest.mark.parametrize(
    ("candidates", "text"),
    [
        ((), 'no script proposed an agent, so "main" is kept'),
        ((candidate("a", "main", "winner"),), 'script "a" confirmed "main"'),
        (
            (candidate("a", "other", "credentials_missing"),),
            'no proposed agent can be used, so "main" is kept; credentials of "other" are missing',
        ),
    ],
)
def test_without_an_override_the_agent_stays(candidates: tuple[Candidate, ...], text: str) -> None:
    explanation = the("override", requested(), ADMITTED, resolved(candidates=candidates))
    assert (explanation.result, explanation.text, explanation.position) == ("passed", text, 12)


# Explanation of preparation steps from their records.

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
    """Return a refusal by a step, or by another rule."""
    event = refused(rule=rule, step=step or rule, facts=plan_facts())
    return (*before(*steps, **request), event)


def test_step_taken_is_explained_at_its_event() -> None:
    steps = [event for name in STEP_RULES for event in made(name)]
    events = of_created(*steps, context_mode="fork", **ALL)
    lines = [answer for answer in told(*events) if answer.rule in STEP_RULES]
    assert [(line.rule, line.result, line.position) for line in lines] == [
        ("thread_binding", "passed", 14),
        ("context_fork", "passed", 16),
        ("attachments", "passed", 18),
        ("context_engine", "passed", 20),
    ]
    assert [line.text for line in lines] == [
        "a thread was bound for the child",
        "the child starts with 4 entries with 100000 tokens of at most 100000",
        "1 file(s) with 3 bytes in total are attached",
        "the context engine prepared the child, and can undo it",
    ]
    shown = " ".join(line.to_json().decode() for line in lines)
    assert ref("hidden").hmac not in shown
    assert str(ref("hidden").id) not in shown


def test_unrequested_steps_are_explained_at_the_session() -> None:
    lines = [answer for answer in told(*of_created()) if answer.rule in STEP_RULES]
    assert [(line.result, line.position) for line in lines] == [("passed", 13)] * 4
    assert [line.text for line in lines] == [
        "no thread was requested",
        "the child starts without its requester's conversation",
        "no files are attached",
        "no context engine is configured",
    ]


@pytest.mark.parametrize(
    ("fork", "text"),
    [
        (TOO_MUCH, "100001 tokens are more than 100000, so the child starts without them"),
        (NOTHING_THERE, "its requester has no transcript here, so the child starts without one"),
    ],
)
def test_impossible_fork_is_explained_with_its_facts(fork: ForkFacts, text: str) -> None:
    taken = made("context_fork", outcome="isolated", made=False, fork=fork)
    explanation = the("context_fork", *of_created(*taken, **IN_A_THREAD))
    assert (explanation.result, explanation.text) == ("passed", text)
    assert explanation.compared == {
        "asked": None,
        "thread": True,
        "sameAgent": True,
        "entries": fork.entries,
        "tokens": fork.tokens,
        "tokensMax": 100_000,
        "mode": "isolated",
    }


REFUSED: list[tuple[str, tuple[AnyEvent, ...], dict[str, Any], str]] = [
    (
        "thread_binding",
        (),
        IN_A_THREAD,
        "a thread was requested, but no binding hook is configured",
    ),
    (
        "thread_binding",
        made("thread_binding", outcome="nothing", made=False),
        IN_A_THREAD,
        "a thread was requested, but none was bound",
    ),
    (
        "thread_binding",
        (step_begun("thread_binding"),),
        IN_A_THREAD,
        "a thread was requested, and it is unknown whether one was bound",
    ),
    (
        "context_fork",
        (),
        {"options": SpawnOptions(context="fork")},
        "a fork was requested, but its requester has no transcript here",
    ),
    (
        "context_fork",
        (),
        {"options": SpawnOptions(context="fork"), "requested_agent_id": "other"},
        "a fork was requested, but the child's agent is not its requester's",
    ),
    (
        "context_fork",
        (step_begun("context_fork"),),
        {"options": SpawnOptions(context="fork")},
        "a fork was requested, but could not be created",
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
def test_refusing_step_is_explained_by_its_progress(
    rule: str, steps: tuple[AnyEvent, ...], request_: dict[str, Any], text: str
) -> None:
    events = by(rule, *steps, **request_)
    explanation = the(rule, *events)
    assert (explanation.result, explanation.text, explanation.step) == ("refused", text, rule)
    assert explanation.position == 9 + len(events)
    names: list[str] = [*STEP_RULES]
    found = results(*events)
    assert {found[name] for name in names[names.index(rule) + 1 :]} <= {"not_judged"}
    assert "not_judged" not in {found[name] for name in names[: names.index(rule)]}


def test_unreached_step_is_not_judged() -> None:
    found = results(*by("context_fork", **IN_A_THREAD, options=SpawnOptions(context="fork")))
    assert (found["thread_binding"], found["attachments"]) == ("not_judged", "not_judged")
    found = results(*by("attachments", **ALL))
    assert (found["thread_binding"], found["context_fork"]) == ("not_judged", "not_judged")
    found = results(*by("workspace", *made("thread_binding"), **ALL))
    assert [found[name] for name in STEP_RULES] == ["passed", *["not_judged"] * 3]
    found = results(*by("model", step="preparation"))
    assert {found[name] for name in STEP_RULES} == {"not_judged"}


def test_step_is_under_way_until_taken_or_stopped() -> None:
    begun = before(*made("thread_binding"), step_begun("context_fork"), **ALL)
    explanation = the("context_fork", *begun)
    assert (explanation.result, explanation.text, explanation.position) == (
        "not_judged",
        "in progress",
        None,
    )
    assert results(*begun)["thread_binding"] == "passed"
    stopped = (*begun, refused(rule="stopped", step="scripts-resolved"))
    explanation = the("context_fork", *stopped)
    assert (explanation.result, explanation.text) == (
        "not_judged",
        'in progress when "stopped" refused the spawn',
    )
    assert told(*stopped)[-1].rule == "stopped"


def test_unrecorded_thread_is_not_recorded() -> None:
    assert results(*of_created(**IN_A_THREAD))["thread_binding"] == "not_recorded"
    assert (
        results(*of_created(options=SpawnOptions(context="fork")))["context_fork"] == "not_recorded"
    )


def test_folder_that_was_made_is_told_with_the_workspace() -> None:
    steps = step_begun("workspace"), step_taken("workspace")
    explanation = the("workspace", *of_created(*steps))
    assert explanation.text == "the folder of the agent is used, and was created for the child"
    assert explanation.compared is not None
    assert explanation.compared["made"] is True
    explanation = the("workspace", *by("thread_binding", **IN_A_THREAD))
    assert explanation.compared is not None
    assert explanation.compared["made"] is None


def test_respawned_transcript_is_explained_with_its_run() -> None:
    respawn = RespawnFacts(run_id=run_id(7), transcript_up_to=3)
    events = by("context_fork", step_begun("context_fork"), respawn=respawn)
    explanation = the("context_fork", *events)
    assert (
        explanation.text
        == f"the transcript of run {run_id(7)} was requested, but could not be read"
    )
    assert explanation.compared is not None
    assert (explanation.compared["respawnedFrom"], explanation.compared["upTo"]) == (
        str(run_id(7)),
        3,
    )
