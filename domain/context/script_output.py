"""Interpretation of a context script's output: content to inject, another agent, or an error."""

import base64
from dataclasses import dataclass

from domain.run.facts import OutputEncoding
from domain.values.json_text import NotJsonError, compact_json, read_json, text_of
from domain.values.text import replace_unstorable, single_line

ERROR_CHARACTERS_MAX = 2000
OVERRIDE_CHARACTERS_MAX = 200
ERRORS_SHOWN_MAX = 20
CONTENT_KEYS = ("message", "content", "text", "result")


@dataclass(frozen=True, slots=True)
class ScriptReading:
    """Result of reading an output.

    `content` and `override` are never blank. If `error` is set, both are None.
    """

    content: str | None = None
    override: str | None = None
    error: str | None = None


class _ScriptError(Exception):
    """The output reports a failure of the script."""


def read_script_output(
    *,
    script_id: str,
    text: str,
    return_key: str | None = None,
    error_key: str | None = None,
    agent_id_override_key: str | None = None,
) -> ScriptReading:
    """Read the output of a script that exited successfully.

    Blank output yields nothing. Text that is not a JSON object is the content, unchanged. If
    `return_key` is set, a JSON list is an error, because it has no keys.

    A JSON object is read in this order:

    1. If `error_key` is set and present, its value is an error, whatever the value is.
    2. The usual error shapes are errors: `error`, `errors`, `status: "error"`, `ok: false`.
    3. If `return_key` is set, it holds the content; if it is absent, that is an error.
    4. Otherwise the content is the first of `message`, `content`, `text`, `result` that is not
       null.
    5. Otherwise the content is the whole object.

    Values other than strings are injected as compact JSON; null means no content. An error discards
    the proposed agent.

    Args:
        script_id: Id of the script, for error messages.
        text: Decoded output.
        return_key: Configured key of the content.
        error_key: Configured key of an error.
        agent_id_override_key: Configured key of the id of another agent; a string, which is
            trimmed.
    """
    if not text.strip():
        return ScriptReading()
    value = _read(text)
    if isinstance(value, list) and return_key:
        return ScriptReading(error=_missing_key_text(script_id, return_key))
    if not isinstance(value, dict):
        return ScriptReading(content=replace_unstorable(text))
    try:
        _raise_reported_error(script_id, value, error_key)
        content = _content(script_id, value, return_key)
    except _ScriptError as error:
        return ScriptReading(error=single_line(str(error), characters_max=ERROR_CHARACTERS_MAX))
    return ScriptReading(
        content=replace_unstorable(content) if content.strip() else None,
        override=_override(value, agent_id_override_key),
    )


def _read(text: str) -> object:
    try:
        return read_json(text)
    except NotJsonError:
        return text


def _raise_reported_error(script_id: str, value: dict[str, object], error_key: str | None) -> None:
    failed = f"Script {script_id} returned error"
    if error_key and error_key in value:
        raise _ScriptError(f"{failed} ({error_key}): {text_of(value[error_key])}")
    error = value.get("error")
    if isinstance(error, str) and error:
        raise _ScriptError(f"{failed}: {error}")
    if isinstance(error, dict) or (isinstance(error, list) and error):
        raise _ScriptError(f"{failed}: {_message_of(error)}")
    errors = value.get("errors")
    if isinstance(errors, list) and errors:
        shown = "; ".join(_item_text(item) for item in errors[:ERRORS_SHOWN_MAX])
        raise _ScriptError(f"Script {script_id} returned errors: {shown}")
    message = value.get("message")
    if value.get("status") == "error":
        raise _ScriptError(f"{failed}: {text_of(message) if message else 'status=error'}")
    if value.get("ok") is False:
        raise _ScriptError(f"{failed}: {text_of(message) if message else 'ok=false'}")


def _content(script_id: str, value: dict[str, object], return_key: str | None) -> str:
    if return_key:
        if return_key not in value:
            raise _ScriptError(_missing_key_text(script_id, return_key))
        returned = value[return_key]
        return "" if returned is None else text_of(returned)
    for key in CONTENT_KEYS:
        found = value.get(key)
        if found is not None:
            return text_of(found)
    return compact_json(value)


def _missing_key_text(script_id: str, return_key: str) -> str:
    text = f'Script {script_id}: returnKey "{return_key}" not found in response'
    return single_line(text, characters_max=ERROR_CHARACTERS_MAX)


def _override(value: dict[str, object], key: str | None) -> str | None:
    proposed = value.get(key) if key else None
    if not isinstance(proposed, str):
        return None
    return replace_unstorable(proposed.strip()[:OVERRIDE_CHARACTERS_MAX]) or None


def _message_of(error: dict[str, object] | list[object]) -> str:
    if isinstance(error, list):
        return compact_json(error)
    for key in ("message", "type"):
        found = error.get(key)
        if found is not None:
            return text_of(found)
    return compact_json(error)


def _item_text(item: object) -> str:
    if isinstance(item, dict) and item.get("message") is not None:
        return text_of(item["message"])
    return text_of(item)


# Storage of a script's output, byte by byte, so that it can be read again.


def decode_printed_text(raw: bytes) -> str:
    """Decode an output: drop a byte order mark, replace invalid bytes with U+FFFD, and trim."""
    return replace_unstorable(raw.decode("utf-8-sig", errors="replace").strip())


def encode_output(raw: bytes) -> tuple[str, OutputEncoding]:
    """Return the output as text for storage, with its encoding.

    UTF-8 without NUL is stored unchanged, anything else as base64.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return base64.b64encode(raw).decode(), "base64"
    return text, "utf-8"


def output_bytes(kept: str, encoding: OutputEncoding | None) -> bytes:
    """Return the original bytes of a stored output."""
    return base64.b64decode(kept) if encoding == "base64" else kept.encode()


def decode_output(kept: str, encoding: OutputEncoding | None) -> str:
    """Return the decoded text of a stored output."""
    return decode_printed_text(output_bytes(kept, encoding))
