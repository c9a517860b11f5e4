"""Puts those together who do the work of one server process."""

from dataclasses import dataclass

from application.announcing import Announcing
from application.archiving import Archiving
from application.conducting import Crew
from application.context_gathering import ContextGathering
from application.continuing import Continuing
from application.depending import Depending
from application.dispatching import Dispatching
from application.executing import Executing
from application.holder import Holder
from application.launching import Launching
from application.ports.attachment_files import AttachmentFiles
from application.ports.bootstrap_files import BootstrapFiles
from application.ports.child_tokens import ChildTokens
from application.ports.coordination import Coordination
from application.ports.credentials import Credentials
from application.ports.hooks import Hooks
from application.ports.interruption import Interruption
from application.ports.runtimes import AgentRuntimes
from application.ports.scripts import ScriptRunner, ScriptSecrets
from application.ports.staged_files import StagedFiles
from application.ports.transcripts import Transcripts
from application.ports.workspace_folders import WorkspaceFolders
from application.preparing import Preparing
from application.recovering import Recovering
from application.rooms import Rooms
from application.sealing import Sealing
from application.stepping import Stepping
from application.steps.attachments import AttachmentsStep
from application.steps.context_engine import ContextEngineStep
from application.steps.context_fork import ContextForkStep
from application.steps.thread_binding import ThreadBindingStep
from application.steps.workspace import WorkspaceStep
from application.telling_hooks import TellingHooks
from application.undoing import Undoing
from application.work import Work

SWEPT_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
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
    hooks: Hooks
    interruption: Interruption
    holder: Holder
    lease_seconds: float
    url: str | None


def crew_of(work: Work, means: Means) -> Crew:
    """Everybody, idle as yet."""
    sealing = Sealing(work, means.transcripts)
    makers = (
        ThreadBindingStep(work, means.hooks),
        ContextForkStep(work, means.transcripts),
        WorkspaceStep(means.folders),
        AttachmentsStep(means.attachments, means.staged, work.contents, means.interruption),
        ContextEngineStep(work, means.hooks),
    )
    stepping = Stepping(work, makers, means.staged, means.interruption)
    gathering = ContextGathering(means.scripts, means.credentials, means.script_secrets)
    preparing = Preparing(work, gathering, stepping, means.bootstrap, means.credentials)
    launching = Launching(
        work, means.tokens, means.folders, means.credentials, means.transcripts, means.url
    )
    rooms = Rooms()
    executing = Executing(work, launching, means.runtimes, means.transcripts, sealing)
    return Crew(
        preparing=preparing,
        continuing=Continuing(work, means.bootstrap, means.credentials),
        dispatching=Dispatching(work, executing, means.holder),
        executing=executing,
        announcing=Announcing(work, means.hooks),
        archiving=Archiving(work, means.transcripts),
        depending=Depending(work),
        recovering=Recovering(
            work,
            means.coordination,
            preparing,
            executing,
            sealing,
            holder=means.holder,
            lease_seconds=means.lease_seconds,
        ),
        undoing=Undoing(work, makers, means.interruption, rooms),
        telling=TellingHooks(work, means.hooks, means.interruption, rooms),
        sweeping=lambda: means.staged.sweep(SWEPT_MAX),
    )
