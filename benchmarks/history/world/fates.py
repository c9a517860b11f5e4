"""Fates of spawns and their exact shares, so that even a short history has all of them."""

import random
from enum import StrEnum, auto


class Fate(StrEnum):
    """Course of one spawn. Caps refuse in addition, whenever they are reached."""

    SUCCESS = auto()
    HEARD = auto()
    UNHEARD = auto()
    FILES = auto()
    FILES_NOT_WRITTEN = auto()
    WAITS = auto()
    SILENT = auto()
    UNTOLD = auto()
    PERSISTENT = auto()
    TALKED = auto()
    TURNED_AWAY = auto()
    BOUND = auto()
    CLOSED_AT_WORK = auto()
    FAILURE = auto()
    TIMEOUT = auto()
    STOPPED_BY_REQUESTER = auto()
    STOPPED_BY_OPERATOR = auto()
    STOPPED_IN_LANE = auto()
    STOPPED_UNPREPARED = auto()
    LOST_PREPARATION = auto()
    LOST_CLAIM = auto()
    INTERRUPTED = auto()
    NO_AGENT_ID = auto()
    NO_THREAD = auto()
    NOT_ALLOWED = auto()
    NOT_CONFIGURED = auto()
    NO_SUCH_THINKING = auto()


SHARES = {
    Fate.SUCCESS: 36,
    Fate.HEARD: 2,
    Fate.UNHEARD: 1,
    Fate.FILES: 2,
    Fate.FILES_NOT_WRITTEN: 1,
    Fate.WAITS: 4,
    Fate.SILENT: 3,
    Fate.UNTOLD: 2,
    Fate.PERSISTENT: 2,
    Fate.TALKED: 7,
    Fate.TURNED_AWAY: 2,
    Fate.BOUND: 2,
    Fate.CLOSED_AT_WORK: 1,
    Fate.FAILURE: 8,
    Fate.TIMEOUT: 4,
    Fate.STOPPED_BY_REQUESTER: 3,
    Fate.STOPPED_BY_OPERATOR: 2,
    Fate.STOPPED_IN_LANE: 2,
    Fate.STOPPED_UNPREPARED: 2,
    Fate.LOST_PREPARATION: 2,
    Fate.LOST_CLAIM: 2,
    Fate.INTERRUPTED: 2,
    Fate.NO_AGENT_ID: 1,
    Fate.NO_THREAD: 1,
    Fate.NOT_ALLOWED: 3,
    Fate.NOT_CONFIGURED: 2,
    Fate.NO_SUCH_THINKING: 1,
}
"""Number of each fate in a hundred spawns."""

STOPPED = frozenset({Fate.STOPPED_BY_REQUESTER, Fate.STOPPED_BY_OPERATOR})
STAYING = frozenset({Fate.PERSISTENT, Fate.BOUND, Fate.CLOSED_AT_WORK})
"""Fates of sessions of mode `session`: closed by a stop, or left open."""

SENT = frozenset({Fate.HEARD, Fate.UNHEARD, Fate.BOUND})
"""Fates of runs whose announcement goes to a webhook."""

FILES = frozenset({Fate.FILES, Fate.FILES_NOT_WRITTEN})
"""Fates of runs with attachments."""

TALKED_TO = frozenset({Fate.TALKED, Fate.TURNED_AWAY, Fate.BOUND, Fate.CLOSED_AT_WORK})
"""Fates of runs that get messages once they are announced."""

GOES_ON = {
    Fate.SUCCESS: 10,
    Fate.SILENT: 1,
    Fate.FAILURE: 2,
    Fate.STOPPED_BY_OPERATOR: 1,
    Fate.LOST_CLAIM: 1,
    Fate.INTERRUPTED: 1,
}
"""Weights of the fates of a message's run."""


class Deck:
    """Draws fates from a shuffled hundred, and shuffles a new one when that is used up."""

    def __init__(self, random_source: random.Random) -> None:
        self._random = random_source
        self._left: list[Fate] = []

    def draw(self) -> Fate:
        """Return the next fate."""
        if not self._left:
            self._left = [fate for fate, share in SHARES.items() for _ in range(share)]
            self._random.shuffle(self._left)
        return self._left.pop()
