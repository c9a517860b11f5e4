"""What an agent's context scripts would do to a spawn, without one: nothing is recorded."""

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
    """The spawn that is not made. `agent_id` and `requester_key` as a spawn would have them: an
    agent id, normalised, and a session's key in its one form."""

    agent_id: str
    task: str
    requester_agent_id: str
    requester_key: str
    label: str | None = None
    cleanup: Cleanup | None = None


@dataclass(frozen=True, slots=True)
class TrialRun:
    """What one script did: its receipt with its texts. `output` is in base64 where the receipt says
    so."""

    receipt: ScriptReceipt
    output: str | None
    content: str | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """What would come of the spawn. `is_configured` is whether there is such an agent: another one
    gets the scripts of the defaults, and is refused if none of them names one that there is."""

    request: TrialRequest
    is_configured: bool
    runs: tuple[TrialRun, ...]
    message: PartedText = field(repr=False)
    candidates: tuple[Candidate, ...]
    agent_id: str

    @property
    def failed(self) -> tuple[str, ...]:
        """The ids of the scripts that failed."""
        return tuple(one.receipt.id for one in self.runs if one.receipt.outcome == "failed")


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
    texts = {one.ref.id: one.text for one in text_store.contents}

    def text(ref: ContentRef | None) -> str | None:
        return None if ref is None else texts[ref.id]

    given = injected_receipts(gathered.receipts)
    around = {
        position: [
            Contribution(one.id, text(one.injected) or "")
            for one in given
            if one.position == position
        ]
        for position in ("prepend", "append")
    }
    return TrialResult(
        request=request,
        is_configured=agent.is_configured,
        runs=tuple(
            TrialRun(one, text(one.output), text(one.injected), text(one.error))
            for one in gathered.receipts
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
