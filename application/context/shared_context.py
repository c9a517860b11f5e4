"""The context that a spawn shares with its requester's family, stored as texts of the requester's
session."""

from collections.abc import Mapping
from dataclasses import dataclass

from application.log.texts import ContentsErased, SessionTexts, TextStore
from application.log.unit_of_work import UnitOfWork
from application.ports.runtimes import LaunchError
from domain.delivery.silence import is_silent, without_silent_tokens
from domain.prompt.shared_context import SharedValue
from domain.prompt.untrusted import freeze_result
from domain.run.events import SpawnRequested
from domain.run.state import Run
from domain.session.shared_context import (
    effective_shared_keys,
    order_by_first_write,
    start_refusal_text,
    starting_shared_keys,
)
from domain.spawn.cascade import CannotShare
from domain.values import rules
from domain.values.json_text import compact_json, read_json
from domain.values.shared_values import SharedChange, SharedKey

_ERASED = (
    "the shared context of this session was erased, so it cannot be extended; use"
    ' sharedContextScope "child"'
)


@dataclass(frozen=True, slots=True)
class SharedSpawn:
    """Keys to add to the family's context, and their texts."""

    changes: tuple[SharedChange, ...]
    texts: SessionTexts


async def read_shared_spawn(work: UnitOfWork, run: Run) -> SharedSpawn | None:
    """Return the values that the spawn shares with its family; None if it shares nothing with it.

    Raises:
        CannotShare: If the requester's texts were erased.
    """
    if not run.shares:
        return None
    request = (await work.event(SpawnRequested, run.run_id)).shared
    if request is None or request.scope == "child" or not request.keys:
        return None
    requester = await work.registry.session(run.requester.session_key)
    assert requester is not None
    try:
        texts = await work.session_texts(requester)
    except ContentsErased:
        raise CannotShare(rules.SHARED_CONTEXT.refusal(_ERASED)) from None
    values = [change.value for change in request.keys if change.value is not None]
    found = await work.contents.texts(values)
    changes = tuple(
        SharedChange(key=change.key, value=texts.text_store.store("shared", found[change.value.id]))
        for change in request.keys
        if change.value is not None and change.value.id in found
    )
    return SharedSpawn(changes, texts)


# The family's context that a run starts with: as of its claim.


CLAIMS_MAX = 10_000
NO_RESULT = "null"


@dataclass(frozen=True, slots=True)
class SharedStart:
    """The shared context that a run starts with.

    Attributes:
        position: Where the run was claimed; None if nothing is shared.
        keys: Keys, whose values are texts of the run's own session.
        values: The values as JSON.
        inherits: Whether it replaces the context that the session was given before.
    """

    position: int | None = None
    keys: tuple[SharedKey, ...] = ()
    values: tuple[SharedValue, ...] = ()
    inherits: bool = False

    def whole(self) -> Mapping[str, object]:
        """Return all values by key; None for an erased value."""
        return {
            value.key: read_json(value.text) if value.text is not None else None
            for value in self.values
        }


NOTHING_SHARED = SharedStart()


async def read_shared_start(
    work: UnitOfWork, run: Run, opened: Run, text_store: TextStore
) -> SharedStart:
    """Return the shared context of a claimed run. `opened` is the first run of its session.

    Raises:
        LaunchError: If it exceeds the limits of a child.
    """
    registry = work.registry
    requester = await registry.session(run.requester.session_key)
    assert run.child_session_key is not None
    own = await registry.session(run.child_session_key) if run.continues is not None else None
    was_given = own is not None and own.inherited is not None
    is_shared = requester is not None and requester.shared_position is not None
    if not (is_shared or opened.shares or was_given):
        return NOTHING_SHARED
    position = await _claim_position(work, run)
    then = await registry.session(run.requester.session_key, at=position)
    literals, references = await _spawn_keys(work, opened)
    before = (own.inherited if own is not None else None) or ()
    keys = order_by_first_write(
        starting_shared_keys(effective_shared_keys(then), literals, references), before
    )
    unfit = start_refusal_text(keys)
    if unfit is not None:
        raise LaunchError("shared_context", unfit)
    texts = await work.contents.texts([key.value for key in keys if key.value is not None])
    shared: list[SharedKey] = []
    values: list[SharedValue] = []
    for key in keys:
        text = texts.get(key.value.id) if key.value is not None else None
        if key in references:
            text = _result_json(key, text)
        value = text_store.store("shared", text) if text is not None else None
        shared.append(key.changed({"value": value}))
        values.append(SharedValue(key.key, key.kind, text))
    return SharedStart(position, tuple(shared), tuple(values), bool(shared) or was_given)


async def _claim_position(work: UnitOfWork, run: Run) -> int:
    """Return the position of the run's last claim."""
    claims = await work.log.read(run_id=run.run_id, types=("RunClaimed",), limit=CLAIMS_MAX)
    return claims[-1].envelope.position


async def _spawn_keys(
    work: UnitOfWork, opened: Run
) -> tuple[tuple[SharedKey, ...], tuple[SharedKey, ...]]:
    """Return the keys that came with the session's spawn: literal values, and referenced results.

    The value of a reference is None if its run had no result.
    """
    if not opened.shares:
        return (), ()
    request = (await work.event(SpawnRequested, opened.run_id)).shared
    # A requested run was created by its request.
    by, position = opened.requester.session_key, opened.created_position
    if request is None:
        return (), ()
    literals = tuple(
        SharedKey(
            key=change.key,
            value=change.value,
            session_key=by,
            position=position,
            run_id=opened.run_id,
        )
        for change in request.keys
    )
    references = [
        SharedKey(
            key=reference.key,
            value=(await work.run(reference.run_id)).result,
            kind="reference",
            session_key=by,
            position=position,
            run_id=reference.run_id,
        )
        for reference in request.references
    ]
    return literals, tuple(references)


def _result_json(reference: SharedKey, text: str | None) -> str | None:
    """Return a result as JSON: null if the run had none, and None if it was erased."""
    if text is None:
        return NO_RESULT if reference.value is None else None
    result = "" if is_silent(text) else freeze_result(without_silent_tokens(text))
    return compact_json(result) if result else NO_RESULT
