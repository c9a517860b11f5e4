"""Reading and writing shared contexts over HTTP."""

from typing import Any

import httpx2

from tests.support.servers.http_server import House


def prompt(house: House, run_id: str) -> str:
    """The system prompt of a run."""
    return str(house.get(f"/v1/runs/{run_id}/prompt")["systemPrompt"])


def shared(house: House, session: str, **params: Any) -> dict[str, Any]:
    """What a session shares."""
    answer = house.http.get(f"/v1/sessions/{session}/shared-context", params=params)
    assert answer.status_code == 200, answer.text
    body = dict(answer.json())
    assert answer.headers["etag"] == f'"{body["version"]}"'
    return body


def given(house: House, run_id: str) -> dict[str, Any]:
    """What a run was given."""
    return house.get(f"/v1/runs/{run_id}/shared-context")


def patched(
    house: House, session: str, match: str = "*", client: httpx2.Client | None = None, **values: Any
) -> httpx2.Response:
    """A patch of what a session shares, for the version `match`."""
    return (client or house.http).patch(
        f"/v1/sessions/{session}/shared-context", json=values, headers={"If-Match": match}
    )


def types(house: House, run_id: str) -> list[str]:
    """The types of the events of a run."""
    return [one["type"] for one in house.events(run_id)]
