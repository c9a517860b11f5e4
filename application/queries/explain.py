"""Explains the decision about a run from the facts recorded with it."""

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
"""More deciding events than any run has: one or two for each step, and one more for each server
that died during it."""


_OF_SPAWNS = tuple(kind.__name__ for kind in DECIDING)
_OF_MESSAGES = tuple(kind.__name__ for kind in CONTINUING)


class RuleView(View):
    """A rule, the facts that it compared, and its result. `position` is that of the event that
    records it, null if none does."""

    step: str
    rule: ExplainedName
    result: RuleResult
    compared: dict[str, JsonValue] | None
    text: str
    position: int | None
    config_revision: int


class RefusalView(View):
    """A refusal as returned to the caller."""

    rule: RuleName
    status: AnswerStatus
    text: str
    current: int | None
    limit: int | None
    step: str


class GivenTextsView(View):
    """Arguments of the request that are stored outside the events; null for one that was not given,
    or is a name and therefore in the events. `dependencies` are the runs to wait for, as JSON, if
    one of the names matched no run or several."""

    agent_id: str | None
    model: str | None
    thinking: str | None
    workspace_dir: str | None
    dependencies: str | None


class ExplanationView(View):
    """Every rule in the order of the decision. `refused` is the refusal, null if there is none."""

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
    summary="Explain why a run was permitted or refused, rule by rule",
    description=(
        "Returns every rule in the order in which they are evaluated: the facts that it compared"
        " (`compared`, and in words `text`), its `result`, and the position and configuration"
        " revision at which it was recorded. `passed` did not refuse the spawn; `refused` did;"
        " `not_judged` was not reached, or not yet; `not_recorded` was not recorded by the"
        " release that decided. A step that made something for the child appears at the event"
        " that records it. `refused` is the rule that refused, with the text that the caller"
        " received, or null. `given` holds arguments that are stored outside the events: a"
        " workspace, and values that are no names. `configured` of the tools and `workspaceRoots`"
        " are quoted from the configuration file of that revision; null if it cannot be read any"
        " more. For a run that continues a session after a message, the only admission rule is"
        " `active_children`, no script runs, and the workspace is `kept`. No rule is evaluated"
        " again."
    ),
    errors=("not_found",),
    tool=Tool(
        name="runs_explain",
        title="Explain a run",
        description=(
            "Explains why a spawn was accepted or refused: the rules, the facts that each"
            " compared, and the configuration in force."
        ),
    ),
    command=Command(
        "run explain",
        "Show why a run was permitted or refused, rule by rule.\n"
        "\n"
        "Each rule is shown with the facts that it compared.",
    ),
)
async def explain_run(
    services: QueryServices, caller: Caller, run_id: str, query: ReadAsOf
) -> Answer[ExplanationView]:
    """Return the explanation of a run's decision as of `at`."""
    moment = await resolve_as_of(services, caller, query.at)
    run = await readable_run(services, caller, run_id, moment)
    view = await explanation_of(
        services.work, run, until=moment.position, full=caller.may("content")
    )
    return Answer(view, moment.position)


async def explanation_of(work: UnitOfWork, run: Run, *, until: int, full: bool) -> ExplanationView:
    """Return the explanation of a run's decision up to a position.

    Args:
        work: Where events and texts are read from.
        run: The run as of `until`.
        until: The last position to read.
        full: False to show only previews of texts.
    """
    types, explained_by = _OF_SPAWNS, explain
    if run.continues is not None:
        types, explained_by = _OF_MESSAGES, explain_continuation
    events = await work.log.read(run_id=run.run_id, types=types, until=until, limit=EVENTS_MAX)
    # Nothing has been decided yet about a waiting message.
    decisions = (
        explained_by(
            [
                EventAtRevision(
                    recorded.envelope.position,
                    recorded.envelope.provenance.config_revision,
                    recorded.event,
                )
                for recorded in events
            ],
            await configuration_of_revision(work, run.config_revision),
        )
        if events
        else ()
    )
    refs_by_name = _requested_texts([recorded.event for recorded in events])
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
    """Return the arguments of the request that are no names, and thus not in its event."""
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
