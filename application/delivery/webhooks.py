"""Delivers announcements to webhooks."""

import logging

from application.concurrency.bulkhead import BulkheadFullError
from application.delivery.effects import AttemptResult, Impossible
from application.log.unit_of_work import UnitOfWork
from application.ports.webhooks import WebhookClient, WebhookError
from application.steps.thread_binding import inbox_origin
from domain.delivery.announcement import with_present_path
from domain.delivery.webhook import WebhookMessage, announcement_message, is_permanent
from domain.run.facts import Effect, EffectKind
from domain.run.state import Run

_log = logging.getLogger("spawnlog.webhooks")
_BROKEN = "the webhook's response could not be processed; see the server's log"


class WebhookPerformer:
    """Sender of announcements to webhooks. Implements `EffectPerformer`.

    Addresses and secrets are those of the configuration in force, so a corrected configuration also
    delivers what failed under a wrong one.
    """

    kind: EffectKind = "webhook"

    def __init__(self, work: UnitOfWork, webhooks: WebhookClient) -> None:
        self._work = work
        self._webhooks = webhooks

    def room(self, effect: Effect) -> str:
        return f"webhook {effect.name}"

    async def perform(self, run: Run, effect: Effect) -> AttemptResult | Impossible:
        pinned = self._work.configurations.current()
        announce = pinned.configuration.spawnlog.announce
        if announce.named(effect.name) is None:
            return Impossible("not_configured", judged_under=pinned)
        message = await self._message(run)
        failed = AttemptResult(
            error=_BROKEN,
            attempts_max=announce.attempts_max,
            retry_seconds_max=announce.retry_seconds_max,
        )
        try:
            answer = await self._webhooks.send(pinned, effect.name, message)
        except WebhookError as failure:
            if failure.is_for_later:
                raise BulkheadFullError(str(failure)) from None
            return failed._replace(error=str(failure))
        except Exception:
            # Count any failure as an attempt, or the effect would never be parked.
            _log.exception("run %s: webhook %s", run.run_id, effect.name)
            return failed
        if 200 <= answer.status_code < 300:
            return AttemptResult(status_code=answer.status_code)
        return failed._replace(
            error=f"the webhook responded with HTTP {answer.status_code}",
            status_code=answer.status_code,
            is_final=is_permanent(answer.status_code),
            pause_seconds=answer.pause_seconds or 0,
        )

    async def _message(self, run: Run) -> WebhookMessage:
        assert run.inbox is not None
        text = await self._work.contents.text(run.inbox.text) if run.inbox.text else None
        if text is not None:
            sealed = run.transcript.path if run.transcript is not None else None
            text = with_present_path(text, sealed, run.transcript_path)
        return announcement_message(run, text, await inbox_origin(run, self._work.contents))
