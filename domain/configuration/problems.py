"""Configuration errors, with their location and a hint for the reader."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

_PART_CHARACTERS_MAX = 80


@dataclass(frozen=True)
class ConfigurationProblem:
    """One mistake in a configuration.

    Attributes:
        message: Description of the mistake.
        source: File name, environment variable or flag to correct.
        pointer: JSON pointer (RFC 6901) to the value or key; "" for the whole document.
        line: Line, from 1; None if there is no text.
        column: Column, from 1; None if there is no text.
        nearest: Key that was probably meant.
    """

    message: str
    source: str = "configuration"
    pointer: str = ""
    line: int | None = None
    column: int | None = None
    nearest: str | None = None

    def __str__(self) -> str:
        place = _printable(self.source)
        if self.line is not None:
            place += f":{self.line}"
            if self.column is not None:
                place += f":{self.column}"
        named = f"{place}: {dotted_path(self.pointer)}: " if self.pointer else f"{place}: "
        return f"{named}{self._text_with_hint}"

    def by_pointer(self) -> str:
        """Return the message with a JSON pointer as location, for readers without the file."""
        parts = (_shown_part(part) for part in parts_of(self.pointer))
        return f"{pointer_of(parts) or '/'}: {self._text_with_hint}"

    @property
    def _text_with_hint(self) -> str:
        hint = f'; did you mean "{self.nearest}"?' if self.nearest else ""
        return f"{self.message}{hint}"


class ConfigurationError(Exception):
    """A configuration that cannot be used. `problems` is never empty, and in reading order."""

    def __init__(self, problems: Iterable[ConfigurationProblem]) -> None:
        self.problems = tuple(problems)
        if not self.problems:
            raise ValueError("a configuration error names at least one problem")
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(
        self,
    ) -> tuple[type["ConfigurationError"], tuple[tuple[ConfigurationProblem, ...]]]:
        return type(self), (self.problems,)


def pointer_of(parts: Iterable[str | int]) -> str:
    """Return the JSON pointer of a path: `("a", 0, "b/c")` becomes `/a/0/b~1c`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def parts_of(pointer: str) -> tuple[str, ...]:
    """Split a JSON pointer into its segments, all of them strings.

    Raises:
        ValueError: `pointer` is not a JSON pointer.
    """
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        raise ValueError(f"not a JSON pointer: {pointer!r}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def dotted_path(pointer: str) -> str:
    """Return a JSON pointer in dotted form: `/agents/list/0/id` becomes `agents.list[0].id`."""
    written = ""
    for segment in parts_of(pointer):
        part = _shown_part(segment)
        if part.isdecimal():
            written += f"[{part}]"
        elif not part or any(char in part for char in '. []"\\'):
            written += f'["{part}"]'
        else:
            written += f".{part}" if written else part
    return written


def _shown_part(segment: str) -> str:
    part = _printable(segment)
    return part[:_PART_CHARACTERS_MAX] + "…" if len(part) > _PART_CHARACTERS_MAX else part


def _printable(text: str) -> str:
    """Escape characters that would break a terminal or an encoding."""
    return text if text.isprintable() else ascii(text)[1:-1]


# Messages for validation errors, in terms of the file instead of Python.


_PLAIN = {
    "missing": "is required",
    "string_type": "must be a string",
    "string_sub_type": "must be a string",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "union_tag_not_found": 'must be an object with a "type"',
    "extra_forbidden": "unknown key",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("greater than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def render_error(error: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the message, and the allowed value that was probably meant.

    Args:
        error: An item of pydantic's `ValidationError.errors()`.

    Returns:
        Text that never contains the invalid value, because it may be a secret.
    """
    kind, context = error["type"], error.get("ctx", {})
    if kind in _PLAIN:
        return _PLAIN[kind], None
    if kind in _BOUNDS:
        relation, name = _BOUNDS[kind]
        return f"must be {relation} {context[name]}", None
    if kind in ("literal_error", "union_tag_invalid"):
        allowed = _allowed(error)
        given = error.get("input")
        if kind == "union_tag_invalid":
            given = context.get("tag")
        meant = nearest_word(given, allowed) if isinstance(given, str) else None
        listed = ", ".join(f'"{value}"' for value in allowed)
        return f"must be {'one of ' if len(allowed) > 1 else ''}{listed}", meant
    if kind in ("too_short", "too_long"):
        least = kind == "too_short"
        count = context["min_length" if least else "max_length"]
        return f"must have at {'least' if least else 'most'} {count} item{'s' * (count != 1)}", None
    if kind == "string_too_short":
        least = context["min_length"]
        return (
            "must not be empty" if least == 1 else f"must be at least {least} characters long",
            None,
        )
    if kind == "string_pattern_mismatch":
        return f"must match {context['pattern']}", None
    if kind == "string_too_long":
        return f"must be at most {context['max_length']} characters long", None
    # pydantic prepends this to the messages of our own errors.
    return str(error["msg"]).removeprefix("Value error, "), None


def _allowed(error: Mapping[str, Any]) -> list[str]:
    context = error["ctx"]
    text = str(context.get("expected_tags") or context.get("expected"))
    return [word.strip().strip("'") for word in text.replace(" or ", ", ").split(",")]


def nearest_word(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the most similar known word, ignoring case and separators, or None if none is
    close.
    """
    plain = {_plain(candidate): candidate for candidate in known}
    found = get_close_matches(_plain(word)[:200], plain, n=1, cutoff=cutoff)
    return plain[found[0]] if found else None


def _plain(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")
