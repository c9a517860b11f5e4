"""Page sign-in: a one-time code is exchanged for a token of the page."""

from typing import Protocol

CODE_SECONDS = 60
TOKEN_SECONDS = 12 * 3600


class PageTokens(Protocol):
    """Codes and tokens of the page.

    A page token has the same access as the token that requested its code. It is valid as long as
    that token is, and for `TOKEN_SECONDS` at most.
    """

    async def make_code(self, token: str) -> str | None:
        """Return a one-time code, valid for `CODE_SECONDS`.

        None if the token is unknown, a child's, or itself a page token.
        """
        ...

    async def trade_code(self, code: str) -> str | None:
        """Return the token for a code; None if the code is unknown, used or expired."""
        ...

    async def revoke(self, token: str) -> bool:
        """Revoke a page token. Return True if it was known."""
        ...
