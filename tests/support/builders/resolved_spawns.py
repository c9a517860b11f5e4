"""Requests for a sub-agent, as a door resolves them."""

from typing import Any

from application.commands.resolve_request import resolve_request
from domain.configuration.configuration import Configuration
from domain.spawn.request import ResolvedSpawn, SpawnRequest
from tests.support.builders.storytelling import ROOT


def resolved_spawn(
    key: str = ROOT, configuration: Configuration | None = None, /, **members: Any
) -> ResolvedSpawn:
    """Resolve a request with these members of its body.

    Args:
        key: The canonical key of the session that asks; members of `requester` stand beside it.
    """
    about = members.pop("requester", {})
    body = {"task": "look around", **members, "requester": {"sessionKey": key, **about}}
    request = SpawnRequest.model_validate(body)
    return resolve_request(request, configuration or Configuration(), key)
