"""Client that notes each request with its answer."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import httpx2

from world.checker.history import Call, Writing, trace_of

ANSWER_SECONDS_MAX = 40.0
SPAWN_FIELDS = ("code", "rule", "current", "limit", "runId", "childSessionKey")
RUN_FIELDS = ("runId", "stage", "outcome", "version")
INBOX_FIELDS = ("runId", "position", "state")
SESSION_FIELDS = ("version", "activeChildren", "activeRuns")
BATCH_FIELDS = (*SPAWN_FIELDS, "batchId")
MEMBER_FIELDS = ("runId", "label", "childSessionKey")
MESSAGE_FIELDS = (*SPAWN_FIELDS, "continues")
STOPPED_FIELDS = ("code", "runId", "wasOver", "closed")


class Address(Protocol):
    """Address of a server, which may change with its next start."""

    @property
    def url(self) -> str:
        """Return the base URL."""
        ...

    @property
    def token(self) -> str:
        """Return the administrator's token."""
        ...


class Request(NamedTuple):
    """A request, with facts that the noted call keeps beside the answer."""

    kind: str
    method: str
    path: str
    query: Mapping[str, str | int]
    body: Mapping[str, Any] | None
    facts: Mapping[str, Any]


class Answer(NamedTuple):
    """An answer as a server gave it."""

    status: int
    body: Mapping[str, Any]
    position: int | None = None
    replayed: bool = False


class Asking(ABC):
    """Requests of one caller, one after the other, each noted with its answer."""

    def __init__(self, name: str, write: Callable[[Call], None]) -> None:
        self.name = name
        self._write = write
        self._number = 0

    async def ask(
        self,
        kind: str,
        method: str,
        path: str,
        server: int,
        *,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
        **facts: Any,
    ) -> Call:
        """Send a request to one of the servers. The call remembers `facts` too."""
        self._number += 1
        request = Request(kind, method, path, query or {}, body, facts)
        began = self._nanoseconds()
        answer = await self._answer(server, request)
        returned: dict[str, Any] = {}
        if answer is not None:
            returned = answer._asdict()
            returned["answer"] = kept(kind, answer.status, returned.pop("body"), request.query)
        call = Call(
            caller=self.name,
            number=self._number,
            kind=kind,
            began=began,
            ended=self._nanoseconds(),
            server=server,
            **facts,
            **returned,
        )
        self._write(call)
        return call

    @abstractmethod
    def _nanoseconds(self) -> int:
        """Return the time by the clock of this world."""

    @abstractmethod
    async def _answer(self, server: int, request: Request) -> Answer | None:
        """Return the answer; None if the connection was lost, so that the outcome is unknown."""


class HttpAsking(Asking):
    """Requests to server processes."""

    def __init__(
        self, name: str, servers: Sequence[Address], http: httpx2.AsyncClient, writing: Writing
    ) -> None:
        super().__init__(name, writing.call)
        self._servers = servers
        self._http = http
        self._token = servers[0].token

    def _nanoseconds(self) -> int:
        return time.monotonic_ns()

    async def _answer(self, server: int, request: Request) -> Answer | None:
        headers = {"Authorization": f"Bearer {self._token}"}
        if request.facts.get("key") is not None:
            headers["Idempotency-Key"] = request.facts["key"]
        if request.kind == "message":
            headers["traceparent"] = trace_of(request.facts["label"])
        url = self._servers[server].url + request.path
        try:
            answer = await self._http.request(
                request.method,
                url,
                params=dict(request.query),
                json=request.body,
                headers=headers,
            )
        except httpx2.TransportError:
            return None
        position = answer.headers.get("Spawnlog-Position")
        return Answer(
            answer.status_code,
            answer.json(),
            int(position) if position is not None else None,
            "Idempotent-Replayed" in answer.headers,
        )


def kept(
    kind: str, status: int, body: Mapping[str, Any], query: Mapping[str, str | int]
) -> dict[str, Any]:
    """Return the members of an answer that the checker compares."""
    request = {"after": int(query.get("after", 0)), "limit": int(query.get("limit", 0))}
    if kind == "batch":
        runs = [_only(run, MEMBER_FIELDS) for run in body.get("runs", ())]
        return _only(body, BATCH_FIELDS) | ({"runs": runs} if runs else {})
    if kind in ("spawn", "stop", "acknowledge") or status not in (200, 201, 202):
        return _only(body, SPAWN_FIELDS)
    match kind:
        case "message":
            return _only(body, MESSAGE_FIELDS)
        case "stop session":
            return _only(body, STOPPED_FIELDS)
        case "run":
            return _only(body, RUN_FIELDS)
        case "session":
            own = [run["runId"] for run in body["ownRuns"]]
            return {**_only(body, SESSION_FIELDS), "ownRuns": own}
        case "runs":
            return {**request, "items": [_only(item, RUN_FIELDS) for item in body["items"]]}
        case "inbox":
            return {**request, "items": [_only(item, INBOX_FIELDS) for item in body["items"]]}
        case "lanes":
            return {
                part: [run["runId"] for lane in body["items"] for run in lane[part]]
                for part in ("running", "queued")
            }
        case "events":
            return {**request, "positions": [item["position"] for item in body["items"]]}
        case _:
            raise ValueError(f"nothing is known of {kind}")


def _only(body: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: body[name] for name in names if name in body}
