"""Plausible texts from a seed: tasks, script outputs, results, and errors."""

import random

_TEXT = (
    "the report release search index customer schedule table price draft change review answer "
    "request number section summary meeting contract delivery open first second between under "
    "check compare collect write read explain sort count find list group measure repeat for "
    "with without from into about after before each every only also again until where when "
    "which quarter region service ticket invoice page source version figure reason error limit "
)
_WORDS = _TEXT.split()
SENTENCES = 500


class Texts:
    """Draws texts; lengths are in sentences of five to fourteen words."""

    def __init__(self, random_source: random.Random) -> None:
        self._random = random_source
        self._sentences = [self._sentence() for _ in range(SENTENCES)]
        self._number = 0

    def _sentence(self) -> str:
        words = self._random.choices(_WORDS, k=self._random.randint(5, 14))
        return " ".join(words).capitalize() + "."

    def text(self, least: int, most: int) -> str:
        """Return a unique text with `least` to `most` sentences."""
        self._number += 1
        chosen = self._random.choices(self._sentences, k=self._random.randint(least, most))
        return f"{' '.join(chosen)} ({self._number})"

    def label(self) -> str:
        """Return a short label for a run."""
        first, second = self._random.sample(_WORDS, 2)
        return f"{first}-{second}"
