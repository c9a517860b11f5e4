"""Announcements that are sent beyond the inbox: to which webhooks, what, and with which signature.

The form is that of Standard Webhooks: a body, and headers that sign it together with its id and the
time of the attempt. The id is the same at each attempt: by it a receiver tells a repeat.
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
"""Answers of a receiver that has something against the moment, and nothing against the message."""


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """What a webhook is sent. `key` is the id of the message, the same at each attempt."""

    key: str
    body: str


def receivers(announce: AnnounceSection, agent_id: str, origin: Origin) -> tuple[str, ...]:
    """The ids of the webhooks that are sent the announcement of a run which a session of this agent
    asked for, there."""
    return tuple(
        one.id
        for one in announce.webhooks
        if (one.agents is None or agent_id in one.agents)
        and (one.origin is None or _fits(one.origin, origin))
    )


def _fits(pattern: OriginPattern, origin: Origin) -> bool:
    looked_at = {"channel": pattern.channel, "accountId": pattern.account_id, "to": pattern.to}
    return all(
        name in origin and fits(str(origin[name]), expected)
        for name, expected in looked_at.items()
        if expected is not None
    )


def message_key(run_id: UUID) -> str:
    """The id of the message about a run."""
    return f"announcement-{run_id}"


def announcement_message(run: Run, text: str | None, origin: Origin) -> WebhookMessage:
    """The announcement of a run. `text` is what its requester was told, None when that was erased;
    `origin` where it is to be posted, empty when that is nowhere but the inbox."""
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
    """The headers that sign a message, once with each key; `at` is in whole seconds of UTC."""
    signed = f"{message.key}.{at}.{message.body}".encode()
    signatures = (hmac.digest(key, signed, "sha256") for key in keys)
    return {
        "webhook-id": message.key,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(
            f"v1,{base64.b64encode(one).decode('ascii')}" for one in signatures
        ),
    }


def is_permanent(status_code: int) -> bool:
    """Whether a receiver that answered so would answer so again: what it says of the message, or of
    itself, is not about the moment."""
    return 300 <= status_code < 500 and status_code not in _RETRIED


def requested_pause_seconds(
    retry_after: str | None, now: datetime, *, date: str | None = None
) -> int | None:
    """Return how long a receiver wants to be left alone.

    Args:
        retry_after: Its `Retry-After`: seconds, rounded up, or a date.
        now: The time here, for an answer without a `Date`.
        date: The `Date` of the answer, which is by the same clock as a date in `Retry-After`.

    Returns:
        None if it says nothing that can be read.
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
