"""Calls of hooks, in the form of their receivers."""

from typing import Any, get_args

import pytest

from domain.delivery.hook_payloads import (
    TOKEN_CHARACTERS_MAX,
    Conversations,
    EngineAnswer,
    delivery_target_call,
    notification_call,
    preparation_call,
    read_engine_answer,
    rollback_call,
    spawn_failed_call,
    spawning_call,
)
from domain.run.facts import HookName, RunOutcome, SpawnOptions
from domain.run.state import Run
from domain.values.refusals import Refusal
from tests.support.builders import run_histories as past
from tests.support.builders.facts import fact_of
from tests.support.builders.storytelling import CHILD, ROOT, requested, run_of

ORIGIN = {"channel": "discord", "accountId": "acct", "to": "c"}
ENGINE = "Context engine subagent preparation failed: "


def child(*, label: str | None = "scout", **options: Any) -> Run:
    """Return a run whose child has a key."""
    birth = requested(label=label, options=fact_of(SpawnOptions, options))
    return run_of(birth, *past.a_prepared_run()[1:])


def ended(outcome: RunOutcome, **options: Any) -> Run:
    """Return a run that ended a second after the epoch of its story."""
    run = run_of(*past.a_claimed_run(), past.started(), past.ended(outcome=outcome))
    return run.changed({"options": fact_of(SpawnOptions, options)})


def ctx(run: Run) -> dict[str, str]:
    return {"runId": str(run.run_id), "childSessionKey": CHILD, "requesterSessionKey": ROOT}


def test_thread_is_asked_for_with_where_the_requester_is() -> None:
    run = child()
    call = spawning_call(run, ORIGIN)
    assert (call.hook, call.key) == ("subagentSpawning", f"{run.run_id}:thread_binding")
    assert call.body == {
        "hook": "subagentSpawning",
        "event": {
            "childSessionKey": CHILD,
            "agentId": "main",
            "label": "scout",
            "mode": "run",
            "requester": ORIGIN,
            "threadRequested": True,
        },
        "ctx": ctx(run),
    }


def test_what_is_not_known_is_left_out() -> None:
    event = spawning_call(child(label=None), {}).event
    assert "label" not in event
    assert event["requester"] == {}


def test_thread_is_given_up_with_a_farewell() -> None:
    run = child()
    call = spawn_failed_call(run, ORIGIN)
    assert (call.hook, call.key) == ("subagentEnded", f"{run.run_id}:thread_binding:undo")
    assert call.event == {
        "targetSessionKey": CHILD,
        "targetKind": "subagent",
        "runId": str(run.run_id),
        "reason": "spawn-failed",
        "sendFarewell": True,
        "accountId": "acct",
        "outcome": "error",
        "error": "Session failed to start",
    }


@pytest.mark.parametrize(("seconds", "ttl"), [(0, {}), (90, {"ttlMs": 90_000})])
def test_engine_is_told_how_long_a_child_may_take(seconds: int, ttl: dict[str, int]) -> None:
    run = child()
    conversations = Conversations(
        parent_session_id="p", child_session_file="/x.jsonl", ttl_seconds=seconds
    )
    call = preparation_call(run, conversations)
    assert (call.name, call.key) == ("prepareSubagentSpawn", f"{run.run_id}:context_engine")
    assert call.event == {
        "parentSessionKey": ROOT,
        "childSessionKey": CHILD,
        "agentId": "main",
        "contextMode": "isolated",
        "parentSessionId": "p",
        "childSessionId": str(run.session_id),
        "childSessionFile": "/x.jsonl",
        **ttl,
    }


@pytest.mark.parametrize(("token", "more"), [(None, {}), ("seven", {"preparation": "seven"})])
def test_rollback_repeats_the_preparation_event(token: str | None, more: dict[str, str]) -> None:
    run, conversations = child(), Conversations(parent_session_id="p")
    call = rollback_call(run, conversations, token)
    assert call.event == {**preparation_call(run, conversations).event, **more}
    assert (call.hook, call.name) == ("prepareSubagentSpawn", "rollbackSubagentSpawn")
    assert call.key == f"{run.run_id}:context_engine:undo"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (None, EngineAnswer(can_undo=False)),
        ({}, EngineAnswer(can_undo=False)),
        ({"rollback": False}, EngineAnswer(can_undo=False)),
        ({"rollback": ""}, EngineAnswer(can_undo=False)),
        ({"rollback": 1}, EngineAnswer(can_undo=False)),
        ({"rollback": True}, EngineAnswer(can_undo=True)),
        ({"rollback": "seven"}, EngineAnswer(can_undo=True, token="seven")),
        (
            {"rollback": "x" * TOKEN_CHARACTERS_MAX},
            EngineAnswer(can_undo=True, token="x" * TOKEN_CHARACTERS_MAX),
        ),
    ],
)
def test_engine_says_whether_it_wants_to_be_told(
    answer: dict[str, Any] | None, expected: EngineAnswer
) -> None:
    assert read_engine_answer(answer) == expected


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("x" * (TOKEN_CHARACTERS_MAX + 1), "its rollback is longer than 4096 characters"),
        ("a\0b", "its rollback contains characters that cannot be stored"),
    ],
)
def test_unstorable_token_fails_the_step(token: str, why: str) -> None:
    refusal = Refusal(rule="context_engine", status="error", text=ENGINE + why)
    assert read_engine_answer({"rollback": token}) == refusal


