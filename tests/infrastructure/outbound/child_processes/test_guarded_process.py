"""Programs behind gates: what they are given and how they end."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.child_processes.program import Exit, Program
from tests.support.servers.guarded_programs import Runner, python, started
from tests.support.servers.process_table import children

# Says on stderr how much stdout takes before it would wait, then prints a million bytes more.
FILL_THEN_PRINT = """
import os, sys
os.set_blocking(1, False)
taken = 0
try:
    while True:
        taken += os.write(1, b"x" * 4096)
except BlockingIOError:
    os.write(2, b"%d" % taken)
os.set_blocking(1, True)
os.write(1, b"x" * 1_000_000)
open(sys.argv[1], "w").close()
"""


async def test_a_program_prints_and_exits(run: Runner) -> None:
    finished = await run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert finished.stdout == b"out\n"
    assert finished.stderr_tail == b"err\n"
    assert finished.exit == Exit(code=3)


async def test_five_mebibytes_go_in_and_come_out(run: Runner) -> None:
    data = os.urandom(5 * 1024 * 1024)
    finished = await run("cat", stdin=data)
    assert finished.stdout == data
    assert finished.exit == Exit(code=0)


async def test_a_program_that_ignores_its_input_ends_all_the_same(run: Runner) -> None:
    assert (await run("true", stdin=b"x" * 5_000_000)).exit == Exit(code=0)


async def test_a_program_that_closes_its_input_may_go_on_to_print(run: Runner) -> None:
    finished = await run("sh", "-c", "exec <&-; seq 100000 | tail -n 1", stdin=b"x" * 5_000_000)
    assert (finished.stdout, finished.exit) == (b"100000\n", Exit(code=0))


async def test_without_input_stdin_is_empty(run: Runner) -> None:
    assert (await run("cat")).stdout == b""
    assert (await run("cat", stdin=b"")).stdout == b""


async def test_a_signal_is_told_apart_from_an_exit_code(run: Runner) -> None:
    assert (await run("sh", "-c", "kill -TERM $$")).exit == Exit(signal=signal.SIGTERM)
    assert (await run("sh", "-c", "kill -KILL $$")).exit == Exit(signal=signal.SIGKILL)
    assert (await run("sh", "-c", "exit 143")).exit == Exit(code=143)


@pytest.mark.parametrize(
    ("argv", "cwd", "said"),
    [
        (("no-such-command",), None, "'no-such-command': No such file or directory"),
        (("/etc/passwd",), None, "'/etc/passwd': Permission denied"),
        (("true",), "/no/such/place", "directory '/no/such/place': No such file or directory"),
        (("true",), "/etc/passwd", "the working directory '/etc/passwd': Not a directory"),
        (("true", "x" * 200_000), None, "'true': Argument list too long"),
        (("no\nsuch",), None, "'no\\nsuch': No such file or directory"),
    ],
)
async def test_what_cannot_be_executed_is_an_error_in_words(
    run: Runner, argv: tuple[str, ...], cwd: str | None, said: str
) -> None:
    exit_ = (await run(*argv, cwd=cwd)).exit
    assert exit_.error is not None
    assert exit_.error.startswith("could not be executed: ")
    assert exit_.error.endswith(said)
    assert (exit_.code, exit_.signal, exit_.killed) == (None, None, False)


async def test_a_program_gets_exactly_the_environment_it_was_given(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_SECRET", "x")
    env = {"LETTERS": "ä=ö\n\udcff", "EMPTY": ""}
    printed = (await run("/usr/bin/env", "-0", env=env)).stdout
    assert sorted(printed.split(b"\0")) == [b"", b"EMPTY=", "LETTERS=ä=ö\n".encode() + b"\xff"]


async def test_the_command_is_looked_up_in_the_path_it_was_given(
    run: Runner, tmp_path: Path
) -> None:
    command = tmp_path / "only-here"
    command.write_text("#!/bin/sh\necho found $1\n")
    command.chmod(0o700)
    assert (await run("only-here", "x", env={"PATH": str(tmp_path)})).stdout == b"found x\n"
    assert (await run("./only-here", "y", cwd=str(tmp_path))).stdout == b"found y\n"


async def test_a_large_argv_and_environment_arrive_whole(run: Runner) -> None:
    item = "ä" * 60_000
    program = "import os, sys; print(len(sys.argv[1]), len(sys.argv[2]), len(os.environ['BIG']))"
    finished = await run(*python(program, item, item), env={"BIG": item, "LC_ALL": "C.UTF-8"})
    assert finished.stdout.split() == [b"60000"] * 3


async def test_a_program_has_no_descriptor_but_the_three_streams(run: Runner) -> None:
    listed = await run(*python("import os; print(*os.listdir('/proc/self/fd'))"), stdin=b"")
    # The fourth is the one by which it lists them.
    assert sorted(listed.stdout.split()) == [b"0", b"1", b"2", b"3"]


async def test_a_program_has_default_signals_and_a_session_of_its_own(run: Runner) -> None:
    status = (await run("cat", "/proc/self/status")).stdout.decode()
    values = dict(line.split(":\t", 1) for line in status.splitlines())
    # The C library keeps signals 32 and 33 for itself and lets nobody set them back.
    reserved = 1 << 31 | 1 << 32
    assert int(values["SigIgn"], 16) & ~reserved == 0
    assert int(values["SigBlk"], 16) == 0
    pid, _, rest = (await run("cat", "/proc/self/stat")).stdout.decode().partition(" ")
    group, session = rest.rpartition(")")[2].split()[2:4]
    assert pid == group == session


async def test_the_servers_environment_is_not_readable_beside_a_program(
    launcher: ProcessLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_SECRET", "x")
    async with await started(launcher, "sleep", "60") as process:
        for pid in (process.guard_pid, launcher.fork_server_pid):
            assert b"SERVER_SECRET" not in Path(f"/proc/{pid}/environ").read_bytes()


async def test_a_program_is_not_executed_before_its_go(
    launcher: ProcessLauncher, tmp_path: Path, run: Runner
) -> None:
    mark = tmp_path / "executed"
    program = Program(("touch", str(mark)), {"PATH": "/usr/bin:/bin"}, None, None)
    process = await launcher.open(program)
    await run("true")
    assert children(process.guard_pid) == []
    assert not mark.exists()
    process.go()
    process.go()
    assert await process.wait() == Exit(code=0)
    assert mark.exists()


async def test_a_program_killed_before_its_go_is_never_executed(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    mark = tmp_path / "executed"
    program = Program(("touch", str(mark)), {"PATH": "/usr/bin:/bin"}, None, None)
    process = await launcher.open(program)
    killed = await process.kill()
    process.go()
    assert (killed.killed, killed.error) == (True, "ended by its holder before it was executed")
    assert await process.wait() == killed
    assert not mark.exists()


async def test_a_killed_program_says_so_however_often_it_is_asked(
    launcher: ProcessLauncher,
) -> None:
    process = await started(launcher, "sleep", "60")
    killed = await process.kill()
    assert (killed.killed, killed.error) == (True, "killed by its holder")
    assert await process.kill() == await process.wait() == killed


async def test_a_program_that_had_ended_keeps_its_code_when_it_is_killed(
    launcher: ProcessLauncher,
) -> None:
    process = await started(launcher, "sh", "-c", "exit 7")
    await process.wait()
    assert await process.kill() == Exit(code=7)


async def test_a_program_that_is_not_read_waits(launcher: ProcessLauncher, tmp_path: Path) -> None:
    mark = tmp_path / "printed"
    process = await started(launcher, *python(FILL_THEN_PRINT, str(mark)))
    taken = int(await process.stderr.read())
    assert taken <= 64 * 1024
    assert not mark.exists()
    total = 0
    while data := await process.stdout.read(10_000):
        assert len(data) <= 10_000
        total += len(data)
    assert total == taken + 1_000_000
    assert await process.wait() == Exit(code=0)
    assert mark.exists()


async def test_a_stream_that_a_program_closes_ends_while_it_runs(
    launcher: ProcessLauncher,
) -> None:
    async with await started(launcher, "sh", "-c", "exec >&- 2>&-; exec sleep 60") as process:
        assert await process.stdout.read() == b""
        assert await process.stderr.read() == b""
        assert len(children(process.guard_pid)) == 1


async def test_only_one_task_may_read_a_pipe(launcher: ProcessLauncher) -> None:
    async with await started(launcher, "sleep", "60") as process:
        first = asyncio.create_task(process.stdout.read())
        second = asyncio.create_task(process.stdout.read())
        with pytest.raises(RuntimeError, match="already reading"):
            await second
        await process.kill()
        assert await first == b""
