"""What a family shares: how it adds up, what a child starts with, and how much it may be.

Every session has its own: what its run started with, and above that what its spawns and its owner
wrote since. The last word about a key counts, whole: values are not merged. Nothing that a child
does changes what its parent has.
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
_TAKE_AWAY = "Take keys away with PATCH /v1/sessions/{key}/shared-context, or"
_ADVICE: dict[SharedScope | None, str] = {
    "family": f"{_TAKE_AWAY} share less.",
    "child": f"{_TAKE_AWAY} share less with this child.",
    None: "Take keys away with null in the same patch, or share less.",
}
KEY_RULE = f"a key has 1 to {KEY_CHARACTERS_MAX} printable characters and no $ in front"


@dataclass(frozen=True, slots=True)
class SharedSize:
    """How much the literal keys of a context are: as one JSON object, and how many."""

    bytes: int
    keys: int


def effective_shared_keys(session: Session | None) -> tuple[SharedKey, ...]:
    """What a session shares now, in the order in which its keys were written first."""
    if session is None:
        return ()
    keys = {one.key: one for one in (*(session.inherited or ()), *(session.shared or ()))}
    return tuple(one for one in keys.values() if one.value is not None)


def starting_shared_keys(
    family: Sequence[SharedKey],
    literals: Sequence[SharedKey] = (),
    references: Sequence[SharedKey] = (),
) -> tuple[SharedKey, ...]:
    """What a child starts with: its family's context with what its own spawn brings on top. A key
    that the family has keeps its place; one that this spawn brought the family is told as that."""
    keys = {one.key: one for one in family}
    for one in (*literals, *references):
        before = keys.get(one.key)
        if before is None or before.run_id != one.run_id or before.kind != one.kind:
            keys[one.key] = one
    return tuple(keys.values())


def order_by_first_write(
    keys: Sequence[SharedKey], before: Iterable[SharedKey]
) -> tuple[SharedKey, ...]:
    """The same keys, those that a session was given before where they stood then."""
    places = {one.key: place for place, one in enumerate(before)}
    return tuple(sorted(keys, key=lambda one: places.get(one.key, len(places))))


def is_key(key: str) -> bool:
    """Whether this may be a key of a shared context."""
    return (
        0 < len(key) <= KEY_CHARACTERS_MAX
        and key.isprintable()
        and key == key.strip()
        and not key.startswith(REFERENCE_PREFIX)
    )


def shared_size(keys: Iterable[tuple[str, int]]) -> SharedSize:
    """The size of these keys and the bytes of their values as compact JSON."""
    sizes = [len(compact_json(key).encode()) + len(":") + value for key, value in keys]
    return SharedSize(len("{}") + sum(sizes) + max(0, len(sizes) - 1), len(sizes))


def literals_of(keys: Iterable[SharedKey]) -> dict[str, int]:
    """The literal keys with the bytes of their values; references are counted by themselves."""
    return {
        one.key: one.value.bytes for one in keys if one.kind == "literal" and one.value is not None
    }


def shared_size_with(family: Iterable[SharedKey], added: Iterable[tuple[str, int]]) -> SharedSize:
    """What a context is with these keys on top."""
    return shared_size({**literals_of(family), **dict(added)}.items())


def start_refusal_text(keys: Sequence[SharedKey]) -> str | None:
    """Why a child cannot start with these keys: its family may have come to share more since it was
    admitted. None when it can."""
    size, references = shared_size_with(keys, ()), sum(one.kind == "reference" for one in keys)
    for current, limit, unit in (
        (size.bytes, SHARED_BYTES_MAX, "bytes"),
        (size.keys, SHARED_KEYS_MAX, "keys"),
        (references, REFERENCES_MAX, "references"),
    ):
        if current > limit:
            return (
                "with what its requester shares by now, the shared context of this child would"
                f" have {current} {unit} and may have {limit}. {_TAKE_AWAY} share less with it, and"
                " spawn it again."
            )
    return None


def references_refusal(family: Iterable[SharedKey], added: Iterable[str]) -> Refusal | None:
    """The refusal of a spawn whose child would have too many results of others; None when it may
    have them."""
    taken = {one.key for one in family if one.kind == "reference"}
    would = taken.union(added)
    if len(would) <= REFERENCES_MAX:
        return None
    text = (
        f"The shared context of this child would have {len(would)} references and may have"
        f" {REFERENCES_MAX} ({len(taken)} are inherited). Refer to fewer runs."
    )
    return rules.SHARED_CONTEXT.refusal(text, current=len(would), limit=REFERENCES_MAX)


def limit_refusal(
    family: Sequence[SharedKey], added: Sequence[tuple[str, int]], scope: SharedScope | None
) -> Refusal | None:
    """The refusal of a spawn with which its family would share too much; None when it fits. Without
    a `scope` it is of a patch."""
    taken, would = shared_size(literals_of(family).items()), shared_size_with(family, added)
    advice = _ADVICE[scope]
    for current, limit, unit, before in (
        (would.bytes, SHARED_BYTES_MAX, "bytes", taken.bytes),
        (would.keys, SHARED_KEYS_MAX, "keys", taken.keys),
    ):
        if current > limit:
            text = (
                f"The shared context of this session would have {current} {unit} and may have"
                f" {limit} ({before} are taken). {advice}"
            )
            return rules.SHARED_CONTEXT.refusal(text, current=current, limit=limit)
    return None
