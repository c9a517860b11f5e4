"""Puts those together who do the work of one server process."""

from dataclasses import dataclass

from application.announcing import Announcer
from application.archiving import Archiver
from application.conducting import Workers
from application.context_gathering import ContextGatherer
from application.continuing import SessionContinuation
from application.depending import DependencyWaits
from application.dispatching import Dispatcher
from application.executing import RunExecutor
from application.holder import Holder
from application.launching import LaunchComposer
from application.ports.attachment_files import AttachmentFiles
from application.ports.bootstrap_files import BootstrapFiles
from application.ports.child_tokens import ChildTokens
from application.ports.coordination import Coordination
from application.ports.credentials import Credentials
from application.ports.hooks import HookClient
from application.ports.interruption import FaultPoint
from application.ports.runtimes import AgentRuntimes
from application.ports.scripts import ScriptRunner, ScriptSecrets
from application.ports.staged_files import StagedFiles
from application.ports.transcripts import Transcripts
from application.ports.workspace_folders import WorkspaceFolders
from application.preparing import RunPreparer
from application.recovering import RunRecovery
from application.rooms import Bulkhead
from application.sealing import RunFinalizer
from application.stepping import StepRunner
from application.steps.attachments import AttachmentsStep
from application.steps.context_engine import ContextEngineStep
from application.steps.context_fork import ContextForkStep
from application.steps.thread_binding import ThreadBindingStep
from application.steps.workspace import WorkspaceStep
from application.telling_hooks import HookNotifier
from application.undoing import StepUndoer
from application.work import UnitOfWork

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
