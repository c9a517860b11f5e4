"""Programs behind guards: their input, their end, and one that runs to its end."""

import asyncio
import errno
import os
import signal
import tracemalloc
from pathlib import Path

import pytest

from infrastructure.outbound.child_processes.guard_process import why_not_executed
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.child_processes.program import Exit, Program
from infrastructure.outbound.child_processes.protocol import (
    LENGTH_BYTES,
    ProgramSpec,
    decode_report,
    decode_spec,
    encode_report,
    encode_spec,
)
from tests.support.servers.guarded_programs import DAEMON, Runner, python, started, touch
from tests.support.servers.process_table import carrying, children
from tests.support.waiting import until

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


async def test_five_mebibytes_go_in_and_come_out(run: Runner) -> None:
    data = os.urandom(5 * 1024 * 1024)
    finished = await run("cat", stdin=data)
    assert finished.stdout == data
    assert finished.exit == Exit(code=0)


async def test_program_need_not_read_its_input(run: Runner) -> None:
    assert (await run("true", stdin=b"x" * 5_000_000)).exit == Exit(code=0)
    finished = await run("sh", "-c", "exec <&-; seq 100000 | tail -n 1", stdin=b"x" * 5_000_000)
    assert (finished.stdout, finished.exit) == (b"100000\n", Exit(code=0))


async def test_without_input_stdin_is_empty(run: Runner) -> None:
    assert (await run("cat")).stdout == b""
    assert (await run("cat", stdin=b"")).stdout == b""


async def test_signal_is_told_apart_from_exit_code(run: Runner) -> None:
    assert (await run("sh", "-c", "kill -TERM $$")).exit == Exit(signal=signal.SIGTERM)
    assert (await run("sh", "-c", "kill -KILL $$")).exit == Exit(signal=signal.SIGKILL)
    assert (await run("sh", "-c", "exit 143")).exit == Exit(code=143)


@pytest.mark.parametrize(
    ("argv", "cwd", "message"),
    [
        (("no-such-command",), None, "'no-such-command': No such file or directory"),
        (("/etc/passwd",), None, "'/etc/passwd': Permission denied"),
        (("true",), "/no/such/place", "directory '/no/such/place': No such file or directory"),
        (("true",), "/etc/passwd", "the working directory '/etc/passwd': Not a directory"),
        (("true", "x" * 200_000), None, "'true': Argument list too long"),
        (("no\nsuch",), None, "'no\\nsuch': No such file or directory"),
    ],
)
async def test_program_not_executed_is_an_error(
    run: Runner, argv: tuple[str, ...], cwd: str | None, message: str
) -> None:
    exit_ = (await run(*argv, cwd=cwd)).exit
    assert exit_.error is not None
    assert exit_.error.startswith("could not be executed: ")
    assert exit_.error.endswith(message)
    assert (exit_.code, exit_.signal, exit_.killed) == (None, None, False)


