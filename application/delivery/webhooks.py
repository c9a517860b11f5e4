"""Sends announcements to webhooks, from the record, until they have taken them."""

import asyncio
import logging
from datetime import UTC, datetime
from uuid import UUID

from application.concurrency.bulkhead import Bulkhead, BulkheadFull
from application.log.answers import RedrivenAnswer
from application.log.envelope import SYSTEM, Actor
from application.log.event_log import Decision, Reservation, StoredAnswer, World
from application.log.texts import ContentsErased
from application.log.unit_of_work import UnitOfWork, provenance_of
from application.ports.configurations import PinnedConfiguration
from application.ports.fault_injection import FaultPoint
from application.ports.webhooks import WebhookAnswer, WebhookClient, WebhookFailure
from application.steps.thread_binding import inbox_origin
from domain.delivery.announcement import with_present_path
from domain.delivery.webhook import WebhookMessage, announcement_message, is_permanent
from domain.run.commands import NoteDelivery, ParkDelivery, RedriveDeliveries
from domain.run.facts import DeliveryState
from domain.run.state import Run
from domain.run.webhook_delivery import decide_delivery, redrive_deliveries
from domain.values.record import run_stream
from domain.values.refusals import ConfigurationMoved

_log = logging.getLogger("spawnlog.webhooks")
_BROKEN = "nothing was made of the webhook's answer; the log of the server has why"


