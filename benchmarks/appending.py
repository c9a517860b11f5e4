"""The log writer alone: admissions submitted to a log of one's own."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from psycopg_pool import AsyncConnectionPool

from application.commands.resolve_request import resolve_request
from application.log.envelope import Actor, Provenance
from application.log.event_log import Submission
from application.ports.configurations import PinnedConfiguration
from application.spawn.admit import decide_admission
from application.spawn.request import spawn_command
from benchmarks.history.world.configuration import loaded_configuration
from benchmarks.load import TASK, requester
from benchmarks.server import CONFIGURATION
from domain.spawn.admission import policy_of
from domain.spawn.decide import SpawnDecision
from domain.spawn.request import SpawnRequest
from domain.values.record import run_stream, session_stream
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.log.postgres_log import PostgresLog
from infrastructure.outbound.log.schema.connections import LogConnection, open_connection

ACTOR = Actor(kind="token", token="admin")


@asynccontextmanager
async def opened_log(conninfo: str) -> AsyncIterator[PostgresLog]:
    """Yield a running log, as in a server process."""

    async def connect() -> LogConnection:
        return await open_connection(conninfo, application="benchmark")

    pool: AsyncConnectionPool[LogConnection] = AsyncConnectionPool(
        conninfo,
        connection_class=LogConnection,
        min_size=1,
        max_size=2,
        open=False,
        kwargs={"autocommit": True},
    )
    await pool.open(wait=True)
    try:
        async with pool.connection() as connection:
            found = await connection.execute("SELECT log_id, current_schema() FROM log_head")
            row = await found.fetchone()
        assert row is not None
        log = PostgresLog(
            connect, pool, log_id=row[0], schema=row[1], new_id=RandomIdentities().event_id
        )
        await log.start()
        try:
            yield log
        finally:
            await log.close()
    finally:
        await pool.close()


class Admissions:
    """Submissions of the first append of a spawn, without HTTP."""

    def __init__(self, log: PostgresLog, name: str) -> None:
        self._log = log
        self._name = name
        self._numbers = itertools.count()
        self._ids = RandomIdentities()
        loaded = loaded_configuration(CONFIGURATION, "benchmark")
        self._pinned = PinnedConfiguration(1, loaded.configuration, loaded.stored)

    async def admit(self) -> UUID:
        """Submit the request and admission of one spawn. Return the run id.

        Raises:
            RuntimeError: The spawn was refused.
        """
        run_id, submission = self._submission()
        appended = await self._log.submit(submission)
        if appended.result.refusal is not None:
            raise RuntimeError(f"the admission was refused: {appended.result.refusal.text}")
        return run_id

    def _submission(self) -> tuple[UUID, Submission[SpawnDecision]]:
        ids, key = self._ids, requester(f"{self._name}-{next(self._numbers)}")
        body = {"requester": {"sessionKey": key}, "task": TASK, "cleanup": "delete"}
        request = resolve_request(
            SpawnRequest.model_validate(body), self._pinned.configuration, key
        )
        command = spawn_command(request, ACTOR, self._pinned, ids, "benchmark")
        policy, content_key = policy_of(self._pinned.configuration, "main"), ids.content_key()

        return command.run_id, Submission(
            command_id=ids.event_id(),
            streams=(run_stream(command.run_id), session_stream(key)),
            decide=lambda world: decide_admission(
                world, (command,), (content_key,), policy, ids.event_id
            ),
            provenance=Provenance(
                actor=ACTOR, correlation=key, run_id=command.run_id, config_revision=1
            ),
        )
