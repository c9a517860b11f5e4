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
VERSIONS: dict[str, int] = {}
"""The newest version of each event that has had more than one."""


EVENT_TYPES: dict[tuple[str, int], type[Event]] = {
    (cls.__name__, VERSIONS.get(cls.__name__, 1)): cls
    for cls in (*get_args(RunEvent), *get_args(SessionEvent), ConfigurationActivated)
}
TYPE_OF: dict[type[Event], tuple[str, int]] = {cls: key for key, cls in EVENT_TYPES.items()}


# Older versions of events are upcast to the newest version when they are read.
#
# Stored bytes are never changed. An upcast is a pure function from the JSON of one version to that
# of the next. If a fact was not recorded then, it leaves the fact absent instead of inventing one.


Upcast = Callable[[dict[str, Any]], dict[str, Any]]
Upcasts = Mapping[tuple[str, int], Upcast]
UPCASTS: Upcasts = {}
"""By the name of the event and the version it is upcast from, to the next version."""


def upcast_event(
    name: str, version: int, stored: dict[str, Any], upcasts: Upcasts = UPCASTS
) -> tuple[int, dict[str, Any]]:
    """The newest version that the event can be brought to, and its JSON then."""
    while (upcast := upcasts.get((name, version))) is not None:
        version, stored = version + 1, upcast(stored)
    return version, stored
