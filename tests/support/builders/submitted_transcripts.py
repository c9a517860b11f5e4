"""Transcripts of sessions that run elsewhere, as tests upload them."""

from typing import Any
from urllib.parse import quote

import httpx2


def message(text: str, role: str = "user") -> dict[str, Any]:
    return {"kind": "message", "role": role, "text": text}


CONVERSATION = [
    message("Is the harbour full?"),
    {"kind": "tool", "name": "look", "input": {"at": ["harbour"]}, "output": "12 boats"},
    {"kind": "usage", "inputTokens": 30, "outputTokens": 12, "model": "example/words"},
    message("Twelve boats — nearly. 🚤", "assistant"),
]
KEPT: list[tuple[str, dict[str, Any]]] = [
    ("message", {"role": "user", "text": "Is the harbour full?"}),
    ("tool", {"name": "look", "input": '{"at":["harbour"]}', "output": "12 boats"}),
    ("usage", {"inputTokens": 30, "outputTokens": 12, "model": "example/words"}),
    ("message", {"role": "assistant", "text": "Twelve boats — nearly. 🚤"}),
]


"""The entries above, as in the transcript of a child that begins with them."""


def path_of(session: str) -> str:
    return f"/v1/sessions/{quote(session, safe='')}/transcript"


def tell(
    client: httpx2.Client,
    session: str,
    entries: list[Any] | None = None,
    *,
    key: str | None = None,
    **more: Any,
) -> httpx2.Response:
    """Upload a transcript with `PUT /v1/sessions/{key}/transcript`, by default the conversation
    above.
    """
    headers = {"Idempotency-Key": key} if key else {}
    body = {"entries": CONVERSATION if entries is None else entries, **more}
    return client.put(path_of(session), json=body, headers=headers)


def entries_of(client: httpx2.Client, run_id: str) -> list[tuple[str, dict[str, Any]]]:
    answer = client.get(f"/v1/runs/{run_id}/transcript?tools=true&limit=500")
    assert answer.status_code == 200, answer.text
    return [(item["kind"], item["body"]) for item in answer.json()["items"]]
