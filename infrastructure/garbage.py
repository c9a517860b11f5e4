"""How often Python looks for circles of objects that nobody needs any more."""

import gc

YOUNG_OBJECTS_MIN = 20_000
"""So many objects more than before are there when the young ones are looked through."""


def tune_garbage_collector() -> None:
    """What is there now stays. States and events hold no circles, so that to look through all of
    them again and again for some is a quarter of the work of a busy server."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MIN, 20, 50)
