"""The closed registry of event types: a stored name and version, and the class that reads it.

A stored name never names code to import. To change an event: change its class, raise its number in
`VERSIONS`, and add an upcast from the version before and a golden history of the new one.
"""

from typing import get_args

from domain.config_events import ConfigurationActivated
from domain.run.events import RunEvent
from domain.session.events import SessionEvent
from domain.values.record import Event

LOG_FORMAT = 1
"""The newest format of the log that this code reads and writes."""

AnyEvent = RunEvent | SessionEvent | ConfigurationActivated

VERSIONS: dict[str, int] = {
    "SpawnRequested": 5,
    "PreparationStarted": 2,
    "ScriptsResolved": 2,
    "StepTaken": 2,
    "StepUndone": 2,
    "SessionCreated": 6,
    "RunStarted": 2,
    "RunAnnounced": 2,
    "SpawnRefused": 3,
    "SessionObserved": 2,
}
"""The newest version of each event that has had more than one."""

EVENT_TYPES: dict[tuple[str, int], type[Event]] = {
    (cls.__name__, VERSIONS.get(cls.__name__, 1)): cls
    for cls in (*get_args(RunEvent), *get_args(SessionEvent), ConfigurationActivated)
}

TYPE_OF: dict[type[Event], tuple[str, int]] = {cls: key for key, cls in EVENT_TYPES.items()}