async def test_program_gets_its_environment_alone(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_SECRET", "x")
    env = {"LETTERS": "ä=ö\n\udcff", "EMPTY": ""}
    printed = (await run("/usr/bin/env", "-0", env=env)).stdout
    assert sorted(printed.split(b"\0")) == [b"", b"EMPTY=", "LETTERS=ä=ö\n".encode() + b"\xff"]


async def test_command_is_looked_up_in_given_path(run: Runner, tmp_path: Path) -> None:
    command = tmp_path / "only-here"
    command.write_text("#!/bin/sh\necho found $1\n")
    command.chmod(0o700)
    assert (await run("only-here", "x", env={"PATH": str(tmp_path)})).stdout == b"found x\n"
    assert (await run("./only-here", "y", cwd=str(tmp_path))).stdout == b"found y\n"


async def test_large_argv_and_environment_arrive_whole(run: Runner) -> None:
    item = "ä" * 60_000
    program = "import os, sys; print(len(sys.argv[1]), len(sys.argv[2]), len(os.environ['BIG']))"
    finished = await run(*python(program, item, item), env={"BIG": item, "LC_ALL": "C.UTF-8"})
    assert finished.stdout.split() == [b"60000"] * 3


async def test_program_has_three_descriptors(run: Runner) -> None:
    listed = await run(*python("import os; print(*os.listdir('/proc/self/fd'))"), stdin=b"")
    # The fourth is the descriptor of the listed folder.
    assert sorted(listed.stdout.split()) == [b"0", b"1", b"2", b"3"]


async def test_program_has_default_signals_and_own_session(run: Runner) -> None:
    status = (await run("cat", "/proc/self/status")).stdout.decode()
    values = dict(line.split(":\t", 1) for line in status.splitlines())
    # The C library reserves signals 32 and 33 and does not let programs reset them.
    reserved = 1 << 31 | 1 << 32
    assert int(values["SigIgn"], 16) & ~reserved == 0
    assert int(values["SigBlk"], 16) == 0
    pid, _, rest = (await run("cat", "/proc/self/stat")).stdout.decode().partition(" ")
    group, session = rest.rpartition(")")[2].split()[2:4]
    assert pid == group == session


async def test_environment_of_server_is_not_beside_a_program(
    launcher: ProcessLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_SECRET", "x")
    async with await started(launcher, "sleep", "60") as process:
        for pid in (process.guard_pid, launcher.fork_server_pid):
            assert b"SERVER_SECRET" not in Path(f"/proc/{pid}/environ").read_bytes()


async def test_program_is_not_executed_before_its_go(
    launcher: ProcessLauncher, tmp_path: Path, run: Runner
) -> None:
    mark = tmp_path / "executed"
    process = await launcher.open(touch(mark))
    await run("true")
    assert children(process.guard_pid) == []
    assert not mark.exists()
    process.go()
    process.go()
    assert await process.wait() == Exit(code=0)
    assert mark.exists()


async def test_program_killed_before_its_go_is_not_executed(
    launcher: ProcessLauncher, tmp_path: Path
) -> None:
    mark = tmp_path / "executed"
    process = await launcher.open(touch(mark))
    killed = await process.kill()
    process.go()
    assert (killed.killed, killed.error) == (True, "ended by the server before it was executed")
    assert await process.wait() == killed
    assert not mark.exists()


async def test_killed_program_says_so_unless_it_had_ended(launcher: ProcessLauncher) -> None:
    process = await started(launcher, "sleep", "60")
    killed = await process.kill()
    assert (killed.killed, killed.error) == (True, "killed by the server")
    assert await process.kill() == await process.wait() == killed
    ended = await started(launcher, "sh", "-c", "exit 7")
    await ended.wait()
    assert await ended.kill() == Exit(code=7)


async def test_program_that_is_not_read_waits(launcher: ProcessLauncher, tmp_path: Path) -> None:
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


async def test_closed_stream_ends_while_program_runs(launcher: ProcessLauncher) -> None:
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


async def test_output_of_program_over_its_time_is_kept(run: Runner) -> None:
    finished = await run("sh", "-c", "echo out; echo err >&2; sleep 60", timeout_seconds=0.1)
    assert (finished.timed_out, finished.overflowed) == (True, False)
    assert finished.exit.killed
    assert (finished.stdout, finished.stderr_tail) == (b"out\n", b"err\n")
    assert 0.1 <= finished.duration_seconds < 10
    closed = await run("sh", "-c", "exec >&- 2>&-; sleep 60", timeout_seconds=0.1)
    assert (closed.timed_out, closed.exit.killed) == (True, True)


async def test_endless_output_is_stopped_in_bounded_memory(run: Runner) -> None:
    tracemalloc.start()
    try:
        finished = await run("yes", output_bytes_max=1_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert finished.stdout == b"y\n" * 500_000
    assert (finished.overflowed, finished.timed_out) == (True, False)
    assert finished.exit.killed
    assert peak < 6_000_000


async def test_endless_stderr_is_cut_to_its_tail(run: Runner) -> None:
    command = "(yes complaint | head -c 3000000; printf last) >&2; echo out"
    finished = await run("sh", "-c", command, stderr_bytes_max=14)
    assert finished.stderr_tail == b"complaint\nlast"
    assert (finished.stdout, finished.exit) == (b"out\n", Exit(code=0))


async def test_output_of_exactly_the_limit_is_no_overflow(run: Runner) -> None:
    fits = await run("printf", "12345", output_bytes_max=5)
    assert (fits.stdout, fits.overflowed, fits.exit) == (b"12345", False, Exit(code=0))
    over = await run("printf", "123456", output_bytes_max=5)
    assert (over.stdout, over.overflowed) == (b"12345", True)


async def test_daemon_with_the_pipes_does_not_delay_the_end(run: Runner) -> None:
    finished = await run(*python(DAEMON + "daemon()"), timeout_seconds=20)
    assert finished.exit == Exit(code=0)
    assert not finished.timed_out
    assert finished.duration_seconds < 10


async def test_cancelled_run_leaves_no_process(launcher: ProcessLauncher, run: Runner) -> None:
    token = "cancelled-run-of-a-test"
    running = asyncio.create_task(run(*python("import signal; signal.pause()", token)))
    await until(lambda: bool(carrying(token)))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert carrying(token) == []
    warm = launcher.fork_server_pid
    assert warm is not None
    await until(lambda: children(warm) == [])


@pytest.mark.parametrize(
    ("argv", "env", "cwd", "message"),
    [
        ((), {}, None, "needs a command"),
        (("",), {}, None, "needs a command"),
        (("a", "b\0c"), {}, None, r"argv\[1\] contains a NUL"),
        (("a", "\ud800"), {}, None, r"argv\[1\] contains characters"),
        (("a",), {"": "x"}, None, "name of an environment variable is empty"),
        (("a",), {"B=C": "x"}, None, "contains '='"),
        (("a",), {"B": "secret\0"}, None, "environment variable 'B' contains a NUL"),
        (("a",), {}, "", "working directory is an empty string"),
        (("a",), {}, "/\0", "working directory contains a NUL"),
        (("a", "x" * 9_000_000), {}, None, "at most 8388608 are allowed"),
    ],
)
def test_impossible_program_is_refused(
    argv: tuple[str, ...], env: dict[str, str], cwd: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        Program(argv, env, cwd, None)
    assert "secret" not in str(refused.value)


def test_spec_comes_back() -> None:
    encoded = encode_spec(("a", "", "b c"), {"X": "1=2", "Y": ""}, "/tmp")
    assert int.from_bytes(encoded[:LENGTH_BYTES], "big") == len(encoded) - LENGTH_BYTES
    spec = decode_spec(encoded[LENGTH_BYTES:])
    assert (spec.argv, spec.cwd) == ([b"a", b"", b"b c"], b"/tmp")
    assert spec.env == {b"X": b"1=2", b"Y": b""}
    assert spec.silence_seconds_max is None
    limited = encode_spec(("a", ""), {}, None, 2.5)
    assert decode_spec(limited[LENGTH_BYTES:]).silence_seconds_max == 2.5
    bare = decode_spec(encode_spec(("a",), {}, None)[LENGTH_BYTES:])
    assert (bare.argv, bare.env, bare.cwd) == ([b"a"], {}, b"")


def test_report_is_one_line() -> None:
    line = encode_report("error", "one\ntwo\r\nthree \udcff")
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_report(line[:-1]) == ("error", "one two three \\udcff")


DENIED = PermissionError(errno.EACCES, os.strerror(errno.EACCES))

"""Error of `execvpe` if a folder of PATH may not be entered, wherever the program is."""


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no-such-agent", "No such file or directory"),
        ("plain", "Permission denied"),
        ("{folder}/plain", "Permission denied"),
        ("{folder}/no-such-agent", "No such file or directory"),
    ],
)
def test_program_that_no_folder_has_is_missing(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "plain").touch(mode=0o600)
    path = {b"PATH": os.fsencode(f"{tmp_path / 'closed'}:{tmp_path}")}
    spec = ProgramSpec([os.fsencode(name.format(folder=tmp_path))], path, b"", None)
    assert why_not_executed(DENIED, spec) == why


def test_other_reasons_are_told() -> None:
    assert why_not_executed(DENIED, None) == "Permission denied"
    assert why_not_executed(ValueError("embedded null byte"), None) == "ValueError"
