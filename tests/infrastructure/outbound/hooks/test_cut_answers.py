"""Responses whose body is cut off, slow or endless: if only the status counts, it decides."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from application.ports.configurations import PinnedConfiguration
from application.ports.hooks import HookAnswer
from application.ports.webhooks import WebhookAnswer, WebhookError
from domain.delivery.webhook import WebhookMessage
from infrastructure.outbound.configuration.files import LoadedFiles
from infrastructure.outbound.configuration.load import load, load_recorded
from infrastructure.outbound.hooks.http_webhooks import HttpWebhooks
from tests.support.builders.configurations import load_values
from tests.support.servers.cut_answers import BODIES, answering
from tests.support.servers.hook_calls import CALL, Asked, OneFile

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TIMEOUT_SECONDS = 3
QUICK_SECONDS_MAX = 2.5

"""Less than the time limit: once the status has come, the body is not awaited."""


async def sent(url: str) -> WebhookAnswer:
    webhook = {"id": "there", "url": url, "secrets": [SECRET], "timeoutSeconds": TIMEOUT_SECONDS}
    loaded = load_values({"spawnlog": {"announce": {"webhooks": [webhook]}}})
    pinned = PinnedConfiguration(1, loaded.configuration, loaded.stored)
    async with asyncio.timeout(QUICK_SECONDS_MAX):
        return await HttpWebhooks(OneFile(loaded)).send(pinned, "there", WebhookMessage("k", "{}"))


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("status", [200, 202, 410, 500])
async def test_webhook_status_decides_whatever_its_body(status: int, body: bytes) -> None:
    async with answering(f"{status} x", body) as url:
        assert await sent(url) == WebhookAnswer(status)


async def test_webhook_with_slow_body_is_not_waited_for() -> None:
    async with answering("200 OK", b"Content-Length: 100\r\n\r\no", stays=True) as url:
        assert await sent(url) == WebhookAnswer(200)


async def test_webhook_without_status_is_a_failure() -> None:
    async with answering("", b"") as url:
        with pytest.raises(WebhookError, match="closed the connection"):
            await sent(url)


async def test_retry_after_counts_beside_a_cut_body() -> None:
    async with answering("429 x", b"Retry-After: 8.5\r\nContent-Length: 9\r\n\r\nx") as url:
        assert await sent(url) == WebhookAnswer(429, 9)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_told_hook_status_decides_whatever_its_body(body: bytes) -> None:
    result = replace(CALL, needs_body=False)
    async with answering("200 OK", body) as url:
        assert await Asked({"url": url}).ask(result) == HookAnswer(200)


async def test_told_hook_with_slow_body_is_not_waited_for() -> None:
    result = replace(CALL, needs_body=False)
    async with answering("200 OK", b"Content-Length: 100\r\n\r\no", stays=True) as url:
        hooks = Asked({"url": url, "timeoutSeconds": TIMEOUT_SECONDS})
        async with asyncio.timeout(QUICK_SECONDS_MAX):
            assert await hooks.ask(result) == HookAnswer(200)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_refusing_hook_keeps_its_status_whatever_its_body(body: bytes) -> None:
    async with answering("410 Gone", body) as url:
        threw = await Asked({"url": url}).threw()
    assert (str(threw), threw.status_code) == ("the hook answered HTTP 410", 410)


WEBHOOK = {
    "id": "chat",
    "url": "http://127.0.0.1:9/",
    "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
}


async def test_webhook_secret_in_a_missing_file_is_for_later(tmp_path: Path) -> None:
    path = tmp_path / "a.json5"
    path.write_text(json.dumps({"spawnlog": {"announce": {"webhooks": [WEBHOOK]}}}), "utf-8")
    kept, files = load(path), LoadedFiles()
    path.unlink()
    files.note_found(1, load_recorded(1, kept.source, kept.stored_text))
    pinned = PinnedConfiguration(1, kept.configuration, kept.stored)
    message = WebhookMessage("id", "{}")
    with pytest.raises(WebhookError, match="the server's log says why") as failure:
        await HttpWebhooks(files).send(pinned, "chat", message)
    assert str(tmp_path) not in str(failure.value)
    assert failure.value.is_for_later
