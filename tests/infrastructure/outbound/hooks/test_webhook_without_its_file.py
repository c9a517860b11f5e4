"""A webhook whose secret stands in a file that is gone waits for the file."""

import json
from pathlib import Path

import pytest

from application.ports.configurations import PinnedConfiguration
from application.ports.webhooks import WebhookFailure
from domain.delivery.webhook import WebhookMessage
from infrastructure.outbound.configuration.files import LoadedFiles
from infrastructure.outbound.configuration.load import load, load_recorded
from infrastructure.outbound.hooks.http_webhooks import HttpWebhooks

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
    with pytest.raises(WebhookFailure, match="the server's log says why") as failure:
        await HttpWebhooks(files).send(pinned, "chat", message)
    assert str(tmp_path) not in str(failure.value)
    assert failure.value.is_for_later
