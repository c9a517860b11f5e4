"""Programs that tell what they were given: what is kept of it has no credential in it."""

import json
from pathlib import Path

import pytest

from application.ports.credentials import Credential
from application.ports.runtimes import RuntimeEnd, TranscriptEntry
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.runtimes.command import CommandRuntimes
from infrastructure.outbound.runtimes.command_output import PIECE_BYTES_MAX
from tests.support.builders.launches import SERVER, all_of, launch, python_command, text_of

CANARY = Credential("canary-of-a-child-0123456789")
TELLER = """
import json, os, sys
told = os.environ["GIVEN"]
{}
"""

Told = tuple[list[TranscriptEntry], RuntimeEnd]


async def tell(launcher: ProcessLauncher, folder: Path, script: str, **settings: object) -> Told:
    runtimes = CommandRuntimes(launcher, server=SERVER, folder=str(folder))
    runtime = python_command(TELLER.format(script), **settings)
    session = await runtimes.open(launch(runtime, environment={"GIVEN": CANARY, "MODE": "verbose"}))
    session.go()
    entries, end = await all_of(session)
    told = json.dumps([entry.body for entry in entries]) + str(end)
    assert str(CANARY) not in told
    assert "child-token-of-this-run" not in told
    return entries, end


async def test_plain_output_and_its_result_are_masked(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    script = "print(told, os.environ['MODE'], os.environ['SPAWNLOG_TOKEN'], end='')"
    entries, end = await tell(launcher, tmp_path, script)
    assert text_of(entries) == end.result == "[redacted] verbose [redacted]"


@pytest.mark.parametrize("before", [1, 10, 18])
async def test_a_value_across_the_end_of_a_piece_is_masked(
    launcher: ProcessLauncher, tmp_path: Path, before: int
) -> None:
    script = f"print('x' * {PIECE_BYTES_MAX - before} + told + 'y' * 9, end='')"
    entries, end = await tell(launcher, tmp_path, script)
    assert len(entries) == 2
    assert end.result == "x" * (PIECE_BYTES_MAX - before) + "[redacted]" + "y" * 9


async def test_a_value_that_is_printed_little_by_little_is_masked(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    script = "[print(sign, end='', flush=True) for sign in told + told[:12]]"
    entries, end = await tell(launcher, tmp_path, script)
    assert text_of(entries) == end.result == "[redacted][redacted]"


async def test_entries_of_json_and_the_result_are_masked(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    script = """
print(json.dumps({"type": "tool", "name": told, "input": {"key": told}, "output": [told]}))
print(json.dumps({"type": "message", "role": "assistant", "text": told}))
print("no json: " + told)
"""
    entries, end = await tell(launcher, tmp_path, script, output="jsonl")
    tool, message, text, warning = [entry.body for entry in entries]
    assert tool == {
        "name": "[redacted]",
        "input": '{"key":"[redacted]"}',
        "output": '["[redacted]"]',
    }
    assert (message["text"], text["text"]) == ("[redacted]", "no json: [redacted]")
    assert "the first: no json: [redacted] (" in str(warning["text"])
    assert end.result == "[redacted]"


async def test_a_name_that_is_cut_shows_no_part_of_a_value(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    script = 'print(json.dumps({"type": "tool", "name": "x" * 240 + told}))'
    (tool,), _ = await tell(launcher, tmp_path, script, output="jsonl")
    assert tool.body["name"] == "x" * 240 + "[redacted]"


async def test_an_error_is_masked_before_it_is_cut(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    script = "sys.stderr.write(told * 5000 + ' end'); sys.exit(3)"
    _, end = await tell(launcher, tmp_path, script)
    assert end.error is not None
    assert str(CANARY)[5:] not in end.error
    assert end.error.startswith("exited with code 3: ")
    assert end.error.endswith("[redacted][redacted] end")


async def test_a_program_that_ends_within_a_value_shows_no_long_part_of_it(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    script = "sys.stderr.write('key ' + told[:20]); print(told[:20], end=''); sys.exit(1)"
    _, end = await tell(launcher, tmp_path, script)
    assert (end.result, end.error) == ("[redacted]", "exited with code 1: key [redacted]")
