"""Callers that spawn, send messages, repeat requests, stop, read and acknowledge."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from world.checker.history import Call
from world.society.asking import Asking
from world.society.known import Known, Request
from world.society.related import after_others, together

ORIGIN = {"channel": "discord", "to": "channel:1"}
KEYED = 0.7
BELOW = 0.3
WAITING = 0.4
PAGE = 50
AWAY_SECONDS_MAX = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """Habits of a caller: request frequencies, requesters and agents.

    Attributes:
        spellings: Spellings of the key of each requester.
        staying: Share of children in mode `session`.
        away_seconds_max: Longest pause after a refusal.
    """

    acts: Mapping[str, int]
    agents: Mapping[str, int]
    spellings: Mapping[str, Sequence[str]]
    staying: float = 0.0
    away_seconds_max: float = 0.0


SOCIABLE = Habits(
    acts={
        "spawn": 10,
        "spawn_below": 3,
        "spawn_after": 5,
        "spawn_together": 4,
        "repeat": 4,
        "reuse_a_key": 1,
        "message": 8,
        "stop": 2,
        "stop_session": 2,
        "read_run": 3,
        "read_past_run": 1,
        "wait_for_run": 1,
        "list_runs": 2,
        "read_session": 2,
        "read_past_session": 1,
        "read_inbox": 3,
        "read_log": 1,
        "read_lanes": 2,
    },
    agents={"quick": 8, "slow": 6, "failing": 2, "long": 2, "ghost": 1, "stranger": 1},
    spellings={key: [key] for key in (f"agent:main:soak-{number}" for number in range(6))},
    staying=0.25,
)
"""All kinds of acts."""


class Caller:
    """A caller. `up` returns the servers that can be asked."""

    def __init__(
        self,
        asking: Asking,
        known: Known,
        up: Callable[[], list[int]],
        die: random.Random,
        habits: Habits = SOCIABLE,
    ) -> None:
        self._asking = asking
        self._known = known
        self._up = up
        self._die = die
        self._spawned = 0
        self._inbox_seen: dict[str, int] = {}
        self._habits = habits
        self._requesters = list(habits.spellings)

    async def next(self) -> None:
        """Send a random request."""
        await getattr(self, self._chosen(self._habits.acts))()

    def _chosen(self, weights: Mapping[str, int]) -> str:
        return self._die.choices(list(weights), weights=list(weights.values()))[0]

    async def _ask(self, kind: str, method: str, path: str, **more: Any) -> Call:
        while not (up := self._up()):
            await asyncio.sleep(self._die.uniform(0, AWAY_SECONDS_MAX))
        server = self._die.choice(up)
        call = await self._asking.ask(kind, method, path, server, **more)
        self._known.position = max(self._known.position, call.position or 0)
        self._known.answers[kind, call.answer.get("rule", call.status)] += 1
        return call

    def _requester(self) -> str:
        return self._die.choice(self._requesters)

    def _run(self) -> tuple[str, str, str] | None:
        return self._die.choice(self._known.runs) if self._known.runs else None

    def _past(self) -> int:
        return self._die.randint(0, self._known.position)

    async def spawn(self) -> None:
        await self._send(self._new(self._requester()))

    async def spawn_below(self) -> None:
        """Spawn for a child, which may be over."""
        run = self._run()
        if run is not None:
            await self._send(self._new(run[2]))

    async def spawn_after(self) -> None:
        """Spawn a run that depends on others, which may be over."""
        run = self._run()
        below = run is not None and self._die.random() < BELOW
        await self._send(self._after(self._new(run[2] if run and below else self._requester())))

    async def spawn_together(self) -> None:
        """Spawn a batch, some of whose runs depend on others."""
        request = self._new(self._requester())
        request = replace(request, body=together(request.body, self._die))
        await self._send(self._after(request) if self._die.random() < WAITING else request)

    def _after(self, request: Request) -> Request:
        return replace(request, body=after_others(request.body, self._known.runs, self._die))

    def _new(self, requester: str) -> Request:
        self._spawned += 1
        label = f"{self._asking.name}-{self._spawned}"
        agent_id = self._chosen(self._habits.agents)
        ways = self._habits.spellings.get(requester, ())
        written = self._die.choice(ways) if len(ways) > 1 else requester
        body: dict[str, Any] = {
            "requester": {"sessionKey": written},
            "task": f"the task of {label}",
            "label": label,
            "agentId": agent_id,
            "cleanup": self._die.choice(["keep", "delete"]),
        }
        if self._die.random() < self._habits.staying:
            body |= {"thread": True, "mode": "session", "context": "isolated"}
            body["requester"] = {"sessionKey": written, **ORIGIN}
        return Request(label, requester, body, self._key(label))

    def _key(self, label: str) -> str | None:
        return f"key of {label}" if self._die.random() < KEYED else None

    async def message(self) -> None:
        """Send a message to the session of a run, which may be active or closed."""
        if (run := self._run()) is not None:
            self._spawned += 1
            label = f"{self._asking.name}-{self._spawned}"
            body = {"message": f"the message {label}"}
            await self._send(Request(label, run[1], body, self._key(label), about=run[0]))

    async def repeat(self) -> None:
        """Repeat a request under its key, preferably one without an answer."""
        known = self._known.unanswered or self._known.asked
        if known:
            await self._send(self._die.choice(known))

    async def reuse_a_key(self) -> None:
        """Send another request under a used key."""
        if self._known.asked:
            new = self._new(self._requester())
            # A key is used up for one path: those of other paths say nothing about it.
            spawns = [request for request in self._known.asked if request.kind == "spawn"]
            used = self._die.choice(spawns).key if spawns else new.key
            await self._send(Request(new.label, new.requester, new.body, used), again=False)

    async def _send(self, request: Request, *, again: bool = True) -> None:
        about = request.about
        call = await self._ask(
            request.kind,
            "POST",
            "/v1/spawns" if about is None else f"/v1/runs/{about}/messages",
            about=about,
            body=request.body,
            key=request.key,
            label=request.label,
            requester=request.requester,
        )
        if again and request.key is not None:
            (self._known.unanswered if call.status is None else self._known.asked).append(request)
        if call.status == 201:
            for run in call.answer.get("runs", [call.answer]):
                child = run["childSessionKey"]
                self._known.runs.append((run["runId"], request.requester, child))
        elif self._habits.away_seconds_max:
            await asyncio.sleep(self._die.uniform(0, self._habits.away_seconds_max))

    async def stop(self) -> None:
        """Stop a run, whatever its stage."""
        if (run := self._run()) is not None:
            path = f"/v1/runs/{run[0]}/stop"
            await self._ask("stop", "POST", path, about=run[0], body={"reason": "enough"})

    async def stop_session(self) -> None:
        """Stop a child session, or all runs of a requester."""
        run = self._run()
        key = run[2] if run is not None and self._die.random() < 0.8 else self._requester()
        path = f"/v1/sessions/{key}/stop"
        await self._ask("stop session", "POST", path, about=key, body={"reason": "enough"})

    async def read_run(self) -> None:
        if (run := self._run()) is not None:
            await self._ask("run", "GET", f"/v1/runs/{run[0]}", about=run[0])

    async def read_past_run(self) -> None:
        if (run := self._run()) is not None:
            at = self._past()
            query = {"at": f"pos:{at}"}
            await self._ask("run", "GET", f"/v1/runs/{run[0]}", about=run[0], at=at, query=query)

    async def wait_for_run(self) -> None:
        """Read a run when it has ended, or after a second."""
        if (run := self._run()) is not None:
            query = {"wait": "1s", "until": "ended"}
            await self._ask("run", "GET", f"/v1/runs/{run[0]}", about=run[0], query=query)

    async def list_runs(self) -> None:
        key = self._requester()
        query = {"requester": key, "limit": PAGE}
        await self._ask("runs", "GET", "/v1/runs", about=key, query=query)

    async def read_session(self) -> None:
        run = self._run()
        key = run[2] if run is not None and self._die.random() < 0.3 else self._requester()
        await self._ask("session", "GET", f"/v1/sessions/{key}", about=key)

    async def read_past_session(self) -> None:
        key, at = self._requester(), self._past()
        query = {"at": f"pos:{at}"}
        await self._ask("session", "GET", f"/v1/sessions/{key}", about=key, at=at, query=query)

    async def read_inbox(self) -> None:
        """Read new announcements, and acknowledge the first."""
        key = self._requester()
        behind = self._inbox_seen.get(key, 0)
        path = f"/v1/sessions/{key}/announcements"
        query = {"after": behind, "limit": PAGE}
        call = await self._ask("inbox", "GET", path, about=key, query=query)
        if call.status == 200 and call.answer["items"]:
            self._inbox_seen[key] = call.answer["items"][0]["position"]
            run_id = call.answer["items"][0]["runId"]
            await self._ask("acknowledge", "POST", f"{path}/{run_id}/ack", about=run_id, body={})

    async def read_log(self) -> None:
        """Read a page of the log from a random position."""
        query = {"after": self._past(), "limit": PAGE}
        await self._ask("events", "GET", "/v1/events", query=query)

    async def read_lanes(self) -> None:
        await self._ask("lanes", "GET", "/v1/lanes")
