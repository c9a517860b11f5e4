"""What is shared in a family, as events say it: keys, and references to their values as JSON."""

from typing import Literal
from uuid import UUID

from domain.values.record import ContentRef, Fact

SharedKind = Literal["literal", "reference"]
SharedScope = Literal["family", "child"]


class SharedKey(Fact):
    """A key of a family's context, and who wrote it.

    `value` refers to its JSON text; None when the key was taken away, which hides what a session
    started with. `session_key` is where it was written first and `position` since when it is so.
    `run_id` is the spawn that brought it, or the run whose result a reference stands for; `by` is
    who patched it.
    """

    key: str
    value: ContentRef | None = None
    kind: SharedKind = "literal"
    session_key: str
    position: int | None = None
    run_id: UUID | None = None
    by: str | None = None


class SharedChange(Fact):
    """A key that is written; without a value it is taken away."""

    key: str
    value: ContentRef | None = None


class ReferenceRequest(Fact):
    """The result of this run is to arrive under this key."""

    key: str
    run_id: UUID


class SharedContextRequest(Fact):
    """What a spawn shares: keys with their values, for the child alone or for all of its family."""

    keys: tuple[SharedChange, ...] = ()
    scope: SharedScope = "family"
    references: tuple[ReferenceRequest, ...] = ()
