"""A refusing decision of the product for every rule."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

from application.log.texts import TextStore
from application.spawn.refuse import batch_refusal_command
from application.steps.attachments import AttachmentsStep
from application.steps.preparation import no_caller, refuse_erased
from application.steps.step import StepRefusedError
from domain.configuration.configuration import Configuration
from domain.context.fork import no_transcript_refusal
from domain.context.thread_binding import unavailable_thread
from domain.delivery.hook_payloads import engine_failure
from domain.plan.credentials import FoundCredentials, MissingCredential
from domain.run.commands import StopRun
from domain.run.decide import stop_run
from domain.run.events import SpawnRefused
from domain.run.facts import AttachmentsRequest, BatchFacts, DependencyVia
from domain.run.state import Run
from domain.session.shared_context import SHARED_BYTES_MAX, limit_refusal
from domain.spawn.admission import ADMISSION, admit
from domain.spawn.dependencies import DependencyRequest
from domain.spawn.dependency_rules import NAMES, WAITS, DependencyFacts, NamedRuns
from domain.values.refusals import Refusal
from domain.values.rules import first_refusal
from tests.support.builders.planned_children import asked, configuration, decided
from tests.support.builders.run_histories import refused
from tests.support.builders.storytelling import facts, plan, ref, requested, run_id, run_of
from tests.support.builders.waiting_runs import TARGET, dependency


def _admission(**changes: Any) -> str | None:
    return _rule(admit(ADMISSION, facts(**changes)))


def _name(via: DependencyVia, *labels: str) -> str | None:
    runs = [run_of(requested(label=label)) for label in labels]
    return _rule(first_refusal(NAMES, NamedRuns(request=DependencyRequest("a", via), runs=runs)))


def _wait(target: Run, **above: Any) -> str | None:
    known: dict[str, Any] = {"ancestors": (), "waiting": (), "runs": {TARGET: target}, **above}
    return _rule(first_refusal(WAITS, DependencyFacts(dependency=dependency(), **known)))


class _NoWorkspaces:
    """Implements `Workspaces`: none can be used."""

    def workspace_of(self, *_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")


def _eligibility(
    agent_id: str = "main",
    missing: tuple[MissingCredential, ...] = (),
    requester: Mapping[str, Any] | None = None,
    **agent: Any,
) -> str | None:
    configured: Configuration = configuration({"id": "main", **agent})
    run, found = asked(agent_id, dict(requester or {})), FoundCredentials(missing=missing)
    planned = decided(cast(Any, _NoWorkspaces()), run, configured, found)
    return _rule(getattr(planned, "refusal", None))


def _attachments() -> str | None:
    run = run_of(requested(attachments=AttachmentsRequest(count=1, total_bytes=1)))
    nothing: Any = None
    step = AttachmentsStep(nothing, nothing, nothing, nothing)
    try:
        asyncio.run(step.place(run, plan(workspace_dir=None)))
    except StepRefusedError as failure:
        return _rule(failure.refusal)
    return None


def _stopped() -> str | None:
    stop = StopRun(by="admin", by_requester=False, reason=ref("enough"))
    (event,) = stop_run(run_of(requested()), stop)
    return event.rule if isinstance(event, SpawnRefused) else None


def _batch() -> str | None:
    members = BatchFacts(batch_id=run_id(9), index=0, run_ids=(run_id(1), run_id(2)))
    culprit, no_texts = run_of(requested(batch=members)), cast(TextStore | None, None)
    return batch_refusal_command(culprit, "text", no_texts, epoch=None).rule


def _rule(verdict: object) -> str | None:
    return verdict.rule if isinstance(verdict, Refusal) else None


REFUSALS: Mapping[str, Callable[[], str | None]] = {
    "agent_id": lambda: _admission(agent_id_argument_given=True, target_agent_id=None),
    "mode": lambda: _admission(mode="session", thread=False),
    "depth": lambda: _admission(caller_depth=1, max_spawn_depth=1),
    "tools": lambda: _admission(spawn_tool="denied"),
    "active_children": lambda: _admission(active_children=1, max_children=1),
    "require_agent_id": lambda: _admission(require_agent_id=True, agent_id_argument_given=False),
    "allow_agents": lambda: _admission(agent_id_argument_given=True, allow_agents=()),
    "shared_context": lambda: _rule(limit_refusal((), [("key", SHARED_BYTES_MAX)], "family")),
    "dependency_unknown": lambda: _name("dependsOn"),
    "dependency_ambiguous": lambda: _name("chainAfter", "a", "a"),
    "dependency_cycle": lambda: _wait(run_of(requested()), ancestors=(TARGET,)),
    "dependency_failed": lambda: _wait(run_of(requested(), refused())),
    "reference_unknown": lambda: _name("reference"),
    "reference_ambiguous": lambda: _name("reference", "a1", "a2"),
    "agent_unknown": lambda: _eligibility("nobody"),
    "sandbox": lambda: _eligibility(sandbox={"mode": "all"}),
    "thinking": lambda: _eligibility(subagents={"thinking": "banana"}),
    "runtime": lambda: _eligibility(runtime={"type": "worker", "queue": "q"}),
    "credentials": lambda: _eligibility(missing=(MissingCredential("KEY", "KEY is not set"),)),
    "workspace": lambda: _eligibility(),
    "thread_binding": lambda: _rule(unavailable_thread("run")),
    "context_fork": lambda: _rule(no_transcript_refusal()),
    "attachments": _attachments,
    "context_engine": lambda: _rule(engine_failure("it is away")),
    "stopped": _stopped,
    "erased": lambda: _rule(refuse_erased(run_of(requested()), no_caller).refusal),
    "batch": _batch,
}
