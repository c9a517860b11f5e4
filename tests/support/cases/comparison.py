"""Comparison of a runner's answer with every expected value of a case.

Keywords: `x_contains` (one text or several), `x_matches` (a pattern), `x_prefix`, `not_contains`
(of the same text as `x_contains`), `absent` (names that may not occur beside it or one level
below). Any other name is a value that must be equal. `<child>` is the child's key.
"""

import copy
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from tests.support.cases.cases import Answer, Case, unread_leaves

CHILD = "<child>"
"""Name under which a runner answers with the key for `<child>`."""
_OPERATORS = ("_contains", "_matches", "_prefix")


class Whole(dict[str, Any]):
    """An answer that must have no name beyond those expected."""


class Among(frozenset[str]):
    """An answer of which a case names some, in any order."""

    def __sub__(self, other: Set[Any]) -> "Among":
        return Among(super().__sub__(other))


class Differs(AssertionError):
    """The answer differs from the expected one; the message says where."""


def hold(answer: Answer, case: Case) -> None:
    """Raise `Differs` unless the answer is that of the case."""
    _compare(answer, _with_child(case.expect, answer.get(CHILD)), (), unread_leaves(case))


def _with_child(expect: Any, key: object) -> Any:
    if expect == CHILD and isinstance(key, str):
        return key
    if isinstance(expect, Mapping):
        return {name: _with_child(value, key) for name, value in expect.items()}
    return expect


def _compare(
    answer: Mapping[str, Any],
    expect: Mapping[str, Any],
    way: tuple[str, ...],
    unread: frozenset[str],
) -> None:
    for name, wanted in expect.items():
        here = (*way, name)
        if ".".join(here) in unread:
            continue
        if isinstance(wanted, Mapping) and wanted and isinstance(answer.get(name), Mapping):
            _compare(answer[name], wanted, here, unread)
        else:
            _judge(answer, name, wanted, expect, ".".join(here))
    if isinstance(answer, Whole) and answer.keys() - expect.keys():
        raise Differs(f"{'.'.join(way)} also has {sorted(answer.keys() - expect.keys())}")


def _judge(
    answer: Mapping[str, Any], name: str, wanted: Any, beside: Mapping[str, Any], where: str
) -> None:
    if name == "absent":
        for item in wanted:
            if any(item in level for level in _levels(answer)):
                raise Differs(f"{where}: {item} is there")
        return
    if name == "not_contains":
        subject = _subject(beside)
        text = _text(answer, subject, where)
        if wanted in text:
            raise Differs(f"{where}: {wanted!r} stands in {text!r}")
        return
    operator = next((operator for operator in _OPERATORS if name.endswith(operator)), None)
    if operator is None:
        if name not in answer:
            raise Differs(f"{where} is not answered")
        if not _same(answer[name], wanted):
            raise Differs(f"{where} is {answer[name]!r}, expected {wanted!r}")
        return
    text = _text(answer, name.removesuffix(operator), where)
    if not _fits(operator, text, wanted):
        raise Differs(f"{where}: {text!r} does not fit {wanted!r}")


def _fits(operator: str, text: str, wanted: Any) -> bool:
    if operator == "_prefix":
        return text.startswith(wanted)
    if operator == "_matches":
        return re.search(wanted, text) is not None
    pieces = [wanted] if isinstance(wanted, str) else wanted
    return bool(pieces) and all(piece in text for piece in pieces)


def _subject(beside: Mapping[str, Any]) -> str:
    (subject,) = [name for name in beside if name.endswith("_contains") and name != "not_contains"]
    return subject.removesuffix("_contains")


def _text(answer: Mapping[str, Any], name: str, where: str) -> str:
    text = answer.get(name)
    if not isinstance(text, str):
        raise Differs(f"{where}: {name} is {text!r} and no text")
    return text


def _levels(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [answer, *(item for item in answer.values() if isinstance(item, Mapping))]


def _same(answer: Any, wanted: Any) -> bool:
    """Equal, where true is not 1 and a tuple is a list."""
    if isinstance(wanted, Mapping):
        return (
            isinstance(answer, Mapping)
            and answer.keys() == wanted.keys()
            and all(_same(answer[name], wanted[name]) for name in wanted)
        )
    if isinstance(answer, Among):
        return bool(wanted) and answer.issuperset(wanted)
    if isinstance(wanted, list):
        return (
            isinstance(answer, Sequence)
            and not isinstance(answer, str)
            and len(answer) == len(wanted)
            and all(_same(first, second) for first, second in zip(answer, wanted, strict=True))
        )
    if isinstance(wanted, bool) or isinstance(answer, bool):
        return answer is wanted
    return bool(answer == wanted)


def falsified(case: Case, answer: Answer) -> Iterator[tuple[str, Case]]:
    """Yield the case once per compared value, with that value made wrong."""
    for way, value in _leaves(case.expect):
        named = [step for step in way if isinstance(step, str)]
        if any(".".join(named[:end]) in unread_leaves(case) for end in range(1, len(named) + 1)):
            continue
        expect = copy.deepcopy(dict(case.expect))
        at: Any = expect
        for step in way[:-1]:
            at = at[step]
        at[way[-1]] = _wrong(way, value, answer, case.expect)
        yield ".".join(map(str, way)), Case(**{**vars(case), "expect": expect})


def _leaves(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, Mapping) and value:
        for name, member in value.items():
            yield from _leaves(member, (*way, name))
    elif isinstance(value, list) and value:
        for index, member in enumerate(value):
            yield from _leaves(member, (*way, index))
    else:
        yield way, value


def _wrong(way: tuple[Any, ...], value: Any, answer: Answer, expect: Mapping[str, Any]) -> Any:
    if "absent" in way:
        level: Any = answer
        for step in way[: way.index("absent")]:
            level = level[step]
        return next(iter(level))
    if way[-1] == "not_contains":
        return _text(answer, _subject(expect), "not_contains")[:3]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if value is None:
        return "falsified"
    return f"falsified {value}" if isinstance(value, str) else "falsified"
