"""Conditions over the numbers of a registry, such as `running > 6 and not config = 2`.

condition  = all { "or" all }
all        = one { "and" one }
one        = "not" one | "(" condition ")" | number sign number
number     = a name | digits
sign       = ">" | ">=" | "<" | "<=" | "=" | "==" | "!="
"""

import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from domain.configuration.problems import nearest_word

LENGTH_MAX = 1_000
DEPTH_MAX = 32
COMPARISONS_MAX = 64
DIGITS_MAX = 18
POSITION = "position"

Numbers = Mapping[str, int]
_SIGNS: Mapping[str, Callable[[int, int], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "=": "=", "==": "==", "!=": "!="}
_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|([0-9]+)|(>=|<=|==|!=|[<>=()]))", re.ASCII)
_WORDS = frozenset({"and", "or", "not"})


class ConditionError(ValueError):
    """A text that is not a condition. `column` is the place of the error, from 1."""

    def __init__(self, column: int, detail: str) -> None:
        super().__init__(f"column {column}: {detail}")
        self.column = column


class _Token(NamedTuple):
    """A word, digits or signs; `kind` is "end" after the last one."""

    kind: str
    text: str
    column: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two operands, each a number or the name of one."""

    left: str | int
    sign: str
    right: str | int

    def holds(self, numbers: Numbers) -> bool:
        """Return True if the comparison holds."""
        return _SIGNS[self.sign](_value(self.left, numbers), _value(self.right, numbers))


@dataclass(frozen=True, slots=True)
class Combination:
    """Conditions joined by "and" or "or", or a single one negated by "not"."""

    word: str
    parts: tuple["Comparison | Combination", ...]

    def holds(self, numbers: Numbers) -> bool:
        """Return True if the combination holds."""
        if self.word == "not":
            return not self.parts[0].holds(numbers)
        some = any if self.word == "or" else all
        return some(part.holds(numbers) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition; `names` are the numbers that it refers to."""

    root: Comparison | Combination
    names: frozenset[str]
    comparisons: tuple[Comparison, ...]

    def holds(self, numbers: Numbers) -> bool:
        """Return True if the condition holds for these numbers."""
        return self.root.holds(numbers)

    def grows(self, growing: Collection[str]) -> bool:
        """Return True if the condition is monotonic in these numbers: once true, it stays true."""
        return _grows(self.root, growing)

    def turning_positions(self, numbers: Numbers) -> list[int]:
        """Return, in order, the positions at which the condition may change while the other numbers
        do not."""
        found: set[int] = set()
        for comparison in self.comparisons:
            for side, opposite in (
                (comparison.left, comparison.right),
                (comparison.right, comparison.left),
            ):
                if side == POSITION and opposite != POSITION:
                    value = _value(opposite, numbers)
                    found |= {value, value + 1}
        return sorted(found)


def parse_condition(text: str, names: Collection[str]) -> Condition:
    """Return the condition in a text, over numbers with these names.

    Raises:
        ConditionError: The text is not a condition, or is too long or too deeply nested.
    """
    if len(text) > LENGTH_MAX:
        raise ConditionError(LENGTH_MAX + 1, f"a condition has at most {LENGTH_MAX} characters")
    return _Parser(text, names).parse()


def _value(side: str | int, numbers: Numbers) -> int:
    return side if isinstance(side, int) else numbers[side]


def _grows(part: Comparison | Combination, growing: Collection[str]) -> bool:
    if isinstance(part, Combination):
        return part.word != "not" and all(_grows(inner, growing) for inner in part.parts)
    left, sign, right = part.left, part.sign, part.right
    if isinstance(left, int):
        left, sign, right = right, _TURNED[sign], left
    if isinstance(left, int):
        return True
    return left in growing and isinstance(right, int) and sign in (">", ">=")


class _Parser:
    """Recursive-descent parser. It refuses deep nesting before the stack overflows."""

    def __init__(self, text: str, names: Collection[str]) -> None:
        self._text = text
        self._names = names
        self._comparisons: list[Comparison] = []
        self._at = 0
        self._next = self._read()

    def parse(self) -> Condition:
        root = self._either(0)
        if self._next.kind != "end":
            raise self._unexpected("and, or, or the end")
        names = {
            side
            for comparison in self._comparisons
            for side in (comparison.left, comparison.right)
            if isinstance(side, str)
        }
        return Condition(root, frozenset(names), tuple(self._comparisons))

    def _either(self, depth: int) -> Comparison | Combination:
        return self._row("or", self._all, depth)

    def _all(self, depth: int) -> Comparison | Combination:
        return self._row("and", self._one, depth)

    def _row(
        self, word: str, part: Callable[[int], Comparison | Combination], depth: int
    ) -> Comparison | Combination:
        parts = [part(depth)]
        while self._next.text == word:
            self._take()
            parts.append(part(depth))
        return parts[0] if len(parts) == 1 else Combination(word, tuple(parts))

    def _one(self, depth: int) -> Comparison | Combination:
        token = self._next
        if depth >= DEPTH_MAX and token.text in ("not", "("):
            raise ConditionError(token.column, f"nested more than {DEPTH_MAX} levels deep")
        if token.text == "not":
            self._take()
            return Combination("not", (self._one(depth + 1),))
        if token.text == "(":
            self._take()
            inner = self._either(depth + 1)
            if self._next.text != ")":
                raise self._unexpected("and, or, or a closing parenthesis")
            self._take()
            return inner
        return self._comparison()

    def _comparison(self) -> Comparison:
        column = self._next.column
        left = self._number()
        if self._next.text not in _SIGNS:
            raise self._unexpected("one of > >= < <= = !=")
        sign = self._take().text
        compared = Comparison(left, sign, self._number())
        self._comparisons.append(compared)
        if len(self._comparisons) > COMPARISONS_MAX:
            raise ConditionError(column, f"a condition compares at most {COMPARISONS_MAX} times")
        return compared

    def _number(self) -> str | int:
        token = self._next
        if token.kind == "digits":
            if len(token.text) > DIGITS_MAX:
                raise ConditionError(token.column, f"a number has at most {DIGITS_MAX} digits")
            return int(self._take().text)
        if token.kind != "name" or token.text in _WORDS:
            raise self._unexpected("a number or its name")
        if token.text not in self._names:
            nearest = nearest_word(token.text, self._names)
            hint = f'did you mean "{nearest}"? ' if nearest else ""
            there = ", ".join(sorted(self._names))
            raise ConditionError(
                token.column,
                (f'there is no number "{token.text[:40]}"; {hint}the numbers are {there}'),
            )
        return self._take().text

    def _take(self) -> _Token:
        token, self._next = self._next, self._read()
        return token

    def _read(self) -> _Token:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            rest = self._text[self._at :].lstrip()
            column = len(self._text) - len(rest) + 1
            if rest:
                raise ConditionError(column, f"unexpected character {rest[0]!a}")
            return _Token("end", "", column)
        self._at = match.end()
        name, digits, signs = match.groups()
        kind = "name" if name else "digits" if digits else "sign"
        text = name or digits or signs
        return _Token(kind, text, match.end() - len(text) + 1)

    def _unexpected(self, wanted: str) -> ConditionError:
        found = f'"{self._next.text[:40]}"' if self._next.text else "the end"
        return ConditionError(self._next.column, f"expected {wanted}, not {found}")
