"""The `spawnlog.announce` section."""

import base64
from typing import Any

import pytest
from pydantic import ValidationError

from domain.configuration.webhooks import AnnounceSection, webhook_key
from domain.delivery.webhook import receivers

CANARY = b"hush, a canary of 24 bytes"
SECRET = f"whsec_{base64.b64encode(CANARY).decode()}"


def announce(*webhooks: dict[str, Any]) -> AnnounceSection:
    plain = {"id": "chat", "url": "https://gateway.example/", "secrets": [SECRET]}
    return AnnounceSection.model_validate({"webhooks": [{**plain, **one} for one in webhooks]})


def test_a_secret_is_the_base64_of_the_key() -> None:
    assert webhook_key(SECRET) == CANARY


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"secrets": []}, "at least 1 item"),
        ({"secrets": [SECRET] * 3}, "at most 2 items"),
        ({"secrets": [SECRET.removeprefix("whsec_")]}, "must be whsec_ and the base64"),
        ({"secrets": ["whsec_" + base64.b64encode(CANARY[:23]).decode()]}, "24 to 64 random bytes"),
        ({"secrets": [f"{SECRET}*"]}, "must be whsec_ and the base64"),
        ({"headers": {"Webhook-Signature": "v1,x"}}, "is set by spawnlog for each request"),
        ({"agents": []}, "at least 1 item"),
        ({"agents": ["no id!"]}, "an agent id is 1 to 64 letters"),
        ({"origin": {"thread": "7"}}, "Extra inputs are not permitted"),
        ({"url": "ftp://gateway.example/"}, "begins with http"),
    ],
)
def test_what_is_wrong_is_said_without_the_secret(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match="webhooks") as caught:
        announce(change)
    assert why in str(caught.value)
    assert SECRET.removeprefix("whsec_") not in str(caught.value)


def test_an_id_stands_for_one_webhook() -> None:
    with pytest.raises(ValidationError, match='there is another webhook "chat"'):
        announce({}, {})


@pytest.mark.parametrize(
    ("webhook", "agent_id", "origin", "fits"),
    [
        ({}, "main", {}, True),
        ({"agents": ["Ops"]}, "ops", {}, True),
        ({"agents": ["ops"]}, "main", {}, False),
        ({"origin": {}}, "main", {}, True),
        ({"origin": {"channel": "discord"}}, "main", {"channel": "discord"}, True),
        ({"origin": {"channel": "discord"}}, "main", {"channel": "slack"}, False),
        ({"origin": {"channel": "discord"}}, "main", {}, False),
        ({"origin": {"to": "channel:*"}}, "main", {"to": "channel:7"}, True),
        ({"origin": {"to": "channel:?"}}, "main", {"to": "channel:7"}, False),
        ({"origin": {"to": "[ab]"}}, "main", {"to": "a"}, False),
        (
            {"origin": {"channel": "d", "accountId": "b"}},
            "main",
            {"channel": "d", "accountId": "a"},
            False,
        ),
    ],
)
def test_a_webhook_is_sent_what_its_agents_have_asked_for_at_its_origin(
    webhook: dict[str, Any], agent_id: str, origin: dict[str, str | int], fits: bool
) -> None:
    assert receivers(announce(webhook), agent_id, origin) == (("chat",) if fits else ())
