"""YAML output of JSON values, for a person who reads long documents.

The product does not depend on PyYAML. Writing needs only a part of YAML: block mappings and
sequences, and JSON strings wherever a plain word could be read as another value.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

# Words that YAML 1.1 or 1.2 does not read as text.
_READ_OTHERWISE = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_SIGN = "[A-Za-z0-9_./@+()=-]"
_PLAIN = re.compile(f"[A-Za-z_](?:{_SIGN}|[ :](?={_SIGN}))*")
_INDENT = "  "


def yaml_lines(value: object) -> Iterator[str]:
    """Yield the lines of a document in pure ASCII, so that a terminal interprets nothing in it."""
    yield "---"
    yield from _block(value, "")


def _block(value: object, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, member in value.items():
            yield from _entry(f"{indent}{_scalar(str(key))}:", member, indent + _INDENT)
    elif _is_list(value) and value:
        assert isinstance(value, Sequence)
        for member in value:
            yield from _item(member, indent)
    else:
        yield indent + _scalar(value)


def _entry(lead: str, value: object, indent: str) -> Iterator[str]:
    if value and (isinstance(value, Mapping) or _is_list(value)):
        yield lead
        yield from _block(value, indent)
    else:
        yield f"{lead} {_scalar(value)}"


def _item(value: object, indent: str) -> Iterator[str]:
    """Yield a list item: its first line follows the dash, the others are indented below it."""
    lines = _block(value, indent + _INDENT)
    yield f"{indent}- {next(lines).removeprefix(indent + _INDENT)}"
    yield from lines


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _scalar(value: object) -> str:
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and value.lower() not in _READ_OTHERWISE
        return value if is_plain else _quoted(value)
    if isinstance(value, Mapping):
        return "{}"
    if _is_list(value):
        return "[]"
    number = json.dumps(value)
    # Without a point YAML 1.1 reads `1e-05` as text.
    return number.replace("e", ".0e") if isinstance(value, float) and "." not in number else number


def _quoted(text: str) -> str:
    """Return a JSON string, except that YAML escapes characters beyond U+FFFF as one."""
    return "".join(
        f"\\U{ord(sign):08x}" if ord(sign) > 0xFFFF else json.dumps(sign)[1:-1] for sign in text
    ).join(('"', '"'))
