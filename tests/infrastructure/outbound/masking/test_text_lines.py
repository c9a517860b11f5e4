"""Text lines in JSON output, without the credentials that they contain."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.ports.credentials import REDACTED
from application.ports.runtimes import TranscriptEntry
from domain.delivery.transcript import LINE_BYTES_MAX
from infrastructure.outbound.masking.mask import Masker
from infrastructure.outbound.runtimes.command_output import JsonlOutput
from tests.support.builders.launches import pairs, text_of
from tests.support.servers.canaries import encoded

KEY = "canary-of-a-profile-93bd"
OTHER = "canary-of-another-one-64ef"


def texts(output: JsonlOutput, data: bytes, size: int) -> list[str]:
    entries: list[TranscriptEntry] = []
    for at in range(0, len(data), size):
        entries += output.take(data[at : at + size])
    return [text_of([entry]) for entry in (*entries, *output.finish())]


@pytest.mark.parametrize("before", range(57))
def test_value_broken_over_lines_is_masked(before: int) -> None:
    text = f"{'x' * before}NAME={KEY}\nNEXT={OTHER}\n"
    lines = base64.encodebytes(text.encode())
    result = "".join(texts(JsonlOutput(Masker([KEY, OTHER])), lines, 50))
    wanted = [form for item in (KEY, OTHER) for form in (item, *encoded(item))]
    assert [form for form in wanted if form in result] == []
    assert result.count(REDACTED) == 2


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"))),
    st.integers(1, 40),
)
def test_lines_without_a_value_are_entries_of_their_own(lines: list[str], size: int) -> None:
    expected = [line for line in lines if line.strip()]
    text = "".join(f"{line}\n" for line in lines)
    if any(line.strip().startswith("{") for line in lines):
        expected, text = ["{"], "{"
    assert texts(JsonlOutput(Masker([KEY])), text.encode(), size) == expected


def test_a_line_is_told_when_it_is_printed() -> None:
    output = JsonlOutput(Masker([KEY]))
    assert pairs(list(output.take(b"warming up can\n"))) == [("text", {"text": "warming up can"})]


def test_half_of_a_value_is_told_before_next_entry() -> None:
    output = JsonlOutput(Masker([KEY]))
    half = base64.b64encode(KEY.encode())[:20]
    assert list(output.take(b"it is " + half + b"\n")) == []
    entry = json.dumps({"type": "result", "text": "done"}).encode()
    result = list(output.take(entry + b"\n"))
    assert pairs(result) == [
        ("text", {"text": f"it is {REDACTED}"}),
        ("result", {"text": "done"}),
    ]
    assert output.reading().entries == 2


def test_lines_joined_by_values_are_bounded() -> None:
    key = base64.b64encode(KEY.encode()).decode()
    line = key[20:] + "." * 100_000 + key[:20] + "\n"
    result = texts(JsonlOutput(Masker([KEY])), (line * 30).encode(), 64 * 1024)
    assert "".join(result).count(".") == 3_000_000
    assert max(len(text) for text in result) <= LINE_BYTES_MAX
    assert "".join(result).count(REDACTED) == 30
