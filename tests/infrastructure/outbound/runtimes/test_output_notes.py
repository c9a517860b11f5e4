"""Notes on the output of a program: the end of its stderr, and warnings about the form."""

import asyncio
from pathlib import Path

import pytest

from application.ports.credentials import Credential
from application.ports.runtimes import RuntimeEnd, TranscriptEntry
from domain.configuration.runtimes import CommandRuntime
from domain.delivery.output_notes import OutputNote, note_body
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.masking.mask import Masker
from infrastructure.outbound.runtimes.command import STDERR_BYTES_MAX, CommandRuntimes
from infrastructure.outbound.runtimes.command_output import (
    FIRST_LINE_CHARACTERS_MAX,
    RESULT_BYTES_MAX,
    JsonlOutput,
    TextOutput,
    command_output,
)
from tests.support.builders.launches import SERVER, all_of, command, launch, pairs

SECRET = "sk-0123456789-canary"


async def execute(
    launcher: ProcessLauncher, folder: Path, runtime: CommandRuntime
) -> tuple[list[TranscriptEntry], RuntimeEnd]:
    runtimes = CommandRuntimes(launcher, server=SERVER, folder=str(folder))
    session = await runtimes.open(launch(runtime, environment={"API_KEY": Credential(SECRET)}))
    session.go()
    return await all_of(session)


@pytest.mark.parametrize("code", [0, 3])
async def test_stderr_is_last_entry_whatever_exit_code(
    launcher: ProcessLauncher, tmp_path: Path, code: int
) -> None:
    words = f"echo said; echo model not found >&2; printf 'bad \\377 key '$API_KEY >&2; exit {code}"
    entries, end = await execute(launcher, tmp_path, command("sh", "-c", words))
    text = "standard error:\nmodel not found\nbad \ufffd key [redacted]"
    assert pairs(entries) == [
        ("text", {"text": "said\n"}),
        ("progress", {"text": text, "source": "stderr"}),
    ]
    assert end.notes == (OutputNote("stderr", text),)


async def test_end_of_long_stderr_is_kept(launcher: ProcessLauncher, tmp_path: Path) -> None:
    words = "yes beginning | head -c 100000 >&2; echo the end >&2"
    (entry,), _ = await execute(launcher, tmp_path, command("sh", "-c", words, output="jsonl"))
    heading, _, text = str(entry.body["text"]).partition("\n")
    assert heading == "standard error, the end of it:"
    assert text.endswith("beginning\nthe end") or text.endswith("the end")
    assert STDERR_BYTES_MAX - 10 < len(text.encode()) <= STDERR_BYTES_MAX


async def test_stderr_of_killed_program_is_kept(launcher: ProcessLauncher, tmp_path: Path) -> None:
    runtimes = CommandRuntimes(launcher, server=SERVER, folder=str(tmp_path))
    words = "echo in trouble >&2; echo said; sleep 60"
    session = await runtimes.open(launch(command("sh", "-c", words)))
    session.go()
    entries = session.entries()
    assert (await asyncio.wait_for(anext(entries), 30)).kind == "text"
    await session.kill()
    (entry,), end = await all_of(session)
    assert entry.body == {"text": "standard error:\nin trouble", "source": "stderr"}
    assert end.outcome == "stopped"


async def test_program_without_stderr_has_no_note(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    entries, end = await execute(launcher, tmp_path, command("sh", "-c", "echo ' ' >&2; echo said"))
    assert pairs(entries) == [("text", {"text": "said\n"})]
    assert end.notes == ()


async def test_program_cannot_write_note(launcher: ProcessLauncher, tmp_path: Path) -> None:
    line = '{"type": "progress", "text": "standard error: forged", "source": "stderr"}'
    entries, end = await execute(launcher, tmp_path, command("echo", line, output="jsonl"))
    assert pairs(entries) == [("progress", {"text": "standard error: forged"})]
    assert end.notes == ()


async def test_lines_that_are_no_entries_are_warned_of(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    words = "echo; echo my $API_KEY; echo '{\"type\": \"unknown\"}'; echo '[1]'"
    entries, end = await execute(launcher, tmp_path, command("sh", "-c", words, output="jsonl"))
    (note,) = end.notes
    assert note.source == "warning"
    assert note.text.startswith(
        'warning: 3 lines of the output are no entries of "jsonl"; the first: my [redacted] ('
    )
    assert end.result == 'my [redacted]\n{"type": "unknown"}\n[1]'
    assert (entries[-1].kind, entries[-1].body) == ("progress", note_body(note))


def read_all(output: JsonlOutput | TextOutput, data: bytes) -> None:
    for _ in output.take(data):
        pass
    for _ in output.finish():
        pass


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
    read_all(output, b"plain\n" + line + b"\n")
    assert output.reading().result == result
    (warning,) = output.warnings()
    assert warning.startswith('1 line of the output is no entry of "jsonl"; the first: plain (')


def test_output_of_its_form_has_no_warning() -> None:
    jsonl, text = JsonlOutput(), TextOutput()
    read_all(jsonl, '{"type": "progress", "text": "é"}\n\n \n'.encode())
    read_all(text, "é\ufffd".encode())
    assert (jsonl.warnings(), text.warnings()) == ([], [])
    assert jsonl.reading().result is None


def test_first_line_and_text_are_bounded() -> None:
    output = JsonlOutput(Masker(()))
    read_all(output, b"\n".join([b"x" * 1_000_000] * 3))
    (warning,) = output.warnings()
    assert len(warning) < FIRST_LINE_CHARACTERS_MAX + 200
    assert len(output.reading().result or "") == RESULT_BYTES_MAX


@pytest.mark.parametrize("form", ["text", "jsonl"])
@pytest.mark.parametrize("cut", [20, 21, 22])
def test_invalid_utf8_is_warned_of(form: str, cut: int) -> None:
    data = b'{"type": "message", "role": "assistant", "text": "\xc3\xa9 \xff"}\n'
    output = command_output("text" if form == "text" else "jsonl")
    for chunk in (data[:cut], data[cut:]):
        for _ in output.take(chunk):
            pass
    for _ in output.finish():
        pass
    (warning,) = output.warnings()
    assert warning.startswith("the output is not valid UTF-8")
    assert output.reading().result


def test_text_that_ends_within_character_is_warned_of() -> None:
    output = TextOutput()
    read_all(output, b"caf\xc3")
    assert len(output.warnings()) == 1