@pytest.mark.parametrize(
    ("error", "why"),
    [
        ("the budget of $20 is spent\n", "the budget of $20 is spent"),
        (None, "it gave no error"),
        (" ", "it gave no error"),
    ],
)
def test_engine_refuses_in_its_own_words(error: object, why: str) -> None:
    refusal = Refusal(rule="context_engine", status="error", text=ENGINE + why)
    assert read_engine_answer({"status": "error", "error": error, "rollback": True}) == refusal


def test_beginning_is_told_with_where_the_requester_is() -> None:
    run = run_of(*past.a_created_run())
    call = notification_call(run, "subagentSpawned", origin=ORIGIN, error=None)
    assert call.key == f"{run.run_id}:subagentSpawned"
    assert call.event == {
        **spawning_call(run, ORIGIN).event,
        "runId": str(run.run_id),
        "threadRequested": False,
    }


@pytest.mark.parametrize(
    ("outcome", "reason", "label"),
    [
        ("success", "subagent-complete", {"outcome": "ok"}),
        ("timeout", "subagent-complete", {"outcome": "timeout"}),
        ("error", "subagent-error", {"outcome": "error"}),
        ("stopped", "subagent-killed", {"outcome": "killed"}),
        ("unknown", "subagent-complete", {}),
    ],
)
def test_end_is_told_by_its_outcome(
    outcome: RunOutcome, reason: str, label: dict[str, str]
) -> None:
    run = ended(outcome)
    call = notification_call(run, "subagentEnded", origin=ORIGIN, error="why")
    assert run.ended_at is not None
    assert call.key == f"{run.run_id}:subagentEnded"
    assert call.event == {
        "targetSessionKey": CHILD,
        "targetKind": "subagent",
        "runId": str(run.run_id),
        "reason": reason,
        "sendFarewell": True,
        "accountId": "acct",
        "endedAt": int(run.ended_at.timestamp() * 1000),
        "error": "why",
        **label,
    }


@pytest.mark.parametrize(
    ("outcome", "reason", "label"),
    [
        ("success", "session-delete", "deleted"),
        ("error", "session-delete", "deleted"),
        ("stopped", "subagent-killed", "killed"),
    ],
)
def test_lasting_session_ends_with_its_archive(
    outcome: RunOutcome, reason: str, label: str
) -> None:
    call = notification_call(ended(outcome, mode="session"), "subagentEnded", origin={}, error=None)
    assert (call.event["reason"], call.event["outcome"]) == (reason, label)
    assert "accountId" not in call.event
    assert "error" not in call.event


@pytest.mark.parametrize("origin", [ORIGIN, {}])
def test_it_is_asked_where_a_result_goes(origin: dict[str, str]) -> None:
    run = ended("success")
    call = delivery_target_call(run, origin)
    assert call.key == f"{run.run_id}:subagentDeliveryTarget"
    assert call.event == {
        "childSessionKey": CHILD,
        "requesterSessionKey": ROOT,
        **({"requesterOrigin": origin} if origin else {}),
        "childRunId": str(run.run_id),
        "spawnMode": "run",
        "expectsCompletionMessage": True,
    }


def test_body_of_an_answer_counts_for_questions_alone() -> None:
    run, nowhere = child(), Conversations()
    questions = [
        spawning_call(run, {}),
        preparation_call(run, nowhere),
        delivery_target_call(run, {}),
    ]
    assert all(call.needs_body for call in questions)
    hooks: tuple[HookName, ...] = get_args(HookName)
    result = [notification_call(run, hook, origin={}, error=None) for hook in hooks]
    result += [spawn_failed_call(run, {}), rollback_call(run, nowhere, None)]
    assert not any(call.needs_body for call in result)


@pytest.mark.parametrize(
    ("outcome", "mode", "reason"),
    [
        ("success", "run", "completed"),
        ("stopped", "run", "released"),
        ("success", "session", "deleted"),
    ],
)
def test_engine_is_told_how_a_child_ended(outcome: RunOutcome, mode: str, reason: str) -> None:
    call = notification_call(ended(outcome, mode=mode), "onSubagentEnded", origin={}, error=None)
    assert call.event["reason"] == reason
