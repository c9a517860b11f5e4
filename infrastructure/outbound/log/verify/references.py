"""The texts and transcripts that events refer to."""

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
    """What the events of a page refer to, in order: each text once, and the sealed transcripts."""

    def __init__(self) -> None:
        self.texts: list[ContentMention] = []
        self.transcripts: list[RecordedTranscript] = []
        self._known: set[tuple[int, str, int]] = set()

    def add(self, stream: str, event: Event, position: int, owner: UUID | None) -> None:
        """Add what an event refers to. `owner` is the session of the run, the session itself, or
        the log; None if the event was not folded.

        Raises:
            ValueError: The end of a run is in another stream, which only an unfolded event can be.
        """
        # Most events refer to nothing.
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
    """A field to look into, and how."""

    name: str
    look: Finder


def find_references(event: Event) -> Iterator[FoundReference]:
    """Every reference with the name of the place where it stands: `task`, `receipts.output`."""
    for name, look in _steps(type(event)):
        value = getattr(event, name)
        if value is not None:
            yield from look(value, name)


@cache
def _steps(fact: type[Fact]) -> tuple[_ReferenceField, ...]:
    """The fields that may hold references; most types of events have none."""
    looks = ((name, _finder_for(hint)) for name, hint in get_type_hints(fact).items())
    return tuple(_ReferenceField(name, look) for name, look in looks if look is not None)


def _finder_for(annotation: Any) -> Finder | None:
    """How to look into a value of this type; None when no reference can be in it."""
    if annotation is ContentRef:
        return _find_itself
    if isinstance(annotation, type) and issubclass(annotation, Fact):
        steps = _steps(annotation)
        return _finder_in_fact(steps) if steps else None
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        looks = [look for look in map(_finder_for, arguments) if look is not None]
        # A field that may be this or that kind of holder would need to be told apart by value.
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
