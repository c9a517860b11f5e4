"""Runs that several processes hold, lose, and take over from each other, each under its claim."""

import asyncio
import random
from collections.abc import Sequence
from typing import cast
from uuid import UUID

from psycopg_pool import AsyncConnectionPool

from application.log.envelope import Actor
from application.log.event_log import EventLog, LogUnavailableError
from application.ports.runtimes import TranscriptEntry
from application.projections.fold import FOREVER
from domain.run.commands import RunCommand
from domain.run.lifecycle import PREPARING
from domain.run.state import Run
from domain.values.refusals import Rejected
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection
from infrastructure.outbound.transcripts.transcripts import StoredTranscripts
from tests.support.builders import run_commands as ask
from tests.support.builders.family_log import child_key
from tests.support.builders.logged_family import LoggedFamily
from world.storm.noting_log import Hurt, Notebook, NotingLog

CAP = 8
ENTRIES_MAX = 30
PAUSE_SECONDS_MAX = 0.04
LEAVES = 0.15
"""Probability that a holder gives up before its next step, as if it had died."""
STAGES: tuple[tuple[str, ...], ...] = (
    tuple(PREPARING),
    ("queued",),
    *[("started",)] * 3,
    ("ended", "announced"),
)


"""Stages of runs to take over, by frequency."""


_LIVING = (
    "SELECT state::text FROM runs WHERE stage = ANY(%s)"
    f" AND to_position = {FOREVER} ORDER BY random() LIMIT 1"
)
_ENTRIES = "SELECT count(*) FROM transcript_entries WHERE run_id = %s"


class ContestedRuns:
    """One holder.

    Attributes:
        name: Token of its actor, which identifies its events.
        first: Number of its first run.
        begins: Probability that it starts its own run instead of taking over another.
    """

    def __init__(
        self,
        log: NotingLog,
        pool: AsyncConnectionPool[LogConnection],
        transcripts: StoredTranscripts,
        notebook: Notebook,
        *,
        name: str,
        first: int,
        begins: float,
        die: random.Random,
    ) -> None:
        self._family = LoggedFamily(cast("EventLog", log), first=first, max_children=CAP)
        self._pool = pool
        self._transcripts = transcripts
        self._notebook = notebook
        self._name = name
        self._actor = Actor(kind="token", token=name)
        self._begins = begins
        self._die = die
        self._asked = 0

    async def next(self) -> None:
        """Start a run and live it, or take over another holder's run."""
        try:
            if self._die.random() < self._begins:
                await self._begin_one()
            else:
                await self._take_one_over()
        except (Rejected, LogUnavailableError, Hurt):
            return

    async def _begin_one(self) -> None:
        self._asked += 1
        name = f"own-{self._asked}"
        answered = await self._family.spawn(name, actor=self._actor)
        refusal = answered.result.refusal
        self._notebook.note(
            "spawned",
            run=str(self._family.id(name)),
            rule=refusal.rule if refusal else None,
        )
        if refusal is None:
            await self._live(name)

    async def _take_one_over(self) -> None:
        run = await self._living(self._die.choice(STAGES))
        if run is None:
            await asyncio.sleep(self._die.uniform(0, PAUSE_SECONDS_MAX))
            return
        name = self._family.adopt(run)
        if run.stage in PREPARING:
            await self._tell(name, ask.resume(run.epoch, holder=self._name))
        elif run.stage == "queued" and run.holder is not None:
            await self._tell(name, ask.claim(lost_epoch=run.epoch, holder=self._name))
        elif run.stage == "started":
            await self._end_for_another(name)
        await self._live(name)

    async def _living(self, stages: Sequence[str]) -> Run | None:
        async with borrow_connection(self._pool) as connection:
            cursor = await connection.execute(_LIVING, [list(stages)])
            row = await cursor.fetchone()
        return Run.from_json(row[0]) if row else None

    async def _live(self, name: str) -> None:
        """Continue a run until it is over, was taken over, or is abandoned."""
        while (commands := self._next_commands(self._family.run(name))) is not None:
            # The others must have a chance to take it over in between.
            await asyncio.sleep(self._die.uniform(0, PAUSE_SECONDS_MAX))
            if self._die.random() < LEAVES:
                return
            if self._family.run(name).stage == "started":
                await self._say_something(name)
            await self._tell(name, *commands)

    def _next_commands(self, run: Run) -> list[RunCommand] | None:
        match run.stage:
            case "requested":
                return [ask.resolve(run.epoch)]
            case "scripts-resolved" if run.child_session_key is None:
                return [ask.prepare(run.epoch, child_session_key=child_key(run.run_id))]
            case "scripts-resolved":
                return [ask.create(run.epoch)]
            case "queued" if run.holder is None:
                return [ask.claim(holder=self._name)]
            case "queued":
                return [ask.start(run.epoch)]
            case "started":
                return [ask.end(run.epoch)]
            case "ended":
                return [ask.announce()]
            case "announced":
                return [ask.archive()]
            case _:
                return None

    async def _tell(self, name: str, *commands: RunCommand) -> None:
        await self._family.tell(name, *commands, actor=self._actor)

    async def _say_something(self, name: str) -> None:
        """Write entries of the transcript, until it is refused."""
        run = self._family.run(name)
        body = {"holder": self._name, "epoch": run.epoch}
        for number in range(1, ENTRIES_MAX + 1):
            await asyncio.sleep(self._die.uniform(0, PAUSE_SECONDS_MAX / 10))
            entry = TranscriptEntry("message", body)
            if not await self._transcripts.append(run.run_id, run.epoch, number, [entry]):
                return

    async def _end_for_another(self, name: str) -> None:
        """End a run that another holder executes, and count at once the entries written until
        then.
        """
        run = self._family.run(name)
        await self._tell(name, ask.end(run.epoch))
        self._notebook.note("ended", run=str(run.run_id), entries=await self._entries(run.run_id))

    async def _entries(self, run_id: UUID) -> int:
        async with borrow_connection(self._pool) as connection:
            row = await (await connection.execute(_ENTRIES, [run_id])).fetchone()
        assert row is not None
        return int(row[0])
