"""Those outside to whom announcements are sent."""

from dataclasses import dataclass
from typing import Protocol

from application.ports.configurations import PinnedConfiguration
from domain.delivery.webhook import WebhookMessage


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """What a receiver answered: its status, and for how long it wants to be left alone, if it says
    so."""

    status_code: int
    pause_seconds: int | None = None


class WebhookFailure(Exception):
    """No answer. The text says why, without the address and without anything that was sent. With
    `is_for_later` nothing was sent, and nobody outside is to blame."""

    def __init__(self, text: str, *, is_for_later: bool = False) -> None:
        super().__init__(text)
        self.is_for_later = is_for_later


class WebhookClient(Protocol):
    """The webhooks of a configuration."""

    async def send(
        self, pinned: PinnedConfiguration, webhook_id: str, message: WebhookMessage
    ) -> WebhookAnswer:
        """Send a message, signed, to a webhook that is configured, and wait for the answer as long
        as the configuration says. Raises `WebhookFailure`."""
        ...
