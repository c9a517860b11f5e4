"""What is kept of a script's output gives the same reading again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.context.scripts import read_finished, script_receipt
from application.log.texts import TextStore
from application.ports.scripts import ScriptFinished
from domain.configuration.context_scripts import ContextScript
from domain.context.script_output import decode_printed_text, encode_output
from domain.values.json_text import compact_json
from tests.support.builders.script_receipts import receipt
from tests.support.builders.script_replay import raw_output, reading_again
from tests.support.builders.storytelling import run_id

WORDS = st.sampled_from(["message", "error", "agent", "errors", "ok", "status", "x", "é", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=8,
)
OUTPUTS = st.binary(max_size=60) | (st.text(max_size=40) | VALUES.map(compact_json)).map(
    lambda text: text.encode("utf-8", "replace")
)
SCRIPT = ContextScript.model_validate(
    {"id": "s", "uri": "/x", "returnKey": "message", "errorKey": "x", "agentIdOverrideKey": "agent"}
)


@given(OUTPUTS, st.sampled_from([0, 3]))
def test_what_is_kept_is_read_as_it_was(raw: bytes, code: int) -> None:
    finished = ScriptFinished(raw=raw, exit_code=code, error="it failed" if code else None)
    text_store = TextStore(run_id(1), b"key", lambda: run_id(2))
    reading = read_finished(SCRIPT, finished)
    kept = script_receipt(SCRIPT, finished, reading, text_store)
    texts = {one.ref.hmac: one.text for one in text_store.contents}
    assert kept.output_bytes == len(raw)
    if kept.output is None:
        assert raw == b""
        return
    text = texts[kept.output.hmac]
    assert raw_output(text, kept.output_encoding) == raw
    assert kept.output_hmac == text_store.hash(raw)
    error = texts[kept.error.hmac] if kept.error else None
    assert reading_again(kept, SCRIPT, text, error) == (None if code else reading)


@given(st.binary(max_size=40))
def test_an_output_is_kept_as_text_or_in_base64(raw: bytes) -> None:
    text, encoding = encode_output(raw)
    assert "\0" not in text
    text.encode()
    assert raw_output(text, encoding) == raw


def test_the_text_of_an_output_is_trimmed_and_storable() -> None:
    assert decode_printed_text(b"\n a\xff\0 \n") == "a\ufffd\ufffd"


def test_a_byte_order_mark_is_no_part_of_an_output() -> None:
    assert decode_printed_text(b"\xef\xbb\xbf \n## Identity\n") == "## Identity"
    assert decode_printed_text(b"\xef\xbb\xbf\n") == ""


@pytest.mark.parametrize(
    ("code", "status"),
    [(None, None), (None, 200)],
    ids=["a program that was killed", "an answer that never ended"],
)
def test_what_was_never_read_is_not_read_again(code: int | None, status: int | None) -> None:
    raw, error = b'{"error": "not the reason"}', "Script execution timed out after 10 seconds"
    finished = ScriptFinished(raw=raw, exit_code=code, status_code=status, error=error)
    text_store = TextStore(run_id(1), b"key", lambda: run_id(2))
    kept = script_receipt(SCRIPT, finished, read_finished(SCRIPT, finished), text_store)
    assert reading_again(kept, SCRIPT, raw.decode(), error) is None


@pytest.mark.parametrize(("status", "read"), [(200, True), (204, True), (301, False), (503, False)])
def test_an_error_status_was_never_read(status: int, read: bool) -> None:
    kept = receipt("s", "injected" if read else "failed", status_code=status)
    again = reading_again(kept, SCRIPT, '{"message": "m"}')
    assert (again is not None) is read


def test_an_output_of_an_older_release_is_the_text_itself() -> None:
    again = reading_again(receipt("s", "injected"), SCRIPT, "plain")
    assert again is not None
    assert again.content == "plain"
