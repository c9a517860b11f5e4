"""What a hook answered, as far as it can be used."""

from collections.abc import AsyncIterator

from application.ports.hooks import HookAnswer, HookFailure
from domain.values.json_text import NotJson, read_json

ANSWER_BYTES_MAX = 65_536


async def answer_of(
    status_code: int, encoding: str | None, body: AsyncIterator[bytes]
) -> HookAnswer:
    """The answer; no more of its body is read than it may have. Raises `HookFailure`."""
    if not 200 <= status_code < 300:
        raise _unusable_answer(f"the hook answered HTTP {status_code}", status_code)
    if encoding is not None and encoding.strip().lower() not in ("", "identity"):
        raise _unusable_answer(
            "the hook answered in an encoding that was not asked for", status_code
        )
    received = bytearray()
    async for part in body:
        received += part
        if len(received) > ANSWER_BYTES_MAX:
            message = f"the hook answered more than {ANSWER_BYTES_MAX} bytes"
            raise _unusable_answer(message, status_code)
    if not received.strip():
        return HookAnswer(status_code)
    try:
        said = read_json(received.decode("utf-8"))
    except (NotJson, UnicodeDecodeError):
        raise _unusable_answer(
            "the hook answered something that is not JSON", status_code
        ) from None
    if said is not None and not isinstance(said, dict):
        raise _unusable_answer("the hook answered JSON that is not an object", status_code)
    return HookAnswer(status_code, said)


def _unusable_answer(text: str, status_code: int) -> HookFailure:
    return HookFailure(text, status_code=status_code)
