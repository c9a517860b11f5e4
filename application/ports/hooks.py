"""Hooks: external programs that are called about sub-agents."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from application.ports.configurations import PinnedConfiguration
from domain.delivery.hook_payloads import HookCall


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The answer of a hook. `body` is None if it has no content."""

    status_code: int
    body: Mapping[str, object] | None = None


class HookError(Exception):
    """A hook gave no usable answer.

    The message says why, without the address and without anything sent or received.

    Attributes:
        was_asked: Whether the hook may have received the request.
        status_code: Status of the answer, if there was one.
        has_no_room: True if nothing was sent because too many calls are in flight here.
    """

    def __init__(
        self,
        text: str,
        *,
        was_asked: bool = True,
        status_code: int | None = None,
        is_busy: bool = False,
    ) -> None:
        super().__init__(text)
        self.was_asked = was_asked
        self.status_code = status_code
        self.is_busy = is_busy


class HookClient(Protocol):
    """Client for the hooks of a configuration."""

    async def ask(self, pinned: PinnedConfiguration, call: HookCall) -> HookAnswer:
        """Call a configured hook and wait for its answer, up to the configured timeout.

        Raises:
            HookError: If there is no usable answer.
        """
        ...
