"""The closed registry of event types: a stored name and version, and the class that reads it.

A stored name never names code to import. To change an event: change its class, raise its number in
`VERSIONS`, and add an upcast from the version before and a golden history of the new one.
"""

from collections.abc import Callable, Mapping
from typing import Any, get_args

from domain.run.events import RunEvent
from domain.session.events import SessionEvent
from domain.values.record import ContentRef, Event

# What can happen to the configuration.


class ConfigurationActivated(Event):
    """From here on decisions are made under this configuration.

    `revision` is this event's version in its stream; `content` its text with secrets replaced.
    """

    revision: int
    content: ContentRef
    source: str
    activated_by: str


LOG_FORMAT = 1
"""The newest format of the log that this code reads and writes."""


AnyEvent = RunEvent | SessionEvent | ConfigurationActivated
VERSIONS: dict[str, int] = {
    "SpawnRequested": 8,
    "PreparationStarted": 2,
    "ScriptsResolved": 3,
    "StepTaken": 2,
    "StepUndone": 2,
    "SessionCreated": 7,
    "RunStarted": 2,
    "RunAnnounced": 3,
    "RunEnded": 2,
    "MessageReceived": 2,
    "ContinuationPlanned": 2,
    "ChildSettled": 2,
    "SessionContinued": 2,
    "SpawnRefused": 4,
    "SessionObserved": 2,
}
"""The newest version of each event that has had more than one."""


EVENT_TYPES: dict[tuple[str, int], type[Event]] = {
    (cls.__name__, VERSIONS.get(cls.__name__, 1)): cls
    for cls in (*get_args(RunEvent), *get_args(SessionEvent), ConfigurationActivated)
}
TYPE_OF: dict[type[Event], tuple[str, int]] = {cls: key for key, cls in EVENT_TYPES.items()}


# Older versions of events, brought up to the newest one when they are read.
#
# What is stored is never touched. An upcast is a pure function from the JSON of one version to
# that of the next; it invents nothing that was not known then, and says so with an explicit
# absence.


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
    ("SpawnRequested", 5): _keep_fields,
    ("RunEnded", 1): _keep_fields,
    ("MessageReceived", 1): _keep_fields,
    ("ContinuationPlanned", 1): _keep_fields,
    ("SessionCreated", 6): _keep_fields,
    ("ChildSettled", 1): _keep_fields,
    ("SessionContinued", 1): _keep_fields,
    ("RunAnnounced", 2): _keep_fields,
    ("SpawnRefused", 3): _keep_fields,
    ("SpawnRequested", 6): _keep_fields,
    ("ScriptsResolved", 2): _keep_fields,
    ("SpawnRequested", 7): _keep_fields,
}
"""By the name of the event and the version it is brought up from, to the version after it."""


def upcast_event(
    name: str, version: int, stored: dict[str, Any], upcasts: Upcasts = UPCASTS
) -> tuple[int, dict[str, Any]]:
    """The newest version that the event can be brought to, and its JSON then."""
    while (upcast := upcasts.get((name, version))) is not None:
        version, stored = version + 1, upcast(stored)
    return version, stored
