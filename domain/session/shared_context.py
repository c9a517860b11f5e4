"""Shared context of a family: merging, the context that a child starts with, and size limits.

Each session has its own context: the keys that its run inherited, overlaid by keys that its spawns
and its owner wrote since. The last write of a key wins as a whole; values are not merged. A child
never changes its parent's context.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from domain.session.state import Session
from domain.values import rules
from domain.values.json_text import compact_json
from domain.values.refusals import Refusal
from domain.values.shared_values import SharedKey, SharedScope

SHARED_BYTES_MAX = 65_536
SHARED_KEYS_MAX = 64
SHARED_DEPTH_MAX = 32
REFERENCES_MAX = 20
KEY_CHARACTERS_MAX = 128
REFERENCE_PREFIX = "$"
_TAKE_AWAY = "Remove keys with PATCH /v1/sessions/{key}/shared-context, or"
_ADVICE: dict[SharedScope | None, str] = {
    "family": f"{_TAKE_AWAY} share less.",
    "child": f"{_TAKE_AWAY} share less with this child.",
    None: "Remove keys with null in the same patch, or share less.",
}
KEY_RULE = (
    f"a key must have 1 to {KEY_CHARACTERS_MAX} printable characters and must not begin with $"
)


@dataclass(frozen=True, slots=True)
class SharedSize:
    """Size of the literal keys of a context: bytes as one JSON object, and number of keys."""

    bytes: int
    keys: int


def effective_shared_keys(session: Session | None) -> tuple[SharedKey, ...]:
    """Return the keys that a session shares now, in the order of their first write."""
    if session is None:
        return ()
    keys = {shared.key: shared for shared in (*(session.inherited or ()), *(session.shared or ()))}
    return tuple(shared for shared in keys.values() if shared.value is not None)


def starting_shared_keys(
    family: Sequence[SharedKey],
    literals: Sequence[SharedKey] = (),
    references: Sequence[SharedKey] = (),
) -> tuple[SharedKey, ...]:
    """Return the shared context that a child starts with.

    The keys of its own spawn overlay the family's context; an existing key keeps its place. If a
    key came to the family from this same spawn, the family's entry is kept.

    Args:
        family: The context of the requester's family.
        literals: Literal keys of the child's spawn.
        references: Keys of the spawn whose values are results of other runs.
    """
    keys = {shared.key: shared for shared in family}
    for shared in (*literals, *references):
        before = keys.get(shared.key)
        if before is None or before.run_id != shared.run_id or before.kind != shared.kind:
            keys[shared.key] = shared
    return tuple(keys.values())


def order_by_first_write(
    keys: Sequence[SharedKey], before: Iterable[SharedKey]
) -> tuple[SharedKey, ...]:
    """Return the keys sorted so that those in `before` keep their earlier order, new ones last."""
    places = {shared.key: place for place, shared in enumerate(before)}
    return tuple(sorted(keys, key=lambda shared: places.get(shared.key, len(places))))


def is_key(key: str) -> bool:
    """Return True if this is a valid key of a shared context."""
    return (
        0 < len(key) <= KEY_CHARACTERS_MAX
        and key.isprintable()
        and key == key.strip()
        and not key.startswith(REFERENCE_PREFIX)
    )


def shared_size(keys: Iterable[tuple[str, int]]) -> SharedSize:
    """Return the size of a context, given each key and the bytes of its value as compact JSON."""
    sizes = [len(compact_json(key).encode()) + len(":") + value for key, value in keys]
    return SharedSize(len("{}") + sum(sizes) + max(0, len(sizes) - 1), len(sizes))


def literals_of(keys: Iterable[SharedKey]) -> dict[str, int]:
    """Return the literal keys with the sizes of their values in bytes.

    References are excluded, because they have a limit of their own.
    """
    return {
        shared.key: shared.value.bytes
        for shared in keys
        if shared.kind == "literal" and shared.value is not None
    }


def shared_size_with(family: Iterable[SharedKey], added: Iterable[tuple[str, int]]) -> SharedSize:
    """Return the size of a family's context with these keys added."""
    return shared_size({**literals_of(family), **dict(added)}.items())


def start_refusal_text(keys: Sequence[SharedKey]) -> str | None:
    """Return the reason why a child cannot start with these keys, or None if it can.

    The family may have shared more since the child was admitted.
    """
    size, references = (
        shared_size_with(keys, ()),
        sum(shared.kind == "reference" for shared in keys),
    )
    for current, limit, unit in (
        (size.bytes, SHARED_BYTES_MAX, "bytes"),
        (size.keys, SHARED_KEYS_MAX, "keys"),
        (references, REFERENCES_MAX, "references"),
    ):
        if current > limit:
            return (
                "together with its requester's current keys, the shared context of this child"
                f" would have {current} {unit}, more than the {limit} allowed. {_TAKE_AWAY}"
                " share less with it, and spawn it again."
            )
    return None


def references_refusal(family: Iterable[SharedKey], added: Iterable[str]) -> Refusal | None:
    """Return the refusal of a spawn if its child would have too many references, or None."""
    taken = {shared.key for shared in family if shared.kind == "reference"}
    would = taken.union(added)
    if len(would) <= REFERENCES_MAX:
        return None
    text = (
        f"The shared context of this child would have {len(would)} references ({len(taken)}"
        f" inherited), more than the {REFERENCES_MAX} allowed. Refer to fewer runs."
    )
    return rules.SHARED_CONTEXT.refusal(text, current=len(would), limit=REFERENCES_MAX)


def limit_refusal(
    family: Sequence[SharedKey], added: Sequence[tuple[str, int]], scope: SharedScope | None
) -> Refusal | None:
    """Return the refusal if the family would share too much, or None if the added keys fit.

    Args:
        family: The context of the family.
        added: Each added key with the bytes of its value.
        scope: The scope of a spawn's keys; None for a patch. It only selects the advice in the
            text.
    """
    taken, would = shared_size(literals_of(family).items()), shared_size_with(family, added)
    advice = _ADVICE[scope]
    for current, limit, unit, before in (
        (would.bytes, SHARED_BYTES_MAX, "bytes", taken.bytes),
        (would.keys, SHARED_KEYS_MAX, "keys", taken.keys),
    ):
        if current > limit:
            text = (
                f"The shared context of this session would have {current} {unit}, more than the"
                f" {limit} allowed ({before} are in use). {advice}"
            )
            return rules.SHARED_CONTEXT.refusal(text, current=current, limit=limit)
    return None
