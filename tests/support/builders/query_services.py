"""Queries and searches over a log."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from application.concurrency.bulkhead import Bulkhead
from application.log.envelope import SYSTEM, Actor
from application.log.unit_of_work import UnitOfWork
from application.ports.transcripts import Transcripts
from application.queries.access import Access, AccessScope, Caller
from application.queries.services import QueryServices
from infrastructure.outbound.configuration.candidate import CandidateTexts
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.read_model.contents import PostgresContents
from infrastructure.outbound.read_model.event_counts import PostgresEventCounts
from infrastructure.outbound.read_model.registry import PostgresRegistry
from infrastructure.outbound.read_model.run_bars import PostgresRunBars
from infrastructure.outbound.read_model.run_search import PostgresRunSearch
from infrastructure.outbound.transcripts.transcripts import StoredTranscripts
from tests.support.builders.configurations import load_values
from tests.support.servers.running_log import RunningLog
from tests.support.servers.scripted_hooks import work_with_hooks
from tests.support.servers.server_configurations import ServerConfigurations

# What queries read from, on a log at work.


async def query_services(
    running: RunningLog, folder: Path, *, block_events: int = 4, noted_events: int = 8
) -> QueryServices:
    """The services of a server, without one. Events are counted in small blocks."""
    work = await work_with_hooks(running, folder)
    transcripts: Transcripts = StoredTranscripts(running.pool, folder)
    return QueryServices(
        work=work,
        transcripts=transcripts,
        tail=running.tail,
        access=Access(work.registry),
        candidates=CandidateTexts(),
        processor_room=Bulkhead(at_once_max=1, calls_max=1),
        event_counts=PostgresEventCounts(
            running.pool, block_events=block_events, noted_events=noted_events
        ),
        run_bars=PostgresRunBars(running.pool, running.log.remembered),
        run_search=PostgresRunSearch(running.pool, running.log.remembered),
        closing=lambda: False,
        stopped=asyncio.get_running_loop().create_future(),
    )


# Queries on a log that may have a history already, and somebody who asks.


async def services_on(running: RunningLog, folder: Path) -> QueryServices:
    """The queries of a server that has just started on a log."""
    configurations = ServerConfigurations(running, folder)
    await activate(configurations, folder, {})
    work = UnitOfWork(
        running.log,
        RandomIdentities(),
        PostgresRegistry(running.pool),
        PostgresContents(running.pool),
        configurations,
    )
    return QueryServices(
        work=work,
        transcripts=StoredTranscripts(running.pool, folder),
        tail=running.tail,
        access=Access(work.registry),
        candidates=CandidateTexts(),
        processor_room=Bulkhead(at_once_max=1, calls_max=1),
        event_counts=PostgresEventCounts(running.pool),
        run_bars=PostgresRunBars(running.pool, running.log.remembered),
        run_search=PostgresRunSearch(running.pool, running.log.remembered),
        closing=lambda: False,
        stopped=asyncio.get_running_loop().create_future(),
    )


async def activate(
    configurations: ServerConfigurations, folder: Path, subagents: Mapping[str, Any]
) -> int:
    """A configuration with these values for sub-agents becomes active; gives its revision."""
    values = {"agents": {"defaults": {"runtime": {"type": "scripted"}, "subagents": subagents}}}
    return await configurations.activate(load_values(values, folder=folder), SYSTEM)


def caller(*scopes: AccessScope, session: str = "*") -> Caller:
    """Somebody with these scopes for the sessions of a pattern."""
    return Caller(actor=Actor("token", "model"), scopes=frozenset(scopes), patterns=(session,))
