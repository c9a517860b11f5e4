"""Shared contexts as JSON: values, and who wrote them."""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

from application.log.texts import Contents
from application.log.unit_of_work import UnitOfWork
from application.ports.registry import RunQuery
from domain.run.events import RunStarted
from domain.session.events import SharedContextChanged, SharedContextInherited
from domain.session.shared_context import (
    KEY_RULE,
    REFERENCE_PREFIX,
    SHARED_BYTES_MAX,
    SHARED_DEPTH_MAX,
    SHARED_KEYS_MAX,
    effective_shared_keys,
    is_key,
    shared_size,
)
from domain.session.state import Session
from domain.spawn.dependencies import DependencyRequest
from domain.spawn.request import SharedContextInput
from domain.values.json_text import compact_json
from domain.values.record import session_stream
from domain.values.shared_values import SharedKey, SharedScope
from domain.values.text import single_line
from infrastructure.inbound.http.requests.caller import invalid_value

HISTORY_MAX = 200
STARTED_MAX = 500
PAGE_EVENTS = 1_000
_TYPES = ("SharedContextChanged", "SharedContextInherited")


@dataclass(slots=True)
class Lineage:
    """How a context came to be, and who started with it; the newest, the oldest of them first."""

    history: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=HISTORY_MAX))
    started: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=STARTED_MAX))


async def lineage(work: UnitOfWork, session: Session, position: int) -> Lineage:
    """What is recorded of it up to a position."""
    told = Lineage()
    if session.shared_position is None:
        return told
    own_key = session.session_key
    after, stream = 0, session_stream(own_key)
    versions: list[int] = []
    while True:
        page = await work.log.read(
            after=after,
            limit=PAGE_EVENTS,
            types=_TYPES,
            correlations=(session.root_session_key,),
            until=position,
        )
        for one in page:
            after, event = one.envelope.position, one.event
            if one.envelope.stream == stream:
                versions.append(after)
                told.history.append(_change(after, one.envelope.recorded_at, event))
            elif isinstance(event, SharedContextInherited) and event.from_session == own_key:
                told.started.append(_start(event, versions))
        if len(page) < PAGE_EVENTS:
            break
    runs = await work.registry.runs(
        RunQuery(requester=session.session_key), at=position, limit=STARTED_MAX
    )
    labels = {run.run_id: run.label for run in runs}
    for start in told.started:
        start["label"] = labels.get(start["runId"])
    return told


def _change(position: int, recorded_at: object, event: object) -> dict[str, Any]:
    if isinstance(event, SharedContextInherited):
        keys, more = [one.key for one in event.keys], {"cause": "inherited", "by": None}
    else:
        assert isinstance(event, SharedContextChanged)
        keys, more = [one.key for one in event.changes], {"cause": event.cause, "by": event.by}
    return {
        "position": position,
        "recordedAt": recorded_at,
        **more,
        "runId": event.run_id,
        "keys": keys,
    }


def _start(event: SharedContextInherited, versions: Iterable[int]) -> dict[str, Any]:
    """The version of the requester's context is the newest one at the claim."""
    version = max((one for one in versions if one <= event.at_position), default=0)
    return {"runId": event.run_id, "position": event.at_position, "version": version}


async def run_body(contents: Contents, run_id: UUID, started: RunStarted) -> dict[str, Any]:
    """What a run was given, whole; null where it was erased."""
    keys = started.shared_context
    texts = await contents.texts([one.value for one in keys if one.value is not None])
    return {
        "runId": run_id,
        "position": started.shared_context_position,
        "values": _values(keys, texts),
        "erased": _erased_keys(keys, texts),
        "sources": {one.key: _source(one) for one in keys},
    }


def session_body(
    session: Session, texts: Mapping[UUID, str], told: Lineage, position: int
) -> dict[str, Any]:
    """What a session shares, and how it came to that."""
    keys = effective_shared_keys(session)
    return {
        **sizes_body(session, position),
        "values": _values(keys, texts),
        "erased": _erased_keys(keys, texts),
        "sources": {one.key: _source(one) for one in keys},
        "history": list(told.history),
        "startedWith": list(told.started),
    }


def sizes_body(session: Session, position: int) -> dict[str, Any]:
    """How much a session shares under which key, without what it is."""
    return {
        "sessionKey": session.session_key,
        "version": session.shared_position or 0,
        "position": position,
        "sizes": {
            one.key: one.value.bytes
            for one in effective_shared_keys(session)
            if one.value is not None
        },
    }


