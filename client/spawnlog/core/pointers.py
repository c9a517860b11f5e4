"""Names of values of a request, in the words of who made it."""

import keyword

_PLACES = ("query", "path", "headers")


def pointer_parts(pointer: str) -> tuple[str, ...]:
    """Return the parts of a JSON pointer into a request, without the place of the value: of
    `/query/labelPrefix` that is `labelPrefix`."""
    parts = tuple(
        one.replace("~1", "/").replace("~0", "~") for one in pointer.removeprefix("/").split("/")
    )
    return parts[1:] if len(parts) > 1 and parts[0] in _PLACES else parts


def python_name(name: str) -> str:
    """Return the name that Python has for a member of JSON or a header: `label_prefix` for
    `labelPrefix`, `if_match` for `If-Match`, `from_` for `from`."""
    if "-" in name:
        return name.replace("-", "_").lower()
    words = "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name)
    return f"{words}_" if keyword.iskeyword(words) else words


def argument_of(pointer: str) -> str:
    """Return the argument of a method that a JSON pointer means: `depends_on[0]` for
    `/dependsOn/0`."""
    name, *rest = pointer_parts(pointer)
    if not name:
        return "the body"
    inner = "".join(f"[{one}]" if one.isdecimal() else f'["{one}"]' for one in rest)
    return f"{python_name(name)}{inner}"
