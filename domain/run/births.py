"""How a run begins: with a request for a child, or with a message to one that is there."""

from domain.run.continuation_events import MessageReceived
from domain.run.events import RunEvent
from domain.run.request_events import SpawnRequested
from domain.run.state import Run
from domain.stamp import Stamp
from domain.values.refusals import CorruptHistory


def initial_run(event: RunEvent, stamp: Stamp) -> Run:
    """The run as it is after its first event. `CorruptHistory` when no run begins with that."""
    match event:
        case SpawnRequested():
            return _run_of_spawn(event, stamp)
        case MessageReceived():
            return _run_of_message(event, stamp)
        case _:
            raise CorruptHistory(f"no run begins with {type(event).__name__}")


def _run_of_spawn(event: SpawnRequested, stamp: Stamp) -> Run:
    return Run(
        stage="requested",
        version=stamp.version,
        last_event_id=stamp.event_id,
        run_id=event.run_id,
        session_id=event.session_id,
        created_position=stamp.position,
        created_at=stamp.recorded_at,
        requester=event.requester,
        requested_agent_id=event.requested_agent_id,
        agent_id=event.requested_agent_id,
        label=event.label,
        task=event.task,
        preamble=event.preamble,
        model_argument=event.model_argument,
        thinking_argument=event.thinking_argument,
        attachments=event.attachments,
        light_context=event.light_context,
        context_argument=event.context_argument,
        shares=True if event.shared is not None else None,
        dependencies=event.dependencies or None,
        ancestors=event.ancestors or None,
        batch=event.batch,
        thread=event.facts.thread,
        options=event.options,
        config_revision=event.config_revision,
        holder=event.holder,
        epoch=stamp.version,
        depth=event.requester.depth + 1,
    )


def _run_of_message(event: MessageReceived, stamp: Stamp) -> Run:
    return Run(
        stage="requested",
        version=stamp.version,
        last_event_id=stamp.event_id,
        run_id=event.run_id,
        session_id=event.session_id,
        created_position=stamp.position,
        created_at=stamp.recorded_at,
        requester=event.requester,
        requested_agent_id=event.agent_id,
        agent_id=event.agent_id,
        label=event.label,
        task=event.message,
        model_argument=event.model_argument,
        thinking_argument=event.thinking_argument,
        light_context=event.light_context,
        thread=event.thread,
        kept_context_mode=event.context_mode,
        options=event.options,
        config_revision=event.config_revision,
        epoch=stamp.version,
        child_session_key=event.child_session_key,
        depth=event.depth,
        delivery_origin=event.delivery_origin,
        continues=event.continues,
        opened_by=event.opened_by,
    )
