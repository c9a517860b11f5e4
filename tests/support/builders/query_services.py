"""Queries and searches over a log."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from application.concurrency.bulkhead import Bulkhead
from application.log.envelope import SYSTEM, Actor
from application.ports.configurations import Configurations
from application.queries.access import ALL_SCOPES, Access, AccessScope, Caller
from application.queries.services import QueryServices
from application.queries.what_if.ask import WhatIfBody, what_if
from infrastructure.outbound.configuration.candidate import CandidateTexts
from infrastructure.outbound.read_model.event_counts import PostgresEventCounts
from infrastructure.outbound.read_model.registry import PostgresRegistry
from infrastructure.outbound.read_model.run_bars import PostgresRunBars
from infrastructure.outbound.read_model.run_search import PostgresRunSearch
from infrastructure.outbound.transcripts.transcripts import StoredTranscripts
from tests.support.builders.configurations import load_values
from tests.support.memory.served_log import work_on
from tests.support.servers.running_log import RunningLog
from tests.support.servers.server_configurations import ServerConfigurations


def queries_on(
    running: RunningLog, folder: Path, configurations: ServerConfigurations | None = None
) -> QueryServices:
    """Return the query services of a server process.

    The configurations are these, or those on record. Events are counted in small blocks.
    """
    remembered, tail = running.log.remembered, running.tail
    registry = PostgresRegistry(running.pool, remembered, tail.is_respawned)
    return QueryServices(
        work=work_on(running, configurations or ServerConfigurations(running, folder), registry),
        transcripts=StoredTranscripts(running.pool, folder),
        tail=tail,
        access=Access(registry),
        candidates=CandidateTexts(),
        processor_room=Bulkhead(at_once_max=1, calls_max=1),
        event_counts=PostgresEventCounts(running.pool, block_events=4, noted_events=8),
        run_bars=PostgresRunBars(running.pool, remembered, tail.stages),
        run_search=PostgresRunSearch(running.pool, remembered),
        closing=lambda: False,
        stopped=asyncio.get_running_loop().create_future(),
    )


async def query_services(running: RunningLog, folder: Path) -> QueryServices:
    """Return the query services of a server with one more configuration revision."""
    configurations = ServerConfigurations(running, folder)
    await activate(configurations, folder, {})
    return queries_on(running, folder, configurations)


async def activate(
    configurations: Configurations, folder: Path, subagents: Mapping[str, Any]
) -> int:
    """Activate a configuration with these values for sub-agents; return its revision."""
    assert isinstance(configurations, ServerConfigurations)
    values = {"agents": {"defaults": {"runtime": {"type": "scripted"}, "subagents": subagents}}}
    return await configurations.activate(load_values(values, folder=folder), SYSTEM)


def caller(
    *scopes: AccessScope, session: str | tuple[str, ...] = "*", run_id: UUID | None = None
) -> Caller:
    """Return a caller with these scopes for the sessions of patterns, or of a run."""
    patterns = (session,) if isinstance(session, str) else session
    actor = Actor("token", "somebody")
    return Caller(actor=actor, scopes=frozenset(scopes), patterns=patterns, run_id=run_id)


async def what_if_lines(services: QueryServices, **request: Any) -> list[dict[str, Any]]:
    """Return the lines of a what-if answer."""
    body = WhatIfBody.model_validate(request)
    answer = await what_if(services, caller(*ALL_SCOPES), body)
    async with answer.room:
        pages = [page async for page in answer.pages()]
    return [event.model_dump(mode="json", by_alias=True) for page in pages for event in page]


async def verdicts(services: QueryServices, **request: Any) -> list[dict[str, Any]]:
    """Return the verdicts of an answer that is whole."""
    *found, last = await what_if_lines(services, **request)
    decided = [item for item in found if "verdict" in item]
    assert last["totals"]["decisions"] == len(decided), last
    return decided
