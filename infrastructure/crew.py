"""Puts those together who do the work of one server process."""

from dataclasses import dataclass

from application.concurrency.bulkhead import Bulkhead
from application.context.scripts import ContextGatherer
from application.coordination.holder import Holder
from application.coordination.port import Coordination
from application.delivery.announce import Announcer
from application.delivery.archive import Archiver
from application.delivery.hooks import HookNotifier
from application.execution.dispatch import Dispatcher
from application.execution.end import RunFinalizer
from application.execution.execute import RunExecutor
from application.execution.launch import LaunchComposer
from application.log.unit_of_work import UnitOfWork
from application.ports.credentials import Credentials
from application.ports.fault_injection import FaultPoint
from application.ports.files import AttachmentFiles, BootstrapFiles, StagedFiles, WorkspaceFolders
from application.ports.hooks import HookClient
from application.ports.identifiers import ChildTokens
from application.ports.runtimes import AgentRuntimes
from application.ports.scripts import ScriptRunner, ScriptSecrets
from application.ports.transcripts import Transcripts
from application.session.continue_session import SessionContinuation
from application.spawn.dependencies import DependencyWaits
from application.spawn.prepare import RunPreparer
from application.steps.attachments import AttachmentsStep
from application.steps.context_engine import ContextEngineStep
from application.steps.context_fork import ContextForkStep
from application.steps.run_steps import StepRunner
from application.steps.thread_binding import ThreadBindingStep
from application.steps.undo import StepUndoer
from application.steps.workspace import WorkspaceStep
from application.workers.recovery import RunRecovery
from application.workers.supervisor import Workers

STAGED_DELETIONS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDependencies:
    """What a crew works with, and under whose name. `url` is where children call back."""

    coordination: Coordination
    transcripts: Transcripts
    scripts: ScriptRunner
    script_secrets: ScriptSecrets
    runtimes: AgentRuntimes
    tokens: ChildTokens
    credentials: Credentials
    folders: WorkspaceFolders
    attachments: AttachmentFiles
    staged: StagedFiles
    bootstrap: BootstrapFiles
    hooks: HookClient
    interruption: FaultPoint
    holder: Holder
    lease_seconds: float
    url: str | None


def build_workers(work: UnitOfWork, means: WorkerDependencies) -> Workers:
    """Everybody, idle as yet."""
    sealing = RunFinalizer(work, means.transcripts)
    makers = (
        ThreadBindingStep(work, means.hooks),
        ContextForkStep(work, means.transcripts),
        WorkspaceStep(means.folders),
        AttachmentsStep(means.attachments, means.staged, work.contents, means.interruption),
        ContextEngineStep(work, means.hooks),
    )
    stepping = StepRunner(work, makers, means.staged, means.interruption)
    gathering = ContextGatherer(means.scripts, means.credentials, means.script_secrets)
    preparing = RunPreparer(work, gathering, stepping, means.bootstrap, means.credentials)
    launching = LaunchComposer(
        work, means.tokens, means.folders, means.credentials, means.transcripts, means.url
    )
    rooms = Bulkhead()
    executing = RunExecutor(work, launching, means.runtimes, means.transcripts, sealing)
    return Workers(
        preparing=preparing,
        continuing=SessionContinuation(work, means.bootstrap, means.credentials),
        dispatching=Dispatcher(work, executing, means.holder),
        executing=executing,
        announcing=Announcer(work, means.hooks),
        archiving=Archiver(work, means.transcripts),
        depending=DependencyWaits(work),
        recovering=RunRecovery(
            work,
            means.coordination,
            preparing,
            executing,
            sealing,
            holder=means.holder,
            lease_seconds=means.lease_seconds,
        ),
        undoing=StepUndoer(work, makers, means.interruption, rooms),
        telling=HookNotifier(work, means.hooks, means.interruption, rooms),
        sweeping=lambda: means.staged.sweep(STAGED_DELETIONS_MAX),
    )
