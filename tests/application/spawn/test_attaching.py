"""What a request attaches is judged beside the event loop, when there is something to judge."""

import asyncio
import threading

import pytest

from application.spawn.attachments import evaluate_attachments
from domain.configuration.configuration import Configuration
from domain.spawn.request import SpawnRequest
from tests.support.builders.spawn_plans import resolved_spawn

SECONDS = 10.0
THREADS = 40
"""More than the event loop has."""


def request_with(files: int) -> SpawnRequest:
    attached = [{"name": f"{number}.txt", "content": "x"} for number in range(files)]
    return resolved_spawn(attachments=attached).request


def configured(*, enabled: bool) -> Configuration:
    values = {"sessions_spawn": {"attachments": {"enabled": enabled, "maxFiles": 2}}}
    return Configuration.model_validate({"tools": values})


@pytest.mark.parametrize(
    ("enabled", "status", "text"),
    [
        (False, "forbidden", "attachments are disabled for sessions_spawn"),
        (True, "error", "attachments_file_count_exceeded (maxFiles=2)"),
    ],
)
async def test_what_is_refused_whatever_it_holds_takes_no_thread(
    enabled: bool, status: str, text: str
) -> None:
    go_on = threading.Event()
    others = [asyncio.create_task(asyncio.to_thread(go_on.wait, SECONDS)) for _ in range(THREADS)]
    try:
        judged = await asyncio.wait_for(
            evaluate_attachments(request_with(3), configured(enabled=enabled)), SECONDS / 5
        )
    finally:
        go_on.set()
        await asyncio.gather(*others)
    assert judged is not None
    assert judged.bodies == ()
    assert (judged.verdict.count, judged.verdict.refusal_status) == (3, status)
    assert (judged.verdict.refusal or "").startswith(text)
