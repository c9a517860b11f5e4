"""Composition root: builds and starts the parts of a server, and ends them in reverse order."""

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from psycopg_pool import AsyncConnectionPool

from application.concurrency.bulkhead import Bulkhead
from application.concurrency.periodic import PeriodicTask
from application.configuration.activate import ActiveConfigurations
from application.context.scripts import ContextGatherer
from application.coordination.coordination import Coordination
from application.coordination.lease_owner import LeaseOwner
from application.delivery.announce import Announcer
from application.delivery.archive import Archiver
from application.delivery.effects import EffectWorker
from application.delivery.hooks import HookPerformer
from application.delivery.transcript_files import TranscriptFileWriter
from application.delivery.undo import UndoPerformer
from application.delivery.webhooks import WebhookPerformer
from application.execution.dispatch import Dispatcher
from application.execution.end import RunFinalizer
from application.execution.execute import RunExecutor
from application.execution.external import ExternalRuns
from application.execution.launch import LaunchComposer
from application.log.envelope import SYSTEM
from application.log.unit_of_work import CommandLog, UnitOfWork
from application.ports.credentials import Credentials
from application.ports.fault_injection import FaultPoint
from application.ports.files import (
    AttachmentFiles,
    BootstrapFiles,
    StagedFiles,
    WorkspaceFolders,
    Workspaces,
)
from application.ports.hooks import HookClient
from application.ports.identifiers import ChildTokens
from application.ports.runtimes import AgentRuntimes
from application.ports.scripts import ScriptRunner, ScriptSecrets
from application.ports.transcripts import Transcripts
from application.ports.webhooks import WebhookClient
from application.queries.access import Access
from application.queries.what_if.ask import AT_ONCE_MAX as QUESTIONS_MAX
from application.session.continue_session import SessionContinuation
from application.session.stop import StopService
from application.session.tool_policy import ToolGuard
from application.spawn.child import ChildPreparer
from application.spawn.dependencies import DependencyWaits
from application.spawn.prepare import SpawnPreparer
from application.spawn.service import SpawnService
from application.steps.attachments import AttachmentsStep
from application.steps.context_engine import ContextEngineStep
from application.steps.context_fork import ContextForkStep
from application.steps.run_steps import StepRunner
from application.steps.step import StepMaker
from application.steps.thread_binding import ThreadBindingStep
from application.steps.workspace import WorkspaceStep
from application.telemetry.measurements import Measurements
from application.telemetry.trace_context import TraceContexts
from application.workers.event_counter import COUNT_SECONDS, EventCounter
from application.workers.recovery import RunRecovery
from application.workers.supervisor import Supervisor, Workers
from domain.configuration.settings import Settings
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.mcp.endpoint import McpEndpoint
from infrastructure.inbound.web.built_files import find_built_files
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.configuration.candidate import CandidateTexts
from infrastructure.outbound.configuration.files import LoadedFiles, warn_about_missing
from infrastructure.outbound.configuration.load import LoadedConfiguration, load
from infrastructure.outbound.configuration.workspaces import ConfiguredWorkspaces
from infrastructure.outbound.credentials.agent_credentials import AgentCredentials
from infrastructure.outbound.files.attachments import WorkspaceAttachments
from infrastructure.outbound.files.bootstrap_files import DiskBootstrapFiles
from infrastructure.outbound.files.workspaces import LocalWorkspaceFolders
from infrastructure.outbound.hooks.http_hooks import HttpHooks
from infrastructure.outbound.hooks.http_webhooks import HttpWebhooks
from infrastructure.outbound.identity.data_directory import DataDirectory
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.identity.page_tokens import PostgresPageTokens
from infrastructure.outbound.identity.tokens import (
    ChildTokenSigner,
    ConfiguredTokens,
    KnownTokens,
    admin_token,
)
from infrastructure.outbound.log.append.fault_point import LogFaultPoint
from infrastructure.outbound.log.postgres_log import PostgresLog
from infrastructure.outbound.log.rebuild.rebuild import bring_rows_up_to_date
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.identity import LogIdentity, identify
from infrastructure.outbound.log.verify.service import ServedVerifications
from infrastructure.outbound.log.verify.verify import STATE_FILE
from infrastructure.outbound.read_model.contents import PostgresContents
from infrastructure.outbound.read_model.coordination import PostgresCoordination
from infrastructure.outbound.read_model.event_counts import PostgresEventCounts
from infrastructure.outbound.read_model.open_work import PostgresOpenWork
from infrastructure.outbound.read_model.registry import PostgresRegistry
from infrastructure.outbound.read_model.run_bars import PostgresRunBars
from infrastructure.outbound.read_model.run_search import PostgresRunSearch
from infrastructure.outbound.read_model.staged_files import PostgresStagedFiles
from infrastructure.outbound.runtimes.by_type import RuntimesByType
from infrastructure.outbound.runtimes.command import CommandRuntimes
from infrastructure.outbound.runtimes.model import ModelRuntimes
from infrastructure.outbound.runtimes.scripted import ScriptedRuntimes
from infrastructure.outbound.scripts.by_uri import ScriptsByUri
from infrastructure.outbound.scripts.http import HttpScripts
from infrastructure.outbound.scripts.local import LocalFileScripts
from infrastructure.outbound.scripts.secrets import ConfiguredSecrets, FileOf
from infrastructure.outbound.transcripts.transcripts import StoredTranscripts
from infrastructure.server.active_configuration import (
    ActiveRevision,
    describe_activation,
    describe_kept,
    describe_neighbors,
)
from infrastructure.server.database import Database, DatabaseConnector
from infrastructure.server.health import ReadinessCheck, answers, holder_name, hosts_of
from infrastructure.server.telemetry import Telemetry, start_telemetry

