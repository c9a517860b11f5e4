"""A server's inside: every part built, started in order and ended in the reverse of it."""

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import AsyncExitStack, closing

from psycopg_pool import AsyncConnectionPool

from application.coordination.holder import Holder
from application.log.envelope import Actor
from application.log.unit_of_work import UnitOfWork
from application.ports.fault_injection import FaultPoint
from application.queries.access import Access
from application.session.stop import StopService
from application.spawn.service import SpawnService
from application.workers.supervisor import Supervisor, Workers
from domain.configuration.settings import Settings
from infrastructure.connecting import DatabaseConnector
from infrastructure.crew import WorkerDependencies, build_workers
from infrastructure.inbound.http.requests.services import Services
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.configuration.active import ActiveConfigurations
from infrastructure.outbound.configuration.load import LoadedConfiguration
from infrastructure.outbound.configured_tokens import ConfiguredTokens
from infrastructure.outbound.credentials.agent_credentials import AgentCredentials
from infrastructure.outbound.files.attachments import WorkspaceAttachments
from infrastructure.outbound.files.bootstrap_files import DiskBootstrapFiles
from infrastructure.outbound.files.workspaces import LocalWorkspaceFolders
from infrastructure.outbound.hooks.http_hooks import HttpHooks
from infrastructure.outbound.identity.data_directory import DataDirectory
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.identity.tokens import ChildTokenSigner, KnownTokens, admin_token
from infrastructure.outbound.log.append.fail_point import FailPoint
from infrastructure.outbound.log.postgres_log import PostgresLog
from infrastructure.outbound.log.rebuild_at_start import bring_rows_up_to_date
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.identity import LogIdentity, identify
from infrastructure.outbound.read_model.contents import PostgresContents
from infrastructure.outbound.read_model.coordination import PostgresCoordination
from infrastructure.outbound.read_model.registry import PostgresRegistry
from infrastructure.outbound.read_model.staged_files import PostgresStagedFiles
from infrastructure.outbound.runtimes.by_type import RuntimesByType
from infrastructure.outbound.runtimes.command import CommandRuntimes
from infrastructure.outbound.runtimes.scripted import ScriptedRuntimes
from infrastructure.outbound.scripts.secrets import ConfiguredSecrets
from infrastructure.outbound.transcripts.transcripts import StoredTranscripts
from infrastructure.script_house import build_script_runner
from infrastructure.server.database import Database
from infrastructure.server.health import ReadinessCheck
from infrastructure.server_names import holder_name, hosts_of

_log = logging.getLogger("spawnlog")


