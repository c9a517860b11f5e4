"""The registry of event types is closed and complete, and every version stays readable.

`tests/histories/<name>.<version>.json` is an event of each type and version as it was stored when
that version was new, with every field. These files are written once and never changed, as stored
logs cannot be changed either. A new type or version adds a file.
"""

import json
from pathlib import Path
from typing import get_args

import pytest
from msgspec import ValidationError
from msgspec.structs import fields

from domain.event_types import (
    EVENT_TYPES,
    LOG_FORMAT,
    TYPE_OF,
    UPCASTS,
    AnyEvent,
    ConfigurationActivated,
    upcast_event,
)
from domain.run.events import RunEvent
from domain.session.events import SessionEvent
from domain.values.record import Event

HISTORIES = Path(__file__).parent.parent / "histories"
STORED = {
    (name, int(version)): path
    for path in sorted(HISTORIES.iterdir())
    for name, version, _ in [path.name.split(".")]
}


def test_every_event_is_registered_once_and_nothing_else_is() -> None:
    events = {*get_args(RunEvent), *get_args(SessionEvent), ConfigurationActivated}
    written = {cls for cls in Event.__subclasses__() if cls.__module__.startswith("domain.")}
    assert set(EVENT_TYPES.values()) == events == written
    assert set(get_args(AnyEvent)) == events
    assert len(EVENT_TYPES) == len(events)


def test_event_is_written_under_the_name_it_is_read_by() -> None:
    assert {key: cls for cls, key in TYPE_OF.items()} == EVENT_TYPES
    assert all(TYPE_OF[cls][0] == cls.__name__ for cls in TYPE_OF)


def test_versions_of_a_name_count_from_one_without_gaps() -> None:
    versions: dict[str, set[int]] = {}
    for name, version in (*EVENT_TYPES, *UPCASTS):
        versions.setdefault(name, set()).add(version)
    assert all(found == set(range(1, len(found) + 1)) for found in versions.values())
    assert LOG_FORMAT >= 1


def test_every_event_version_has_a_golden_history() -> None:
    assert set(STORED) == {*EVENT_TYPES, *UPCASTS}


@pytest.mark.parametrize("key", STORED, ids=lambda key: f"{key[0]}:{key[1]}")
def test_stored_event_is_read_without_loss(key: tuple[str, int]) -> None:
    name, version = key
    newest, stored = upcast_event(name, version, json.loads(STORED[key].read_text()))
    cls = EVENT_TYPES[name, newest]
    event = cls.from_json(json.dumps(stored))
    _contains(event.members(), stored, name)
    assert cls.from_json(event.to_json()) == event


@pytest.mark.parametrize("key", STORED, ids=lambda key: f"{key[0]}:{key[1]}")
def test_golden_history_leaves_no_field_empty(key: tuple[str, int]) -> None:
    newest, stored = upcast_event(*key, json.loads(STORED[key].read_text()))
    found = fields(EVENT_TYPES[key[0], newest])
    required = {field.encode_name for field in found if field.required}
    assert required <= set(stored)
    assert None not in stored.values()


@pytest.mark.parametrize("cls", EVENT_TYPES.values(), ids=lambda cls: cls.__name__)
def test_unknown_field_of_event_is_an_error(cls: type[Event]) -> None:
    stored = json.loads(STORED[TYPE_OF[cls]].read_text())
    with pytest.raises(ValidationError, match="addedLater"):
        cls.from_json(json.dumps(stored | {"addedLater": 1}))


@pytest.mark.parametrize("cls", EVENT_TYPES.values(), ids=lambda cls: cls.__name__)
def test_event_cannot_be_changed(cls: type[Event]) -> None:
    event = cls.from_json(STORED[TYPE_OF[cls]].read_text())
    for name in cls.__struct_fields__:
        with pytest.raises(AttributeError, match="immutable"):
            setattr(event, name, None)


def _contains(whole: object, part: object, where: str) -> None:
    """Assert that every value of `part` is at the same place in `whole`."""
    if isinstance(part, dict):
        assert isinstance(whole, dict), where
        for key, value in part.items():
            assert key in whole, f"{where}.{key} is lost"
            _contains(whole[key], value, f"{where}.{key}")
    elif isinstance(part, list):
        assert isinstance(whole, list), where
        assert len(whole) == len(part), where
        for number, (first, second) in enumerate(zip(whole, part, strict=True)):
            _contains(first, second, f"{where}[{number}]")
    else:
        assert whole == part, where
        assert type(whole) is type(part), where
