"""Shared context in events: keys, with references to their JSON values."""

from typing import Literal
from uuid import UUID

from domain.values.record import ContentRef, Fact

SharedKind = Literal["literal", "reference"]
SharedScope = Literal["family", "child"]


class SharedKey(Fact):
    """A key of a family's shared context, with its origin.

    Attributes:
        key: The key.
        value: Reference to the JSON text; None if the key was removed, which hides an inherited
            value.
        kind: `literal`, or `reference` for the result of a run.
        session_key: Session in which the key was first written.
        position: Log position at which this value was written.
        run_id: Spawn that introduced the key, or the run whose result a reference resolves to.
        by: Actor that patched the key.
    """

    key: str
    value: ContentRef | None = None
    kind: SharedKind = "literal"
    session_key: str
    position: int | None = None
    run_id: UUID | None = None
    by: str | None = None


class SharedChange(Fact):
    """A write to a shared key. Without a value, the key is removed."""

    key: str
    value: ContentRef | None = None


class ReferenceRequest(Fact):
    """A request to put the result of a run under this key."""

    key: str
    run_id: UUID


class SharedContextRequest(Fact):
    """The keys and values that a spawn shares with its child only, or with the whole family."""

    keys: tuple[SharedChange, ...] = ()
    scope: SharedScope = "family"
    references: tuple[ReferenceRequest, ...] = ()
