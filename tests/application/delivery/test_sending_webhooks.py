"""What is due is due by the clock of the log, whatever the server's own says."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from application.concurrency.bulkhead import Bulkhead
from application.delivery.effects import EffectWorker
from application.delivery.webhooks import WebhookPerformer
from application.ports.configurations import PinnedConfiguration
from application.ports.webhooks import WebhookAnswer
from domain.delivery.webhook import WebhookMessage
from tests.support.builders import run_commands as ask
from tests.support.builders.stored_family import KeptFamily
from tests.support.faults.interruption import uninterrupted
from tests.support.faults.stormy_database import CLOCK
from tests.support.servers.running_log import running_on
from tests.support.servers.scripted_hooks import work_with_hooks

WEBHOOK = {"id": "gateway", "url": "http://gateway.test/", "secrets": ["whsec_" + "A" * 43 + "="]}


class Receiver:
    """Implements `WebhookClient`: takes everything."""

    def __init__(self) -> None:
        self.taken: list[WebhookMessage] = []

    async def send(
        self, pinned: PinnedConfiguration, webhook_id: str, message: WebhookMessage
    ) -> WebhookAnswer:
        self.taken.append(message)
        return WebhookAnswer(204)


@pytest.mark.parametrize("ahead_seconds", [0, 60, -60])
async def test_webhook_is_sent_at_once_when_clocks_differ(
    database_url: str, tmp_path: Path, ahead_seconds: int
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        database = connection.info.dbname
        connection.execute(CLOCK.format(database=database).encode())
        connection.execute("UPDATE clock SET ahead = %s", [ahead_seconds])
    async with running_on(database_url) as running:
        ahead = running.log.now() - datetime.now(UTC)
        assert abs(ahead - timedelta(seconds=ahead_seconds)) < timedelta(seconds=10)
        work = await work_with_hooks(running, tmp_path, announce={"webhooks": [WEBHOOK]})
        family, receiver = KeptFamily(running.log, running.pool, tmp_path), Receiver()
        await family.begin("a")
        await family.end("a")
        await family.tell("a", ask.announce(webhooks=("gateway",)))
        performer = WebhookPerformer(work, receiver)
        worker = EffectWorker(work, [performer], uninterrupted, Bulkhead())
        await worker.perform(family.id("a"))
        assert len(receiver.taken) == 1
        await worker.perform(family.id("a"))
        assert len(receiver.taken) == 1
