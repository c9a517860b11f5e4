"""The `spawnlog.announce` section: to whom announcements are sent beyond the inbox."""

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
"""The one in use, and while it is replaced the one before it."""
KEY_BYTES_MIN = 24
KEY_BYTES_MAX = 64
SECRET_PREFIX = "whsec_"  # noqa: S105
SIGNATURE_HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")
_SECRET_RULE = (
    f"must be {SECRET_PREFIX} and the base64 of {KEY_BYTES_MIN} to {KEY_BYTES_MAX} random bytes"
)


def webhook_key(secret: str) -> bytes:
    """The key in a secret as Standard Webhooks writes it. ValueError, without the secret, for a
    text that is none."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(_SECRET_RULE) from None
    if not secret.startswith(SECRET_PREFIX) or not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise ValueError(_SECRET_RULE)
    return key


def secret_problem(secret: str) -> str | None:
    """What is wrong with a secret, in words that do not repeat it; None for a good one."""
    try:
        webhook_key(secret)
    except ValueError as wrong:
        return str(wrong)
    return None


def _secret(value: str | SecretReference) -> str | SecretReference:
    # With a reference in it, it is looked at when it is used.
    if isinstance(value, SecretReference) or variables_in(value):
        return value
    complaint = secret_problem(value)
    if complaint is not None:
        raise section_error("secret", complaint)
    return value


class OriginPattern(OwnSection):
    """Where a spawn was asked for. In each text `*` stands for anything; what is absent is not
    looked at, and an origin without what is looked at does not fit."""

    channel: NameText | None = None
    account_id: NameText | None = None
    to: NameText | None = None


class Webhook(Hook):
    """An address to which announcements are sent, signed with each of its secrets. `agents` are the
    agents whose sessions asked for the run, `origin` where they were asked; without both it is sent
    all."""

    id: Annotated[NameText, Field(max_length=WEBHOOK_ID_CHARACTERS_MAX)]
    secrets: Annotated[
        tuple[Annotated[SecretText, AfterValidator(_secret)], ...],
        Field(min_length=1, max_length=SECRETS_MAX, repr=False),
    ]
    agents: (
        Annotated[
            tuple[Annotated[Text, AfterValidator(read_agent_id)], ...],
            Field(min_length=1, max_length=AGENTS_MAX),
        ]
        | None
    ) = None
    origin: OriginPattern | None = None

    @field_validator("headers")
    @classmethod
    def _without_those_of_signatures(cls, headers: dict[str, object]) -> dict[str, object]:
        for name in headers:
            if name.lower() in SIGNATURE_HEADERS:
                raise section_error("headers", f"{name} is set by spawnlog for each request")
        return headers


class AnnounceSection(OwnSection):
    """An announcement is sent to a webhook `attempts_max` times at most, with `retry_seconds_max`
    between two attempts at most; one that answers with Retry-After is waited for a day at most."""

    webhooks: Annotated[tuple[Webhook, ...], Field(max_length=WEBHOOKS_MAX)] = ()
    attempts_max: Annotated[Whole, Field(ge=1, le=50)] = 15
    retry_seconds_max: Annotated[Whole, Field(ge=1, le=86_400)] = 3600

    @field_validator("webhooks")
    @classmethod
    def _each_id_once(cls, webhooks: tuple[Webhook, ...]) -> tuple[Webhook, ...]:
        ids: set[str] = set()
        for index, webhook in enumerate(webhooks):
            if webhook.id in ids:
                raise section_error(
                    "webhook", f'there is another webhook "{webhook.id}"', at=f"{index}/id"
                )
            ids.add(webhook.id)
        return webhooks

    def named(self, webhook_id: str) -> Webhook | None:
        """The webhook of this id, if it is configured."""
        return next((one for one in self.webhooks if one.id == webhook_id), None)
