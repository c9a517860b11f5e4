"""Explanation of the decision about a message, from its events alone."""

from typing import Any

import pytest

from domain.configuration.configuration import Configuration
from domain.event_types import AnyEvent
from domain.explanation.continuation import explain_continuation
from domain.explanation.record import EventAtRevision, RuleExplanation
from domain.run.events import ContinuationPlanned, MessageReceived
from domain.run.facts import Ingredient, SpawnOptions
from domain.run.plan_facts import WorkspaceFacts
from domain.session.events import ChildAdmitted
from tests.support.builders.explained_spawns import CONTINUATION_RULES, REVISION, plan_facts
from tests.support.builders.facts import fact_of
from tests.support.builders.run_histories import refused
from tests.support.builders.storytelling import CHILD, at, plan, ref, requester, run_id

RULES = ("active_children", *CONTINUATION_RULES, "tool_policy", "capabilities")
ADMITTED = ChildAdmitted(run_id=run_id(2), active_children=1, max_children=5)


def message(**changes: Any) -> MessageReceived:
    plain = {
        "run_id": run_id(2),
        "session_id": run_id(1001),
        "child_session_key": CHILD,
        "continues": run_id(1),
        "opened_by": run_id(1),
        "requester": requester(),
        "agent_id": "main",
        "depth": 1,
        "message": ref("message"),
        "options": SpawnOptions(mode="session"),
        "facts": {"active_children": 1, "max_children": 5},
        "config_revision": REVISION,
        "by": "admin",
        "opened_at": at(1),
    }
    return fact_of(MessageReceived, plain | changes)


def planned(**changes: Any) -> ContinuationPlanned:
    plain = {
        "max_depth": 2,
        "role": "orchestrator",
        "control_scope": "children",
        "plan": plan(),
        "ingredients": (Ingredient(source="message", position="task", content=ref("message")),),
        "facts": plan_facts(
            workspace=WorkspaceFacts(source="agent", recorded="/srv/main", chosen="/srv/main")
        ),
    }
    return fact_of(ContinuationPlanned, plain | changes)


def told(
    *events: AnyEvent, configuration: Configuration | None = None
) -> tuple[RuleExplanation, ...]:
    recorded = [EventAtRevision(at, REVISION, event) for at, event in enumerate(events, start=10)]
    return explain_continuation(recorded, configuration)


def the(rule: str, *events: AnyEvent) -> RuleExplanation:
    (found,) = [answer for answer in told(*events) if answer.rule == rule]
    return found


def results(*events: AnyEvent) -> dict[str, str]:
    return {answer.rule: answer.result for answer in told(*events)}


def test_accepted_message_passed_all_rules_in_order() -> None:
    events = message(), ADMITTED, planned()
    assert [answer.rule for answer in told(*events)] == [*RULES]
    assert set(results(*events).values()) == {"passed"}
    assert [answer.position for answer in told(*events)] == [10] + [12] * (len(RULES) - 1)
    assert {answer.config_revision for answer in told(*events)} == {REVISION}


def test_message_alone_is_not_judged_yet() -> None:
    assert {answer.result for answer in told(message())} == {"not_judged"}
    assert {answer.text for answer in told(message())} == {"not evaluated yet"}
    assert {answer.config_revision for answer in told(message())} == {REVISION}


def test_full_places_refuse_before_the_plan() -> None:
    full = message(facts={"active_children": 5, "max_children": 5})
    by = refused(rule="active_children", status="forbidden", step="admission")
    explanation = the("active_children", full, by)
    assert (explanation.result, explanation.position, explanation.step) == (
        "refused",
        11,
        "admission",
    )
    assert explanation.text == "5 of 5 children are active, so no place is free"
    assert explanation.compared == {"activeChildren": 5, "maxChildren": 5}
    assert {results(full, by)[rule] for rule in RULES[1:]} == {"not_judged"}
    assert the("tool_policy", full, by).text == '"active_children" refused the message before'


def test_folder_is_that_of_the_run_before() -> None:
    explanation = the("workspace", message(), ADMITTED, planned())
    assert explanation.text == "the folder of the previous run is kept"
    assert explanation.compared == {
        "source": "agent",
        "recorded": "/srv/main",
        "chosen": "/srv/main",
        "kept": True,
    }
    facts = plan_facts(workspace=WorkspaceFacts(source="agent", recorded=None))
    explanation = the("workspace", message(), ADMITTED, planned(facts=facts))
    assert explanation.text == "the previous run has no recorded folder, and none is chosen"


def test_agent_is_that_of_the_session() -> None:
    explanation = the("agent_unknown", message(), ADMITTED, planned())
    assert explanation.text == 'agent "main" is configured'


def test_without_its_message_nothing_can_be_explained() -> None:
    with pytest.raises(ValueError, match="from its message on"):
        told(planned())


def test_rules_after_the_refusal_are_not_judged() -> None:
    found = results(message(), refused(rule="thinking", facts=plan_facts()))
    behind = [*CONTINUATION_RULES][[*CONTINUATION_RULES].index("thinking") + 1 :]
    assert {found[rule] for rule in behind} == {"not_judged"}
