"""Explains how a run came to be from what was recorded when it was decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from application.log.answers import SpawnRefusal, refusal_of_run
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import RevisionErased
from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError
from domain.event_types import AnyEvent
from domain.explanation.continuation import CONTINUING, explain_continuation
from domain.explanation.record import DECIDING, EventAtRevision, RuleExplanation
from domain.explanation.spawn import explain
from domain.run.events import MessageReceived, SpawnRequested
from domain.run.state import Run
from domain.values.record import ContentRef

EVENTS_MAX = 500


"""More than a run has of the events that decide it: one or two for each step, and one more for each
server that died in the middle of it."""


_OF_SPAWNS = tuple(kind.__name__ for kind in DECIDING)
_OF_MESSAGES = tuple(kind.__name__ for kind in CONTINUING)


@dataclass(frozen=True, slots=True)
class RunExplanation:
    """Every rule, and the refusal as the caller was told it; None when there is none. `given` are
    the texts of the request that are kept beside the log, by their names in the request; None for
    one that was not given, or is a name and stands in the events."""

    decisions: tuple[RuleExplanation, ...]
    refusal: SpawnRefusal | None
    given: Mapping[str, str | None]


async def read_explanation(work: UnitOfWork, run: Run, *, until: int, full: bool) -> RunExplanation:
    """How a run was decided up to a position, where `run` is as it was then. Without `full` only
    the beginnings of texts are shown."""
    types, told_by = _OF_SPAWNS, explain
    if run.continues is not None:
        types, told_by = _OF_MESSAGES, explain_continuation
    events = await work.log.read(run_id=run.run_id, types=types, until=until, limit=EVENTS_MAX)
    decisions = told_by(
        [
            EventAtRevision(
                one.envelope.position, one.envelope.provenance.config_revision, one.event
            )
            for one in events
        ],
        await _configuration(work, run.config_revision),
    )
    kept = _requested_texts([one.event for one in events])
    refusal = run.refusal.text if run.refusal is not None else None
    refs = [ref for ref in (*kept.values(), refusal) if ref is not None]
    texts = await (work.contents.texts(refs) if full else work.contents.previews(refs))
    given = {name: texts.get(ref.id) if ref is not None else None for name, ref in kept.items()}
    text = texts.get(refusal.id) if refusal is not None else None
    told = refusal_of_run(run, text) if run.refusal is not None else None
    return RunExplanation(decisions, told, given)


async def _configuration(work: UnitOfWork, revision: int) -> Configuration | None:
    """What the revision says; None when its text was erased or a newer program wrote it."""
    try:
        return (await work.configurations.at(revision)).configuration
    except (RevisionErased, ConfigurationError):
        return None


def _requested_texts(events: Sequence[AnyEvent]) -> dict[str, ContentRef | None]:
    """What was asked for and is no name: it stands in no event."""
    for event in events:
        if isinstance(event, SpawnRequested):
            return {
                "agentId": event.agent_id_argument,
                "model": event.model_argument,
                "thinking": event.thinking_argument,
                "workspaceDir": event.workspace_argument,
            }
        if isinstance(event, MessageReceived):
            return {
                "agentId": None,
                "model": event.model_argument,
                "thinking": event.thinking_argument,
                "workspaceDir": None,
            }
    return {}
