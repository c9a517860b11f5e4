"""Those outside who are asked and told about sub-agents."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from application.ports.configurations import PinnedConfiguration
from domain.delivery.hook_payloads import HookCall


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """`body` is None for an answer that says nothing."""

    status_code: int
    body: Mapping[str, object] | None = None


class HookFailure(Exception):
    """No answer that can be used. The text says why, without the address and without anything that
    was sent or received.

    `was_asked` is whether the request may have been received; `status_code` is that of an answer,
    if there was one; `has_no_room` is whether it was not sent because too many are under way here.
    """

    def __init__(
        self,
        text: str,
        *,
        was_asked: bool = True,
        status_code: int | None = None,
        has_no_room: bool = False,
    ) -> None:
        super().__init__(text)
        self.was_asked = was_asked
        self.status_code = status_code
        self.has_no_room = has_no_room


class HookClient(Protocol):
    """The hooks of a configuration."""

    async def ask(self, pinned: PinnedConfiguration, call: HookCall) -> HookAnswer:
        """Send a request to a hook that is configured, and wait for the answer as long as the
        configuration says. Raises `HookFailure`."""
        ...
