"""A client that writes down each request and what came of it."""

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

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
    """Where a server is now; it may be another place after its next start."""

    @property
    def url(self) -> str:
        """Its base URL."""
        ...

    @property
    def token(self) -> str:
        """The administrator's token."""
        ...


class Asking:
    """One caller's requests, one after the other."""

    def __init__(
        self, name: str, servers: Sequence[Address], http: httpx2.AsyncClient, writing: Writing
    ) -> None:
        self.name = name
        self._servers = servers
        self._http = http
        self._writing = writing
        self._number = 0
        self._token = servers[0].token

    async def ask(
        self,
        what: str,
        method: str,
        path: str,
        server: int,
        *,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
        **facts: Any,
    ) -> Call:
        """Send a request to one of the servers; `facts` are what else the call is to remember."""
        self._number += 1
        headers = {"Authorization": f"Bearer {self._token}"}
        if facts.get("key") is not None:
            headers["Idempotency-Key"] = facts["key"]
        if what == "message":
            headers["traceparent"] = trace_of(facts["label"])
        url = self._servers[server].url + path
        began = time.monotonic_ns()
        answer: httpx2.Response | None = None
        # When the connection dies, nobody knows what became of it.
        with contextlib.suppress(httpx2.TransportError):
            answer = await self._http.request(
                method, url, params=dict(query or {}), json=body, headers=headers
            )
        call = Call(
            caller=self.name,
            number=self._number,
            what=what,
            began=began,
            ended=time.monotonic_ns(),
            server=server,
            **facts,
            **_told(what, answer, query or {}),
        )
        self._writing.call(call)
        return call


def _told(
    what: str, answer: httpx2.Response | None, query: Mapping[str, str | int]
) -> dict[str, Any]:
    if answer is None:
        return {}
    position = answer.headers.get("Spawnlog-Position")
    body: Mapping[str, Any] = answer.json()
    return {
        "status": answer.status_code,
        "position": int(position) if position is not None else None,
        "replayed": "Idempotent-Replayed" in answer.headers,
        "answer": kept(what, answer.status_code, body, query),
    }


def kept(
    what: str, status: int, body: Mapping[str, Any], query: Mapping[str, str | int]
) -> dict[str, Any]:
    """What the checker compares of an answer."""
    asked = {"after": int(query.get("after", 0)), "limit": int(query.get("limit", 0))}
    if what == "batch":
        runs = [_only(one, MEMBER_FIELDS) for one in body.get("runs", ())]
        return _only(body, BATCH_FIELDS) | ({"runs": runs} if runs else {})
    if what in ("spawn", "stop", "acknowledge") or status not in (200, 201, 202):
        return _only(body, SPAWN_FIELDS)
    match what:
        case "message":
            return _only(body, MESSAGE_FIELDS)
        case "stop session":
            return _only(body, STOPPED_FIELDS)
        case "run":
            return _only(body, RUN_FIELDS)
        case "session":
            own = [one["runId"] for one in body["ownRuns"]]
            return {**_only(body, SESSION_FIELDS), "ownRuns": own}
        case "runs":
            return {**asked, "items": [_only(item, RUN_FIELDS) for item in body["items"]]}
        case "inbox":
            return {**asked, "items": [_only(one, INBOX_FIELDS) for one in body["items"]]}
        case "lanes":
            return {
                part: [one["runId"] for lane in body["items"] for one in lane[part]]
                for part in ("running", "queued")
            }
        case "events":
            return {**asked, "positions": [item["position"] for item in body["items"]]}
        case _:
            raise ValueError(f"nothing is known of {what}")


def _only(body: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: body[name] for name in names if name in body}
