"""The `spawnlog.announce` section: webhooks that receive announcements."""

import base64
import binascii
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from domain.configuration.agents import read_agent_id
from domain.configuration.hooks import Hook
from domain.configuration.secrets import SecretReference, SecretText, variables_in
from domain.configuration.sections import NameText, OwnSection, Text, Whole, section_error

WEBHOOKS_MAX = 20
WEBHOOK_ID_CHARACTERS_MAX = 64
AGENTS_MAX = 100
SECRETS_MAX = 2
"""The current secret, and the previous one during a rotation."""
KEY_BYTES_MIN = 24
KEY_BYTES_MAX = 64
SECRET_PREFIX = "whsec_"  # noqa: S105
SIGNATURE_HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")
_SECRET_RULE = (
    f"must be {SECRET_PREFIX} and the base64 of {KEY_BYTES_MIN} to {KEY_BYTES_MAX} random bytes"
)


def webhook_key(secret: str) -> bytes:
    """Return the key of a secret in the format of Standard Webhooks.

    Raises:
        ValueError: `secret` is invalid. The message does not contain it.
    """
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(_SECRET_RULE) from None
    if not secret.startswith(SECRET_PREFIX) or not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise ValueError(_SECRET_RULE)
    return key


def secret_problem(secret: str) -> str | None:
    """Return the problem with a secret, in words that do not repeat it, or None."""
    try:
        webhook_key(secret)
    except ValueError as error:
        return str(error)
    return None


def _secret(value: str | SecretReference) -> str | SecretReference:
    # A text with a reference is checked at use.
    if isinstance(value, SecretReference) or variables_in(value):
        return value
    complaint = secret_problem(value)
    if complaint is not None:
        raise section_error("secret", complaint)
    return value


class OriginPattern(OwnSection):
    """Pattern of the origin of a spawn, in which `*` matches any text.

    Absent fields are ignored. An origin that lacks a given field does not match.
    """

    channel: NameText | None = None
    """Only runs requested from this channel. In all three keys, `*` matches any text. Example:
    `"slack"`
    """

    account_id: NameText | None = None
    """Only runs requested through this account of the channel. Example: `"work"`"""

    to: NameText | None = None
    """Only runs requested from this address in the channel. Example: `"#ops"`"""


class Webhook(Hook):
    """An address that receives announcements, signed with each of its secrets."""

    id: Annotated[NameText, Field(max_length=WEBHOOK_ID_CHARACTERS_MAX)]
    """Name of the webhook, by which deliveries are recorded. Example: `"chat"`"""

    secrets: Annotated[
        tuple[Annotated[SecretText, AfterValidator(_secret)], ...],
        Field(min_length=1, max_length=SECRETS_MAX, repr=False),
    ]
    """One or two signing secrets (`whsec_…`); with two, for a rotation, each request is signed with
    both. Example: `["${CHAT_SECRET}"]`
    """

    agents: (
        Annotated[
            tuple[Annotated[Text, AfterValidator(read_agent_id)], ...],
            Field(min_length=1, max_length=AGENTS_MAX),
        ]
        | None
    ) = None
    """Only announcements to sessions of these agents. Unset: of all agents. Example: `["main"]`"""

    origin: OriginPattern | None = None
    """Only announcements of runs that were requested from there. Unset: all."""

    @field_validator("headers")
    @classmethod
    def _refuse_signature_headers(cls, headers: dict[str, object]) -> dict[str, object]:
        for name in headers:
            if name.lower() in SIGNATURE_HEADERS:
                raise section_error("headers", f"{name} is set by spawnlog for each request")
        return headers


class AnnounceSection(OwnSection):
    """The `spawnlog.announce` section.

    Each announcement is sent to a webhook up to `attempts_max` times, with at most
    `retry_seconds_max` between attempts. A `Retry-After` answer can delay the next attempt by at
    most one day.
    """

    webhooks: Annotated[tuple[Webhook, ...], Field(max_length=WEBHOOKS_MAX)] = ()
    """Webhooks that receive announcements."""

    attempts_max: Annotated[Whole, Field(ge=1, le=50)] = 15
    """Attempts to deliver an announcement to a webhook; then it is parked."""

    retry_seconds_max: Annotated[Whole, Field(ge=1, le=86_400)] = 3600
    """Maximum backoff between two attempts, in seconds. `Retry-After` can delay the next one by
    a day.
    """

    @field_validator("webhooks")
    @classmethod
    def _require_distinct_ids(cls, webhooks: tuple[Webhook, ...]) -> tuple[Webhook, ...]:
        ids: set[str] = set()
        for index, webhook in enumerate(webhooks):
            if webhook.id in ids:
                raise section_error(
                    "webhook", f'there is another webhook "{webhook.id}"', at=f"{index}/id"
                )
            ids.add(webhook.id)
        return webhooks

    def named(self, webhook_id: str) -> Webhook | None:
        """Return the webhook with this id, or None if it is not configured."""
        return next((webhook for webhook in self.webhooks if webhook.id == webhook_id), None)
