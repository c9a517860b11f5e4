"""Views of shared contexts: values, their writers, and the runs that started with them."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import orjson

from application.log.texts import Contents
from application.log.unit_of_work import UnitOfWork
from application.ports.registry import RunQuery
from application.queries.views.view import RecordedJson, View
from domain.run.events import RunStarted
from domain.session.events import SharedContextChanged, SharedContextInherited
from domain.session.shared_context import effective_shared_keys
from domain.session.state import Session
from domain.values.record import session_stream
from domain.values.shared_values import SharedKey, SharedKind

HISTORY_MAX = 200
STARTED_MAX = 500
PAGE_EVENTS = 1_000
_TYPES = ("SharedContextChanged", "SharedContextInherited")


class SharedSourceView(View):
    """The writer of a shared key: the session in which it was first written, and the position of
    the write. `runId` is the spawn that wrote it, or the run whose result it is; `by` is the actor
    that patched it."""

    kind: SharedKind
    session_key: str
    position: int | None
    run_id: UUID | None
    by: str | None


class RunSharedContextView(View):
    """The shared context that a run received when it was claimed at `position`. `erased` lists the
    keys whose values are null because they were erased."""

    run_id: UUID
    position: int | None
    values: dict[str, RecordedJson]
    erased: list[str]
    sources: dict[str, SharedSourceView]


class SharedChangeView(View):
    """One change of a shared context."""

    position: int
    recorded_at: datetime
    cause: Literal["spawn", "patch", "inherited"]
    by: str | None
    run_id: UUID | None
    keys: list[str]


class SharedStartView(View):
    """A child that started with a version of a shared context."""

    run_id: UUID
    position: int
    version: int
    label: str | None


class SharedSizesView(View):
    """The size in bytes of each key that a session shares, without its value."""

    session_key: str
    version: int
    position: int
    sizes: dict[str, int]


class SharedContextView(SharedSizesView):
    """The shared context of a session, and its history."""

    values: dict[str, RecordedJson]
    erased: list[str]
    sources: dict[str, SharedSourceView]
    history: list[SharedChangeView]
    started_with: list[SharedStartView]


def shared_context_etag(view: SharedSizesView) -> str:
    """Return the entity tag of a shared context: its version, which `If-Match` names."""
    return f'"{view.version}"'


async def run_shared_context_view(
    contents: Contents, run_id: UUID, started: RunStarted
) -> RunSharedContextView:
    """Return the whole shared context that a run received; erased values are null."""
    keys = started.shared_context
    texts = await contents.texts([key.value for key in keys if key.value is not None])
    return RunSharedContextView(
        run_id=run_id,
        position=started.shared_context_position,
        **_values(keys, texts),
    )


async def shared_context_view(
    work: UnitOfWork, session: Session, position: int
) -> SharedContextView:
    """Return the shared context of a session at a position."""
    keys = effective_shared_keys(session)
    texts = await work.contents.texts([key.value for key in keys if key.value is not None])
    history, started_with = await _lineage(work, session, position)
    return SharedContextView.from_source(
        shared_sizes_view(session, position),
        **_values(keys, texts),
        history=history,
        started_with=started_with,
    )


def shared_sizes_view(session: Session, position: int) -> SharedSizesView:
    """Return the sizes of the values that a session shares at a position."""
    keys = effective_shared_keys(session)
    return SharedSizesView.from_source(
        session,
        version=session.shared_position or 0,
        position=position,
        sizes={key.key: key.value.bytes for key in keys if key.value is not None},
    )


@dataclass(slots=True)
class _Lineage:
    """The newest recorded changes and starts, oldest first."""

    history: deque[SharedChangeView] = field(default_factory=lambda: deque(maxlen=HISTORY_MAX))
    started: deque[tuple[SharedContextInherited, int]] = field(
        default_factory=lambda: deque(maxlen=STARTED_MAX)
    )


async def _lineage(
    work: UnitOfWork, session: Session, position: int
) -> tuple[list[SharedChangeView], list[SharedStartView]]:
    """Return the changes of a shared context up to a position, and the runs that started with
    it."""
    lineage = _Lineage()
    if session.shared_position is None:
        return [], []
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
        for recorded in page:
            after, event = recorded.envelope.position, recorded.event
            if recorded.envelope.stream == stream:
                versions.append(after)
                lineage.history.append(_change(after, recorded.envelope.recorded_at, event))
            elif isinstance(event, SharedContextInherited) and event.from_session == own_key:
                # The child inherited the newest version as of its claim.
                version = max(
                    (position for position in versions if position <= event.at_position), default=0
                )
                lineage.started.append((event, version))
        if len(page) < PAGE_EVENTS:
            break
    runs = await work.registry.runs(
        RunQuery.where(requester=session.session_key), at=position, limit=STARTED_MAX
    )
    labels = {run.run_id: run.label for run in runs}
    started = [
        SharedStartView.from_source(
            event, position=event.at_position, version=version, label=labels.get(event.run_id)
        )
        for event, version in lineage.started
    ]
    return list(lineage.history), started


def _change(position: int, recorded_at: datetime, event: object) -> SharedChangeView:
    cause: Literal["spawn", "patch", "inherited"]
    if isinstance(event, SharedContextInherited):
        keys, cause, by = [key.key for key in event.keys], "inherited", None
    else:
        assert isinstance(event, SharedContextChanged)
        keys, cause, by = [change.key for change in event.changes], event.cause, event.by
    return SharedChangeView.from_source(
        event, position=position, recorded_at=recorded_at, cause=cause, by=by, keys=keys
    )


def _values(keys: Sequence[SharedKey], texts: Mapping[UUID, str]) -> dict[str, Any]:
    """Return the value, erasure and source of each shared key."""
    found = {key.key: texts.get(key.value.id) if key.value else None for key in keys}
    return {
        # The recorded text is JSON already, so it is passed on without parsing.
        "values": {key: orjson.Fragment(text) if text else None for key, text in found.items()},
        "erased": [key.key for key in keys if key.value is None or key.value.id not in texts],
        "sources": {key.key: SharedSourceView.from_source(key) for key in keys},
    }
