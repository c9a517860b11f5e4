"""Spawns whose texts are erased while they are prepared."""

ERASED_RULE = "erased"
"""The rule by which such a spawn is refused: it has no words of its own any more."""

ERASED = "its texts were erased while it was prepared; spawn it again"
