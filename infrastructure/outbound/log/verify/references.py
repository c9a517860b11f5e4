"""Texts and transcripts that events refer to."""

from collections.abc import Callable, Iterator
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from domain.run.events import RunEnded
from domain.values.record import RUN_PREFIX, ContentRef, Event, Fact
from infrastructure.outbound.log.verify.contents import ContentMention
from infrastructure.outbound.log.verify.transcripts import RecordedTranscript


class References:
    """References of the events of a page, in order: each text once, and the sealed transcripts."""

    def __init__(self) -> None:
        self.texts: list[ContentMention] = []
        self.transcripts: list[RecordedTranscript] = []
        self._known: set[tuple[int, str, int]] = set()

    def add(self, stream: str, event: Event, position: int, owner: UUID | None) -> None:
        """Add the references of an event.

        Args:
            stream: The stream of the event.
            event: The decoded event.
            position: Its position.
            owner: The session of the run, the session itself, or the log; None if the event was not
                folded.

        Raises:
            ValueError: A run's end is in another stream, which is possible only for an unfolded
                event.
        """
        # Most events have no references.
        if _steps(type(event)):
            for place, ref in find_references(event):
                identity = (ref.id.int, ref.hmac, ref.bytes)
                if identity not in self._known:
                    self._known.add(identity)
                    self.texts.append(ContentMention(position, stream, place, owner, ref))
        if type(event) is RunEnded and event.transcript is not None:
            run_id = UUID(stream.removeprefix(RUN_PREFIX))
            self.transcripts.append(RecordedTranscript(position, run_id, owner, event.transcript))


FoundReference = tuple[str, ContentRef]
Finder = Callable[[Any, str], Iterator[FoundReference]]


class _ReferenceField(NamedTuple):
    """A field that may contain references, and its finder."""

    name: str
    look: Finder


def find_references(event: Event) -> Iterator[FoundReference]:
    """Yield every reference of an event with the path of its field: `task`, `receipts.output`."""
    for name, look in _steps(type(event)):
        value = getattr(event, name)
        if value is not None:
            yield from look(value, name)


@cache
def _steps(fact: type[Fact]) -> tuple[_ReferenceField, ...]:
    """Return the fields that may contain references; most types of events have none."""
    looks = ((name, _finder_for(hint)) for name, hint in get_type_hints(fact).items())
    return tuple(_ReferenceField(name, look) for name, look in looks if look is not None)


def _finder_for(annotation: Any) -> Finder | None:
    """Return the finder for values of a type, or None if they cannot contain a reference."""
    if annotation is ContentRef:
        return _find_itself
    if isinstance(annotation, type) and issubclass(annotation, Fact):
        steps = _steps(annotation)
        return _finder_in_fact(steps) if steps else None
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        looks = [look for look in map(_finder_for, arguments) if look is not None]
        # Several types with references in one field would have to be distinguished by value.
        assert len(looks) <= 1, f"references in {annotation} cannot be found"
        return looks[0] if looks else None
    if origin is tuple:
        look = _finder_for(arguments[0])
        return _finder_in_items(look) if look is not None else None
    assert not any(map(_finder_for, arguments)), f"references in {annotation} cannot be found"
    return None


def _find_itself(value: Any, name: str) -> Iterator[FoundReference]:
    yield name, value


def _finder_in_fact(steps: tuple[_ReferenceField, ...]) -> Finder:
    def look(value: Any, name: str) -> Iterator[FoundReference]:
        for field, into in steps:
            inner = getattr(value, field)
            if inner is not None:
                yield from into(inner, f"{name}.{field}")

    return look


def _finder_in_items(into: Finder) -> Finder:
    def look(value: Any, name: str) -> Iterator[FoundReference]:
        for item in value:
            yield from into(item, name)

    return look
