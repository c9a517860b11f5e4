"""Tokens for children, by which they call back."""

from typing import Protocol
from uuid import UUID


class ChildTokens(Protocol):
    """Mints a token that is good while the run is held under that claim."""

    def mint(self, run_id: UUID, epoch: int) -> str:
        """The token; it is never recorded."""
        ...