class ServerProcess:
    """One server process. `open` builds and starts, `close` ends; in between `doors` serve."""

    def __init__(
        self,
        loaded: LoadedConfiguration,
        settings: Settings,
        directory: DataDirectory,
        database: Database,
    ) -> None:
        self._loaded = loaded
        self.settings = settings
        self.directory = directory
        self._connecting = DatabaseConnector(database)
        self._stack = AsyncExitStack()
        self.closing = False
        self.on_end: Callable[[], None] = lambda: None
        self._stopped: asyncio.Future[None] | None = None

    async def open(self, url: str) -> Services:
        """Start everything; `url` is where children and callers reach this server."""
        try:
            return await self._open(url)
        except BaseException:
            await self._stack.aclose()
            raise

    async def _open(self, url: str) -> Services:
        identity = await self._identify()
        pool = await self._connecting.reading()
        self._stack.push_async_callback(pool.close)
        fail_point = FailPoint.of(os.environ)
        self._interruption: FaultPoint = lambda at, what: fail_point.pass_by(at, (what,))
        self.log = PostgresLog(
            self._connecting.connect,
            pool,
            log_id=identity.log_id,
            schema=identity.schema,
            new_id=RandomIdentities().event_id,
            fail_point=fail_point,
        )
        self.log.end_with(self._end)
        self._connecting.on_connection = self.log.remembered.forget
        await self.log.start()
        self._stack.push_async_callback(self.log.close)
        registry, contents = PostgresRegistry(pool, self.log.remembered), PostgresContents(pool)
        identities = RandomIdentities()
        self.configurations = ActiveConfigurations(
            self.log, contents, identities, self.directory.workspaces
        )
        work = UnitOfWork(self.log, registry, contents, identities, self.configurations)
        await self.configurations.activate(self._loaded, Actor(kind="system"))
        seal = ChildTokenSigner(self.directory.child_token_key())
        return await self._build_workers(work, pool, seal, url)

    def _end(self, why: str) -> None:
        """This process can do no more work here: what it holds is taken over once it is gone."""
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
        gatehouse = ProcessLauncher(silence_seconds_max=self.settings.lease_seconds)
        await gatehouse.start()
        self._stack.push_async_callback(gatehouse.close)
        transcripts = StoredTranscripts(pool, self.directory.transcripts)
        coordinating = await self._connecting.coordinating()
        self._stack.push_async_callback(coordinating.close)
        holder, coordination = Holder(holder_name), PostgresCoordination(coordinating)
        hooks = HttpHooks(self.configurations)
        self._stack.push_async_callback(hooks.aclose)
        crew = build_workers(
            work,
            WorkerDependencies(
                coordination=coordination,
                transcripts=transcripts,
                scripts=build_script_runner(gatehouse, self.configurations.file_of),
                script_secrets=ConfiguredSecrets(self.configurations.file_of),
                runtimes=self._runtimes(gatehouse),
                tokens=seal,
                credentials=AgentCredentials(self.configurations, self.directory.path / "agents"),
                folders=LocalWorkspaceFolders(),
                attachments=self._stack.enter_context(closing(WorkspaceAttachments())),
                staged=PostgresStagedFiles(pool),
                bootstrap=DiskBootstrapFiles(),
                hooks=hooks,
                interruption=self._interruption,
                holder=holder,
                lease_seconds=self.settings.lease_seconds,
                url=url,
            ),
        )
        self.executing = crew.executing
        self.spawning = SpawnService(work, crew.preparing, holder)
        await self._start_supervisor(crew, coordination, holder, gatehouse, url)
        return self._build_services(work, crew, transcripts, seal)

    def _runtimes(self, gatehouse: ProcessLauncher) -> RuntimesByType:
        commands = CommandRuntimes(gatehouse, server=os.environ, folder=str(self._loaded.folder))
        self._stack.enter_context(closing(commands))
        return RuntimesByType({"command": commands, "scripted": ScriptedRuntimes()})

    async def _start_supervisor(
        self,
        crew: Workers,
        coordination: PostgresCoordination,
        holder: Holder,
        gatehouse: ProcessLauncher,
        url: str,
    ) -> None:
        self.conducting = Supervisor(
            crew,
            coordination,
            self.log.tail,
            holder=holder,
            lease_seconds=self.settings.lease_seconds,
            follow_configuration=self.configurations.follow,
            alive=gatehouse.heartbeat,
        )
        self.conducting.url = url
        await self.conducting.join()
        self.conducting.start()
        self._stack.push_async_callback(self.conducting.close)

    def _build_services(
        self,
        work: UnitOfWork,
        crew: Workers,
        transcripts: StoredTranscripts,
        seal: ChildTokenSigner,
    ) -> Services:
        self._stopped = asyncio.get_running_loop().create_future()
        admin = admin_token(self.directory.admin_token())
        known = KnownTokens(admin, ConfiguredTokens(self.configurations), seal, work.registry)
        return Services(
            work=work,
            spawning=self.spawning,
            continuing=crew.continuing,
            stopping=StopService(work, crew.preparing),
            announcing=crew.announcing,
            transcripts=transcripts,
            tail=self.log.tail,
            access=Access(work.registry),
            tokens=None if self.settings.no_auth else known,
            hosts=hosts_of(self.settings),
            readiness=ReadinessCheck(self.log, lambda: self.closing),
            closing=lambda: self.closing,
            stopped=self._stopped,
        )

    async def drain(self) -> None:
        """Take no new work, let what is under way end, and end what does not."""
        self._announce_closing()
        await self.conducting.stop_claiming()
        seconds = self.settings.drain_seconds
        ended = self.executing.drain(seconds, "server stopped")
        await asyncio.gather(
            self.spawning.wait_idle(seconds), self.conducting.wait_idle(seconds), ended
        )
        await self.conducting.finish_due()

    async def close(self) -> None:
        """End every part."""
        self._announce_closing()
        await self._stack.aclose()

    def _announce_closing(self) -> None:
        self.closing = True
        if self._stopped is not None and not self._stopped.done():
            self._stopped.set_result(None)

    async def _identify(self) -> LogIdentity:
        connection = await self._connecting.connect()
        try:
            identity = await identify(connection, self.directory.identity())
        finally:
            await connection.close()
        await bring_rows_up_to_date(self._connecting.conninfo)
        return identity
