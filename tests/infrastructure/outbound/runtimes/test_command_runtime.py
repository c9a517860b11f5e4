"""A process per run."""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from application.ports.runtimes import CannotLaunch, RuntimeEnd, TranscriptEntry
from domain.configuration.runtimes import CommandRuntime
from domain.delivery.transcript import UsageEntry
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.runtimes.command import CommandRuntimes
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


@pytest.fixture
def run(launcher: ProcessLauncher, tmp_path: Path) -> Run:
    runtimes = CommandRuntimes(launcher, server=SERVER, folder=str(tmp_path))

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


async def test_the_program_reads_what_it_is_to_do_as_json(run: Run) -> None:
    text = "import json, sys; print(json.load(sys.stdin)['message'][::-1], end='')"
    _, end = await run(python_command(text), message="Ünïcode")
    assert end.result == "edocïnÜ"


async def test_the_program_reads_what_it_is_to_do_as_text(run: Run) -> None:
    _, end = await run(command("cat", input="stdin-text"))
    assert end.result == "You are a sub-agent.\n\nReview it."


async def test_a_prompt_arrives_as_it_is_in_an_argument(run: Run) -> None:
    prompt = "a  b $(touch pwned) `id` 'q' \"d\" \\ * ; | & \n\t--help é"
    runtime = command("printf", "%s", "{prompt}", input="argv")
    _, end = await run(runtime, system_prompt="", message=prompt)
    assert end.result == prompt


async def test_the_environment_is_the_given_one_and_no_other(run: Run) -> None:
    text = "import json, os; print(json.dumps(dict(os.environ)))"
    _, end = await run(python_command(text), environment={"KEY": "a b"})
    assert end.result is not None
    seen = json.loads(end.result)
    seen.pop("LC_CTYPE", None)  # set by the interpreter itself
    ours = {name for name in seen if name.startswith("SPAWNLOG_")}
    assert len(ours) == 8
    assert set(seen) - ours == {"PATH", "HOME", "LANG", "KEY"}
    assert seen["KEY"] == "a b"


async def test_a_relative_program_is_one_of_the_workspace(run: Run, tmp_path: Path) -> None:
    program(tmp_path / "work" / "sub" / "agent", "#!/bin/sh\npwd\n")
    _, by_cwd = await run(command("./agent", cwd="sub"), workspace_dir=str(tmp_path / "work"))
    _, by_path = await run(command("sub/agent"), workspace_dir=str(tmp_path / "work"))
    assert by_cwd.result == os.path.realpath(tmp_path / "work" / "sub")
    assert by_path.result == os.path.realpath(tmp_path / "work")


async def test_a_bare_name_is_looked_up_on_the_childs_own_path(run: Run, tmp_path: Path) -> None:
    program(tmp_path / "bin" / "an-agent", "#!/bin/sh\necho found\n")
    _, end = await run(command("an-agent"), environment={"PATH": str(tmp_path / "bin")})
    assert end.result == "found"


async def test_json_lines_become_entries_usage_and_result(run: Run, tmp_path: Path) -> None:
    lines = [
        "no json",
        json.dumps({"type": "usage", "inputTokens": 3, "outputTokens": 4}),
        json.dumps({"type": "result", "text": "r"}),
    ]
    (tmp_path / "lines").write_text("\n".join(lines))
    entries, end = await run(command("cat", "lines", output="jsonl"))
    *said, warning = pairs(entries)
    assert warning[1]["source"] == "warning"
    assert said == [
        ("text", {"text": "no json"}),
        ("usage", {"inputTokens": 3, "outputTokens": 4, "model": None}),
        ("result", {"text": "r"}),
    ]
    assert end.result == "r"
    assert end.usages == (UsageEntry(3, 4, None),)


async def test_a_failure_carries_code_and_stderr_and_keeps_the_output(run: Run) -> None:
    _, end = await run(command("sh", "-c", "echo half; printf 'bad \\377\\n' >&2; exit 3"))
    assert (end.outcome, end.reason, end.exit_code) == ("error", "exit", 3)
    assert (end.result, end.error) == ("half", "exited with code 3: bad \ufffd")


async def test_a_child_that_dies_of_a_signal_is_told_from_one_that_was_stopped(run: Run) -> None:
    _, end = await run(command("sh", "-c", "kill -SEGV $$"))
    assert (end.outcome, end.reason, end.signal) == ("error", "signal", 11)
    assert end.error == "ended by signal SIGSEGV"


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
async def test_what_cannot_be_executed_says_what_to_do(
    run: Run, tmp_path: Path, words: list[str], cwd: str | None, says: str
) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    program(tmp_path / "no-header", "hello\n")
    program(tmp_path / "lost", "#!/no/such/interpreter\n")
    entries, end = await run(command(*words, cwd=cwd))
    assert (entries, end.outcome, end.reason) == ([], "error", "not_executable")
    assert end.error is not None
    assert says in end.error


async def test_a_server_that_is_stopping_launches_nothing(tmp_path: Path) -> None:
    closed = ProcessLauncher()
    await closed.close()
    runtimes = CommandRuntimes(closed, server=SERVER, folder=str(tmp_path))
    with pytest.raises(CannotLaunch, match="stopping"):
        await runtimes.open(launch(command("true")))
