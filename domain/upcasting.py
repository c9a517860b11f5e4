"""Older versions of events, brought up to the newest one when they are read.

What is stored is never touched. An upcast is a pure function from the JSON of one version to that
of the next; it invents nothing that was not known then, and says so with an explicit absence.
"""

from collections.abc import Callable, Mapping
from typing import Any

Upcast = Callable[[dict[str, Any]], dict[str, Any]]
Upcasts = Mapping[tuple[str, int], Upcast]


def _keep_fields(stored: dict[str, Any]) -> dict[str, Any]:
    """What the next version has more was not recorded then, which its absence says."""
    return stored


UPCASTS: Upcasts = {
    ("SpawnRequested", 1): _keep_fields,
    ("PreparationStarted", 1): _keep_fields,
    ("ScriptsResolved", 1): _keep_fields,
    ("SessionCreated", 1): _keep_fields,
    ("SpawnRefused", 1): _keep_fields,
    ("SessionObserved", 1): _keep_fields,
    ("SpawnRequested", 2): _keep_fields,
    ("SessionCreated", 2): _keep_fields,
    ("SpawnRefused", 2): _keep_fields,
    ("SpawnRequested", 3): _keep_fields,
    ("StepTaken", 1): _keep_fields,
    ("StepUndone", 1): _keep_fields,
    ("SessionCreated", 3): _keep_fields,
    ("RunAnnounced", 1): _keep_fields,
    ("SessionCreated", 4): _keep_fields,
    ("SpawnRequested", 4): _keep_fields,
    ("SessionCreated", 5): _keep_fields,
    ("RunStarted", 1): _keep_fields,
}
"""By the name of the event and the version it is brought up from, to the version after it."""


def upcast_event(
    name: str, version: int, stored: dict[str, Any], upcasts: Upcasts = UPCASTS
) -> tuple[int, dict[str, Any]]:
    """The newest version that the event can be brought to, and its JSON then."""
    while (upcast := upcasts.get((name, version))) is not None:
        version, stored = version + 1, upcast(stored)
    return version, stored