STAGED_DELETIONS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDependencies:
    """Adapters and settings that the workers need.

    `url` is the address for callbacks of children. `traces` is None if no spans are sent.
    """

    coordination: Coordination
    transcripts: Transcripts
    scripts: ScriptRunner
    script_secrets: ScriptSecrets
    runtimes: AgentRuntimes
    tokens: ChildTokens
    credentials: Credentials
    folders: WorkspaceFolders
    workspaces: Workspaces
    attachments: AttachmentFiles
    staged: StagedFiles
    bootstrap: BootstrapFiles
    hooks: HookClient
    webhooks: WebhookClient
    interruption: FaultPoint
    holder: LeaseOwner
    lease_seconds: float
    url: str | None
    traces: TraceContexts | None = None


def build_workers(work: UnitOfWork, dependencies: WorkerDependencies) -> Workers:
    """Build all background workers; none is started."""
    files = TranscriptFileWriter(work.registry, dependencies.transcripts, dependencies.coordination)
    announcing = Announcer(work, dependencies.hooks, dependencies.transcripts)
    archiving = Archiver(work, dependencies.transcripts, files)
    sealing = RunFinalizer(work, dependencies.transcripts, files, announcing, archiving)
    makers = _step_makers(work, dependencies)
    stepping = StepRunner(work, makers, dependencies.staged, dependencies.interruption)
    gathering = ContextGatherer(
        dependencies.scripts, dependencies.credentials, dependencies.script_secrets
    )
    children = ChildPreparer(
        work,
        gathering,
        stepping,
        dependencies.bootstrap,
        dependencies.credentials,
        dependencies.workspaces,
    )
    preparing = SpawnPreparer(work, stepping, children)
    launching = _launch_composer(work, dependencies)
    performers = (
        UndoPerformer(makers),
        HookPerformer(work, dependencies.hooks),
        WebhookPerformer(work, dependencies.webhooks),
    )
    executing = RunExecutor(
        work, launching, dependencies.runtimes, dependencies.transcripts, sealing
    )
    dispatching = Dispatcher(work, executing, dependencies.holder)
    external = ExternalRuns(
        work,
        dependencies.coordination,
        launching,
        dependencies.transcripts,
        sealing,
        dependencies.tokens,
    )
    return Workers(
        preparing=preparing,
        continuing=SessionContinuation(
            work, dependencies.bootstrap, dependencies.credentials, dispatching
        ),
        dispatching=dispatching,
        executing=executing,
        external=external,
        announcing=announcing,
        archiving=archiving,
        depending=DependencyWaits(work),
        recovering=RunRecovery(
            work,
            dependencies.coordination,
            preparing,
            executing,
            sealing,
            external,
            holder=dependencies.holder,
            lease_seconds=dependencies.lease_seconds,
        ),
        effects=EffectWorker(work, performers, dependencies.interruption, Bulkhead()),
        transcript_files=files,
        sweeping=lambda: dependencies.staged.sweep(STAGED_DELETIONS_MAX),
    )


