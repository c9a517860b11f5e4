"""Closed registry of event types: maps a stored name and version to the class that reads it.

A stored name never names code to import. To change an event: change its class, raise its number in
`VERSIONS`, add an upcast from the previous version, and add a golden history of the new one.
"""

from collections.abc import Callable, Mapping
from typing import Any, get_args

from domain.run.events import RunEvent
from domain.session.events import SessionEvent
from domain.values.record import ContentRef, Event


class ConfigurationActivated(Event):
    """A configuration revision that later decisions are made under.

    Attributes:
        revision: Version of this event in its stream.
        content: Text of the configuration, with secrets replaced.
        source: Where the configuration was read from.
        activated_by: Actor that activated it.
    """

    revision: int
    content: ContentRef
    source: str
    activated_by: str


LOG_FORMAT = 1
"""Newest log format that this code reads and writes."""


AnyEvent = RunEvent | SessionEvent | ConfigurationActivated
VERSIONS: dict[str, int] = {}
"""Newest version of each event type that has had more than one."""


EVENT_TYPES: dict[tuple[str, int], type[Event]] = {
    (cls.__name__, VERSIONS.get(cls.__name__, 1)): cls
    for cls in (*get_args(RunEvent), *get_args(SessionEvent), ConfigurationActivated)
}
TYPE_OF: dict[type[Event], tuple[str, int]] = {cls: key for key, cls in EVENT_TYPES.items()}


# Older events are upcast to the newest version on read.
#
# Stored bytes never change. An upcast is a pure function from the JSON of one version to that of
# the next. If the old version did not record a fact, the upcast leaves it absent.


Upcast = Callable[[dict[str, Any]], dict[str, Any]]
Upcasts = Mapping[tuple[str, int], Upcast]
UPCASTS: Upcasts = {}
"""Upcast functions by event name and source version; each leads to the next version."""


def upcast_event(
    name: str, version: int, stored: dict[str, Any], upcasts: Upcasts = UPCASTS
) -> tuple[int, dict[str, Any]]:
    """Apply upcasts until none is left.

    Args:
        name: Stored event name.
        version: Stored version.
        stored: Stored JSON of the event.
        upcasts: Upcast functions by name and source version.

    Returns:
        The version that was reached, and the event's JSON in that version.
    """
    while (upcast := upcasts.get((name, version))) is not None:
        version, stored = version + 1, upcast(stored)
    return version, stored
