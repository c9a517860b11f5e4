"""A whole server inside the test process: requests go to the application without a network."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.routing import Route

from infrastructure.inbound.http.application import HttpApplication
from infrastructure.outbound.configuration.load import load
from infrastructure.outbound.identity.data_directory import DataDirectory
from infrastructure.server.compose import ServerProcess
from infrastructure.server.database import open_database

URL = "http://127.0.0.1:1"
"""Nobody listens there: a child that calls back fails."""


@dataclass(frozen=True)
class InnerServer:
    """A server with its application; it lives on an event loop in a thread of its own."""

    application: HttpApplication
    directory: Path
    _portal: BlockingPortal
    _client: httpx2.AsyncClient

    @property
    def token(self) -> str:
        """The administrator's token."""
        return (self.directory / "admin-token").read_text("utf-8").strip()

    def request(
        self,
        method: str,
        target: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        params: Sequence[tuple[str, str]] = (),
        content: bytes = b"",
    ) -> httpx2.Response:
        """Send a request with the administrator's token, another, or (`""`) none."""
        given = httpx2.Headers(headers)
        if token != "":
            given["Authorization"] = f"Bearer {token or self.token}"
        request = self._client.build_request(
            method, target, headers=given, params=list(params) or None, content=content
        )
        return self._portal.call(self._client.send, request)

    def answer_of(self, route: Route, path_params: Mapping[str, str], query: str) -> int:
        """Ask a route that need not be one of the application. Return the status."""
        statuses: list[int] = []

        async def receive() -> Any:
            return {"type": "http.request"}

        async def send(message: Any) -> None:
            statuses.append(message.get("status", 0))

        more = {"app": self.application, "path_params": path_params}
        scope = self._scope(route.path, query) | more
        self._portal.call(route.endpoint, scope, receive, send)
        return max(statuses)

    def _scope(self, path: str, query: str) -> dict[str, Any]:
        headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {self.token}".encode())]
        return {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": headers,
        }

    def spawn(self, **body: Any) -> dict[str, Any]:
        """Spawn for `agent:main:main` and return the run when it is announced."""
        whole = {"requester": {"sessionKey": "agent:main:main"}, "task": "hello", **body}
        return self._announced("/v1/spawns", whole)

    def run_of_message(self, run_id: str) -> dict[str, Any]:
        """Send a message to the session of a run and return its run when it is announced."""
        return self._announced(f"/v1/runs/{run_id}/messages", {"message": "and then?"})

    def _announced(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        answer = self.request("POST", path, headers=headers, content=json.dumps(body).encode())
        assert answer.status_code == 201, answer.text
        run = self.request(
            "GET", f"/v1/runs/{answer.json()['runId']}?wait=60s&until=announced"
        ).json()
        assert run["stage"] == "announced", run
        return dict(run)


@contextmanager
def inner_server(
    folder: Path, config: Mapping[str, Any], database_url: str
) -> Iterator[InnerServer]:
    """Run a server with this configuration on a database."""
    path = folder / "config.json5"
    path.write_text(json.dumps(config), "utf-8")
    loaded = load(path)
    directory = DataDirectory.open(folder / "data")
    process = ServerProcess(
        loaded,
        loaded.configuration.spawnlog,
        directory,
        open_database(database_url, directory.postgres),
        config=path,
        active=None,
    )
    with start_blocking_portal() as portal:
        services = portal.call(process.open, URL)
        application = HttpApplication(services, process.models, streams_max=8)
        client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(application, raise_app_exceptions=False),
            base_url=URL,
            timeout=30.0,
        )
        try:
            yield InnerServer(application, directory.path, portal, client)
        finally:
            portal.call(client.aclose)
            portal.call(_close, process)


async def _close(process: ServerProcess) -> None:
    async with asyncio.timeout(30):
        await process.drain()
        await process.close()
