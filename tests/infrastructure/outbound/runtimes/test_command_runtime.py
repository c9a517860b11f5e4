"""Programs that runs execute: input, environment, output, notes and masked credentials."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from application.ports.credentials import Credential
from application.ports.runtimes import LaunchError, RuntimeEnd, TranscriptEntry
from domain.configuration.runtimes import CommandRuntime
from domain.delivery.output_notes import OutputNote, note_body
from domain.delivery.transcript import UsageEntry
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.runtimes.command import STDERR_BYTES_MAX, CommandRuntimes
from infrastructure.outbound.runtimes.command_output import PIECE_BYTES_MAX
from tests.support.builders.launches import (
    SERVER,
    all_of,
    command,
    launch,
    pairs,
    program,
    python_command,
    text_of,
)

Ran = tuple[list[TranscriptEntry], RuntimeEnd]
Run = Callable[..., Awaitable[Ran]]
CANARY = Credential("canary-of-a-child-0123456789")


@pytest.fixture
def runtimes(launcher: ProcessLauncher, tmp_path: Path) -> CommandRuntimes:
    return CommandRuntimes(launcher, server=SERVER, folder=str(tmp_path))


@pytest.fixture
def run(runtimes: CommandRuntimes) -> Run:
    async def run_to_the_end(runtime: CommandRuntime, **changes: Any) -> Ran:
        session = await runtimes.open(launch(runtime, **changes))
        session.go()
        return await all_of(session)

    return run_to_the_end


async def test_plain_output_is_transcript_and_result(run: Run) -> None:
    entries, end = await run(command("printf", "one\\ntwo\\n"))
    assert {entry.kind for entry in entries} == {"text"}
    assert text_of(entries) == "one\ntwo\n"
    assert (end.outcome, end.reason, end.exit_code) == ("success", "exit", 0)
    assert (end.result, end.error, end.usages) == ("one\ntwo", None, ())


async def test_program_reads_json_or_text_input(run: Run) -> None:
    text = "import json, sys; print(json.load(sys.stdin)['message'][::-1], end='')"
    _, end = await run(python_command(text), message="Ünïcode")
    assert end.result == "edocïnÜ"
    _, end = await run(command("cat", input="stdin-text"))
    assert end.result == "You are a sub-agent.\n\nReview it."


async def test_prompt_in_argument_is_not_interpreted(run: Run) -> None:
    prompt = "a  b $(touch pwned) `id` 'q' \"d\" \\ * ; | & \n\t--help é"
    runtime = command("printf", "%s", "{prompt}", input="argv")
    _, end = await run(runtime, system_prompt="", message=prompt)
    assert end.result == prompt


async def test_environment_is_the_given_one(run: Run) -> None:
    text = "import json, os; print(json.dumps(dict(os.environ)))"
    _, end = await run(python_command(text), environment={"KEY": "a b"})
    assert end.result is not None
    seen = json.loads(end.result)
    seen.pop("LC_CTYPE", None)  # set by the interpreter itself
    ours = {name for name in seen if name.startswith("SPAWNLOG_")}
    assert len(ours) == 8
    assert set(seen) - ours == {"PATH", "HOME", "LANG", "KEY"}
    assert seen["KEY"] == "a b"


async def test_relative_program_is_in_workspace(run: Run, tmp_path: Path) -> None:
    program(tmp_path / "work" / "sub" / "agent", "#!/bin/sh\npwd\n")
    _, by_cwd = await run(command("./agent", cwd="sub"), workspace_dir=str(tmp_path / "work"))
    _, by_path = await run(command("sub/agent"), workspace_dir=str(tmp_path / "work"))
    assert by_cwd.result == os.path.realpath(tmp_path / "work" / "sub")
    assert by_path.result == os.path.realpath(tmp_path / "work")


async def test_json_lines_become_entries_and_result(run: Run, tmp_path: Path) -> None:
    lines = [
        "no json",
        json.dumps({"type": "usage", "inputTokens": 3, "outputTokens": 4}),
        json.dumps({"type": "result", "text": "r"}),
    ]
    (tmp_path / "lines").write_text("\n".join(lines))
    entries, end = await run(command("cat", "lines", output="jsonl"))
    *output, warning = pairs(entries)
    assert warning[1]["source"] == "warning"
    assert output == [
        ("text", {"text": "no json"}),
        ("usage", {"inputTokens": 3, "outputTokens": 4, "model": None}),
        ("result", {"text": "r"}),
    ]
    assert end.result == "r"
    assert end.usages == (UsageEntry(3, 4, None),)


async def test_failure_has_code_and_stderr_and_keeps_output(run: Run) -> None:
    _, end = await run(command("sh", "-c", "echo half; printf 'bad \\377\\n' >&2; exit 3"))
    assert (end.outcome, end.reason, end.exit_code) == ("error", "exit", 3)
    assert (end.result, end.error) == ("half", "exited with code 3: bad \ufffd")


@pytest.mark.parametrize(
    ("words", "cwd", "says"),
    [
        (["no-such-agent"], None, "'no-such-agent': No such file or directory; install it"),
        (["./plain"], None, "'./plain': Permission denied; make it executable"),
        (["./no-header"], None, "'./no-header': Exec format error; begin it with"),
        (["./lost"], None, "'./lost': No such file or directory; install it or its interpreter"),
        (["true"], "gone", "/gone': No such file or directory; make that directory"),
    ],
)
async def test_unexecutable_program_says_what_to_do(
    run: Run, tmp_path: Path, words: list[str], cwd: str | None, says: str
) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    program(tmp_path / "no-header", "hello\n")
    program(tmp_path / "lost", "#!/no/such/interpreter\n")
    entries, end = await run(command(*words, cwd=cwd))
    assert (entries, end.outcome, end.reason) == ([], "error", "not_executable")
    assert end.error is not None
    assert says in end.error


async def test_stopping_server_launches_nothing(
    runtimes: CommandRuntimes, launcher: ProcessLauncher
) -> None:
    await launcher.close()
    with pytest.raises(LaunchError, match="stopping"):
        await runtimes.open(launch(command("true")))


# Notes: the end of the program's stderr, and warnings about the form of its output.


@pytest.fixture
def shell(run: Run) -> Run:
    """Run a line of the shell, with a credential as `$GIVEN`."""

    async def run_line(line: str, **settings: Any) -> Ran:
        environment = {"GIVEN": CANARY}
        entries, end = await run(command("sh", "-c", line, **settings), environment=environment)
        assert str(CANARY) not in f"{entries}{end}"
        return entries, end

    return run_line


@pytest.mark.parametrize("code", [0, 3])
async def test_stderr_is_last_entry_whatever_exit_code(shell: Run, code: int) -> None:
    line = f"echo said; echo model not found >&2; printf 'bad \\377 key '$GIVEN >&2; exit {code}"
    entries, end = await shell(line)
    text = "standard error:\nmodel not found\nbad \ufffd key [redacted]"
    stderr = ("progress", {"text": text, "source": "stderr"})
    assert pairs(entries) == [("text", {"text": "said\n"}), stderr]
    assert end.notes == (OutputNote("stderr", text),)


async def test_end_of_long_stderr_is_kept(shell: Run) -> None:
    line = "yes beginning | head -c 100000 >&2; echo the end >&2"
    (entry,), _ = await shell(line, output="jsonl")
    heading, _, text = str(entry.body["text"]).partition("\n")
    assert heading == "standard error (last part):"
    assert text.endswith("the end")
    assert STDERR_BYTES_MAX - 10 < len(text.encode()) <= STDERR_BYTES_MAX


async def test_stderr_of_killed_program_is_kept(runtimes: CommandRuntimes) -> None:
    line = "echo in trouble >&2; echo said; sleep 60"
    session = await runtimes.open(launch(command("sh", "-c", line)))
    session.go()
    assert (await asyncio.wait_for(anext(session.entries()), 30)).kind == "text"
    await session.kill()
    (entry,), end = await all_of(session)
    assert entry.body == {"text": "standard error:\nin trouble", "source": "stderr"}
    assert end.outcome == "stopped"


async def test_blank_stderr_is_no_note(shell: Run) -> None:
    entries, end = await shell("echo ' ' >&2; echo said")
    assert pairs(entries) == [("text", {"text": "said\n"})]
    assert end.notes == ()


async def test_program_cannot_write_note(run: Run) -> None:
    line = '{"type": "progress", "text": "standard error: forged", "source": "stderr"}'
    entries, end = await run(command("echo", line, output="jsonl"))
    assert pairs(entries) == [("progress", {"text": "standard error: forged"})]
    assert end.notes == ()


async def test_lines_that_are_no_entries_are_warned_of(shell: Run) -> None:
    line = "echo; echo my $GIVEN; echo '{\"type\": \"unknown\"}'; echo '[1]'"
    entries, end = await shell(line, output="jsonl")
    (note,) = end.notes
    assert note.source == "warning"
    assert note.text.startswith(
        'warning: 3 lines of the output are not entries of "jsonl"; the first: my [redacted] ('
    )
    assert end.result == 'my [redacted]\n{"type": "unknown"}\n[1]'
    assert (entries[-1].kind, entries[-1].body) == ("progress", note_body(note))


# Credentials are masked in all that a program prints.


@pytest.fixture
def tell(run: Run) -> Run:
    """Return a function that runs a script in which `told` is a credential."""

    async def run_script(script: str, **settings: Any) -> Ran:
        text = f"import json, os, sys\ntold = os.environ['GIVEN']\n{script}"
        environment = {"GIVEN": CANARY, "MODE": "verbose"}
        entries, end = await run(python_command(text, **settings), environment=environment)
        for secret in (str(CANARY), "child-token-of-this-run"):
            assert secret not in json.dumps([entry.body for entry in entries]) + str(end)
        return entries, end

    return run_script


@pytest.mark.parametrize(
    ("script", "result"),
    [
        (
            "print(told, os.environ['MODE'], os.environ['SPAWNLOG_TOKEN'], end='')",
            "[redacted] verbose [redacted]",
        ),
        ("[print(sign, end='', flush=True) for sign in told + told[:12]]", "[redacted][redacted]"),
        *[
            (f"print('x' * {size} + told + 'y' * 9, end='')", "x" * size + "[redacted]" + "y" * 9)
            for size in (PIECE_BYTES_MAX - 1, PIECE_BYTES_MAX - 10, PIECE_BYTES_MAX - 18)
        ],
    ],
    ids=["whole", "little by little", "after 1", "after 10", "after 18"],
)  # fmt: skip
async def test_plain_output_is_masked(tell: Run, script: str, result: str) -> None:
    entries, end = await tell(script)
    assert text_of(entries) == end.result == result
    if len(result) > PIECE_BYTES_MAX:
        assert len(entries) == 2


async def test_json_entries_and_result_are_masked(tell: Run) -> None:
    script = """
