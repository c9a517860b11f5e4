"""Shared contexts as JSON: values, and who wrote them."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

from application.log.texts import Contents
from application.log.unit_of_work import UnitOfWork
from application.ports.registry import RunQuery
from domain.run.events import RunStarted
from domain.session.events import SharedContextChanged, SharedContextInherited
from domain.session.shared_context import effective_shared_keys
from domain.session.state import Session
from domain.values.record import session_stream
from domain.values.shared_values import SharedKey

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
