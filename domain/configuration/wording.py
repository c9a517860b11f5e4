"""What the validation library found, in words of the file and not of Python."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

_PLAIN = {
    "missing": "is required",
    "string_type": "must be a string",
    "string_sub_type": "must be a string",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
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
    """The message, and the allowed value that was probably meant. Never the value itself: it may
    be a secret."""
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
    if kind == "string_too_long":
        return f"must be at most {context['max_length']} characters long", None
    return str(error["msg"]), None


def _allowed(error: Mapping[str, Any]) -> list[str]:
    context = error["ctx"]
    text = str(context.get("expected_tags") or context.get("expected"))
    return [word.strip().strip("'") for word in text.replace(" or ", ", ").split(",")]


def nearest_word(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word closest to this one, whatever its case and separators; None when far."""
    plain = {_plain(candidate): candidate for candidate in known}
    found = get_close_matches(_plain(word)[:200], plain, n=1, cutoff=cutoff)
    return plain[found[0]] if found else None


def _plain(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")
