"""What a spawn shares with its requester's family, kept as texts of the requester's session."""

from dataclasses import dataclass

from application.log.session_texts import SessionTexts, open_session_texts
from application.log.unit_of_work import ContentsErased, UnitOfWork
from domain.run.events import SpawnRequested
from domain.run.state import Run
from domain.spawn.cascade import CannotShare
from domain.values.refusals import Refusal
from domain.values.shared_values import SharedChange

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
    recorded = await work.log.first("SpawnRequested", run.run_id)
    assert recorded is not None
    assert isinstance(recorded.event, SpawnRequested)
    asked = recorded.event.shared
    if asked is None or asked.scope == "child" or not asked.keys:
        return None
    requester = await work.registry.session(run.requester.session_key)
    assert requester is not None
    try:
        texts = await open_session_texts(work, requester, requester.session_id)
    except ContentsErased:
        raise CannotShare(Refusal("shared_context", "error", _ERASED)) from None
    values = [one.value for one in asked.keys if one.value is not None]
    found = await work.contents.texts(values)
    changes = tuple(
        SharedChange(key=one.key, value=texts.keeper.store("shared", found[one.value.id]))
        for one in asked.keys
        if one.value is not None and one.value.id in found
    )
    return SharedSpawn(changes, texts)
