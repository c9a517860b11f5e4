"""Cost of waiting for several runs: further reads only for runs that advance."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import cast
from uuid import UUID

import pytest

from application.commands.context import CommandContext
from application.commands.services import CommandServices
from application.log.envelope import SYSTEM
from application.log.unit_of_work import UnitOfWork
from application.queries.access import ALL_SCOPES, Caller
from domain.run.state import Run
from infrastructure.inbound.mcp.tools.call import McpCall
from infrastructure.inbound.mcp.tools.family import wait_for_runs
from infrastructure.outbound.read_model.registry import PostgresRegistry
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.query_services import query_services
from tests.support.builders.storytelling import ROOT
from tests.support.servers.running_log import RunningLog, running_on

pytestmark = pytest.mark.db

OURS, OTHERS = ("a", "b", "c"), tuple(f"other-{number}" for number in range(10))
WAIT_SECONDS = 8.0
"""Shorter than the interval after which a wait looks again in any case."""
READS_MAX = 3 + 2 * 3 * 3
"""One read of each run, and further ones when a run has ended or was announced."""


class CountedRegistry(PostgresRegistry):
    """Counts the runs that are read."""

    reads = 0

    async def run(self, run_id: UUID, *, at: int | None = None) -> Run | None:
        """Return a run."""
        self.reads += 1
        return await super().run(run_id, at=at)


async def test_wait_reads_nothing_of_others(
    running: RunningLog, family: LoggedFamily, tmp_path: Path
) -> None:
    for name in OURS:
        await family.begin(name)
    # A process that has not seen them begin, as after a restart.
    async with running_on(running.url) as later:
        services = await query_services(later, tmp_path)
        work, registry = services.work, CountedRegistry(later.pool)
        counted = UnitOfWork(
            work.log, work.identities, registry, work.contents, work.configurations
        )
        event = asyncio.Event()

        async def report(_progress: float, _message: str) -> None:
            event.set()

        call = McpCall(
            services=cast(CommandServices, replace(services, work=counted)),
            caller=Caller(actor=SYSTEM, scopes=ALL_SCOPES, patterns=("*",)),
            session_key=ROOT,
            arguments={},
            report=report,
            command=CommandContext(),
        )
        runs = [family.run(name) for name in OURS]
        waiting = asyncio.create_task(wait_for_runs(call, runs, WAIT_SECONDS))
        await event.wait()
        for name in OTHERS:
            await family.live(name)
        for name in OURS:
            await family.end(name)
            await family.announce(name)
        awaited = await waiting
    assert [run.run_id for run in awaited.over] == [run.run_id for run in runs]
    assert len(OURS) <= registry.reads <= READS_MAX
