"""Explains the spawn of a run from what was recorded when it was decided."""

from dataclasses import dataclass

from application.answers import SpawnRefusal, refusal_of
from application.work import Work
from domain.explanation import explain
from domain.rule_explained import RuleExplained
from domain.run.state import Run
from domain.spawn_record import DECIDING, Recorded

EVENTS_MAX = 50
"""More than a run has of the events that decide it."""

_TYPES = tuple(kind.__name__ for kind in DECIDING)


@dataclass(frozen=True, slots=True)
class RunExplained:
    """Every rule, and the refusal as the caller was told it; None when there is none."""

    decisions: tuple[RuleExplained, ...]
    refusal: SpawnRefusal | None


async def explained(work: Work, run: Run, *, until: int, full: bool) -> RunExplained:
    """How a run was decided up to a position, where `run` is as it was then. Without `full` only
    the beginning of a refusal's text is shown."""
    events = await work.log.read(run_id=run.run_id, types=_TYPES, until=until, limit=EVENTS_MAX)
    decisions = explain(
        [
            Recorded(one.envelope.position, one.envelope.provenance.config_revision, one.event)
            for one in events
        ]
    )
    if run.refusal is None:
        return RunExplained(decisions, None)
    ref = run.refusal.text
    texts = await (work.contents.texts((ref,)) if full else work.contents.previews((ref,)))
    return RunExplained(decisions, refusal_of(run, texts.get(ref.id)))
