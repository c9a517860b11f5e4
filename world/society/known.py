"""What callers ask for, and what they know together."""

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
    def what(self) -> str:
        """Which kind of request it is."""
        if self.about is not None:
            return "message"
        return "batch" if isinstance(self.body["task"], list) else "spawn"


@dataclass
class Known:
    """What all callers know together. `position` is the highest that any of them was told, and
    `answers` counts what was answered to which kind of request: the rule that refused it or the
    status, and None if nothing was."""

    runs: deque[tuple[str, str, str]] = field(default_factory=lambda: deque(maxlen=60))
    asked: deque[Request] = field(default_factory=lambda: deque(maxlen=60))
    unanswered: deque[Request] = field(default_factory=lambda: deque(maxlen=60))
    position: int = 0
    answers: Counter[tuple[str, int | str | None]] = field(default_factory=Counter)
