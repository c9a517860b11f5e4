"""Output of a command runtime as entries, and its end."""

import json
import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.ports.credentials import Credential
from application.ports.runtimes import RuntimeEnd, TranscriptEntry
from domain.delivery.transcript import LINE_BYTES_MAX, RuntimeReading
from infrastructure.outbound.child_processes.program import Exit
from infrastructure.outbound.masking.mask import MaskedText, Masker
from infrastructure.outbound.runtimes.command import end_of, secrets_of
from infrastructure.outbound.runtimes.command_output import (
    FIRST_LINE_CHARACTERS_MAX,
    PIECE_BYTES_MAX,
    RESULT_BYTES_MAX,
    CommandOutput,
    JsonlOutput,
    TextOutput,
    command_output,
)
from infrastructure.outbound.runtimes.streams import AT_ONCE_BYTES_MAX, OutputThreads
from tests.support.builders.launches import command, launch, pairs, text_of
from tests.support.tiers import examples


def fed(output: CommandOutput, *chunks: bytes) -> list[TranscriptEntry]:
    entries: list[TranscriptEntry] = []
    for chunk in chunks:
        entries += output.take(chunk)
    return entries + list(output.finish())


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


@given(st.binary(max_size=300), st.lists(st.integers(min_value=0), max_size=8))
def test_text_is_the_same_however_it_arrives(data: bytes, places: list[int]) -> None:
    output = TextOutput()
    entries = fed(output, *cut(data, places))
    expected = data.decode(errors="replace").replace("\0", "\ufffd")
    assert text_of(entries) == expected
    result = expected.rstrip("\r\n")
    assert output.reading().result == (result if result.strip() else None)


@examples(25)
@given(
    st.lists(
        st.tuples(st.sampled_from([b"x", b"\xff", "é".encode(), b"\n"]), st.integers(1, 90_000))
    ),
    st.integers(1, 65_536),
)
def test_no_piece_of_text_is_over_its_limit(runs: list[tuple[bytes, int]], step: int) -> None:
    data = b"".join(sign * count for sign, count in runs)
    entries = fed(TextOutput(), *(data[at : at + step] for at in range(0, len(data), step)))
    assert text_of(entries) == data.decode(errors="replace")
    assert all(0 < len(text_of([entry]).encode()) <= PIECE_BYTES_MAX for entry in entries)


def test_whole_line_of_text_is_read_at_once() -> None:
    output = TextOutput()
    assert text_of(list(output.take(b"one\ntwo\nthr"))) == "one\ntwo\n"
    assert list(output.take(b"e")) == []
    assert text_of(list(output.take(b"e\n"))) == "three\n"
    assert list(output.finish()) == []


def test_lines_that_fit_are_kept_whole() -> None:
    lines = b"".join(b"%06d" % number + b"x" * 994 + b"\n" for number in range(200))
    entries = fed(TextOutput(), lines)
    assert text_of(entries) == lines.decode()
    assert all(text_of([entry]).endswith("x\n") for entry in entries)


def test_long_line_is_cut_between_characters() -> None:
    entries = fed(TextOutput(), b"x" + "é".encode() * PIECE_BYTES_MAX)
    assert [len(text_of([entry]).encode()) for entry in entries] == [65_535, 65_536, 2]


