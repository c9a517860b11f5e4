"""Webhooks that announcements are sent to."""

from dataclasses import dataclass
from typing import Protocol

from application.ports.configurations import PinnedConfiguration
from domain.delivery.webhook import WebhookMessage


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """The answer of a receiver: its status, and how long it asks to wait before the next request,
    if given."""

    status_code: int
    pause_seconds: int | None = None


class WebhookError(Exception):
    """A webhook gave no answer.

    The message says why, without the address and without anything sent. If `is_for_later`, nothing
    was sent and the receiver is not at fault.
    """

    def __init__(self, text: str, *, is_for_later: bool = False) -> None:
        super().__init__(text)
        self.is_for_later = is_for_later


class WebhookClient(Protocol):
    """Client for the webhooks of a configuration."""

    async def send(
        self, pinned: PinnedConfiguration, webhook_id: str, message: WebhookMessage
    ) -> WebhookAnswer:
        """Send a signed message to a configured webhook, and wait for the answer up to the
        configured timeout.

        Raises:
            WebhookError: If there is no answer.
        """
        ...