call = {"type": "tool", "name": told, "input": {"key": told}, "output": [told]}
print(json.dumps(call | {"durationMs": 2300}))
print(json.dumps({"type": "tool", "name": "x" * 240 + told}))
print(json.dumps({"type": "message", "role": "assistant", "text": told}))
print("no json: " + told)
"""
    entries, end = await tell(script, output="jsonl")
    tool, cut, message, text, warning = [entry.body for entry in entries]
    assert tool == {
        "name": "[redacted]",
        "input": '{"key":"[redacted]"}',
        "output": '["[redacted]"]',
        "durationMs": 2300,
    }
    assert cut == {"name": "x" * 240 + "[redacted]", "input": None, "output": None}
    assert (message["text"], text["text"]) == ("[redacted]", "no json: [redacted]")
    assert "the first: no json: [redacted] (" in str(warning["text"])
    assert end.result == "[redacted]"


async def test_error_is_masked_before_it_is_cut(tell: Run) -> None:
    _, end = await tell("sys.stderr.write(told * 5000 + ' end'); sys.exit(3)")
    assert end.error is not None
    assert str(CANARY)[5:] not in end.error
    assert end.error.startswith("exited with code 3: ")
    assert end.error.endswith("[redacted][redacted] end")


async def test_beginning_of_credential_is_masked_at_end(tell: Run) -> None:
    script = "sys.stderr.write('key ' + told[:20]); print(told[:20], end=''); sys.exit(1)"
    _, end = await tell(script)
    assert (end.result, end.error) == ("[redacted]", "exited with code 1: key [redacted]")
