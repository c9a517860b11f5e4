"""Requests of callers, and their common knowledge."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """A spawn, or a message to the session of the run `about`, that may be asked for again."""

    label: str
    requester: str
    body: dict[str, Any]
    key: str | None
    about: str | None = None

    @property
    def kind(self) -> str:
        """Return the kind of the request."""
        if self.about is not None:
            return "message"
        return "batch" if isinstance(self.body["task"], list) else "spawn"


@dataclass
class Known:
    """Common knowledge of all callers.

    `position` is the highest one returned to any of them. `answers` counts answers by kind of
    request and by refusing rule or status; None is no answer.
    """

    runs: deque[tuple[str, str, str]] = field(default_factory=lambda: deque(maxlen=60))
    asked: deque[Request] = field(default_factory=lambda: deque(maxlen=60))
    unanswered: deque[Request] = field(default_factory=lambda: deque(maxlen=60))
    position: int = 0
    answers: Counter[tuple[str, int | str | None]] = field(default_factory=Counter)
