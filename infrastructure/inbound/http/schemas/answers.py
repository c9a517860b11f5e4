"""What is answered to commands and about the server. The answers to commands are kept as JSON for
repeated requests; these are their schemas."""

from typing import Literal

from application.queries.views.view import View


class HealthAnswer(View):
    """The process answers; `version` is its release."""

    status: Literal["ok"]
    version: str


class ReadinessAnswer(View):
    """Where the log ends, and how far this server has read it."""

    status: Literal["ready"]
    head: int
    tail: int


class PageCodeAnswer(View):
    """A code that signs in to the page once: at `/ui/#code=…`. None is needed, and `code` is null,
    where authentication is switched off."""

    code: str | None
    expires_in_seconds: int


class PageTokenAnswer(View):
    """A token of the page, as good as the one that asked for its code, for as long as that is."""

    token: str
    expires_in_seconds: int


class RevokedAnswer(View):
    """The token is good for nothing any more; `wasKnown` when it was one of the page."""

    was_known: bool