def _step_makers(work: UnitOfWork, dependencies: WorkerDependencies) -> tuple[StepMaker, ...]:
    """Return the makers of a child's steps outside the log, in the order of the steps."""
    return (
        ThreadBindingStep(work, dependencies.hooks),
        ContextForkStep(work, dependencies.transcripts),
        WorkspaceStep(dependencies.folders),
        AttachmentsStep(
            dependencies.attachments, dependencies.staged, work.contents, dependencies.interruption
        ),
        ContextEngineStep(work, dependencies.hooks),
    )


def _launch_composer(work: UnitOfWork, dependencies: WorkerDependencies) -> LaunchComposer:
    return LaunchComposer(
        work,
        dependencies.tokens,
        dependencies.folders,
        dependencies.credentials,
        dependencies.transcripts,
        dependencies.url,
        dependencies.traces,
    )


def build_script_runner(launcher: ProcessLauncher, file_of: FileOf) -> ScriptsByUri:
    """Return a runner for files and URLs. `file_of` returns the file of a revision."""
    files = LocalFileScripts(launcher, file_of, server=os.environ)
    return ScriptsByUri(files, HttpScripts(file_of))


_log = logging.getLogger("spawnlog")


class ServerProcess:
    """One server process: `open` builds and starts it, `close` ends it.

    Args:
        loaded: The configuration.
        settings: The effective settings.
        directory: The data directory.
        database: The database.
        config: The configuration file, or None to keep the active revision of the log.
        active: The active revision without a file; None for a new log.
    """

    def __init__(
        self,
        loaded: LoadedConfiguration,
        settings: Settings,
        directory: DataDirectory,
        database: Database,
        *,
        config: Path | None,
        active: ActiveRevision | None,
    ) -> None:
        self._loaded = loaded
        self.config = config
        self._active = active
        self.settings = settings
        self.directory = directory
        self._connecting = DatabaseConnector(database)
        self._is_embedded = database.is_embedded
        self._stack = AsyncExitStack()
        self._telemetry: Telemetry | None = None
        self.closing = False
        self.on_end: Callable[[], None] = lambda: None
        self._stopped: asyncio.Future[None] | None = None

    async def open(self, url: str) -> Services:
        """Build and start all parts. `url` is the server's address for children and callers."""
        try:
            return await self._open(url)
        except BaseException:
            await self._stack.aclose()
            raise

    async def _open(self, url: str) -> Services:
        identity = await self._identify()
        pool = await self._connecting.reading()
        self._stack.push_async_callback(pool.close)
        fault_point = LogFaultPoint.of(os.environ)
        self._interruption: FaultPoint = lambda at, action: fault_point.pass_by(at, (action,))
        self.log = PostgresLog(
            self._connecting.connect,
            pool,
            log_id=identity.log_id,
            schema=identity.schema,
            new_id=RandomIdentities().event_id,
            fault_point=fault_point,
        )
        self.log.end_with(self._end)
        self._connecting.on_connection = self.log.remembered.forget
        await self.log.start()
        self._stack.push_async_callback(self.log.close)
        self._telemetry = start_telemetry(self._loaded, self.settings, self.log)
        if self._telemetry is not None:
            self._stack.push_async_callback(self._telemetry.spans.close)
        registry = PostgresRegistry(pool, self.log.remembered, self.log.tail.is_respawned)
        contents = PostgresContents(pool, self.log.texts)
        identities = RandomIdentities()
        self._files = LoadedFiles()
        self.configurations = ActiveConfigurations(
            CommandLog(self.log, identities), contents, self._files
        )
        work = UnitOfWork(self.log, identities, registry, contents, self.configurations)
        await self._activate()
        seal = ChildTokenSigner(self.directory.child_token_key())
        return await self._build_workers(work, pool, seal, url)

    async def _activate(self) -> None:
        """Activate the configuration of the file, or keep the log's. Log the result."""
        before = await self.configurations.newest()
        if self.config is not None:
            revision = await self.configurations.activate(self._loaded, SYSTEM)
            text = describe_activation(revision, self._loaded.source, before)
        else:
            if self._active is not None:
                self._files.note_found(self._active.revision, self._loaded)
            await self.configurations.keep(load(None), SYSTEM)
            text = describe_kept(before)
        _log.info("%s%s", describe_neighbors(self.directory.servers_of(self.log.log_id)), text)
        if self._active is not None and self._loaded.missing is not None:
            warn_about_missing(self._active.revision, self._loaded)

    def _end(self, why: str) -> None:
        """Stop the server because this process can no longer work. Others take over its leases."""
        if not self.closing:
            _log.error("this server stops: %s", why)
        self.on_end()

    async def _build_workers(
        self,
        work: UnitOfWork,
        pool: AsyncConnectionPool[LogConnection],
        seal: ChildTokenSigner,
        url: str,
    ) -> Services:
        launcher = ProcessLauncher(silence_seconds_max=self.settings.lease_seconds)
        await launcher.start()
        self._stack.push_async_callback(launcher.close)
        transcripts = StoredTranscripts(pool, self.directory.transcripts)
        coordinating = await self._connecting.coordinating(
            lease_seconds=self.settings.lease_seconds
        )
        self._stack.push_async_callback(coordinating.close)
        holder, coordination = LeaseOwner(holder_name), PostgresCoordination(coordinating)
        hooks = HttpHooks(self._files)
        self._stack.push_async_callback(hooks.aclose)
        workers = build_workers(
            work,
            WorkerDependencies(
                coordination=coordination,
                transcripts=transcripts,
                scripts=build_script_runner(launcher, self._files.file_of),
                script_secrets=ConfiguredSecrets(self._files.file_of),
                runtimes=self._runtimes(launcher),
                tokens=seal,
                credentials=AgentCredentials(self._files, self.directory.path / "agents"),
                folders=LocalWorkspaceFolders(),
                workspaces=ConfiguredWorkspaces(self._files, self.directory.workspaces),
                attachments=self._stack.enter_context(closing(WorkspaceAttachments())),
                staged=PostgresStagedFiles(pool),
                bootstrap=DiskBootstrapFiles(),
                hooks=hooks,
                webhooks=HttpWebhooks(self._files),
                interruption=self._interruption,
                holder=holder,
                lease_seconds=self.settings.lease_seconds,
                url=url,
                traces=self._telemetry.traces if self._telemetry is not None else None,
            ),
        )
        self.executing = workers.executing
        self.spawning = SpawnService(
            work, workers.preparing, workers.dispatching, holder, transcripts.flushes
        )
        await self._start_supervisor(workers, coordination, holder, launcher, url)
        counts = PostgresEventCounts(pool)
        self._start_counting(counts)
        return self._build_services(work, workers, transcripts, seal, counts, pool)

    def _runtimes(self, launcher: ProcessLauncher) -> RuntimesByType:
        commands = CommandRuntimes(launcher, server=os.environ, folder=str(self._loaded.folder))
        self._stack.enter_context(closing(commands))
        return RuntimesByType(
            {"command": commands, "scripted": ScriptedRuntimes(), "model": ModelRuntimes()}
        )

    async def _start_supervisor(
        self,
        workers: Workers,
        coordination: PostgresCoordination,
        holder: LeaseOwner,
        launcher: ProcessLauncher,
        url: str,
    ) -> None:
        self.conducting = Supervisor(
            workers,
            coordination,
            self.log.tail,
            holder=holder,
            lease_seconds=self.settings.lease_seconds,
            follow_configuration=self.configurations.follow,
            alive=launcher.heartbeat,
        )
        self.conducting.url = url
        await self.conducting.join()
        self.conducting.start()
        self._stack.push_async_callback(self.conducting.close)

    def _start_counting(self, counts: PostgresEventCounts) -> None:
        counting = PeriodicTask(
            "event counts", EventCounter(counts, self.log.tail).count, COUNT_SECONDS
        )
        counting.start()
        self._stack.push_async_callback(counting.close)

    def _build_services(
        self,
        work: UnitOfWork,
        workers: Workers,
        transcripts: StoredTranscripts,
        seal: ChildTokenSigner,
        counts: PostgresEventCounts,
        pool: AsyncConnectionPool[LogConnection],
    ) -> Services:
        self._stopped = asyncio.get_running_loop().create_future()
        admin = admin_token(self.directory.admin_token())
        known = KnownTokens(
            admin,
            ConfiguredTokens(self.configurations, self._files),
            seal,
            work.registry,
            PostgresPageTokens(pool),
        )
        services = Services(
            work=work,
            spawning=self.spawning,
            continuing=workers.continuing,
            stopping=StopService(work, workers.preparing),
            announcing=workers.announcing,
            external=workers.external,
            effects=workers.effects,
            tool_policy=ToolGuard(work),
            verifications=self._verifications(pool),
            transcripts=transcripts,
            tail=self.log.tail,
            access=Access(work.registry),
            candidates=CandidateTexts(),
            processor_room=Bulkhead(at_once_max=QUESTIONS_MAX, calls_max=QUESTIONS_MAX),
            event_counts=counts,
            run_bars=PostgresRunBars(pool, self.log.remembered, self.log.tail.stages),
            run_search=PostgresRunSearch(pool, self.log.remembered),
            tokens=None if self.settings.no_auth else known,
            page_tokens=None if self.settings.no_auth else known,
            serves_page=not self.settings.no_page,
            page_is_built=find_built_files() is not None,
            hosts=hosts_of(self.settings),
            measurements=self._measurements(pool),
            readiness=ReadinessCheck(self.log, lambda: self.closing),
            closing=lambda: self.closing,
            stopped=self._stopped,
        )
        self.models = McpEndpoint(services)
        self._stack.push_async_callback(self.models.close)
        return services

    def _verifications(self, pool: AsyncConnectionPool[LogConnection]) -> ServedVerifications:
        state_file = self.directory.path / STATE_FILE
        served = ServedVerifications(pool, lambda: self._connecting.conninfo, state_file)
        self._stack.push_async_callback(served.close)
        return served

    def _measurements(self, pool: AsyncConnectionPool[LogConnection]) -> Measurements:
        return Measurements(
            log_id=self.log.log_id,
            totals=self.log.totals,
            spans=self._telemetry.spans.totals if self._telemetry is not None else None,
            open_work=PostgresOpenWork(pool),
            tail=lambda: self.log.tail.position,
            lane_width=lambda: (
                self.configurations.current().configuration.subagent_defaults.max_concurrent
            ),
        )

    async def drain(self) -> None:
        """Stop claiming work, wait for runs to end up to the limit, then end the rest."""
        self._announce_closing()
        await self.conducting.stop_claiming()
        seconds = self.settings.drain_seconds
        await asyncio.gather(
            self.spawning.wait_idle(seconds),
            self.conducting.wait_idle(seconds),
            self.executing.wait_idle(seconds),
        )
        if not await answers(self.log):
            _log.error(
                "the database does not respond: runs and due work are left for the next start"
            )
            self.executing.close()
            await self.executing.abandon_all()
            return
        await self.executing.interrupt_all("server stopped")
        # Runs that were claimed meanwhile.
        self.executing.close()
        await self.executing.interrupt_all("server stopped")
        await self.conducting.finish_due()

    async def close(self) -> None:
        self._announce_closing()
        await self._stack.aclose()

    def _announce_closing(self) -> None:
        self.closing = True
        if self._stopped is not None and not self._stopped.done():
            self._stopped.set_result(None)

    def _claim(self, log_id: UUID) -> None:
        """Record the log in the data directory. Refuse if servers of the directory use another
        log."""
        self.directory.record_log(log_id, "embedded" if self._is_embedded else "external")

    async def _identify(self) -> LogIdentity:
        connection = await self._connecting.connect()
        try:
            identity = await identify(connection, self.directory.identity(), self._claim)
        finally:
            await connection.close()
        await bring_rows_up_to_date(self._connecting.conninfo)
        return identity