def _values(keys: Iterable[SharedKey], texts: Mapping[UUID, str]) -> dict[str, Any]:
    found = {one.key: texts.get(one.value.id) if one.value else None for one in keys}
    # As they were recorded: what is JSON already need not be read and written again.
    return {key: orjson.Fragment(text) if text else None for key, text in found.items()}


def _erased_keys(keys: Iterable[SharedKey], texts: Mapping[UUID, str]) -> list[str]:
    """The keys whose values are null because they were erased: before the run, or since."""
    return [one.key for one in keys if one.value is None or one.value.id not in texts]


def _source(key: SharedKey) -> dict[str, Any]:
    return {
        "kind": key.kind,
        "sessionKey": key.session_key,
        "position": key.position,
        "runId": key.run_id,
        "by": key.by,
    }


# What a request says of a shared context: its keys, its values, and how much that may be.


POINTER = "/sharedContext"
REFERENCE = "reference"
KEY_SHOWN_CHARACTERS_MAX = 128


def references_of(values: Mapping[str, Any] | None) -> tuple[DependencyRequest, ...]:
    """The runs whose results are to arrive, by the names that they are to arrive under. 422 for
    what refers to none."""
    names = [key for key in values or () if key.startswith(REFERENCE_PREFIX)]
    return tuple(_reference(key, values or {}) for key in names)


def parse_shared_values(
    values: Mapping[str, Any] | None, scope: SharedScope
) -> SharedContextInput | None:
    """What a spawn shares but for the results of others; None when it shares nothing. 422 for what
    cannot be shared."""
    plain = {
        key: value for key, value in (values or {}).items() if not key.startswith(REFERENCE_PREFIX)
    }
    return SharedContextInput(values=literals(plain, POINTER), scope=scope) if plain else None


def literals(values: Mapping[str, Any], at: str) -> tuple[tuple[str, str], ...]:
    """Keys with their values as compact JSON. 422 for what cannot be shared."""
    if len(values) > SHARED_KEYS_MAX:
        raise invalid_value(at or "/", f"has {len(values)} keys and may have {SHARED_KEYS_MAX}")
    for key, value in values.items():
        if not is_key(key):
            raise invalid_value(pointer_of(key, at), KEY_RULE)
        _require_plain_value(value, at or "/")
    texts = tuple((key, compact_json(value)) for key, value in values.items())
    size = shared_size((key, len(text.encode())) for key, text in texts).bytes
    if size > SHARED_BYTES_MAX:
        raise invalid_value(
            at or "/",
            f"has {size} bytes of JSON and may have {SHARED_BYTES_MAX}; share less, or attach a"
            " file",
        )
    return texts


def pointer_of(key: str, at: str) -> str:
    """The JSON pointer of a key, cut where it is longer than any key may be."""
    shown = single_line(key, characters_max=KEY_SHOWN_CHARACTERS_MAX)
    return f"{at}/{shown.replace('~', '~0').replace('/', '~1')}"


def _reference(key: str, values: Mapping[str, Any]) -> DependencyRequest:
    pointer, name = pointer_of(key, POINTER), key.removeprefix(REFERENCE_PREFIX)
    if not name:
        raise invalid_value(pointer, "names no run")
    if values[key] != REFERENCE:
        raise invalid_value(pointer, f'must be "{REFERENCE}"')
    if name in values:
        shown = single_line(name, characters_max=KEY_SHOWN_CHARACTERS_MAX)
        raise invalid_value(pointer, f"stands beside {shown}; one of them")
    if not is_key(name):
        raise invalid_value(pointer, KEY_RULE)
    return DependencyRequest(name, "reference")


def _require_plain_value(value: object, at: str) -> None:
    """The whole is the first level, objects and lists in it are the second."""
    level = [value]
    for _ in range(SHARED_DEPTH_MAX):
        if any(isinstance(one, float) and not math.isfinite(one) for one in level):
            raise invalid_value(at, "has a number that is too large")
        nested = [one for one in level if isinstance(one, dict | list)]
        if not nested:
            return
        level = [inner for outer in nested for inner in _nested_values(outer)]
    raise invalid_value(at, f"is nested deeper than {SHARED_DEPTH_MAX} levels")


def _nested_values(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
