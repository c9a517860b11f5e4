"""Webhook delivery of announcements: receivers, message and signature.

The format is Standard Webhooks: headers sign the body together with its id and the time of the
attempt. The id is the same for each attempt, so a receiver can detect retries.
"""

import base64
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from uuid import UUID

from domain.configuration.webhooks import AnnounceSection, OriginPattern
from domain.context.thread_binding import Origin
from domain.run.state import Run
from domain.values.json_text import compact_json
from domain.values.text import fits

MESSAGE_TYPE = "announcement"
_SECONDS = re.compile(r"([0-9]+)(\.[0-9]+)?")
_RETRIED = frozenset({408, 409, 425, 429})
"""Statuses in the 4xx range that are temporary, so the delivery is retried."""


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """A message to a webhook. `key` is its id, the same for each attempt."""

    key: str
    body: str


def receivers(announce: AnnounceSection, agent_id: str, origin: Origin) -> tuple[str, ...]:
    """Return the ids of the webhooks that receive an announcement.

    Args:
        announce: The configured webhooks.
        agent_id: Agent of the session that requested the run.
        origin: Where the run was requested.
    """
    return tuple(
        webhook.id
        for webhook in announce.webhooks
        if (webhook.agents is None or agent_id in webhook.agents)
        and (webhook.origin is None or _fits(webhook.origin, origin))
    )


def _fits(pattern: OriginPattern, origin: Origin) -> bool:
    patterns = {"channel": pattern.channel, "accountId": pattern.account_id, "to": pattern.to}
    return all(
        name in origin and fits(str(origin[name]), expected)
        for name, expected in patterns.items()
        if expected is not None
    )


def message_key(run_id: UUID) -> str:
    """Return the id of a run's message."""
    return f"announcement-{run_id}"


def announcement_message(run: Run, text: str | None, origin: Origin) -> WebhookMessage:
    """Return the webhook message with a run's announcement.

    Args:
        run: An announced run.
        text: Text of the announcement; None if it was erased.
        origin: Where to post it; empty if only the inbox receives it.
    """
    inbox = run.inbox
    assert inbox is not None
    data: dict[str, object] = {
        "runId": str(run.run_id),
        "childSessionKey": run.child_session_key,
        "agentId": run.agent_id,
        "label": run.label,
        "requester": {
            "sessionKey": run.requester.display_key,
            "agentId": run.requester.agent_id,
            "depth": run.requester.depth,
        },
        "status": inbox.status,
        "outcome": run.outcome,
        "text": text,
        "origin": dict(origin) or None,
        "dedupeKey": inbox.dedupe_key,
        "position": inbox.announced_position,
    }
    announced = inbox.created_at or run.created_at
    body = {
        "type": MESSAGE_TYPE,
        "timestamp": announced.isoformat().replace("+00:00", "Z"),
        "data": data,
    }
    return WebhookMessage(message_key(run.run_id), compact_json(body))


def signature_headers(keys: Iterable[bytes], message: WebhookMessage, at: int) -> dict[str, str]:
    """Return the headers that sign a message, once with each key.

    Args:
        keys: Secret keys.
        message: The message.
        at: Time of the attempt, in whole seconds since the epoch.
    """
    signed = f"{message.key}.{at}.{message.body}".encode()
    signatures = (hmac.digest(key, signed, "sha256") for key in keys)
    return {
        "webhook-id": message.key,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(
            f"v1,{base64.b64encode(signature).decode('ascii')}" for signature in signatures
        ),
    }


def is_permanent(status_code: int) -> bool:
    """Return True if a retry would receive the same answer.

    That holds for 3xx and 4xx, except those that only concern the moment (408, 409, 425, 429).
    """
    return 300 <= status_code < 500 and status_code not in _RETRIED


def requested_pause_seconds(
    retry_after: str | None, now: datetime, *, date: str | None = None
) -> int | None:
    """Return how many seconds a receiver asks to wait before the next attempt.

    Args:
        retry_after: `Retry-After` header: seconds, rounded up, or a date.
        now: Local time, used if the answer has no `Date`.
        date: `Date` header of the answer, from the same clock as a date in `Retry-After`.

    Returns:
        None if the header is absent or cannot be parsed.
    """
    text = (retry_after or "").strip()
    seconds = _SECONDS.fullmatch(text)
    if seconds is not None:
        has_part = seconds[2] is not None and seconds[2].strip(".0") != ""
        return int(seconds[1][:9]) + has_part
    until = _http_date(text)
    if until is None:
        return None
    return max(0, round((until - (_http_date(date or "") or now)).total_seconds()))


def _http_date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
