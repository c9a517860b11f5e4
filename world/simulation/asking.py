"""Requests to simulated servers, answered as over HTTP and noted for the checker."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from application.commands.resolve_request import resolve_request
from application.log.envelope import Actor
from application.log.event_log import (
    AlreadyReserved,
    LogUnavailableError,
    Reservation,
    StoredAnswer,
)
from application.ports.registry import InboxQuery, RunQuery
from domain.run.continuation import QueueFull
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.continuation import NoSession, RunIsActive
from domain.spawn.request import SpawnRequest
from domain.values.refusals import CannotDeliver, Rejected, SessionIsClosed
from world.checker.history import Call, trace_of
from world.simulation.world import SimulatedServer, World, configuration
from world.society.asking import Answer, Asking, Request

ACTOR = Actor(kind="token", token="admin")
ANSWER_SECONDS_MAX = 20.0
NOT_FOUND = {"code": "not_found"}


class SimulatedAsking(Asking):
    """Requests to the servers of a simulated world."""

    def __init__(self, name: str, world: World, calls: list[Call]) -> None:
        super().__init__(name, calls.append)
        self._world = world
        self._luck = random.Random(f"{world.seed} {name}")

    def _nanoseconds(self) -> int:
        # Virtual time, never twice the same.
        self._world.ticks += 1
        return int(self._world.loop.time() * 1e9) * 1_000 + self._world.ticks

    async def _answer(self, server: int, request: Request) -> Answer | None:
        heard: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        target = self._world.servers[server]
        served = _Served(target, request)

        async def serve() -> None:
            answer = await served.answer()
            if not heard.done():
                heard.set_result(answer)

        target.pending.append(heard)
        target.process.start(serve())
        done, _ = await asyncio.wait({heard}, timeout=ANSWER_SECONDS_MAX)
        target.pending.remove(heard)
        if not done:
            heard.cancel()
            return None
        # Answers are lost on the last mile, too.
        return None if self._luck.random() < 0.03 else heard.result()


class _Served:
    """A request while a server handles it."""

    def __init__(self, server: SimulatedServer, request: Request) -> None:
        self._server, self._kind = server, request.kind
        self._query, self._facts = request.query, request.facts
        self._body = request.body or {}
        self._work = server.work

    async def answer(self) -> Answer:
        try:
            return await self._served()
        except LogUnavailableError as away:
            return Answer(503, {"code": "unavailable", "text": str(away)})
        except Exception as error:
            return Answer(500, {"code": f"{type(error).__name__}: {error}"})

    async def _served(self) -> Answer:
        name = "spawn" if self._kind == "batch" else self._kind.replace(" ", "_")
        serve: Callable[[], Awaitable[Answer]] = getattr(self, f"_{name}")
        try:
            return await serve()
        except AlreadyReserved as found:
            return await self._repeated(found)
        except SessionIsClosed:
            return await self._problem(409, "session_closed")
        except RunIsActive:
            return await self._problem(409, "run_active")
        except QueueFull:
            return await self._problem(409, "queue_full")
        except NoSession:
            return await self._problem(409, "no_session")
        except CannotDeliver:
            return await self._problem(409, "cannot_deliver")
        except Rejected as rejected:
            return await self._problem(409, type(rejected).__name__)

    async def _problem(self, status: int, code: str) -> Answer:
        return Answer(status, {"code": code}, await self._work.log.head())

    async def _repeated(self, found: AlreadyReserved) -> Answer:
        reservation, reserved = self._reservation(), found.reserved
        assert reservation is not None
        if reserved.fingerprint != reservation.fingerprint:
            return await self._problem(422, "idempotency_key_reused")
        if reserved.answer is None:
            return await self._problem(409, "idempotency_in_flight")
        return await self._told(reserved.answer, None)

    async def _told(self, answer: StoredAnswer, position: int | None) -> Answer:
        statuses = {"accepted": 201, "continued": 201, "queued": 202}
        statuses |= {"forbidden": 403, "error": 422}
        status = statuses.get(answer.kind, 200)
        output = dict(answer.body)
        if status in (403, 422):
            output["code"] = "spawn_forbidden" if status == 403 else "spawn_error"
        return Answer(status, output, await self._work.log.head() if position is None else position)

    def _reservation(self) -> Reservation | None:
        key = self._facts.get("key")
        if key is None:
            return None
        about = self._facts.get("about")
        path = "/v1/spawns" if about is None else f"/v1/runs/{about}/messages"
        return Reservation("admin", "POST", path, str(key), repr(self._body).encode())

    async def _spawn(self) -> Answer:
        pinned = configuration()
        request = resolve_request(SpawnRequest.model_validate(self._body), pinned.configuration)
        result = await self._server.spawning.spawn(
            request, ACTOR, self._reservation(), lambda: True, None, pinned=pinned
        )
        return await self._told(result.answer, result.position)

    async def _message(self) -> Answer:
        run = await self._run_asked_for()
        if run is None:
            return await self._missing()
        sent = await self._server.workers.continuing.send(
            run,
            self._body["message"],
            ACTOR,
            self._reservation(),
            trace_of(self._facts["label"]),
        )
        return await self._told(sent.answer, sent.position)

    async def _stop(self) -> Answer:
        run = await self._run_asked_for()
        if run is None:
            return await self._missing()
        return await self._told(await self._server.stopping.stop(run, ACTOR, "enough"), None)

    async def _stop_session(self) -> Answer:
        session = await self._server.registry.session(str(self._facts["about"]))
        if session is None:
            return await self._missing()
        result = await self._server.stopping.stop_session(session, ACTOR, "enough")
        return await self._told(result, None)

    async def _acknowledge(self) -> Answer:
        run = await self._run_asked_for()
        if run is None:
            return await self._missing()
        return await self._told(await self._server.workers.announcing.acknowledge(run, ACTOR), None)

    async def _run_asked_for(self) -> Run | None:
        return await self._server.registry.run(UUID(str(self._facts["about"])))

    async def _missing(self) -> Answer:
        return await self._problem(404, "not_found")

    async def _at(self) -> int:
        head = await self._work.log.head()
        at = self._facts.get("at")
        return head if at is None else int(at)

    async def _run(self) -> Answer:
        if "wait" in self._query:
            at = await self._work.log.head()
            run_id = UUID(str(self._facts["about"]))
            tail = self._server.log.tail
            await tail.changed((run_id,), after=at, timeout_seconds=1.0, types=("RunEnded",))
        at = await self._at()
        run = await self._server.registry.run(UUID(str(self._facts["about"])), at=at)
        return Answer(404, NOT_FOUND, at) if run is None else Answer(200, _run_body(run), at)

    async def _runs(self) -> Answer:
        at = await self._at()
        query = RunQuery.where(requester=str(self._facts["about"]))
        runs = await self._server.registry.runs(query, at=at, limit=int(self._query["limit"]))
        return Answer(200, {"items": [_run_body(run) for run in runs]}, at)

    async def _session(self) -> Answer:
        at = await self._at()
        session = await self._server.registry.session(str(self._facts["about"]), at=at)
        if session is None:
            return Answer(404, NOT_FOUND, at)
        body = {
            "version": session.version,
            "activeChildren": session.active_children,
            "activeRuns": [str(item) for item in session.counted],
            "ownRuns": await self._own_runs(session, at),
        }
        return Answer(200, body, at)

    async def _own_runs(self, session: Session, at: int) -> list[dict[str, str]]:
        """Return the session's own runs as of a position, newest first."""
        runs: list[dict[str, str]] = []
        run_id = session.run_id
        while run_id is not None:
            run = await self._server.registry.run(run_id, at=at)
            if run is None:
                break
            runs.append({"runId": str(run_id)})
            run_id = run.continues
        return runs

    async def _inbox(self) -> Answer:
        at = await self._work.log.head()
        runs = await self._server.registry.inbox(
            InboxQuery(str(self._facts["about"])),
            at=at,
            after=int(self._query["after"]),
            limit=int(self._query["limit"]),
        )
        return Answer(200, {"items": [_inbox_body(run) for run in runs]}, at)

    async def _lanes(self) -> Answer:
        at = await self._work.log.head()
        lanes = await self._server.registry.lanes(at=at)
        items = [
            {
                "running": [{"runId": str(run.run_id)} for run in lane.running],
                "queued": [{"runId": str(run.run_id)} for run in lane.queued],
            }
            for lane in lanes
        ]
        return Answer(200, {"items": items}, at)

    async def _events(self) -> Answer:
        head = await self._work.log.head()
        events = await self._work.log.read(
            after=int(self._query["after"]), limit=int(self._query["limit"]), until=head
        )
        items = [{"position": event.envelope.position} for event in events]
        return Answer(200, {"items": items}, head)


def _run_body(run: Run) -> dict[str, Any]:
    return {
        "runId": str(run.run_id),
        "stage": run.stage,
        "outcome": run.outcome,
        "version": run.version,
    }


def _inbox_body(run: Run) -> dict[str, Any]:
    assert run.inbox is not None
    is_taken = run.inbox.acknowledged_at is not None
    state = "acknowledged" if is_taken else "pending"
    return {"runId": str(run.run_id), "position": run.inbox.position, "state": state}
