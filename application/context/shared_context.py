"""What a spawn shares with its requester's family, kept as texts of the requester's session."""

from collections.abc import Mapping
from dataclasses import dataclass

from application.log.texts import ContentsErased, SessionTexts, TextStore
from application.log.unit_of_work import UnitOfWork
from application.ports.runtimes import CannotLaunch
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
    "what this session shares was erased, so nothing can be added to it; use"
    ' sharedContextScope "child"'
)


@dataclass(frozen=True, slots=True)
class SharedSpawn:
    """The keys that come to the family's context, and the texts that they refer to."""

    changes: tuple[SharedChange, ...]
    texts: SessionTexts


async def read_shared_spawn(work: UnitOfWork, run: Run) -> SharedSpawn | None:
    """What the spawn shares with its family; None when it shares nothing with it.

    Raises `CannotShare` when the requester's texts were erased.
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
    values = [one.value for one in request.keys if one.value is not None]
    found = await work.contents.texts(values)
    changes = tuple(
        SharedChange(key=one.key, value=texts.text_store.store("shared", found[one.value.id]))
        for one in request.keys
        if one.value is not None and one.value.id in found
    )
    return SharedSpawn(changes, texts)


# What of its family's context a run is given: as it was where the run was claimed.


CLAIMS_MAX = 10_000
NO_RESULT = "null"


@dataclass(frozen=True, slots=True)
class SharedStart:
    """The keys with values that are texts of the run's own session, and these values as JSON.

    `position` is where the run was claimed; None when there was nothing to look at. `inherits` is
    whether it takes the place of what the session was given before.
    """

    position: int | None = None
    keys: tuple[SharedKey, ...] = ()
    values: tuple[SharedValue, ...] = ()
    inherits: bool = False

    def whole(self) -> Mapping[str, object]:
        """All of it, for a runtime that takes it as it is; None for what was erased."""
        return {
            one.key: read_json(one.text) if one.text is not None else None for one in self.values
        }


NOTHING_SHARED = SharedStart()


async def read_shared_start(
    work: UnitOfWork, run: Run, opened: Run, text_store: TextStore
) -> SharedStart:
    """The start of a claimed run; `opened` is the run that its session began with.

    Raises `CannotLaunch` when it would be more than a child may be given.
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
        raise CannotLaunch("shared_context", unfit)
    texts = await work.contents.texts([one.value for one in keys if one.value is not None])
    shared: list[SharedKey] = []
    values: list[SharedValue] = []
    for one in keys:
        text = texts.get(one.value.id) if one.value is not None else None
        if one in references:
            text = _result_json(one, text)
        value = text_store.store("shared", text) if text is not None else None
        shared.append(one.changed({"value": value}))
        values.append(SharedValue(one.key, one.kind, text))
    return SharedStart(position, tuple(shared), tuple(values), bool(shared) or was_given)


async def _claim_position(work: UnitOfWork, run: Run) -> int:
    """Where the present holder took the run."""
    claims = await work.log.read(run_id=run.run_id, types=("RunClaimed",), limit=CLAIMS_MAX)
    return claims[-1].envelope.position


async def _spawn_keys(
    work: UnitOfWork, opened: Run
) -> tuple[tuple[SharedKey, ...], tuple[SharedKey, ...]]:
    """The keys that came with the spawn of the session itself, since it was asked for; and those of
    the results that it refers to, whose values are the results as they are, none when a run had
    none."""
    if not opened.shares:
        return (), ()
    request = (await work.event(SpawnRequested, opened.run_id)).shared
    # A run that was asked for begins with its request.
    by, position = opened.requester.session_key, opened.created_position
    if request is None:
        return (), ()
    literals = tuple(
        SharedKey(
            key=one.key, value=one.value, session_key=by, position=position, run_id=opened.run_id
        )
        for one in request.keys
    )
    references = [
        SharedKey(
            key=one.key,
            value=(await work.run(one.run_id)).result,
            kind="reference",
            session_key=by,
            position=position,
            run_id=one.run_id,
        )
        for one in request.references
    ]
    return literals, tuple(references)


def _result_json(reference: SharedKey, text: str | None) -> str | None:
    """The JSON of a result; null of a run that had none, and None of one that was erased."""
    if text is None:
        return NO_RESULT if reference.value is None else None
    result = "" if is_silent(text) else freeze_result(without_silent_tokens(text))
    return compact_json(result) if result else NO_RESULT