class WebhookSender:
    """Whoever comes to it sends: no claim of the run is needed. A receiver tells a repeat by the id
    of the message. Addresses and secrets are those of the configuration in force, so that what a
    wrong one kept from being sent goes out with the right one."""

    def __init__(
        self, work: UnitOfWork, webhooks: WebhookClient, interruption: FaultPoint, rooms: Bulkhead
    ) -> None:
        self._work = work
        self._webhooks = webhooks
        self._interruption = interruption
        self._rooms = rooms

    async def send(self, run_id: UUID) -> None:
        """Send what is due of a run, to all of its receivers side by side. What fails is on record
        and is tried again later, or not any more when it was tried often enough. Raises
        `BulkheadFull` when too many wait for a receiver."""
        run = await self._work.run(run_id)
        # The claim says that the first of them is due, whatever the log's clock is behind.
        now = max(self._work.log.now(), run.effects_at or datetime.min.replace(tzinfo=UTC))
        states = [
            one for one in run.deliveries or () if one.due_at is not None and one.due_at <= now
        ]
        if not states:
            return
        pinned = self._work.configurations.current()
        message = await self._message(run)
        sent = await asyncio.gather(
            *(self._send(run, state, message, pinned) for state in states), return_exceptions=True
        )
        failures = [one for one in sent if one is not None]
        for one in failures[1:]:
            _log.warning("run %s: a webhook: %r", run_id, one)
        if failures:
            raise failures[0]

    async def redrive(
        self,
        run: Run,
        webhook: str | None,
        reason: str,
        actor: Actor,
        reservation: Reservation | None = None,
    ) -> StoredAnswer:
        """Send again what is parked of a run, to one webhook or to each. Raises `NothingParked`,
        and `ContentsErased` for a run of which nothing may be said any more."""
        text_store = await self._work.text_store(run)
        stream = run_stream(run.run_id)

        def decide(world: World) -> Decision[StoredAnswer]:
            texts = text_store.empty_copy()
            kept = texts.store("redriveReason", reason)
            command = RedriveDeliveries(webhook=webhook, by=actor.name, reason=kept)
            events = redrive_deliveries(world.runs[run.run_id], command)
            webhooks = [one.webhook for one in events]
            answer = StoredAnswer.of(
                "redriven", RedrivenAnswer(run_id=run.run_id, webhooks=webhooks)
            )
            changes = [(stream, event) for event in events]
            return Decision(answer, changes, texts.contents, answer=answer)

        appended = await self._work.submit(
            (stream,), decide, provenance_of(run, actor), reservation=reservation
        )
        return appended.result

    async def _message(self, run: Run) -> WebhookMessage:
        assert run.inbox is not None
        text = await self._work.contents.text(run.inbox.text) if run.inbox.text else None
        if text is not None:
            sealed = run.transcript.path if run.transcript is not None else None
            text = with_present_path(text, sealed, run.transcript_path)
        return announcement_message(run, text, await inbox_origin(run, self._work.contents))

    async def _send(
        self, run: Run, state: DeliveryState, message: WebhookMessage, pinned: PinnedConfiguration
    ) -> None:
        if pinned.configuration.spawnlog.announce.named(state.webhook) is None:
            await self._park_unknown(run, state, pinned)
            return
        try:
            async with self._rooms.of(f"webhook {state.webhook}"):
                self._interruption("before", f"webhook:{state.webhook}")
                answer = await self._webhooks.send(pinned, state.webhook, message)
        except WebhookFailure as failed:
            if failed.is_for_later:
                raise BulkheadFull(str(failed)) from None
            await self._failed(run, state, None, str(failed), pinned)
            return
        except BulkheadFull:
            raise
        except Exception:
            # Whatever it is, it is an attempt: one without an end would never be parked.
            _log.exception("run %s: webhook %s", run.run_id, state.webhook)
            await self._failed(run, state, None, _BROKEN, pinned)
            return
        self._interruption("after", f"webhook:{state.webhook}")
        if not 200 <= answer.status_code < 300:
            text = f"the webhook answered HTTP {answer.status_code}"
            await self._failed(run, state, answer, text, pinned)
            return
        taken = NoteDelivery(
            webhook=state.webhook, attempt=state.attempts + 1, status_code=answer.status_code
        )
        await self._work.record(run, (taken,))

    async def _failed(
        self,
        run: Run,
        state: DeliveryState,
        answer: WebhookAnswer | None,
        text: str,
        pinned: PinnedConfiguration,
    ) -> None:
        _log.warning("run %s: webhook %s: %s", run.run_id, state.webhook, text)
        try:
            text_store = await self._work.text_store(run)
        except ContentsErased:
            await self._park_erased(run, state)
            return
        announce = pinned.configuration.spawnlog.announce
        failed = NoteDelivery(
            webhook=state.webhook,
            attempt=state.attempts + 1,
            status_code=answer.status_code if answer is not None else None,
            error=text_store.store("deliveryError", text),
            refused=answer is not None and is_permanent(answer.status_code),
            attempts_max=announce.attempts_max,
            retry_seconds_max=announce.retry_seconds_max,
            pause_seconds=(answer.pause_seconds if answer is not None else None) or 0,
        )
        await self._work.record(run, (failed,), text_store)

    async def _park_unknown(
        self, run: Run, state: DeliveryState, pinned: PinnedConfiguration
    ) -> None:
        """There is no such webhook, if this server is right about the configuration in force: one
        that has not heard of the newest yet leaves it to later."""
        stream = run_stream(run.run_id)

        def decide(world: World) -> Decision[None]:
            pinned.must_be_current(world.config_version)
            command = ParkDelivery(webhook=state.webhook, reason="not_configured")
            events = decide_delivery(world.runs[run.run_id], command)
            return Decision(None, [(stream, event) for event in events])

        try:
            await self._work.submit((stream,), decide, provenance_of(run, SYSTEM))
        except ConfigurationMoved as moved:
            _log.info("run %s: webhook %s: %s", run.run_id, state.webhook, moved)
        else:
            _log.warning("run %s: webhook %s is not configured: parked", run.run_id, state.webhook)

    async def _park_erased(self, run: Run, state: DeliveryState) -> None:
        """Nothing may be said of the run any more, to nobody."""
        _log.warning("run %s: webhook %s: its texts were erased: parked", run.run_id, state.webhook)
        await self._work.record(run, (ParkDelivery(webhook=state.webhook, reason="erased"),))
