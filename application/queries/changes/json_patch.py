"""JSON Patch (RFC 6902): computes the difference of two values, and applies patches.

`difference` emits only `add`, `remove` and `replace`. It is a pure function: equal inputs give
equal operations in the same order. `apply_patch` accepts all six operations.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from domain.configuration.problems import parts_of, pointer_of
from domain.values.json_text import JSON_DEPTH_MAX, compact_json

OPERATIONS_MAX = 1_000
LIST_PAIRS_MAX = 40_000
"""Maximum number of item pairs compared to find the common items of two lists."""
VALUES_COPIED_MAX = 1_000_000
"""Maximum number of values that one patch may write, because nested copies grow exponentially."""
CHARACTERS_COPIED_MAX = 16 * 1024 * 1024
"""Maximum number of characters, in texts and member names, that one patch may write. Copies of a
long text share memory until they are printed, each at full length."""
IDENTITIES = ("runId", "id", "key", "sequence", "name", "step", "sessionKey", "model")
"""Members that identify the items of a list; the first one that every item has is used."""

Operation = dict[str, Any]
Path = tuple[str | int, ...]

_PLAIN = frozenset({str, int, float, bool})
_BAD_ESCAPE = re.compile("~(?![01])")
_MEMBERS: Mapping[str, frozenset[str]] = {
    "add": frozenset({"op", "path", "value"}),
    "remove": frozenset({"op", "path"}),
    "replace": frozenset({"op", "path", "value"}),
    "move": frozenset({"op", "path", "from"}),
    "copy": frozenset({"op", "path", "from"}),
    "test": frozenset({"op", "path", "value"}),
}


class PatchError(ValueError):
    """A malformed patch, or one that does not fit the value. `pointer` is the place in the
    patch."""

    def __init__(self, pointer: str, detail: str) -> None:
        super().__init__(f"{pointer or '/'}: {detail}")
        self.pointer = pointer
        self.detail = detail


def difference(left: Any, right: Any, *, operations_max: int = OPERATIONS_MAX) -> list[Operation]:
    """Return the operations that transform `left` into `right`; none if both are equal JSON.

    Removed members come first, in the order of `left`, then all others in the order of `right`.
    Common items of lists are kept; items with an identity (`IDENTITIES`) are compared with the item
    of the same identity. A value that would take more than `operations_max` operations is replaced
    as a whole.
    """
    return _difference((), left, right, max(operations_max, 1))


def is_same(left: Any, right: Any) -> bool:
    """Return True if both are equal JSON; `1`, `1.0` and `true` are different."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(
            is_same(value, right[name]) for name, value in left.items()
        )
    if isinstance(left, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    return bool(left == right)


def _difference(path: Path, left: Any, right: Any, operations_max: int) -> list[Operation]:
    operations: list[Operation] | None = None
    if path and isinstance(left, dict | list) and _print_alike(left, right):
        # Nested values are usually equal, and comparing their print is faster than walking them.
        return []
    if isinstance(left, dict) and isinstance(right, dict):
        operations = _of_objects(path, left, right, operations_max)
    elif isinstance(left, list) and isinstance(right, list):
        operations = _of_lists(path, left, right, operations_max)
    elif is_same(left, right):
        return []
    if operations is None or len(operations) > operations_max:
        return [_operation("replace", path, right)]
    return operations


def _print_alike(left: Any, right: Any) -> bool:
    printed_left, printed_right = _printed([left, right])
    return printed_left == printed_right


def _printed(values: Sequence[Any]) -> list[bytes]:
    """Return each value as JSON, all by the same printer."""
    try:
        return [orjson.dumps(value) for value in values]
    except TypeError:
        # A number beyond 64 bits.
        return [compact_json(value).encode("utf-8", "surrogatepass") for value in values]


def _of_objects(
    path: Path, left: dict[str, Any], right: dict[str, Any], operations_max: int
) -> list[Operation]:
    operations = [_operation("remove", (*path, name)) for name in left if name not in right]
    for name, value in right.items():
        if name not in left:
            operations.append(_operation("add", (*path, name), value))
            continue
        before = left[name]
        # Most values are equal scalars.
        if before is value or (type(before) is type(value) in _PLAIN and before == value):
            continue
        operations += _difference((*path, name), before, value, operations_max)
    return operations


def _of_lists(
    path: Path, left: list[Any], right: list[Any], operations_max: int
) -> list[Operation]:
    """Return the operations for two lists, from first item to last.

    `index` is the place of the next item once the operations before it are applied.
    """
    keys_left, keys_right, identified = _keys_of(left, right)
    operations: list[Operation] = []
    index = 0
    gone, came = 0, 0
    for end_left, end_right in [
        *_shared(keys_left, keys_right, unique=identified),
        (len(left), len(right)),
    ]:
        while gone < end_left and came < end_right and not identified:
            inner = _difference((*path, index), left[gone], right[came], operations_max)
            operations += inner
            gone, came, index = gone + 1, came + 1, index + 1
        for _ in range(gone, end_left):
            operations.append(_operation("remove", (*path, index)))
        for value in right[came:end_right]:
            operations.append(_operation("add", (*path, index), value))
            index += 1
        if end_left < len(left) and end_right < len(right):
            inner = _difference((*path, index), left[end_left], right[end_right], operations_max)
            operations += inner
            index += 1
        gone, came = end_left + 1, end_right + 1
    return operations


def _keys_of(left: list[Any], right: list[Any]) -> tuple[list[bytes], list[bytes], bool]:
    """Return the keys of the items of both lists, and True if they are identities."""
    items = (*left, *right)
    for name in IDENTITIES:
        if not items or _identity(items[0], name) is None:
            continue
        keys = [_identity(item, name) for item in items]
        if all(key is not None for key in keys):
            found = _printed(keys)
            own, others = found[: len(left)], found[len(left) :]
            if len(set(own)) == len(own) and len(set(others)) == len(others):
                return own, others, True
    found = _printed(items)
    return found[: len(left)], found[len(left) :], False


def _identity(item: Any, name: str) -> str | int | None:
    value = item.get(name) if isinstance(item, dict) else None
    return value if isinstance(value, str | int) else None


def _shared(
    left: Sequence[bytes], right: Sequence[bytes], *, unique: bool
) -> list[tuple[int, int]]:
    """Return the places of a longest common subsequence.

    For two lists that are too long to compare, only the common beginning and end are returned.
    """
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    end = 0
    rest = min(len(left), len(right)) - start
    while end < rest and left[len(left) - 1 - end] == right[len(right) - 1 - end]:
        end += 1
    longest = _longest_of_unique if unique else _longest
    inner = longest(left[start : len(left) - end], right[start : len(right) - end])
    return [
        *((at, at) for at in range(start)),
        *((start + place, start + other_place) for place, other_place in inner),
        *((len(left) - at, len(right) - at) for at in range(end, 0, -1)),
    ]


def _longest_of_unique(left: Sequence[bytes], right: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the longest common subsequence of lists without repeated keys."""
    at_right = {key: place for place, key in enumerate(right)}
    pairs = [(place, at_right[key]) for place, key in enumerate(left) if key in at_right]
    lowest: list[int] = []
    rows: list[int] = []
    before: list[int | None] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(lowest, place)
        before.append(rows[length - 1] if length else None)
        lowest[length : length + 1] = [place]
        rows[length : length + 1] = [number]
    found: list[tuple[int, int]] = []
    last = rows[-1] if rows else None
    while last is not None:
        found.append(pairs[last])
        last = before[last]
    return found[::-1]


def _longest(left: Sequence[bytes], right: Sequence[bytes]) -> list[tuple[int, int]]:
    if not left or not right or len(left) * len(right) > LIST_PAIRS_MAX:
        return []
    lengths = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for at_left in range(len(left) - 1, -1, -1):
        for at_right in range(len(right) - 1, -1, -1):
            lengths[at_left][at_right] = (
                lengths[at_left + 1][at_right + 1] + 1
                if left[at_left] == right[at_right]
                else max(lengths[at_left + 1][at_right], lengths[at_left][at_right + 1])
            )
    places = []
    at_left = at_right = 0
    while at_left < len(left) and at_right < len(right):
        if left[at_left] == right[at_right]:
            places.append((at_left, at_right))
            at_left, at_right = at_left + 1, at_right + 1
        elif lengths[at_left + 1][at_right] >= lengths[at_left][at_right + 1]:
            at_left += 1
        else:
            at_right += 1
    return places


def _operation(op: str, path: Path, *value: Any) -> Operation:
    operation: Operation = {"op": op, "path": pointer_of(path)}
    if value:
        operation["value"] = value[0]
    return operation


def apply_patch(patch: Any, value: Any, *, operations_max: int = OPERATIONS_MAX) -> Any:
    """Return the value after all operations of the patch; `value` itself is not changed.

    A member that an operation does not define is refused: nothing in a patch is ignored.

    Raises:
        PatchError: The patch is malformed, has more than `operations_max` operations, names a place
            that does not exist, or a `test` fails.
    """
    if not isinstance(patch, list):
        raise PatchError("", "a patch is a list of operations")
    if len(patch) > operations_max:
        raise PatchError("", f"a patch has at most {operations_max} operations, not {len(patch)}")
    return _Application(value).apply(patch)


class _Application:
    """A value while it is patched, and the amount written so far."""

    def __init__(self, value: Any) -> None:
        self._copied = self._characters_copied = 0
        self._document = self._copy(value, "", 0, counted=False)

    def apply(self, patch: list[Any]) -> Any:
        for number, operation in enumerate(patch):
            self._take(operation, f"/{number}")
        return self._document

    def _take(self, operation: Any, pointer: str) -> None:
        op = operation.get("op") if isinstance(operation, dict) else None
        if not isinstance(op, str) or op not in _MEMBERS:
            names = ", ".join(_MEMBERS)
            raise PatchError(pointer, f"an operation is an object with op, one of {names}")
        missing = sorted(_MEMBERS[op] - operation.keys())
        unknown = sorted(str(name) for name in operation.keys() - _MEMBERS[op])
        if missing:
            raise PatchError(pointer, f"{op} requires {' and '.join(missing)}")
        if unknown:
            raise PatchError(f"{pointer}{pointer_of(unknown[:1])}", f"{op} has no such member")
        path = _parts(operation["path"], f"{pointer}/path")
        match op:
            case "add":
                self._add(path, operation["value"], pointer)
            case "remove":
                self._remove(path, pointer)
            case "replace":
                self._find(path, f"{pointer}/path")
                self._put(path, operation["value"], pointer)
            case "test":
                if not _is_equal(self._find(path, f"{pointer}/path"), operation["value"]):
                    raise PatchError(pointer, f"the value at {_shown(path)} is different")
            case _:
                source = _parts(operation["from"], f"{pointer}/from")
                value = self._find(source, f"{pointer}/from")
                if op == "move":
                    if source == path:
                        return
                    if path[: len(source)] == source:
                        raise PatchError(pointer, "a value cannot be moved into itself")
                    self._remove(source, pointer)
                self._add(path, value, pointer)

    def _add(self, path: tuple[str, ...], value: Any, pointer: str) -> None:
        if not path:
            self._put(path, value, pointer)
            return
        parent = self._find(path[:-1], f"{pointer}/path")
        if isinstance(parent, list):
            last = path[-1]
            at = len(parent) if last == "-" else _index(last, len(parent) + 1, path, pointer)
            parent.insert(at, self._copy(value, pointer, len(path)))
        else:
            self._put(path, value, pointer)

    def _put(self, path: tuple[str, ...], value: Any, pointer: str) -> None:
        written = self._copy(value, pointer, len(path))
        if not path:
            self._document = written
            return
        parent = self._find(path[:-1], f"{pointer}/path")
        if isinstance(parent, dict):
            parent[path[-1]] = written
        elif isinstance(parent, list):
            parent[_index(path[-1], len(parent), path, pointer)] = written
        else:
            raise PatchError(f"{pointer}/path", f"{_shown(path[:-1])} has no members")

    def _remove(self, path: tuple[str, ...], pointer: str) -> None:
        if not path:
            raise PatchError(f"{pointer}/path", "the whole document cannot be removed; replace it")
        self._find(path, f"{pointer}/path")
        parent = self._find(path[:-1], f"{pointer}/path")
        del parent[int(path[-1]) if isinstance(parent, list) else path[-1]]

    def _find(self, path: tuple[str, ...], pointer: str) -> Any:
        value = self._document
        for depth, part in enumerate(path):
            if isinstance(value, dict) and part in value:
                value = value[part]
            elif isinstance(value, list):
                value = value[_index(part, len(value), path[: depth + 1], pointer)]
            else:
                raise PatchError(pointer, f"there is nothing at {_shown(path[: depth + 1])}")
        return value

    def _copy(self, value: Any, pointer: str, depth: int, *, counted: bool = True) -> Any:
        if counted:
            self._copied += 1
            self._characters_copied += _characters(value)
        if self._characters_copied > CHARACTERS_COPIED_MAX:
            limit = f"{CHARACTERS_COPIED_MAX} characters"
            raise PatchError(pointer, f"a patch writes texts of at most {limit}")
        if self._copied > VALUES_COPIED_MAX:
            raise PatchError(pointer, f"a patch writes at most {VALUES_COPIED_MAX} values")
        if depth > JSON_DEPTH_MAX:
            raise PatchError(pointer, f"JSON is nested at most {JSON_DEPTH_MAX} levels")
        if isinstance(value, dict):
            return {
                name: self._copy(member, pointer, depth + 1, counted=counted)
                for name, member in value.items()
            }
        if isinstance(value, list):
            return [self._copy(item, pointer, depth + 1, counted=counted) for item in value]
        return value


def _characters(value: Any) -> int:
    """Return the length of a text, or of the names of an object's members, without nested
    values."""
    if isinstance(value, dict):
        return sum(map(len, value))
    return len(value) if isinstance(value, str) else 0


def _parts(path: Any, pointer: str) -> tuple[str, ...]:
    if not isinstance(path, str) or _BAD_ESCAPE.search(path):
        raise PatchError(
            pointer, "a path is a JSON pointer, such as /agents/list/0 (~ is ~0 in it, / is ~1)"
        )
    try:
        return parts_of(path)
    except ValueError as error:
        raise PatchError(pointer, str(error)) from None


def _index(part: str, length: int, path: Sequence[str], pointer: str) -> int:
    whole = part.isascii() and part.isdecimal() and (part == "0" or part[0] != "0")
    if not whole or len(part) > len(str(length)) or int(part) >= length:
        raise PatchError(pointer, f"there is nothing at {_shown(path)}: a list of {length} items")
    return int(part)


def _is_equal(left: Any, right: Any) -> bool:
    """Return True if two values are equal for `test`: numbers are compared by value."""
    number = (int, float)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, number) and isinstance(right, number):
        return left == right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            _is_equal(member, right[name]) for name, member in left.items()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_equal, left, right))
    return type(left) is type(right) and bool(left == right)


def _shown(path: Sequence[str]) -> str:
    return pointer_of(path) or "the whole document"
