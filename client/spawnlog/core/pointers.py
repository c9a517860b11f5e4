"""Translate JSON pointers and member names of a request to Python names."""

import keyword

_PLACES = ("query", "path", "headers")


def pointer_parts(pointer: str) -> tuple[str, ...]:
    """Split a JSON pointer into a request; drop its first part if that is a place.

    `/query/labelPrefix` gives `("labelPrefix",)`.
    """
    parts = tuple(
        part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/")
    )
    return parts[1:] if len(parts) > 1 and parts[0] in _PLACES else parts


def python_name(name: str) -> str:
    """Return the Python name of a JSON member or a header.

    `labelPrefix` becomes `label_prefix`, `If-Match` becomes `if_match`, `from` becomes `from_`.
    """
    if "-" in name:
        return name.replace("-", "_").lower()
    words = "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name)
    return f"{words}_" if keyword.iskeyword(words) else words


def argument_of(pointer: str) -> str:
    """Return the method argument at a JSON pointer: `depends_on[0]` for `/dependsOn/0`."""
    name, *rest = pointer_parts(pointer)
    if not name:
        return "the body"
    inner = "".join(f"[{part}]" if part.isdecimal() else f'["{part}"]' for part in rest)
    return f"{python_name(name)}{inner}"