def test_result_is_kept_to_first_mebibyte() -> None:
    output = TextOutput()
    fed(output, *(["é".encode() * 30_000] * 20))
    assert output.reading().result == "é" * (RESULT_BYTES_MAX // 2)


def test_only_line_end_of_result_is_trimmed() -> None:
    output = TextOutput()
    fed(output, b"  two \n lines \r\n\n")
    assert output.reading().result == "  two \n lines "


@given(st.lists(st.text(max_size=20), max_size=6), st.lists(st.integers(min_value=0), max_size=8))
def test_json_lines_are_the_same_however_they_arrive(texts: list[str], places: list[int]) -> None:
    lines = [json.dumps({"type": "progress", "text": text}) for text in texts]
    entries = fed(JsonlOutput(), *cut("\n".join(lines).encode(), places))
    expected = [text.replace("\0", "\ufffd") for text in texts]
    assert [entry.body["text"] for entry in entries] == expected


def test_last_line_needs_no_end_and_others_are_text() -> None:
    output = JsonlOutput()
    entries = fed(
        output,
        b'warming up\n\n\xff\r\n{"type":"result","text":"r1"}\n{"type":"result",',
        b'"text":"r2"}',
    )
    assert pairs(entries) == [
        ("text", {"text": "warming up"}),
        ("text", {"text": "\ufffd"}),
        ("result", {"text": "r1"}),
        ("result", {"text": "r2"}),
    ]
    assert output.reading().result == "r2"


def test_entries_of_one_chunk_are_read_one_by_one() -> None:
    output = JsonlOutput()
    entries = output.take(b'{"type":"result","text":"1"}\n{"type":"result","text":"2"}\n')
    next(entries)
    assert output.reading().result == "1"


@pytest.mark.parametrize("ended", [b"\n", b""])
def test_line_over_limit_is_too_long(ended: bytes) -> None:
    fits = JsonlOutput()
    (entry,) = fed(fits, b"before\n" + b"x" * LINE_BYTES_MAX + ended)[1:]
    assert (fits.too_long, len(str(entry.body["text"]))) == (None, LINE_BYTES_MAX)
    over = JsonlOutput()
    entries = list(over.take(b"before\n" + b"x" * (LINE_BYTES_MAX + 1) + ended))
    assert text_of(entries) == "before"
    assert over.too_long is not None
    assert "1048576 bytes" in over.too_long


# Warnings about the form.


@pytest.mark.parametrize(
    ("line", "result"),
    [
        (b'{"type": "result", "text": "r"}', "r"),
        (b'{"type": "message", "role": "assistant", "text": "m"}', "m"),
        (b'{"type": "result", "text": " "}', "plain"),
        (b'{"type": "progress", "text": "p"}', "plain"),
    ],
)
def test_text_is_result_if_nothing_else_is(line: bytes, result: str) -> None:
    output = JsonlOutput()
    fed(output, b"plain\n" + line + b"\n")
    assert output.reading().result == result
    (warning,) = output.warnings()
    assert warning.startswith('1 line of the output is not an entry of "jsonl"; the first: plain (')


def test_output_of_its_form_has_no_warning() -> None:
    jsonl, text = JsonlOutput(), TextOutput()
    fed(jsonl, '{"type": "progress", "text": "é"}\n\n \n'.encode())
    fed(text, "é\ufffd".encode())
    assert (jsonl.warnings(), text.warnings()) == ([], [])
    assert jsonl.reading().result is None


def test_first_line_and_text_are_bounded() -> None:
    output = JsonlOutput(Masker(()))
    fed(output, b"\n".join([b"x" * 1_000_000] * 3))
    (warning,) = output.warnings()
    assert len(warning) < FIRST_LINE_CHARACTERS_MAX + 200
    assert len(output.reading().result or "") == RESULT_BYTES_MAX


@pytest.mark.parametrize("form", ["text", "jsonl"])
@pytest.mark.parametrize("at", [20, 21, 22])
def test_invalid_utf8_is_warned_of(form: str, at: int) -> None:
    data = b'{"type": "message", "role": "assistant", "text": "\xc3\xa9 \xff"}\n'
    output = command_output("text" if form == "text" else "jsonl")
    fed(output, data[:at], data[at:])
    (warning,) = output.warnings()
    assert warning.startswith("the output is not valid UTF-8")
    assert output.reading().result


def test_text_that_ends_within_character_is_warned_of() -> None:
    output = TextOutput()
    fed(output, b"caf\xc3")
    assert len(output.warnings()) == 1


def ended(exit_: Exit, stderr: str = "", too_much: str | None = None) -> RuntimeEnd:
    reading = RuntimeReading(last_result="r")
    return end_of(exit_, reading=reading, stderr=stderr, too_much=too_much)


@pytest.mark.parametrize(
    ("exit_", "outcome", "reason", "error"),
    [
        (Exit(code=0), "success", "exit", None),
        (Exit(code=3), "error", "exit", "exited with code 3: tail"),
        (Exit(signal=11), "error", "signal", "ended by signal SIGSEGV: tail"),
        (Exit(signal=40), "error", "signal", "ended by signal 40: tail"),
        (Exit(error="killed by the server", killed=True), "stopped", "stopped", None),
        (
            Exit(error="no heartbeat from the server: killed after 15 seconds", killed=True),
            "error",
            "interrupted",
            "interrupted: no heartbeat from the server: killed after 15 seconds: tail",
        ),
        (Exit(error="the gate died"), "unknown", "interrupted", "the gate died: tail"),
    ],
)
def test_the_outcome_is_that_of_the_exit(
    exit_: Exit, outcome: str, reason: str, error: str | None
) -> None:
    end = ended(exit_, " tail\n")
    assert (end.outcome, end.reason, end.error) == (outcome, reason, error)
    assert (end.exit_code, end.signal, end.result) == (exit_.code, exit_.signal, "r")


def test_limit_counts_more_than_its_kill() -> None:
    end = ended(Exit(error="killed", killed=True), too_much="it printed too much")
    assert (end.outcome, end.reason) == ("error", "output_limit")
    assert end.error == "ended because it printed too much"


def test_end_of_stderr_is_shown() -> None:
    error = ended(Exit(code=1), "first" + "é" * 8000 + "last").error
    assert error is not None
    shown = error.removeprefix("exited with code 1: ")
    assert shown == "é" * 4094 + "last"


def test_secrets_are_token_credentials_and_named_ones() -> None:
    launched = launch(
        command("agent"),
        environment={
            "OPENAI_API_KEY": "sk-12345678",
            "MODE": "verbosely",
            "OPENAI": Credential("given by a profile"),
            "EMPTY_TOKEN": "",
        },
    )
    assert secrets_of(launched) == (
        "sk-12345678",
        "given by a profile",
        "child-token-of-this-run",
    )


SECRET = "".join(f"{number:04x}-" for number in range(800))


@pytest.fixture
def threads() -> Iterator[OutputThreads]:
    threads = OutputThreads()
    yield threads
    threads.close()


@pytest.mark.parametrize(
    ("size", "is_aside"), [(1, False), (AT_ONCE_BYTES_MAX, False), (AT_ONCE_BYTES_MAX + 1, True)]
)
async def test_much_output_is_masked_in_a_thread(
    threads: OutputThreads, size: int, is_aside: bool
) -> None:
    found = await threads.look(size, threading.get_ident)
    assert (found != threading.get_ident()) is is_aside


class Counted(Masker):
    """Counts how much it looks at."""

    looked_at = 0

    def look(self, text: str):  # type: ignore[no-untyped-def]
        self.looked_at += len(text)
        return super().look(text)


def test_beginning_of_value_is_not_searched_per_character() -> None:
    masking = Counted([SECRET])
    masked = MaskedText(masking)
    for sign in SECRET:
        masked.take(sign)
    assert masking.looked_at < 600 * len(SECRET)
