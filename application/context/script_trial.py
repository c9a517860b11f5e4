"""Trial of an agent's context scripts, without a spawn: nothing is recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from application.context.scripts import ContextGatherer, injected_receipts
from application.log.texts import TextStore
from application.ports.configurations import PinnedConfiguration
from application.ports.identifiers import Identities
from domain.context.script_request import SpawnVariables
from domain.prompt.pieces import Contribution, PartedText, task_message
from domain.run.facts import Candidate, Cleanup, ScriptReceipt
from domain.values.record import ContentRef


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """The spawn to try. `agent_id` is normalized, and `requester_key` is canonical."""

    agent_id: str
    task: str
    requester_agent_id: str
    requester_key: str
    label: str | None = None
    cleanup: Cleanup | None = None


@dataclass(frozen=True, slots=True)
class TrialRun:
    """The result of one script: its receipt with the texts. `output` is base64 if the receipt says
    so."""

    receipt: ScriptReceipt
    output: str | None
    content: str | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """The spawn that would result.

    `is_configured` is False if the agent does not exist. Such an agent gets the default scripts,
    and is refused unless one of them proposes a configured agent.
    """

    request: TrialRequest
    is_configured: bool
    runs: tuple[TrialRun, ...]
    message: PartedText = field(repr=False)
    candidates: tuple[Candidate, ...]
    agent_id: str

    @property
    def failed(self) -> tuple[str, ...]:
        """Return the ids of the scripts that failed."""
        return tuple(run.receipt.id for run in self.runs if run.receipt.outcome == "failed")


async def try_scripts(
    request: TrialRequest,
    gathering: ContextGatherer,
    pinned: PinnedConfiguration,
    identities: Identities,
) -> TrialResult:
    """Run the scripts that a spawn of this agent would run, within the same limits."""
    text_store = TextStore(identities.run_id(), identities.content_key(), identities.event_id)
    variables = SpawnVariables(
        target_agent_id=request.agent_id,
        task=request.task,
        label=request.label,
        requester_agent_id=request.requester_agent_id,
        requester_session_key=request.requester_key,
        cleanup=request.cleanup,
        cfg=pinned.redacted,
    )
    facts = _facts(request, identities.run_id())
    agent = pinned.configuration.effective_agent(request.agent_id)
    gathered = await gathering.gather_for(variables, agent, facts, pinned, text_store)
    texts = {content.ref.id: content.text for content in text_store.contents}

    def text(ref: ContentRef | None) -> str | None:
        return None if ref is None else texts[ref.id]

    given = injected_receipts(gathered.receipts)
    around = {
        position: [
            Contribution(receipt.id, text(receipt.injected) or "")
            for receipt in given
            if receipt.position == position
        ]
        for position in ("prepend", "append")
    }
    return TrialResult(
        request=request,
        is_configured=agent.is_configured,
        runs=tuple(
            TrialRun(receipt, text(receipt.output), text(receipt.injected), text(receipt.error))
            for receipt in gathered.receipts
        ),
        message=task_message(request.task, prepend=around["prepend"], append=around["append"]),
        candidates=gathered.candidates,
        agent_id=gathered.override_to or request.agent_id,
    )


def _facts(request: TrialRequest, run_id: UUID) -> Mapping[str, str]:
    return {
        "SPAWNLOG_RUN_ID": str(run_id),
        "SPAWNLOG_REQUESTER_SESSION_KEY": request.requester_key,
        "SPAWNLOG_DEPTH": "1",
        "SPAWNLOG_ATTEMPT": "1",
        "SPAWNLOG_SCRIPT_TEST": "1",
    }
