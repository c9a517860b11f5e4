"""From the events of a run to its spans."""

from application.telemetry.run_spans import READ_TYPES, span_of_announcement, spans_of_end
from application.telemetry.trace_context import TraceContext, span_id_of
from domain.event_types import EVENT_TYPES
from domain.run.facts import Usage
from domain.values.record import ContentRef
from tests.support.builders.continued_runs import message_received, planned
from tests.support.builders.recorded_runs import recorded
from tests.support.builders.run_histories import (
    a_claimed_run,
    an_announced_run,
    announced,
    claimed,
    created,
    ended,
    overridden,
    queued,
    refused,
    resolved,
    started,
)
from tests.support.builders.storytelling import at, plan, requested, run_id

TOP = TraceContext(7, None, False, True)
BELOW = TraceContext(7, 70, False, True)
USAGE = Usage(input_tokens=10, output_tokens=2, total_tokens=12, cache_read_tokens=4, models=())


def test_a_run_is_a_span_with_a_span_for_each_stage() -> None:
    told = (
        *(requested(label="north"), resolved(), created(plan=plan(model_provider="p", model="m"))),
        *(queued(), claimed(), started(), ended(usage=USAGE)),
    )
    span, *stages = spans_of_end(recorded(1, told), BELOW)

    assert (span.trace_id, span.span_id, span.parent_id) == (7, span_id_of(run_id(1)), 70)
    assert (span.name, span.began, span.ended) == ("invoke_agent main", at(1), at(7))
    assert span.failure is None
    assert span.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": "main",
        "gen_ai.agent.name": "main",
        "gen_ai.conversation.id": str(run_id(1001)),
        "gen_ai.provider.name": "p",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "spawnlog.runtime": "scripted",
        "spawnlog.role": "orchestrator",
        "spawnlog.outcome": "success",
        "spawnlog.end.reason": "exit",
        "spawnlog.run.id": str(run_id(1)),
        "spawnlog.requester": "agent:main:main",
        "spawnlog.label": "north",
        "spawnlog.position": 107,
    }
    assert [(one.name, one.began, one.ended) for one in stages] == [
        ("prepare", at(1), at(3)),
        ("queue", at(4), at(5)),
        ("execute", at(6), at(7)),
    ]
    assert {one.parent_id for one in stages} == {span.span_id}
    assert len({one.span_id for one in (span, *stages)}) == 4


def test_a_run_that_never_executed_ends_in_the_stage_that_it_was_at() -> None:
    told = (requested(), resolved(), overridden(), created(agent_id="steward"), queued())
    stopped = ended(outcome="stopped", reason="stopped", exit_code=None, result=None)
    span, *stages = spans_of_end(recorded(1, (*told, stopped)), TOP)
    assert span.name == "invoke_agent steward"
    assert span.failure is None
    assert [one.name for one in span.events] == ["scripts_resolved", "agent_overridden"]
    assert [(one.name, one.ended) for one in stages] == [("prepare", at(4)), ("queue", at(6))]


def test_a_failure_is_called_by_its_outcome_and_a_refusal_by_its_rule() -> None:
    failed = ended(outcome="timeout", reason="timeout", exit_code=None)
    span, *_ = spans_of_end(recorded(1, (*a_claimed_run(), started(), failed)), TOP)
    assert span.failure == span.attributes["error.type"] == "timeout"
    span, stage = spans_of_end(recorded(1, (requested(), refused())), TOP)
    assert span.failure == span.attributes["spawnlog.rule"] == "model"
    assert (stage.name, stage.ended) == ("prepare", at(2))


def test_a_run_that_goes_on_with_a_session_is_linked_to_the_one_before() -> None:
    received = message_received()
    told = (received, planned(), queued(), claimed(), started(), ended())
    span, *_ = spans_of_end(recorded(2, told), BELOW)
    assert [one.span_id for one in span.links] == [span_id_of(received.continues)]
    # A session that a caller's trace opened is one trace as well.
    remote = BELOW._replace(is_parent_remote=True)
    assert len(spans_of_end(recorded(2, told), remote)[0].links) == 1
    brought = [*recorded(2, told)]
    envelope = brought[0].envelope
    provenance = envelope.provenance._replace(traceparent=f"00-{'7' * 32}-{'8' * 16}-01")
    brought[0] = brought[0]._replace(envelope=envelope._replace(provenance=provenance))
    assert spans_of_end(brought, remote)[0].links == (), "the run before is in another trace"


def test_an_announcement_stands_beside_the_run_and_is_linked_to_it() -> None:
    events = recorded(1, an_announced_run())
    read = [one for one in events if one.envelope.type in READ_TYPES]
    span = span_of_announcement(read, BELOW)
    assert span is not None
    assert (span.name, span.parent_id) == ("announce main", 70)
    assert [one.span_id for one in span.links] == [span_id_of(run_id(1))]
    recorded_at = [one.envelope.recorded_at for one in events]
    assert [span.began, span.ended] == recorded_at[-2:]
    top = span_of_announcement(read, TOP)
    assert top is not None
    assert top.parent_id == span_id_of(run_id(1))


def test_an_announcement_to_nobody_is_no_span() -> None:
    told = (*an_announced_run()[:-1], announced(disposition="not_required", text=None))
    assert span_of_announcement(recorded(1, told), TOP) is None


def test_every_type_that_spans_are_made_of_is_an_event() -> None:
    assert set(READ_TYPES) <= {name for name, _ in EVENT_TYPES}


def test_no_attribute_refers_to_a_text() -> None:
    span, *stages = spans_of_end(recorded(1, (*a_claimed_run(), started(), ended())), TOP)
    values = [value for one in (span, *stages) for value in one.attributes.values()]
    assert all(isinstance(value, str | int) for value in values)
    assert not [value for value in values if isinstance(value, ContentRef)]
