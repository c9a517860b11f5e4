"""Signing in to the page: a code that works once is traded for a token of the page's own."""

from typing import Protocol

CODE_SECONDS = 60
TOKEN_SECONDS = 12 * 3600


class PageTokens(Protocol):
    """Codes and tokens of the page. A token of it is good for what the token is good for that asked
    for its code, as long as that one is, and `TOKEN_SECONDS` at most."""

    async def make_code(self, token: str) -> str | None:
        """A code for whoever has this token, good once and for `CODE_SECONDS`; None when the token
        is a child's, one of the page, or not known."""
        ...

    async def trade_code(self, code: str) -> str | None:
        """The token for a code; None when it is unknown, used or too old."""
        ...

    async def revoke(self, token: str) -> bool:
        """Whether a token of the page was known; it is not any more."""
        ...
