"""Explains how a run came to be from what was recorded when it was decided."""

from collections.abc import Sequence
from uuid import UUID

from pydantic import JsonValue

from application.log.answers import AnswerStatus, refusal_of_run
from application.log.unit_of_work import UnitOfWork
from application.queries.access import Caller
from application.queries.as_of import resolve_as_of
from application.queries.command import Command
from application.queries.configuration import configuration_of_revision
from application.queries.operation import ReadAsOf, Tool, operation
from application.queries.runs import readable_run
from application.queries.services import QueryServices
from application.queries.views.rule import ExplainedName, RuleName
from application.queries.views.run import RecordedStage
from application.queries.views.view import Answer, View
from domain.event_types import AnyEvent
from domain.explanation.continuation import CONTINUING, explain_continuation
from domain.explanation.record import DECIDING, EventAtRevision, RuleResult
from domain.explanation.spawn import explain
from domain.run.events import MessageReceived, SpawnRequested
from domain.run.state import Run
from domain.values.record import ContentRef

EVENTS_MAX = 500
"""More than a run has of the events that decide it: one or two for each step, and one more for each
server that died in the middle of it."""


_OF_SPAWNS = tuple(kind.__name__ for kind in DECIDING)
_OF_MESSAGES = tuple(kind.__name__ for kind in CONTINUING)


class RuleView(View):
    """What a rule compared, and what came of it; `position` is that of the event which records it,
    null when nothing does."""

    step: str
    rule: ExplainedName
    result: RuleResult
    compared: dict[str, JsonValue] | None
    text: str
    position: int | None
    config_revision: int


class RefusalView(View):
    """A refusal as the caller was answered."""

    rule: RuleName
    status: AnswerStatus
    text: str
    current: int | None
    limit: int | None
    step: str


class GivenTextsView(View):
    """What was asked for and is kept beside the log; null what was not given, or is a name and
    stands in the events. `dependencies` are the runs that it was to wait for, as JSON, when one of
    the names stood for no run, or for several."""

    agent_id: str | None
    model: str | None
    thinking: str | None
    workspace_dir: str | None
    dependencies: str | None


class ExplanationView(View):
    """Every rule in the order of the decision, and the refusal, null when there is none."""

    run_id: UUID
    stage: RecordedStage
    config_revision: int
    given: GivenTextsView
    decisions: list[RuleView]
    refused: RefusalView | None


@operation(
    "GET",
    "/v1/runs/{runId}/explain",
    name="explainRun",
    tag="runs",
    scope="read",
    summary="How a spawn, or a message, was decided",
    description=(
        "Every rule in the order in which they are judged: what it compared (`compared`, and in"
        " words `text`), its `result`, and the position and configuration revision under which that"
        " was recorded. `passed` did not refuse the spawn, `refused` did; `not_judged` stands for"
        " rules to which the decision did not come, or not yet, and `not_recorded` for what the"
        " release that decided did not record. A step that made something for the child stands at"
        " the event that says so. `refused` is the rule that refused, with the text"
        " that the caller was told, or null. `given` holds what was asked for and is kept beside"
        " the log: a workspace, and words that are no name. `configured` of the tools and"
        " `workspaceRoots` are what the revision says, as its file wrote it; null when it cannot"
        " be read any more. Of a run that goes on with a session after a message the only rule of"
        " admission is `active_children`, no script runs, and the workspace is `kept`. Nothing is"
        " judged again."
    ),
    errors=("not_found",),
    tool=Tool(
        name="runs_explain",
        title="Explain a run",
        description=(
            "Why a spawn was accepted or refused, with the rules, what each compared, and the"
            " configuration that held."
        ),
    ),
    command=Command(
        "run explain",
        "Show why a run was permitted or refused, rule by rule.\n\n"
        "Each rule stands with what it compared.",
    ),
)
async def explain_run(
    services: QueryServices, caller: Caller, run_id: str, query: ReadAsOf
) -> Answer[ExplanationView]:
    """Return how a run was decided, as far as that was decided by `at`."""
    moment = await resolve_as_of(services, caller, query.at)
    run = await readable_run(services, caller, run_id, moment)
    view = await explanation_of(
        services.work, run, until=moment.position, full=caller.may("content")
    )
    return Answer(view, moment.position)


async def explanation_of(work: UnitOfWork, run: Run, *, until: int, full: bool) -> ExplanationView:
    """How a run was decided up to a position, where `run` is as it was then. Without `full` only
    the beginnings of texts are shown."""
    types, explained_by = _OF_SPAWNS, explain
    if run.continues is not None:
        types, explained_by = _OF_MESSAGES, explain_continuation
    events = await work.log.read(run_id=run.run_id, types=types, until=until, limit=EVENTS_MAX)
    # Nothing was decided yet about a message that waits.
    decisions = (
        explained_by(
            [
                EventAtRevision(
                    one.envelope.position, one.envelope.provenance.config_revision, one.event
                )
                for one in events
            ],
            await configuration_of_revision(work, run.config_revision),
        )
        if events
        else ()
    )
    refs_by_name = _requested_texts([one.event for one in events])
    refusal = run.refusal.text if run.refusal is not None else None
    refs = [ref for ref in (*refs_by_name.values(), refusal) if ref is not None]
    texts = await (work.contents.texts(refs) if full else work.contents.previews(refs))
    given = {
        name: texts.get(ref.id) if ref is not None else None for name, ref in refs_by_name.items()
    }
    return ExplanationView.from_source(
        run,
        given=given,
        decisions=decisions,
        refused=_refusal_view(run, texts.get(refusal.id) if refusal is not None else None),
    )


def _refusal_view(run: Run, text: str | None) -> RefusalView | None:
    if run.refusal is None:
        return None
    refusal = refusal_of_run(run, text)
    return RefusalView.from_source(refusal, step=run.refusal.step)


def _requested_texts(events: Sequence[AnyEvent]) -> dict[str, ContentRef | None]:
    """What was asked for and is no name: it stands in no event."""
    for event in events:
        if isinstance(event, SpawnRequested):
            return {
                "agent_id": event.agent_id_argument,
                "model": event.model_argument,
                "thinking": event.thinking_argument,
                "workspace_dir": event.workspace_argument,
                "dependencies": event.dependencies_argument,
            }
        if isinstance(event, MessageReceived):
            return {
                "agent_id": None,
                "model": event.model_argument,
                "thinking": event.thinking_argument,
                "workspace_dir": None,
                "dependencies": None,
            }
    return dict.fromkeys(("agent_id", "model", "thinking", "workspace_dir", "dependencies"))
