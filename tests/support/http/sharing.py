"""Reads and patches of shared contexts over HTTP."""

from typing import Any

import httpx2

from tests.support.servers.server import Server


def prompt(server: Server, run_id: str) -> str:
    """Return the system prompt of a run."""
    return str(server.get(f"/v1/runs/{run_id}/prompt")["systemPrompt"])


def shared(server: Server, session: str, **params: Any) -> dict[str, Any]:
    """Return the shared context of a session."""
    answer = server.http.get(f"/v1/sessions/{session}/shared-context", params=params)
    assert answer.status_code == 200, answer.text
    body = dict(answer.json())
    assert answer.headers["etag"] == f'"{body["version"]}"'
    return body


def given(server: Server, run_id: str) -> dict[str, Any]:
    """Return the shared context that a run received."""
    return server.get(f"/v1/runs/{run_id}/shared-context")


def patched(
    server: Server,
    session: str,
    match: str = "*",
    client: httpx2.Client | None = None,
    **values: Any,
) -> httpx2.Response:
    """Patch the shared context of a session at the version `match`."""
    return (client or server.http).patch(
        f"/v1/sessions/{session}/shared-context", json=values, headers={"If-Match": match}
    )


def types(server: Server, run_id: str) -> list[str]:
    """Return the types of the events of a run."""
    return [event["type"] for event in server.recorded(run_id)]
